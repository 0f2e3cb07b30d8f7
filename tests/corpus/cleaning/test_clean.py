import gzip
import json
import math
import random

import faults
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from korbert.corpus.cleaning.clean import clean
from korbert.corpus.corpus_settings import (
    AnalyzeSettings,
    CleanSettings,
    DuplicateSettings,
    FilterSettings,
    NormalizeSettings,
    ShardSettings,
)
from korbert.errors import CorpusError

WORDS = ["학교", "도서관", "책상", "하늘이", "사람들은", "오늘도", "읽었다", "걸었다", "바다에서", "노래했다", "좋다"]
ALL = DuplicateSettings(equal=False, near=0, template_share=1, line_documents=0)
NOTICE = "이 글은 어디에나 붙어 있는 안내문입니다."
SENTENCE = "학교에서 책을 읽었다고 한다."


def sentence(generator):
    return " ".join(generator.choices(WORDS, k=generator.randint(3, 9))) + "."


def write_jsonl(path, documents):
    """documents: rows, or texts whose ids are their numbers."""
    rows = [{"id": number, "text": row} if isinstance(row, str) else row for number, row in enumerate(documents)]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    generator = random.Random(0)
    texts = [sentence(generator) for _ in range(600)]
    for _ in range(60):  # two near-duplicates each, below a line that stands in all
        words = generator.choices(WORDS, k=40)
        texts += [f"{NOTICE}\n{' '.join(words)}", f"{NOTICE}\n{' '.join(words)} {generator.choice(WORDS)}"]
    generator.shuffle(texts)
    path = tmp_path_factory.mktemp("source") / "wiki.jsonl"
    return write_jsonl(path, [{"id": f"w{n}", "text": text} for n, text in enumerate(texts)])


@pytest.fixture(scope="module")
def reference(tmp_path_factory, wiki, bytes_below):
    """The files that a single worker makes of `wiki` without interruption."""
    output = tmp_path_factory.mktemp("reference")
    clean(settings(), {"wiki": [wiki]}, output, workers=1)
    files = bytes_below(output)
    assert len(files) > 30
    return files


def settings(**changed):
    return CleanSettings(**({"sources": [{"name": "wiki", "path": "x"}], "part_bytes": 2048} | changed))


def read(folder, name):
    return pq.read_table(folder / name).to_pylist()


def test_documents_are_kept_or_dropped_with_a_reason(tmp_path):
    good = {"id": "b", "text": "\u1112\u1161\u11a8\u1100\u116d에서  책을 읽었다.\r\n\r\n그리고 잤다.  "}
    rows = [good, {"id": "short", "text": "네."}, {"id": "en", "text": "An English text only."}]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    text = tmp_path / "b.txt"
    with path.open("ab") as file:
        file.write(b'{"id": "cut", "text": "\n' + b'{"id": "latin", "text": "\xe9t\xe9"}\n{"id": 3, "text": []}\n')
    text.write_text("\ufeff학교에서 책을 읽었다.\n학교에서 책을 읽었다.\n하늘이 파랗고 바다도 파랗다.\n")
    sources = [{"name": "wiki", "path": "x"}, {"name": "lines", "path": "x"}]
    counts = clean(settings(sources=sources), {"wiki": [path], "lines": [text]}, tmp_path / "out", workers=1)
    assert read(tmp_path / "out", "documents") == [
        {"id": "wiki:b", "source": "wiki", "text": "학교에서 책을 읽었다.\n\n그리고 잤다."},
        {"id": "lines:1", "source": "lines", "text": "학교에서 책을 읽었다."},
        {"id": "lines:3", "source": "lines", "text": "하늘이 파랗고 바다도 파랗다."},
    ]
    rows = read(tmp_path / "out", "dropped")
    assert rows[0].keys() == {"id", "source", "reason", "detail", "text"}
    dropped = {row["reason"]: (row["id"], row["text"], row["detail"]) for row in rows}
    assert dropped["too_short"] == ("wiki:short", "네.", "2")
    assert dropped["too_little_hangul"][:2] == ("wiki:en", "An English text only.")
    assert dropped["bad_json"][:2] == (None, '{"id": "cut", "text": "')
    assert dropped["bad_json"][2].startswith("a.jsonl line 4: ")
    assert dropped["bad_encoding"][1] == '{"id": "latin", "text": "\\xe9t\\xe9"}'
    assert dropped["bad_text"][::2] == ("wiki:3", "a.jsonl line 6: 'text' is a list, not a text")
    assert dropped["exact_duplicate"][::2] == ("lines:2", "lines:1")
    assert counts == {
        "chars": 21 + 12 + 16, "documents": 3, "dropped": 6, "read": 9,
        **{f"dropped.{reason}": 1 for reason in sorted(dropped)}, "kept.lines": 2, "kept.wiki": 1,
    }  # fmt: skip


