"""Contribution of pieces to a label: integrated gradients (Sundararajan et al. 2017), by `captum`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.modeling import ClassificationModel
from korbert.system import package
from korbert.tokenization import AnyTokenizer, Encoding
from korbert.training import device_of
from korbert.vectors.encoder import encode_whole

_STEPS = 50  # on the path from the masked text to the text; the default of captum
_PIECES_AT_ONCE = 4_096


@dataclass(frozen=True)
class Attribution:
    """The contribution of each piece to the score of each label, against a baseline of [MASK] in place of all pieces.

    labels: names of the C labels; for regression "score". probabilities: (C,); for regression the predicted number.
    A score is the log odds of its label; for regression the number itself.
    shares: (C, T) float32, 0 at special tokens; a row sums to scores - masked, up to the error of 50 steps.
    scores, masked: (C,), of the text and of the baseline.
    """

    encoding: Encoding
    labels: tuple[str, ...]
    probabilities: NDArray[np.float32]
    shares: NDArray[np.float32]
    scores: NDArray[np.float32]
    masked: NDArray[np.float32]


def attribute(
    model: ClassificationModel, tokenizer: AnyTokenizer, text: str, pair: str | None = None, most: int = 1
) -> Attribution:
    """Attributions of the `most` most probable labels, in order. `[MASK]` and the like are special tokens.

    It adds hooks to the model, as `attention` does, so no other thread may run the model meanwhile. SettingsError
    without `captum`; ModelError for a text that is too long.
    """
    captum = package("captum.attr", "attribution")
    encoding = encode_whole(model, tokenizer, text, pair)

    def scores(vectors: Tensor) -> Tensor:
        """(B, T, D) -> (B, C): log odds of each label against all others, or its absence; for regression, the score."""
        outputs = logits(vectors)
        if model.problem_type != "single_label_classification":
            return outputs
        diagonal = torch.eye(outputs.shape[-1], dtype=torch.bool, device=outputs.device)
        return outputs - outputs[:, None, :].masked_fill(diagonal, float("-inf")).logsumexp(dim=-1)

    device = device_of(model)
    ids = torch.tensor(encoding.input_ids, device=device)
    special = torch.tensor(encoding.special_tokens_mask, device=device).bool()
    unknown = tokenizer.mask_id if tokenizer.mask_id >= 0 else tokenizer.pad_id
    with torch.inference_mode(False), torch.enable_grad():  # whatever the caller's mode
        logits = _logits_of(model, encoding)
        weight = model.encoder.token_weight.detach().clone()
        text_vectors = weight[ids][None]
        masked = weight[torch.where(special, ids, torch.full_like(ids, unknown))][None]
        outputs = logits(text_vectors)[0].detach()
        end_scores = [scores(vectors)[0].detach() for vectors in (text_vectors, masked)]
        by_type = {"single_label_classification": outputs.softmax(-1), "multi_label_classification": outputs.sigmoid()}
        probabilities = by_type.get(model.problem_type, outputs)
        order = probabilities.argsort(descending=True)[:most].tolist()
        gradients = captum.IntegratedGradients(scores)
        options = {"n_steps": _STEPS, "internal_batch_size": max(1, _PIECES_AT_ONCE // len(encoding))}
        rows = [gradients.attribute(text_vectors, masked, target=label, **options)[0].sum(dim=-1) for label in order]
    names = ("score",) if model.problem_type == "regression" else model.labels
    columns = (probabilities[order], torch.stack(rows), end_scores[0][order], end_scores[1][order])
    return Attribution(
        encoding, tuple(names[label] for label in order), *(column.detach().float().cpu().numpy() for column in columns)
    )


def _logits_of(model: ClassificationModel, encoding: Encoding) -> Callable[[Tensor], Tensor]:
    """A function of the token embeddings of copies of a text: (B, T, E) -> (B, C)."""
    device = device_of(model)
    weight = model.encoder.token_weight
    columns = [encoding.input_ids, encoding.attention_mask, encoding.token_type_ids, encoding.boundaries]
    inputs = [torch.tensor([column], device=device) for column in columns]
    (table,) = (part for part in model.encoder.modules() if isinstance(part, nn.Embedding) and part.weight is weight)

    def logits(vectors: Tensor) -> Tensor:
        hook = table.register_forward_hook(lambda module, ids, output: vectors.reshape(output.shape))
        try:
            scores: Tensor = model(*(column.expand(len(vectors), -1) for column in inputs))
        finally:
            hook.remove()
        return scores

    return logits
