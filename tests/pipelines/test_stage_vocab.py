"""The vocab and shard stages by themselves: the tokenizer is of the Kiwi that made the morphemes, or there is none."""

import json

import pytest

from korbert.corpus.counts import frequent_cut_forms
from korbert.errors import ArtifactError, SettingsError
from korbert.pipelines.artifacts.runtime import Runtime
from korbert.pipelines.stages import Inputs, shard, vocab
from korbert.pipelines.stages.settings import ShardStage, VocabStage
from korbert.tokenization import Analyzer, Tokenizer
from tests.corpus import made_up

VERSIONS = Analyzer().versions
SETTINGS = VocabStage(size=410, seed=1, heldout_share=0.2)


def analyzed(folder, versions, **options):
    """An artifact of `analyze` made with those versions and options of Kiwi."""
    made_up.write_parts(folder, [made_up.documents(0, 60)])
    record = {"settings": {"options": options}, "versions": versions}
    (folder / "stage.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def runtime(folder):
    return Runtime(root=folder, data=folder, workers=1)


@pytest.mark.parametrize("package", ["kiwipiepy", "kiwipiepy_model"])
def test_morphemes_of_another_kiwi_are_refused(tmp_path, package):
    morphemes = analyzed(tmp_path / "analyze", {**VERSIONS, "pyarrow": "1", package: "0.23.0"})
    (tmp_path / "out").mkdir()
    expected = (
        f"{morphemes}: its morphemes are from {package} 0.23.0, but {package} {VERSIONS[package]} is installed, which "
        f"splits text differently: install {package}==0.23.0, or analyze again with "
        "`korbert run RECIPE --from analyze --rebuild`"
    )
    with pytest.raises(ArtifactError) as refusal:
        vocab.run(SETTINGS, Inputs({"analyze": morphemes}, {}), tmp_path / "out", runtime(tmp_path))
    assert str(refusal.value) == expected
    assert list((tmp_path / "out").iterdir()) == []


def test_the_tokenizer_is_of_the_kiwi_that_made_the_morphemes(tmp_path):
    morphemes = analyzed(tmp_path / "analyze", VERSIONS)
    (tmp_path / "vocab").mkdir()
    vocab.run(SETTINGS, Inputs({"analyze": morphemes}, {}), tmp_path / "vocab", runtime(tmp_path))
    assert Tokenizer.load(tmp_path / "vocab" / "tokenizer").versions == VERSIONS
    other = analyzed(tmp_path / "other", {**VERSIONS, "kiwipiepy": "0.23.0"})
    inputs = Inputs({"analyze": other, "vocab": tmp_path / "vocab"}, {})
    with pytest.raises(ArtifactError, match=r"from kiwipiepy 0\.23\.0, but kiwipiepy \S+ is what \S+ was made with"):
        shard.run(ShardStage(seed=1, heldout_share=0.2), inputs, tmp_path / "out", runtime(tmp_path))


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """The folder of a tokenizer, whose longest piece may have 3 characters."""
    folder = tmp_path_factory.mktemp("taken")
    base = made_up.tokenizer()
    settings = base.settings.model_copy(update={"max_piece_chars": 3})
    tokenizer = Tokenizer(*base.parts._replace(settings=settings))
    tokenizer.take_probe()
    tokenizer.save(folder)
    return folder


def run_with(taken, morphemes, output, settings):
    """A run of the stage with a tokenizer to take."""
    output.mkdir()
    stage = VocabStage.model_validate({"seed": 1, "heldout_share": 0.2, "tokenizer": "taken", **settings})
    inputs = Inputs({"analyze": morphemes}, {"tokenizer": tuple(sorted(taken.iterdir()))})
    return vocab.run(stage, inputs, output, runtime(output))


def test_a_tokenizer_is_taken_as_it_is(tmp_path, taken):
    other = analyzed(tmp_path / "other", VERSIONS, typos="basic")
    with pytest.raises(SettingsError) as refusal:
        run_with(taken, other, tmp_path / "refused", {})
    assert str(refusal.value) == (
        f"{taken}: was made with other options of Kiwi than analyze.options, so its pieces would not match "
        "these morphemes: typos: 'basic', not 'none': change it in the recipe"
    )
    assert list((tmp_path / "refused").iterdir()) == []
    morphemes = analyzed(tmp_path / "analyze", VERSIONS)
    counts = run_with(taken, morphemes, tmp_path / "out", {})
    made, given = (
        {file.name: file.read_bytes() for file in of.iterdir()} for of in (tmp_path / "out/tokenizer", taken)
    )
    assert made == given
    assert (counts["size"], counts["added"]) == (410, 0)
    coverage = json.loads((tmp_path / "out" / "coverage.json").read_text(encoding="utf-8"))
    assert coverage["used"]["entries"] == 410 - 384
    assert (tmp_path / "out" / "counts.parquet").exists()


def test_words_are_added_to_it(tmp_path, taken):
    """Those of the recipe first, then those that this text needs most."""
    morphemes = analyzed(tmp_path / "analyze", VERSIONS)
    counts = run_with(taken, morphemes, tmp_path / "out", {"words": ("갓생", "다"), "add": 2})
    base, made = Tokenizer.load(taken), Tokenizer.load(tmp_path / "out" / "tokenizer")
    assert (counts["size"], counts["added"]) == (413, 3)
    first, *chosen = made.settings.words
    assert (first, len(chosen)) == ("갓생", 2)
    assert chosen == frequent_cut_forms(tmp_path / "out" / "counts.parquet", base, 2)
    assert made.parts.base == base.digest
    assert made.compare_probe() is not None
    assert made.tokens(range(410, 413)) == ["갓생", *chosen]

    again = run_with(tmp_path / "out" / "tokenizer", morphemes, tmp_path / "again", {})
    assert again["added"] == 0
    assert Tokenizer.load(tmp_path / "again" / "tokenizer").digest == made.digest