def test_near_duplicates_and_frequent_lines(tmp_path, wiki):
    counts = clean(settings(), {"wiki": [wiki]}, tmp_path / "out", workers=1)
    assert counts["dropped.near_duplicate"] == 60
    assert counts["cut.documents"] == counts["cut.lines"] == 60
    assert list(counts)[:4] == ["read", "documents", "dropped", "chars"]
    assert read(tmp_path / "out", "frequent") == [{"text": NOTICE, "documents": 60}]
    kept = {row["id"]: row["text"] for row in read(tmp_path / "out", "documents")}
    assert not any(NOTICE in text for text in kept.values())
    for row in read(tmp_path / "out", "dropped"):
        if row["reason"] == "near_duplicate":
            assert kept[row["detail"]].startswith(row["text"].removeprefix(f"{NOTICE}\n"))


def test_a_document_of_frequent_lines_is_dropped(tmp_path):
    texts = [f"{NOTICE}\n{number}번째 글에는 다른 말이 적혀 있다." for number in range(3)] + [f"{NOTICE}\n짧다."]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    clean(settings(duplicates=DuplicateSettings(line_documents=3)), {"wiki": [path]}, tmp_path / "out", workers=1)
    (row,) = read(tmp_path / "out", "dropped")
    assert list(row.values()) == ["wiki:3", "wiki", "frequent_lines", "1", texts[3]]


EVALUATION = [{"name": "test", "path": "x", "text": "document"}, {"name": "reading", "path": "x", "kind": "korquad"}]
CONTEXT = "보부상은 장시를 돌며 물건을 팔았고 강가에는 포구가 생겨 쌀과 소금이 모였다."


@pytest.mark.parametrize("unit", ["document", "line"])
def test_text_of_evaluation_sets_is_removed(tmp_path, unit, bytes_below):
    review = "배우들의 연기가 정말로 훌륭했던 영화"
    rows = f"id\tdocument\n1\t{review}\n2\t좋다\n3\t아무도 보지 않은 다른 영화들의 이야기\n"
    (tmp_path / "test.tsv").write_text(rows, "utf-8")
    (tmp_path / "reading.json").write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT}]}]}), "utf-8")
    texts = [f"{review}!!", f"장시의 역사\n{CONTEXT}\n그 뒤의 이야기도 길게 이어진다.", "아무 데도 나오지 않는 글이다."]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    files = {"wiki": [path], "test": [tmp_path / "test.tsv"], "reading": [tmp_path / "reading.json"]}
    some = settings(evaluation=EVALUATION, decontamination={"unit": unit})
    counts = clean(some, files, tmp_path / "out", workers=1)
    assert {name: number for name, number in counts.items() if name.startswith(("evaluation", "contaminated"))} == {
        "contaminated.reading": 1,
        "contaminated.test": 1,
        "evaluation.test.texts": 3,
        "evaluation.test.looked_for": 2,
        "evaluation.test.found": 1,
        **{f"evaluation.reading.{kind}": 1 for kind in ("texts", "looked_for", "found")},
    }
    dropped = {row["id"]: row["detail"] for row in read(tmp_path / "out", "dropped")}
    kept = [row["text"] for row in read(tmp_path / "out", "documents")]
    assert dropped["wiki:0"] == f"test: {review}"
    if unit == "document":
        assert dropped["wiki:1"] == "reading: 보부상은 장시를 돌며 물건을 팔았고 강가에는 포구가 생겨"
        assert kept == texts[2:]
    else:
        assert kept == ["장시의 역사\n그 뒤의 이야기도 길게 이어진다.", texts[2]]
    before = bytes_below(tmp_path / "out")
    clean(some, files, tmp_path / "out", workers=2)
    assert bytes_below(tmp_path / "out") == before
    (tmp_path / "test.tsv").write_text("id\tdocument\n1\t다른 파일에 적혀 있던 전혀 다른 글 하나\n", "utf-8")
    assert clean(some, files, tmp_path / "out", workers=1)["evaluation.test.found"] == 0


