"""Sentences of tokens and tags: CoNLL, KLUE's entities, CoNLL-U."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tasks.files import ROLES, Rows, read_rows

TOKENS, TAGS, ID, TEXT = ROLES["tokens"], ROLES["tags"], ROLES["id"], ROLES["text"]
TOKEN = st.text("가나#\"' .-", min_size=1).filter(lambda token: not token.startswith(("#", "-DOCSTART-")))
SENTENCES = st.lists(
    st.lists(st.tuples(TOKEN, st.sampled_from(["O", "B-PS", "I-PS"])), min_size=1, max_size=5), min_size=1, max_size=5
)


def _read(folder: Path, name: str, content: str, **settings) -> Rows:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return read_rows(path, [TOKENS, TAGS], **settings)


@given(sentences=SENTENCES, end=st.sampled_from(["\n", "\r\n"]), gap=st.integers(1, 3))
def test_what_is_written_as_conll_is_read_again(tmp_path_factory, sentences, end, gap) -> None:
    blocks = ["".join(f"{token}\t{tag}{end}" for token, tag in sentence) for sentence in sentences]
    rows = _read(tmp_path_factory.getbasetemp(), "law.conll", (end * gap).join(blocks))
    assert [list(zip(row["tokens"], row["tags"], strict=True)) for row in rows] == sentences


CONLL = "-DOCSTART- -X- O\n\n철수 NNP B-PS\n가 JKS O\n\n# 주석이다\n# NN O\n갔다 VV O\n"


def test_columns_documents_and_comments_of_conll(tmp_path: Path) -> None:
    rows = _read(tmp_path, "a.conll", CONLL)
    assert rows.rows == [
        {"tokens": ["철수", "가"], "tags": ["B-PS", "O"]},
        {"tokens": ["#", "갔다"], "tags": ["O", "O"]},
    ]
    assert [place.number for place in rows.places] == [3, 6]
    assert _read(tmp_path, "a.conll", CONLL, columns={"tags": "2"}).rows[0]["tags"] == ["NNP", "JKS"]
    assert _read(tmp_path, "a.txt", CONLL).rows == rows.rows


def test_a_sentence_with_a_short_line_is_dropped(tmp_path: Path) -> None:
    rows = _read(tmp_path, "a.conll", "가\tO\n나\n\n다\tO\n")
    assert rows.rows == [{"tokens": ["다"], "tags": ["O"]}]
    assert rows.dropped["bad_fields"].first == [
        f"{tmp_path / 'a.conll'}, line 1: 1 columns where the sentence has 2, in '나'"
    ]


KLUE = (
    "## 토큰, 레이블 구분자 : \\t\n## 컬럼명 : CHAR\tNE_TAG\n"
    '## klue-0\t<경찰:OG> "#\n경\tB-OG\n찰\tI-OG\n \tO\n"\tO\n#\tO\n\n## klue-1\t네\n네\tO\n\n'
)


@pytest.mark.parametrize("name", ["a.tsv", "a.txt"])
def test_entities_of_klue(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(KLUE, encoding="utf-8")
    rows = read_rows(tmp_path / name, [TEXT, TOKENS, TAGS, ID])
    assert rows.rows[0] == {
        "text": '경찰 "#',
        "tokens": ["경", "찰", " ", '"', "#"],
        "tags": ["B-OG", "I-OG", "O", "O", "O"],
        "id": "klue-0",
    }
    assert [row["id"] for row in rows] == ["klue-0", "klue-1"]
    marked = read_rows(tmp_path / name, [TEXT], columns={"text": "marked"})
    assert [row["text"] for row in marked] == ['<경찰:OG> "#', "네"]


CONLLU = (
    "# sent_id = s1\n# text = 나는 간다.\n"
    "1-2\t나는\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\t나\t나\tPRON\tnpp\t_\t3\tnsubj\t_\t_\n2\t는\t는\tADP\tjxt\t_\t1\tcase\t_\t_\n"
    "2.1\t_\t_\tX\t_\t_\t_\t_\t_\t_\n3\t간다\t가+ㄴ다\tVERB\tpvg+ef\t_\t0\troot\t_\tSpaceAfter=No\n\n"
    "1\t네\t네\tINTJ\tii\t_\t0\troot\t_\t_\n"
)


@pytest.mark.parametrize("name", ["a.conllu", "a.txt"])
def test_conllu_words(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CONLLU, encoding="utf-8")
    rows = read_rows(tmp_path / name, [TOKENS, TAGS, ID])
    assert rows.rows == [
        {"tokens": ["나", "는", "간다"], "tags": ["PRON", "ADP", "VERB"], "id": "s1"},
        {"tokens": ["네"], "tags": ["INTJ"], "id": None},
    ]
    heads = read_rows(tmp_path / name, [TAGS], columns={"tags": "xpos"})
    assert heads.rows[0]["tags"] == ["npp", "jxt", "pvg+ef"]
