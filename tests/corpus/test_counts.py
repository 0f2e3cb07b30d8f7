"""Counts and coverage against the same sums over single morphemes."""

from collections import Counter

import made_up
import numpy as np
import pyarrow.parquet as pq
import pytest

from korbert.corpus.counts import count, coverage, form_counts, frequent_cut_forms, usage
from korbert.corpus.documents import is_heldout
from korbert.errors import CorpusError
from korbert.tokenization.tokenizer_settings import VocabularySettings

SEED = 5
SHARE = 0.3
PARTS = [made_up.documents(part, 40, part) for part in range(3)]
ROWS = [row for rows in PARTS for row in rows]


@pytest.fixture
def morphemes(tmp_path):
    return made_up.write_parts(tmp_path, PARTS)


def run(morphemes, output, workers=1, share=SHARE):
    return count(morphemes, output, seed=SEED, heldout_share=share, workers=workers)


def expected_counts(rows):
    counts = Counter()
    initial = Counter()
    holders = Counter()
    for row in rows:
        pairs = list(zip(row["form"], row["tag"], strict=True))
        counts.update(pairs)
        initial.update(pair for pair, first in zip(pairs, made_up.begins(row["eojeol"]), strict=True) if first)
        holders.update(set(pairs))
    order = sorted(counts, key=lambda pair: (-counts[pair], *pair))
    columns = ("form", "tag", "count", "initial", "documents")
    return [dict(zip(columns, (*pair, counts[pair], initial[pair], holders[pair]), strict=True)) for pair in order]


def test_another_library_version_makes_all_parts_anew(morphemes, tmp_path, others_with):
    assert others_with(lambda: run(morphemes, tmp_path / "out"), "pyarrow")


def test_counts_leave_held_out_documents_out(morphemes, tmp_path):
    totals = run(morphemes, tmp_path / "out")
    learned = [row for row in ROWS if not is_heldout(row["id"], SEED, SHARE)]
    result = pq.read_table(tmp_path / "out" / "counts.parquet").to_pylist()
    assert result == expected_counts(learned)
    assert totals == {
        "documents": len(learned),
        "morphemes": sum(len(row["form"]) for row in learned),
        "eojeols": sum(len(set(row["eojeol"])) for row in learned),
        "distinct": len(result),
    }


def test_the_same_bytes_for_any_parts_and_workers(morphemes, tmp_path, bytes_below):
    run(morphemes, tmp_path / "1")
    run(made_up.write_parts(tmp_path / "other", [ROWS[:7], ROWS[7:]]), tmp_path / "2", workers=2)
    assert bytes_below(tmp_path / "1") == bytes_below(tmp_path / "2")


def test_everything_held_out_is_an_error(morphemes, tmp_path):
    for folder, said in (
        (morphemes, "every morpheme is in a held-out document: bring more text or hold out less"),
        (tmp_path / "none", r"no part-\*.parquet in there: run `korbert analyze` first"),
    ):
        with pytest.raises(CorpusError, match=said):
            run(folder, tmp_path / "out", share=1.0)


def test_form_counts_by_mark(morphemes, tmp_path):
    run(morphemes, tmp_path / "out", share=0.0)
    path = tmp_path / "out" / "counts.parquet"
    every = Counter(form for row in ROWS for form in row["form"])
    assert list(form_counts(path, VocabularySettings())) == sorted(every.items())
    by_mark = dict(form_counts(path, VocabularySettings(mark="eojeol")))
    initial = Counter(
        form for row in ROWS for form, first in zip(row["form"], made_up.begins(row["eojeol"]), strict=True) if first
    )
    assert by_mark == {f"▁{form}": number for form, number in initial.items()} | dict(every - initial)
    always = dict(form_counts(path, VocabularySettings(mark="morpheme")))
    assert always == {f"▁{form}": number for form, number in every.items()}


def counts_of(folder, *documents):
    """The counts of documents, each a list of (form, tag)."""
    rows = []
    for number, (forms, tags) in enumerate(zip(*document, strict=True) for document in documents):
        places = dict.fromkeys(("start", "end", "sentence", "eojeol"), range(len(forms)))
        rows.append({"id": f"s:{number}", "source": "s", "form": forms, "tag": tags, **places})
    run(made_up.write_parts(folder, [rows]), folder / "out", share=0.0)
    return folder / "out" / "counts.parquet"


def test_forms_of_few_documents_are_left_out(tmp_path):
    path = counts_of(tmp_path, [("책", "NNG")] * 3, [("학교", "NNG"), ("책", "VV")], [("학교", "NNG")])
    assert list(form_counts(path, VocabularySettings(), min_documents=2)) == [("학교", 2)]