def test_a_wrong_encoding_in_the_recipe_is_an_error(tmp_path):
    path = tmp_path / "old.csv.gz"
    text = "id,text\n" + "".join(f"{number},학교에서 책을 {number}번 읽었다.\n" for number in range(50))
    path.write_bytes(gzip.compress(text.encode("cp949")))
    source = {"name": "old", "path": "x"}
    assert clean(settings(sources=[source]), {"old": [path]}, tmp_path / "auto", workers=1)["documents"] == 50
    for name, more, said in (
        ("given", {}, r"source 'old': 700 of 1,480 bytes cannot be decoded in the encoding that"),
        ("allowed", {"max_undecodable": 1.0},
         r"old.csv.gz: no document in source 'old': old.csv.gz line 2: byte 0xc7 at character 2 is no UTF-8"),
    ):  # fmt: skip
        wrong = settings(sources=[source | {"encoding": "utf-8", **more}])
        with pytest.raises(CorpusError, match=said):
            clean(wrong, {"old": [path]}, tmp_path / name, workers=1)


def test_a_source_of_faulty_records_stops_the_stage_beside_another(tmp_path):
    good = write_jsonl(tmp_path / "good.jsonl", [SENTENCE])
    bad = write_jsonl(tmp_path / "bad.jsonl", [{"id": 1, "body": SENTENCE}] * 2)
    some = settings(sources=[{"name": "good", "path": "x"}, {"name": "bad", "path": "x"}])
    with pytest.raises(CorpusError, match=r"no document in source 'bad': bad.jsonl line 1: 'text' is missing"):
        clean(some, {"good": [good], "bad": [bad]}, tmp_path / "out", workers=1)


def test_another_library_version_makes_all_parts_anew(tmp_path, others_with):
    path = write_jsonl(tmp_path / "a.jsonl", [SENTENCE])
    assert others_with(lambda: clean(settings(), {"wiki": [path]}, tmp_path / "out", workers=1), "mwparserfromhell")


@pytest.mark.slow
def test_other_settings_leave_no_old_parts(tmp_path, wiki, reference, bytes_below):
    other = settings(part_bytes=1024, filters=FilterSettings(min_chars=20), duplicates=ALL)
    counts = clean(other, {"wiki": [wiki]}, tmp_path / "out", workers=1)
    assert counts["dropped"] == counts["dropped.too_short"] > 0
    clean(settings(), {"wiki": [wiki]}, tmp_path / "out", workers=1)
    assert bytes_below(tmp_path / "out") == reference
    clean(other, {"wiki": [wiki]}, tmp_path / "out", workers=1)
    assert {name.split("/")[0] for name in bytes_below(tmp_path / "out")} == {"documents", "dropped"}


@pytest.mark.slow
@pytest.mark.parametrize("step", ["read", "write"])
def test_a_killed_run_is_resumed(tmp_path, wiki, reference, bytes_below, kill_when, step):
    output = tmp_path / "out"
    script = (
        "from pathlib import Path; from korbert.corpus.cleaning.clean import clean\n"
        "from korbert.corpus.corpus_settings import CleanSettings\n"
        f"settings = CleanSettings.model_validate_json({settings().model_dump_json()!r})\n"
        f"clean(settings, {{'wiki': [Path({str(wiki)!r})]}}, Path({str(output)!r}), workers=2)"
    )
    records = output / "work" / step
    kill_when(script, lambda: len(list(records.glob("part-*.json"))) >= 2)
    finished = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in records.glob("part-*.json")}
    assert len(finished) < len(reference) / 2
    clean(settings(), {"wiki": [wiki]}, output, workers=1)
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in finished} == finished
    assert bytes_below(output) == reference


@pytest.mark.slow
def test_a_halved_part_has_the_bytes_of_a_whole_one(tmp_path, monkeypatch, bytes_below):
    texts = [sentence(random.Random(number)) for number in range(30)]
    path = write_jsonl(tmp_path / "a.jsonl", [f"{NOTICE}\n{text}" for text in texts])
    (tmp_path / "test.tsv").write_text(f"id\tdocument\n1\t{texts[7]} {texts[8]}\n2\t{NOTICE}다\n", "utf-8")
    evaluation = [{"name": "test", "path": "x", "text": "document"}]
    some = settings(evaluation=evaluation, part_bytes=1 << 20, duplicates=DuplicateSettings(line_documents=5))
    files = {"wiki": [path], "test": [tmp_path / "test.tsv"]}
    counts = clean(some, files, tmp_path / "whole", workers=1)
    monkeypatch.setattr("korbert.corpus.cleaning.clean._read", faults.read_small_pieces)
    assert clean(some, files, tmp_path / "halved", workers=2) == counts
    assert bytes_below(tmp_path / "halved") == bytes_below(tmp_path / "whole")
    assert all(path.stem == "part-00000" for path in (tmp_path / "halved" / "work").rglob("part-*.parquet"))


