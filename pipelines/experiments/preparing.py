"""What a task needs before it trains: its rows as examples, a model to start from, and the models to train.

A model is a whole encoder with its head, or a head on the vectors of a frozen encoder (Devlin et al. 2019, 5.3).
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import ne
from pathlib import Path

import torch
from torch import nn

from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.modeling import EncoderConfig, FeatureModel, Network, chosen_layers, init_encoder_from, load_model
from korbert.pipelines.artifacts import Runtime, StageInputs
from korbert.pipelines.experiments.task_rows import read_parts
from korbert.pipelines.experiments.teaching import mean_soft_targets, teacher_of
from korbert.system import JsonObject, broadcast, claim, is_intact, package, require_rows
from korbert.tasks.files import TaskRow
from korbert.tasks.finetuning import EncodedTexts, KeptVectors, keep_layers, keep_vectors
from korbert.tasks.kinds.kind import Kind, Prepared, TaskPrediction, TaughtKind
from korbert.tasks.kinds.sections import TaskSection
from korbert.tasks.kinds.texts import TextKind
from korbert.tasks.noise import wrong_spaces
from korbert.tasks.splits import Splits
from korbert.tokenization import AnyTokenizer
from korbert.training import choose_device

_logger = logging.getLogger(__name__)

Build = Callable[[int], Network]
"""Seed -> the model before training."""


@dataclass(frozen=True)
class PreparedTask:
    """A task ready for training.

    rows: the parts of the files, as baselines read them. start: the model that provides the encoder. embedders: other
    models whose vectors are tried, by name. parts: the rows as examples, by name; `spacing_noise` makes spaces wrong in
    those to train on. unlabelled: rows without a label, with wrong spaces, too. teachers: the folders of models to
    learn from. said: lines about the rows read. vectors: the folder that caches encoder vectors. output: the folder to
    write to. started: when, in seconds of time.monotonic.
    """

    settings: TaskSection
    task: Kind
    rows: Splits
    start: Network
    embedders: Mapping[str, Network]
    tokenizer: AnyTokenizer
    encoded: EncodedTexts
    parts: Mapping[str, Prepared]
    said: list[Message]
    device: torch.device
    vectors: Path
    output: Path
    runtime: Runtime
    started: float
    unlabelled: Sequence[TaskRow] = ()
    teachers: Sequence[Path] = ()

    @property
    def training(self) -> Prepared:
        """The examples that the encoder is trained on: those with soft targets if there are teachers."""
        return self.parts.get("taught", self.parts["train"])

    def with_teachers(self) -> "PreparedTask":
        """Returns the task with soft targets for training and unlabelled rows; unchanged without teachers."""
        task = self.task
        if not self.teachers:
            return self
        assert isinstance(task, TaughtKind)
        train = self.parts["train"].rows
        rows = [*train, *self.unlabelled]
        teacher_rows = [*self.rows.train, *(self.rows.unlabelled or ())] if isinstance(task, TextKind) else rows
        passages = self.encoded.passages()
        prepared = task.prepare_by_text(rows, passages, self.tokenizer)
        soft_targets = mean_soft_targets(
            task, teacher_rows, prepared, self.teachers, self.tokenizer, passages, self.vectors, self.device
        )
        self.say(
            Message(
                "{rows:,} rows, {more:,} of them without a label, are learned from teachers",
                rows=len(rows), more=len(self.unlabelled),
            )
        )  # fmt: skip
        return replace(self, parts={**self.parts, "taught": task.with_soft_targets(prepared, soft_targets, len(train))})

    @property
    def scored(self) -> Prepared:
        """The test examples; without a test file, the validation examples. Rows that folds score are not among them."""
        return self.parts["test" if self.rows.test else "valid"]

    @property
    def facts(self) -> JsonObject:
        """The fields that every record of scores begins with."""
        return {"task": self.task.task(), "scored_on": self.rows.scored_on}

    def say(self, *lines: Message) -> None:
        """Logs lines, and keeps them with the scores."""
        for line in lines:
            self.said.append(line)
            _logger.info(line)

    def morphemes(self) -> dict[str, list[str]]:
        """Returns text -> its morphemes, for every text of the labelled rows."""
        labelled = {text for rows in self.rows.by_name().values() for row in rows for text in self.task.texts(row)}
        pairs = zip(self.encoded.texts, self.encoded.morphemes(), strict=True)
        return {text: forms for text, forms in pairs if text in labelled}

    def with_kind(self, task: Kind) -> "PreparedTask":
        """Returns the task with its rows as examples of another kind."""
        by_part = {name: part.rows for name, part in self.parts.items()}
        return replace(self, task=task, parts=_examples_of(task, by_part, self.encoded, self.tokenizer))

    def with_chosen_thresholds(self, model: nn.Module) -> tuple[Kind, list[TaskPrediction]]:
        """Returns the task with the settings that validation chose for a model, and its validation predictions."""
        valid = self.parts["valid"]
        return self.task.with_chosen_thresholds(valid.rows, self.task.predict(model, valid, device=self.device))


def prepare(settings: TaskSection, inputs: StageInputs, output: Path, runtime: Runtime) -> PreparedTask:
    """Reads the model and the files, and turns labelled rows into examples; texts without labels are only analysed."""
    started = time.monotonic()
    require_rows("batch_size", min(settings.batch_size))
    if len(settings.seeds) > 1:
        package("scipy.stats", "more than one seed")  # an interval over seeds
    torch.set_num_threads(settings.threads)
    device = choose_device(runtime.device)
    start, tokenizer = _model_to_start_from(settings, inputs)
    embedders = _embedders(settings, inputs, tokenizer)
    names: Sequence[str] = getattr(settings, "teachers", ())
    teachers = [inputs.folder(f"teacher_{number}", "config.json") for number in range(1, 1 + len(names))]
    task, rows = read_parts(settings, inputs, runtime.data)
    for teacher in teachers:  # refuses one that does not fit before any work
        assert isinstance(task, TaughtKind)
        teacher_of(teacher, task, tokenizer, device)
    lines = [Message("{kind}: {about}", kind=task.name, about=task.description()), *rows.read, *rows.notes]
    by_part = {name: part.rows for name, part in rows.by_name().items()}
    unlabelled: Sequence[TaskRow] = rows.unlabelled.rows if rows.unlabelled else ()
    if share := getattr(settings, "spacing_noise", 0.0):
        learned = [*rows.train, *unlabelled]
        noisy_rows = [_with_wrong_spaces(task, row, share, settings.seeds[0]) for row in learned]
        by_part["train"], unlabelled = noisy_rows[: len(rows.train)], noisy_rows[len(rows.train) :]
        changed = sum(map(ne, learned, noisy_rows))
        lines.append(
            Message(
                "{number:,} of {rows:,} training rows are learned with wrong spaces", number=changed, rows=len(learned)
            )
        )
    # Each text is analysed once, however many rows and parts have it; with wrong spaces it is another text.
    all_rows = chain(*rows.by_name().values(), by_part["train"], rows.unlabelled or (), unlabelled)
    texts = list(dict.fromkeys(text for row in all_rows for text in task.texts(row)))
    for line in lines:
        _logger.info(line)
    for line in rows.doubts:
        _logger.warning(line)
    folder = inputs.encoded or output / "work"
    if inputs.encoded:
        broadcast(lambda: claim(folder, is_whole=is_intact))
    encoded = EncodedTexts(folder, texts, tokenizer)
    encoded.make(runtime.workers, "analyze")
    parts = _examples_of(task, by_part, encoded, tokenizer)
    ready = PreparedTask(
        settings, task, rows, start, embedders, tokenizer, encoded, parts, lines, device, folder, output, runtime,
        started, unlabelled, teachers,
    )  # fmt: skip
    ready.say(*_lines_on_length(parts, task.max_length, start.config.max_position_embeddings))
    return ready


def _lines_on_length(parts: Mapping[str, Prepared], length: int, limit: int) -> Iterator[Message]:
    """Yields a line on how many texts are cut at this length, if any are. limit: pieces that the model can read."""
    examples = [part.examples for part in parts.values()]
    if cut := sum(part_examples.cut for part_examples in examples):
        share = cut / sum(len(part_examples.offsets) - 1 for part_examples in examples)
        yield Message(
            "{texts:,} texts ({share:.1f} %) are cut at {length} pieces: --set max_length=N reads up to {limit}",
            texts=cut, share=100 * share, length=length, limit=limit,
        )  # fmt: skip


def _examples_of(
    task: Kind, rows: Mapping[str, Sequence[TaskRow]], encoded: EncodedTexts, tokenizer: AnyTokenizer
) -> dict[str, Prepared]:
    """The rows of each part as examples."""
    passages = encoded.passages()
    return {name: task.prepare_by_text(part_rows, passages, tokenizer) for name, part_rows in rows.items()}


def _with_wrong_spaces(task: Kind, row: TaskRow, share: float, seed: int) -> TaskRow:
    """Returns the row with wrong spaces, with probability `share`; else as it is."""
    change = wrong_spaces(task.texts(row), share, seed)
    return task.with_noise(row, change) if change else row


def _model_to_start_from(settings: TaskSection, inputs: StageInputs) -> tuple[Network, AnyTokenizer]:
    """Returns the model of pretrain or of `init`, with as many layers as the settings keep, and its tokenizer.

    Raises SettingsError if it has too few positions for the texts, or not the layers of `features`.
    """
    pretrained = inputs.artifacts.get("pretrain")
    source = pretrained / "model" if pretrained else inputs.folder("init", "config.json")
    start, tokenizer = load_model(source)
    if settings.num_hidden_layers is not None:
        keep_layers(start, settings.num_hidden_layers)
    _check_positions(settings, start, source)
    if settings.features is not None:
        chosen_layers(settings.features.layers, start.config.num_hidden_layers)  # raises for layers that it lacks
    return start, tokenizer


def _embedders(settings: TaskSection, inputs: StageInputs, tokenizer: AnyTokenizer) -> dict[str, Network]:
    """Returns name -> model of `embedder`, if any. SettingsError for another tokenizer, or too few positions."""
    name = getattr(settings, "embedder", "")
    if not name:
        return {}
    model, model_tokenizer = load_model(inputs.folder("embedder", "config.json"))
    if model_tokenizer.digest != tokenizer.digest:
        raise SettingsError(
            "embedder {name}: has another tokenizer than {init}: name one with the same, or leave it out",
            name=name, init=settings.init,
        )  # fmt: skip
    _check_positions(settings, model, name)
    return {name: model}


def _check_positions(settings: TaskSection, model: Network, source: str | Path) -> None:
    """SettingsError if the model has too few positions for the texts."""
    if settings.max_length > (positions := model.config.max_position_embeddings):
        raise SettingsError(
            "max_length {max_length} is more than the {positions} positions of {source}: lower it",
            max_length=settings.max_length, positions=positions, source=source,
        )  # fmt: skip


def builds_of(ready: PreparedTask) -> dict[str, Build]:
    """Returns name of each encoder -> function that builds its model before training, the main encoder first."""
    names = ["pretrained", "scratch"] if ready.settings.scratch else ["pretrained"]
    if ready.settings.init == "scratch":
        names = ["scratch"]
    build_of = _encoder_build if ready.settings.features is None else _head_build
    return {name: build_of(ready, name) for name in names}


def _encoder_build(ready: PreparedTask, name: str) -> Build:
    """Returns the build of a whole encoder with its head."""
    settings = ready.settings
    task = ready.task
    config = ready.start.config
    if settings.overlap and task.reads_pairs and settings.frozen_layers != -1 and isinstance(config, EncoderConfig):
        config = config.model_copy(update={"overlap_embedding": True})

    def build(seed: int) -> Network:
        model = task.model(config, torch.Generator().manual_seed(seed))
        if name == "pretrained":
            init_encoder_from(model, ready.start)
        return model

    return build


def _head_build(ready: PreparedTask, name: str) -> Build:
    """Returns the build of a head on a frozen encoder.

    The weights of an untrained encoder are drawn from the first seed, whatever the seed of the head.
    """
    features = ready.settings.features
    assert features is not None
    config = ready.start.config
    encoder = ready.start.encoder
    if name == "scratch":
        encoder = ready.task.model(config, torch.Generator().manual_seed(ready.settings.seeds[0])).encoder
    layers, _ = chosen_layers(features.layers, config.num_hidden_layers)
    kept = kept_vectors(ready, encoder, layers, f"vectors of {name}")
    spread = kept.spread(ready.parts["train"].examples, layers)
    head = ready.task.head()

    def build(seed: int) -> FeatureModel:
        generator = torch.Generator().manual_seed(seed)
        shape = features.layers, features.head, features.width
        model = FeatureModel(config, head.num_outputs, head.pooling, *shape, generator, kept)
        model.standardize(*spread)
        nn.init.constant_(model.classifier.bias, head.bias)
        return model

    return build


def kept_vectors(
    ready: PreparedTask, encoder: nn.Module, layers: Sequence[int], description: str = "vectors"
) -> KeptVectors:
    """The vectors of these layers for all rows: per piece if the head reads pieces, else pooled."""
    features = ready.settings.features
    assert features is not None
    pooling = None if features.head == "bilstm" else ready.task.head().pooling
    examples = [part.examples for part in ready.parts.values()]
    return keep_vectors(
        encoder.to(ready.device), examples, layers, pooling=pooling, folder=ready.vectors, device=ready.device,
        numbers=features.keep, description=description,
    )  # fmt: skip
