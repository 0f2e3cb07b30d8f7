"""The same file through the readers of clean, finetune, evaluate, predict, embed and index gives the same texts."""

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.readers import chunks
from corpus.readers import rows as corpus_rows
from corpus.settings import SourceSettings
from korbert.tasks.classification import Classifier
from korbert.tasks.files import ROLES, read_rows
from pipelines.commands.vector_options import Failed
from pipelines.commands.vectors import _pairs
from pipelines.embedding import text_records
from pipelines.predicting import predict_lines

PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
ENCODINGS = ["utf-8", "utf-8-sig", "cp949", "utf-16"]
TEXT = st.text("가나한글 a1,;\"'#[]{}:\\\t\n", min_size=1, max_size=12).filter(str.strip)


class _Echo(Classifier):
    """A model that says nothing."""

    def __init__(self) -> None:
        pass

    def predict(self, texts: Any) -> Any:
        return [{} for _ in texts]


def _delimited(texts: Sequence[str], delimiter: str, quoting: int, end: str) -> str:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([["n", "문장", "label"], *([number, text, "긍정"] for number, text in enumerate(texts))])
    return file.getvalue()


def _plain(texts: Sequence[str]) -> str:
    rows = ["n\t문장\tlabel", *(f"{number}\t{text}\t긍정" for number, text in enumerate(texts))]
    return "".join(f"{row}\n" for row in rows)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes, list[str] | None]:
    """Name, content, and the texts if nothing about them is a guess."""
    form = draw(st.sampled_from(["csv", "semicolons", "tsv", "plain", "jsonl", "json", "objects", "parquet", "arrow"]))
    text = TEXT.map(lambda text: " ".join(text.split())) if form == "plain" else TEXT
    texts = draw(st.lists(text, min_size=1 + (form == "objects"), max_size=6))  # one object alone is no list of them
    rows = [{"n": number, "문장": one, "label": "긍정"} for number, one in enumerate(texts)]
    if form in ("parquet", "arrow"):
        table, sink = pa.Table.from_pylist(rows), io.BytesIO()
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
        "csv": lambda: _delimited(texts, ",", quoting, end),
        "semicolons": lambda: f"sep=;{end}" + _delimited(texts, ";", quoting, end),
        "tsv": lambda: _delimited(texts, "\t", quoting, end),
        "plain": lambda: _plain(texts),
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
def test_every_command_reads_the_same_texts(tmp_path: Path, file: tuple[str, bytes, list[str] | None]) -> None:
    name, data, texts = file
    path = tmp_path / name
    path.write_bytes(data)
    rows = read_rows(path, [ROLES["text"], ROLES["label"]])
    learned = [row["text"] for row in rows]
    assert not rows.dropped
    predicted = [one for part in predict_lines(_Echo(), path, str(path)) for one in part]
    embedded = [one for part in text_records(path, str(path)) for one in part]
    indexed = [text for _, text in _pairs(path, "auto", None, Failed(name))]
    source = SourceSettings(name="s", path="x", id="", text="문장")
    cleaned = [row.text for chunk in chunks(source, [path], 64) for row in corpus_rows(chunk)]
    assert cleaned == learned
    assert [one.get("text") for one in predicted] == [one.get("text") for one in embedded] == indexed == learned
    assert learned == (texts or learned)
    assert [one["line"] for one in predicted] == [place.number for place in rows.places]
    if not name.endswith(tuple(filter(None, PACK))):
        with path.open("rb") as pipe:
            piped = [one for part in predict_lines(_Echo(), pipe, name) for one in part]
        assert piped == predicted


@pytest.mark.parametrize("name", ["reviews.csv", "reviews.txt"])
def test_a_published_form_of_tsv_is_read_alike(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('document\tlabel\n"그는 ""최고"" 라고 했다"\t1\n"탭\t속"\t0\n그냥\t1\n', "utf-8")
    learned = [row["text"] for row in read_rows(path, [ROLES["text"], ROLES["label"]])]
    assert learned == ['그는 "최고" 라고 했다', "탭\t속", "그냥"]
    assert [one["text"] for part in predict_lines(_Echo(), path, name) for one in part] == learned
