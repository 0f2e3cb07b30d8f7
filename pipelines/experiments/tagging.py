"""Fits and tunes a CRF on layers of the encoder: tags of spans and words.

1. Compute the vectors of every second layer of the frozen encoder. Layers in the middle know more of entities than the
   last one (Tenney et al. 2019), and several more than one.
2. Fit the CRF on them by L-BFGS. Its L2 regularization grows with the rows; the validation loss would choose a
   stronger one, with worse spans. Do the same with the encoder of `embedder`, if there is one; it is taken if the
   validation loss is less by more than two standard errors.
3. With the rung "encoder": train all weights from there on to the last epoch, as spans get better while the loss of
   others does not. Keep a mean of the weights before and after, as for labels of texts (linear.py); leave tuning out
   if fewer validation rows are right, by more than two standard errors.
"""

import copy
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.messages import Message
from korbert.modeling import CrfModel, Encoder, Network
from korbert.pipelines.experiments.linear import TUNED_SHARE, Learned, mean_of
from korbert.pipelines.experiments.preparing import PreparedTask
from korbert.pipelines.experiments.search import ModelResult, Search, within_minutes
from korbert.pipelines.experiments.task_rows import notes_on_scored_rows
from korbert.system import JsonObject, track
from korbert.tasks.finetuning import load_best
from korbert.tasks.kinds.token_classification import TokenClassification
from korbert.tasks.linear import exceeds
from korbert.tasks.token_classification import TaggedExamples, transitions
from korbert.training import by_length, model_inputs, to_device

_STRENGTH = 0.1  # of L2 regularization, per window
_LARGEST_STRENGTH = 300.0
_OF_TRANSITIONS = 0.1  # strength of the regularization of transitions
_MOST_UNITS = 100_000  # that the CRF is fitted on, to limit memory; the encoder learns from all
_ITERATIONS = 100
_LEARNING_RATE = 4e-4
_STEPS = 250  # at least, of tuning, in up to _MOST_EPOCHS
_FEWEST_EPOCHS = 3
_MOST_EPOCHS = 6
_BATCH_SIZES = ((200, 4), (1_000, 8))  # (number of training windows, batch size up to that number)
_LARGE_BATCH = 16
_WINDOWS_AT_ONCE = 64


class _Units(NamedTuple):
    """Vectors (U, K x D), tags (U,), and the number of units of each window."""

    vectors: Tensor
    targets: Tensor
    lengths: list[int]


def learn_tagging(ready: PreparedTask) -> Learned:
    """Learns the rungs of a task of tags."""
    task = ready.task
    assert isinstance(task, TokenClassification)
    start = _chosen(ready, task)
    models = _tuned(ready, task, start) if "encoder" in task.rungs else []
    facts: JsonObject = {"name": "vectors", "seed": None}
    models = [*models, (start, facts)] if models else [(start, {**facts, "seed": ready.settings.seeds[0]})]
    results = [_result(ready, task, *model) for model in models]
    ready.say(*notes_on_scored_rows(ready.rows.scored_on, len(ready.rows.scored)))
    return Learned(results, models[0][0], task)


def _result(ready: PreparedTask, task: TokenClassification, model: CrfModel, facts: JsonObject) -> ModelResult:
    valid = ready.parts["valid"]
    metric = task.metrics[0]
    predictions = task.predict(model, valid, device=ready.device)
    score = task.scores(valid.rows, predictions)[metric]
    if ready.rows.test:
        predictions = task.predict(model, ready.scored, device=ready.device)
    return ModelResult({**facts, f"validation_{metric}": score}, predictions, ready.output)


# --- the CRF on frozen vectors ---


def _chosen(ready: PreparedTask, task: TokenClassification) -> CrfModel:
    """Returns the CRF on the frozen encoder, or on that of `embedder` if its validation loss is lower (step 2)."""
    model = _fitted(ready, task, ready.start)
    for name, start in ready.embedders.items():
        other = _fitted(ready, task, start)
        losses, other_losses = (_losses(crf, _units(ready, crf, "valid")) for crf in (model, other))
        facts = {"name": name, "before": losses.mean(), "after": other_losses.mean()}
        if exceeds(losses - other_losses):
            model = other
            ready.say(
                Message("vectors are those of {name}: the validation loss is {after:.3f}, not {before:.3f}", **facts)
            )
        else:
            ready.say(
                Message("vectors of {name} are left out: the validation loss is {after:.3f}, not {before:.3f}", **facts)
            )
    return model


def _losses(model: CrfModel, units: _Units) -> NDArray[np.float64]:
    """Returns the loss of each window, in nats."""
    scores = model.classifier(units.vectors.to(model.mean.device))
    windows = zip(torch.split(scores, units.lengths), torch.split(units.targets, units.lengths), strict=True)
    return np.array(
        [float(model.loss(window, targets.to(window.device), [len(window)])) for window, targets in windows]
    )


def _fitted(ready: PreparedTask, task: TokenClassification, start: Network) -> CrfModel:
    """Fits a CRF on every second layer of a frozen encoder."""
    config = start.config
    layers = range(1, config.num_hidden_layers + 1, 2)
    model = CrfModel(config, task.tags, layers, encoder=start.encoder).to(ready.device)
    first, follows = transitions(task.tags)
    model.first.copy_(torch.from_numpy(first))
    model.follows.copy_(torch.from_numpy(follows))
    train = _units(ready, model, "train")
    deviation, mean = torch.std_mean(train.vectors, dim=0, correction=0)
    model.standardize(mean.view_as(model.mean), deviation.view_as(model.deviation))
    train.vectors.sub_(model.mean.flatten().cpu()).div_(model.deviation.flatten().cpu())
    model.cpu().requires_grad_(False)
    with track("fit", total=1, unit="models") as advance:
        _fit(model, train, min(_STRENGTH * len(train.lengths), _LARGEST_STRENGTH))
        advance(1)
    line = Message("a CRF is fitted on {layers} layers of the frozen encoder", layers=len(model.layers))
    if len(train.lengths) < len(ready.parts["train"].examples):
        line = Message(
            "a CRF is fitted on {layers} layers of the frozen encoder, with the first {windows:,} windows",
            layers=len(model.layers), windows=len(train.lengths),
        )  # fmt: skip
    ready.say(line)
    return model.to(ready.device).eval()


