"""The recipes that `korbert new` writes: short or with every key, from nothing or from a pretrained model."""

import json
import re
import textwrap
import tomllib
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from pydantic import BaseModel

from korbert.folders import bundled, is_on_hub, model_folder
from korbert.pipelines.recipes.files import SHIPPED
from korbert.pipelines.recipes.loading import SHARED, model_in
from korbert.pipelines.stages.table import STAGES
from korbert.system import JsonObject

_WIDTH = 110
_HEAD = """\
## Every key of a recipe, with its unit. A key after `#` has the default that is shown: remove the `#` to change it.
## Run it with `korbert run NAME.toml`. Paths are relative to this file's folder, or to --data.
## The keys above the first section go to every section that has them, and may be set in a section as well.
"""


def short_recipe(begin: str = "", folder: Path = Path()) -> str:
    """Returns a recipe with the settings that most people change, each with a comment.

    begin: folder or name of a pretrained model; the recipe then takes its tokenizer and continues its training. folder:
    where the recipe will lie. Raises ModelError if `begin` is not a pretrained model.
    """
    template = SHIPPED / "template"
    recipe = (template / "short.toml").read_text(encoding="utf-8")
    for stage in STAGES.values():
        if stage.optional and f"[{stage.name}]" not in recipe:
            recipe += f"\n# [{stage.name}]  # {stage.help.summary}\n"
    if not begin:
        return recipe
    # A model below the recipe's folder is named relative to it: both may move together.
    name = begin
    if not is_on_hub(begin) and (Path(begin).exists() or not bundled(begin)):
        path = Path(begin).resolve()
        folder = folder.resolve()
        name = (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()
    from korbert.modeling.files.growing import pretrained_encoder

    config = pretrained_encoder(model_folder(begin))
    values = {"architecture": config.architecture, **config.model_dump(exclude_defaults=True, exclude={"vocab_size"})}
    encoder = "\n".join(f"{key} = {as_toml(value)}" for key, value in values.items())
    continued = Template((template / "continued.toml").read_text(encoding="utf-8"))
    before, _, rest = recipe.partition("[vocab]")
    _, tasks, after = rest.partition("# [nsmc]")
    return f"{before}{continued.substitute(model=as_toml(name), encoder=encoder)}\n{tasks}{after}"


def full_recipe(begin: str = "", folder: Path = Path()) -> str:
    """Returns a recipe with all keys: those of the short one with values, others commented out with their defaults."""
    recipe = tomllib.loads(short_recipe(begin, folder))
    lines = [_HEAD]
    sections = [stage.settings_class.model_fields for stage in STAGES.values()]
    # A shared key has the same description in every section.
    for key in SHARED:
        about = next(fields[key] for fields in sections if key in fields)
        value = recipe.get(key, about.get_default())
        lines += [*_comment(about.description), f"{'' if key in recipe else '# '}{key} = {as_toml(value)}", ""]
    for stage in STAGES.values():
        lines += [f"## ---- {stage.name}: {stage.help.summary}", ""]
        lines += _table(stage.settings_class, stage.name, recipe.get(stage.name), absent=stage.optional)
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(
    model: type[BaseModel],
    key: str,
    values: JsonObject | None,
    *,
    absent: bool,
    many: bool = False,
    default: object = None,
) -> Iterator[str]:
    """A table and its inner tables. values: its own; None if the recipe has none.

    absent: comment out the whole table, with its heading, if it has no values. many: it is an item of a list. default:
    value of the whole table if it is left out; None: each key has its own default.
    """
    hidden = values is None and absent
    yield f"{'# ' if hidden else ''}{f'[[{key}]]' if many else f'[{key}]'}"
    inner: list[str] = []
    for name, about in model.model_fields.items():
        table = model_in(about.annotation)
        value = (values or {}).get(name)
        if about.exclude or (name in SHARED and value is None):
            continue
        if table is None:
            shown = getattr(default, name, about.get_default())
            yield from _comment(about.description)
            if value is not None:
                yield f"{name} = {as_toml(value)}"
            elif about.is_required() or shown is None:  # TOML can express neither
                yield f"# {name} = ## {'needed' if about.is_required() else 'none'}"
            else:
                yield f"# {name} = {as_toml(shown)}"
        elif typing.get_origin(about.annotation) is tuple:
            for item in value or [None]:
                inner += _table(table, f"{key}.{name}", item, absent=True, many=True)
        else:
            whole = about.get_default()
            nullable = not about.is_required() and whole is None
            inner += _table(table, f"{key}.{name}", value, absent=hidden or nullable, default=whole)
    yield ""
    yield from inner


def _comment(text: str | None) -> list[str]:
    return textwrap.wrap(text or "", _WIDTH, initial_indent="## ", subsequent_indent="## ")


def as_toml(value: object) -> str:
    """A value as TOML writes it. TypeError for one that TOML cannot express, such as None."""
    if isinstance(value, Mapping):
        keys = [key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else as_toml(key) for key in value]
        inner = map(as_toml, value.values())
        return f"{{ {', '.join(map(' = '.join, zip(keys, inner, strict=True)))} }}"
    if isinstance(value, BaseModel):
        return as_toml(value.model_dump(exclude_defaults=True))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, float):
        return str(value)  # nan and inf, too
    if not isinstance(value, str | int):
        raise TypeError(type(value).__name__)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which JSON does not escape
