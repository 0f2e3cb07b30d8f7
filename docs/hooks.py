"""What MkDocs takes from the code and from the rest of the repository, so that no page repeats it.

- reference/commands.md: the commands, as click has them. reference/python.md: the public names of `korbert`.
- `<!-- settings: clean -->` in a page: a table of the keys of that section, from its pydantic fields.
- Pages outside docs/ (PAGES), and links between all of them as GitHub shows them.
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

import korbert
from korbert.tasks.kinds import KINDS
from pipelines.cli import cli
from pipelines.recipes.faults import model_in
from pipelines.stages.table import STAGES

ROOT = Path(__file__).resolve().parent.parent
PAGES = {  # a file of the repository -> its page
    "benchmarks/RESULTS.md": "results.md",
    "benchmarks/clean-scale.svg": "clean-scale.svg",
    "korbert/box/README.md": "model-card.md",
    "corpus/sample/README.md": "sample.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
OF_TASKS = {"nsmc": "classification", "korquad": "question-answering"}  # stages whose keys are those of a kind of task

_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")
_SETTINGS = re.compile(r"^<!-- settings: (\w+) -->$", re.MULTILINE)


# --- events of MkDocs ---


def on_files(files: Any, config: Any) -> None:
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "reference/commands.md", content="\n\n".join(commands())))
    files.append(File.generated(config, "reference/python.md", content="\n\n".join(public_names())))


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    name = page.file.src_uri
    source = next((source for source, made in PAGES.items() if made == name), f"docs/{name}")
    markdown = _SETTINGS.sub(lambda found: "\n".join(settings_table(found[1])), markdown)
    return _LINK.sub(lambda found: _link(found[1], source, name), markdown)


def on_post_page(output: str, page: Any, **_: object) -> str:
    """Korean pages say so, which chooses fonts, line breaks and the voice of a screen reader."""
    return output.replace('<html lang="en"', '<html lang="ko"', 1) if page.file.src_uri.startswith("ko/") else output


def _link(target: str, source: str, page: str) -> str:
    """The target of a link in a file of the repository, as the site needs it."""
    if target.startswith(("http", "mailto")):
        return target
    path = os.path.normpath(os.path.join(os.path.dirname(source), target))
    made = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
    return os.path.relpath(made, os.path.dirname(page) or ".") if made else target


# --- settings ---


def settings_table(section: str) -> Iterator[str]:
    """The lines of a table of a stage's keys; of tasks, those of all kinds."""
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
    """(key, default, description) of the keys of a section, tables inside it opened."""
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
    """The keys of `[tasks.NAME]`: the default of most kinds, and behind the description where kinds differ."""
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


def commands() -> Iterator[str]:
    """The parts of the page of commands: what `korbert COMMAND --help` says."""
    yield "# Commands"
    yield "What `korbert COMMAND --help` says, from the same source. `korbert COMMAND -h` is the same on the spot."
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=f"korbert {name}", max_content_width=1_000, show_default=True)
        yield f"## {name}"
        yield f"```text\n{' '.join(command.get_usage(context).removeprefix('Usage: ').split())}\n```"
        yield _plain(command.help or "").replace("\b\n", "")
        records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
        rows = [f"| `{option}` | {_plain(about)} |" for option, about in filter(None, records)]
        yield "\n".join(["| option | what |", "|---|---|", *rows])


def _plain(text: str) -> str:
    """Text of a terminal as Markdown: signs that would be read as marks are escaped."""
    return re.sub(r"([\[\]<>*_|])", r"\\\1", text)


def public_names() -> Iterator[str]:
    """The parts of the page of Python: each public name of the package, from the module that defines it."""
    stub = ast.parse(Path(korbert.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    yield "# Python"
    yield "The public names of `korbert`. All of them have types (`py.typed`), and load nothing before they are used."
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"::: korbert.{node.module}.{alias.name}"
