"""A recipe says what it means, or is refused with the nearest right key."""

from pathlib import Path

import pytest

from korbert.errors import SettingsError
from pipelines import recipes

MINIMAL = """
seed = 3
[[clean.sources]]
name = "mine"
path = "*.jsonl"
[pretrain]
phases = [{ length = 64, steps = 10 }]
[pretrain.encoder]
hidden_size = 32
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 64
[pretrain.optimizer]
learning_rate = 1e-3
"""


def _write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["demo", "small"])
def test_shipped_recipes_load(name: str) -> None:
    assert recipes.load(name).name == name


def test_the_template_loads() -> None:
    assert recipes.load(str(recipes.SHIPPED / "template" / "recipe.toml")).name == "recipe"


def test_shared_settings_reach_the_stages_and_can_be_overruled(tmp_path: Path) -> None:
    given = _write(tmp_path, MINIMAL + '[vocab]\nseed = 4\n[nsmc]\ntrain = "a"\ntest = "b"\n')
    recipe = recipes.load(given, ["threads=1"])
    assert (recipe.shard.seed, recipe.vocab.seed, recipe.pretrain.seed) == (3, 4, 3)
    assert recipe.nsmc is not None
    assert recipe.nsmc.threads == recipe.pretrain.threads == 1
    assert recipe.nsmc.seeds == (3,)


def test_a_source_without_documents_makes_no_pairs(tmp_path: Path) -> None:
    single = '\n[[clean.sources]]\nname = "comments"\npath = "c.txt"\npairs = false\n'
    assert recipes.load(_write(tmp_path, MINIMAL + single)).pretrain.pairs.without == ("comments",)
    assert recipes.load(_write(tmp_path, MINIMAL)).pretrain.pairs.without == ()
    given = _write(tmp_path, MINIMAL + single + "[pretrain.pairs]\nwithout = []\n")
    assert recipes.load(given).pretrain.pairs.without == ()


@pytest.mark.parametrize(
    ("change", "read"),
    [("vocab.size=8000", 8000), ("vocab.mark=eojeol", "eojeol"), ("vocab.words=['카카오톡']", ("카카오톡",))],
)
def test_set_changes_one_value(tmp_path: Path, change: str, read: object) -> None:
    recipe = recipes.load(_write(tmp_path, MINIMAL), [change])
    assert getattr(recipe.vocab, change.split("=")[0].split(".")[1]) == read


@pytest.mark.parametrize(
    ("text", "changes", "said"),
    [
        (MINIMAL, ["vocab.sise=1"], r"mine\.toml: vocab\.sise: no such key \(did you mean size\?\)"),
        (MINIMAL, ["vocabs.size=1"], r"vocabs: no such key \(did you mean vocab\?\)"),
        (MINIMAL, ["pretrain.encoder.hiden_size=1"], r"did you mean hidden_size\?"),
        (MINIMAL, ["vocab.size=many"], r"vocab\.size: .*not 'many'"),
        (MINIMAL, ["size"], r"--set size: give it as section\.key=value"),
        (MINIMAL, ["pretrain.encoder.max_position_embeddings=32"], r"a phase has length 64"),
        ("seed = \nvocab = 3", [], r"mine\.toml: is not TOML: .*line 1"),
        (MINIMAL.replace("[pretrain.optimizer]\nlearning_rate = 1e-3", ""), [], r"pretrain\.optimizer: is missing"),
        (MINIMAL + "[korquad]\nmax_length = 64\n", [], r"korquad: max_length 64 leaves"),
        (MINIMAL + "[korquad]\nmax_length = 600\n", [], r"korquad\.max_length 600 is more than .* 512: lower"),
        (MINIMAL + "[nsmc]\n", ["nsmc.max_length=600"], r"nsmc\.max_length 600 is more than .* 512: lower"),
        ('name = "other"\n' + MINIMAL, [], r"mine\.toml: name: no such key: a recipe is named by its file"),
        (MINIMAL, ["heldout_share=0"], r"heldout_share: .*greater than 0"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, changes: list[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        recipes.load(_write(tmp_path, text), changes)


def test_a_folder_of_the_same_name_hides_no_shipped_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    assert recipes.load("demo").name == "demo"


@pytest.mark.parametrize(("given", "said"), [("dmo", r"did you mean demo\?"), ("nowhere.toml", "no such file")])
def test_a_recipe_that_is_not_there(given: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        recipes.load(given)
