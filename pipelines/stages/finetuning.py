"""Fine-tuning on tasks of any kind, scored against baselines without an encoder.

1. Read the files as rows; without a validation file, hold out a share of the training rows (korbert/tasks/splits.py).
2. Turn rows into examples of the task's kind (korbert/tasks/kinds); analyse each text once (encoded.py).
3. Train each encoder in every way and with every seed, after a warm-up if there is one, and test it once per seed
   (pipelines/experiments).
4. Fit the baselines on the same rows.
5. Write the model, scores with their intervals, comparisons and predictions.

With `features` the encoder is frozen and a head is trained on its vectors (features.py).
Every score is computed in fp32, whatever the precision of training, so that `evaluate` gives the same number.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from corpus.overlap import found_in
from korbert.durable import write_json, write_whole
from korbert.errors import CorpusError, SettingsError
from korbert.extras import MissingPackage, needed_for, package
from korbert.modeling import EncoderConfig, FeatureModel, Model, init_encoder_from, load_model, save_model
from korbert.modeling.feature_settings import chosen_layers
from korbert.progress import track
from korbert.scratch import remove
from korbert.tasks.files import ROLES, Role, Row, Rows, read_rows, refuse_unseen_labels, renamed
from korbert.tasks.finetuning.best_epoch import Best, load_best
from korbert.tasks.finetuning.encoded import EncodedTexts
from korbert.tasks.finetuning.layerwise import keep_layers
from korbert.tasks.finetuning.learning import finetune
from korbert.tasks.finetuning.settings import Way
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.base import Kind, Prepared
from korbert.tasks.kinds.sections import TaskSection
from korbert.tasks.sets import known_set
from korbert.tasks.sets.loading import load
from korbert.tasks.splits import Parts, at_most, cut, split_by_article, usable
from korbert.tokenization import AnyTokenizer
from korbert.training import choose_device
from korbert.training.examples import Batches
from korbert.world import connected, require_rows
from pipelines.artifacts.runtime import Runtime
from pipelines.experiments.features import Build, feature_builds
from pipelines.experiments.scores import few_rows, score_table
from pipelines.experiments.search import ModelResult, search
from pipelines.stages import Counts, Inputs
from pipelines.submission.writing import write_submission

_logger = logging.getLogger(__name__)

_SPLIT_NOTE = (
    "trained and scored on two parts of one file, cut by article: not comparable with published scores, which come "
    "from other files"
)


@dataclass(frozen=True)
class Ready:
    """A task ready for training.

    start: the model that provides the encoder. parts: examples by name. scored: the test examples, or the validation
    examples without a test. said: lines about the rows read. vectors: the folder that caches encoder vectors.
    """

    task: Kind
    rows: Parts
    start: Model
    tokenizer: AnyTokenizer
    encoded: EncodedTexts
    parts: Mapping[str, Prepared]
    said: list[str]
    device: torch.device
    vectors: Path

    @property
    def scored(self) -> Prepared:
        return self.parts["test" if self.rows.test else "valid"]

    @property
    def facts(self) -> dict[str, Any]:
        """The fields that every record of scores begins with."""
        return {"task": self.task.task(), "scored_on": "test" if self.rows.test else "valid"}


def run(settings: TaskSection, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes model/, scores.json, predictions.jsonl and metrics/ (docs/formats.md).

    With several connected processes, all train; rank 0 does the rest.
    """
    ready = prepare(settings, inputs, output, runtime)
    task, scored = ready.task, ready.scored
    if settings.features is None:
        builds = encoder_builds(task, settings, ready.start)
    else:
        builds = feature_builds(task, settings, ready.start, ready.parts, ready.vectors, ready.device)
    if "warm_up" in ready.parts:
        first = next(iter(builds))
        builds = {**builds, first: _warmed(ready, builds[first], settings, output, runtime.anomaly)}
    results = learn(ready, builds, settings, output, anomaly=runtime.anomaly)
    main = results[0]
    model = builds[main.facts["name"]](main.facts["seed"]).to(ready.device)
    load_best(main.folder, model)
    task = _completed(ready, model)
    if settings.baselines and task.predicts_untrained:
        for name, build in builds.items():
            predictions = task.predict(build(settings.seeds[0]).to(ready.device), scored, device=ready.device)
            results.append(ModelResult({"name": f"{name}-untuned", "seed": None}, predictions, output))
    if not connected().writes:
        return {}
    if settings.baselines:
        results += baselines(ready, output)
    if isinstance(model, FeatureModel):
        model.encoder = model.encoder.origin
    save_model(output / "model", model, ready.tokenizer, task=task.task())
    _write_predictions(output / "predictions.jsonl", scored.rows, results)
    if getattr(settings, "submission", False):
        ids = [str(n if row.get("id") is None else row["id"]) for n, row in enumerate(scored.rows)]
        answers = (prediction["answer"] for prediction in main.predictions)
        write_json(output / "predictions.json", dict(zip(ids, answers, strict=True)))  # the official file of answers
        remove(output / "submission", lambda folder: True)  # of the stage alone: left by an interrupted run
        write_submission(output / "model", output / "submission")
    unseen = _unseen(ready, inputs, output, runtime.workers) if settings.unseen else None
    return _write_scores(output, replace(ready, task=task), results, unseen, settings.note)


