"""The lines of the summary table, by stage: (name, figure)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.stages import Figures

__all__ = ["analyze", "classification", "clean", "label", "pretrain", "reading", "shard", "task", "vocab"]

Lines = Iterator[tuple[str, str]]
Counts = Mapping[str, Any]

_ROWS = {"pretrained": "this model", "scratch": "without pretraining", "tfidf": "TF-IDF + logistic regression"}


def clean(folder: Path, counts: Counts) -> Lines:
    yield "documents kept", f"{counts['documents']:,} of {counts['read']:,}"


def analyze(folder: Path, counts: Counts) -> Lines:
    yield "morphemes", f"{counts['morphemes']:,}"


def vocab(folder: Path, counts: Counts) -> Lines:
    yield "vocabulary size", f"{counts['size']:,}"
    if "added" in counts:
        yield "pieces added for this text", f"{counts['added']:,}"
    share = _json(folder / "coverage.json")["all"]["whole_morpheme_share"]
    yield "whole morphemes in held-out text", f"{share:.2%}"


def shard(folder: Path, counts: Counts) -> Lines:
    yield "training pieces", f"{counts['pieces'] - counts['heldout_pieces']:,}"


def pretrain(folder: Path, counts: Counts) -> Lines:
    from pipelines.reports import formatting
    from pipelines.reports.labels import OBJECTIVES

    scores = _json(folder / "scores.json")
    loss, before = scores["mlm_loss"], scores.get("init_mlm_loss")
    unigram = scores["unigram_loss"]
    compared = formatting.than_unigram(loss, unigram)
    yield "held-out MLM loss", f"{formatting.decimal(loss)}, {compared} ({formatting.decimal(unigram)})"
    if before is not None:
        yield "held-out MLM loss before training", f"{before:.2f}"
    for name, words in OBJECTIVES.items():
        if count := scores.get(f"{name}_count"):
            yield f"held-out {words} accuracy", f"{scores[f'{name}_accuracy']:.1%} of {count:,}"


def classification(title: str, metric: str) -> Figures:
    """Lines of a classification task: the metric on all test texts, one line per model and seed."""

    def lines(folder: Path, counts: Counts) -> Lines:
        for row in _json(folder / "scores.json")["rows"]:
            score = row["test"]["all"]
            error = f" ± {score['standard_error']:.1%}" if metric == "accuracy" else ""
            name = _ROWS.get(row["name"], row["name"])
            yield f"{title} {label(metric)}, {name}", f"{score[metric]:.1%}{error} of {score['count']:,}"

    return lines


def reading(title: str) -> Figures:
    """The line of a reading task: exact match and F1, in percent."""

    def lines(folder: Path, counts: Counts) -> Lines:
        scores = _json(folder / "scores.json")
        yield f"{title} EM, F1", f"{scores['exact_match']:.1f}, {scores['f1']:.1f} of {scores['count']:,}"

    return lines


def task(title: str) -> Figures:
    """Lines of a section [tasks.NAME], one per model: the mean over seeds, other metrics, and the number of rows.

    The first metric has its deviation over seeds, or for one seed its 95 % interval over rows.
    """

    def lines(folder: Path, counts: Counts) -> Lines:
        scores = _json(folder / "scores.json")
        first, *others = scores["metrics"]
        is_regression = scores.get("task", {}).get("kind") == "regression"
        names = _ROWS | ({"tfidf": "TF-IDF + ridge regression"} if is_regression else {})
        on = scores.get("scored_on", "")
        rows = [f"{counts[on]:,} {'test' if on == 'test' else 'validation'} rows"] if on in counts else []
        for model in scores["models"]:
            score, seeds = model[first], model["seeds"]
            shown = "undefined" if score is None else f"{score['mean']:.4f}"
            if score is not None and score["deviation"] is not None:
                shown += f" ± {score['deviation']:.4f} over {seeds} seeds"
            elif model.get("examples"):
                shown += " ({:.4f} to {:.4f})".format(*model["examples"])
            more = [f"{label(metric)} {model[metric]['mean']:.4f}" for metric in others if model[metric]]
            yield f"{title} {label(first)}, {names.get(model['name'], model['name'])}", ", ".join([shown, *more, *rows])

    return lines


def label(metric: str) -> str:
    """The usual name of a metric."""
    return {"macro_f1": "macro F1", "mae": "MAE"}.get(metric, metric)


def _json(path: Path) -> dict[str, Any]:
    from pipelines.artifacts import read_json  # imports pydantic, which `korbert --help` avoids

    return read_json(path) or {}
