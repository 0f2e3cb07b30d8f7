"""A recipe says what it means, or is refused with the nearest right key."""

import re
import shutil
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from korbert.errors import SettingsError
from korbert.folders import bundled, model_folder
from korbert.modeling.files.growing import check_encoder
from korbert.pipelines.recipes import files, loading, template
from korbert.pipelines.stages.table import STAGES

CLEAN = '[[clean.sources]]\nname = "mine"\npath = "*.jsonl"\n'
MINIMAL = f"""
seed = 3
{CLEAN}
[pretrain]
phases = [{{ length = 64, steps = 10 }}]
encoder = {{ hidden_size = 32, num_hidden_layers = 1, num_attention_heads = 2, intermediate_size = 64 }}
[pretrain.optimizer]
learning_rate = 1e-3
"""


def _write(folder, text):
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", sorted(path.stem for path in Path(loading.__file__).parent.glob("recipes/*.toml")))
def test_shipped_recipes_load(name):
    recipe = loading.load(name)
    assert recipe.name == name
    for stage in recipe.stages:
        for folder, _ in recipe.folders(stage).values():  # in the box, or DATA/RECIPE/STAGE
            other, _, made = folder.partition("/")
            assert bundled(folder) or made in loading.load(other).stages, folder


@pytest.mark.parametrize(("name", "rate", "warmup", "beta2", "rows", "steps", "share_at_512"), [
    ("base", 1e-4, 10_000, 0.999, 256, 1_000_000, 0.1), ("large", 1e-4, 10_000, 0.999, 256, 1_000_000, 0.1),
    ("roberta", 6e-4, 24_000, 0.98, 8_192, 500_000, 1), ("electra", 5e-4, 10_000, 0.999, 128, 1_000_000, 0),
    ("albert", 6e-4, 6_000, 0.98, 4_096, 125_000, 1),
])  # fmt: skip
def test_recipes_of_papers_have_their_settings(name, rate, warmup, beta2, rows, steps, share_at_512):
    """Devlin et al. 2018, A.2; Liu et al. 2019, table 9; Clark et al. 2020, table 6; Lan et al. 2020, 4.1."""
    section = loading.load(name).section("pretrain")
    optimizer = section.optimizer
    assert sum(phase.steps for phase in section.phases) == steps
    assert {phase.batch_size for phase in section.phases} == {rows}
    assert sum(phase.steps for phase in section.phases if phase.length == 512) == share_at_512 * steps
    assert round(optimizer.warmup_share * steps) == warmup
    assert (optimizer.learning_rate, optimizer.beta2, optimizer.epsilon) == (rate, beta2, 1e-6)
    assert (optimizer.weight_decay, optimizer.max_grad_norm) == (0.01, 1.0)
    dropout = 0.0 if name == "albert" else 0.1
    assert (section.encoder.architecture, section.encoder.hidden_dropout_prob) == ("bert", dropout)
    assert section.encoder.hidden_size == 64 * section.encoder.num_attention_heads


@pytest.fixture
def new(here, command):
    """(options) -> the recipe that `korbert new` writes, in place of an earlier one."""

    def made(*options):
        (here / "mine.toml").unlink(missing_ok=True)
        command("new", "mine", *options)
        return here / "mine.toml"

    return made


def test_the_long_recipe_is_the_short_one_with_every_key(new):
    path = new()
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    short = loading.load(str(path))
    path = new("--all")
    assert loading.load(str(path)).sections == short.sections

    text = path.read_text(encoding="utf-8")
    defaults = re.sub(r"^# (\w+ = .+)$", r"\1", text, flags=re.MULTILINE)  # every one of them, set
    defaults = re.sub(r"^\w+ = ## (needed|none)$", "", defaults, flags=re.MULTILINE)
    assert "null" not in defaults
    kept = "\n".join(
        table for table in re.split(r"^(?=# \[|\[)", defaults, flags=re.MULTILINE) if not table.startswith("# [")
    )
    path.write_text(kept, encoding="utf-8")
    assert loading.load(str(path)).sections == short.sections
    for stage in STAGES.values():
        assert [
            key for key in _keys(stage.settings_class) if not re.search(rf"^(# )?{key} =", text, re.MULTILINE)
        ] == []


def _keys(model):
    for name, field in model.model_fields.items():
        inner = loading.model_in(field.annotation)
        if inner is not None:
            yield from _keys(inner)
        elif not field.exclude:
            yield name


def test_a_recipe_that_continues_a_model(new):
    short = loading.load(str(new("--from", "korbert-mini")))
    vocab = short.section("vocab")
    pretrain = short.section("pretrain")
    assert (vocab.tokenizer, pretrain.init) == ("korbert-mini", "korbert-mini")
    check_encoder(pretrain.encoder.config(vocab_size=1), model_folder("korbert-mini"))
    assert loading.load(str(new("--from", "korbert-mini", "--all"))).sections == short.sections


def test_a_model_is_named_as_the_recipe_finds_it(here, new):
    (here / "models").mkdir()
    (here / "models" / "mini").symlink_to(model_folder("korbert-mini"))
    text = new("--from", "models/mini").read_text(encoding="utf-8")
    assert f'init = "{model_folder("korbert-mini")}"' in text  # outside the recipe's folder
    (here / "models" / "mini").unlink()
    shutil.copytree(model_folder("korbert-mini"), here / "models" / "mini")
    assert 'init = "models/mini"' in new("--from", "models/mini").read_text(encoding="utf-8")


def test_a_model_of_the_hub_keeps_its_name(here, monkeypatch, command):
    monkeypatch.setattr("korbert.hub.download", lambda name: model_folder("korbert-mini"))
    (here / "sub").mkdir()
    command("new", "sub/mine", "--from", "hf:USER/NAME")
    text = (here / "sub" / "mine.toml").read_text(encoding="utf-8")
    assert text.count('"hf:USER/NAME"') == 2


@hypothesis.given(st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
))  # fmt: skip
def test_values_are_read_as_they_were_written(value):
    raw = {}
    files.apply_change(raw, f"a.b={template.as_toml(value)}")
    assert raw == {"a": {"b": value}}
    assert repr(raw["a"]["b"]) == repr(value)


def test_a_recipe_that_cannot_continue_is_not_written(here, command):
    heads = "without pretraining heads: name a pretrained model"
    assert heads in command("new", "mine", "--from", "korbert-mini-nsmc", code=2).err
    assert "absent: no such folder" in command("new", "mine", "--from", "absent", code=2).err
    assert list(here.iterdir()) == []


def test_sections_are_asked_for_when_they_are_needed(tmp_path):
    recipe = loading.load(_write(tmp_path, CLEAN))
    optional = [name for name, stage in STAGES.items() if stage.optional]
    assert [stage for stage, section in recipe.sections.items() if section is None] == optional
    assert recipe.settings("vocab") == loading.load(_write(tmp_path, MINIMAL), ["seed=0"]).settings("vocab")


def test_shared_settings_reach_the_stages_and_can_be_overruled(tmp_path):
    given = _write(tmp_path, MINIMAL + '[vocab]\nseed = 4\n[shard]\nseed = 4\n[nsmc]\ntrain = "a"\ntest = "b"\n')
    recipe = loading.load(given, ["threads=1"])
    assert (recipe.section("shard").seed, recipe.section("vocab").seed, recipe.section("pretrain").seed) == (4, 4, 3)
    assert recipe.section("nsmc") is not None
    assert recipe.section("nsmc").threads == recipe.section("pretrain").threads == 1
    assert recipe.section("nsmc").seeds == (3,)


def test_a_source_without_documents_makes_no_pairs(tmp_path):
    single = '\n[[clean.sources]]\nname = "comments"\npath = "c.txt"\npairs = false\n'
    overruled = single + "[pretrain.pairs]\nwithout = []\n"
    for more, without in ((single, ("comments",)), ("", ()), (overruled, ())):
        assert loading.load(_write(tmp_path, MINIMAL + more)).section("pretrain").pairs.without == without


@pytest.mark.parametrize(("change", "of", "read"), [
    ("vocab.size=8000", lambda recipe: recipe.section("vocab").size, 8000),
    ("vocab.mark=eojeol", lambda recipe: recipe.section("vocab").mark, "eojeol"),
    ("vocab.words=['카카오톡']", lambda recipe: recipe.section("vocab").words, ("카카오톡",)),
    ("pretrain.phases.0.steps=7", lambda recipe: recipe.section("pretrain").phases[0].steps, 7),
])  # fmt: skip
def test_set_changes_one_value(tmp_path, change, of, read):
    assert of(loading.load(_write(tmp_path, MINIMAL), [change])) == read


@pytest.mark.parametrize(("text", "changes", "said"), [
    (MINIMAL, ["vocab.sise=1"], r"mine\.toml: vocab\.sise: no such key \(did you mean size\?\)"),
    (MINIMAL, ["vocabs.size=1"], r"vocabs: no such key \(did you mean vocab\?\)"),
    (MINIMAL, ["pretrain.encoder.hiden_size=1"], r"did you mean hidden_size\?"),
    (MINIMAL, ["pretrain.encoder.architecture=electra"],
     r"encoder\.architecture: .*'bert' or 'modern'.* not 'electra'"),
    (MINIMAL, ["pretrain.steps=7"], r"no such key \(did you mean pretrain\.phases\.0\.steps\?\)"),
    (MINIMAL, ["pretrain.learning_rate=1"], r"no such key \(did you mean pretrain\.optimizer\.learning_rate\?\)"),
    (MINIMAL, ["vocab.size=many"], r"vocab\.size: .*not 'many'"),
    (MINIMAL, ["size"], r"settings size: write it as section\.key=value"),
    (MINIMAL, ["pretrain.encoder.max_position_embeddings=32"], r"a phase has length 64"),
    ("seed = \nvocab = 3", [], r"mine\.toml: is not TOML: .*line 1"),
    (MINIMAL.replace("[pretrain.optimizer]\nlearning_rate = 1e-3", ""), [], r"pretrain\.optimizer: is missing"),
    (MINIMAL + "[korquad]\nmax_length = 64\n", [], r"korquad: max_length 64 leaves"),
    (MINIMAL + "[korquad]\nmax_length = 600\n", [], r"korquad\.max_length 600 is more than .* 512: lower"),
    (MINIMAL + "[nsmc]\n", ["nsmc.max_length=600"], r"nsmc\.max_length 600 is more than .* 512: lower"),
    ('name = "other"\n' + MINIMAL, [], r"mine\.toml: name: no such key: a recipe is named after its file"),
    (MINIMAL, ["heldout_share=0"], r"heldout_share: .*greater than 0"),
    (MINIMAL.replace("steps = 10", "steps = 0"), [], r"pretrain\.phases\.0\.steps: .*greater than or equal to 1"),
    (MINIMAL, ["pretrain.head.kind=sampled", "vocab.size=4096"],
     r"mine\.toml: pretrain\.head\.negatives 4096: the vocabulary has at most 4096 entries \(vocab\.size\): "),
    (MINIMAL, ["pretrain.optimizer.schedule=often"], r"pretrain\.optimizer\.schedule: .*'linear' or 'wsd'"),
    (MINIMAL, ["shard.seed=5"], r"shard\.seed 5 is not vocab\.seed 3, so that held-out documents would be counted"),
    (MINIMAL, ["pretrain.shares={wiki=-0.5}"], r"pretrain\.shares\.wiki: .*greater than or equal to 0"),
    (MINIMAL, ["vocab.add=9"], r"vocab: add 9 adds words to an existing tokenizer: set tokenizer, or"),
    (MINIMAL, ["vocab.tokenizer=x", "vocab.size=999"], r"vocab: size cannot be set with tokenizer 'x', which has"),
    (MINIMAL, ["vocab.tokenizer=x", "vocab.mark=none"], r"vocab: mark cannot be set with tokenizer 'x'"),
    (MINIMAL, ["vocab.tokenizer=x", "vocab.min_count=2"], r"vocab: min_count cannot be set with tokenizer 'x'"),
    (CLEAN + "[nsmc]\n", [], r"pretrain: is missing, and nsmc reads it: add a section \[pretrain\]"),
    ("[vocab]\nsize = 2000\n", [], r"clean\.sources: is missing"),
    (MINIMAL, ["pretrain.phases.9.steps=7"], r"pretrain\.phases has no '9' in the recipe"),
    (MINIMAL, ["pretrain.optimizer.learning_rate=inf"], r"pretrain\.optimizer\.learning_rate: inf is not a number"),
    (MINIMAL, ["vocab.heldout_share=nan"], r"vocab\.heldout_share: nan is not a number"),
    (MINIMAL, ["clean.part_bytes=" + "9" * 30], r"clean\.part_bytes: 9{30} is not a number"),
    (MINIMAL, ["clean.part_bytes=" + "9" * 5000], "too many digits or brackets"),
    (MINIMAL, ["vocab.words=" + "[" * 50_000], r"vocab\.words"),
    ("seed = " + "1" * 5000, [], r"mine\.toml: "),
    ("seed = " + "[" * 50_000, [], r"mine\.toml: "),
    ("seed = inf\n" + MINIMAL, [], r"mine\.toml: "),
    ('extends = "smal"', [], r"extends: there is no recipe smal: give a \.toml file, .* \(did you mean small\?\)"),
    ('extends = "none.toml"', [],
     r"extends: there is no recipe none\.toml: give a \.toml file, relative to this one"),
    ('extends = "mine.toml"', [], r"mine\.toml extends this recipe: remove one"),
    ('extends = "other.toml"', [], r"other\.toml: extends: .*mine\.toml extends this recipe: remove one"),
    ("extends = 3", [], r'write them as extends = "small" and without'),
    ('without = ["nsmc"]', [], r'write them as extends = "small" and without'),
    ('extends = "small"\nwithout = ["vocab.sise"]', [], r"without: .*small\.toml has no 'vocab\.sise': remove it"),
    ('extends = "small"\nwithout = [["nsmc"]]', [], r'write them as extends = "small" and without'),
    ('extends = "small"\n[vocab]\nsise = 3', [],
     r"vocab\.sise: no such key .*\(.*mine\.toml extends .*small\.toml\)"),
])  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, text, changes, said):
    (tmp_path / "other.toml").write_text('extends = "mine.toml"', encoding="utf-8")
    with pytest.raises(SettingsError, match=said) as caught:
        loading.load(_write(tmp_path, text), changes)
    assert len(str(caught.value)) < 1000


def test_the_record_of_vocab_has_the_settings_that_are_used(tmp_path):
    """Without a tokenizer to take, the record is that of before there was one, and no artifact is stale."""
    given = _write(tmp_path, MINIMAL)
    learning = {"size", "mark", "character_coverage", "max_piece_chars", "foreign_share"}
    choosing = {"min_count", "min_documents"}
    always = {"words", "seed", "heldout_share"}
    assert loading.load(given).settings("vocab").keys() == learning | choosing | always
    assert loading.load(given, ["vocab.tokenizer=x"]).settings("vocab").keys() == always | {"tokenizer", "add"}
    chosen = loading.load(given, ["vocab.tokenizer=x", "vocab.add=5", "vocab.min_count=3"])
    assert chosen.settings("vocab").keys() == always | choosing | {"tokenizer", "add"}


@pytest.mark.parametrize("given", ["...toml", ".hidden.toml", "..toml", "a\nb.toml", "\x1b[31m.toml"])
def test_a_name_that_no_folder_of_artifacts_can_have(given, here):
    (here / given).write_text(MINIMAL, encoding="utf-8")
    with pytest.raises(SettingsError, match="the artifact folder is named after the recipe"):
        loading.load(given)


def test_a_recipe_is_found_by_its_name_too(here):
    (here / "demo").mkdir()  # a folder hides no shipped recipe
    _write(here, MINIMAL)
    assert (loading.load("mine").name, loading.load("demo").name) == ("mine", "demo")
    (here / "demo.toml").write_text(MINIMAL, encoding="utf-8")
    assert files.find("demo.toml") == Path("demo.toml")
    for given, said in (
        ("mime", r"mime: no such recipe: .* \(did you mean mine\?\)"),
        ("dmo", r"did you mean demo\?"),
        ("nowhere.toml", "no such file"),
        ("demo", r"demo: is a shipped recipe, and demo\.toml exists, too: name demo\.toml"),
    ):
        with pytest.raises(SettingsError, match=said):
            loading.load(given)


EXTENDING = """
extends = "{base}"
without = ["pretrain.phases", "pretrain.encoder.intermediate_size"]
[pretrain]
phases = [{{ length = 32, steps = 5 }}]
[pretrain.encoder]
intermediate_size = 128
[tasks.ner]
set = "klue-ner"
"""


def test_a_recipe_that_extends_another(tmp_path):
    base = loading.load(_write(tmp_path, MINIMAL))
    (tmp_path / "further").mkdir()
    own = tmp_path / "further" / "own.toml"
    own.write_text(EXTENDING.format(base="../mine.toml"), encoding="utf-8")
    recipe = loading.load(str(own), ["pretrain.encoder.hidden_size=64"])
    assert recipe.name == "own"
    assert {*recipe.stages} - {*base.stages} == {"tasks.ner"}
    phase = recipe.section("pretrain").phases
    encoder = recipe.settings("pretrain")["encoder"]
    assert [(one.length, one.steps) for one in phase] == [(32, 5)]
    changed = {"hidden_size": 64, "intermediate_size": 128}
    assert encoder == base.settings("pretrain")["encoder"] | changed
    assert recipe.settings("clean") == base.settings("clean")


def test_a_recipe_may_extend_one_that_extends_another(tmp_path):
    _write(tmp_path, 'extends = "mini"\nwithout = ["tasks", "nsmc"]\n[pretrain.masking]\nrate = 0.4')
    recipe = loading.load(str(tmp_path / "mine.toml"))
    mini = loading.load("mini")
    small = loading.load("small")
    assert recipe.settings("pretrain") == mini.settings("pretrain") | {
        "masking": mini.settings("pretrain")["masking"] | {"rate": 0.4}
    }
    assert recipe.section("nsmc") is None
    assert not recipe.stages.keys() - small.stages.keys()
    assert recipe.settings("clean") == small.settings("clean")
