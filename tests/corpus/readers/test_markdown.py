import pytest
from reading import put, read

NOTE = """\
---
title: 강의 역사
id: 007
tags: [강, 포구]
---
# 강의 *역사*

강가에는 [포구](http://a.kr "제목")가 생겨 **쌀과
소금**이 모였다.<br>배로 실어 &amp; 날랐다. <!-- 고칠 것 -->

<!--
숨은 글
-->
- 쌀
- 소금 `NaCl`

1. 하나

   둘째 문단

> 인용한 글
> ![배 그림](배.png)과 ~~지운 글~~

```python
print("가")
```

| 물건 | 값 |
|------|---:|
| 쌀   | 3  |

<div align="center"><b>끝</b>이다</div>

***
"""
PROSE = """\
강의 역사

강가에는 포구가 생겨 쌀과 소금이 모였다.
배로 실어 & 날랐다.

쌀
소금 NaCl

하나

둘째 문단

인용한 글 배 그림과 지운 글

print("가")

물건\t값
쌀\t3

끝이다"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_markdown_becomes_prose_in_any_encoding(tmp_path, encoding, line_end):
    (row,) = read(put(tmp_path, "강.md", NOTE.replace("\n", line_end), encoding))
    assert (row.id, row.place, row.reason) == ("007", "강.md", None)
    assert row.text == PROSE


def test_front_matter_gives_title_id_and_text(tmp_path):
    path = put(tmp_path, "a.markdown", "---\ntitle: 제목\nslug: s1\nsummary: |\n  첫 줄\n  둘째\n...\n본문")
    (row,) = read(path)
    assert (row.id, row.text) == ("a.markdown", "제목\n\n본문")
    (row,) = read(path, id="slug", text="summary")
    assert (row.id, row.text) == ("s1", "첫 줄\n둘째\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\n\n본문\n\n---\n", "본문"),  # lines of hyphens elsewhere are no front matter
        ("---\n본문", "본문"),
        ("---\n---\n본문", "본문"),
        ("본문\n---\na: b\n---\n", "본문\n\na: b"),
        ("[글][1] <http://a.kr> [없는][2]\n\n[1]: http://b.kr '제목'", "글 http://a.kr [없는][2]"),
        ("\\*별\\* a_b_c 2 < 3 &lt;b>", "*별* a_b_c 2 < 3 <b>"),
        ("제목\n===\n\n    들여쓴 코드\n", "제목\n\n들여쓴 코드"),
        ("<script>\nlet a;\n</script>\n\n글", "글"),
        ("- [ ] 할 일\n  - 속\n", "[ ] 할 일\n속"),
        ("", ""),
    ],
)
def test_marks_are_removed_from_prose(tmp_path, text, expected):
    assert [(row.text, row.reason) for row in read(put(tmp_path, "a.md", text))] == [(expected, None)]


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        ("---\na: 1\nb: [1\n---\n본문", "bad_front_matter", "a.md line 4: its front matter is not YAML (expected"),
        ("---\n- 하나\n---\n본문", "bad_front_matter", "a.md: its front matter has no fields (key: value)"),
        ("---\na: " + "[" * 9_000 + "\n---\n", "bad_front_matter", "a.md: its front matter is not YAML"),
        ("---\nid: [1]\n---\n본문", "bad_id", "a.md: 'id' is a list, not a text or a whole number"),
        (">" * 300 + "본문", "bad_text", "a.md: more than 98 quotes or lists inside one another"),
    ],
)
def test_a_faulty_file_is_dropped_alone(tmp_path, text, reason, detail):
    faulty, good = read([put(tmp_path, "a.md", text), put(tmp_path, "b.md", "본문")])
    assert (faulty.text, faulty.reason, good.text) == (text, reason, "본문")
    assert faulty.detail.startswith(detail)
