"""korquad: learn to find answers in texts, score on questions held back, leave something to hand in."""

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from korbert.durable import write_json
from korbert.errors import ModelError, SettingsError
from korbert.modeling import EncoderConfig, ReadingModel, init_encoder_from, load_model, save_model
from korbert.tasks import korquad
from korbert.tasks.korquad.data import Dataset
from korbert.tasks.korquad.misses import judge
from korbert.tasks.korquad.settings import KorquadSettings
from korbert.tasks.passages import Passage
from korbert.tasks.reading import Reader, question_pairs
from korbert.tasks.windows import Window, cut_windows, reading_loss, training_batches
from korbert.tokenization import Tokenizer
from korbert.training import TrainingOutput, TrainingPlan, choose_device, fit
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.submission import write_submission

__all__ = ["run"]

_logger = logging.getLogger(__name__)

_SPLIT_NOTE = (
    "Learned and scored on two parts of one official file, cut by article (valid: SHA-256 of the title, as a number, "
    "leaves 0 modulo 5). Not comparable with published scores, which come from other files."
)
_FILES_NOTE = (
    "Scored on {valid} after learning from {train}. Comparable with published scores only where both are official."
)


def run(settings: KorquadSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes model/, metrics.jsonl, predictions.json, nbest.json, scores.json and submission/ (docs/formats.md)."""
    tokenizer = Tokenizer.load(inputs.artifacts["vocab"] / "tokenizer")
    train, valid = _datasets(settings, inputs)
    model = _new_model(settings, inputs, tokenizer)
    encoded = inputs.encoded or output / "work"
    learned = question_pairs(train, tokenizer, encoded, workers=runtime.workers)
    asked = question_pairs(valid, tokenizer, encoded, workers=runtime.workers)
    windows = _training_windows(settings, train, learned)
    _log_sample(windows, tokenizer)
    steps = _train(settings, model, windows, tokenizer, output, runtime)
    save_model(output / "model", model, tokenizer, task=settings.reading().model_dump())

    scores = _answer_and_judge(settings, inputs, Reader(model, tokenizer, settings.reading()), valid, asked, output)
    shutil.rmtree(output / "submission", ignore_errors=True)  # begun by a run that was cut off
    write_submission(output / "model", output / "submission")
    return {
        "train_questions": len(train.questions),
        "train_questions_cut": _questions_cut(settings, learned),
        "train_windows": len(windows),
        "train_windows_without_answer": sum(window.gold is None for window in windows),
        "steps": steps,
        **{key: scores[key] for key in ("count", "questions_cut", "windows", "gold_unreachable", "exact_match", "f1")},
    }


def _answer_and_judge(
    settings: KorquadSettings,
    inputs: Inputs,
    reader: Reader,
    dataset: Dataset,
    pairs: Sequence[tuple[Passage, Passage]],
    output: Path,
) -> dict[str, Any]:
    """Writes nbest.json, predictions.json and scores.json; returns the scores."""
    n_best = dict(zip((question.id for question in dataset.questions), reader.read(pairs), strict=True))
    scores = judge(dataset, pairs, n_best) | {
        "questions_cut": _questions_cut(settings, pairs),
        "windows": sum(len(cut_windows(*pair, settings)) for pair in pairs),
        "note": _note(settings, inputs),
    }
    predictions = {id: answers[0]["text"] if answers else "" for id, answers in n_best.items()}
    for name, value in (("nbest", n_best), ("predictions", predictions), ("scores", scores)):
        write_json(output / f"{name}.json", value)
    return scores


def _datasets(settings: KorquadSettings, inputs: Inputs) -> tuple[Dataset, Dataset]:
    """(train, valid)."""
    if not settings.split_by_article:
        return _read(inputs.files["train"]), _read(inputs.files["valid"])
    train, valid = korquad.split_by_article(_read(inputs.files["official"]))
    if not train.questions or not valid.questions:
        names = ", ".join(path.name for path in inputs.files["official"])
        raise SettingsError(
            f"{names}: split_by_article leaves {len(train.questions)} questions to learn from and "
            f"{len(valid.questions)} to score on: name train and valid files instead"
        )
    return train, valid


def _read(paths: Sequence[Path]) -> Dataset:
    return korquad.join({str(path): korquad.read(path) for path in paths})


def _new_model(settings: KorquadSettings, inputs: Inputs, tokenizer: Tokenizer) -> ReadingModel:
    generator = torch.Generator().manual_seed(settings.seed)
    if settings.encoder:
        return ReadingModel(settings.encoder.model_copy(update={"vocab_size": tokenizer.vocab_size}), generator)
    folder = inputs.artifacts["pretrain"] / "model"
    pretrained, its_tokenizer = load_model(folder, "pretraining")
    if its_tokenizer.digest != tokenizer.digest:
        raise ModelError(f"{folder}: was trained with another tokenizer than the vocab stage's: make pretrain anew")
    _check_length(settings, pretrained.config, folder)
    model = ReadingModel(pretrained.config, generator)
    init_encoder_from(model, pretrained)
    return model


def _check_length(settings: KorquadSettings, config: EncoderConfig, folder: Path) -> None:
    if settings.max_length > config.max_position_embeddings:
        raise SettingsError(
            f"korquad.max_length {settings.max_length} is more than the {config.max_position_embeddings} positions of "
            f"{folder}: lower it, or pretrain with a larger encoder.max_position_embeddings"
        )


def _training_windows(
    settings: KorquadSettings, dataset: Dataset, pairs: Sequence[tuple[Passage, Passage]]
) -> list[Window]:
    """All windows of all questions; of several right answers the first one is learned."""
    questions = zip(dataset.questions, pairs, strict=True)
    return [
        window
        for question, pair in questions
        for window in cut_windows(*pair, settings, answer=question.answers[0].span)
    ]


def _train(
    settings: KorquadSettings,
    model: ReadingModel,
    windows: Sequence[Window],
    tokenizer: Tokenizer,
    output: Path,
    runtime: Runtime,
) -> int:
    """Leaves the model trained; the number of steps."""
    torch.set_num_threads(settings.threads)
    steps = max(1, round(settings.epochs * len(windows) / settings.batch_size))
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
        output=TrainingOutput.below(output, settings.checkpoint_every),
        description="korquad",
    )
    return steps


def _questions_cut(settings: KorquadSettings, pairs: Sequence[tuple[Passage, Passage]]) -> int:
    return sum(len(question.ids) > settings.max_query_pieces for question, _ in pairs)


def _note(settings: KorquadSettings, inputs: Inputs) -> str:
    if settings.split_by_article:
        return _SPLIT_NOTE
    return _FILES_NOTE.format(
        **{role: ", ".join(path.name for path in inputs.files[role]) for role in ("train", "valid")}
    )


def _log_sample(windows: Sequence[Window], tokenizer: Tokenizer) -> None:
    """The first window with an answer, so that a reader of the log sees what is learned."""
    window = next((window for window in windows if window.gold), None)
    if window is None or window.gold is None:
        _logger.warning("no window holds an answer: nothing can be learned from these files")
        return
    first, last = window.gold
    pieces = tokenizer.tokens(window.context.ids[first : last + 1].tolist())
    _logger.info("sample: %s -> %s (pieces %d to %d)", window.question.text, " ".join(pieces), first, last)
