"""Tables for the terminal: the chain's state, and what came out of a run."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from korbert.terminal import printable
from pipelines import artifacts
from pipelines.reports import formatting
from pipelines.runner import Chain, Status

if TYPE_CHECKING:
    from korbert.tasks.korquad.oracle import Oracle

_MISSES_SHOWN = 20
_STYLES = {"fresh": "green", "stale": "red", "partial": "yellow", "absent": "dim", "unused": "dim"}


def show_status(chain: Chain, statuses: Iterable[Status]) -> None:
    """Print the state of each artifact, what a run would do, and why: a line each, however narrow the window."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(chain.folder, markup=False)
    for status in statuses:
        state = f"[{_STYLES[status.state]}]{status.state:<7}[/]"
        console.print(f"{status.stage:<8} {state} {(status.digest or '')[:12]:<12} {status.doing}")
        for line in (*status.reasons, *(f"note: {note}" for note in status.notes)):
            console.print(f"         {printable(line)}", markup=False)


def show(chain: Chain) -> None:
    """Print the headline figures of what is there, and where pages and predictions lie."""
    table = Table(title=f"korbert {chain.recipe.name}", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("figure", overflow="fold")
    states = {status.stage: status.state for status in chain.statuses()}
    for what, figure in _figures(chain, states):
        table.add_row(what, figure)
    console = Console()
    console.print(table)
    if stale := [stage for stage, state in states.items() if state == "stale"]:
        console.print(f"Not shown, as they are of other settings or inputs: {', '.join(stale)}.")
    for what, path in _places(chain):
        console.print(f"{what}: {path}", soft_wrap=True, highlight=False)  # a path is copied, so it stays one line
    if chain.recipe.name == "demo":
        console.print(
            "A demo proves the chain, not the method: with so little text and so small a model the baseline wins."
        )


def show_oracle(found: "Oracle") -> None:
    """Print both ceilings, why answers are missed, and the first of those."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{found['count']:,} questions    EM       F1")
    for name, ceiling in (("pieces", found["pieces"]), ("characters", found["characters"])):
        console.print(f"{name:<14} {ceiling['exact_match']:7.2f}  {ceiling['f1']:7.2f}", end="")
        causes = ", ".join(f"{number:,} {cause}" for cause, number in ceiling["causes"].items())
        console.print(f"   missed: {causes}" if causes else "   none missed")
    for one in found["unreached"][:_MISSES_SHOWN]:
        best = ", ".join(f"by {name} {text!r}" for name, text in one["best"].items())
        said = f"{one['id']}: {one['answer']!r}, {best}: {one['cause']} {' '.join(one['pieces'])}"
        console.print(printable(said), markup=False)
    if len(found["unreached"]) > _MISSES_SHOWN:
        console.print(f"and {len(found['unreached']) - _MISSES_SHOWN:,} more: --all FILE has them")


def _figures(chain: Chain, states: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for spec in chain.specs():
        if states[spec.name] == "fresh":
            record = artifacts.read_record(chain.artifact(spec.name)) or {}
            yield from _FIGURES[spec.name](chain, record["counts"])


def _places(chain: Chain) -> Iterator[tuple[str, Path]]:
    for what, path in (
        ("KorQuAD predictions", chain.artifact("korquad") / "predictions.json"),
        ("pages", chain.folder / "index.html"),
    ):
        if path.is_file():
            yield what, path


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
    compared = formatting.than_unigram(found["unigram_loss"] - found["mlm_loss"])
    yield "held-out MLM loss", f"{found['mlm_loss']:.2f}, {compared} ({found['unigram_loss']:.2f})"
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


_FIGURES = {
    "clean": _clean,
    "analyze": _analyze,
    "vocab": _vocab,
    "shard": _shard,
    "pretrain": _pretrain,
    "nsmc": _nsmc,
    "korquad": _korquad,
}
