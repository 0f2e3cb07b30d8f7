"""Recurring span selection: its rows hide what they ask for, and say where it stayed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from korbert.modeling import PretrainingModel, QuestionAnsweringModel, init_encoder_from
from korbert.pretraining import PretrainingLoss, evaluate
from korbert.pretraining.objective_settings import SpanSettings
from korbert.pretraining.objectives.spans import RecurringSpans
from tests.korbert.pretraining.conftest import IDS, rows_of, write_table
from tests.korbert.tiny import tiny_config

UNIFORM_COUNTS = np.ones(2000, dtype=np.int64)  # every piece is as rare as another


def finder(ids, **settings):
    return RecurringSpans(SpanSettings(rarity=0.0, **settings), ids.mask, UNIFORM_COUNTS)


def passage(sentences):
    """Sentences of (piece, level) as one passage; each begins with level 3."""
    ids = np.array([piece for sentence in sentences for piece, _ in sentence], dtype=np.int64)
    levels = [3 if place == 0 else level for sentence in sentences for place, (_, level) in enumerate(sentence)]
    return ids, np.array(levels, dtype=np.uint8)


def test_each_occurrence_may_ask_or_answer(ids):
    """500 501 stands in three sentences: one asks, one keeps it, in the other it is hidden."""
    name = [(500, 2), (501, 1)]
    pieces = passage([[(600, 2), *name, (700, 1)], [(601, 2), *name, (701, 1)], [(602, 2), *name, (702, 2)]])
    seen = set()
    for seed in range(40):
        asked = finder(ids).ask(pieces, np.random.default_rng(seed))
        question, context = asked.question[0].tolist(), asked.context[0].tolist()
        first = question[0]  # the piece by which a sentence is known
        kept = [other for other in (600, 601, 602) if other != first]
        seen.add((first, context.index(500)))
        assert question == [first, ids.mask, first + 100]
        assert [piece for piece in context if piece in (600, 601, 602)] == kept
        assert context[slice(asked.answer[0], asked.answer[1] + 1)] == [500, 501]
        assert context.count(500) == 1
        assert context.count(ids.mask) == 1
    assert len(seen) == 6  # each sentence asks, and each of the two others keeps it


@pytest.mark.parametrize(
    "sentences",
    [
        pytest.param([[(600, 2), (500, 2), (501, 1)], [(601, 2), (502, 2), (501, 1)]], id="nothing-recurs"),
        pytest.param([[(600, 2), (500, 2), (501, 1), (500, 2), (501, 1)], [(601, 2)]], id="in-one-sentence"),
        pytest.param([[(600, 2), (500, 1), (501, 1)], [(601, 2), (500, 1), (501, 1)]], id="within-an-eojeol"),
        pytest.param([[(600, 2), (500, 2), (501, 0)], [(601, 2), (500, 2), (501, 0)]], id="one-morpheme"),
        pytest.param([[(600, 2), (500, 2), (501, 1), (7, 0)], [(601, 2), (500, 2), (501, 1)]], id="half-a-morpheme"),
    ],
)
def test_passages_without_a_recurring_span(sentences, ids):
    assert all(finder(ids).ask(passage(sentences), np.random.default_rng(seed)) is None for seed in range(20))


def test_common_pieces_alone_are_no_span(ids):
    counts = np.ones(2000, dtype=np.int64)
    counts[[500, 501]] = 10**6
    pieces = passage([[(600, 2), (500, 2), (501, 1)], [(601, 2), (500, 2), (501, 1)]])
    rng = np.random.default_rng(0)
    assert RecurringSpans(SpanSettings(rarity=5.0), ids.mask, counts).ask(pieces, rng) is None
    assert RecurringSpans(SpanSettings(rarity=0.5), ids.mask, counts).ask(pieces, rng) is not None


_PIECES = st.tuples(st.integers(500, 505), st.sampled_from([0, 1, 2, 2]))


@given(st.lists(st.lists(_PIECES, min_size=1, max_size=12), min_size=1, max_size=8), st.integers(0, 2**32))
def test_question_and_context_rebuild_the_passage(sentences, seed):
    """With every [MASK] filled by the answer, question and context are the passage; the same seed asks the same."""
    mask = 4
    spans = RecurringSpans(SpanSettings(rarity=0.0, max_pieces=6), mask, UNIFORM_COUNTS)
    pieces = passage(sentences)
    asked = spans.ask(pieces, np.random.default_rng(seed))
    if asked is None:
        return
    context = asked.context[0].tolist()
    answer = context[asked.answer[0] : asked.answer[1] + 1]
    levels = asked.context[1][asked.answer[0] : asked.answer[1] + 1]
    assert levels[0] >= 2
    assert (levels > 0).sum() >= 2
    assert len(answer) <= 6

    def filled(shown):
        return [piece for one in shown for piece in (answer if one == mask else [one])]

    assert mask in asked.question[0]
    question, rest = filled(asked.question[0].tolist()), filled(context)
    whole = pieces[0].tolist()
    assert any(whole == rest[:cut] + question + rest[cut:] for cut in range(len(rest) + 1))
    again = spans.ask(pieces, np.random.default_rng(seed))
    assert again.answer == asked.answer
    assert again.context[0].tolist() == context


def test_a_long_sentence_is_cut_around_its_gap(ids):
    long = [(700 + place, 2) for place in range(100)]
    pieces = passage([[*long[:60], (500, 2), (501, 1), *long[60:]], [(601, 2), (500, 2), (501, 1)]])
    for seed in range(10):
        asked = finder(ids, max_query_pieces=16).ask(pieces, np.random.default_rng(seed))
        assert len(asked.question[0]) <= 16
        assert ids.mask in asked.question[0]


@pytest.fixture(scope="module")
def recurring(tmp_path_factory):
    """A shard of documents in which a name of two morphemes stands in several sentences."""
    rng = np.random.default_rng(0)
    ids = rng.integers(400, 900, (60, 4, 8))
    ids[:, :, 3:5] = rng.integers(1000, 2000, (60, 1, 2))
    levels = [np.array([3, 2, 1, 2, 1, 2, 1, 2] * 4, np.uint8)] * 60
    folder = tmp_path_factory.mktemp("recurring")
    return write_table(folder, ["wiki"] * 60, list(ids.reshape(60, 32).astype(np.int32)), levels, files=1)[0]


def spans_of(path):
    spans = RecurringSpans(SpanSettings(rarity=0.0), IDS.mask, UNIFORM_COUNTS)
    return rows_of([path], seed=0, objectives=("mlm", "spans"), spans=spans)


def model_of(ids):
    return PretrainingModel(tiny_config(vocab_size=ids.vocab_size), torch.Generator().manual_seed(0), ("mlm", "spans"))


def test_only_the_span_is_masked_in_a_row_with_a_question(recurring, ids):
    """[CLS] question [SEP] context [SEP], with nothing masked but the span."""
    rows = spans_of(recurring)
    for number in range(20):
        row = rows.example(0, number)
        first, last = row["answer"]
        shown = row["input_ids"]
        assert row["token_type_ids"][first] == row["token_type_ids"][last] == 1
        assert (shown[first : last + 1] >= 1000).all()
        assert (shown == ids.mask).sum() == 3  # two of the four occurrences, and that of the question
        assert not len(row["label_places"])
        assert row["pair_label"].tolist() == [-100]


@pytest.mark.parametrize("fill", [False, True])
def test_rows_with_and_without_a_question_share_a_batch(corpus, recurring, fill):
    spans = RecurringSpans(SpanSettings(rarity=0.0, share=0.5), IDS.mask, UNIFORM_COUNTS)
    rows = rows_of([recurring, *corpus.files], objectives=("mlm", "nsp", "spans"), spans=spans, fill=fill)
    (whole,), parts = rows.batch(0, 60), rows.batch(0, 60, 3)
    asked = int(whole["spans_count"])
    assert 0 < asked < len(whole["lengths"])
    assert sum(len(part["span_targets"]) for part in parts) == asked
    assert sum(len(part["labels"]) for part in parts) == len(whole["labels"]) > 0
    starts = np.cumsum([0, *whole["lengths"]])
    targets = iter(whole["span_targets"].tolist())
    slots = whole["span_slots"] // whole["span_longest"]
    places = set(whole["label_places"].tolist())
    for number in range(asked):
        choices = whole["span_choices"][slots == number]
        row = int(starts.searchsorted(int(choices[0]), side="right")) - 1
        assert int(choices[0]) == starts[row]  # [CLS]
        first, last = next(targets)
        assert (whole["token_type_ids"][choices[first : last + 1]] == 1).all()
        assert whole["pair_label"][row] == -100
        assert places.isdisjoint(range(starts[row], starts[row + 1]))


def test_the_span_head_learns_and_is_taken_by_a_reader(recurring, ids):
    model, loss = model_of(ids), PretrainingLoss(("mlm", "spans"))
    (batch,) = spans_of(recurring).batch(0, 16)
    assert batch["spans_count"] == len(batch["span_targets"]) == 16
    before = evaluate(model, [batch], UNIFORM_COUNTS, loss)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(60):
        optimizer.zero_grad()
        loss(model, batch)["loss"].backward()
        optimizer.step()
    after = evaluate(model, [batch], UNIFORM_COUNTS, loss)
    assert after["spans_accuracy"] == 1 > before["spans_accuracy"]
    assert after["spans_loss"] < 0.1 < before["spans_loss"]

    reader = QuestionAnsweringModel(model.config, torch.Generator().manual_seed(1))
    init_encoder_from(reader, model)
    inputs = torch.randint(400, 900, (2, 12))
    with torch.no_grad():
        expected = model.reader(model.encoder(inputs))
        start, end = reader(inputs)
    torch.testing.assert_close(torch.stack([start, end], dim=-1), expected)


def test_micro_batches_add_up(recurring, ids):
    model, loss, rows = model_of(ids), PretrainingLoss(("mlm", "spans")), spans_of(recurring)
    (whole,) = rows.batch(0, 12)
    parts = rows.batch(0, 12, 3)
    for name in ("mlm_loss", "spans_loss"):
        total = sum(loss(model, part)[name].item() for part in parts)
        assert total == pytest.approx(loss(model, whole)[name].item(), rel=1e-5)


def test_rows_without_a_span_have_no_question(corpus, ids):
    """Random pieces hardly recur: such rows learn MLM alone, and the loss of spans is 0 with a gradient."""
    spans = RecurringSpans(SpanSettings(), ids.mask, UNIFORM_COUNTS)
    (batch,) = rows_of(corpus.files, objectives=("mlm", "spans"), spans=spans).batch(0, 8)
    assert batch["spans_count"] == 0
    model = model_of(ids)
    losses = PretrainingLoss(("mlm", "spans"))(model, batch)
    losses["loss"].backward()
    assert losses["spans_loss"] == 0
    assert model.reader.classifier.weight.grad is not None
