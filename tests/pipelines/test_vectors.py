"""`korbert embed`, `index`, `similar`: what they print and write, and what a bad line or a kill costs."""

import json
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import korbert
from korbert.modeling import PretrainingModel, save_model
from korbert.pipelines.inference import embedding
from korbert.search import Index
from korbert.system.scratch import claim

TEXTS = ["대출을 신청하고 싶어요", "영화가 정말 재미있다", "카드를 잃어버렸어요", "내일 비가 온다", ""]


@pytest.fixture(scope="module")
def model(untrained):
    return str(untrained(initializer_range=0.5))


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return str(path)


# --- embed ---


def test_vectors_as_json_lines(model, texts, command):
    out, _ = command("embed", model, texts, "--layer", "-2,-1", "--mix", "concat", "--pooling", "max", "--raw")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["line"], one["text"]) for one in found] == list(enumerate(TEXTS, 1))
    asked = {"layer": (-2, -1), "mix": "concat", "pooling": "max", "normalize": False}
    expected = korbert.load(model, "cpu").embed(TEXTS, **asked)
    np.testing.assert_allclose([one["vector"] for one in found], expected, atol=1e-5)
    out, _ = command("embed", model, texts, "--parts", "eojeol")
    for line, text in zip(out.splitlines(), TEXTS, strict=True):
        parts = json.loads(line)["parts"]
        assert [one["name"] for one in parts] == [text[slice(*one["span"])] for one in parts] == text.split()
        assert {len(one["vector"]) for one in parts} <= {16}


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_vectors_in_a_file(model, tmp_path, ending, command, monkeypatch):
    """A row for each record; one that cannot be read is named, and has none."""
    monkeypatch.setattr(embedding, "PART_ROWS", 2)
    lines = [json.dumps({"id": f"r{number}", "text": text}) for number, text in enumerate(TEXTS)]
    lines[2:2] = ["{", '{"text": "\\ud800"}', '{"text": 3}']
    (tmp_path / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    output = tmp_path / f"vectors.{ending}"
    _, err = command("embed", model, tmp_path / "texts.jsonl", "--output", str(output), "--size", "7", code=1)
    for line, error in ((3, "is not JSON"), (4, "has a lone surrogate"), (5, "'text' is a number, not a string")):
        assert f"texts.jsonl: line {line}: {error}" in err
    assert f"{output}: 8 rows" in err
    assert "texts.jsonl: 3 of 8 lines failed: see the messages above" in err
    expected = korbert.load(model, "cpu").embed(TEXTS, size=7)
    good = [0, 1, 5, 6, 7]
    if ending == "npy":
        found = np.load(output)
        assert (found.shape, found.dtype) == ((8, 7), np.float32)
        assert np.isnan(found[2:5]).all()
        np.testing.assert_allclose(found[good], expected, atol=1e-5)
    else:
        table = pq.read_table(output)
        assert table.column_names == ["line", "id", "error", "vector"]
        assert table["line"].to_pylist() == list(range(1, 9))
        assert table["id"].to_pylist() == ["r0", "r1", None, None, None, "r2", "r3", "r4"]
        assert [error is None for error in table["error"].to_pylist()] == [place in good for place in range(8)]
        np.testing.assert_allclose([table["vector"][place].as_py() for place in good], expected, atol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.jsonl", output.name]
    (tmp_path / "none.txt").write_text("")  # no texts at all
    output = tmp_path / f"벡터 1.npy.2.{ending}"
    command("embed", model, tmp_path / "none.txt", "--output", output)
    assert (np.load(output) if ending == "npy" else np.zeros((pq.read_table(output).num_rows, 16))).shape == (0, 16)
    assert not [*tmp_path.glob("*.partial")]


@pytest.mark.slow
def test_an_interrupted_run_is_resumed(model, texts, tmp_path, command, monkeypatch):
    """Killed while it reads; the parts that were there are not made again, and all is as if nothing had happened."""
    output = tmp_path / "vectors.npy"
    code = (
        "import sys; from korbert.pipelines import cli; from korbert.pipelines.inference import embedding;"
        " embedding.PART_ROWS = 2; cli.run_command(sys.argv[1:])"
    )
    words = [sys.executable, "-c", code, "embed", model, "-", "--output", str(output)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as run:
        run.stdin.write("\n".join(TEXTS[:3]).encode() + b"\n")
        run.stdin.flush()
        while not list(tmp_path.glob("vectors.npy.partial/part-000000-*.parquet")):
            assert run.poll() is None
        run.send_signal(signal.SIGKILL)
    assert not output.exists()
    (part,) = tmp_path.glob("vectors.npy.partial/*.parquet")

    monkeypatch.setattr(embedding, "PART_ROWS", 2)
    embedded = []
    monkeypatch.setattr(
        embedding.TextEmbedder, "__call__",
        lambda self, given: (embedded.extend(given), self.model.embed(given, **self.asked))[1],
    )  # fmt: skip
    _, err = command("embed", model, texts, "--output", str(output))
    assert "vectors.npy: 5 rows, 2 of them from an earlier run" in err
    assert embedded == [".", *TEXTS[2:]]  # the first tells the size
    np.testing.assert_allclose(np.load(output), korbert.load(model, "cpu").embed(TEXTS), atol=1e-5)
    assert not part.exists()


def test_parts_of_other_settings_or_damaged_ones_are_made_anew(model, texts, tmp_path, command, monkeypatch):
    monkeypatch.setattr(embedding, "PART_ROWS", 2)
    output = tmp_path / "vectors.npy"
    kept = tmp_path / "kept"
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda folder: folder.rename(kept))
        command("embed", model, texts, "--output", str(output))
    for change in ("settings", "damage", ""):
        output.unlink()  # which does not say who wrote it
        partial = claim(tmp_path / "vectors.npy.partial")
        for path in kept.glob("*.parquet"):
            data = path.read_bytes()
            (partial / path.name).write_bytes(data[:-1] if change == "damage" else data)
        more = ("--pooling", "max") if change == "settings" else ()
        _, err = command("embed", model, texts, "--output", str(output), *more)
        assert ("from an earlier run" in err) == (change == "")
        asked = {"pooling": "max"} if more else {}
        np.testing.assert_allclose(np.load(output), korbert.load(model, "cpu").embed(TEXTS, **asked), atol=1e-5)


@pytest.mark.parametrize(("options", "error"), [
    ("--output x.csv", "x.csv: the extension chooses the format: use .npy or .parquet"),
    ("--output nowhere/x.npy", "nowhere/x.npy: there is no folder nowhere"),
    ("--output x.npy --parts piece", "--output: is for vectors of texts: leave it out, or leave --parts out"),
    ("--layer 7", r"layer 7: take one from 0 (the embeddings) to 2; -1 is the last one"),
    ("--layer last", "'last': give layer numbers, as in -1 or -4,-3,-2,-1"),
    ("--parts eojeol --size 2", "--size: is for vectors of texts"),
    ("--size 9999", "size 9999: the vectors have 16 numbers"),
])  # fmt: skip
def test_options_that_are_refused(model, texts, options, error, command):
    assert error in command("embed", model, texts, *options.split(), code=2).err


# --- index, similar ---


@pytest.fixture
def indexed(model, texts, tmp_path, command):
    """An index of the texts."""
    command("index", model, texts, "--output", tmp_path / "index")
    return tmp_path / "index"


def test_an_index_is_made_added_to_and_searched(model, tmp_path, command):
    corpus = tmp_path / "corpus.csv"
    more = tmp_path / "more.jsonl"
    folder = tmp_path / "index"
    corpus.write_text("id,문장\n" + "".join(f"t{number},{text}\n" for number, text in enumerate(TEXTS)), "utf-8")
    out, _ = command("index", model, str(corpus), "--output", folder, "--layer", "-2")
    assert out == f"{folder}: 4 new, 0 replaced, 0 unchanged, 0 removed; 4 texts\n"
    out, _ = command("index", model, str(corpus), "--output", folder)
    assert "0 new, 0 replaced, 4 unchanged" in out

    rows = [{"id": "t0", "text": "대출 상담"}, {"text": "눈이 온다"}, {"id": "t0", "text": "또"}, {"text": "\udfff"}]
    more.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "gone.txt").write_text("\ufefft1\nt9\n")
    out, err = command("index", model, str(more), "--output", folder, "--remove", tmp_path / "gone.txt", code=1)
    assert out == f"{folder}: 1 new, 1 replaced, 0 unchanged, 1 removed; 4 texts\n"
    assert "gone.txt: 1 of 2 ids are not in the index" in err
    assert "more.jsonl: line 3: id 't0' is already used by line 1" in err
    assert "more.jsonl: line 4: has a lone surrogate, which no file can hold" in err
    assert "more.jsonl: 2 of 4 lines failed" in err

    out, _ = command("similar", model, folder, "대출", "--way", "words")
    head, row = out.splitlines()
    assert head.split() == ["score", "cosine", "BM25", "id", "text"]
    assert row == f"  1  {float(row.split()[1]):.4f}       -  {float(row.split()[3]):6.2f}  t0  대출 상담"
    out, _ = command("similar", model, folder, "대출", "눈", "--top", "2", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    hits = Index.load(folder, model).search(["대출", "눈"], 2)
    assert [one["text"] for one in found] == ["대출", "눈"]
    assert [[hit["id"] for hit in one["hits"]] for one in found] == [[hit.id for hit in own] for own in hits]
    assert "more.jsonl:2" in [hit["id"] for hit in found[1]["hits"]]


def test_a_long_document_is_found_by_a_passage(model, tmp_path, command):
    """Also one of more bytes than a line of other commands may have."""
    corpus = tmp_path / "long.jsonl"
    long = "영화가 정말 재미있다. " * 9 + " " * 2**20 + "카드를 잃어버렸어요. " * 9
    rows = [{"id": "long", "text": long}, {"id": "short", "text": "내일 비가 온다"}]
    corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert "2 texts" in command("index", model, corpus, "--output", tmp_path / "index").out
    for place in (corpus, tmp_path / "index"):
        hits = json.loads(command("similar", model, place, "카드", "내일", "--json").out.splitlines()[0])["hits"]
        assert "text" not in hits[0]
        assert hits[0]["passage"] == long[hits[0]["begin"] : hits[0]["end"]]
    assert f"long:{hits[0]['begin']}-{hits[0]['end']}" in command("similar", model, tmp_path / "index", "카드").out
    assert "line 1: is longer than 1,048,576 bytes" in command("embed", model, corpus, code=1).err


def test_columns_are_kept_and_searched_by(model, tmp_path, command):
    table = tmp_path / "corpus.csv"
    lines = tmp_path / "more.jsonl"
    folder = tmp_path / "index"
    table.write_text("id,문장,kind\na,신용 대출,금융\nb,대출 도서,도서관\n", encoding="utf-8")
    row = {"id": 3, "text": "대출", "kind": "금융", "year": 2020, "tags": ["새", None]}
    lines.write_text(json.dumps(row) + '\n{"text": "눈", "x": "\\ud800"}\n', encoding="utf-8")
    command("index", model, str(table), "--output", folder)
    _, err = command("index", model, str(lines), "--output", folder, code=1)
    assert "more.jsonl: line 2: has a lone surrogate" in err
    out, err = command("similar", model, folder, "대출", "--where", "kind = '금융'", "--json")
    hits = {hit["id"]: hit["fields"] for hit in json.loads(out)["hits"]}
    assert hits == {"a": {"kind": "금융"}, "3": {"kind": "금융", "year": 2020, "tags": ["새", None]}}
    assert err == "korbert: ranked by words, as the model was not trained for search: --way chooses another\n"
    out, err = command("similar", model, str(table), "대출", "--where", "kind <> '금융'", "--way", "both")
    assert [line.split()[4] for line in out.splitlines()[1:]] == ["b"]
    assert not err
    _, err = command("similar", model, folder, "대출", "--where", "kid = '금융'", code=2)
    assert "where \"kid = '금융'\": no such column: kid: write a condition such as" in err


def test_a_search_is_measured(model, texts, tmp_path, command):
    queries = tmp_path / "queries.jsonl"
    folder = tmp_path / "index"
    rows = [{"query": "대출", "relevant": "texts.txt:1"}, {"query": "카드", "relevant": ["texts.txt:3", "nowhere"]}]
    rows += [{"query": "비", "relevant": []}, {"query": "비"}]
    queries.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    out, err = command("search-eval", model, str(queries), texts, "--json", code=1)
    for line in (3, 4):
        assert f"queries.jsonl: line {line}: 'relevant' is no id and no list of ids: name it" in err
    figures = json.loads(out)
    assert (figures["queries"], figures["texts"], list(figures["ways"])) == (2, 4, ["words", "vectors", "both"])
    assert figures["ways"]["words"]["recall@1"] == {"value": 0.75, "low": 0.5, "high": 1.0}
    command("index", model, texts, "--output", folder)
    out, _ = command("search-eval", model, str(queries), folder, "--way", "words", code=1)
    facts, head, *rows = (line.split() for line in out.splitlines())
    assert facts == ["2", "queries,", "4", "texts"]
    assert head == ["words"]
    assert [row[0] for row in rows] == ["recall@1", "recall@10", "recall@100", "MRR", "nDCG@10"]
    assert rows[0][1:] == ["75.0", "(50.0", "to", "100.0)"]
    page = tmp_path / "ways.html"
    out, _ = command("search-eval", model, str(queries), folder, "--page", str(page), code=1)
    assert out.splitlines()[-1] == f"page: {page}"
    assert "75.0\u00a0% (50.0 to 100.0)" in page.read_text(encoding="utf-8")  # recall at 1 of words
    same = tmp_path / "same.jsonl"  # each query is answered by the text beside it
    rows = [{"id": "a", "query": "대출", "text": "신용 대출"}, {"id": "b", "query": "눈", "text": "눈이 온다"}]
    same.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    out, _ = command("search-eval", model, str(same), str(same), "--relevant", "id", "--text", "text", "--json")
    assert json.loads(out)["ways"]["words"]["MRR"]["value"] == 1
    _, err = command("search-eval", model, str(queries), folder, "--relevant", "id", code=2)
    assert "has no query with ids in 'id': nothing can be measured" in err


def test_other_models_and_settings_are_refused(model, texts, tmp_path, tiny_tokenizer, tiny_config, command, indexed):
    save_model(tmp_path / "other", PretrainingModel(tiny_config(num_hidden_layers=1)), tiny_tokenizer)
    (tmp_path / "empty").mkdir()
    for arguments, error in (
        (["similar", tmp_path / "other", indexed, "가"], "is an index of another model"),
        (["index", tmp_path / "other", texts, "--output", indexed], "is an index of another model"),
        (["index", model, texts, "--output", indexed, "--pooling", "max"], "index: pooling: 'max' here, 'mean' in the"),
        (["similar", model, indexed, "가", "--layer", "0"], "index: layer: (0,) here, (-1,) in the index: leave the"),
        (["index", model, "--output", indexed], "neither CORPUS nor --remove is given"),
        (["similar", model, indexed.parent / "empty", "가"], "is not an index: make one with `korbert index`"),
    ):
        assert error in command(*arguments, code=2).err
    assert "4 unchanged" in command("index", model, texts, "--output", indexed).out


def test_a_folder_of_text_files_is_read_by_line(model, tmp_path, command):
    notes = tmp_path / "notes"
    (notes / "규정").mkdir(parents=True)
    (notes / "휴가.txt").write_text("연차는 15일이다.\n\n경조 휴가는 5일이다.\n", encoding="utf-8")
    (notes / "안내.md").write_text("# 안내\n", encoding="utf-8")
    (notes / "규정" / "출장.txt").write_bytes("택시비는 밤에만 인정한다.".encode("cp949"))
    (notes / ".hidden.txt").write_text("숨은 글", encoding="utf-8")
    (notes / "그림.png").write_bytes(b"\x89PNG")
    out, err = command("index", model, notes, "--output", tmp_path / "index")
    assert "4 new" in out
    assert "notes: 3 files of texts and tables; not read: 1, such as 그림.png\n" in err
    for corpus in (notes, tmp_path / "index"):
        found = json.loads(command("similar", model, corpus, "밤에 택시비", "--json", "--top", "1").out)["hits"]
        assert [(hit["id"], hit["text"]) for hit in found] == [("규정/출장.txt:1", "택시비는 밤에만 인정한다.")]
    (notes / "깨짐.txt").write_bytes("첫 줄\n".encode() + b"\xff\n")
    _, err = command("index", model, notes, "--output", tmp_path / "index", code=1)
    assert f"{notes}: line 2: of 깨짐.txt: byte 1 is not UTF-8" in err
    (tmp_path / "empty").mkdir()
    _, err = command("index", model, tmp_path / "empty", "--output", tmp_path / "other", code=2)
    assert "empty: is a folder without texts and tables: name a file or folder of texts" in err


def test_tables_and_json_lines_of_a_folder_are_read_as_such(model, tmp_path, command):
    notes = tmp_path / "notes"
    folder = tmp_path / "index"
    notes.mkdir()
    (notes / "글.txt").write_text("연차는 15일이다.\n", encoding="utf-8")
    (notes / "표.csv").write_text("id,문장,kind\n1,신용 대출,금융\n2,대출 도서,도서관\n", encoding="utf-8")
    (notes / "문의.jsonl").write_text('{"id": 1, "text": "카드 분실"}\n', encoding="utf-8")
    (notes / "예산.csv").write_text("항목,금액\n회식,3\n", encoding="utf-8")  # without a column of texts
    out, err = command("index", model, notes, "--output", folder, code=1)
    assert "4 new" in out
    assert f"{notes}: line 1: of 예산.csv: no column text among 항목, 금액" in err
    assert dict(Index.load(folder, model)) == {
        "글.txt:1": "연차는 15일이다.",
        "문의.jsonl:1": "카드 분실",
        "표.csv:1": "신용 대출",
        "표.csv:2": "대출 도서",
    }
    found = json.loads(command("similar", model, folder, "대출", "--where", "kind = '금융'", "--json").out)
    assert [hit["id"] for hit in found["hits"]] == ["표.csv:1"]


def test_a_search_takes_the_model_that_the_index_names(model, texts, indexed, command, monkeypatch):
    expected = command("similar", model, indexed, "카드", "--json").out
    assert json.loads(expected)["hits"]
    assert command("similar", indexed, "카드", "--json").out == expected
    assert command("similar", indexed, "카드", "--model", model, "--json").out == expected
    assert command("similar", texts, "카드", "--model", model, "--json").out == expected
    err = command("similar", model, code=2).err
    assert f"{model}: nothing to search in is named: give a model and a file of texts, or an index" in err
    monkeypatch.setattr("korbert.search.index.default_way", lambda model: ("both", "it helped"))
    assert command("similar", indexed, "카드").err == ""


def test_an_index_is_found_by_its_name_in_any_form_of_unicode(indexed, command):
    indexed.rename(indexed.with_name(unicodedata.normalize("NFD", "색인")))
    found = json.loads(command("similar", indexed.with_name("색인"), "카드", "--json").out)
    assert found["hits"]


def test_an_index_is_checked(model, texts, indexed, command):
    assert command("index", indexed, "--check").out == f"{indexed}: 4 texts, all as they were written\n"
    path = indexed / "index.sqlite"
    data = path.read_bytes()
    path.write_bytes(data.replace("재미있다".encode(), "재미없다".encode()))
    err = command("index", indexed, "--check", code=2).err
    assert f"{path}: is damaged (a row of texts is not as it was written): make the index again" in err
    assert "is damaged" in command("similar", model, indexed, "영화", code=2).err
    assert "--check reads an index, and nothing else" in command("index", indexed, texts, "--check", code=2).err
    assert "no index is named: give its folder with --output FOLDER" in command("index", model, texts, code=2).err


def test_texts_that_leave_a_corpus_stay_until_they_are_removed(model, texts, indexed, tmp_path, command):
    Path(texts).write_text("\n".join(TEXTS[:2]) + "\n", encoding="utf-8")
    err = command("index", model, texts, "--output", indexed).err
    assert f"{indexed}: 2 texts are not in {texts}, and stay: --remove takes a file of their ids" in err
    gone = tmp_path / "gone.txt"
    gone.write_text("texts.txt:3\ntexts.txt:4\n", encoding="utf-8")
    assert "2 removed; 2 texts" in command("index", indexed, "--remove", gone).out
    assert "stay" not in command("index", model, texts, "--output", indexed).err


def test_a_corpus_without_the_column_is_refused_before_an_index_is_made(model, tmp_path, command):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"query": "학교", "passage": "학교에 갔다."}\n{"passage": "집에 왔다."}\n', encoding="utf-8")
    _, err = command("index", model, path, "--output", tmp_path / "index", code=2)
    assert err.count("\n") == 1
    assert f"{path.name}: no column text among query, passage: name it with --text NAME" in err
    assert not (tmp_path / "index").exists()
    assert "2 new" in command("index", model, path, "--output", tmp_path / "index", "--text", "passage").out


def test_a_search_that_finds_nothing_says_so(model, tmp_path, command):
    path = tmp_path / "texts.txt"
    path.write_text("학교에 갔다.\n", encoding="utf-8")
    assert command("similar", model, path, "우주", "--way", "words").out == "  no text was found\n"
    asked = tmp_path / "asked.txt"
    asked.write_text("학교\n\n우주\n", encoding="utf-8")
    said = command("similar", model, path, "--input", asked, "--way", "words")
    assert "asked.txt: line 2 is blank: nothing to search for" in said.err
    assert said.out.splitlines()[-2:] == ["우주", "  no text was found"]
    assert command("similar", model, path, " ", code=2).err.endswith("text 1 is blank: give words to search for\n")
