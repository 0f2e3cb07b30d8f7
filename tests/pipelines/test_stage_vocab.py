"""The vocab and shard stages by themselves: the tokenizer is of the Kiwi that made the morphemes, or there is none."""

import json
from pathlib import Path

import pytest

from korbert.errors import ArtifactError
from korbert.tokenization import Analyzer, Tokenizer
from pipelines.runtime import Runtime
from pipelines.stages import Inputs, shard, vocab
from pipelines.stages.settings import ShardStage, VocabStage
from tests.corpus import made_up

VERSIONS = Analyzer().versions
SETTINGS = VocabStage(size=410, seed=1, heldout_share=0.2)


def analyzed(folder: Path, versions: dict[str, str]) -> Path:
    """An artifact of `analyze` made with those versions."""
    made_up.write_parts(folder, [made_up.documents(0, 60)])
    (folder / "stage.json").write_text(json.dumps({"settings": {}, "versions": versions}), encoding="utf-8")
    return folder


def runtime(folder: Path) -> Runtime:
    return Runtime(root=folder, data=folder, workers=1)


@pytest.mark.parametrize("package", ["kiwipiepy", "kiwipiepy_model"])
def test_morphemes_of_another_kiwi_are_refused(tmp_path: Path, package: str) -> None:
    morphemes = analyzed(tmp_path / "analyze", {**VERSIONS, "pyarrow": "1", package: "0.23.0"})
    (tmp_path / "out").mkdir()
    expected = (
        f"{morphemes}: its morphemes are of {package} 0.23.0, and {package} {VERSIONS[package]} is installed, which "
        f"cuts text otherwise: install {package}==0.23.0, or analyze again with "
        "`korbert run RECIPE --from analyze --rebuild`"
    )
    with pytest.raises(ArtifactError) as refusal:
        vocab.run(SETTINGS, Inputs({"analyze": morphemes}, {}), tmp_path / "out", runtime(tmp_path))
    assert str(refusal.value) == expected
    assert list((tmp_path / "out").iterdir()) == []


def test_the_tokenizer_is_of_the_kiwi_that_made_the_morphemes(tmp_path: Path) -> None:
    morphemes = analyzed(tmp_path / "analyze", VERSIONS)
    (tmp_path / "vocab").mkdir()
    vocab.run(SETTINGS, Inputs({"analyze": morphemes}, {}), tmp_path / "vocab", runtime(tmp_path))
    assert Tokenizer.load(tmp_path / "vocab" / "tokenizer").versions == VERSIONS
    other = analyzed(tmp_path / "other", {**VERSIONS, "kiwipiepy": "0.23.0"})
    inputs = Inputs({"analyze": other, "vocab": tmp_path / "vocab"}, {})
    with pytest.raises(ArtifactError, match=r"are of kiwipiepy 0\.23\.0, and kiwipiepy \S+ is what \S+ was made with"):
        shard.run(ShardStage(seed=1, heldout_share=0.2), inputs, tmp_path / "out", runtime(tmp_path))
