"""Learning labels, keeping the best epoch, giving labels to new texts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from korbert.errors import ModelError, SettingsError
from korbert.modeling import ClassificationModel, EncoderConfig, PretrainingModel, save_model
from korbert.tasks import Classifier
from korbert.tasks.best_epoch import load_best
from korbert.tasks.classification import finetune, probabilities
from korbert.tasks.classification_settings import ClassificationSettings
from korbert.tasks.encoded import EncodedTexts
from korbert.tasks.examples import Examples
from korbert.tasks.learning_settings import Way
from korbert.tasks.nsmc.settings import NsmcSettings
from korbert.tokenization import Tokenizer

CPU = torch.device("cpu")
REVIEWS = [
    "정말 재미있는 영화였다",
    "",
    "ㅋㅋㅋ 시간이 아깝다 진짜",
    "최고!",
    "배우의 연기가 좋았지만 이야기는 지루했다. 그래도 볼 만하다.",
]


def _config(vocab_size: int = 60, positions: int = 64) -> EncoderConfig:
    return EncoderConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=positions,
    )


def _model(seed: int = 0, num_labels: int = 2, config: EncoderConfig | None = None) -> ClassificationModel:
    labels = [f"라벨{number}" for number in range(num_labels)]
    return ClassificationModel(
        config or _config(), num_labels, "mean", labels=labels, generator=torch.Generator().manual_seed(seed)
    )


def _examples(count: int, seed: int, num_labels: int = 2) -> Examples:
    """Random rows of pieces; one of them, 50 + label, tells the label."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(num_labels, size=count)
    rows = []
    for label in labels:
        ids = generator.integers(5, 40, size=generator.integers(3, 20))
        ids[generator.integers(len(ids))] = 50 + label
        rows.append(([2, *ids, 3], [0] * (len(ids) + 2)))
    return Examples.of_rows(rows, labels, pad_id=0)


def _finetune(folder: Path, settings: ClassificationSettings, rate: float = 5e-3, num_labels: int = 2) -> tuple:
    model = _model(num_labels=num_labels)
    best = finetune(
        model,
        _examples(256, 1, num_labels),
        _examples(64, 2, num_labels),
        settings,
        Way(rate, settings.batch_size[0], settings.epochs[0]),
        seed=3,
        work=folder / "work",
        metrics=folder / "metrics.jsonl",
        device=CPU,
    )
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    return model, best, [line for line in lines if line["kind"] == "heldout"]


@pytest.mark.parametrize("num_labels", [2, 3])
def test_finetune_learns_and_leaves_the_best_epoch(tmp_path: Path, num_labels: int) -> None:
    settings = ClassificationSettings(batch_size=16, epochs=4, precision="fp32")
    model, best, epochs = _finetune(tmp_path, settings, num_labels=num_labels)
    accuracies = [line["accuracy"] for line in epochs]
    assert [line["step"] for line in epochs] == [16, 32, 48, 64]
    assert best.score == max(accuracies) > 0.9
    assert best.epoch == 1 + accuracies.index(max(accuracies))
    validation = _examples(64, 2, num_labels)
    found = probabilities(model, validation, device=CPU)
    assert (found.argmax(1) == validation.labels).mean() == best.score
    assert not model.training


def test_of_equal_epochs_the_first_is_kept(tmp_path: Path) -> None:
    settings = ClassificationSettings(batch_size=64, epochs=3, precision="fp32")
    model, best, epochs = _finetune(tmp_path, settings, rate=1e-12)  # nothing changes
    assert len({line["accuracy"] for line in epochs}) == 1
    assert best.epoch == 1
    again = _model(seed=9)
    assert load_best(tmp_path / "work", again) == best
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), again.parameters(), strict=True))


def test_a_finished_training_is_not_run_again(tmp_path: Path) -> None:
    settings = ClassificationSettings(batch_size=64, epochs=2, precision="fp32")
    first = _finetune(tmp_path, settings)
    again = _finetune(tmp_path, settings)
    assert first[1:] == again[1:]
    assert all(torch.equal(one, two) for one, two in zip(first[0].parameters(), again[0].parameters(), strict=True))
    starts = [json.loads(line) for line in (tmp_path / "work" / "timing.jsonl").read_text("utf-8").splitlines()]
    assert [line["step"] for line in starts if line["kind"] == "start"] == [0, 8]


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _untold(path: Path) -> None:
    """Weights alone, without the measure."""
    safetensors.torch.save_file(safetensors.torch.load_file(path), path)