def _completed(ready: Ready, model: nn.Module) -> Kind:
    """The task with all that validation chooses for a trained model. Called in all processes."""
    task = ready.task if ready.task.is_settled else _settled(ready, model)[0]

    def morphemes() -> dict[str, list[str]]:
        return dict(zip(ready.rows.distinct(task.texts), ready.encoded.morphemes(), strict=True))

    return task.completed(model, ready.parts["valid"], morphemes, device=ready.device)


def _write_scores(
    output: Path, ready: Ready, results: list[ModelResult], unseen: NDArray[np.bool_] | None, note: str
) -> Counts:
    """Writes scores.json and returns its counts: rows of each part, scored rows with the texts of a training row."""
    task, scored = ready.task, ready.scored
    counts: Counts = {name: len(part.rows) for name, part in ready.parts.items()}
    counts["test_in_train"] = count_seen(task, scored.rows, ready.rows.train)
    if unseen is not None:
        counts["unseen"] = int(unseen.sum())
    record = {
        **ready.facts,
        **score_table(task, scored.rows, results, unseen),
        "details": task.details(scored, results[0].predictions),
        "counts": counts,
        "said": ready.said,
        "note": note,
    }
    write_json(output / "scores.json", record)
    return counts


def count_seen(task: Kind, rows: Iterable[Row], others: Iterable[Row]) -> int:
    """How many rows have the same texts as one of the others, apart from spaces.

    Negatives do not count: a query and its passage are known from training whatever stood beside them there.
    """

    def words_of(row: Row) -> tuple[str, ...]:
        return tuple(" ".join(text.split()) for text in task.texts({**row, "negatives": None}))

    seen = {words_of(row) for row in others}
    return sum(words_of(row) in seen for row in rows)


def _unseen(ready: Ready, inputs: Inputs, output: Path, threads: int) -> NDArray[np.bool_]:
    """(scored,) bool: rows none of whose texts stands in the training or validation rows, or in the recipe's corpus."""
    scored, parts = ready.scored.rows, ready.rows
    learned = [parts.train, *([parts.valid] if parts.test else []), *filter(None, [parts.warm_up])]
    owners = [(number, text) for number, row in enumerate(scored) for text in ready.task.together(row)]
    others = [text for rows in learned for row in rows for text in ready.task.together(row)]
    clean = inputs.artifacts.get("clean")
    with track("compare", total=None):
        is_known = found_in([text for _, text in owners], others, clean and clean / "documents", output, threads)
    unseen = np.ones(len(scored), dtype=np.bool_)
    unseen[[number for (number, _), known in zip(owners, is_known, strict=True) if known]] = False
    return unseen


def prepare(settings: TaskSection, inputs: Inputs, output: Path, runtime: Runtime) -> Ready:
    """Reads the model and the files, and turns all rows into examples."""
    require_rows("batch_size", min(settings.batch_size))
    if settings.lora:
        package("peft", "lora")
    if len(settings.seeds) > 1:
        package("scipy.stats", "more than one seed")  # an interval over seeds
    torch.set_num_threads(settings.threads)
    device = choose_device(runtime.device)
    pretrained = inputs.artifacts.get("pretrain")
    source = pretrained / "model" if pretrained else inputs.folder("init", "config.json")
    start, tokenizer = load_model(source)
    if settings.num_hidden_layers is not None:
        keep_layers(start, settings.num_hidden_layers)
    if settings.max_length > (positions := start.config.max_position_embeddings):
        raise SettingsError(
            f"max_length {settings.max_length} is more than the {positions} positions of {source}: lower it"
        )
    if settings.features is not None:
        chosen_layers(settings.features.layers, start.config.num_hidden_layers)  # raises for layers that it lacks
    task, rows = read_parts(settings, inputs, runtime.data)
    said = [f"{task.name}: {task.about()}", *rows.read, *rows.notes]
    for line in said:
        _logger.info("%s", line)
    texts = rows.distinct(task.texts)
    folder = inputs.encoded or output / "work"
    encoded = EncodedTexts(folder, texts, tokenizer)
    encoded.make(runtime.workers, "analyze")
    passages = dict(zip(texts, encoded.passages(), strict=True))
    parts = {name: task.prepare(part.rows, passages, tokenizer) for name, part in rows.by_name().items()}
    return Ready(task, rows, start, tokenizer, encoded, parts, said, device, folder)


