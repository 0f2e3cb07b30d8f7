import numpy as np
import pyarrow as pa
import pytest

from korbert.errors import ArtifactError, CorpusError
from korbert.pretraining.shards import Shards


def test_documents_are_concatenated_over_record_batches_and_files(shards):
    written = shards([("wiki", [5, 3]), ("wiki", [4]), ("reviews", [2, 2, 2]), ("wiki", [7])], files=2, rows=1)
    line = Shards(written.files)
    assert line.edges.tolist() == [0, 8, 12, 18, 25]
    assert line.sentences.tolist() == [0, 5, 8, 12, 14, 16, 18, 25]
    assert [line.source_names[source] for source in line.sources] == written.sources
    assert line.document(np.array([0, 7, 8, 24])).tolist() == [0, 0, 1, 3]
    for document in range(len(line)):
        ids, boundaries = line.pieces(int(line.edges[document]), int(line.edges[document + 1]))
        assert np.array_equal(ids, written.input_ids[document])
        assert np.array_equal(boundaries, written.boundaries[document])
    # And so are spans of pieces.
    spans = [(19, 25), (0, 8), (25, 25), (9, 12), (3, 3), (14, 18), (1, 2)]
    starts, ends = np.array(spans).T
    ids, boundaries = line.gather(starts, ends - starts)
    one_by_one = [line.pieces(start, end) for start, end in spans if start < end]
    assert np.array_equal(ids, np.concatenate([own for own, _ in one_by_one]))
    assert np.array_equal(boundaries, np.concatenate([own for _, own in one_by_one]))


def test_shards_are_mapped_where_they_lie(shards):
    assert Shards(shards([("wiki", [3]), ("wiki", [0]), ("wiki", [2])]).files).sentences.tolist() == [0, 3, 5]
    (path,) = shards([("wiki", [5, 3])], files=1).files
    before = sorted(path.parent.iterdir())
    ids, _ = Shards([path]).pieces(0, 4)
    assert not ids.flags.owndata
    assert not ids.flags.writeable
    assert sorted(path.parent.iterdir()) == before


def test_other_files_and_shards_without_pieces_are_refused(shards, tmp_path):
    for files, message in (
        (shards([("wiki", [0])]).files, r"part-00000\.arrow.*: no pieces in these shards; is the corpus empty"),
        ([], "no files: no pieces"),
    ):
        with pytest.raises(CorpusError, match=message):
            Shards(files)
    path = tmp_path / "part.arrow"
    path.write_bytes(b"not arrow at all")
    with pytest.raises(ArtifactError, match=r"part\.arrow: is not an Arrow stream file \(.*\); rebuild the shards"):
        Shards([path])
    without = {"id": ["a"], "input_ids": [[1]]}
    unequal = {"source": ["a"], "input_ids": pa.array([[1, 2]], pa.list_(pa.int32())), "boundaries": [[3]]}
    said = r"part\.arrow: no column source, boundaries, only id, input_ids", "input_ids and boundaries differ in length"
    for columns, message in zip((without, unequal), said, strict=True):
        table = pa.table(columns)
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)
        with pytest.raises(ArtifactError, match=message):
            Shards([path])
