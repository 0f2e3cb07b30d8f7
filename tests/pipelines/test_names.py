"""Names in NFC and in NFD are one name: macOS writes the second, keyboards the first."""

import itertools
import unicodedata
from pathlib import Path

import pytest

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.readers import chunks, rows
from korbert.corpus.readers.files import find_files
from korbert.names import on_disk
from korbert.pipelines.recipes.loading import load
from korbert.pipelines.runs.sources import Sources
from korbert.system import JsonObject

RECIPE = """
[[clean.sources]]
name = "films"
path = "말뭉치/영화.jsonl"

[[clean.evaluation]]
name = "test"
path = "말뭉치/시험*.tsv"

[analyze]
user_words = "사전.tsv"

[pretrain]
phases = [{ length = 64, steps = 10 }]
encoder = { hidden_size = 32, num_hidden_layers = 1, num_attention_heads = 2, intermediate_size = 64 }
optimizer = { learning_rate = 1e-3 }

[tasks.feeling]
train = "말뭉치/학습*.csv"
test = "말뭉치/시험.tsv"
"""
FORMS = pytest.mark.parametrize(("written", "stored"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFC", "NFC")])


def _write(path, text, form):
    path = Path(unicodedata.normalize(form, str(path)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@FORMS
def test_a_recipe_finds_its_files(tmp_path, written, stored):
    names = ["말뭉치/영화.jsonl", "말뭉치/시험.tsv", "사전.tsv", "말뭉치/학습1.csv", "말뭉치/학습2.csv"]
    files = {name: _write(tmp_path / name, "text\tlabel\n글\t1\n", stored) for name in names}
    recipe = load(str(_write(tmp_path / "recipe.toml", unicodedata.normalize(written, RECIPE), "NFC")))
    sources = Sources(recipe, tmp_path, tmp_path / "artifacts", [])
    of_roles = [role for stage in ("clean", "analyze", "tasks.feeling") for role in sources.files(stage).values()]
    assert sorted(itertools.chain(*of_roles)) == sorted([*files.values(), files["말뭉치/시험.tsv"]])
    described: JsonObject = sources.describe("tasks.feeling")
    assert [file["name"] for file in described["train"]] == ["말뭉치/학습1.csv", "말뭉치/학습2.csv"]  # in NFC


@FORMS
def test_the_command_line_finds_its_files(tmp_path, written, stored, command):
    _write(tmp_path / "내 자료" / "글.txt", "학교에 갔다.\n", stored)
    given = unicodedata.normalize(written, str(tmp_path / "내 자료" / "글.txt"))
    assert "학교" in command("tokenize", "korbert-mini", "--input", given).out
    _write(tmp_path / "영화.toml", 'extends = "바탕.toml"\n', stored)
    _write(tmp_path / "바탕.toml", 'extends = "demo"\n', stored)
    command("status", unicodedata.normalize(written, str(tmp_path / "영화")), "--root", tmp_path / "out")


@FORMS
def test_globs_and_folders_and_ids(tmp_path, written, stored):
    for name in ("자료/가/나.txt", "자료/가/다.txt", "자료/라.md", "자료 [1]/마.txt"):
        _write(tmp_path / name, "첫 줄\n", stored)

    def named(pattern):
        found = find_files(unicodedata.normalize(written, pattern), tmp_path)
        return [unicodedata.normalize("NFC", path.relative_to(tmp_path).as_posix()) for path in found]

    assert named("자료/가/나.txt") == ["자료/가/나.txt"]
    assert named("자료") == ["자료/가/나.txt", "자료/가/다.txt", "자료/라.md"]
    assert named("자료 [1]") == ["자료 [1]/마.txt"]
    for pattern in ("자료/**/?.txt", "자료/*/[가-힣].txt", "**/가/*"):
        assert named(pattern) == ["자료/가/나.txt", "자료/가/다.txt"]
    assert len(find_files(f"../{tmp_path.name}/자료/*.md", tmp_path)) == 1
    composed, decomposed = (_write(tmp_path / "강.txt", form, form) for form in ("NFC", "NFD"))
    assert (on_disk(composed), on_disk(decomposed)) == (composed, decomposed)  # what is there is taken as it is
    assert on_disk(tmp_path / "산.txt") == tmp_path / "산.txt"
    assert on_disk(Path("없는 폴더/산.txt")) == Path("없는 폴더/산.txt")
    assert named("없는*/것") == named("자료/라.md/*가") == []
    files = find_files(unicodedata.normalize(written, "자료/가"), tmp_path)
    found = [row for chunk in chunks(SourceSettings(name="s", path="x"), files, 1) for row in rows(chunk)]
    assert [row.id for row in found] == ["나.txt:1", "다.txt:1"]
