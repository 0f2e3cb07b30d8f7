"""What a stage is, what it may read, and how it runs. Nothing here knows a stage by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, Protocol

from korbert import corpus
from korbert.system import JsonObject, cores, number_in

if TYPE_CHECKING:
    from pydantic import BaseModel

_ROW_WORKERS_OF_A_GPU = 4  # make a million pieces per second

StageCounts = dict[str, int | float]
Sections = Mapping[str, Any]
"""Stage -> its settings, for the stages that the recipe has."""

Finder = Callable[[Path], Path]
"""A folder as given -> the folder itself, or the matching one inside it (korbert.folders)."""


@dataclass(frozen=True)
class StageInputs:
    """What a stage may read.

    artifacts: stage name -> that stage's finished artifact. files: the role of a file in the recipe -> its files, in
    sorted order (a source's name for `clean`; files may be remote; "train", "test", "valid", "warm_up" for the
    tasks). encoded: cache of task texts as pieces, keyed by texts and tokenizer, and of vectors of frozen encoders;
    None: no cache.
    """

    artifacts: Mapping[str, Path]
    files: Mapping[str, tuple[Any, ...]]
    encoded: Path | None = None

    def folder(self, role: str, file: str) -> Path:
        """Returns the folder of a model or tokenizer by one of its files; without it, one for the loader to refuse."""
        files: Sequence[Path] = self.files[role]
        return next((path for path in files if path.name == file), files[0]).parent


@dataclass(frozen=True)
class Runtime:
    """Where a run reads and writes, and how it runs: workers, device, runner.

    root: folder of all artifacts. data: the folder that paths in a recipe are relative to. workers: processes of the
    corpus stages. runner, address: where these processes run. device: "auto", "cpu" or "cuda". row_workers: processes
    of this machine that make the rows of pretraining; None: see `rows_by`.
    given: the options on the command line, `--set` included, or the arguments in Python, for the runs that errors
    suggest. call: the function of Python that runs it, such as "korbert.run"; "": the command line does.
    """

    root: Path
    data: Path
    workers: int = field(default_factory=cores)
    runner: Literal["native", "ray"] = "native"
    address: str | None = None
    device: str = "auto"
    row_workers: int | None = None
    given: tuple[str, ...] = ()
    call: str = ""

    def rows_by(self, device: str) -> int:
        """Number of row processes of this rank on "cpu" or "cuda"; the ranks of a machine share its row workers.

        By default none on a CPU, which needs its cores for training, and several on a GPU.
        """
        ranks = max(1, number_in("LOCAL_WORLD_SIZE", 1))  # of this machine, as set by torchrun
        if self.row_workers is None:
            return max(0, min(_ROW_WORKERS_OF_A_GPU, cores() // ranks - 1)) if device == "cuda" else 0
        return max(self.row_workers // ranks, min(1, self.row_workers))

    @property
    def units(self) -> "corpus.Workers":
        """The workers of the corpus stages."""
        return corpus.Workers(self.workers, self.runner, self.address)


# Stages do not import the runs of a recipe, which build on them; this protocol is all that they know of a run.
class Chain(Protocol):
    """What `inspect` may ask about the artifacts of a recipe (runs/pipeline.py)."""

    recipe: Any
    sources: Any

    def inputs(self, stage: "Stage") -> StageInputs: ...
    def artifact(self, stage: str) -> Path: ...
    def status(self, stage: "Stage") -> Any: ...


@dataclass(frozen=True)
class Help:
    """The text of `korbert STAGE --help`."""

    summary: str
    reads: str
    writes: str
    example: str

    def __str__(self) -> str:
        return f"{self.summary}\n\nReads {self.reads}.\n\nWrites {self.writes}.\n\n\b\nExample:\n  {self.example}"


@dataclass(frozen=True)
class Stage:
    """The definition of a stage. Runner, recipes, commands, summary table, index and pages use only this entry.

    version: raised when a change of the stage's code alters the bytes. settings: class of its recipe section, or
        "module:class". run: "module:function" that does the work.
    help: of its command. title: description of the artifact on the index page.
    reads: stages whose artifacts it reads. unread: those of them that it does not read under given settings.
    libraries: those whose version affects the bytes. more_libraries: additional ones under given settings.
    trains: whether it trains (on a device) or works part by part (on workers). makes_rows: whether other processes may
        make its training rows.
    optional: only run if the recipe has its section; otherwise an absent section means the defaults.
    patterns: role -> pattern of source files, from its settings. found: (settings, data folder) -> role -> further
        files that it finds itself.
    folders: role -> folder of a model or tokenizer that it starts from, and the function that locates it.
    derive: fills in settings that depend on those of earlier stages, before validation. check: raises ValueError if
        its settings contradict those of other stages (name -> settings, of those in the recipe).
    page: a module with `figures(artifact)` and `story(artifact)`; "" for the default page.
    count_labels: key of `counts` -> its display name on the page; figures.toml has those of the others.
    products: name -> a file of the artifact, listed below the table of results.
    preview: "module:function" of `--preview N`, (pipeline, N) -> None.
    inspect: "module:function", (pipeline) -> None, for checks before any stage runs.
    """

    name: str
    version: int
    settings: "str | type[BaseModel]"
    run: str
    help: Help
    title: str
    reads: tuple[str, ...] = ()
    unread: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    libraries: tuple[str, ...] = ()
    more_libraries: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    trains: bool = False
    makes_rows: bool = False
    optional: bool = False
    patterns: Callable[[Any], Mapping[str, str]] = lambda settings: {}
    found: Callable[[Any, Path], Mapping[str, tuple[Path, ...]]] = lambda settings, data: {}
    folders: Callable[[Any], Mapping[str, tuple[str, Finder]]] = lambda settings: {}
    derive: Callable[[JsonObject, Sections], None] = lambda section, others: None
    check: Callable[[Any, Sections], None] = lambda settings, others: None
    page: str = ""
    count_labels: Mapping[str, str] = field(default_factory=dict)
    products: Mapping[str, str] = field(default_factory=dict)
    preview: str = ""
    inspect: str = ""

    @property
    def settings_class(self) -> "type[BaseModel]":
        """The class of `settings`, imported if given by name."""
        section: type[BaseModel] = resolve_name(self.settings) if isinstance(self.settings, str) else self.settings
        return section

    def reads_under(self, settings: object) -> tuple[str, ...]:
        """Returns the stages that the stage reads under these settings; None: all of `reads`."""
        unread = () if settings is None else self.unread(settings)
        return tuple(name for name in self.reads if name not in unread)
