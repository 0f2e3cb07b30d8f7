"""Initializes a model from another one, grown by layers and new words of the tokenizer, or from given embeddings."""

from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.errors import ModelError
from korbert.messages import Message, join_messages
from korbert.modeling.config import EncoderConfig
from korbert.modeling.embeddings import OVERLAP, scaled_overlap
from korbert.modeling.files.storage import load_model, read_config
from korbert.modeling.models import PretrainingModel
from korbert.tokenization import Tokenizer, new_entries, why_not_extended

_MAY_DIFFER = {"vocab_size", "hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"}
_ZERO_WHERE_ADDED = ("embeddings.boundary.weight", "attention.output.weight", "down.weight")


def copy_weights(model: PretrainingModel, tokenizer: Tokenizer, folder: Path) -> None:
    """Replaces all weights with those of the pretraining model in `folder`; heads that it lacks stay as they are, and
    so does the direction of an overlap embedding.

    Added layers and an added boundary embedding change no vector before training. The boundary embedding starts at
    zero. So do the output projections of the layers, which therefore return their input; their other weights stay as
    drawn (compare the block expansion of LLaMA Pro, Wu et al. 2024, which copies layers).

    tokenizer: that of `model`: the folder's, or the folder's extended by extending.extend_tokenizer. Raises
    ModelError for any other tokenizer, for another encoder (check_encoder), and as load_model.
    """
    check_encoder(model.config, folder)
    pretrained, base = load_model(folder, "pretraining")
    if not isinstance(base, Tokenizer):
        raise ModelError(
            "{folder}: has a tokenizer of transformers, which cannot be extended: name another model", folder=folder
        )
    check_tokenizer(tokenizer, base, folder)
    names = [name for name, weight in model.named_parameters() if weight is model.encoder.token_weight]
    added = new_entries(tokenizer, base)
    weights = grow_vocabulary(pretrained.state_dict(), {*names, "mlm.bias"}, base.vocab_size, added)
    state = model.state_dict()
    for name in state.keys() - weights.keys():
        if name == f"encoder.{OVERLAP}":
            weights[name] = scaled_overlap(state[name], pretrained.encoder.token_weight.detach())
        elif name.startswith("encoder.") and name.endswith(_ZERO_WHERE_ADDED):
            weights[name] = torch.zeros_like(state[name])
    model.load_state_dict(state | {name: tensor for name, tensor in weights.items() if name in state})


@torch.no_grad()
def copy_vectors(embeddings: Tensor, ids: NDArray[np.int64], vectors: NDArray[np.float32], seed: int) -> None:
    """Replaces rows `ids` of embeddings, (V, E), with vectors, (P, D), scaled to the mean norm of the replaced rows.

    Only angles are preserved: a random rotation, drawn with `seed`, spreads the variance over all
    dimensions. If D > E, the E principal axes are kept; if D < E, the vectors span D dimensions of E.
    """
    source = torch.from_numpy(vectors)
    _, _, axes = torch.linalg.svd(source, full_matrices=False)
    source = source @ axes[: embeddings.shape[1]].T
    gaussian = torch.randn(embeddings.shape[1], source.shape[1], generator=torch.Generator().manual_seed(seed))
    rotated = source @ torch.linalg.qr(gaussian).Q.T
    rows = torch.from_numpy(ids)
    rotated *= embeddings[rows].norm(dim=1).mean() / rotated.norm(dim=1).mean()
    embeddings[rows] = rotated.to(embeddings)


def check_tokenizer(tokenizer: Tokenizer, base: Tokenizer, folder: Path) -> None:
    """ModelError if `tokenizer` is neither `base`, the tokenizer of the model in `folder`, nor an extension of it."""
    if difference := why_not_extended(tokenizer, base):
        raise ModelError(
            "{folder}: was trained with tokenizer {digest}; the one of vocab, {digest2}, is neither the "
            "same nor an extension of it ({difference}): set vocab.tokenizer to the same folder",
            folder=folder,
            digest=base.digest[:12],
            digest2=tokenizer.digest[:12],
            difference=difference,
        )


def pretrained_encoder(folder: Path) -> EncoderConfig:
    """The encoder of the pretrained model in a folder. ModelError if it is of another kind."""
    saved = read_config(folder)
    if saved["kind"] != PretrainingModel.kind:
        raise ModelError(
            "{folder}: a {saved} model, without pretraining heads: name a pretrained model",
            folder=folder,
            saved=saved["kind"],
        )
    return EncoderConfig.parse(saved["encoder"])


def check_encoder(config: EncoderConfig, folder: Path) -> None:
    """ModelError if the model in `folder` is of another kind, or if its encoder differs; names each difference.

    Dropout and the deviation of initial weights may differ, and the recipe alone may have an overlap or a boundary
    embedding. In `modern` the maximum length may differ, as its positions have no weights, and the recipe may have more
    layers, as a pre-norm layer can be added without changing the result; layers that share weights cannot be added.
    """
    base = pretrained_encoder(folder)
    free = _MAY_DIFFER | {name for name in ("overlap_embedding", "boundary_embedding") if not getattr(base, name)}
    if config.architecture == "modern":
        free.add("max_position_embeddings")
        if config.layers_per_set == 1 and config.num_hidden_layers > base.num_hidden_layers:
            free.add("num_hidden_layers")
    if config.embedding_size is base.embedding_size is None:
        free.add("embedding_size")
    entries, base_entries = (
        settings.model_dump() | {"embedding_size": settings.embedding_width} for settings in (config, base)
    )
    differences = [
        Message("{name}: {own!r} in the recipe, {saved!r} in the model", name=name, own=value, saved=base_entries[name])
        for name, value in entries.items()
        if name not in free and value != base_entries[name]
    ]
    if differences:
        raise ModelError(
            "{folder}: its encoder differs: {differences}: change pretrain.encoder",
            folder=folder,
            differences=join_messages(differences),
        )


def grow_vocabulary(
    weights: Mapping[str, Tensor], by_entry: Container[str], size: int, origins: Sequence[Sequence[int]]
) -> dict[str, Tensor]:
    """Grows the weights of a model from `size` to size + N vocabulary entries, keeping the old rows.

    by_entry: names of the tensors with one row per entry: embedding and bias.
    origins: for each of N new entries, the ids of its old pieces. Its embedding row and its bias are the means of
    theirs. Scores are linear in both, so at first a new entry scores the mean of its pieces: its probability is their
    geometric mean, which takes little from other entries. The log of the mean of exp(bias) would take more, for words
    that are rarer than their pieces.
    """
    bigger = dict(weights)
    for name, table in weights.items():
        if name in by_entry:
            means = (table[list(ids)].mean(dim=0, keepdim=True) for ids in origins)
            bigger[name] = torch.cat([table[:size], *means])  # (V, ...) -> (size + N, ...)
    return bigger