@pytest.mark.parametrize("damage", [_flip, _cut, _empty, _untold, Path.unlink])
def test_lost_weights_of_the_best_epoch_are_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Going on behind the epoch that they are of would keep those of a worse one."""
    settings = ClassificationSettings(batch_size=64, epochs=3, precision="fp32", checkpoint_every=1)
    first = _finetune(tmp_path, settings, rate=1e-12)  # nothing changes, so that the first epoch is kept
    damage(tmp_path / "work" / "best.safetensors")
    with pytest.raises(ModelError, match=r"best\.safetensors: is missing or damaged: run the same command again"):
        load_best(tmp_path / "work", _model())
    again = _finetune(tmp_path, settings, rate=1e-12)
    assert first[1:] == again[1:]
    assert again[1].epoch == 1
    assert all(torch.equal(one, two) for one, two in zip(first[0].parameters(), again[0].parameters(), strict=True))


def test_probabilities_depend_on_no_other_row() -> None:
    model, examples = _model(num_labels=3).train(), _examples(40, 4)
    found = probabilities(model, examples, device=CPU)
    alone = [probabilities(model, examples.select(np.array([row])), device=CPU)[0] for row in range(40)]
    np.testing.assert_allclose(found, np.stack(alone), atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    assert found.shape == (40, 3)
    assert model.training  # as it was


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("model")
    model = _model(num_labels=3, config=_config(tiny_tokenizer.vocab_size))
    save_model(folder, model, tiny_tokenizer, task={"max_length": 12})
    return folder


def test_a_classifier_gives_every_label_its_probability(model_folder: Path) -> None:
    classifier = Classifier.load(model_folder, "cpu")
    predictions = classifier.predict(REVIEWS)
    assert classifier.labels == ("라벨0", "라벨1", "라벨2")
    assert classifier.max_length == 12
    assert len(predictions) == len(REVIEWS)
    for prediction in predictions:
        shares = prediction["probabilities"]
        assert list(shares) == ["라벨0", "라벨1", "라벨2"]
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
        assert prediction["label"] == max(shares, key=lambda label: shares[label])
    assert classifier.predict([]) == []
    backwards = classifier.predict(REVIEWS[::-1])[::-1]
    for one, other in zip(predictions, backwards, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


def test_one_text_or_many(model_folder: Path) -> None:
    classifier = Classifier.load(str(model_folder), "cpu")
    alone = classifier.predict(REVIEWS[0])
    assert alone == classifier.predict(REVIEWS[:1])[0]
    assert classifier.predict(tuple(REVIEWS)) == classifier.predict(text for text in REVIEWS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "texts is None: give a string, or a list of strings"),
        (7, "texts is int 7: give a string"),
        (b"\xea\xb0\x80", r"texts is bytes b'.*: give a string"),
        ({"text": "가"}, "texts is dict .*: give a string"),
        (["가", None], r"texts\[1\] is None: give only strings"),
        ([["가"]], r"texts\[0\] is list \['가'\]: give only strings"),
    ],
)
def test_what_is_no_text_is_named(model_folder: Path, given: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Classifier.load(model_folder, "cpu").predict(given)


def test_scores_that_are_no_numbers_name_the_model(model_folder: Path, tiny_tokenizer: Tokenizer) -> None:
    classifier = Classifier.load(model_folder, "cpu")
    with torch.no_grad():
        classifier.model.classifier.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match=rf"{model_folder}: its scores are not finite: train it again"):
        classifier.predict("좋다")


def test_a_classifier_reads_texts_as_they_were_learned(
    tmp_path: Path, model_folder: Path, tiny_tokenizer: Tokenizer
) -> None:
    encoded = EncodedTexts(tmp_path, REVIEWS, tiny_tokenizer)
    encoded.make(workers=1)
    learned = encoded.examples(np.zeros(len(REVIEWS), np.int64), max_length=12)
    classifier = Classifier.load(model_folder, "cpu")
    for row, encoding in enumerate(tiny_tokenizer.encode_batch(REVIEWS, max_length=12)):
        place = slice(*learned.offsets[row : row + 2])
        assert learned.input_ids[place].tolist() == encoding.input_ids
        assert learned.boundaries[place].tolist() == encoding.boundaries
    assert learned.lengths.tolist()[1] == 2  # the empty review is [CLS] [SEP]
    assert learned.lengths.max() == 12
    found = probabilities(classifier.model, learned, device=CPU)
    for row, prediction in zip(found, classifier.predict(REVIEWS), strict=True):
        assert list(prediction["probabilities"].values()) == pytest.approx(row.tolist(), abs=1e-6)


def test_a_classifier_needs_a_model_that_classifies(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    save_model(tmp_path, PretrainingModel(_config(tiny_tokenizer.vocab_size)), tiny_tokenizer)
    with pytest.raises(ModelError, match="a pretraining model, but a classification model is needed"):
        Classifier.load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rates": [1e-3, 1e-3]}, r"learning_rates \[0\.001, 0\.001\] has duplicates: give each value once"),
        ({"seeds": []}, "at least 1 item"),
        ({"baseline_c": [0]}, "greater than 0"),
        ({"validation_share": 0}, "greater than 0"),
        ({"init": "random"}, "'pretrain' or 'scratch'"),
        ({"poling": "mean"}, "Extra inputs are not permitted"),
    ],
)
def test_settings_that_cannot_be(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NsmcSettings.model_validate(settings)
