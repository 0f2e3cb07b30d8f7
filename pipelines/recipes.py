"""A recipe: everything that may change an artifact's bytes, from one TOML file and `--set` (DESIGN 3)."""

import difflib
import math
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from corpus.settings import AnalyzeSettings, CleanSettings, ShardSettings, VocabSettings
from korbert.errors import SettingsError
from korbert.modeling.config import EncoderConfig
from korbert.pretraining.settings import MaskingSettings, PairSettings
from korbert.tasks.korquad.settings import KorquadSettings
from korbert.tasks.nsmc.settings import NsmcSettings
from korbert.training.settings import OptimizerSettings, PrecisionName

SHIPPED = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class StageSpec:
    """What the runner knows of a stage. `version` goes up when the stage's code changes its artifact's bytes."""

    name: str
    version: int
    reads: tuple[str, ...]
    libraries: tuple[str, ...]  # those whose version shapes the bytes
    trains: bool = False


_TRAINING = ("torch", "numpy", "kiwipiepy", "kiwipiepy_model", "sentencepiece")

STAGES: Mapping[str, StageSpec] = {
    spec.name: spec
    for spec in (
        StageSpec("clean", 1, (), ("pyarrow", "duckdb")),
        StageSpec("analyze", 1, ("clean",), ("kiwipiepy", "kiwipiepy_model", "pyarrow")),
        StageSpec("vocab", 1, ("analyze",), ("sentencepiece", "pyarrow", "duckdb")),
        StageSpec("shard", 1, ("analyze", "vocab"), ("sentencepiece", "pyarrow", "duckdb")),
        StageSpec("pretrain", 1, ("shard", "vocab"), ("torch", "numpy"), trains=True),
        StageSpec("nsmc", 1, ("clean", "vocab", "pretrain"), (*_TRAINING, "scikit-learn", "pandas"), trains=True),
        StageSpec("korquad", 2, ("vocab", "pretrain"), _TRAINING, trains=True),
    )
}


class HeldOut(BaseModel, frozen=True, extra="forbid"):
    """What no vocabulary and no training sees."""

    seed: int = Field(0, ge=0, description="of every random choice")
    heldout_share: float = Field(0.01, gt=0, lt=1, description="share of documents, chosen by hash of their id")


class VocabStage(VocabSettings, HeldOut, frozen=True, extra="forbid"):
    """[vocab]"""


class ShardStage(ShardSettings, HeldOut, frozen=True, extra="forbid"):
    """[shard]"""


class Phase(BaseModel, frozen=True, extra="forbid"):
    """A stretch of pretraining at one length."""

    length: int = Field(128, ge=8, description="pieces a row, special tokens included")
    batch_size: int = Field(32, ge=1, description="rows a step")
    steps: int = Field(ge=1, description="optimizer updates")
    micro_batches: int = Field(1, ge=1, description="parts that a step's rows are run in, to save memory")


class EncoderSection(EncoderConfig, frozen=True, extra="forbid"):
    """[pretrain.encoder]: an encoder whose vocabulary is not known yet."""

    vocab_size: int = Field(1, ge=1, le=1, exclude=True, description="left out: it is the tokenizer's")

    def config(self, vocab_size: int) -> EncoderConfig:
        """The encoder over a vocabulary of that size."""
        return EncoderConfig(vocab_size=vocab_size, **self.model_dump())


class PretrainStage(BaseModel, frozen=True, extra="forbid"):
    """[pretrain]"""

    precision: PrecisionName = Field("auto", description="bf16 where the device has the instructions, or say which")
    threads: int = Field(2, ge=1, description="threads of one training process; another number gives other bytes")
    seed: int = Field(0, ge=0, description="of weights, rows and masks")
    encoder: EncoderSection
    phases: tuple[Phase, ...] = Field(min_length=1, description="run one after another under one schedule")
    masking: MaskingSettings = MaskingSettings()
    pairs: PairSettings = PairSettings()
    optimizer: OptimizerSettings
    log_every: int = Field(10, ge=1, description="steps")
    evaluate_every: int = Field(200, ge=1, description="steps")
    checkpoint_every: int = Field(200, ge=1, description="steps")
    heldout_rows: int = Field(2_000, ge=1, description="rows of held-out text that a loss is measured on, at most")

    @model_validator(mode="after")
    def _positions_reach(self) -> Self:
        longest = max(phase.length for phase in self.phases)
        if longest > self.encoder.max_position_embeddings:
            raise ValueError(
                f"a phase has length {longest}, the encoder {self.encoder.max_position_embeddings} positions: "
                "raise encoder.max_position_embeddings"
            )
        return self