@pytest.mark.parametrize("mark", ["none", "eojeol"])
def test_the_forms_cut_most_often_come_first(morphemes, tmp_path, mark):
    run(morphemes, tmp_path / "out", share=0.0)
    path = tmp_path / "out" / "counts.parquet"
    tokenizer = made_up.tokenizer(mark)
    pairs = [pair for row in ROWS for pair in zip(row["form"], made_up.begins(row["eojeol"]), strict=True)]
    cut = Counter(form for form, first in pairs if len(tokenizer.encode_forms([form], [first])[0]) > 1)
    order = sorted(cut, key=lambda form: (-cut[form], form))
    assert set(order) >= {"漢", "😀", "학교에"}
    for number in (0, 1, 2, len(order), 1000):
        assert frequent_cut_forms(path, tokenizer, number) == order[:number]
    least = cut[order[1]]
    assert frequent_cut_forms(path, tokenizer, 1000, min_count=least) == [f for f in order if cut[f] >= least]


def test_forms_with_spaces_or_too_long_are_not_chosen(tmp_path):
    forms = ["뷁뷁", "뷁 뷁", "뷁▁", "뷁" * 16, "뷁" * 17, "뷁뷁뷁"]
    path = counts_of(tmp_path, [(form, "NNG") for form in forms])
    assert frequent_cut_forms(path, made_up.tokenizer(), 10) == ["뷁뷁", "뷁뷁뷁", "뷁" * 16]
    assert frequent_cut_forms(path, made_up.tokenizer(), 10, min_documents=2) == []


@pytest.mark.parametrize("mark", ["none", "eojeol"])
def test_coverage_of_held_out_documents(morphemes, tmp_path, mark):
    tokenizer = made_up.tokenizer(mark)
    result = coverage(morphemes, tokenizer, tmp_path / "out", seed=SEED, heldout_share=SHARE, workers=1)
    held = [row for row in ROWS if is_heldout(row["id"], SEED, SHARE)]
    assert result["all"] == pytest.approx(expected_measures(held, tokenizer))
    for source in ("reviews", "wiki"):
        rows = [row for row in held if row["source"] == source]
        assert result["by_source"][source] == pytest.approx(expected_measures(rows, tokenizer))
    assert set(result["by_source"]) == {"reviews", "wiki"}
    assert set(result["most_split"]) == {"all", "reviews", "wiki"}
    assert {entry["form"] for entry in result["most_split"]["all"]} >= {"漢", "😀", "학교에"}
    for entries in result["most_split"].values():
        costs = [entry["count"] * (entry["pieces"] - 1) for entry in entries]
        if mark == "none":
            assert costs == sorted(costs, reverse=True)
    assert 0 < result["all"]["byte_share"] < result["all"]["whole_morpheme_share"] < 1
    result = coverage(morphemes, tokenizer, tmp_path / "none", seed=SEED, heldout_share=0.0, workers=1)
    assert (result["by_source"], result["most_split"]) == ({}, {"all": []})
    assert result["all"]["documents"] == result["all"]["byte_share"] == 0


def expected_measures(rows, tokenizer):
    ids = [pieces for row in rows for pieces in tokenizer.encode_forms(row["form"], made_up.begins(row["eojeol"]))]
    pieces = sum(map(len, ids))
    in_bytes = sum(128 <= id < 384 for morpheme in ids for id in morpheme)
    eojeols = sum(len(set(row["eojeol"])) for row in rows)
    return {
        "documents": len(rows),
        "morphemes": len(ids),
        "eojeols": eojeols,
        "pieces": pieces,
        "whole_morpheme_share": sum(len(morpheme) == 1 and morpheme[0] >= 384 for morpheme in ids) / len(ids),
        "pieces_per_morpheme": pieces / len(ids),
        "pieces_per_eojeol": pieces / eojeols,
        "byte_share": in_bytes / pieces,
    }


@pytest.mark.parametrize("mark", ["none", "eojeol"])
def test_usage_of_vocabulary_entries(morphemes, tmp_path, mark):
    tokenizer = made_up.tokenizer(mark)
    run(morphemes, tmp_path / "out", share=SHARE)
    counted = Counter(
        piece
        for row in ROWS
        if not is_heldout(row["id"], SEED, SHARE)
        for ids in tokenizer.encode_forms(row["form"], made_up.begins(row["eojeol"]))
        for piece in ids
    )
    entries = range(384, tokenizer.vocab_size)
    assert usage(tmp_path / "out" / "counts.parquet", tokenizer) == {
        "entries": len(entries),
        "never": sum(counted[entry] == 0 for entry in entries),
        "rarely": sum(0 < counted[entry] < 10 for entry in entries),
    }


def test_held_out_documents_depend_on_id_and_seed_alone():
    ids = [f"wiki:{number}" for number in range(20_000)]
    held = np.array([is_heldout(id, 0, 0.05) for id in ids])
    assert held.mean() == pytest.approx(0.05, abs=0.005)
    assert [is_heldout(id, 0, 0.05) for id in reversed(ids)] == held[::-1].tolist()
    assert held.tolist() == [held and is_heldout(id, 0, 0.3) for id, held in zip(ids, held, strict=True)]  # a superset
    assert [any(is_heldout(id, 0, share) for id in ids[:99]) for share in (0.0, 1.0)] == [False, True]
    assert (held & np.array([is_heldout(id, 1, 0.05) for id in ids])).mean() == pytest.approx(0.0025, abs=0.001)