@pytest.mark.parametrize(
    ("mark", "reason"),
    [(faults.CRASH, "clean_crashed"), pytest.param(faults.HANG, "clean_timeout", marks=pytest.mark.slow)],
)
def test_a_record_that_crashes_or_hangs_is_the_only_one_lost(tmp_path, monkeypatch, mark, reason):
    texts = ["학교에서 책을 읽었다.", "도서관에서 노래를 들었다.", f"이 글은 {mark} 한다.", "바다에서 사람들이 걸었다."]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    monkeypatch.setattr("korbert.corpus.cleaning.clean._read", faults.read_or_fail)
    monkeypatch.setattr("korbert.corpus.cleaning.clean._MIN_SECONDS", 6.0)
    counts = clean(settings(part_bytes=1 << 20), {"wiki": [path]}, tmp_path / "out", workers=2)
    assert counts.items() >= {"documents": 3, "dropped": 1, f"dropped.{reason}": 1}.items()
    (row,) = read(tmp_path / "out", "dropped")
    told = {"clean_crashed": "its worker process ended", "clean_timeout": "no result after 6 seconds"}[reason]
    assert list(row.values()) == ["wiki:2", "wiki", reason, f"a.jsonl line 3: {told}", texts[2]]
    assert [row["id"] for row in read(tmp_path / "out", "documents")] == ["wiki:0", "wiki:1", "wiki:3"]


@pytest.mark.slow
def test_a_source_whose_every_record_crashes_is_dropped(tmp_path, monkeypatch):
    path = write_jsonl(tmp_path / "a.jsonl", [{"id": 1, "text": f"이 글은 {faults.CRASH} 하고 말한다."}])
    other = write_jsonl(tmp_path / "b.jsonl", [SENTENCE])
    monkeypatch.setattr("korbert.corpus.cleaning.clean._read", faults.read_or_fail)
    some = settings(sources=[{"name": "wiki", "path": "x"}, {"name": "b", "path": "x"}])
    counts = clean(some, {"wiki": [path], "b": [other]}, tmp_path / "out", workers=2)
    assert counts.items() >= {"documents": 1, "dropped.clean_crashed": 1}.items()


GOOD = f'{{"id": 1, "text": "{SENTENCE}"}}\n'.encode()
SHORT = '{"id": 2, "text": "네"}\n'.encode()
EMPTY = r"a.jsonl: no document in source 'wiki': its files hold no record"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.jsonl.gz": gzip.compress(GOOD * 2_000)[:-20]}, r"a.jsonl.gz: ends inside frame 1"),
        ({"none.jsonl": None}, r"none.jsonl: no such file: check the path of 'wiki'"),
        ({}, r"'wiki': no file"),
        ({"a.jsonl": b"\n\n"}, EMPTY),
        ({"a.jsonl": b""}, EMPTY),
        ({"a.jsonl": SHORT}, r"no document is left \(1 dropped.too_short\)"),
        ({"a.jsonl": GOOD, "b.jsonl": SHORT + GOOD},
         r"a.jsonl line 1 and .*b.jsonl line 2: both have the id 'wiki:1': make ids unique"),
    ],
)  # fmt: skip
def test_files_that_give_no_corpus_are_errors(tmp_path, files, message):
    for name in [name for name in files if files[name] is not None]:
        (tmp_path / name).write_bytes(files[name])
    with pytest.raises(CorpusError, match=message):
        clean(settings(), {"wiki": [tmp_path / name for name in files]}, tmp_path / "out", workers=1)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (FilterSettings, {"max_word_chars": math.inf}), (FilterSettings, {"min_hangul_share": math.nan}),
        (FilterSettings, {"min_hangul_share": 2}), (FilterSettings, {"max_top_ngram_shares": (0.1, math.nan, 0.3)}),
        (FilterSettings, {"max_chars": 10**5000}), (DuplicateSettings, {"line_documents": 10**40}),
        (NormalizeSettings, {"max_repeats": 10**12}), (AnalyzeSettings, {"deadline_seconds": 1e300}),
        (ShardSettings, {"part_bytes": 10**30}),
    ],
)  # fmt: skip
def test_absurd_numbers_are_refused(kind, values):
    with pytest.raises(ValidationError):
        kind(**values)
    with pytest.raises(ValidationError, match="two sources or evaluation sets are named 'wiki'"):
        settings(sources=[{"name": "wiki", "path": "a"}, {"name": "wiki", "path": "b"}])