class Recipe(BaseModel, frozen=True, extra="forbid"):
    """All stages of one recipe. `name` is the file's; `given` is how the user named it."""

    name: str
    given: str
    clean: CleanSettings
    analyze: AnalyzeSettings = AnalyzeSettings()
    vocab: VocabStage = VocabStage()
    shard: ShardStage = ShardStage()
    pretrain: PretrainStage
    nsmc: NsmcSettings | None = None
    korquad: KorquadSettings | None = None

    @model_validator(mode="after")
    def _tasks_fit_the_encoder(self) -> Self:
        positions = self.pretrain.encoder.max_position_embeddings
        for name in ("nsmc", "korquad"):
            task = self.section(name)
            own = name == "korquad" and task is not None and task.encoder is not None
            if task is not None and not own and task.max_length > positions:
                raise ValueError(
                    f"{name}.max_length {task.max_length} is more than pretrain.encoder.max_position_embeddings "
                    f"{positions}: lower the one or raise the other"
                )
        return self

    def section(self, stage: str) -> Any:
        """The settings of one stage; None where the recipe leaves the stage out."""
        return getattr(self, stage)

    def settings(self, stage: str) -> dict[str, Any]:
        """The resolved settings of one stage, as they are recorded."""
        section: BaseModel = self.section(stage)
        return section.model_dump(mode="json")

    def patterns(self, stage: str) -> dict[str, str]:
        """Role -> file pattern of what the stage reads from outside."""
        if stage == "clean":
            return dict(self.clean.patterns)
        if stage == "analyze" and self.analyze.user_words:
            return {"user_words": self.analyze.user_words}
        if stage == "nsmc" and self.nsmc:
            return {"train": self.nsmc.train, "test": self.nsmc.test}
        if stage == "korquad" and self.korquad:
            return self.korquad.patterns()
        return {}


_SHARED = (
    "seed",
    "heldout_share",
    "precision",
    "threads",
)  # written once at the top, handed to each stage that has them


def find(given: str) -> Path:
    """The file of a recipe named by path, by its name without `.toml`, or, for a shipped one, by that name.

    Raises SettingsError for a name that is no recipe's, or two recipes', or that no folder of artifacts can have.
    """
    path, own = Path(given), Path(f"{given}.toml")
    shipped = SHIPPED / f"{given}.toml"
    if path.suffix != ".toml" and not path.is_file():
        names = sorted(path.stem for path in SHIPPED.glob("*.toml"))
        is_own, is_shipped = own.is_file(), given in names
        if is_own and is_shipped:
            raise SettingsError(f"{given}: is a shipped recipe, and {own} is here: say {own} for yours, or rename it")
        if not is_own and not is_shipped:
            near = _near(given, [*names, *(path.stem for path in Path().glob("*.toml"))])
            raise SettingsError(f"{given}: no such recipe: give a .toml file, or one of {', '.join(names)}{near}")
        path = own if is_own else shipped
    check_name(path)
    return path


def check_name(path: Path) -> None:
    """Raises SettingsError where no folder of artifacts can have the recipe's name."""
    if path.stem.startswith(".") or not path.stem.isprintable():
        raise SettingsError(
            f"{str(path)!r}: a recipe's name is that of its folder of artifacts, and {path.stem!r} cannot be one: "
            "choose another"
        )


