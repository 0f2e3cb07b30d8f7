"""`make messages`: what the code can say, in the gettext catalogues under korbert/locale, for translators.

Babel finds the messages and merges them into each `.po`, which keeps its translations; the `.mo` that korbert reads is
written next to it. Catalogue `korbert` holds what Python says, `page` what the scripts of a page say, `click` what that
library says about a command line. `messages --check` changes nothing and lists what is missing.
"""

import ast
import inspect
import io
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import click
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from fastapi.openapi.utils import get_openapi

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ROOT / "korbert" / "locale"
ERRORS = (
    "SettingsError",
    "ArtifactError",
    "CorpusError",
    "PartlyFailed",
    "ModelError",
    "ModelFailed",
    "ProcessLost",
    "KorbertError",
)
_PLURALS = {"counted": (1, 2), "ngettext": (1, 2)}  # keywords of singular and plural
KEYWORDS = {"Message": (1, 2), **dict.fromkeys(ERRORS, (1,))}
Found = tuple[int, str, Any, list[str]]
"""A message for Babel: line, keyword (as in Jinja templates), (singular, plural) or the one text, comments."""


def of_python(file: IO[bytes], _keywords: object, _comments: object, options: object) -> Iterator[Found]:
    """The templates of `Message(..)` and of errors. Babel's own reader of Python joins no lines of an f-string."""
    for node in ast.walk(ast.parse(file.read())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        places = KEYWORDS.get(name, ())
        texts = [argument.value for argument in node.args[: len(places)] if isinstance(argument, ast.Constant)]
        if texts and all(isinstance(text, str) and text for text in texts):
            if len(texts) == 1:
                yield node.lineno, "_", texts[0], []
            else:
                yield node.lineno, "counted", tuple(texts), []


def catalogues() -> dict[str, Catalog]:
    """What the code says today, by domain, without translations."""
    found = {domain: Catalog(project="korbert", header_comment=_HEAD) for domain in ("korbert", "page", "click")}
    methods = [("**/templates/**.html", "jinja2.ext:babel_extract"), ("**.py", of_python)]
    for folder in ("korbert", "corpus", "pipelines"):
        for path, _, message, _, _ in extract_from_dir(ROOT / folder, methods, keywords={"_": None, **_PLURALS}):
            found["korbert"].add(message, locations=[(f"{folder}/{path}", None)])
    for place, text in (*of_tables(), *help_texts(), *of_service()):
        found["korbert"].add(text, locations=[(place, None)])
    package = Path(click.__file__).parent
    for path, _, message, _, _ in extract_from_dir(package, [("**.py", "python")], keywords={"_": None, **_PLURALS}):
        found["click"].add(message, locations=[(f"click/{path}", None)])
    scripts = ROOT / "pipelines" / "reports" / "templates"
    calls_in_templates = {"**.js": {"parse_template_string": True}}
    for path, _, message, _, _ in extract_from_dir(
        scripts, [("**.js", "javascript")], calls_in_templates, keywords={"t": None}
    ):
        found["page"].add(message, locations=[(path, None)])
    return found


_HEAD = "# Messages of korbert. `make messages` writes this file; only the msgstr are written by hand."


def of_tables() -> Iterator[tuple[str, str]]:
    """(file, text) of the names and sentences that stand in TOML files."""
    figures = "pipelines/artifacts/figures.toml"
    tables = tomllib.loads((ROOT / figures).read_text(encoding="utf-8"))
    yield from ((figures, text) for table in ("labels", "models") for text in tables[table].values())
    sets = "korbert/tasks/datasets.toml"
    known = tomllib.loads((ROOT / sets).read_text(encoding="utf-8")).values()
    yield from ((sets, entry[key]) for entry in known for key in ("about", "note", "licence") if key in entry)
    for path in sorted((ROOT / "pipelines" / "recipes").glob("*.toml")):
        sections = tomllib.loads(path.read_text(encoding="utf-8")).values()
        notes = [section["note"] for section in sections if isinstance(section, dict) and "note" in section]
        yield from ((f"pipelines/recipes/{path.name}", note) for note in notes)


def help_texts() -> Iterator[tuple[str, str]]:
    """(command, text) of what help says: headings, paragraphs, options and their brackets."""
    from korbert.pipelines import cli

    for text in (*cli.GROUPS, "Options", "Show this message and exit.", "[required]"):
        yield "korbert --help", text
    for name, command in {"korbert": cli.cli, **cli.cli.commands}.items():
        yield name, cli.summary(command)
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            lines = paragraph.split("\n")
            yield name, lines[1] if lines[0] == "\b" else " ".join(lines)  # the head of examples
        for option in command.params:
            if isinstance(option, click.Option):
                yield from ((name, part) for part in (option.help or "").split("  "))


def of_service() -> Iterator[tuple[str, str]]:
    """(route or schema, text) of what the page /docs says of the service."""
    from korbert.pipelines.service.refusals import CODES
    from korbert.pipelines.service.routes import ROUTES

    document = get_openapi(title="", version="", routes=ROUTES)
    for path, methods in document["paths"].items():
        yield from ((path, route["description"]) for route in methods.values())
    for name, schema in document["components"]["schemas"].items():
        fields = schema.get("properties", {}).values()
        yield from ((name, field["description"]) for field in fields if "description" in field)
    yield from (("status codes", meaning) for meaning in CODES.values())


def merged(domain: str, template: Catalog) -> Catalog:
    """The Korean catalogue of a domain with the messages of today; translations of the same messages are kept."""
    path = LOCALES / "ko" / "LC_MESSAGES" / f"{domain}.po"
    catalogue = Catalog(locale="ko")
    if path.exists():
        catalogue = read_po(io.BytesIO(path.read_bytes()), locale="ko")
    catalogue.update(template, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    return catalogue


def written(catalogue: Catalog) -> dict[str, bytes]:
    """The two files of a catalogue, by suffix. The same messages give the same bytes."""
    catalogue.creation_date = catalogue.revision_date = datetime(2026, 1, 1, tzinfo=UTC)  # not in the files
    po, mo = io.BytesIO(), io.BytesIO()
    write_po(po, catalogue, width=120, sort_output=True, omit_header=False, include_lineno=False)
    write_mo(mo, catalogue)
    lines = po.getvalue().split(b"\n")
    dated = (b'"POT-Creation-Date', b'"PO-Revision-Date', b'"Generated-By', b'"Last-Translator')
    return {".po": b"\n".join(line for line in lines if not line.startswith(dated)), ".mo": mo.getvalue()}


def faults() -> Iterator[str]:
    """What is missing in the catalogues, a line each: a translation, a field, or files of today."""
    for domain, template in catalogues().items():
        catalogue = merged(domain, template)
        for message in catalogue:
            words = [message.string] if isinstance(message.string, str) else message.string or [""]
            if message.id and not all(words):
                yield f"{domain}.po: no translation of {message.id!r}"
        for suffix, content in written(catalogue).items():
            path = LOCALES / "ko" / "LC_MESSAGES" / f"{domain}{suffix}"
            if not path.exists() or path.read_bytes() != content:
                yield f"{path.relative_to(ROOT)}: is not of today's code: run make messages"


def main() -> None:
    if "--check" in sys.argv[1:]:
        found = list(faults())
        print(*found, sep="\n")
        sys.exit(bool(found))
    for domain, template in catalogues().items():
        for suffix, content in written(merged(domain, template)).items():
            (LOCALES / "ko" / "LC_MESSAGES" / f"{domain}{suffix}").write_bytes(content)


if __name__ == "__main__":
    main()
