import logging
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
import torch

from korbert.modeling import PretrainingModel
from korbert.pretraining import MaskingSettings, PairSettings, choose_samples, write_samples
from korbert.pretraining.samples import Sample, stretches
from tests.korbert.pretraining.conftest import rows_of
from tests.korbert.tiny import json_lines, tiny_config


def row_of(tokenizer, text, gaps):
    """The row of a text, with gaps at these places."""
    encoding = tokenizer.encode(text)
    ids, places = np.array(encoding.input_ids), np.array(gaps, dtype=np.int64)
    hidden = ids.copy()
    hidden[places] = tokenizer.mask_id
    boundaries = np.array(encoding.boundaries)
    labels = {"label_places": places, "labels": ids[places]}
    return {"input_ids": hidden, "token_type_ids": 0 * ids, "boundaries": boundaries, **labels}


def original(row):
    """The pieces of a row before gaps were made."""
    ids = row["input_ids"].copy()
    ids[row["label_places"]] = row["labels"]
    return ids


def model_of(tokenizer):
    model = PretrainingModel(tiny_config(vocab_size=tokenizer.vocab_size), torch.Generator().manual_seed(0)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 4  # sure of itself, so that no two gaps look alike
    return model


def test_samples_are_short_rows_with_few_gaps_of_the_source(corpus, ids):
    rows = rows_of(corpus.files, masking=MaskingSettings().all_masked(), pairs=PairSettings(without=("reviews",)))
    texts = {source: set() for source in corpus.sources}
    for source, pieces in zip(corpus.sources, corpus.input_ids, strict=True):
        texts[source].update(pairwise(pieces))
    chosen = choose_samples(rows, 20)
    for sample in chosen:
        assert sample.source == rows.source(sample.number)
        assert 12 <= len(sample.row["input_ids"]) <= 40
        assert 1 <= len(sample.row["labels"]) <= 5
        assert (sample.row["input_ids"][sample.row["label_places"]] == ids.mask).all()
        assert tuple(original(sample.row)[1:3]) in texts[sample.source]
    assert [sample.number for sample in choose_samples(rows, 20)] == [sample.number for sample in chosen]


def test_one_row_of_each_source_comes_first_and_long_ones_last(shards):
    written = shards([("reviews", [20])] * 40 + [("wiki", [60])])
    rows = rows_of(written.files, 128, masking=MaskingSettings().all_masked())
    assert [sample.source for sample in choose_samples(rows)] == ["reviews", "wiki", "reviews"]
    assert len(choose_samples(rows_of(shards([("wiki", [90, 90]), ("wiki", [85])]).files, 128))) == 3


@pytest.mark.parametrize("gaps", [[1], [1, 2], [2, 4, 5], [3, 6], list(range(1, 7))])
def test_the_text_around_the_gaps(tiny_tokenizer, gaps):
    """Filled with the right pieces, it is the text that the tokenizer decodes."""
    row = row_of(tiny_tokenizer, "영화가 정말 재미있어요 또 보고 싶다", gaps)
    texts = stretches(row, tiny_tokenizer)
    pieces = [tiny_tokenizer.decode([id]) for id in row["labels"].tolist()]
    filled = "".join(text + piece for text, piece in zip(texts, [*pieces, ""], strict=True))
    whole = original(row).tolist()
    assert unicodedata.normalize("NFC", filled) == tiny_tokenizer.decode(whole, row["boundaries"].tolist())


def test_segments_are_separated_by_a_slash(tiny_tokenizer):
    first, second = (row_of(tiny_tokenizer, text, []) for text in ("영화가", "또 보고"))
    row = {name: np.concatenate([first[name], second[name][1:]]) for name in first}
    assert stretches(row, tiny_tokenizer) == ["영화가 / 또 보고"]
    row |= {"label_places": np.array([len(first["input_ids"])]), "labels": np.array([0])}
    assert stretches(row, tiny_tokenizer) == ["영화가 / ", " 보고"]


def test_samples_hold_the_top_predictions(tiny_tokenizer, tmp_path, caplog):
    row = row_of(tiny_tokenizer, "영화가 정말 재미있어요", [1, 3])
    model, path = model_of(tiny_tokenizer), tmp_path / "samples.jsonl"
    model.mlm.bias.data[row["labels"]] += 8  # or the right pieces would have no share to speak of
    with caplog.at_level(logging.INFO):
        write_samples(path, [Sample(17, "reviews", row)], tiny_tokenizer, model, 50)
    (line,) = json_lines(path)
    assert line == line | {"step": 50, "row": 17, "source": "reviews"}
    assert len(line["text"]) == 3

    with torch.no_grad():
        scores, _ = model(torch.from_numpy(row["input_ids"])[None])
    for gap, place, truth in zip(line["gaps"], [1, 3], row["labels"], strict=True):
        shares = scores[0, place].softmax(0)
        best = shares.argsort(descending=True)[:5]
        assert [guess["piece"] for guess in gap["guesses"]] == tiny_tokenizer.tokens(best.tolist())
        assert [guess["probability"] for guess in gap["guesses"]] == pytest.approx(shares[best].tolist(), abs=1e-6)
        assert tiny_tokenizer.tokens([truth]) == [gap["piece"]]
        assert gap["probability"] == pytest.approx(float(shares[truth]), abs=1e-6)
    best = [gap["guesses"][0] for gap in line["gaps"]]
    pairs = zip(line["gaps"], best, strict=True)
    first, second = (f"[{gap['piece']}: {guess['piece']} {guess['probability']:.0%}]" for gap, guess in pairs)
    assert caplog.messages == [f"step 50: {first}가 {second} 재미있어요"]


def test_a_resumed_run_writes_its_lines_in_place_of_later_ones(tiny_tokenizer, tmp_path):
    row = row_of(tiny_tokenizer, "영화가 정말 재미있어요", [1])
    model, path = model_of(tiny_tokenizer), tmp_path / "samples.jsonl"
    samples = [Sample(1, "reviews", row), Sample(2, "wiki", row)]
    for step in (50, 100, 150):
        write_samples(path, samples, tiny_tokenizer, model, step)
    straight = path.read_bytes()
    for resumed_at in (100, 150):
        with path.open("ab") as file:
            file.write(b'{"step": 200, "half-writ')
        write_samples(path, samples, tiny_tokenizer, model, resumed_at)
    assert path.read_bytes() == straight
    rows = [(line["step"], line["row"]) for line in json_lines(path)]
    assert rows == [(step, row) for step in (50, 100, 150) for row in (1, 2)]
