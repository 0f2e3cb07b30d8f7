"""Text classification: fine-tunes a pretrained encoder, with an untrained encoder and TF-IDF as baselines.

1. Read the files; a hash of the ids holds out validation texts from the training file.
2. Find test texts that also occur in the training file or the pretraining corpus (corpus/overlap.py).
3. Analyse all texts once and keep them as pieces and morphemes (korbert/tasks/encoded.py).
4. Train each encoder at every rate and seed, and test it (experiments.py, korbert/tasks/classification.py).
5. Fit the baseline on the same morphemes (korbert/tasks/baselines/tfidf.py).
6. Write model, predictions and scores.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from corpus.documents import is_heldout
from corpus.overlap import found_in
from korbert.durable import write_json
from korbert.errors import CorpusError, SettingsError
from korbert.modeling import ClassificationModel, init_encoder_from, load_model, save_model
from korbert.modeling.models import Model
from korbert.progress import track
from korbert.tasks.best_epoch import Best, load_best
from korbert.tasks.classification import finetune, probabilities
from korbert.tasks.classification_settings import ClassificationTaskSettings
from korbert.tasks.encoded import EncodedTexts
from korbert.tasks.examples import Examples
from korbert.tasks.learning_settings import Way
from korbert.tasks.lora import require_peft
from korbert.tasks.metrics import confusion, measures
from korbert.tokenization import AnyTokenizer
from korbert.training import choose_device
from korbert.world import connected, from_first, require_rows
from pipelines.experiments import Experiment, ModelResult, kept_result, search
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.tasks import ClassificationTask

__all__ = ["run"]

_logger = logging.getLogger(__name__)

_VALIDATION_SEED = 0  # of the hash: the validation texts do not depend on the training seeds

_NOTE = (
    "Epoch, rate and C were chosen on {texts} held out of the training file; the test file was scored once a seed. "
    "Unseen are test {texts} whose text is neither in the training file nor a document, or a line of one, of the "
    "pretraining corpus, white space aside. A standard error is sqrt(p (1 - p) / n)."
)

Build = Callable[[int], ClassificationModel]  # seed -> the model before its first step


@dataclass(frozen=True)
class _LabelledTexts:
    """The rows of both files, as pieces in memory and as morphemes on disk.

    validation: (train,) bool, the held-out validation texts.
    """

    train: Examples
    test: Examples
    train_morphemes: EncodedTexts
    test_morphemes: EncodedTexts
    validation: NDArray[np.bool_]


def run(
    task: ClassificationTask, settings: ClassificationTaskSettings, inputs: Inputs, output: Path, runtime: Runtime
) -> Counts:
    """Writes model/, scores.json, predictions.parquet and metrics/ (docs/formats.md).

    With several connected processes, all train; rank 0 does the rest.
    """
    require_rows(f"{task.name}.batch_size", min(settings.batch_size))
    if settings.lora:
        require_peft()
    torch.set_num_threads(settings.threads)
    device = choose_device(runtime.device)
    train, test = (
        pd.concat([task.read(path) for path in inputs.files[role]], ignore_index=True) for role in ("train", "test")
    )
    validation = _validation(task, settings, train, inputs.files["train"])
    pretrained, tokenizer = load_model(inputs.artifacts["pretrain"] / "model")
    positions = pretrained.config.max_position_embeddings
    if settings.max_length > positions:
        raise SettingsError(
            f"{task.name}.max_length {settings.max_length} is more than the {positions} positions of "
            f"{inputs.artifacts['pretrain'] / 'model'}: lower it, or raise encoder.max_position_embeddings"
        )

    with track("compare", total=None):
        documents = inputs.artifacts["clean"] / "documents"
        seen = from_first(lambda: found_in(test["text"], train["text"], documents, output, runtime.workers))
    texts = _encode(settings, inputs, train, test, validation, tokenizer, output, runtime)
    builds = _builds(task, settings, pretrained)
    results: list[ModelResult] = []
    for name, build in builds.items():
        experiment = _experiment(task, settings, name, build, texts, device, runtime.anomaly)
        results += search(experiment, list(settings.ways()), settings.seeds, output)
    if not connected().writes:
        return {}
    if task.baseline:
        folder = output / "work" / "rows" / task.baseline
        results.append(kept_result(folder, lambda: _baseline(task, settings, texts, folder)))

    main = results[0]
    model = builds[main.facts["name"]](main.facts["seed"])
    load_best(main.folder, model)
    save_model(output / "model", model, tokenizer, task={"max_length": settings.max_length})
    _write_predictions(output / "predictions.parquet", test, main, ~seen)
    return _write_scores(output / "scores.json", task, settings, results, texts, ~seen)


def _validation(
    task: ClassificationTask, settings: ClassificationTaskSettings, train: pd.DataFrame, paths: Sequence[Path]
) -> NDArray[np.bool_]:
    """Mask of the validation texts, (train,) bool.

    Raises CorpusError if there are none, or if the other training texts lack a label.
    """
    ids = train["id"].tolist()
    chosen = np.array([is_heldout(f"{task.name}:{id}", _VALIDATION_SEED, settings.validation_share) for id in ids])
    names = ", ".join(map(str, paths))
    if not chosen.any():
        raise CorpusError(
            f"{names}: none of {len(ids):,} {task.texts} falls into the validation part: give more, or raise "
            f"{task.name}.validation_share ({settings.validation_share})"
        )
    learned = set(train["label"][~chosen])
    missing = [label for number, label in enumerate(task.labels) if number not in learned]
    if missing:
        raise CorpusError(
            f"{names}: no training {task.texts} have the label {', '.join(missing)}: add {task.texts} of each label"
        )
    return chosen


def _encode(
    settings: ClassificationTaskSettings,
    inputs: Inputs,
    train: pd.DataFrame,
    test: pd.DataFrame,
    validation: NDArray[np.bool_],
    tokenizer: AnyTokenizer,
    output: Path,
    runtime: Runtime,
) -> _LabelledTexts:
    encoded = {}
    for name, table in (("train", train), ("test", test)):
        encoded[name] = EncodedTexts(inputs.encoded or output / "work", table["text"].tolist(), tokenizer, "morphemes")
        encoded[name].make(runtime.workers, f"analyze {name}")
    with track("load", total=None):
        train_rows, test_rows = (
            encoded[name].examples(table["label"].to_numpy(), settings.max_length)
            for name, table in (("train", train), ("test", test))
        )
    first = train_rows.input_ids[: train_rows.offsets[1]].tolist()
    _logger.info("sample: %s -> %s, label %d", train["text"][0], " ".join(tokenizer.tokens(first)), train["label"][0])
    return _LabelledTexts(train_rows, test_rows, encoded["train"], encoded["test"], validation)


def _builds(task: ClassificationTask, settings: ClassificationTaskSettings, pretrained: Model) -> Mapping[str, Build]:
    """Name of each encoder -> function that builds its model before training. The main one comes first."""

    def scratch(seed: int) -> ClassificationModel:
        generator = torch.Generator().manual_seed(seed)
        return ClassificationModel(
            pretrained.config, len(task.labels), settings.pooling, labels=task.labels, generator=generator
        )

    def with_pretrained(seed: int) -> ClassificationModel:
        model = scratch(seed)
        init_encoder_from(model, pretrained)
        return model

    if settings.init == "scratch":
        return {"scratch": scratch}
    return {"pretrained": with_pretrained, **({"scratch": scratch} if settings.scratch else {})}


def _experiment(
    task: ClassificationTask,
    settings: ClassificationTaskSettings,
    name: str,
    build: Build,
    texts: _LabelledTexts,
    device: torch.device,
    anomaly: bool,
) -> Experiment:
    """How an encoder is trained and tested."""
    fitting = texts.train.select(np.flatnonzero(~texts.validation))
    choosing = texts.train.select(np.flatnonzero(texts.validation))

    def train(way: Way, seed: int, folder: Path, metrics: Path) -> Best:
        return finetune(
            build(seed),
            fitting,
            choosing,
            settings,
            way,
            seed=seed,
            work=folder,
            metrics=metrics,
            device=device,
            choose_by=task.metrics[0],
            description=f"{task.name} {name}",
            anomaly=anomaly,
        )

    def predict(seed: int, folder: Path) -> list[Any]:
        model = build(seed).to(device)
        load_best(folder, model)
        with track(f"score {name}", total=len(texts.test), unit="texts") as advance:
            shares = probabilities(model, texts.test, device=device, precision=settings.precision, advance=advance)
        return list(shares.astype(np.float64).tolist())

    return Experiment(name, task.metrics[0], train, predict)


def _baseline(
    task: ClassificationTask, settings: ClassificationTaskSettings, texts: _LabelledTexts, folder: Path
) -> ModelResult:
    """TF-IDF over the same morphemes with logistic regression; C is chosen on the validation texts."""
    from korbert.tasks.baselines import fit_labels

    def part(mask: NDArray[np.bool_]) -> tuple[Any, NDArray[np.int64]]:
        return compress(texts.train_morphemes.morphemes(), mask), texts.train.labels[mask]

    with track("tf-idf", total=1 + len(settings.baseline_c), unit="steps") as advance:
        baseline = fit_labels(
            part(~texts.validation),
            part(texts.validation),
            texts.test_morphemes.morphemes(),
            settings.baseline_c,
            num_labels=len(task.labels),
            choose_by=task.metrics[0],
            advance=advance,
        )
    assert baseline.chosen is not None
    key = f"validation_{task.metrics[0]}"
    facts = {
        "name": task.baseline,
        "seed": settings.seeds[0],
        "c": baseline.chosen,
        "epoch": None,
        "trials": [{"c": c, key: score} for c, score in baseline.trials.items()],
        key: baseline.trials[baseline.chosen],
    }
    return ModelResult(facts, baseline.test.tolist(), folder)


def _predicted(result: ModelResult) -> NDArray[np.int64]:
    """(test,) the most likely label of each text; with two labels, label 1 if its probability is above 0.5."""
    shares = np.array(result.predictions)
    labels = shares[:, 1] > 0.5 if shares.shape[1] == 2 else shares.argmax(axis=1)
    return labels.astype(np.int64)


def _write_predictions(path: Path, test: pd.DataFrame, result: ModelResult, unseen: NDArray[np.bool_]) -> None:
    """Writes `probability` (of label 1) for two labels, or `probabilities` (one per label) for more."""
    shares = np.array(result.predictions)
    if shares.shape[1] == 2:
        probability = {"probability": pa.array(shares[:, 1])}
    else:
        probability = {"probabilities": pa.array(shares.tolist(), pa.list_(pa.float64()))}
    table = pa.table(
        {
            "id": pa.array(test["id"], pa.string()),
            "text": pa.array(test["text"], pa.string()),
            "label": pa.array(test["label"], pa.int64()),
            "prediction": pa.array(_predicted(result)),
            **probability,
            "unseen": pa.array(unseen),
        }
    )
    pq.write_table(table, path, compression="zstd")


def _write_scores(
    path: Path,
    task: ClassificationTask,
    settings: ClassificationTaskSettings,
    results: Sequence[ModelResult],
    texts: _LabelledTexts,
    unseen: NDArray[np.bool_],
) -> Counts:
    labels, validation = texts.test.labels, int(texts.validation.sum())
    counts: Counts = {"train": len(texts.train) - validation, "validation": validation}
    counts |= {"test": len(labels), "unseen": int(unseen.sum())}
    rows: list[dict[str, Any]] = []
    confusions = []
    for result in results:
        predicted = _predicted(result)
        confusions.append(confusion(labels, predicted, len(task.labels)))
        among_unseen = confusion(labels[unseen], predicted[unseen], len(task.labels))
        tested = {"all": measures(confusions[-1], task.metrics), "unseen": measures(among_unseen, task.metrics)}
        rows.append({**result.facts, "test": tested})
    scores = {
        "rows": rows,
        "confusion": confusions[0].tolist(),
        "counts": counts,
        "note": " ".join(filter(None, (_NOTE.format(texts=task.texts), settings.note))),
    }
    write_json(path, scores)
    metric = task.metrics[0]
    of_first_seed = [row for row in rows if row["seed"] == settings.seeds[0]]
    return {**counts, **{f"{row['name']}_{metric}": row["test"]["all"][metric] for row in of_first_seed}}