def _units(ready: PreparedTask, model: CrfModel, part: str) -> _Units:
    """Returns the units of the first windows of a part, up to _MOST_UNITS, with vectors standardized by the model."""
    examples = ready.parts[part].examples
    assert isinstance(examples, TaggedExamples)
    counts = np.add.reduceat(examples.labels >= 0, examples.offsets[:-1]) if len(examples) else np.empty(0, np.int64)
    windows = int(np.searchsorted(np.cumsum(counts), _MOST_UNITS, side="right"))
    windows = min(len(examples), max(windows, 1))
    vectors: list[Tensor] = [torch.empty(0)] * windows
    targets: list[Tensor] = [torch.empty(0)] * windows
    model.eval()
    batches = by_length(examples.lengths[:windows], _WINDOWS_AT_ONCE)
    with track(f"vectors of {part}", total=windows, unit="windows") as advance, torch.inference_mode():
        for numbers in batches:
            batch = to_device(examples.batch(numbers), ready.device)
            batch_vectors = model.vectors(**model_inputs(batch)).cpu()
            for place, number in enumerate(numbers.tolist()):
                used = batch["labels"][place].cpu() >= 0
                vectors[number] = batch_vectors[place][used]
                targets[number] = batch["labels"][place].cpu()[used]
            advance(len(numbers))
    return _Units(torch.cat(vectors), torch.cat(targets), [len(window_targets) for window_targets in targets])


def _fit(model: CrfModel, units: _Units, strength: float) -> None:
    """Minimizes the loss plus the L2 penalty: half the squares of the weights, times the strength."""
    weights = [model.classifier.weight, model.classifier.bias, model.transitions, model.starts]
    for weight in weights:
        weight.requires_grad_(True)
    optimizer = torch.optim.LBFGS(weights, max_iter=_ITERATIONS, history_size=10, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model.loss(model.classifier(units.vectors), units.targets, units.lengths)
        penalty = strength * model.classifier.weight.square().sum()
        penalty = penalty + _OF_TRANSITIONS * (model.transitions.square().sum() + model.starts.square().sum())
        total = loss + penalty / 2
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    for weight in weights:
        weight.requires_grad_(False)
        weight.grad = None


# --- tuning ---


class _Tuning(Search):
    """Trainings of an encoder that start from a fitted CRF; the weights of the last epoch are kept."""

    keeps_last: ClassVar[bool] = True


def _tuned(ready: PreparedTask, task: TokenClassification, start: CrfModel) -> list[tuple[CrfModel, JsonObject]]:
    """Returns the tuned model of each seed; [] if fewer validation rows are right than before, or there is no time."""
    ready = ready.with_teachers()
    settings = ready.settings
    windows = len(ready.training.examples)
    changed: JsonObject = {}
    if "batch_size" not in settings.model_fields_set:
        changed["batch_size"] = (next((size for most, size in _BATCH_SIZES if windows <= most), _LARGE_BATCH),)
    if "learning_rates" not in settings.model_fields_set:
        changed["learning_rates"] = (_LEARNING_RATE,)
    settings = settings.model_copy(update=changed)
    if not settings.epochs:
        per_epoch = -(-windows // settings.batch_size[0])
        epochs = min(_MOST_EPOCHS, max(_FEWEST_EPOCHS, -(-_STEPS // per_epoch)))
        settings = settings.model_copy(update={"epochs": (epochs,)})

    def build(seed: int) -> CrfModel:
        model = copy.deepcopy(start).requires_grad_(True)
        encoder = model.encoder
        highest = max(model.layers)
        if isinstance(encoder, Encoder) and highest < encoder.config.num_hidden_layers:
            # What the CRF does not read gets no gradient, for which DistributedDataParallel would wait.
            first_unread = -(-highest // encoder.config.layers_per_set)
            for unread in filter(None, (*encoder.layers[first_unread:], encoder.final_norm, encoder.piece_weight)):
                unread.requires_grad_(False)
        return model

    ready = within_minutes(replace(ready, settings=settings), build)
    tuned: list[tuple[CrfModel, JsonObject]] = []
    if not ready.settings.epochs:
        return tuned
    for training in _Tuning(ready, "tuned", build).trainings():
        after = build(training.seed).to(ready.device)
        load_best(training.folder, after)
        tuned.append((mean_of(start, after).eval(), {**training.facts, "tuned": TUNED_SHARE}))
    valid = ready.parts["valid"]
    before, after_tuning = (
        task.row_scores(valid.rows, task.predict(model, valid, device=ready.device)) for model in (start, tuned[0][0])
    )
    shares = {"before": 100 * before.mean(), "after": 100 * after_tuning.mean()}
    if exceeds(before - after_tuning):
        ready.say(
            Message(
                "tuning is left out: {before:.1f} % of the validation rows are right, then {after:.1f} %", **shares
            ),
        )
        return []
    ready.say(
        Message("the encoder is tuned: {before:.1f} % of the validation rows are right, then {after:.1f} %", **shares),
    )
    return tuned
