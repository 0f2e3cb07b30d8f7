"""The same file through the readers of clean, finetune, evaluate, predict, embed and index gives the same texts."""

import bz2
import csv
import gzip
import io
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.readers import chunks
from korbert.corpus.readers import rows as corpus_rows
from korbert.model import Model
from korbert.pipelines.commands.options import Failed
from korbert.pipelines.commands.vectors import _pairs
from korbert.pipelines.inference.embedding import text_records
from korbert.pipelines.inference.predicting import predict_lines
from korbert.tasks.files import ROLES, read_rows
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.kinds.token_classification import TokenClassification
from korbert.tasks.question_answering.answers import Answer
from tests.korbert.tasks.files.test_exports import ARTICLES, ENTITIES, LABELS, PRODIGY, TEXT, written

PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
ENCODINGS = ["utf-8", "utf-8-sig", "cp949", "utf-16"]
GENERATED = st.text("가나한글 a1,;\"'#[]{}:\\\t\n", min_size=1, max_size=12).filter(str.strip)


class _Echo(Model):
    """A model that finds nothing."""

    network = None

    def __init__(self):
        tags = ("O", "B-PS", "I-PS")
        self.kind = TokenClassification(metrics=("accuracy",), max_length=8, stride=2, tags=tags, units="characters")

    def results_of(self, rows, *, why=False):
        return [[] for _ in rows]


def _delimited(rows, delimiter, quoting, end):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([rows[0].keys(), *(row.values() for row in rows)])
    return file.getvalue()


