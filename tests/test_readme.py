"""What the READMEs and the other pages show: commands, code, paths and links."""

import ast
import importlib
import json
import re
import shlex
import tomllib
from contextlib import nullcontext
from pathlib import Path

import click
import pytest

import korbert
from korbert.corpus.corpus_settings import CleanSettings, SourceSettings
from korbert.corpus.readers import chunks, rows
from korbert.pipelines.cli import cli
from korbert.pipelines.recipes import loading
from korbert.pipelines.stages.table import STAGES
from korbert.system.durable import sha256_of
from korbert.tasks.kinds.sections import KorquadSection
from tests.pipelines.service.started import started

ROOT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.ko.md")
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES = (*READMES, "CONTRIBUTING.md", "CHANGELOG.md", *DOCS)
ON_THE_DEMO = ("docs/how-to/recipes.md", "docs/how-to/looking.md", "docs/how-to/serving.md")  # pages with code for it

SERVED = "http://localhost:8000"

_FENCE = re.compile(r"^```(\w*)(?: title=\S+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"^```python\n((?:(?!```).)*)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ROOMS = ("korbert", "corpus", "pipelines")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def parts_of(page):
    """The language and the text of each block, in order."""
    return _FENCE.findall(text_of(page))


def blocks(page, language):
    return [body for name, body in parts_of(page) if name == language]


def shell_lines(page):
    """Lines of shell blocks without their comments, and what inline code shows of korbert and make."""
    shown = [line for body in blocks(page, "sh") for line in body.replace("\\\n", "").splitlines()]
    shown += _SPAN.findall(_FENCE.sub("", text_of(page)))
    lines = (shlex.join(shlex.split(line, comments=True)) for line in shown if line.startswith(("korbert ", "make ")))
    return [line for line in lines if line]


COMMANDS = sorted({line for page in PAGES for line in shell_lines(page) if line.startswith("korbert ")})
TARGETS = sorted(
    {
        word
        for page in PAGES
        for line in shell_lines(page)
        for word in line.split()[1:]
        if "make" in line and word[0] != "-"
    }
)
BLOCKS = [(page, number) for page in PAGES for number in range(len(blocks(page, "python")))]
SHOWN = sorted({shown for page in PAGES for shown in _SHOWN.findall(text_of(page))})


@pytest.mark.parametrize("line", COMMANDS)
def test_command_lines_parse(line, here, monkeypatch):
    """Of a command named in passing, only the name."""
    if len(line.split()) == 2:
        assert line.split()[1] in cli.commands
        return
    monkeypatch.delenv("KORBERT_DATA", raising=False)
    monkeypatch.setenv("KORBERT_LANG", "en")  # --lang of a line changes it
    for name in (
        "reviews.txt",
        "sentences.txt",
        "test.csv",
        "messages.csv",
    ):  # files that click opens while it reads a command line
        (here / name).touch()
    context = click.Context(cli, **cli.context_settings)
    name, subcommand, rest = cli.resolve_command(context, shlex.split(line)[1:])
    with subcommand.make_context(name, rest, parent=context):  # click.UsageError if it is not one of korbert's
        pass


@pytest.mark.parametrize("page", READMES)
def test_the_new_recipe_of_the_readme_is_one(page, here, command):
    (new,) = (line for line in shell_lines(page) if line.startswith("korbert new "))
    path = Path(f"{new.split()[-1]}.toml")
    assert f"korbert run {path}" in command(*shlex.split(new)[1:]).out
    assert list(Path().iterdir()) == [path]
    assert f"korbert run {path}" in shell_lines(page)

    recipe = loading.load(str(path))
    assert recipe.name == path.stem
    optional = {name for name, stage in STAGES.items() if stage.optional}
    assert {stage for stage in STAGES if recipe.section(stage) is None} == optional - {"pretrain"}
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE), encoding="utf-8")  # the rest of it
    recipe = loading.load(str(path))
    assert all(recipe.section(stage) is not None for stage in STAGES)

    mine = path.read_bytes()
    assert command(*shlex.split(new)[1:], code=2).err.startswith(f"korbert: {path}: already exists")
    assert path.read_bytes() == mine


def test_make_targets_exist():
    makefile = text_of("Makefile")
    assert {"demo", "test"} <= set(TARGETS)
    assert [target for target in TARGETS if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_both_readmes_show_the_same():
    english, korean = (shell_lines(page) for page in READMES)
    assert english == korean
    first, second = ([ast.dump(ast.parse(body)) for body in blocks(page, "python")] for page in READMES)
    assert first == second
    assert max(len(text_of(page).split()) for page in READMES) <= 1_300


@pytest.mark.parametrize("korean", [True, False])
def test_every_command_is_shown_at_work(korean):
    pages = [page for page in DOCS if page.startswith("docs/ko/") == korean]
    named = {line.split()[1] for page in pages for line in shell_lines(page) if line.startswith("korbert ")}
    generated = {*STAGES, "report"}  # the help of a stage has an example, and the pages of both languages show it
    assert set(cli.commands) - named <= generated


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/ko/guide.md"])
def test_the_file_tree_is_there(page):
    (tree,) = (body for body in blocks(page, "text") if body.startswith("korbert/"))
    paths = []
    for line in tree.splitlines():
        name = line.split()[0]
        paths.append(paths[-1].split("/")[0] + "/" + name if line.startswith(" ") else name)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).is_dir()] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_the_files_of_the_map_are_there(page):
    named = [name for name in _SPAN.findall(text_of(page)) if re.fullmatch(r"[\w/.]+(\.py|/)", name)]
    assert len(named) > 20
    files = [path for package in (*_ROOMS, "tests") for path in (ROOT / package).rglob("*.py")]
    known = [path.relative_to(ROOT).as_posix() for path in files]
    known += [str(Path(path).parent) + "/" for path in known]
    generated = ("artifacts/", "STAGE", "output/", "documents/", "dropped/", "site/", "dist/")
    there = [name for name in named if (ROOT / name).exists() or any(path.endswith(f"/{name}") for path in known)]
    assert [name for name in {*named} - {*there} if not name.startswith(generated) and "NAME" not in name] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in _LINK.findall(_FENCE.sub("", text_of(page))):
        name, _, heading = link.partition("#")
        if name.startswith("https://"):
            continue  # no test reaches the network
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), link
        lines = target.read_text(encoding="utf-8").splitlines() if heading else ()
        headings = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
        assert heading in ["", *(re.sub(r"[^\w -]", "", line).replace(" ", "-") for line in headings)], link


