"""Tables for the terminal: the state of the pipeline, and the results of a run."""

from collections.abc import Iterable, Sequence

from rich.cells import set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from korbert.messages import Message, in_language, join_messages
from korbert.pipelines import artifacts, reports
from korbert.pipelines.artifacts import PAGE, formatting
from korbert.pipelines.reports.drawing import TableElement
from korbert.pipelines.runs.pipeline import STATES, Pipeline, Status
from korbert.pipelines.submission.bundle import Verdict
from korbert.system import console, say
from korbert.tasks.sets import listing

_STYLES = {"fresh": "green", "stale": "red", "partial": "yellow", "absent": "dim", "unused": "dim"}


def show_status(pipeline: Pipeline, statuses: Sequence[Status]) -> None:
    """Prints the state of each artifact, what a run would do, and why, in lines that are never wrapped."""
    out = console(soft_wrap=True, highlight=False)
    say(pipeline.folder)
    width = max([8, *(len(status.stage) for status in statuses)])
    for status in statuses:
        state = f"[{_STYLES[status.state]}]{set_cell_size(in_language(STATES[status.state]), 7)}[/]"
        digest = (status.digest or "")[:12]
        out.print(f"{status.stage:<{width}} {state} {digest:<12} {in_language(status.action)}")
        for line in (*status.reasons, *(Message("note: {note}", note=note) for note in status.notes)):
            say(f"         {in_language(line)}")


def show(pipeline: Pipeline, only: Sequence[str] = ()) -> None:
    """Prints the main figures of all fresh artifacts, and the paths of pages and predictions.

    only: names of the stages to show; all if empty.
    """
    table = Table(title=escape(f"korbert {pipeline.recipe.name}"), title_justify="left", show_header=False)
    table.add_column("stage")
    table.add_column("figure", overflow="fold")
    states = {status.stage: status.state for status in pipeline.statuses() if not only or status.stage in only}
    fresh = [stage for stage in pipeline.stages() if states.get(stage.name) == "fresh"]
    for stage in fresh:
        name = stage.name
        for figure in reports.stage_page.figures_of(artifacts.Artifact.open(pipeline.artifact(stage.name))):
            note = join_messages(["(", figure.note, ")"], "") if figure.note else ""
            table.add_row(name, escape(in_language(join_messages([figure.value, figure.label, note], " "))))
            name = ""  # a stage is named only next to its first figure
    console().print(table)
    if stale := [stage for stage, state in states.items() if state == "stale"]:
        say(Message("Not shown, as settings or inputs have changed: {names}.", names=", ".join(stale)))
    files = [(what, pipeline.artifact(stage.name) / name) for stage in fresh for what, name in stage.products.items()]
    if pipeline.place is None:
        files.append((Message("pages"), pipeline.folder / "index.html"))
    else:
        files.append((Message("page"), pipeline.folder / PAGE))
    for what, path in files:
        if path.exists():
            say(join_messages([what, str(path)], ": "))
    if pipeline.recipe.name == "demo":
        say(Message("The demo shows that the pipeline works, and what korbert-mini learns from a little new text."))


def show_sets() -> None:
    """Prints the known data sets: name, kind, rows, metric with the best published score, where to get them."""
    out = console(highlight=False, soft_wrap=True)
    for dataset in listing():
        out.print(f"[bold]{dataset['name']}[/]  {escape(in_language(dataset['about']))}")
        facts = Message(
            "{kind}; {rows} rows (train / valid / test); {metric}, best {best}",
            kind=dataset["kind"], rows=dataset["rows"], metric=dataset["metric"], best=dataset["best"],
        )  # fmt: skip
        say(f"    {in_language(facts)}")
        say(f"    {dataset['where']}  {in_language(dataset['licence'])}")


def show_check(verdict: Verdict) -> None:
    """Prints time, memory and scores of a submission."""
    say(
        Message(
            "{count:,} question of {file}, answered",
            "{count:,} questions of {file}, each answered",
            count=verdict.questions,
            file=verdict.dataset,
        )
    )
    say(
        Message(
            "time: {duration}, memory: {memory}",
            duration=formatting.duration(verdict.seconds),
            memory=formatting.megabytes(verdict.memory or 0),
        )
    )
    if verdict.scores is not None:
        say(Message("exact match: {exact_match:.2f}, F1: {f1:.2f}", **verdict.scores))


def show_tables(tables: Iterable[TableElement], sentences: Iterable[str] = (), out: Console | None = None) -> None:
    """Prints tables, and sentences below them. out: where to print; None: to standard output."""
    out = out or console(highlight=False)
    for table in tables:
        printed = Table(title=escape(in_language(table.title)), title_justify="left")
        for name, align in zip(table.head, table.align, strict=True):
            printed.add_column(escape(in_language(name)), justify="right" if align == "r" else "left", overflow="fold")
        for row in table.rows:
            printed.add_row(*(escape(in_language(cell)) for cell in row))
        out.print(printed)
    for line in sentences:
        out.print(in_language(line), markup=False)
