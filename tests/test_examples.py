"""Every public name of `korbert` has an example in its docstring, which gives what it says."""

import doctest
import importlib

import pytest

import korbert
from tests.tiny_recipe import write_data

PUBLIC = sorted({*korbert.__all__} - {"__version__", "sklearn"})
NAMES = [*PUBLIC, "sklearn", "sklearn.TextClassifier", "sklearn.TextRegressor", "sklearn.TextVectorizer"]
SLOW = {"pretrain"}  # minutes on a busy machine


@pytest.fixture(scope="module")
def here(tmp_path_factory, sample):
    """A folder with what the examples name: mine.toml with its files, my.csv, models/mood."""
    folder = tmp_path_factory.mktemp("examples")
    write_data(sample, folder).rename(folder / "mine.toml")
    rows = ["정말 재미있는 영화,긍정", "시간이 아깝다,부정", "또 보고 싶다,긍정", "지루했다,부정"] * 3
    (folder / "my.csv").write_text("\n".join(["문장,감정", *rows]), encoding="utf-8")
    output = folder / "models" / "mood"
    korbert.finetune("korbert-mini", folder / "my.csv", text="문장", label="감정", output=output, device="cpu")
    return folder


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in NAMES])
def test_examples_give_what_they_say(name, here, monkeypatch):
    monkeypatch.chdir(here)
    monkeypatch.delenv("KORBERT_DATA", raising=False)
    module, _, last = name.rpartition(".")
    value = getattr(importlib.import_module(f"korbert.{module}") if module else korbert, last)
    test = doctest.DocTestParser().get_doctest(value.__doc__ or "", {"korbert": korbert}, name, None, None)
    assert test.examples, f"korbert.{name} has no example"
    said = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not failed, "".join(said)


def test_what_the_package_lists():
    assert dir(korbert) == sorted(korbert.__all__)
    assert {"load", "finetune", "run", "Index", "Tokenizer", "sklearn", "__version__"} <= {*dir(korbert)}
