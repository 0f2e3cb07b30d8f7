"""Fine-tuning on tasks of any kind, scored against baselines without an encoder.

1. Read the files as rows; without a validation file, hold out a share of the training rows (korbert/tasks/splits.py).
2. Turn rows into examples of the task's kind (korbert/tasks/kinds); analyse each text once (encoded.py). Both are done
   by `prepare` (pipelines/experiments/preparing.py).
3. Train each encoder in every way and with every seed, after a warm-up if there is one, and test it once per seed
   (pipelines/experiments).
4. Fit the baselines on the same rows.
5. Write the model, scores with their intervals, comparisons and predictions.

With `features` the encoder is frozen and a head is trained on its vectors.
Every score is computed in fp32, whatever the precision of training, so that `evaluate` gives the same number.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.corpus.overlap import found_in
from korbert.modeling import ClassificationModel, FeatureModel, Network, save_model
from korbert.pipelines.artifacts import Runtime, StageCounts, StageInputs
from korbert.pipelines.experiments import (
    Build,
    Learned,
    ModelResult,
    PreparedTask,
    baselines,
    builds_of,
    learn,
    learn_linear,
    learn_tagging,
    prepare,
    score_table,
)
from korbert.pipelines.experiments.compare_tasks import write_predictions
from korbert.pipelines.submission.bundle import write_submission
from korbert.system import current_world, remove, track, write_json
from korbert.tasks.doubts import seen_in
from korbert.tasks.finetuning import Way, finetune, load_best
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.sections import TaskSection
from korbert.tasks.kinds.texts import TextKind
from korbert.tasks.linear import scale_on


def run(settings: TaskSection, inputs: StageInputs, output: Path, runtime: Runtime) -> StageCounts:
    """Writes model/, scores.json, predictions.jsonl and metrics/ (docs/formats.md).

    With several connected processes, all train; rank 0 does the rest.
    """
    ready = prepare(settings, inputs, output, runtime)
    results, model, task, folds, details = _learned(ready)
    ready = replace(ready, rows=replace(ready.rows, folds=folds))
    rows = ready.rows.scored.rows
    main = results[0]
    if not current_world().is_main_process:
        return {}
    if settings.baselines:
        results += baselines(ready)
    if isinstance(model, FeatureModel):
        # In training, kept vectors stood in for the encoder.
        model.encoder = model.encoder.origin
    save_model(output / "model", model, ready.tokenizer, task=task.task(), overwrite=True)
    write_predictions(output, rows, results)
    if getattr(settings, "submission", False):
        ids = [str(n if row.get("id") is None else row["id"]) for n, row in enumerate(rows)]
        answers = (prediction["answer"] for prediction in main.predictions)
        write_json(output / "predictions.json", dict(zip(ids, answers, strict=True)))  # the official file of answers
        remove(output / "submission", lambda folder: True)  # holds only what an interrupted run left
        write_submission(output / "model", output / "submission")

    # The counts: rows of each part, scored rows with the texts of a training row, and scored rows with unseen texts.
    counts: StageCounts = {name: len(part.rows) for name, part in ready.parts.items()}
    counts["test_in_train"] = 0 if folds else len(seen_in(task, rows, ready.rows.train))
    if folds:
        counts["folds"] = len(folds)
    unseen = None
    if settings.unseen:
        unseen = _unseen_rows(ready, inputs.artifacts.get("clean"))
        counts["unseen"] = int(unseen.sum())
    record = {
        **replace(ready, task=task).facts,
        **score_table(task, rows, results, unseen),
        "details": task.details(ready.scored, main.predictions) if details is None else details,
        "counts": counts,
        "said": [line.as_json() for line in ready.said],
        "note": settings.note,
    }
    write_json(output / "scores.json", record)
    return counts


def _learned(ready: PreparedTask) -> Learned:
    if not ready.task.has_rungs:
        return _train(ready)
    return learn_linear(ready, _train) if isinstance(ready.task, TextKind) else learn_tagging(ready)


def _train(ready: PreparedTask) -> Learned:
    """Trains and scores all encoders."""
    ready = ready.with_teachers()
    settings = ready.settings
    builds = builds_of(ready)
    if "warm_up" in ready.parts:
        first = next(iter(builds))
        builds[first] = _with_warm_up(ready, builds[first])
    results = learn(ready, builds)
    main = results[0]
    model = builds[main.facts["name"]](main.facts["seed"]).to(ready.device)
    load_best(main.folder, model)
    task = ready.task if ready.task.has_chosen_thresholds else ready.with_chosen_thresholds(model)[0]
    task = task.complete_task(model, ready.parts["valid"], ready.morphemes, device=ready.device)
    if isinstance(task, Classification):
        results[0] = _calibrated(ready, task, model, main)
    # For tasks of vectors, an encoder that has learned nothing of the task is the baseline to beat.
    if settings.baselines and task.predicts_untrained:
        for name, build in builds.items():
            predictions = task.predict(build(settings.seeds[0]).to(ready.device), ready.scored, device=ready.device)
            results.append(ModelResult({"name": f"{name}-untuned", "seed": None}, predictions, ready.output))
    return Learned(results, model, task)


def _calibrated(ready: PreparedTask, task: Classification, model: Network, result: ModelResult) -> ModelResult:
    """Calibrates a model, in place, on the validation rows. Returns its calibrated result."""
    valid = ready.parts["valid"]
    assert isinstance(model, ClassificationModel | FeatureModel)
    targets = task.numbers([task.target(row) for row in valid.rows])
    if task.several:
        targets = targets.astype(bool)
    scores = task.outputs_of(task.predict(model, valid, device=ready.device))
    scale = scale_on(scores, targets)
    with torch.no_grad():
        for weights in model.classifier.parameters():
            weights.mul_(scale)
    predictions = task.predictions_of(scale * task.outputs_of(result.predictions))
    return replace(result, facts={**result.facts, "temperature": 1 / scale}, predictions=predictions)


def _unseen_rows(ready: PreparedTask, clean: Path | None) -> NDArray[np.bool_]:
    """Returns which scored rows are unseen, (scored,) bool.

    These are the rows none of whose texts stands in rows that were learned or validated on, or in the recipe's corpus.
    """
    parts = ready.rows
    texts_of = ready.task.group_texts
    learned = [parts.train, *([parts.valid] if parts.test else []), *filter(None, [parts.warm_up])]
    learned_texts = [text for rows in learned for row in rows for text in texts_of(row)]
    scored_texts = [(number, text) for number, row in enumerate(parts.scored) for text in texts_of(row)]
    documents = clean and clean / "documents"
    with track("compare", total=None):
        is_known = found_in(
            [text for _, text in scored_texts], learned_texts, documents, ready.output, ready.runtime.workers
        )
    unseen = np.ones(len(parts.scored), dtype=np.bool_)
    unseen[[number for (number, _), known in zip(scored_texts, is_known, strict=True) if known]] = False
    return unseen


def _with_warm_up(ready: PreparedTask, build: Build) -> Build:
    """Trains once on the warm-up rows, with the first seed. Returns a build whose models begin with these weights."""
    settings = ready.settings
    folder = ready.output / "work" / "warm_up"
    way = Way(settings.learning_rates[0], settings.batch_size[0], settings.warm_up_epochs)
    finetune(
        build(settings.seeds[0]), ready.parts["warm_up"].examples, ready.task.loss, None, settings, way,
        seed=settings.seeds[0], work=folder, metrics=ready.output / "metrics" / "warm_up.jsonl", device=ready.device,
        description="warm up",
    )  # fmt: skip

    def warmed(seed: int) -> Network:
        model = build(seed)
        load_best(folder, model)
        return model

    return warmed
