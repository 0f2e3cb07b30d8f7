"""The pipeline from Python: what `korbert.finetune`, `run`, `pretrain`, `evaluate` and `compare` do.

These functions take what the commands of the same names take, and raise the errors that the commands report. Artifacts
are the same, so a command can continue what Python began, and the other way round.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import torch

from korbert.errors import KorbertError, SettingsError
from korbert.folders import model_folder
from korbert.model import Model
from korbert.names import on_disk
from korbert.pipelines import experiments, recipes, reports, runs
from korbert.pipelines.artifacts import Artifact, Runtime
from korbert.pipelines.experiments.evaluating import Evaluation
from korbert.pipelines.results import Comparison, Finetuned, Run, figures_of
from korbert.records import Form, write_rows
from korbert.system import claim, cores, needed_for, remove, world
from korbert.tasks.files import ROLES

__all__ = ["Comparison", "Evaluation", "Finetuned", "Run", "compare", "evaluate", "finetune", "pretrain", "run"]

_PAIRS: Mapping[int, Sequence[str]] = {2: ("text", "pair"), 3: ("text", "pair", "score")}  # of kind embedding


@needed_for("korbert.finetune")
def finetune(
    model: Model | str | Path,
    train: object = None,
    *,
    valid: object = None,
    test: object = None,
    task: str | None = None,
    data: str | Path | None = None,
    kind: str | None = None,
    output: str | Path | None = None,
    form: Form = "auto",
    seeds: int | Sequence[int] = 1,
    device: str = "auto",
    workers: int | None = None,
    rebuild: bool = False,
    quick: bool = False,
    only: Literal["words", "vectors", "encoder"] | None = None,
    **settings: Any,
) -> Finetuned:
    """Fine-tunes a model on labelled rows, and scores it next to baselines: `korbert finetune` in Python.

        >>> rows = [("정말 재미있는 영화", "긍정"), ("시간이 아깝다", "부정"), ("또 보고 싶다", "긍정")] * 4
        >>> result = korbert.finetune("korbert-mini", rows)
        >>> result.kind, sorted(result.scores)
        ('classification', ['accuracy', 'macro_f1'])
        >>> result.model.predict("정말 좋다").label in ("긍정", "부정")
        True

    The same rows and settings with the same `output` continue an interrupted run, and skip a finished one.

    Args:
        model: A model, its folder, or its name.
        train: A file of any format of `korbert finetune`, a list of tuples (text, label) or (text, pair, label), or of
            dicts, a frame of pandas or polars, or a Dataset of `datasets`.
        valid, test: Likewise. The epoch and the rate are selected on `valid`, by default a part of `train`. `test` is
            scored once per seed; without it, `valid` is scored.
        task, data: A known data set instead of `train` (`korbert tasks` lists them), and the folder with its files.
        kind: The kind of task; None: inferred from the columns.
        output: Folder of the artifact. None: a temporary one, which lives as long as the result.
        form: Format of the files.
        seeds: Number of seeds to train with, or the seeds themselves.
        device, workers, rebuild: As in `run`.
        quick: Labels: fit a linear model on words, and on vectors of a frozen encoder, in seconds. Spans: fit a CRF on
            layers of that encoder.
        only: Labels, spans: one part of the model alone, "words" (of labels), "vectors" or "encoder"; None: all.
        **settings: Columns by role (text, pair, label, score, question, ..: a name, or several), and any setting of a
            recipe's task: epochs, learning_rates, features, several, validation_share, .. `teachers` are models or
            their folders, `unlabelled` a file of texts, or a list of texts or rows.

    Raises:
        SettingsError: An unknown setting, or an invalid value in a row.
        CorpusError: Rows that cannot be used.
        ArtifactError: `output` holds another artifact, or other files.
        ModelError: There is no such model.
    """
    if (train is None) == (task is None) or (task is not None and data is None):
        raise SettingsError("finetune: give train=FILE or rows, or else task=NAME with data=FOLDER")
    # Each process would make a temporary folder of its own.
    if output is None and world().size > 1:
        raise SettingsError("finetune: the processes of torchrun need one folder: give output=FOLDER")
    parts = {"train": train, "valid": valid, "test": test}
    parts |= {part: settings.pop(part, None) for part in ("warm_up", "unlabelled")}
    columns = _columns({role: settings.pop(role) for role in settings.keys() & ROLES.keys()})
    named = {"kind": kind, "set": task, "seeds": range(seeds) if isinstance(seeds, int) else seeds}
    settings |= {name: value for name, value in named.items() if value is not None}
    if quick and only:
        raise SettingsError("finetune: give quick or only, not both")
    rungs = ["words", "vectors"] if quick else [only] if only else []
    with ExitStack() as cleanup, _torch_as_before(), _temporary_artifact() as aside:
        if output is None:
            output = Path(tempfile.mkdtemp(prefix="korbert-"), "finetuned")
            cleanup.callback(remove, claim(output.parent))
        model = _folder_of(model, aside / "model")
        if teachers := settings.get("teachers"):
            if isinstance(teachers, Model | str | Path):
                teachers = [teachers]
            places = ((teacher, aside / f"teacher-{number}") for number, teacher in enumerate(teachers, 1))
            settings["teachers"] = [str(_folder_of(*place)) for place in places]
        folder = _named_folder(output, "output")
        rows_folder = aside if task is None else None  # its name is random, so paths in the recipe are relative to it
        single = recipes.one_task.SingleTask(
            model=model,
            output=folder,
            files={part: _file(rows, aside, part, kind) for part, rows in parts.items() if rows is not None},
            settings=settings,
            columns=columns,
            form=form,
            rungs=rungs,
            relative_to=rows_folder,
        )
        recipe, _ = single.recipe()
        base = rows_folder or Path(data or "").resolve()
        runtime = Runtime(folder.parent, base, workers or cores(), device=device, call="korbert.finetune")
        pipeline = runs.Pipeline(recipe, runtime, folder)
        runs.runner.make_all(pipeline, pipeline.stages(), rebuild=rebuild, draw=reports.draw)
        result = Finetuned.open(folder)
        weakref.finalize(result, cleanup.pop_all().close)  # a temporary folder lives as long as the result
    return result


@needed_for("korbert.run")
def run(
    recipe: str | Path,
    *,
    from_: str | None = None,
    to: str | None = None,
    root: str | Path = "artifacts",
    data: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    rebuild: bool = False,
    device: str = "auto",
    workers: int | None = None,
    row_workers: int | None = None,
    runner: Literal["native", "ray"] = "native",
) -> Run:
    """Runs the stages of a recipe in order: `korbert run` in Python.

        >>> made = korbert.run("mine.toml", to="clean", settings={"seed": 1})
        >>> {name: folder.as_posix() for name, folder in made.stages.items()}
        {'clean': 'artifacts/mine/clean'}

    Fresh artifacts are skipped, interrupted ones resumed, stale ones refused.

    Args:
        recipe: A TOML file, or the name of a shipped one.
        from_, to: First stage, before which all must be fresh, and last stage.
        root: Folder of all artifacts.
        data: Base folder of the recipe's relative paths; None: $KORBERT_DATA, or else the recipe's folder.
        settings: Values that replace those of the recipe, by key: {"vocab.size": 32000}.
        rebuild: Make artifacts anew even if they are fresh.
        device: "auto", "cpu" or "cuda".
        workers: Processes of the corpus stages; None: one for each core.
        row_workers: Processes that make rows of pretraining; None: none on a CPU, up to four on a GPU.
        runner: Where the corpus stages run: on this machine, or on the Ray cluster of $RAY_ADDRESS.

    Raises:
        SettingsError: An unknown setting, or a stage that the recipe does not have.
        ArtifactError: An artifact is stale or in use.
        CorpusError, ModelError: Text that cannot be used; a model that cannot be trained.
    """
    arguments = {"root": str(root), "data": data and str(data), "settings": settings and dict(settings)}
    given = tuple(f"{name}={value!r}" for name, value in arguments.items() if value)  # for errors to repeat
    data = data or os.environ.get("KORBERT_DATA")
    base = Path(data) if data else None
    changes = []
    for key, value in (settings or {}).items():
        try:
            changes.append(f"{key}={recipes.template.as_toml(value)}")
        except TypeError as error:
            raise SettingsError(
                "settings {key}: {value}: TOML has no {type}: give text, numbers, booleans, lists or dicts of these",
                key=key,
                value=recipes.files.shorten(repr(value)),
                type=error,
            ) from None
    pipeline = runs.open_pipeline(
        str(recipe), changes, _named_folder(root, "root"), base, workers=workers or cores(),
        runner=runner, device=device, row_workers=row_workers, given=given, call="korbert.run",
    )  # fmt: skip
    stages = pipeline.stages(from_, to)
    with _torch_as_before():
        runs.runner.make_all(pipeline, stages, rebuild=rebuild, draw=reports.draw)
    folders = {stage.name: pipeline.artifact(stage.name) for stage in stages}
    return Run(pipeline.folder, folders, {name: figures_of(Artifact.open(folder)) for name, folder in folders.items()})


def pretrain(
    recipe: str | Path,
    *,
    root: str | Path = "artifacts",
    data: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    rebuild: bool = False,
    device: str = "auto",
    row_workers: int | None = None,
) -> Run:
    """Pretrains the encoder of a recipe on its shards: `korbert pretrain` in Python.

        >>> made = korbert.run("mine.toml", to="shard")
        >>> korbert.pretrain("mine.toml", settings={"seed": 1}).model.can
        ('fill', 'embed')

    The arguments and errors are those of `run`. The stages before `pretrain`, which `run` makes, too, must be fresh.
    """
    return run(
        recipe, from_="pretrain", to="pretrain", root=root, data=data, settings=settings, rebuild=rebuild,
        device=device, row_workers=row_workers,
    )  # fmt: skip


@needed_for("korbert.evaluate")
def evaluate(
    model: Model | str | Path, rows: object, *, form: Form = "auto", noise: bool = False, **columns: str | Sequence[str]
) -> Evaluation:
    """Scores a fine-tuned model on labelled rows, with 95 % intervals: `korbert evaluate` in Python.

        >>> found = korbert.evaluate("korbert-mini-nsmc", [("정말 재미있는 영화", "긍정"), ("시간이 아깝다", "부정")])
        >>> list(found.scores), found.rows[0]["prediction"]["label"]
        (['accuracy', 'macro_f1'], '긍정')

    Args:
        model: A model, its folder, or its name.
        rows: As `train` of `finetune`.
        form: Format of a file.
        noise: Also score the rows with wrong spaces, typing errors, emoji and the like.
        **columns: Columns by role: text, pair, label, ..

    Raises:
        CorpusError: Rows that cannot be used, and labels that the training rows do not have.
        SettingsError: An unknown role, or noise for a kind of task that it does not apply to.
        ModelError: A model that is missing or not fine-tuned.
    """
    loaded = model if isinstance(model, Model) else Model.load(model)
    with _temporary_artifact() as aside:
        file = _file(rows, aside, "rows", loaded.task.name)
        return experiments.evaluating.evaluate_file(loaded, file, _columns(columns), form, noise=noise)


@needed_for("korbert.compare")
def compare(*sides: Finetuned | Run | str | Path, model: str | Sequence[str] = ()) -> Comparison:
    """Compares models of one task, or pretraining runs: `korbert compare` in Python.

        >>> compared = korbert.compare("models/mood", "models/mood", model=["linear", "words"])
        >>> list(compared.names)
        ['linear', 'words']

    Args:
        *sides: Results of `finetune` or their folders; or those of `run` and `pretrain`. The first is compared with
            each of the others.
        model: Of tasks: the name of the model to compare (tuned, linear, words, ..), or one for each side.

    Raises:
        SettingsError: Fewer than two sides, or sides of different tasks.
        ArtifactError: A side that is not such an artifact, or one of other rows.
    """
    folders = [side.folder if isinstance(side, Finetuned | Run) else Path(side) for side in sides]
    models = [model] if isinstance(model, str) else list(model)
    shown, details = reports.compare.compare_artifacts(folders, models)
    return Comparison([side.name for side in shown.sides], details, shown)


def _folder_of(model: Model | str | Path, aside: Path) -> str | Path:
    """The folder of a model. A model without a folder, or whose folder is gone, is saved in `aside`."""
    if not isinstance(model, Model):
        return model
    if model.folder and model_folder(model.folder).exists():
        return model.folder
    model.save(aside)
    return aside


def _columns(names_of: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """Returns role -> the list of its columns. names_of: role -> a column, or several."""
    return {role: [names] if isinstance(names, str) else list(names) for role, names in names_of.items()}


def _named_folder(folder: str | Path, argument: str) -> Path:
    """Returns the folder as a Path. Raises SettingsError for an empty name, which would be the working folder."""
    if not str(folder):
        raise SettingsError("{argument}: is empty: name a folder", argument=argument)
    return Path(folder)


def _file(rows: object, aside: Path, name: str, kind: str | None) -> Any:
    """The file that holds the rows: the given file, or one in the folder `aside` with the given rows."""
    if isinstance(rows, str) and "://" in rows:
        from upath import UPath

        return UPath(rows)
    if isinstance(rows, str | os.PathLike):
        return on_disk(Path(rows))
    if name == "unlabelled" and isinstance(rows, Sequence):
        rows = [{"text": row} if isinstance(row, str) else row for row in rows]
    if kind == "embedding":
        return write_rows(rows, aside, name, _PAIRS)
    return write_rows(rows, aside, name)


@contextmanager
def _torch_as_before() -> Iterator[None]:
    """Restores PyTorch's number of threads and the state of its random numbers, which a training sets for itself."""
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _temporary_artifact() -> Iterator[Path]:
    """A temporary folder for rows in memory; errors name the argument, not the file."""
    with tempfile.TemporaryDirectory(prefix="korbert-") as folder:
        try:
            yield Path(folder).resolve()
        except KorbertError as error:
            files = [file.name for file in Path(folder).glob("*.*")]

            def in_memory(text: str) -> str:
                text = text.replace(f"{Path(folder).resolve()}/", "")
                for name in files:
                    text = text.replace(name, Path(name).stem)
                return text

            error.message = error.message.map_texts(in_memory)
            raise
