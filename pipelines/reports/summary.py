"""Tables for the terminal: the state of the pipeline, and the results of a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import set_cell_size
from rich.markup import escape
from rich.table import Table

from korbert.pipelines.artifacts import store
from korbert.pipelines.artifacts.pipeline import Pipeline, Status
from korbert.pipelines.language import t
from korbert.pipelines.reports import formatting
from korbert.pipelines.submission.check import Verdict
from korbert.tasks.sets import listing
from korbert.terminal import console, say

if TYPE_CHECKING:
    from rich.console import Console

    from korbert.pipelines.reports.elements import Table as Shown
    from korbert.search.evaluation import Measured

_STYLES = {"fresh": "green", "stale": "red", "partial": "yellow", "absent": "dim", "unused": "dim"}


def show_status(pipeline: Pipeline, statuses: Iterable[Status]) -> None:
    """Prints the state of each artifact, what a run would do, and why, in lines that are never wrapped."""
    out = console(soft_wrap=True, highlight=False)
    say(pipeline.folder)
    statuses = list(statuses)
    width = max([8, *(len(status.stage) for status in statuses)])
    for status in statuses:
        state = f"[{_STYLES[status.state]}]{set_cell_size(t(status.state), 7)}[/]"
        out.print(f"{status.stage:<{width}} {state} {(status.digest or '')[:12]:<12} {t(status.action)}")
        for line in (*status.reasons, *(f"note: {note}" for note in status.notes)):
            say(f"         {t(line)}")


def show(pipeline: Pipeline, only: Sequence[str] = ()) -> None:
    """Prints the main figures of all fresh artifacts, and the paths of pages and predictions.

    only: names of stages; empty: all.
    """
    from korbert.pipelines.reports.record import Artifact
    from korbert.pipelines.reports.stage_page import figures_of

    table = Table(title=escape(f"korbert {pipeline.recipe.name}"), title_justify="left", show_header=False)
    table.add_column("stage")
    table.add_column("figure", overflow="fold")
    states = {status.stage: status.state for status in pipeline.statuses() if not only or status.stage in only}
    fresh = [stage for stage in pipeline.stages() if states.get(stage.name) == "fresh"]
    for stage in fresh:
        for number, figure in enumerate(figures_of(Artifact.open(pipeline.artifact(stage.name)))):
            note = f" ({t(figure.note)})" if figure.note else ""
            table.add_row("" if number else stage.name, escape(f"{t(figure.value)} {t(figure.label)}{note}"))
    console().print(table)
    if stale := [stage for stage, state in states.items() if state == "stale"]:
        say(t("Not shown, as settings or inputs have changed: {names}.").format(names=", ".join(stale)))
    files = [(what, pipeline.artifact(stage.name) / name) for stage in fresh for what, name in stage.products.items()]
    page = ("pages", "index.html") if pipeline.place is None else ("page", store.PAGE)
    for what, path in (*files, (page[0], pipeline.folder / page[1])):
        if path.exists():
            say(f"{t(what)}: {path}")
    if pipeline.recipe.name == "demo":
        say(t("The demo shows that the pipeline works, and what korbert-mini learns from a little new text."))


def show_sets() -> None:
    """Prints the known data sets: name, kind, rows, metric with the best published score, where to get them."""
    out = console(highlight=False, soft_wrap=True)
    for known in listing():
        out.print(f"[bold]{known['name']}[/]  {escape(t(known['about']))}")
        facts = t("{kind}; {rows} rows (train / valid / test); {metric}, best {best}").format(**known)
        say(f"    {facts}")
        say(f"    {known['where']}  {t(known['licence'])}")


def show_check(verdict: Verdict) -> None:
    """Prints time, memory and scores of a submission."""
    questions, took = formatting.count(verdict.questions), formatting.duration(verdict.seconds)
    say(f"{questions} questions of {verdict.dataset}, each answered")
    say(f"time: {took}, memory: {formatting.megabytes(verdict.memory or 0)}")
    if verdict.scores is not None:
        say("exact match: {exact_match:.2f}, F1: {f1:.2f}".format(**verdict.scores))


def show_tables(tables: "Iterable[Shown]", sentences: Iterable[str] = (), out: "Console | None" = None) -> None:
    """Prints tables, and sentences below them. out: None: standard output."""
    out = out or console(highlight=False)
    for table in tables:
        printed = Table(title=escape(t(table.title)), title_justify="left")
        for name, align in zip(table.head, table.align, strict=True):
            printed.add_column(escape(t(name)), justify="right" if align == "r" else "left", overflow="fold")
        for row in table.rows:
            cells = (cell if kind in "kn" else t(cell) for cell, kind in zip(row, table.align, strict=True))
            printed.add_row(*map(escape, cells))
        out.print(printed)
    for line in sentences:
        out.print(t(line), markup=False)


def show_search(ways: "Mapping[str, Measured]") -> None:
    """Prints the figures of each way of searching, times 100, with their intervals."""
    table = Table("", *map(t, ways), box=None, pad_edge=False)
    for metric in next(iter(ways.values())).figures:
        cells = []
        for own in ways.values():
            value, *ends = (f"{100 * part:.1f}" for part in own.figures[metric] if part is not None)
            cells.append(f"{value} ({t(' to '.join(ends))})" if ends else value)
        table.add_row(metric, *cells)
    console(width=12 + 26 * len(ways)).print(table)  # rows stay in a line, whatever the terminal's width