def learn(
    ready: Ready, builds: Mapping[str, Build], settings: TaskSection, output: Path, *, anomaly: bool = False
) -> list[ModelResult]:
    """Trains and tests every model. Results are kept below output/work, curves below output/metrics."""
    task, parts, scored = ready.task, ready.parts, ready.scored
    if not settings.epochs:
        # Few rows need more epochs than 3 (Mosbach et al. 2021, 6).
        steps_per_epoch = Batches(parts["train"].examples, max(settings.batch_size), seed=0).steps_per_epoch
        settings = settings.model_copy(update={"epochs": (min(20, max(3, -(-200 // steps_per_epoch))),)})

    def measure(model: nn.Module) -> tuple[float, dict[str, float]]:
        """The validation score that chooses the epoch."""
        own, predictions = _settled(ready, model)
        scores = own.scores(parts["valid"].rows, predictions)
        known = {metric: score for metric, score in scores.items() if score is not None}
        return known.get(own.metrics[0], -1.0), known

    results: list[ModelResult] = []
    for name, build in builds.items():

        def train(way: Way, seed: int, folder: Path, metrics: Path, build: Build = build, name: str = name) -> Best:
            return finetune(
                build(seed), parts["train"].examples, task.loss, measure, settings, way, seed=seed, work=folder,
                metrics=metrics, device=ready.device, description=name, anomaly=anomaly,
            )  # fmt: skip

        def predict(seed: int, folder: Path, build: Build = build, name: str = name) -> list[Any]:
            model = build(seed).to(ready.device)
            load_best(folder, model)
            own = task if task.is_settled else _settled(ready, model)[0]
            with track(f"score {name}", total=len(scored.examples), unit="examples") as advance:
                return own.predict(model, scored, advance=advance, device=ready.device)

        results += search(name, task.metrics[0], train, predict, list(settings.ways()), settings.seeds, output)
    return results


def _warmed(ready: Ready, build: Build, settings: TaskSection, output: Path, anomaly: bool) -> Build:
    """A build whose models begin with weights that have learned the warm-up rows: one training, with the first seed."""
    folder, seed = output / "work" / "warm_up", settings.seeds[0]
    way = Way(settings.learning_rates[0], settings.batch_size[0], settings.warm_up_epochs)
    finetune(
        build(seed), ready.parts["warm_up"].examples, ready.task.loss, None, settings, way, seed=seed,
        work=folder, metrics=output / "metrics" / "warm_up.jsonl", device=ready.device, description="warm up",
        anomaly=anomaly,
    )  # fmt: skip

    def warmed(seed: int) -> Model:
        model = build(seed)
        load_best(folder, model)
        return model

    return warmed


def _settled(ready: Ready, model: nn.Module) -> tuple[Kind, list[Any]]:
    """The task with the settings that validation chose for a trained model, and its predictions of validation rows."""
    valid = ready.parts["valid"]
    predictions = ready.task.predict(model, valid, device=ready.device)
    return ready.task.settled(valid.rows, predictions)


def read_parts(settings: TaskSection, inputs: Inputs, data: Path) -> tuple[Kind, Parts]:
    """The task inferred from the files, and their usable rows. data: the data folder.

    Raises CorpusError for labels that the training rows do not have, and if no row is left.
    """
    kind = KINDS[settings.kind].kind_class  # type: ignore[attr-defined]
    given, notes, settings = _given(kind, settings, inputs, data)
    names = {role.name for role in roles_of(kind, part="train")} - {"id"}
    columns = {role: own for role, own in given["train"].columns.items() if role in names}
    task = kind.learned_from(given["train"], settings).model_copy(update={"columns": columns})
    if not settings.metrics:
        task = task.validated_on(given.get("valid", given["train"]))
    for metric in task.metrics:
        task.score(metric)  # raises for metrics that the kind does not have
    if hasattr(task, "labels"):
        for name in given.keys() - {"train"}:
            refuse_unseen_labels(given[name], task.labels)
    parts = {
        name: usable(rows, task.check_training_row if name in ("train", "warm_up") else task.target)
        for name, rows in given.items()
    }
    train, valid = parts["train"], parts.get("valid")
    if settings.train_rows is not None and len(train) > settings.train_rows:
        notes += (f"{settings.train_rows:,} of the {len(train):,} training rows, by a hash of their texts, are used",)
        train = at_most(train, settings.train_rows, task.together)
    if valid is None:
        train, valid = cut(train, settings.validation_share, task.together)
        valid = usable(valid, task.target)
        notes += (f"{len(valid):,} of the training rows, by a hash of their texts, are held out to validate on",)
    if "test" not in parts:
        notes += ("there is no test file: the scores are those of the validation rows, which chose the epoch",)
    notes += tuple(few_rows(len(parts.get("test") or valid)))
    read = tuple(line.replace(f"{data}/", "") for rows in parts.values() for line in rows.said())
    return task, Parts(train, valid, parts.get("test"), parts.get("warm_up"), read, notes)


def _given(
    kind: type[Kind], settings: TaskSection, inputs: Inputs, data: Path
) -> tuple[dict[str, Rows], tuple[str, ...], TaskSection]:
    """The rows of each part as read, notes on them, and the settings with those of a known set."""
    given: dict[str, Rows] = {}
    notes: tuple[str, ...] = ()
    if settings.set:
        known = known_set(settings.set)
        if kind.name not in (known.kind, "embedding"):
            raise SettingsError(f"kind {kind.name}: {settings.set} is a set of kind {known.kind}: leave kind out")
        loaded = load(settings.set, data)
        given = {"train": loaded.train, "test": loaded.test}
        given |= {} if loaded.valid is None else {"valid": loaded.valid}
        notes = loaded.notes
        of_kind = known.metrics if kind.name == known.kind else ()
        changed: dict[str, Any] = {"metrics": settings.metrics or of_kind}
        if known.uncounted:
            changed["uncounted"] = known.uncounted
        if hasattr(settings, "label_names"):  # in the model, too, for other files of the set
            changed["label_names"] = settings.label_names or loaded.labels
        settings = settings.model_copy(update=changed)
    by_article = getattr(settings, "split_by_article", False)
    for name in ("warm_up",) if settings.set else ("train", "valid", "test", "warm_up"):
        if name not in inputs.files:
            continue
        roles = roles_of(kind, settings, part=name)
        if by_article and name == "train":
            roles.append(ROLES["title"])
        own = {role.name for role in roles} | (settings.columns.keys() if name == "train" else set())
        asked = {role: column for role, column in settings.columns.items() if role in own}
        given[name] = read_rows(inputs.files[name], roles, form=settings.form, columns=asked)
    if by_article:
        given["train"], given["test"] = split_by_article(given["train"])
        notes += (_SPLIT_NOTE,)
    return given, notes, settings


def roles_of(kind: Kind | type[Kind], settings: object = None, *, part: str = "test") -> list[Role]:
    """The roles of the kind in labelled files, with the id.

    settings: what says whether a text may have `several` labels, and their `label_names`; by default the kind.
    """
    settings = kind if settings is None else settings
    names: Mapping[str, str] = getattr(settings, "label_names", None) or {}
    roles = [*(kind.roles() if part in ("train", "warm_up") else kind.roles_to_score()), ROLES["id"]]
    for index, role in enumerate(roles):
        if role.name == "label":
            label = replace(ROLES["labels"], name="label") if getattr(settings, "several", False) else role
            roles[index] = renamed(label, names)
    return roles


def baselines(ready: Ready, output: Path) -> Iterator[ModelResult]:
    """Results of the baselines. Those that cannot be fitted on the rows, or need an extra, are logged and left out."""
    task, parts = ready.task, ready.rows
    morphemes = dict(zip(parts.distinct(task.texts), ready.encoded.morphemes(), strict=True))
    try:
        test = ready.scored.rows
        with needed_for(f"{task.name} without an encoder"):
            for name, facts, predictions in task.baselines(parts.train.rows, parts.valid.rows, test, morphemes):
                yield ModelResult({"name": name, "seed": None, **facts}, predictions, output)
    except (CorpusError, MissingPackage) as error:
        _logger.warning("baseline: %s", error)


def encoder_builds(task: Kind, settings: TaskSection, start: Model) -> Mapping[str, Build]:
    """Name of each encoder -> function that builds its model before training. The main one comes first."""
    config = start.config
    if settings.overlap and task.reads_pairs and settings.frozen_layers != -1 and isinstance(config, EncoderConfig):
        config = config.model_copy(update={"overlap_embedding": True})

    def scratch(seed: int) -> Model:
        return task.model(config, torch.Generator().manual_seed(seed))

    def pretrained(seed: int) -> Model:
        model = scratch(seed)
        init_encoder_from(model, start)
        return model

    if settings.init == "scratch":
        return {"scratch": scratch}
    return {"pretrained": pretrained, **({"scratch": scratch} if settings.scratch else {})}


def _write_predictions(path: Path, rows: Sequence[Row], results: Sequence[ModelResult]) -> None:
    """Writes one line per row: its roles, and under `predictions` model name -> the prediction of each seed."""
    lines = []
    for number, row in enumerate(rows):
        predictions: dict[str, list[Any]] = {}
        for result in results:
            predictions.setdefault(result.facts["name"], []).append(result.predictions[number])
        shown = {role: value for role, value in row.items() if not isinstance(value, np.ndarray)}
        lines.append(json.dumps({**shown, "predictions": predictions}, ensure_ascii=False))
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))
