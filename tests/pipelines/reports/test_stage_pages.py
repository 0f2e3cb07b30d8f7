"""The pages of the stages show what is in their artifacts."""

import json
import re

import pyarrow.parquet as pq

from korbert.pipelines.artifacts import formatting, stream
from korbert.pipelines.reports import render
from korbert.pipelines.reports.artifacts import analyze, clean, pretrain, shard, task, vocab
from tests.pipelines.reports.conftest import change, elements, plain, write_lines, write_parquet


def test_clean_counts_dropped_documents_by_reason_and_source(maker):
    shown = elements(clean.story(maker.open("clean")))
    assert [(bar.label, plain(bar.text)) for bar in shown["Drop reasons"].bars] == [
        ("too short", "25"), ("exact duplicate", "9"), ("too little Hangul", "4"),
    ]  # fmt: skip
    *reasons, kept, share = shown["Documents by reason and source"].rows
    assert share[0] == "share kept"
    assert sum(int(cell) for row in reasons for cell in row[1:]) == 38
    assert sum(int(cell) for cell in kept[1:]) == 180
    (maker("clean") / "dropped" / "part-00000.parquet").unlink()
    change(maker("clean") / "stage.json", counts={"documents": 180, "dropped": 0})
    story = clean.story(maker.open("clean"))
    assert plain(story.title) == "100.0 % of documents kept"
    assert story.lede == "180 documents read. Nothing was dropped."


def test_clean_with_one_source_compares_no_sources(maker):
    folder = maker("clean")
    change(folder / "stage.json", counts={"documents": 180, "kept.wiki": 180, "dropped": 38})
    for path in [*folder.glob("documents/*"), *folder.glob("dropped/*")]:
        write_parquet(path, [row | {"source": "wiki"} for row in pq.read_table(path).to_pylist()])
    shown = elements(clean.story(maker.open("clean")))
    assert "Documents by reason and source" not in shown
    assert [bar.text for bar in shown["Drop reasons"].bars] == ["25", "9", "4"]


