"""Extractive question answering: fine-tunes a reader, scores it on held-out questions, and writes a submission.

1. Read the files of the task, or split one file in two by article.
2. Analyse contexts and questions once and keep them as pieces (korbert/tasks/passages.py).
3. Train on windows over them (korbert/tasks/windows.py), first on those of the warm-up, and write the model.
4. Answer the held-out questions (korbert/tasks/reading.py), score the answers and explain misses
   (korbert/tasks/misses.py).
5. Write the submission folder (submission.py).
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import torch

from korbert.durable import write_json
from korbert.errors import ModelError, SettingsError
from korbert.modeling import EncoderConfig, ReadingModel, init_encoder_from, load_model, save_model
from korbert.scratch import remove
from korbert.tasks.misses import score_answers
from korbert.tasks.passages import Passage
from korbert.tasks.questions import Dataset, join, split_by_article
from korbert.tasks.reading import Reader, question_pairs
from korbert.tasks.reading_settings import ReadingTaskSettings
from korbert.tasks.seen import learning_seen
from korbert.tasks.windows import Window, WindowExamples, cut_windows, reading_loss, training_batches
from korbert.tokenization import Tokenizer
from korbert.training import Checkpointing, TrainingOutput, TrainingPlan, choose_device, fit
from korbert.world import connected, require_rows
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.submission import write_submission
from pipelines.tasks import ReadingTask

__all__ = ["run"]

_logger = logging.getLogger(__name__)

_SPLIT_NOTE = (
    "Learned and scored on two parts of one official file, cut by article (valid: SHA-256 of the title, as a number, "
    "leaves 0 modulo 5). Not comparable with published scores, which come from other files."
)
_FILES_NOTE = (
    "Scored on {valid} after learning from {train}. Comparable with published scores only where both are official."
)


def run(task: ReadingTask, settings: ReadingTaskSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes model/, metrics.jsonl, predictions.json, nbest.json, scores.json and submission/ (docs/formats.md).

    With a warm-up, its metrics go to warm_up.jsonl. With several connected processes, all train; rank 0 does the rest.
    """
    require_rows(f"{task.name}.batch_size", settings.batch_size)
    tokenizer = Tokenizer.load(inputs.artifacts["vocab"] / "tokenizer")
    train, valid = _datasets(task, settings, inputs)
    model = _new_model(task, settings, inputs, tokenizer)
    if settings.frozen_embeddings:
        model.encoder.token_weight.requires_grad_(False)
    encoded = inputs.encoded or output / "work"
    torch.set_num_threads(settings.threads)
    warm_up: Counts = {}
    if settings.warm_up:
        made = join({str(path): task.read(path) for path in inputs.files["warm_up"]})
        pairs = question_pairs(made, tokenizer, encoded, workers=runtime.workers)
        scratch = output / "work" / "warm_up"  # a finished warm-up resumes at its last checkpoint
        kept = Checkpointing(scratch / "checkpoints", settings.checkpoint_every)
        files = TrainingOutput(kept, output / "warm_up.jsonl", scratch / "timing.jsonl")
        name, epochs = f"{task.name}: warm up", settings.warm_up_epochs
        steps, _ = _learn(name, settings, epochs, made, pairs, model, tokenizer, files, runtime)
        warm_up = {"warm_up_questions": len(made.questions), "warm_up_steps": steps}
    learned = question_pairs(train, tokenizer, encoded, workers=runtime.workers)
    asked = question_pairs(valid, tokenizer, encoded, workers=runtime.workers)
    files = TrainingOutput.below(output, settings.checkpoint_every)
    steps, windows = _learn(task.name, settings, settings.epochs, train, learned, model, tokenizer, files, runtime)
    if not connected().writes:
        return {}
    save_model(output / "model", model, tokenizer, task=settings.reading().model_dump())

    answers = Reader(model, tokenizer, settings.reading()).read(asked)
    n_best = dict(zip((question.id for question in valid.questions), answers, strict=True))
    scores = score_answers(valid, asked, n_best, task.metrics) | {
        "questions_cut": _questions_cut(settings, asked),
        "windows": sum(len(cut_windows(*pair, settings, special=tokenizer.frame.special)) for pair in asked),
        "note": _note(settings, inputs),
    }
    predictions = {id: candidates[0]["text"] if candidates else "" for id, candidates in n_best.items()}
    for name, value in (("nbest", n_best), ("predictions", predictions), ("scores", scores)):
        write_json(output / f"{name}.json", value)
    if task.submission:
        remove(output / "submission", lambda folder: True)  # of the stage alone: left by an interrupted run
        write_submission(output / "model", output / "submission")
    return {
        **warm_up,
        "train_questions": len(train.questions),
        "train_questions_cut": _questions_cut(settings, learned),
        "train_windows": len(windows),
        "train_windows_without_answer": sum(window.gold is None for window in windows),
        "steps": steps,
        **{key: scores[key] for key in ("count", "questions_cut", "windows", "gold_unreachable", "exact_match", "f1")},
    }


