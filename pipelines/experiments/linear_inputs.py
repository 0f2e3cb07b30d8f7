"""What a linear model learns from: terms and vectors of the rows, and their targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.modeling import LinearModel
from korbert.pipelines.experiments.preparing import PreparedTask
from korbert.system import track
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.texts import LinearExamples, TextKind, text_vectors
from korbert.tasks.linear import NOVELTY_ROWS, LinearInputs
from korbert.tasks.terms import Terms


def inputs_of(
    ready: PreparedTask, reader: LinearModel, parts: Sequence[str], *, sets_center: bool = False
) -> dict[str, LinearInputs]:
    """Returns the terms and vectors of some parts; vectors are (N, 0) if "vectors" is not one of the rungs.

    sets_center: set the center of the reader to the mean of the training texts. Models that were trained to compare
    texts need none.
    """

    inputs = {}
    for part in parts:
        examples = ready.parts[part].examples
        assert isinstance(examples, LinearExamples)
        if "vectors" not in getattr(ready.task, "rungs", ()):
            inputs[part] = LinearInputs(examples.terms, np.empty((len(examples), 0), np.float32))
            continue
        with track(f"vectors of {part}", total=len(examples), unit="rows") as advance:
            texts = torch.from_numpy(text_vectors(reader.eval(), examples, device=ready.device, advance=advance))
        if part == "train" and sets_center:
            reader.center.copy_(texts.view(len(texts) * reader.num_texts, -1).mean(dim=0))
        with torch.inference_mode():
            vectors = reader.row_vectors(texts.to(ready.device)).cpu().numpy()
        inputs[part] = LinearInputs(examples.terms, vectors, texts[:NOVELTY_ROWS].numpy() if part == "train" else None)
    return inputs


def targets_of(task: TextKind, ready: PreparedTask, part: str) -> NDArray[Any]:
    """Returns the targets of a part: labels as int (N,) or bool (N, C), numbers as float64 (N,)."""
    numbers = task.numbers([task.target(row) for row in ready.parts[part].rows])
    if numbers.ndim == 2:
        return numbers.astype(bool)
    return numbers if isinstance(task, Classification) else numbers.astype(np.float64)


def joined_inputs(parts: Sequence[LinearInputs]) -> LinearInputs:
    """Joins the rows of all parts, one part after the other."""
    terms = [part.terms for part in parts]
    sizes = np.concatenate([np.diff(part_terms.offsets) for part_terms in terms])  # terms of each row
    joined = Terms(
        np.concatenate([part_terms.ids for part_terms in terms]),
        np.concatenate([part_terms.counts for part_terms in terms]),
        np.cumsum([0, *sizes], dtype=np.int64),
    )
    return LinearInputs(joined, np.concatenate([part.vectors for part in parts]))
