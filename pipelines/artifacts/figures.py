"""Figures: numbers with names and formats, as shown in the terminal, on pages and index, in cards and comparisons.

A figure is known by its key in the JSON of an artifact: `macro_f1`, `mlm_loss`, `train_windows_without_answer`.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeGuard

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import formatting


@dataclass(frozen=True)
class ShownFigure:
    """A figure as it is shown: its value, its label, and a note that qualifies it (an error, a baseline)."""

    value: str
    label: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.label}{f' ({self.note})' if self.note else ''}"


OBJECTIVES: Mapping[str, Message] = {
    "mlm": Message("MLM"),
    "nsp": Message("NSP"),
    "sop": Message("SOP"),
    "spans": Message("span selection"),
    "rtd": Message("replaced token detection"),
    "distill": Message("distillation"),
}
"""Display names of the pretraining objectives; those that predict pieces come first."""

_NAMES = tomllib.loads((files("korbert.pipelines.artifacts") / "figures.toml").read_text(encoding="utf-8"))
_LABELS: dict[str, Message] = {key: Message(words) for key, words in _NAMES["labels"].items()}
for _key, _objective in OBJECTIVES.items():
    _LABELS[f"{_key}_loss"] = Message("{objective} loss", objective=_objective)
    _LABELS[f"{_key}_accuracy"] = Message("{objective} accuracy", objective=_objective)
_DECIMALS: dict[str, int] = _NAMES["decimals"]
_PERCENT_DECIMALS = {"byte_share": 2}  # 1 for all other shares
WITH_ENCODER = ("pretrained", "scratch", "tuned", "linear", "vectors")  # all others are baselines
_UNTUNED = "-untuned"  # of the name of an encoder before training
# Names from a recipe, such as that of a source, are shown as they are.
_NAMING = ("contaminated", "evaluation", "kept")  # keys followed by a name from the recipe


def label(key: str) -> Message:
    """The display name of a key. Parts of a dotted key are joined by commas: kept.wiki -> kept, wiki.

    For unknown keys, underscores become spaces.
    """
    if key in _LABELS:
        return _LABELS[key]
    first, *rest = key.split(".")
    names = rest[:1] if first in _NAMING else []
    words = [_LABELS.get(part, Message(part.replace("_", " "))) for part in (first, *rest[len(names) :])]
    return join_messages([words[0], *names, *words[1:]], ", ")


def model_name(name: str) -> str:
    """The display name of a model in scores.json; a name that is not ours is shown as it is."""
    if name.endswith(_UNTUNED):
        return Message("{model}, not fine-tuned", model=model_name(name.removesuffix(_UNTUNED)))
    if name in _NAMES["models"] and name not in WITH_ENCODER:
        return Message("{name} baseline", name=baseline_name(name))
    return baseline_name(name)


def baseline_name(name: str) -> str:
    """The display name of a model where it is known to be a baseline: majority."""
    return Message(_NAMES["models"][name]) if name in _NAMES["models"] else name


def is_defined(value: object) -> TypeGuard[float]:
    """Whether a value is defined: undefined ones are None or NaN."""
    return isinstance(value, int | float) and math.isfinite(value)


def in_percent(key: str) -> bool:
    """Whether the figure is a share, from 0 to 1; else it is a loss in nats, a correlation, an error or a mean."""
    return key not in _DECIMALS and not key.endswith("_loss")


def text(key: str, value: object, more_places: int = 0) -> str:
    """The value: 0.5124 -> 51.2 % for a share, 0.512 for a correlation, 0.51 for a loss; undefined -> a dash."""
    value = value if is_defined(value) else None
    if in_percent(key):
        return formatting.percent(value, _PERCENT_DECIMALS.get(key, 1) + more_places)
    return formatting.decimal(value, _DECIMALS.get(key, 2) + more_places)


def interval(key: str, ends: Sequence[object], *, unit: bool = True) -> Message:
    """Returns an interval as text: 46.2 to 55.1 %. Shares are clipped: those over seeds may exceed 0 or 100 %.

    unit: end shares with %.
    """
    shares = (min(max(end, 0.0), 1.0) if in_percent(key) and is_defined(end) else end for end in ends)
    low, high = (text(key, end).removesuffix(formatting.PERCENT) for end in shares)
    if unit and in_percent(key):
        return Message("{low} to {high}\u00a0%", low=low, high=high)
    return Message("{low} to {high}", low=low, high=high)