def test_clean_draws_the_same_samples_however_parts_are_cut(maker):
    path = maker("clean") / "dropped" / "part-00000.parquet"
    title = "too short · 20 shown"
    before = elements(clean.story(maker.open("clean")))[title]
    rows = pq.read_table(path).to_pylist()
    schema = pq.read_schema(path)
    no_id = {"id": None, "source": "wiki", "reason": "bad_json", "detail": "line 2", "text": "{broken"}
    write_parquet(path, rows[:13])
    write_parquet(path.with_name("part-00001.parquet"), [*rows[13:], no_id], schema)
    assert len(before.entries) == 20
    assert elements(clean.story(maker.open("clean")))[title] == before
    page = render(maker("clean")).read_text(encoding="utf-8")
    # Without what pictures say.
    text = re.sub(r"<style>.*?</style>|<title>.*?</title>|<svg.*?</svg>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert "{broken" in text


def test_clean_shows_each_duplicate_next_to_the_original(maker):
    folder = maker("clean")
    path = folder / "dropped" / "part-00000.parquet"
    kept = ["wiki:1-7"] * 60 + ["wiki:2-3"] * 3 + ["wiki:0-1", "wiki:0-2"]
    near = {"source": "wiki", "reason": "near_duplicate", "text": "거의 같은 글"}
    duplicates = [near | {"id": f"wiki:n{n}", "detail": id} for n, id in enumerate(kept)]
    write_parquet(path, pq.read_table(path).to_pylist() + duplicates)
    shown = elements(clean.story(maker.open("clean")))
    texts = {row["id"]: row["text"] for row in pq.read_table(folder / "documents").to_pylist()}
    for entry in shown["near duplicate · 20 shown"].entries:
        facts = dict(entry.facts)
        assert facts["kept instead"].removesuffix(" …") == texts[facts["detail"]][:320].rstrip()


def test_clean_shows_frequent_lines_contamination_and_masked_data(maker):
    folder = maker("clean")
    frequent = [{"text": f"어디에나 있는 줄 {number}", "documents": 900 - number} for number in range(30)]
    write_parquet(folder / "frequent" / "part-00000.parquet", frequent)
    evaluation_counts = {"texts": 50_000, "looked_for": 30_000, "found": 15}
    counts = {f"evaluation.nsmc_test.{key}": number for key, number in evaluation_counts.items()}
    counts |= {"documents": 180, "dropped": 38, "masked.email": 7, "masked.resident_number": 2}
    change(folder / "stage.json", counts=counts | {"contaminated.nsmc_test": 21})
    shown = elements(clean.story(maker.open("clean")))
    lines = shown["Frequent lines removed"]
    assert lines.rows[0] == ("어디에나 있는 줄 0", "900")
    assert len(lines.rows) == 20
    assert lines.note == "10 more in the folder `frequent`."
    found = [plain(cell) for cell in shown["Evaluation texts found in the corpus"].rows[0]]
    assert found == ["nsmc_test", "50,000", "30,000", "15", "0.1 %", "21"]
    masked = shown["Occurrences masked, by kind"].bars
    assert [(bar.label, bar.text) for bar in masked] == [("email", "7"), ("resident number", "2")]


def test_analyze_counts_morphemes(maker):
    folder = maker("analyze")
    rows = [
        {"id": "a", "source": "s", "tag": ["NNG", "JX", "VV", "EF", "SF"]},
        {"id": "b", "source": "s", "tag": []},
        {"id": "c", "source": "s", "tag": ["IC"]},
    ]
    path = folder / "morphemes/part-00000.parquet"
    write_parquet(path, rows, pq.read_schema(path))
    (folder / "morphemes/part-00001.parquet").unlink()
    shown = elements(analyze.story(maker.open("analyze")))
    assert shown["Length of documents in morphemes"].rows == [("s", "3", "0", "1", "5", "5")]


def test_analyze_names_failures(maker):
    story = analyze.story(maker.open("analyze"))
    shown = elements(story)
    assert [entry.head for entry in shown["Kiwi timed out · 1, 1 shown"].entries] == ["wiki:9"]
    assert "with 2 workers" in story.lede
    assert story.title.endswith(", 1 failed")
    (maker("analyze") / "failed" / "part-00000.parquet").unlink()
    change(maker("analyze") / "stage.json", counts={"documents": 82, "morphemes": 9, "failed": 0})
    story = analyze.story(maker.open("analyze"))
    assert story.title.endswith(", none failed")
    assert list(elements(story)) == ["Length of documents in morphemes"]
    change(maker("analyze") / "run.json", resumed=True)  # which says no speed
    artifact = maker.open("analyze")
    assert "documents/s" not in [figure.label for figure in analyze.figures(artifact)]
    assert "duration unknown" in analyze.story(artifact).lede


def test_vocab_shows_coverage(maker):
    table = elements(vocab.story(maker.open("vocab")))["Tokenization by source"]
    assert [plain(row[3]) for row in table.rows] == ["94.80 %", "93.10 %", "94.80 %"]
    path = maker("vocab") / "coverage.json"
    change(path, by_source={"wiki": json.loads(path.read_text(encoding="utf-8"))["all"]})
    shown = elements(vocab.story(maker.open("vocab")))
    assert [row[0] for row in shown["Tokenization by source"].rows] == ["wiki"]  # not again as "all"


def test_shard_sums_pieces_by_source(maker):
    artifact = maker.open("shard")
    parts = artifact.parts("train/*.arrow")
    total = sum(len(ids) for batch in stream(parts) for ids in batch.column("input_ids").to_pylist())
    story = shard.story(artifact)
    assert story.title == f"{formatting.compact(total)} training pieces"
    rows = elements(story)["Documents and pieces"].rows
    assert sum(int(row[3].replace(",", "")) for row in rows if row[0] == "training") == total


def test_pretrain_compares_with_the_unigram_baseline(maker):
    story = pretrain.story(maker.open("pretrain"))
    for words in ("2.4 M parameters", "1.71 epochs", "The device waited 25.0 % of the time for rows."):
        assert words in plain(story.lede)
    assert elements(story)["Held-out MLM loss"].legend == [("model", 1, False), ("unigram", 0, True)]
    titles = {6.3: "1.01 nats better than", 7.5: "0.19 nats worse than", None: "Not comparable with"}
    for loss, title in (titles | dict.fromkeys((7.312, 7.308), "No better than")).items():
        change(maker("pretrain") / "scores.json", mlm_loss=loss)
        assert pretrain.story(maker.open("pretrain")).title == f"{title} the unigram baseline"


def test_pretrain_draws_what_was_measured(maker):
    shown = elements(pretrain.story(maker.open("pretrain")))
    assert shown["Gradient norm"].legend == []
    assert all(shown[title].kind == "picture" for title in ("MLM training loss", "NSP training loss", "Throughput"))
    assert ">pieces<" in shown["Held-out MLM loss"].svg
    path = maker("pretrain") / "metrics.jsonl"  # of one measurement there are no curves
    path.write_text(path.read_text(encoding="utf-8").splitlines()[-1] + "\n", encoding="utf-8")
    (path.parent / "timing.jsonl").unlink()
    shown = elements(pretrain.story(maker.open("pretrain")))
    assert shown == {}


def test_pretrain_shows_the_initial_model(maker):
    before = pretrain.story(maker.open("pretrain"))
    assert "Training started" not in before.lede
    assert "before" not in pretrain.figures(maker.open("pretrain"))[0].note
    folder = maker("pretrain")
    change(folder / "scores.json", init_mlm_loss=9.25, init_mlm_accuracy=0.04, init_nsp_loss=None)
    change(folder / "stage.json", settings={"init": "before/<pretrain>"})
    story = pretrain.story(maker.open("pretrain"))
    assert story.lede.count(" Training started from the weights of before/<pretrain>.") == 1
    assert pretrain.figures(maker.open("pretrain"))[0].note == "before training 9.25, unigram 7.31"
    for loss, title in {8.7: "0.55 nats better", 9.251: "No better", 9.4: "0.15 nats worse"}.items():
        change(folder / "scores.json", mlm_loss=loss)
        assert pretrain.story(maker.open("pretrain")).title == f"{title} than before training"
    assert elements(story)["Held-out MLM loss"].svg != elements(before)["Held-out MLM loss"].svg  # a point more
    assert "before/&lt;pretrain&gt;" in render(folder).read_text(encoding="utf-8")


def test_pretrain_shows_guesses_at_three_evaluations(maker):
    def gap(right, share):
        guesses = [{"piece": piece, "probability": share / rank} for rank, piece in enumerate([*"가나다라", "ᆫ"], 1)]
        return {"piece": right, "probability": share / 2, "guesses": guesses}

    write_lines(maker("pretrain") / "samples.jsonl", [
        {"step": step, "row": row, "source": "wiki", "text": ["앞 ", "ᆫ 뒤 <b>"], "gaps": [gap(right, step / 1000)]}
        for step in range(100, 800, 100) for row, right in ((7, "나"), (1234, "마"))
    ])  # fmt: skip
    section = pretrain.story(maker.open("pretrain")).sections[0]
    first, second = section.elements
    assert section.title == "Filling gaps in held-out rows"
    assert [element.title for element in section.elements] == ["wiki, row 7", "wiki, row 1,234"]
    assert first.head == ["step 100", "step 400", "step 700"]
    assert first.text == ["앞 ", "ㄴ 뒤 <b>"]
    original, predictions = first.gaps[0]
    assert original == "나"
    assert [plain(of_step[1][1]) for of_step in predictions] == ["5.0 %", "20.0 %", "35.0 %"]
    assert [right for *_, right in predictions[0]] == [False, True, False, False, False]
    unlikely = second.gaps[0][1][0]  # with the right piece below the likeliest
    assert [(piece, right) for piece, _, right in unlikely[3:]] == [("라", False), ("ㄴ", False), ("마", True)]
    page = render(maker("pretrain")).read_text(encoding="utf-8")
    assert "앞 <mark>나</mark>ㄴ 뒤 &lt;b&gt;" in page
    assert '<li class="right"><b lang="ko">나</b> 35.0' in page


def test_nsmc_shows_scores_of_unseen_rows_next_to_those_of_all(maker):
    table = elements(task.story(maker.open("nsmc")))["All scores"]
    assert table.head[2:6] == ("accuracy", "macro F1", "accuracy, unseen", "macro F1, unseen")
    assert plain(" ".join(table.rows[0][2:6])) == "78.30 % 78.30 % 77.30 % 77.30 %"
    assert "Unseen: the 1,900 rows whose texts are neither in the training rows nor" in table.note


def _answers(maker, **details):
    """The elements of korquad's page, with other details."""
    path = maker("korquad") / "scores.json"
    change(path, details=json.loads(path.read_text(encoding="utf-8"))["details"] | details)
    return elements(task.story(maker.open("korquad")))


def test_korquad_shows_errors_by_cause(maker):
    shown = _answers(maker)
    assert [bar.label for bar in shown["Errors by cause"].bars] == ["elsewhere", "boundary", "overlap", "unreachable"]
    entry = shown["elsewhere · 11 shown"].entries[0]
    assert entry.text == "그 다리는 언제 놓였나?"
    assert entry.facts == (("correct", "1936년"), ("predicted", "1936년에 놓"))
    assert shown["overlap · 5 shown"].entries[0].facts[1] == ("predicted", "(nothing)")
    assert "Errors by cause" not in _answers(maker, misses=[], by_cause={"elsewhere": 0})


def test_korquad_marks_both_answers_in_the_context(maker):
    context = "그 다리는 <1930년>에 짓기 시작하여 1936년에 놓였다."
    right = context.index("1936년")
    wrong = context.index("1930년")
    miss = {
        "id": "q1", "question": "언제?", "prediction": "1930년", "answers": ["1936년"], "cause": "elsewhere",
        "answer_span": [right, right + 5], "prediction_span": [wrong, wrong + 5],
        "snippets": [{"start": 0, "text": context[:20]}, {"start": 22, "text": context[22:]}],
    }  # fmt: skip
    near = miss | {"id": "q2", "prediction_span": [right, right + 6], "snippets": [{"start": 0, "text": context}]}
    _answers(maker, misses=[miss, near, near | {"id": "q3", "prediction_span": None}])
    page = render(maker("korquad")).read_text(encoding="utf-8")
    assert 'lt;<mark class="given">1930년</mark>&gt;에 짓기' in page
    assert '<mark class="right">1936년</mark>에 놓였다.' in page
    assert '<mark class="right given">1936년</mark><mark class="given">에</mark> 놓였다.' in page
