"""Tables for the terminal: the chain's state, and what came out of a run."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from pipelines import artifacts
from pipelines.runner import Chain

_STYLES = {"fresh": "green", "stale": "red", "partial": "yellow", "absent": "dim", "unused": "dim"}


def show_status(chain: Chain, *, verify: bool) -> None:
    """Print the state of each artifact and what a run would do."""
    table = Table(title=f"{chain.folder}", title_justify="left")
    for name in ("stage", "state", "digest", "a run", "why"):
        table.add_column(name, overflow="fold")
    for status in chain.statuses(verify=verify):
        doing = {"fresh": "skips it", "absent": "makes it", "partial": "goes on with it", "stale": "refuses"}
        why = "\n".join((*status.reasons, *(f"note: {note}" for note in status.notes)))
        style = _STYLES[status.state]
        table.add_row(
            status.stage, f"[{style}]{status.state}[/]", (status.digest or "")[:12], doing.get(status.state, ""), why
        )
    Console().print(table)


def show(chain: Chain) -> None:
    """Print the headline figures of what is there, and where pages and predictions lie."""
    table = Table(title=f"korbert {chain.recipe.name}", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("figure", overflow="fold")
    for what, figure in _figures(chain):
        table.add_row(what, figure)
    console = Console()
    console.print(table)
    if chain.recipe.name == "demo":
        console.print(
            "A demo proves the chain, not the method: with so little text and so small a model the baseline wins."
        )


def _figures(chain: Chain) -> Iterator[tuple[str, str]]:
    for spec in chain.specs():
        record = artifacts.read_json(chain.artifact(spec.name) / artifacts.RECORD)
        if record is not None:
            yield from _FIGURES[spec.name](chain, record["counts"])
    if (chain.folder / "index.html").is_file():
        yield "pages", str(chain.folder / "index.html")


def _json(chain: Chain, stage: str, name: str) -> dict[str, Any]:
    return artifacts.read_json(chain.artifact(stage) / name) or {}


def _clean(chain: Chain, counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "documents kept", f"{counts['documents']:,} of {counts['read']:,}"


def _analyze(chain: Chain, counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "morphemes", f"{counts['morphemes']:,}"


def _vocab(chain: Chain, counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "pieces in the vocabulary", f"{counts['size']:,}"
    share = _json(chain, "vocab", "coverage.json")["all"]["whole_morpheme_share"]
    yield "whole morphemes, held-out text", f"{share:.2%}"


def _shard(chain: Chain, counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "pieces to learn from", f"{counts['pieces'] - counts['heldout_pieces']:,}"


def _pretrain(chain: Chain, counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    found = _json(chain, "pretrain", "scores.json")
    yield (
        "held-out MLM loss",
        f"{found['mlm_loss']:.2f}, by unigram frequencies {found['unigram_loss']:.2f} "
        f"({found['unigram_loss'] - found['mlm_loss']:.2f} nat better)",
    )
    yield "held-out MLM accuracy", f"{found['mlm_accuracy']:.1%} of {found['mlm_count']:,}"
    if found["nsp_count"]:
        yield "held-out NSP accuracy", f"{found['nsp_accuracy']:.1%} of {found['nsp_count']:,}"


_ROWS = {"pretrained": "this model", "scratch": "the same without pretraining", "tfidf": "TF-IDF + logistic regression"}


def _nsmc(chain: Chain, counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for row in _json(chain, "nsmc", "scores.json")["rows"]:
        of_all = row["test"]["all"]
        name = f"NSMC accuracy, {_ROWS.get(row['name'], row['name'])}"
        yield name, f"{of_all['accuracy']:.1%} ± {of_all['standard_error']:.1%} of {of_all['count']:,}"


def _korquad(chain: Chain, counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    found = _json(chain, "korquad", "scores.json")
    yield "KorQuAD EM, F1", f"{found['exact_match']:.1f}, {found['f1']:.1f} of {found['count']:,}"
    yield "KorQuAD predictions", str(chain.artifact("korquad") / "predictions.json")


_FIGURES = {
    "clean": _clean,
    "analyze": _analyze,
    "vocab": _vocab,
    "shard": _shard,
    "pretrain": _pretrain,
    "nsmc": _nsmc,
    "korquad": _korquad,
}