def _learn(
    description: str,
    settings: ReadingTaskSettings,
    epochs: float,
    dataset: Dataset,
    pairs: Sequence[tuple[Passage, Passage]],
    model: ReadingModel,
    tokenizer: Tokenizer,
    output: TrainingOutput,
    runtime: Runtime,
) -> tuple[int, list[Window]]:
    """Trains the model on the questions of a data set, with the first answer if there are several.

    pairs: question and context of each, as pieces. Returns the number of steps and the windows.
    """
    examples = WindowExamples.of_dataset(dataset, pairs, tokenizer, settings)
    windows = list(examples.windows)
    sample = next((window for window in windows if window.gold), None)
    if sample is None or sample.gold is None:
        _logger.warning("no window holds an answer: nothing can be learned from these files")
    else:
        first, last = sample.gold
        pieces = tokenizer.tokens(sample.context.ids[first : last + 1].tolist())
        _logger.info("sample: %s -> %s (pieces %d to %d)", sample.question.text, " ".join(pieces), first, last)
    steps = max(1, round(epochs * len(windows) / settings.batch_size))
    with learning_seen(model, examples):
        fit(
            model,
            training_batches(
                windows,
                tokenizer,
                settings,
                batch_size=settings.batch_size,
                micro_batches=settings.micro_batches,
                seed=settings.seed,
            ),
            reading_loss,
            TrainingPlan(steps, settings.optimizer, settings.seed, settings.precision, settings.log_every),
            device=choose_device(runtime.device),
            output=output,
            description=description,
            anomaly=runtime.anomaly,
        )
    return steps, windows


def _datasets(task: ReadingTask, settings: ReadingTaskSettings, inputs: Inputs) -> tuple[Dataset, Dataset]:
    """(train, valid)."""

    def read(role: str) -> Dataset:
        return join({str(path): task.read(path) for path in inputs.files[role]})

    if not settings.split_by_article:
        return read("train"), read("valid")
    train, valid = split_by_article(read("official"))
    if not train.questions or not valid.questions:
        names = ", ".join(path.name for path in inputs.files["official"])
        raise SettingsError(
            f"{names}: split_by_article leaves {len(train.questions)} training and "
            f"{len(valid.questions)} validation questions: name train and valid files instead"
        )
    return train, valid


def _new_model(task: ReadingTask, settings: ReadingTaskSettings, inputs: Inputs, tokenizer: Tokenizer) -> ReadingModel:
    """The model before training. Raises ModelError or SettingsError if the pretrained model does not fit."""
    generator = torch.Generator().manual_seed(settings.seed)
    if settings.encoder:
        changed = {"vocab_size": tokenizer.vocab_size, "overlap_embedding": settings.overlap}
        return ReadingModel(settings.encoder.model_copy(update=changed), generator)
    folder = inputs.artifacts["pretrain"] / "model"
    pretrained, its_tokenizer = load_model(folder)
    if its_tokenizer.digest != tokenizer.digest:
        raise ModelError(f"{folder}: was trained with another tokenizer than the vocab stage's: rebuild pretrain")
    if settings.max_length > pretrained.config.max_position_embeddings:
        raise SettingsError(
            f"{task.name}.max_length {settings.max_length} is more than the "
            f"{pretrained.config.max_position_embeddings} positions of {folder}: lower it, or pretrain with a larger "
            "encoder.max_position_embeddings"
        )
    config = pretrained.config
    if settings.overlap and isinstance(config, EncoderConfig):
        config = config.model_copy(update={"overlap_embedding": True})
    model = ReadingModel(config, generator)
    init_encoder_from(model, pretrained)
    return model


def _questions_cut(settings: ReadingTaskSettings, pairs: Sequence[tuple[Passage, Passage]]) -> int:
    return sum(len(question.ids) > settings.max_query_pieces for question, _ in pairs)


def _note(settings: ReadingTaskSettings, inputs: Inputs) -> str:
    if settings.split_by_article:
        return _SPLIT_NOTE
    names = {role: ", ".join(path.name for path in inputs.files[role]) for role in ("train", "valid")}
    return _FILES_NOTE.format(**names)