@st.composite
def files(draw):
    """Name, content, and the texts if nothing about them is a guess."""
    form = draw(st.sampled_from(["csv", "semicolons", "tsv", "plain", "jsonl", "json", "objects", "parquet", "arrow"]))
    text = GENERATED.map(lambda text: " ".join(text.split())) if form == "plain" else GENERATED
    texts = draw(st.lists(text, min_size=1 + (form == "objects"), max_size=6))  # one object alone is no list of them
    rows = [{"n": number, "문장": one, "label": "긍정"} for number, one in enumerate(texts)]
    if form in ("parquet", "arrow"):
        table = pa.Table.from_pylist(rows)
        sink = io.BytesIO()
        if form == "parquet":
            pq.write_table(table, sink)
        else:
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
        return f"a.{form}", sink.getvalue(), texts
    end = draw(st.sampled_from(["\n", "\r\n"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    indent = draw(st.sampled_from([None, 1]))
    content = {
        "csv": lambda: _delimited(rows, ",", quoting, end),
        "semicolons": lambda: f"sep=;{end}" + _delimited(rows, ";", quoting, end),
        "tsv": lambda: _delimited(rows, "\t", quoting, end),
        "plain": lambda: "".join("\t".join(map(str, row)) + "\n" for row in (rows[0], *(row.values() for row in rows))),
        "jsonl": lambda: "".join(json.dumps(row, ensure_ascii=False) + end for row in rows),
        "json": lambda: json.dumps(rows, ensure_ascii=False, indent=indent),
        "objects": lambda: "\n".join(json.dumps(row, ensure_ascii=False, indent=1) for row in rows),
    }[form]()
    name = {"semicolons": "a.csv", "plain": "a.tsv", "objects": "a.json"}.get(form, f"a.{form}")
    packing = draw(st.sampled_from(sorted(PACK)))
    data = PACK[packing](content.encode(draw(st.sampled_from(ENCODINGS))))
    return name + packing, data, None if name == "a.tsv" else texts


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(file=files())
def test_every_command_reads_the_same_texts(tmp_path, file):
    name, data, texts = file
    path = tmp_path / name
    path.write_bytes(data)
    rows = read_rows(path, [ROLES["text"], ROLES["label"]])
    learned = [row["text"] for row in rows]
    assert not rows.dropped
    predicted = [one for part in predict_lines(_Echo(), path, str(path)) for one in part]
    embedded = [one for part in text_records(path, str(path)) for one in part]
    indexed = [text for _, text, *_ in _pairs(path, "auto", None, Failed(name))]
    source = SourceSettings(name="s", path="x", id="", text="문장")
    cleaned = [row.text for chunk in chunks(source, [path], 64) for row in corpus_rows(chunk)]
    assert cleaned == learned
    assert [one.get("text") for one in predicted] == [one.get("text") for one in embedded] == indexed == learned
    assert learned == (texts or learned)
    assert [one["line"] for one in predicted] == [*range(1, len(learned) + 1)]
    if not name.endswith(tuple(filter(None, PACK))):
        with path.open("rb") as pipe:
            piped = [one for part in predict_lines(_Echo(), pipe, name) for one in part]
        assert piped == predicted


@pytest.mark.parametrize("name", ["reviews.csv", "reviews.txt"])
def test_a_published_form_of_tsv_is_read_alike(tmp_path, name):
    path = tmp_path / name
    path.write_text('document\tlabel\n"그는 ""최고"" 라고 했다"\t1\n"탭\t속"\t0\n그냥\t1\n', "utf-8")
    learned = [row["text"] for row in read_rows(path, [ROLES["text"], ROLES["label"]])]
    assert learned == ['그는 "최고" 라고 했다', "탭\t속", "그냥"]
    assert [one["text"] for part in predict_lines(_Echo(), path, name) for one in part] == learned


def _texts(path):
    """The texts of a file for predict, embed and index, and for predict where it can come through a pipe."""
    name = str(path)
    predicted = [one for part in predict_lines(_Echo(), path, name) for one in part]
    embedded = [one for part in text_records(path, name) for one in part]
    if path.is_file() and path.suffix != ".ann":
        with path.open("rb") as pipe:
            assert [one for part in predict_lines(_Echo(), pipe, name) for one in part] == predicted
    assert not [one["error"] for one in [*predicted, *embedded] if "error" in one]
    return [[one["text"] for one in predicted], [one["text"] for one in embedded],
            [text for _, text, *_ in _pairs(path, "auto", None, Failed(name))]]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), [*ENTITIES, *(one[:2] for one in LABELS)])
def test_files_of_labelling_tools_are_read_alike(tmp_path, name, content):
    if isinstance(content, list):  # an index takes each id once
        content = [one | {"id": number} if isinstance(one, dict) else one for number, one in enumerate(content)]
    path = written(tmp_path, name, content)
    learned = [row["text"] for row in read_rows(path, [ROLES["text"]])]
    assert learned == [TEXT] * len(learned)
    assert _texts(path) == [learned] * 3


def test_what_is_not_settled_is_left_out_of_training_alone(tmp_path):
    files = [
        written(tmp_path, "a.jsonl", [PRODIGY | {"answer": answer} for answer in ("accept", "reject", "ignore")]),
        written(tmp_path, "a.json", [{"data": {"text": TEXT}, "annotations": []}] * 3),
    ]
    for number, name in enumerate("가나다"):
        (tmp_path / f"{name}.txt").write_text(TEXT, "utf-8")
        (tmp_path / f"{name}.ann").write_text("T1\tPS 0 2\t하늘\n"[number * 3 :], "utf-8")
    for path in [*files, tmp_path]:
        assert _texts(path) == [[TEXT] * 3] * 3, path
    assert _texts(tmp_path / "가.ann") == [[TEXT]] * 3


def test_tokens_are_the_words_of_a_text(tmp_path):
    words = [{"tokens": TEXT.split(), "tags": ["O"] * len(TEXT.split())}]
    conll = TEXT.replace(" ", "\tO\n") + "\tO\n"
    files = [written(tmp_path, *one) for one in (("a.conll", conll), ("a.jsonl", words), ("a.json", words))]
    for path in files:
        assert _texts(path) == [[TEXT]] * 3, path
        assert [row["tokens"] for row in read_rows(path, [ROLES["tokens"]])] == [TEXT.split()]


class _EchoReader(Model):
    """A model that answers with its text."""

    network = None

    def __init__(self):
        self.kind = QuestionAnswering(metrics=("f1",))

    def results_of(self, rows, *, why=False):
        return [Answer(row["context"], 0, 0, 0.0) for row in rows]


@pytest.mark.parametrize("article", ARTICLES)
def test_questions_are_read_alike(tmp_path, article):
    path = written(tmp_path, "a.json", {"version": "1", "data": [article]})
    learned = [(row["question"], row["context"]) for row in read_rows(path, [ROLES["question"], ROLES["context"]])]
    predicted = [one for part in predict_lines(_EchoReader(), path, "a.json") for one in part]
    assert [(one["question"], one["answer"]) for one in predicted] == learned
    assert len(learned) == 2
