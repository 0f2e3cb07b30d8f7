"""Initial weights from elsewhere: another model's, grown for new words of the tokenizer, or given embeddings."""

from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.errors import ModelError
from korbert.modeling.config import AnyConfig, EncoderConfig, TransformersConfig, parse_config
from korbert.modeling.models import PretrainingModel
from korbert.modeling.storage import load_model, read_config
from korbert.tokenization import Tokenizer
from korbert.tokenization.extending import new_entries, why_not_extended

__all__ = ["check_encoder", "check_tokenizer", "grown", "take_vectors", "take_weights"]

_MAY_DIFFER = {"vocab_size", "hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"}
_THEIRS_MAY_DIFFER = {"vocab_size", "n_words", "transformers_version", "layerdrop", "initializer_std", "init_std"}


def take_weights(model: PretrainingModel, tokenizer: Tokenizer, folder: Path) -> None:
    """Replaces all weights by those of the pretraining model in `folder`; heads that it lacks stay as they are.

    tokenizer: of `model`: that of the folder, or that with more words, as extending.extended adds them. Raises
    ModelError for another tokenizer, for an encoder that differs in more than dropout, and as load_model.
    """
    check_encoder(model.config, folder)
    theirs, base = load_model(folder, "pretraining")
    if not isinstance(base, Tokenizer):
        raise ModelError(f"{folder}: has a tokenizer of transformers, which takes no more words: name another model")
    check_tokenizer(tokenizer, base, folder)
    names = [name for name, weight in model.named_parameters() if weight is model.encoder.token_weight]
    by_entry, added = {*names, "mlm.bias"}, new_entries(tokenizer, base)
    weights, own = grown(theirs.state_dict(), by_entry, base.vocab_size, added), model.state_dict()
    model.load_state_dict(own | {name: tensor for name, tensor in weights.items() if name in own})


@torch.no_grad()
def take_vectors(embeddings: Tensor, ids: NDArray[np.int64], vectors: NDArray[np.float32], seed: int) -> None:
    """Replaces the rows `ids` of embeddings, (V, E), by vectors, (P, D), scaled to the mean norm of the rows replaced.

    Only their angles are meant to survive: a random rotation, drawn with `seed`, spreads the variance over all
    dimensions. If D > E, the E principal axes are kept; if D < E, the vectors span D dimensions of E.
    """
    found = torch.from_numpy(vectors)
    _, _, axes = torch.linalg.svd(found, full_matrices=False)
    found = found @ axes[: embeddings.shape[1]].T
    drawn = torch.randn(embeddings.shape[1], found.shape[1], generator=torch.Generator().manual_seed(seed))
    turned = found @ torch.linalg.qr(drawn).Q.T
    rows = torch.from_numpy(ids)
    turned *= embeddings[rows].norm(dim=1).mean() / turned.norm(dim=1).mean()
    embeddings[rows] = turned.to(embeddings)


def check_tokenizer(tokenizer: Tokenizer, base: Tokenizer, folder: Path) -> None:
    """ModelError where `tokenizer` is neither `base` nor that with more words. base: of the model in `folder`."""
    if difference := why_not_extended(tokenizer, base):
        raise ModelError(
            f"{folder}: was trained with the tokenizer {base.digest[:12]}; that of vocab, {tokenizer.digest[:12]}, is"
            f" neither this one nor this one with more words ({difference}): set vocab.tokenizer to the same folder"
        )


def check_encoder(config: AnyConfig, folder: Path) -> None:
    """ModelError where the model in `folder` is of another kind, or its encoder has other sizes or parts: names each.

    Dropout and the spread of initial weights may differ, and the longest row of a `modern`, whose positions have no
    weights. Of an encoder of `transformers` their config is compared.
    """
    found = read_config(folder)
    if found["kind"] != PretrainingModel.kind:
        raise ModelError(f"{folder}: a {found['kind']} model, its heads fill no gaps: name a pretrained model")
    theirs = parse_config(found["encoder"])
    if isinstance(config, EncoderConfig) and isinstance(theirs, EncoderConfig):
        free = _MAY_DIFFER | ({"max_position_embeddings"} if config.architecture == "modern" else set())
        if config.embedding_size is theirs.embedding_size is None:
            free.add("embedding_size")
        names = [name for name in EncoderConfig.model_fields if name not in free]
        ours, others = (  # with the width that embedding_size stands for where none is given
            {name: getattr(one, name) for name in names} | {"embedding_size": one.embedding_width}
            for one in (config, theirs)
        )
    elif isinstance(config, TransformersConfig) and isinstance(theirs, TransformersConfig):
        ours, others = config.transformers, theirs.transformers
        free = {name for name in ours if "dropout" in name or "initializer" in name} | _THEIRS_MAY_DIFFER
        names = sorted((ours.keys() | others.keys()) - free)
    else:
        ours, others, names = (
            {"architecture": config.architecture},
            {"architecture": theirs.architecture},
            ["architecture"],
        )
    differences = [
        f"{name}: {ours.get(name)!r} in the recipe, {others.get(name)!r} in the model"
        for name in names
        if ours.get(name) != others.get(name)
    ]
    if differences:
        raise ModelError(f"{folder}: is another encoder: {'; '.join(differences)}: change pretrain.encoder")


def grown(
    weights: Mapping[str, Tensor], by_entry: Container[str], size: int, origins: Sequence[Sequence[int]]
) -> dict[str, Tensor]:
    """The weights of a model over `size` entries as those of one over size + N, old rows as they were.

    by_entry: names of the tensors with a row for each entry: embedding and bias.
    origins: for each of N new entries the ids that stood for it. Its row of the embedding, whatever its width, and its
    bias are the means of theirs. Scores are linear in both, so that at first a new entry scores the mean of its pieces:
    its probability is their geometric mean, and takes little from the others; the log of the mean of exp(bias) would
    take more, for words that are rarer than their pieces.
    """
    return {
        name: _with_means(tensor, size, origins) if name in by_entry else tensor for name, tensor in weights.items()
    }


def _with_means(table: Tensor, size: int, origins: Sequence[Sequence[int]]) -> Tensor:
    """(V, ...) -> (size + N, ...)."""
    return torch.cat([table[:size], *(table[list(ids)].mean(dim=0, keepdim=True) for ids in origins)])
