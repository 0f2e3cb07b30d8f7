"""MkDocs hooks: tables and help texts from the code, and pages from files outside docs/, so that no page repeats them.

- In a page, `<!-- settings -->` becomes a table of keys for each stage, from its pydantic fields, and
  `<!-- settings: tasks -->` that of one section; `<!-- stages -->` the Korean table of the stages, from their help;
  `<!-- commands -->` the help of each command, from click; `<!-- names -->` the public names of `korbert`.
- Files outside docs/ (PAGES) become pages. Links are written as for a reader of the repository and converted here.
"""

import ast
import importlib.util
import inspect
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

import click
from pydantic import BaseModel

from korbert.messages import Message, in_language
from korbert.pipelines.cli import cli
from korbert.pipelines.recipes.loading import model_in
from korbert.pipelines.stages.table import STAGES
from korbert.tasks.kinds import KINDS

ROOT = Path(__file__).resolve().parent.parent
MEASURED = [*(ROOT / "benchmarks" / "results").iterdir(), *(ROOT / "benchmarks" / "notes").iterdir()]
PAGES = {  # file outside docs/ -> page of the site
    "benchmarks/RESULTS.md": "results.md",
    "benchmarks/archive/2026-11-28.md": "archive-2026-11-28.md",
    "benchmarks/archive/2026-11.md": "archive-2026-11.md",
    **{f"benchmarks/{path.parent.name}/{path.name}": f"{path.parent.name}/{path.name}" for path in MEASURED},
    "korbert/box/README.md": "model-card.md",
    "corpus/sample/README.md": "sample.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
TABS = {  # tabs of the site, in order -> their Korean titles
    "Get started": "시작하기",
    "Tutorials": "튜토리얼(영어)",
    "How-to": "사용법(영어)",
    "Reference": "레퍼런스(영어)",
    "Explanation": "설명(영어)",
    "Results": "결과(영어)",
    "한국어": "한국어",
}
OF_TASKS = {"nsmc": "classification", "korquad": "question-answering"}  # stage -> the kind of task whose keys it has

_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")
_MARK = re.compile(r"^<!-- (settings|stages|commands|names)(?:: (\w+))? -->$", re.MULTILINE)


# --- events of MkDocs ---


def on_files(files: Any, config: Any) -> None:
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    name = page.file.src_uri
    source = next((source for source, made in PAGES.items() if made == name), f"docs/{name}")
    markdown = _MARK.sub(lambda mark: _known(*mark.groups()), markdown)
    return _LINK.sub(lambda found: _link(found[1], source, name), markdown)


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> None:
    """On Korean pages, theme and tabs are Korean. Links to the previous and next page stay within one language."""
    config.theme["language"] = _language(page)
    for item, title in zip(nav.items, TABS, strict=True):
        item.title = TABS[title] if _language(page) == "ko" else title
    for name in ("previous_page", "next_page"):
        if (other := getattr(page, name)) and _language(other) != _language(page):
            setattr(page, name, None)


def on_post_build(config: Any) -> None:
    """Copies the sitemap for Korean: the theme requests one for each language."""
    shutil.copy(Path(config.site_dir) / "sitemap.xml", Path(config.site_dir) / "ko")


def _language(page: Any) -> str:
    return "ko" if page.file.src_uri.startswith("ko/") else "en"


def _known(what: str, section: str | None) -> str:
    """The Markdown that replaces a mark."""
    if what == "settings":
        return _keys_of(section) if section else settings_of_stages()
    if what == "stages":
        return "\n".join(korean_stages())
    return "\n\n".join(commands() if what == "commands" else public_names())


def _link(target: str, source: str, page: str) -> str:
    """The link target within the site for a link target within the repository."""
    path = normpath(join(dirname(source), target))
    made = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
    return relpath(made, dirname(page) or ".") if made else target


# --- settings ---


def settings_of_stages() -> str:
    """A part of a page for each stage: its name, its purpose and its keys."""
    parts = [(name, _plain(stage.help.summary), _keys_of(name)) for name, stage in STAGES.items()]
    return "\n\n".join(f"## {name}\n\n{purpose}\n\n{keys}" for name, purpose, keys in parts)


def _keys_of(section: str) -> str:
    return "\n".join(('<div class="keys" markdown>\n', *settings_table(section), "\n</div>"))


def settings_table(section: str) -> Iterator[str]:
    """The lines of a table of a stage's keys; for `tasks`, the keys of all kinds."""
    if section == "tasks":
        rows = _rows_of_kinds()
    else:
        rows = [*settings_rows(STAGES[section].settings_class, section)]
        if section in OF_TASKS:
            of_kind = {*settings_rows(KINDS[OF_TASKS[section]].section_class, section)}
            rows = [row for row in rows if row not in of_kind]
    yield from ("| key | default | what |", "|---|---|---|")
    for key, default, about in rows:
        yield f"| `{key}` | {default} | {about.replace('|', chr(92) + '|')} |"


def settings_rows(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    """(key, default, description) of the keys of a section, including those of its nested tables."""
    for name, field in model.model_fields.items():
        key, inner = f"{prefix}.{name}", model_in(field.annotation)
        if field.exclude:
            continue
        if inner:
            yield from settings_rows(inner, key)
        else:
            yield key, "needed" if field.is_required() else _default(field.get_default()), field.description or ""


def _default(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True)
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _rows_of_kinds() -> list[tuple[str, str, str]]:
    """The keys of `[tasks.NAME]`: the most common default; other defaults follow the description."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for kind, entry in KINDS.items():
        for key, default, about in settings_rows(entry.section_class, "tasks.NAME"):
            found.setdefault(key, {})[kind] = (default, about)
    kinds = ", ".join(f"`{kind}`" for kind in KINDS)
    found["tasks.NAME.kind"] = dict.fromkeys(KINDS, ("by `set`, else `classification`", kinds))
    rows = []
    for key, by_kind in found.items():
        defaults = [default for default, _ in by_kind.values()]
        usual = max(defaults, key=defaults.count)
        notes = [", ".join(by_kind)] if len(by_kind) < len(KINDS) else []
        for other in dict.fromkeys(default for default in defaults if default != usual):
            names = ", ".join(kind for kind, (default, _) in by_kind.items() if default == other)
            notes.append(f"{names}: {other}")
        about = next(iter(by_kind.values()))[1]
        rows.append((key, usual, about + (f" ({'; '.join(notes)})" if notes else "")))
    return rows


# --- commands and Python ---


def korean_stages() -> Iterator[str]:
    """The lines of a Korean table of the stages."""
    yield from ("| 단계 | 입력 | 출력(`artifacts/레시피/단계/`) | 예 |", "|---|---|---|---|")
    for stage in STAGES.values():
        _, reads, writes, _ = str(stage.help).split("\n\n")
        cells = (_plain(in_language(Message(paragraph), "ko")) for paragraph in (reads, writes))
        yield f"| `{stage.name}` | {' | '.join(cells)} | `{stage.help.example}` |"


def commands() -> Iterator[str]:
    """The help of each command, as parts of a page."""
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=f"korbert {name}", max_content_width=1_000, show_default=True)
        yield f"## {name}"
        yield f"```text\n{' '.join(command.get_usage(context).removeprefix('Usage: ').split())}\n```"
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            as_it_is = paragraph.removeprefix("\b\n")  # click's mark for a paragraph that must not be wrapped
            yield _plain(paragraph) if as_it_is == paragraph else f"```text\n{as_it_is}\n```"
        records = [option.get_help_record(context) for option in command.get_params(context)]
        rows = [f"| `{option}` | {_plain(about)} |" for option, about in filter(None, records) if about]
        yield "\n".join(["| option | what |", "|---|---|", *rows])


def _plain(text: str) -> str:
    """Plain text as Markdown, with special characters escaped."""
    return re.sub(r"([\[\]*_|])", r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")


def public_names() -> Iterator[str]:
    """A directive of mkdocstrings for each public name of the package."""
    for node in ast.parse(_text_of("korbert")).body:
        if isinstance(node, ast.ImportFrom):
            yield from (f"::: {_defined('korbert', alias.name)}" for alias in node.names)


def _defined(module: str, name: str) -> str:
    """The full name of an object where it is defined; re-exports in stubs and modules are followed."""
    for node in ast.parse(_text_of(module)).body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if (alias.asname or alias.name) == name:
                package = importlib.util.find_spec(module).parent
                if node.module is None:  # from . import name: a module
                    return f"{package}.{alias.name}"
                return _defined(importlib.util.resolve_name("." * node.level + node.module, package), alias.name)
    return f"{module}.{name}"


def _text_of(module: str) -> str:
    path = Path(importlib.util.find_spec(module).origin)
    stub = path.with_suffix(".pyi")
    return (stub if stub.exists() else path).read_text(encoding="utf-8")
