import datasets
import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.corpus import ShardSettings, is_heldout, shard
from korbert.corpus.shards import SCHEMA
from korbert.errors import CorpusError
from korbert.tokenization.analyzer import Analysis

SEED = 5
SHARE = 0.3
PARTS = [made_up.documents(part, 40, part) for part in range(4)]
ROWS = [row for rows in PARTS for row in rows]
SMALL = ShardSettings(part_bytes=3_000, seed=SEED)


@pytest.fixture
def morphemes(tmp_path):
    return made_up.write_parts(tmp_path, PARTS)


@pytest.fixture
def folder(tmp_path):
    made_up.tokenizer().save(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def run(morphemes, folder, output, share=SHARE):
    settings = SMALL.model_copy(update={"heldout_share": share})
    return shard(morphemes, folder, output, settings, workers=1)


def test_another_library_version_makes_all_parts_anew(morphemes, folder, tmp_path, others_with):
    assert others_with(lambda: run(morphemes, folder, tmp_path / "out"), "sentencepiece")


def read(folder):
    return [row for path in sorted(folder.glob("*.arrow")) for row in datasets.Dataset.from_file(str(path))]


def expected(row, tokenizer):
    lists = (row["form"], row["tag"], row["start"], row["end"], row["sentence"], row["eojeol"])
    pieces = tokenizer.pieces(Analysis(*lists), "")
    return {"id": row["id"], "source": row["source"], "input_ids": pieces.ids, "boundaries": pieces.boundaries}


@pytest.mark.parametrize("mark", ["none", "eojeol"])
def test_shards_hold_the_tokenizers_own_pieces(morphemes, tmp_path, mark):
    tokenizer = made_up.tokenizer(mark)
    tokenizer.save(tmp_path / "tokenizer")
    totals = run(morphemes, tmp_path / "tokenizer", tmp_path / "out")
    shards = {name: read(tmp_path / "out" / name) for name in ("train", "heldout")}
    rows = {"train": [], "heldout": []}
    for row in ROWS:
        rows["heldout" if is_heldout(row["id"], SEED, SHARE) else "train"].append(expected(row, tokenizer))
    assert shards == rows
    assert len(list((tmp_path / "out" / "train").iterdir())) > 1
    assert totals == {
        "documents": len(ROWS),
        "morphemes": sum(len(row["form"]) for row in ROWS),
        "pieces": sum(len(row["input_ids"]) for some in rows.values() for row in some),
        "heldout_documents": len(rows["heldout"]),
        "heldout_morphemes": sum(len(row["form"]) for row in ROWS if is_heldout(row["id"], SEED, SHARE)),
        "heldout_pieces": sum(len(row["input_ids"]) for row in rows["heldout"]),
    }
    pieces = pq.read_table(tmp_path / "out" / "pieces.parquet").to_pydict()
    ids = np.concatenate([row["input_ids"] for row in rows["train"]]).astype(int)
    assert pieces["count"] == np.bincount(ids, minlength=tokenizer.vocab_size).tolist()
    assert pieces["id"] == list(range(tokenizer.vocab_size))
    assert pieces["piece"] == tokenizer.tokens(pieces["id"])


def test_files_are_streams_that_can_be_mapped(morphemes, folder, tmp_path):
    run(morphemes, folder, tmp_path / "out", share=0.0)
    paths = [path for path in (tmp_path / "out").rglob("part-*") if "work" not in path.parts]
    assert {path.parent.name for path in paths} == {"train"}  # no file without held-out documents
    assert all(pa.ipc.open_stream(path).schema.equals(SCHEMA) for path in paths)
    assert len(read(tmp_path / "out" / "train")) == len(ROWS)
    with pytest.raises(CorpusError, match="all documents are held out: bring more text or hold out less"):
        run(morphemes, folder, tmp_path / "out", share=1.0)


def test_only_missing_parts_are_made_again(morphemes, folder, tmp_path, bytes_below):
    run(morphemes, folder, tmp_path / "whole")
    output = tmp_path / "out"
    run(morphemes, folder, output)  # as a killed run leaves it: one part whole, one file without its record
    (output / "work" / "shard" / "part-00001.json").unlink()
    (output / "train" / "part-00002.arrow").unlink()
    (output / "pieces.parquet").unlink()
    kept = output / "train" / "part-00000.arrow"
    before = kept.stat()
    run(morphemes, folder, output)
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert bytes_below(output) == bytes_below(tmp_path / "whole")
