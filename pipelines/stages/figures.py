"""The lines of the summary table, by stage: (name, figure)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.stages import Figures

__all__ = ["analyze", "clean", "pretrain", "shard", "task", "vocab"]

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


def task(title: str) -> Figures:
    """Lines of a section [tasks.NAME], one per model: the mean over seeds, other metrics, and the number of rows.

    The first metric has its deviation over seeds, or for one seed its 95 % interval over rows. Shares are in percent.
    """

    def lines(folder: Path, counts: Counts) -> Lines:
        from pipelines.reports.evaluation import is_share
        from pipelines.reports.labels import label

        def shown(metric: str, value: float) -> str:
            return f"{value:.1%}" if is_share(metric) else f"{value:.4f}"

        scores = _json(folder / "scores.json")
        first, *others = scores["metrics"]
        is_regression = scores.get("task", {}).get("kind") == "regression"
        names = _ROWS | ({"tfidf": "TF-IDF + ridge regression"} if is_regression else {})
        on = scores.get("scored_on", "")
        rows = [f"{counts[on]:,} {'test' if on == 'test' else 'validation'} rows"] if on in counts else []
        for model in scores["models"]:
            score, seeds = model[first], model["seeds"]
            figure = "undefined" if score is None else shown(first, score["mean"])
            if score is not None and score["deviation"] is not None:
                figure += f" ± {shown(first, score['deviation'])} over {seeds} seeds"
            elif model.get("examples"):
                figure += " ({} to {})".format(*(shown(first, end) for end in model["examples"]))
            more = [f"{label(metric)} {shown(metric, model[metric]['mean'])}" for metric in others if model[metric]]
            name = names.get(model["name"], model["name"])
            yield f"{title} {label(first)}, {name}", ", ".join([figure, *more, *rows])

    return lines


def _json(path: Path) -> dict[str, Any]:
    from pipelines.artifacts import read_json  # imports pydantic, which `korbert --help` avoids

    return read_json(path) or {}