@pytest.mark.parametrize("page", PAGES)
def test_lines_are_short_and_name_no_machine(page):
    text = text_of(page)
    assert [line for line in text.splitlines() if len(line) > 150] == []
    assert re.findall(r"(?<!\w)/(?:home|root|work)/|\d+\.\d+\.\d+\.\d+", text) == []


@pytest.mark.parametrize(("page", "number"), BLOCKS)
def test_python_blocks_import_what_is_there(page, number):
    for node in ast.walk(ast.parse(blocks(page, "python")[number])):
        if isinstance(node, ast.Import):
            assert all(importlib.import_module(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "korbert":
            assert hasattr(importlib.import_module("korbert"), node.attr)


@pytest.mark.parametrize(("code", "printed"), SHOWN)
def test_python_prints_what_is_shown(code, printed, capsys):
    exec(compile(code, "a page", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == printed


@pytest.mark.slow
@pytest.mark.parametrize(("page", "number"), [block for block in BLOCKS if block[0] in ON_THE_DEMO])
def test_python_blocks_run_on_the_demo(page, number, monkeypatch, capsys):
    code = blocks(page, "python")[number]
    for folder in re.findall(r'"(artifacts/demo/[^"]+)"', code):
        if not (ROOT / folder).is_dir():
            pytest.skip(f"{folder} is absent: `make demo` makes it")
    monkeypatch.chdir(ROOT)
    with started() if SERVED in code else nullcontext() as service:
        names = {"__name__": "page"}
        code_here = code.replace(SERVED, service.address) if service else code
        exec(compile(code_here, f"{page}, block {number}", "exec"), names)
        if "client" in names:
            names["client"].close()
    assert len(capsys.readouterr().out.splitlines()) == code.count("print(")


def test_the_reviews_of_the_data_page_can_be_read(here):
    clone = here / "nsmc-master"
    (clone / "raw").mkdir(parents=True)
    (clone / "ratings_test.txt").write_text("id\tdocument\tlabel\n7\t시험\t1\n", encoding="utf-8")
    reviews = [{"review_id": str(n), "movie_id": "10001", "review": f"{n} 번째 영화평"} for n in (7, 8, 8, 9)]
    (clone / "raw" / "10001.json").write_text(json.dumps(reviews), encoding="utf-8")
    exec(blocks("docs/data.md", "python")[0], {"__name__": "data"})

    source = SourceSettings(name="reviews", path="corpus/reviews.jsonl.zst")
    read = list(chunks(source, [here / source.path], 1 << 20))
    texts = [(row.id, row.text, row.reason) for chunk in read for row in rows(chunk)]
    assert texts == [("review-8", "8 번째 영화평", None), ("review-9", "9 번째 영화평", None)]


def test_hashes_of_the_data_page_are_those_of_the_folder(korbert_data):
    table = re.findall(r"^\| `([^`]+)` \| ([\d,]+) \| `([0-9a-f]{64})` \|$", text_of("docs/data.md"), re.MULTILINE)
    assert len(table) == 11
    for name, size, digest in table:
        path = korbert_data / name
        assert (f"{path.stat().st_size:,}", sha256_of(path)) == (size, digest), name


@pytest.mark.parametrize("text", sorted({text for page in PAGES for text in blocks(page, "toml") if "sources" in text}))
def test_recipes_of_pages_are_recipes(text, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    assert loading.load(str(path)).section("clean").sources


def test_recipes_of_the_data_page_are_recipes():
    korquad, evaluation = (tomllib.loads(toml) for toml in blocks("docs/data.md", "toml"))
    assert KorquadSection.model_validate(korquad["korquad"]).test == "korquad1/KorQuAD_v1.0_dev.json"
    settings = CleanSettings.model_validate({"sources": [{"name": "mine", "path": "x"}], **evaluation["clean"]})
    assert settings.evaluation == loading.load("small").section("clean").evaluation


def test_the_licence_is_whole_and_the_changelog_has_this_version():
    text = text_of("LICENSE")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert re.findall(r"Copyright (?!\[)\S*\d{4}.*", text) == []
    assert f"## {korbert.__version__}" in text_of("CHANGELOG.md")
