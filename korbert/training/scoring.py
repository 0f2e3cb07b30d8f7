"""Runs a model over examples in batches, shortest first, on all connected processes."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Required, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import ModelFailed
from korbert.messages import Message
from korbert.system import all_reduce_max, current_world
from korbert.training.devices import Batch, autocast, memory_kept, to_device
from korbert.training.distributed import add_over_world
from korbert.training.examples import Examples, by_length
from korbert.training.plan import PrecisionName

_RELEASE_EVERY = 16  # batches; see memory_kept


class NotFinite(ModelFailed):
    """Numbers of a model are NaN or infinite; of scores, -inf is allowed. what: which ones. model: its name."""

    def __init__(self, what: str = "scores", model: str = "the model") -> None:
        super().__init__(
            Message(
                "{model}: its {what} are not finite: train it again with a lower learning_rate", model=model, what=what
            )
        )
        self.what = what


def model_inputs(batch: Batch) -> dict[str, Any]:
    """The model's keyword arguments in a batch of examples."""
    names = (
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "boundaries",
        "lengths",
        "text_numbers",
        "terms",
        "counts",
        "rows",
    )
    return {name: batch[name] for name in names if name in batch}


class Scoring(TypedDict, total=False):
    """Device and precision of inference. advance: called with the number of rows after each batch."""

    device: Required[torch.device]
    precision: PrecisionName
    advance: Callable[[int], None]


def outputs(
    model: nn.Module,
    examples: Examples,
    of: Callable[[nn.Module, Batch], Tensor],
    batch_size: int = 256,
    *,
    device: torch.device,
    precision: PrecisionName = "fp32",
    advance: Callable[[int], None] = lambda count: None,
) -> NDArray[np.float32]:
    """Applies `of` to all examples: (N, C), in their order; C is the maximum over batches, smaller ones end in zeros.

    of: (model, batch) -> (B, C). Restores the model's train or eval mode. With several connected processes, each one
    scores its share of the batches, and all get the scores of all rows. NotFinite as `check_finite`.
    """
    results: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []  # row numbers and scores of each batch
    world = current_world()
    batches = list(by_length(examples.lengths, batch_size))[world.share]
    if was_training := model.training:  # setting it in every module takes a tenth of the time of a short text
        model.eval()
    # For a single batch, releasing memory costs more than keeping it saves.
    memory = memory_kept(device) if len(batches) > 1 else nullcontext(lambda: None)
    with torch.inference_mode(), autocast(device, precision), memory as release:
        for number, numbers in enumerate(batches, 1):
            results.append((numbers, of(model, to_device(examples.batch(numbers), device)).float().cpu().numpy()))
            if number % _RELEASE_EVERY == 0:
                release()
            advance(world.size * len(numbers))
    if was_training:
        model.train()
    width = all_reduce_max(max((scores.shape[1] for _, scores in results), default=0))
    result = np.zeros((len(examples), width), dtype=np.float32)
    for numbers, scores in results:
        result[numbers, : scores.shape[1]] = scores
    add_over_world(torch.from_numpy(result), world)  # one number plus zeros: bit-exact
    check_finite(result)
    return result


def check_finite(scores: NDArray[np.float32]) -> None:
    """NotFinite if a score is NaN or infinite; -inf, the logarithm of 0, is allowed."""
    if not (scores < np.inf).all():
        raise NotFinite