def load(given: str, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe and apply `--set a.b=value` changes. Raises SettingsError that names the file and the key."""
    path = find(given)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise SettingsError(f"{path}: no such file: `korbert new NAME` writes a recipe to start from") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: is not TOML: {error}: mend it there") from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}): give a file of TOML") from error
    for change in changes:
        _apply(raw, change)
    if own := raw.keys() & {"name", "given"}:
        raise SettingsError(f"{path}: {min(own)}: no such key: a recipe is named by its file")
    _refuse_boundless(raw, path, "")
    _hand_down(raw, path)
    try:
        return Recipe.model_validate({**raw, "name": path.stem, "given": given})
    except ValidationError as error:
        raise SettingsError(_explain(path, error)) from error


def _apply(raw: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not re.fullmatch(r"\w+(\.\w+)*", key):
        raise SettingsError(f"--set {change}: give it as section.key=value, such as vocab.size=32000")
    *outer, last = key.split(".")
    holder: Any = raw
    for place, name in enumerate(outer):
        if isinstance(holder, list) and name.isdecimal() and int(name) < len(holder):
            holder = holder[int(name)]
        elif isinstance(holder, dict):
            holder = holder.setdefault(name, {})
        else:
            before = ".".join(outer[:place])
            raise SettingsError(f"--set {change}: {before} has no {name!r} in the recipe: change it in the file")
    if not isinstance(holder, dict):
        raise SettingsError(f"--set {change}: {'.'.join(outer)} is no table in the recipe: change it in the file")
    try:
        holder[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        holder[last] = text
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--set {key}: {_shown(text)}: too many digits or brackets: give a smaller one") from error


def _refuse_boundless(value: Any, path: Path, place: str) -> None:
    """Raises SettingsError for inf, nan, and whole numbers of more than 64 bits: no setting can have one."""
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in inner:
            _refuse_boundless(one, path, f"{place}.{key}" if place else str(key))
    elif (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise SettingsError(f"{path}: {place}: {_shown(str(value))} is no number that a setting can have: change it")


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _hand_down(raw: dict[str, Any], path: Path) -> None:
    shared = {key: raw.pop(key) for key in _SHARED if key in raw}
    for name in ("vocab", "shard", "pretrain", "nsmc", "korquad"):
        if name not in raw and name in ("nsmc", "korquad"):
            continue
        section = raw.setdefault(name, {})
        if not isinstance(section, dict):
            raise SettingsError(f"{path}: {name}: holds {section!r}: write it as a table, [{name}]")
        fields = _model_of(Recipe, name)
        assert fields is not None
        handed = shared | ({"seeds": [shared["seed"]]} if "seed" in shared else {})  # nsmc may run several
        section.update(
            {key: value for key, value in handed.items() if key in fields.model_fields.keys() - section.keys()}
        )
    pairs = raw["pretrain"].setdefault("pairs", {})
    if isinstance(pairs, dict):
        pairs.setdefault("without", _sources_without_pairs(raw))


def _sources_without_pairs(raw: dict[str, Any]) -> list[str]:
    clean = raw.get("clean")
    sources = clean.get("sources") if isinstance(clean, dict) else None
    found = [one for one in sources if isinstance(one, dict)] if isinstance(sources, list) else []
    return [str(one.get("name")) for one in found if one.get("pairs") is False]


def _explain(path: Path, error: ValidationError) -> str:
    details = error.errors()
    first = details[0]
    place = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    if first["type"] == "extra_forbidden":
        known, name = _fields_at(first["loc"][:-1]), str(first["loc"][-1])
        elsewhere = [one for one in _places_of(Recipe, name) if one.split(".")[0] == str(first["loc"][0])]
        near = f" (did you mean {elsewhere[0]}?)" if elsewhere and name not in known else _near(name, known)
        return f"{path}: {place}: no such key{near}: known here: {', '.join(known)}{more}"
    if first["type"] == "missing":
        return f"{path}: {place}: is missing: add it{more}"
    message = first["msg"].removeprefix("Value error, ")
    found = "" if isinstance(first["input"], dict) else f", not {_shown(repr(first['input']))}"
    return f"{path}: {place}: {message}{found}{more}"


def _fields_at(place: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] | None = Recipe
    for part in place:
        if isinstance(part, str) and model is not None:
            model = _model_of(model, part)
    if model is Recipe:
        return sorted({*_SHARED, *Recipe.model_fields} - {"name", "given"})
    return sorted(model.model_fields) if model else []


def _places_of(model: type[BaseModel], name: str, before: str = "") -> Iterator[str]:
    """Where keys of that name are, as `--set` takes them: steps -> pretrain.phases.0.steps."""
    for field, about in model.model_fields.items():
        inner = _find_model(about.annotation)
        if field == name and before:
            yield f"{before}{field}"
        elif inner is not None:
            in_list = typing.get_origin(about.annotation) is tuple
            yield from _places_of(inner, name, f"{before}{field}.{'0.' if in_list else ''}")


def _model_of(model: type[BaseModel], field: str) -> type[BaseModel] | None:
    return _find_model(model.model_fields[field].annotation) if field in model.model_fields else None


def _find_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_find_model, typing.get_args(annotation))), None)


def _near(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""
