"""The stages. All that the rest of the package knows of one stands in its entry in table.py; to add one, add an entry.

1. table.py: the entries, in the order in which stages run.
2. clean.py, analyze.py, vocab.py, shard.py, pretrain.py: a module per stage, with
   `run(settings, inputs, output, runtime) -> Counts`. It reads only `inputs` and writes only below `output`, which may
   hold finished work of an interrupted run, and into the folder of encoded texts that the inputs name.
   `output/work/` and `output/checkpoints/` are its scratch folders; the runner removes them at the end.
   Stages of tasks (nsmc, korquad) are entries of pipelines/tasks.py; those of the sections [tasks.NAME] of a recipe
   are made by `table.task_stage`.
3. settings.py: the sections of a recipe that join settings of several rooms. figures.py: the closing table's lines.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Counts", "Figures", "Finder", "Help", "Inputs", "Run", "Stage", "imported"]

Counts = dict[str, int | float]
Run = Callable[..., Counts]
"""(settings, inputs, output, runtime) -> counts."""
Finder = Callable[[Path], Path]
"""A folder as given -> the folder itself, or the one inside that is meant (korbert.folders)."""
Figures = Callable[[Path, Mapping[str, Any]], Iterable[tuple[str, str]]]
"""An artifact's folder and its counts -> (what, figure) of each line in the closing table."""


@dataclass(frozen=True)
class Inputs:
    """What a stage may read.

    artifacts: stage name -> that stage's finished artifact. files: the role of a file in the recipe -> its files, in
    sorted order (a source's name for `clean`, whose files may lie behind an address; "train", "test", "valid",
    "official" for the tasks). encoded: where texts of the tasks are kept as pieces, under names that say of which texts
    and by which tokenizer, so that another run analyses nothing, and vectors of encoders that learn nothing; None:
    nothing is kept.
    """

    artifacts: Mapping[str, Path]
    files: Mapping[str, tuple[Any, ...]]
    encoded: Path | None = None

    def folder(self, role: str, file: str) -> Path:
        """The folder of a model or tokenizer, by a file that it has; of another folder, for its reader to refuse."""
        given = self.files[role]
        found: Path = next((path for path in given if path.name == file), given[0]).parent
        return found


@dataclass(frozen=True)
class Help:
    """What `korbert STAGE --help` says."""

    summary: str
    reads: str
    writes: str
    example: str

    def __str__(self) -> str:
        return f"{self.summary}\n\nReads {self.reads}.\n\nWrites {self.writes}.\n\n\b\nExample:\n  {self.example}"


@dataclass(frozen=True)
class Stage:
    """A stage, said once. Runner, recipes, commands, closing table, index and pages know stages by their entries alone.

    version: goes up when the stage's code gives other bytes. settings: the class of its section of a recipe. run:
        does the work. Either may be named, as "module:name".
    help: of its command. title: what it makes, on the index page.
    reads: stages whose artifacts it is made from. unread: those of them that some settings do without.
    libraries: those whose version shapes the bytes. more_libraries: those that some settings use besides.
    trains: whether it trains (on a device) or works part by part (on workers). makes_rows: whether other processes may
        make the rows that it trains on. spreads: whether its model can be sharded over processes.
    optional: only run where the recipe has its section; else the defaults stand for a section that is absent.
    patterns: role -> file pattern of what its settings have it read from outside. remote: whether those files may lie
        behind an address. found: (settings, data folder) -> role -> files that it reads, too, and finds itself.
    folders: role -> folder of a model or tokenizer that it goes on from, and what finds it.
    derive: fills in what other sections of the recipe, before they are checked, decide in its own. check: raises
        ValueError where its settings do not fit those of other stages (name -> settings, of those in the recipe).
    page: a module with `headlines(artifact)` and `story(artifact)`; "" for the page that every artifact has.
    result: what its first headline is called on top of the index page, `{}` being that headline's own label; "": it is
        not shown there.
    figures: lines of the closing table. products: what -> a file of the artifact, named below that table.
    preview: "module:function" of `--preview N`, (pipeline, N) -> None.
    inspect: "module:function", (pipeline) -> None, that refuses, before any stage runs, what can be seen by then.
    """

    name: str
    version: int
    settings: "str | type[BaseModel]"
    run: str | Run
    help: Help
    title: str
    reads: tuple[str, ...] = ()
    unread: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    libraries: tuple[str, ...] = ()
    more_libraries: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    trains: bool = False
    makes_rows: bool = False
    spreads: bool = False
    optional: bool = False
    patterns: Callable[[Any], Mapping[str, str]] = lambda settings: {}
    remote: bool = False
    found: Callable[[Any, Path], Mapping[str, tuple[Path, ...]]] = lambda settings, data: {}
    folders: Callable[[Any], Mapping[str, tuple[str, Finder]]] = lambda settings: {}
    derive: Callable[[dict[str, Any], Mapping[str, Any]], None] = lambda section, recipe: None
    check: Callable[[Any, Mapping[str, Any]], None] = lambda settings, others: None
    page: str = ""
    result: str = ""
    figures: Figures = lambda folder, counts: ()
    products: Mapping[str, str] = field(default_factory=dict)
    preview: str = ""
    inspect: str = ""

    @property
    def settings_class(self) -> "type[BaseModel]":
        """The class of `settings`, loaded where it is named."""
        found: type[BaseModel] = imported(self.settings) if isinstance(self.settings, str) else self.settings
        return found

    def reads_under(self, settings: Any) -> tuple[str, ...]:
        """The stages that it reads under these settings; all of `reads` where there are none."""
        unread = () if settings is None else self.unread(settings)
        return tuple(name for name in self.reads if name not in unread)


def imported(name: str) -> Any:
    """The module, or the "module:attribute", of that name. Entries name them so that `korbert --help` loads none."""
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found
