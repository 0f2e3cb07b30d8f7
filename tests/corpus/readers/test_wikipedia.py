"""A dump of a dozen pages, written by hand, as prose."""

import bz2
from pathlib import Path

import pytest
from reading import put, read

from korbert.corpus.readers.wikitext import prose

DUMP = Path(__file__).parent / "wikipedia" / "pages-articles.xml"


def shown(rows):
    return "\n".join(f"== {row.id} {row.reason or 'kept'}\n{row.text}\n" for row in rows)


def test_a_dump_becomes_the_prose_checked_by_hand():
    rows = read(DUMP)
    assert shown(rows) == DUMP.with_name("golden.txt").read_text(encoding="utf-8")
    details = {row.id: row.detail for row in rows if row.reason}
    assert details["12"] == "pages-articles.xml page 2 (새강): to 새벽강"
    assert details["14"] == "pages-articles.xml page 4 (틀:강 정보): namespace 10"


def test_a_multistream_dump_is_read_in_parts_of_any_size(tmp_path):
    head, *pages = DUMP.read_bytes().split(b"  <page>")
    packed = b"".join(bz2.compress(part) for part in (head, *(b"  <page>" + page for page in pages)))
    path = put(tmp_path, "kowiki-pages-articles-multistream.xml.bz2", packed)
    whole = read(path)
    assert shown(whole) == shown(read(DUMP))
    assert len(whole) == 12
    for part_bytes in (1, 900, 3_000):
        assert read(path, part_bytes) == whole


def test_a_malformed_page_is_dropped_alone(tmp_path):
    content = DUMP.read_bytes().replace(b"<ns>1</ns>", b"<ns>1</n>").replace(b"<id>15</id>", b"<id>x</id>")
    rows = read(put(tmp_path, "a.xml", content))
    assert [row.reason for row in rows[:5]] == [None, "redirect", "bad_xml", "not_an_article", "bad_id"]
    assert len(rows) == 12


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("[[가|나]][[다]]라", "나다라"),
        ("가 {{틀|{{틀}}}} 나", "가 나"),
        ("(가, {{틀}}, 나)와 ({{틀}}) (다) a,,b // c", "(가, 나)와 (다) a,,b // c"),
        ("== 가 ==\n나\n=== 다 ===\n라", "나\n\n라"),
        ("H<sub>2</sub>O와 x<sup>2</sup>, 가<sup>주</sup>", "H₂O와 x², 가주"),
        ("[[en:Korea]][[:en:Korea|한국]][[분류:가]][[:분류:나]]", "한국분류:나"),
        ("", ""),
    ],
)
def test_wikitext_becomes_prose(wikitext, expected):
    assert prose(wikitext) == expected


PAGE = "<page><title>산</title><ns>0</ns><id>{}</id><revision><text>{}</text></revision></page>"


def test_entities_of_surrogates_become_text(tmp_path):
    content = PAGE.format(1, "가 &amp;#xD83D;&amp;#xDE00; 나 &amp;#xD83D; 다 &amp;#xDC80;")
    (row,) = read(put(tmp_path, "a.xml", content))
    assert (row.text, row.reason) == ("가 😀 나 \ufffd 다 \ufffd", None)


def test_a_page_of_nested_markup_is_dropped(tmp_path):
    wikitext = "{{{" * 600 + "가" + "}}}" * 600
    content = PAGE.format(1, "가") + PAGE.format(2, wikitext) + PAGE.format(3, "나")
    first, bad, last = read(put(tmp_path, "a.xml", content))
    assert (first.text, bad.id, bad.reason, last.text) == ("가", "2", "bad_text", "나")
    assert bad.detail == "a.xml page 2 (산): its wikitext is nested too deep to be parsed"
