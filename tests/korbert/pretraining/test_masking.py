import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import ValidationError

from korbert.pretraining.draws import Draws
from korbert.pretraining.objective_settings import MaskingSettings
from korbert.pretraining.objectives.masking import choose_positions, mask_pieces, units_of
from tests.korbert.pretraining.conftest import rows_of


def draws_of(count, seed=0):
    return Draws.of(seed, np.zeros(count, dtype=np.int64), np.arange(count))


@pytest.mark.parametrize(
    ("unit", "units"), [("piece", [0, 1, 2, 3, 4, 5]), ("morpheme", [0, 0, 1, 2, 3, 3]), ("eojeol", [0, 0, 0, 1, 2, 2])]
)
def test_units_by_hand(unit, units):
    # [CLS] 학교(2) ##들(0) 에(1) 가(2) [SEP] ##ㄴ(0, the row begins inside a word) 다(0) [SEP]
    boundaries = np.array([0, 2, 0, 1, 2, 0, 0, 0, 0], dtype=np.uint8)
    maskable = np.array([0, 1, 1, 1, 1, 0, 1, 1, 0], dtype=bool)
    assert units_of(boundaries, maskable, unit).tolist() == units


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=60), rate=st.floats(0.01, 0.9), seed=st.integers(0, 99))
def test_whole_units_are_chosen_within_the_budget(sizes, rate, seed):
    units = np.repeat(np.arange(len(sizes)), sizes)
    taken = choose_positions(units, np.array([len(units)]), rate, draws_of(1, seed))
    assert not np.isin(units[~taken], units[taken]).any()
    assert taken.sum() < rate * len(units) + max(sizes)


def test_short_rows_are_masked_at_the_rate():
    one = np.array([0, 0, 1, 2, 2, 2, 2])
    units = (3 * np.arange(20_000)[:, None] + one).ravel()
    taken = choose_positions(units, np.full(20_000, len(one)), 0.15, draws_of(20_000))
    assert taken.mean() == pytest.approx(0.15, abs=0.003)


@pytest.mark.parametrize("unit", ["piece", "morpheme", "eojeol"])
def test_rates_on_many_rows(corpus, ids, unit):
    rows = rows_of(corpus.files, masking=MaskingSettings(unit=unit))
    (batch,) = rows.batch(0, 40_000)
    inputs, labels = batch["input_ids"].numpy(), np.full(batch["pieces"], -100)
    labels[batch["label_places"]] = batch["labels"]
    special = (inputs == ids.cls) | (inputs == ids.sep)
    assert (labels[special] == -100).all()
    changed = inputs[(labels != -100) & (inputs != ids.mask)]
    assert (changed >= ids.first_piece).all()
    assert (changed < ids.vocab_size).all()
    pieces, chosen = (~special).sum(), (labels != -100).sum()
    masked, kept = (inputs == ids.mask).sum(), (inputs == labels).sum()
    assert chosen / pieces == pytest.approx(0.15, abs=0.003)
    assert masked / chosen == pytest.approx(0.8, abs=0.003)
    # of the 10 % drawn from 1,616 pieces one in 1,616 is the piece that was there
    assert kept / chosen == pytest.approx(0.1, abs=0.003)
    assert 1 - (masked + kept) / chosen == pytest.approx(0.1, abs=0.003)


@settings(deadline=None)
@given(
    input_ids=arrays(np.int64, 20, elements=st.integers(384, 1999)),
    chosen=st.sets(st.integers(0, 19)),
    shares=st.sampled_from([(0.8, 0.1), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)]),
)
def test_hiding_touches_chosen_positions_alone(ids, input_ids, chosen, shares):
    shares_only = MaskingSettings(mask_share=shares[0], random_share=shares[1])
    before = input_ids.copy()
    places = np.array(sorted(chosen), dtype=int)
    hidden = mask_pieces(input_ids, places, np.array([len(places)]), shares_only, ids, draws_of(1))
    others = sorted(set(range(20)) - chosen)
    assert np.array_equal(input_ids, before)
    assert np.array_equal(hidden[others], before[others])
    if shares[0] == 1.0:
        assert (hidden[sorted(chosen)] == ids.mask).all()
    if shares == (0.0, 0.0):
        assert np.array_equal(hidden, before)


def test_shares_above_1_are_refused():
    with pytest.raises(ValidationError, match=r"mask_share 0\.9 \+ random_share 0\.2 > 1: lower one of them"):
        MaskingSettings(mask_share=0.9, random_share=0.2)
