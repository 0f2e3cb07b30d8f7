import json

import pyarrow as pa
import pytest

from korbert.corpus.corpus_settings import FilterSettings
from korbert.corpus.execution.parts import OutputPart, key_of, unfinished, write_parquet

TABLE = pa.table({"id": ["ㄱ", "ㄴ"]})


def finished_part(output):
    part = OutputPart(output, "step", "part-00000", "k")
    path = write_parquet(output / "data" / "part-00000.parquet", TABLE, output)
    part.finish([path], {"rows": 2})
    return part, path


def test_a_part_is_finished_if_its_record_and_files_agree(tmp_path):
    part, path = finished_part(tmp_path)
    assert part.finished() == {"rows": 2}
    record = json.loads(part.record.read_text())
    assert (list(record["files"]), record["counts"]) == ([path.relative_to(tmp_path).as_posix()], {"rows": 2})
    other = OutputPart(tmp_path, "step", "part-00001", "k")
    assert unfinished([part, other]) == ([other], {"rows": 2})
    assert OutputPart(tmp_path, "step", "part-00000", "other key").finished() is None
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"x")
    assert part.finished() is None
    path.write_bytes(content)
    assert part.finished() == {"rows": 2}
    path.unlink()
    assert part.finished() is None


@pytest.mark.parametrize("record", ["", "[]", '{"key": "k"}', '{"key": "k", "files": 1, "counts": {}}'])
def test_a_part_with_a_damaged_record_is_unfinished(tmp_path, record):
    part, _ = finished_part(tmp_path)
    part.record.write_text(record)
    assert part.finished() is None


def test_keys_differ_by_settings_and_inputs():
    some = FilterSettings()
    inputs = [(some, "a", "bc"), (some, "ab", "c"), (FilterSettings(min_chars=11), "a", "bc"), (None, "a", "bc")]
    keys = {key_of(*parts) for parts in (*inputs, (some, "a", b"bc", 0))}
    assert len(keys) == 5
    assert key_of(FilterSettings(), "a", "bc") in keys
