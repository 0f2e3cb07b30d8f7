"""What the pages of the stages say is what their artifacts hold."""

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.reports import analyze, clean, formatting, pretrain, shard, task, vocab
from pipelines.reports.kinds import common as evaluation
from pipelines.reports.kinds import question_answering as reading
from pipelines.reports.page import render


def _elements(story):
    """Title -> block."""
    return {block.title: block for section in story.sections for block in section.elements}


def _said(page, end):
    """The text of a page up to a heading, without what pictures say."""
    text = re.sub(r"<style>.*?</style>|<title>.*?</title>|<svg.*?</svg>|<[^>]*>", " ", page, flags=re.DOTALL)
    return text[: text.index(end)]


def _plain(text):
    return text.replace("\u00a0", " ")


def _change(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_clean_counts_what_was_dropped(maker):
    elements = _elements(clean.story(maker.open("clean")))
    texts = [(bar.label, bar.text) for bar in elements["Drop reasons"].bars]
    assert [(name, _plain(text)) for name, text in texts] == [
        ("too short", "11.47 %"),
        ("exact duplicate", "4.13 %"),
        ("hangul below min", "1.83 %"),
    ]
    *reasons, kept = elements["Documents by reason and source"].rows
    assert sum(int(cell) for row in reasons for cell in row[1:]) == 38
    assert sum(int(cell) for cell in kept[1:]) == 180


def test_clean_says_each_number_once(maker):
    page = render(maker("clean")).read_text(encoding="utf-8")
    said = Counter(re.findall(r"[\d,.]+\d|\d", _said(page, "Examples of dropped documents")))
    for number in ("218", "180", "38", "82.6", "11.47"):
        assert said[number] == 1, number


def test_clean_of_one_source_compares_no_sources(maker):
    folder = maker("clean")
    for path in [*folder.glob("documents/*"), *folder.glob("dropped/*")]:
        table = pq.read_table(path)
        names = pa.array(["wiki"] * table.num_rows)
        pq.write_table(table.set_column(table.column_names.index("source"), "source", names), path)
    elements = _elements(clean.story(maker.open("clean")))
    assert not elements.keys() & {"Documents by reason and source", "Share kept by source"}
    assert elements["Drop reasons"].legend == ()
    assert [bar.text for bar in elements["Drop reasons"].bars] == ["25", "9", "4"]


def test_clean_samples_do_not_depend_on_parts(maker):
    before = _elements(clean.story(maker.open("clean")))
    path = maker.recipe / "clean" / "dropped" / "part-00000.parquet"
    rows = [
        row
        for batch in clean.batches([path], ["id", "source", "reason", "detail", "text"])
        for row in batch.to_pylist()
    ]
    maker.write_parquet(path, rows[:13])
    maker.write_parquet(path.with_name("part-00001.parquet"), rows[13:])
    after = _elements(clean.story(maker.open("clean")))
    assert len(before["too short · 20 shown"].entries) == 20
    assert before["too short · 20 shown"] == after["too short · 20 shown"]


def test_clean_shows_each_dropped_text_beside_what_was_kept(maker):
    folder = maker("clean")
    path = folder / "dropped" / "part-00000.parquet"
    rows = [
        row
        for batch in clean.batches([path], ["id", "source", "reason", "detail", "text"])
        for row in batch.to_pylist()
    ]
    kept = ["wiki:1-7"] * 60 + ["wiki:2-3"] * 3 + ["wiki:0-1", "wiki:0-2"]
    near = {"source": "wiki", "reason": "near_duplicate", "text": "거의 같은 글"}
    maker.write_parquet(path, rows + [near | {"id": f"wiki:n{n}", "detail": id} for n, id in enumerate(kept)])
    frequent = [{"text": f"어디에나 있는 줄 {number}", "documents": 900 - number} for number in range(30)]
    (folder / "frequent").mkdir()
    maker.write_parquet(folder / "frequent" / "part-00000.parquet", frequent)
    counts = {"evaluation.nsmc_test.texts": 50_000, "evaluation.nsmc_test.looked_for": 30_000, "masked.email": 7}
    counts |= {"evaluation.nsmc_test.found": 15, "contaminated.nsmc_test": 21, "masked.resident_number": 2}
    record = json.loads((folder / "stage.json").read_text())
    _change(folder / "stage.json", counts=record["counts"] | counts)
    elements = _elements(clean.story(maker.open("clean")))
    assert elements["Near-duplicate clusters"].rows == (
        ("2", "2", "2"),
        ("3 to 5", "1", "3"),
        ("6 to 10", "0", "0"),
        ("11 to 50", "0", "0"),
        ("51 or more", "1", "60"),
    )
    lines = elements["Frequent lines removed"]
    assert lines.rows[0] == ("어디에나 있는 줄 0", "900")
    assert (len(lines.rows), lines.note) == (20, "10 more in the folder `frequent`.")
    assert [_plain(cell) for cell in elements["Evaluation texts found in the corpus"].rows[0]] == [
        "nsmc_test", "50,000", "30,000", "15", "0.1 %", "21",
    ]  # fmt: skip
    assert [(bar.label, bar.text) for bar in elements["Occurrences masked, by kind"].bars] == [
        ("email", "7"),
        ("resident number", "2"),
    ]
    texts = {row["id"]: row["text"] for batch in clean.batches(maker.open("clean").parts("documents/*"), ["id", "text"])
             for row in batch.to_pylist()}  # fmt: skip
    for entry in elements["near duplicate · 20 shown"].entries:
        facts = dict(entry.facts)
        assert facts["kept instead"].removesuffix(" …") == texts[facts["detail"]][:320].rstrip()
    beside = [dict(entry.facts)["a kept document"] for entry in elements["too short · 20 shown"].entries]
    assert len(set(beside)) > 5
    assert all(any(text.startswith(other.removesuffix(" …")) for text in texts.values()) for other in beside)


def test_clean_without_drops_says_so(maker):
    folder = maker("clean")
    (folder / "dropped" / "part-00000.parquet").unlink()
    story = clean.story(maker.open("clean"))
    assert story.lede.endswith("Nothing was dropped.")
    assert story.title.startswith("100.0")


def test_analyze_counts_sentences_and_eojeols(maker):
    path = maker.recipe / "morphemes.parquet"
    rows = [
        {
            "id": "a",
            "source": "s",
            "tag": ["NNG", "JX", "VV", "EF", "SF"],
            "sentence": [0, 0, 0, 0, 1],
            "eojeol": [0, 0, 1, 1, 1],
        },
        {"id": "b", "source": "s", "tag": [], "sentence": [], "eojeol": []},
        {"id": "c", "source": "s", "tag": ["IC"], "sentence": [0], "eojeol": [0]},
    ]
    schema = pa.schema(
        [("id", pa.string()), ("source", pa.string()), ("tag", pa.list_(pa.string()))]
        + [(name, pa.list_(pa.int32())) for name in ("sentence", "eojeol")]
    )
    maker.write_parquet(path, rows, schema)
    measured = analyze._measure(analyze.batches([path], ["source", "tag", "sentence", "eojeol"]))
    assert measured.eojeols.tolist() == [0, 1, 1, 1, 0, 0, 0, 0, 0]
    assert measured.tags == {"NNG": 1, "JX": 1, "VV": 1, "EF": 1, "SF": 1, "IC": 1}
    _, sentences = measured.sentences.elements("t", unit="sentences")
    assert sentences.rows == (("s", "3", "0", "1", "2", "2"),)


def test_analyze_names_tags_and_failures(maker):
    story = analyze.story(maker.open("analyze"))
    elements = _elements(story)
    assert elements["Most frequent tags"].bars[0].label == "NNP 고유 명사"
    assert elements["Failed documents"].rows == (("Kiwi timed out", "1"),)
    assert "with 2 workers" in story.lede
    assert story.title.endswith(", 1 failed")
    assert analyze._gloss("VV-I") == "동사, 불규칙"
    assert analyze._gloss("새것") == ""


def test_analyze_without_failures_says_so_once(maker):
    (maker("analyze") / "failed" / "part-00000.parquet").unlink()
    story = analyze.story(maker.open("analyze"))
    assert story.title.endswith(", none failed")
    assert "Failed documents" not in _elements(story)
    page = render(maker.recipe / "analyze").read_text(encoding="utf-8")
    assert _said(page, "Provenance").count(" none") == 1


def test_vocab_says_each_share_once(maker):
    elements = _elements(vocab.story(maker.open("vocab")))
    shares = [bar.text for bar in elements["Single-piece morphemes"].bars]
    assert not {cell for row in elements["Tokenization by source"].rows for cell in row} & set(shares)


def test_analyze_gives_no_speed_of_a_run_that_was_resumed(maker):
    _change(maker("analyze") / "run.json", resumed=True)
    artifact = maker.open("analyze")
    assert "documents/s" not in [headline.label for headline in analyze.headlines(artifact)]
    assert "duration unknown" in analyze.story(artifact).lede


def test_vocab_reads_counts_at_ranks_as_if_all_were_in_memory(maker, monkeypatch):
    monkeypatch.setattr("pipelines.reports.record._BATCH_ROWS", 7)
    artifact = maker.open("vocab")
    ranks = np.array([1, 2, 7, 8, 100, 720])
    at, sums = vocab._at_ranks(artifact, ranks)
    counts = np.concatenate(
        [batch.column("count").to_numpy() for batch in vocab.batches(artifact.parts("counts.parquet"), ["count"])]
    )
    assert at.tolist() == counts[ranks - 1].tolist()
    assert sums.tolist() == counts.cumsum()[ranks - 1].tolist()


def test_vocab_leaves_special_and_byte_entries_out_of_the_lengths(maker):
    note = _elements(vocab.story(maker.open("vocab")))["Piece length"].note
    assert note.startswith("50 pieces")


def test_vocab_of_one_source_is_not_shown_twice(maker):
    path = maker("vocab") / "coverage.json"
    _change(path, by_source={"wiki": json.loads(path.read_text())["all"]})
    assert [row[0] for row in _elements(vocab.story(maker.open("vocab")))["Tokenization by source"].rows] == ["wiki"]


def test_shard_sums_pieces_by_source(maker):
    artifact = maker.open("shard")
    sizes = [
        len(ids)
        for batch in shard.stream(artifact.parts("train/*.arrow"))
        for ids in batch.column("input_ids").to_pylist()
    ]
    story = shard.story(artifact)
    assert story.title == f"{formatting.compact(sum(sizes))} training pieces"
    rows = _elements(story)["Documents and pieces"].rows
    assert sum(int(row[3].replace(",", "")) for row in rows if row[0] == "training") == sum(sizes)
    assert _elements(story)["Vocabulary usage"].rows[1] == ("seen at least once", "400", "100.0\u00a0%")


def test_pretrain_says_how_far_it_is_from_the_unigram(maker):
    story = pretrain.story(maker.open("pretrain"))
    assert story.title == "0.89 nats better than the unigram baseline"
    assert "2.4 M parameters" in _plain(story.lede)
    assert "1.71 epochs" in story.lede
    assert _elements(story)["Held-out MLM loss"].legend == (("model", 1, False), ("unigram", 0, True))
    assert "Throughput" in _elements(story)


def test_pretrain_that_learned_nothing_is_not_praised(maker):
    _change(maker("pretrain") / "scores.json", mlm_loss=7.5)
    assert pretrain.story(maker.open("pretrain")).title == "0.19 nats worse than the unigram baseline"
    _change(maker.recipe / "pretrain" / "scores.json", mlm_loss=7.312)
    assert pretrain.story(maker.open("pretrain")).title == "No better than the unigram baseline"


def test_pretrain_measured_once_has_no_curve(maker):
    folder = maker("pretrain")
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    (folder / "metrics.jsonl").write_text(lines[-1] + "\n")
    (folder / "timing.jsonl").unlink()
    elements = _elements(pretrain.story(maker.open("pretrain")))
    assert set(elements) == {"All measurements"}
    assert len(elements["All measurements"].rows) == 1


def _extended(maker, name, change):
    """An artifact of pretrain whose lines of a file have more in them."""
    folder = maker.recipe / "pretrain"
    path = (folder if folder.exists() else maker("pretrain")) / name
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    maker.write_lines(path, [{**line, **change(line)} if line["kind"] != "start" else line for line in lines])


def test_pretrain_of_an_older_version_has_no_curve_of_what_it_did_not_measure(maker):
    elements = _elements(pretrain.story(maker.open("pretrain")))
    assert not {"Padding", "Waiting for rows"} & set(elements)
    assert elements["Learning rate"].legend == ()
    assert "waited" not in pretrain.story(maker.open("pretrain")).lede


def test_pretrain_draws_what_it_measured(maker):
    rate = "learning_rate"
    _extended(maker, "metrics.jsonl", lambda line: {"pieces": 500 * line["step"]})
    _extended(
        maker,
        "metrics.jsonl",
        lambda line: {"padding": 0.125, f"{rate}/embedding": line[rate] / 2} if line["kind"] == "train" else {},
    )
    _extended(maker, "timing.jsonl", lambda line: {"seconds": 2.0, "waited_seconds": 0.5})
    story = pretrain.story(maker.open("pretrain"))
    elements = _elements(story)
    assert _plain(story.lede).endswith("The device waited 25.0 % of the time for rows.")
    assert elements["Learning rate"].legend == (("all others", 1, False), ("embedding", 2, False))
    assert all(elements[title].kind == "picture" for title in ("Padding", "Waiting for rows", "Throughput"))
    assert ">pieces<" in elements["Held-out MLM loss"].svg
    assert ">minutes<" in elements["Held-out MLM loss over time"].svg
    row = [_plain(cell) for cell in elements["All measurements"].rows[-1]]
    assert row[:3] == ["4,000", "2 M", "13 min 20 s"]


def test_pretrain_shows_what_it_began_with(maker):
    _extended(maker, "metrics.jsonl", lambda line: {"pieces": 500 * line["step"]})
    plain = pretrain.story(maker.open("pretrain"))
    assert "Training started" not in plain.lede
    assert "before" not in pretrain.headlines(maker.open("pretrain"))[0].note
    folder = maker.recipe / "pretrain"
    _change(folder / "scores.json", init_mlm_loss=9.25, init_mlm_accuracy=0.04, init_nsp_loss=None)
    record = json.loads((folder / "stage.json").read_text())
    _change(folder / "stage.json", settings=record["settings"] | {"init": "before/<pretrain>"})

    artifact = maker.open("pretrain")
    story = pretrain.story(artifact)
    elements = _elements(story)
    assert story.lede.endswith(" Training started from the weights of before/<pretrain>.")
    assert pretrain.headlines(artifact)[0].note == "unigram 7.31, before training 9.25"
    first, *others = elements["All measurements"].rows
    assert others == list(_elements(plain)["All measurements"].rows)
    assert [_plain(cell) for cell in first] == ["0", "0", "0.0 s", "9.250", "7.310", "4.0 %", "–", "–"]
    assert elements["Held-out MLM loss"].svg != _elements(plain)["Held-out MLM loss"].svg  # a point more
    assert "before/&lt;pretrain&gt;" in render(folder).read_text(encoding="utf-8")


def test_pretrain_says_where_it_was_in_trouble(maker):
    path = maker("pretrain") / "metrics.jsonl"

    def sections():
        return {section.title: section for section in pretrain.story(maker.open("pretrain")).sections}

    def norms():
        return sections()["Learning rate and gradient norm"].elements[-1].note

    assert (sections()["Training loss"].text, norms()) == ("", "")
    _extended(maker, "metrics.jsonl", lambda line: {"spikes": 2} if line["step"] in (120, 1500) else {})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for number, named in ((2, "1,205, 1,215"), (12, f"{', '.join(f'1,2{n}5' for n in range(10))} and 2 more")):
        left_out = [{"kind": "left_out", "step": 1205 + 10 * place} for place in range(number)]
        maker.write_lines(path, [*lines, *left_out])
        assert sections()["Training loss"].text == (
            f"Steps left out because their loss or gradient was not finite: {named}."
        )
    assert norms() == (
        "Norms above ten times the mean of the interval before: 4, the last at or shortly before step 1,500."
    )


def _sample(step, row, share, guesses=("가", "나", "다", "라", "마")):
    told = [{"piece": piece, "probability": share / (place + 1)} for place, piece in enumerate(guesses)]
    gaps = [{"piece": "나", "probability": share / 2, "guesses": told}]
    return {"step": step, "row": row, "source": "wiki", "text": ["앞 ", "ᆫ 뒤 <b>"], "gaps": gaps}


def test_pretrain_shows_how_guesses_change(maker):
    lines = [_sample(step, row, step / 1000) for step in range(100, 800, 100) for row in (7, 1234)]
    maker.write_lines(maker("pretrain") / "samples.jsonl", lines)
    story = pretrain.story(maker.open("pretrain"))
    assert story.sections[0].title == "Filling gaps in held-out rows"
    first, second = story.sections[0].elements
    assert (first.title, second.title) == ("wiki, row 7", "wiki, row 1,234")
    assert first.head == ("step 100", "step 400", "step 700")
    assert first.text == ("앞 ", "ㄴ 뒤 <b>")
    assert [_plain(guesses[1].share) for guesses in first.gaps[0].guesses] == ["5.0 %", "20.0 %", "35.0 %"]
    assert [guess.right for guess in first.gaps[0].guesses[0]] == [False, True, False, False, False]
    page = render(maker.recipe / "pretrain").read_text(encoding="utf-8")
    assert "앞 <mark>나</mark>ㄴ 뒤 &lt;b&gt;" in page
    assert '<li class="right"><b lang="ko">나</b> 35.0' in page


def test_the_right_piece_stands_below_the_likeliest_ones(maker):
    maker.write_lines(maker("pretrain") / "samples.jsonl", [_sample(100, 7, 0.5, ("가", "다", "라", "ᆫ", "마"))])
    (gapped,) = pretrain.story(maker.open("pretrain")).sections[0].elements
    assert gapped.head == ("step 100",)
    (guesses,) = gapped.gaps[0].guesses
    assert [guess.piece for guess in guesses] == ["가", "다", "라", "ㄴ", "마", "나"]
    assert [guess.right for guess in guesses] == [False] * 5 + [True]


def _sections(maker, **changes):
    """The sections on answers, with other details."""
    folder = maker("korquad")
    scores = json.loads((folder / "scores.json").read_text())
    scores["details"] |= changes
    (folder / "scores.json").write_text(json.dumps(scores))
    return _elements(task.story(maker.open("korquad")))


def test_answers_are_counted_in_whole_numbers(maker):
    svg = _sections(maker, answer_chars=[0, 0, 1], prediction_chars=[0, 1])["Answer length"].svg
    assert not re.findall(r">\d+\.\d+<", svg)


def test_unseen_rows_have_a_table_of_their_own(maker):
    table = _elements(task.story(maker.open("nsmc")))["Unseen rows"]
    assert [_plain(cell) for cell in table.rows[0]] == ["pretrained", "77.30 %", "77.30 %"]
    assert table.note.startswith("The 1,900 scored rows")


def test_trainings_are_named_in_words():
    assert evaluation.run_name("scratch-rate-0.0005-seed-1") == "not pretrained, rate 0.0005, seed 1"
    assert evaluation.run_name("pretrained-rate-5e-05-seed-0") == "pretrained, rate 5e-05, seed 0"
    assert evaluation.run_name("다른 것") == "다른 것"


def test_misses_are_shown_by_cause(maker):
    elements = _sections(maker)
    assert [bar.label for bar in elements["Errors by cause"].bars] == [
        "elsewhere",
        "boundary",
        "overlap",
        "unreachable",
    ]
    entry = elements["elsewhere · 11 shown"].entries[0]
    assert entry.text == "그 다리는 언제 놓였나?"
    assert entry.facts == (("correct", "1936년"), ("predicted", "1936년에 놓"))
    assert elements["overlap · 5 shown"].entries[0].facts[1] == ("predicted", "(nothing)")


def test_both_answers_are_marked_where_they_stand(maker):
    context = "그 다리는 <1930년>에 짓기 시작하여 1936년에 놓였다."
    right, given = context.index("1936년"), context.index("1930년")
    miss = {
        "id": "q1", "question": "언제?", "prediction": "1930년", "answers": ["1936년"], "cause": "elsewhere",
        "answer_span": [right, right + 5], "prediction_span": [given, given + 5],
        "snippets": [{"start": 0, "text": context[:20]}, {"start": 22, "text": context[22:]}],
    }  # fmt: skip
    near = miss | {"id": "q2", "prediction_span": [right, right + 6], "snippets": [{"start": 0, "text": context}]}
    none = near | {"id": "q3", "prediction_span": None}
    _sections(maker, misses=[miss, near, none])
    page = render(maker.recipe / "korquad").read_text(encoding="utf-8")
    assert 'lt;<mark class="given">1930년</mark>&gt;에 짓기' in page
    assert '<mark class="right">1936년</mark>에 놓였다.' in page
    assert '<mark class="right given">1936년</mark><mark class="given">에</mark> 놓였다.' in page


def test_without_a_miss_there_is_a_page(maker):
    assert "Errors by cause" not in _sections(maker, misses=[], by_cause={"elsewhere": 0})


def test_long_answers_are_counted_in_the_last_place():
    line = reading._histogram("given", [0] * 39 + [1, 2, 3, 4])
    assert (line.x[-1], line.y[-1], sum(line.y)) == (40, 9, 10)
    assert reading._histogram("given", []).x == []
