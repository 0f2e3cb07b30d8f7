"""Fits and scores the linear model of words and vectors of a task.

1. Compute the vectors of all rows with the frozen encoder.
2. On folds of the training rows, choose C, whether words help, and, with several labels, the thresholds.
3. Fit on the training rows, and predict those to score.
4. Fit on the training and validation rows: the model that is saved. With a test file it is the one that is scored.
"""

import logging
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.messages import Message
from korbert.modeling import LinearModel
from korbert.pipelines.experiments.preparing import PreparedTask
from korbert.pipelines.experiments.search import ModelResult
from korbert.system import track
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.texts import LinearExamples
from korbert.tasks.linear import FoldChoice, LinearInputs, choose, fit
from korbert.tasks.terms import Terms
from korbert.training import Batch, outputs

_logger = logging.getLogger(__name__)

_PARTS = ("train", "valid")
_TRIALS = 2  # vectors alone, and with words


def learn_linear(ready: PreparedTask) -> tuple[ModelResult, LinearModel, Classification]:
    """The scored result, the model of all rows, and the task with its thresholds."""
    task = ready.task
    assert isinstance(task, Classification)
    inputs = {name: _inputs_of(ready, name) for name in _PARTS}
    targets = {name: _targets_of(task, ready, name) for name in _PARTS}
    texts = ["\n".join(task.texts(row)) for row in ready.parts["train"].rows]
    count = len(task.labels)
    with track("fit", total=_TRIALS, unit="models") as advance:
        choice = choose(inputs["train"], targets["train"], count, texts, advance)
    if task.several:
        task = task.with_thresholds(choice.scores, targets["train"][choice.rows])
    ready.said.append(_choice_line(choice))
    _logger.info(ready.said[-1])
    num_texts = 2 if task.pair else 1
    everything = _joined([inputs[name] for name in _PARTS])
    all_targets = np.concatenate([targets[name] for name in _PARTS])
    model = fit(everything, all_targets, count, choice, ready.start, num_texts).to(ready.device)
    scored = model
    if not ready.rows.test:
        scored = fit(inputs["train"], targets["train"], count, choice, ready.start, num_texts).to(ready.device)
    with track("score", total=len(ready.scored.examples), unit="examples") as advance:
        predictions = task.predict(scored, ready.scored, advance=advance, device=ready.device)
    shares = task.probabilities(torch.from_numpy(choice.scores)).numpy()
    metric = task.metrics[0]
    rows = [ready.parts["train"].rows[number] for number in choice.rows]
    facts = {
        "name": "linear",
        "seed": ready.settings.seeds[0],
        "c": choice.c,
        "words": choice.with_words,
        f"validation_{metric}": task.scores(rows, [task.prediction(share) for share in shares])[metric],
    }
    return ModelResult(facts, predictions, ready.output), model, task


def _choice_line(choice: FoldChoice) -> Message:
    gain, error = (100 * number for number in choice.gain)
    if choice.with_words:
        return Message(
            "words help: on held-out folds they gain {gain:+.1f} ± {error:.1f} points", gain=gain, error=error
        )
    return Message(
        "words are left out: on held-out folds they gain {gain:+.1f} ± {error:.1f} points", gain=gain, error=error
    )


def _inputs_of(ready: PreparedTask, part: str) -> LinearInputs:
    examples = ready.parts[part].examples
    assert isinstance(examples, LinearExamples)
    model = LinearModel.on(ready.start, 1, 0, examples.num_texts).to(ready.device)

    def vectors_of(model: Any, batch: Batch) -> Tensor:
        vectors: Tensor = model.row_vectors(
            batch["input_ids"], batch["attention_mask"], batch["boundaries"], batch["texts"]
        )
        return vectors

    with track(f"vectors of {part}", total=len(examples), unit="rows") as advance:
        vectors = outputs(model.eval(), examples, vectors_of, device=ready.device, advance=advance)
    return LinearInputs(examples.terms, vectors)


def _targets_of(task: Classification, ready: PreparedTask, part: str) -> NDArray[Any]:
    numbers = task.numbers([task.target(row) for row in ready.parts[part].rows])
    return numbers.astype(bool) if task.several else numbers


def _joined(parts: list[LinearInputs]) -> LinearInputs:
    first, second = (part.terms for part in parts)
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    terms = Terms(np.concatenate([first.ids, second.ids]), np.concatenate([first.counts, second.counts]), offsets)
    return LinearInputs(terms, np.concatenate([part.vectors for part in parts]))
