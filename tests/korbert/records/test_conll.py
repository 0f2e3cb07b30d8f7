import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import CorpusError
from korbert.records import open_table
from korbert.tasks.files import ROLES, read_rows

TOKENS, TAGS, ID, TEXT = (ROLES[name] for name in ("tokens", "tags", "id", "text"))
TOKEN = st.text("가나#\"' .-", min_size=1).filter(lambda token: not token.startswith(("#", "-DOCSTART-")))


def _is_one_word(sentence):
    return len(sentence) == 1 and len(sentence[0][0]) > 1


SENTENCES = st.lists(
    st.lists(st.tuples(TOKEN, st.sampled_from(["O", "B-PS", "I-PS"])), min_size=1, max_size=5), min_size=1, max_size=5
).filter(lambda sentences: len(sentences) < 5 or not all(map(_is_one_word, sentences)))  # which are refused


def _read(folder, name, content, **settings):
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return read_rows(path, [TOKENS, TAGS], **settings)


@given(sentences=SENTENCES, end=st.sampled_from(["\n", "\r\n"]), gap=st.integers(1, 3))
def test_what_is_written_as_conll_is_read_again(tmp_path_factory, sentences, end, gap):
    blocks = ["".join(f"{token}\t{tag}{end}" for token, tag in sentence) for sentence in sentences]
    rows = _read(tmp_path_factory.getbasetemp(), "law.conll", (end * gap).join(blocks))
    assert [list(zip(row["tokens"], row["tags"], strict=True)) for row in rows] == sentences


CONLL = "-DOCSTART- -X- O\n\n철수 NNP B-PS\n가 JKS O\n\n# 주석이다\n# NN O\n갔다 VV O\n"


def test_columns_documents_and_comments_of_conll(tmp_path):
    rows = _read(tmp_path, "a.conll", CONLL)
    assert rows.rows == [
        {"tokens": ["철수", "가"], "tags": ["B-PS", "O"]},
        {"tokens": ["#", "갔다"], "tags": ["O", "O"]},
    ]
    assert [place.number for place in rows.places] == [3, 6]
    assert _read(tmp_path, "a.conll", CONLL, columns={"tags": "2"}).rows[0]["tags"] == ["NNP", "JKS"]
    assert _read(tmp_path, "a.txt", CONLL).rows == rows.rows


def test_a_sentence_with_a_short_line_is_dropped(tmp_path):
    rows = _read(tmp_path, "a.conll", "가\tO\n나\n\n다\tO\n")
    assert rows.rows == [{"tokens": ["다"], "tags": ["O"]}]
    place = f"{tmp_path / 'a.conll'}, line 1"
    assert rows.dropped["bad_fields"].first == [f"{place}: 1 columns where the sentence has 2, in '나'"]


NAVER = "1\t하늘는\tPER_B\n2\t지난\t-\n3\t봄에\tDAT_B\n4\t갔다\tDAT_I\n\n1\t네\t-\n"
COMPETITION = (
    "; 하늘은 서울에 갔다.\n$<하늘:PS>은 <서울:LC>에 갔다.\n"
    "1\t하늘\tNNP\tB_PS\n1\t은\tJX\tO\n2\t서울\tNNP\tB_LC\n2\t에\tJKB\tO\n3\t;\tSP\tO\n\n"
    "; 네, 나래.\n$네, <나래:PS>.\n1\t네\tIC\tO\n2\t나래\tNNP\tB_PS\n\n"
)
KMOU = (
    "## 0\n## 하늘은 서울에 갔다\n## <하늘:PER>은 <서울:LOC>에 갔다\n"
    "하늘\t하늘\tNNP\tB-PER\n은\t은\tJX\tO\n\n## 1\n## #은\n## #은\n#\t#\tSW\tO\n은\t은\tJX\tO\n\n"
)
PIECES = "## doc-0\t<하늘:PS>은\n하늘\tB-PS\n##은\tO\n\n## doc-1\t갔다\n갔\tO\n##다\tO\n"
OUTSIDE = ["O", "O"]
RIVALS = [["하늘", "은", "서울", "에", ";"], ["네", "나래"]]
NAVER_TAGS = [["B-PER", "O", "B-DAT", "I-DAT"], ["O"]]
FROM_0 = str.maketrans("1234", "0123")


@pytest.mark.parametrize("name", ["a.conll", "a.txt", "a.tsv"])
@pytest.mark.parametrize(
    ("content", "tokens", "tags"),
    [
        (NAVER, [["하늘는", "지난", "봄에", "갔다"], ["네"]], NAVER_TAGS),
        (NAVER.translate(FROM_0), [["하늘는", "지난", "봄에", "갔다"], ["네"]], NAVER_TAGS),
        (COMPETITION, RIVALS, [["B-PS", "O", "B-LC", "O", "O"], ["O", "B-PS"]]),
        (COMPETITION.replace("\t", " "), RIVALS, None),
        (KMOU, [["하늘", "은"], ["#", "은"]], [["B-PER", "O"], OUTSIDE]),
        (KMOU.replace("\t", " "), [["하늘", "은"], ["#", "은"]], None),
        (PIECES, [["하늘", "##은"], ["갔", "##다"]], [["B-PS", "O"], OUTSIDE]),
        ("##은\tO\n하늘\tB-PS\n\n##은\tO\n", [["##은", "하늘"], ["##은"]], [["O", "B-PS"], ["O"]]),
        ("1\tX\tO\n5\tX\tB-QT\n\n2\tX\tO\n", [["1", "5"], ["2"]], [["O", "B-QT"], ["O"]]),
    ],
)
def test_published_files_of_entities_are_read(tmp_path, name, content, tokens, tags):
    """Numbers of words, raw sentences and comments are no tokens; everything else is."""
    if name == "a.tsv" and not content.startswith("## "):
        pytest.skip("a TSV file names its columns")
    rows = _read(tmp_path, name, content)
    assert not rows.dropped
    assert [row["tokens"] for row in rows] == tokens
    if tags:
        assert [row["tags"] for row in rows] == tags


def test_what_is_no_words_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"a.conll: the first column counts words \('1\\t하늘'\), and one is left"):
        _read(tmp_path, "a.conll", "1\t하늘\n2\t은\n\n1\t네\n")
    (tmp_path / "a.tsv").write_text(PIECES, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"token '하늘' where KLUE has one character: form conll reads words"):
        read_rows(tmp_path / "a.tsv", [TOKENS, TAGS], form="klue-ner")
    (tmp_path / "b.tsv").write_text("## 주석\ntext\tlabel\n좋은 영화\t1\n", encoding="utf-8")
    assert open_table(tmp_path / "b.tsv").form == "TSV"


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        (["B_PS", "I_PS", "O"], ["B-PS", "I-PS", "O"]), (["PS-B", "PS-I", "-"], ["B-PS", "I-PS", "O"]),
        (["PS_B", "O"], ["B-PS", "O"]), (["B-PS", "-"], ["B-PS", "O"]), (["-"], ["O"]),
        (["I-PS", "O"], ["I-PS", "O"]), (["NNG", "JX", "-"], ["NNG", "JX", "-"]),
        (["NN_I", "JX_I"], ["NN_I", "JX_I"]), (["B-PS", "B_PS", "O"], ["B-PS", "B_PS", "O"]),
        (["B_PS", "O", "-"], ["B_PS", "O", "-"]),
    ],
)  # fmt: skip
def test_bio_tags_are_read_in_any_spelling(tmp_path, spelled, read):
    """All tags of a file have to be spelled alike; tags that are not BIO stay as they are."""
    assert _read(tmp_path, "a.conll", "".join(f"{tag}에\t{tag}\n" for tag in spelled) + "\n").rows[0]["tags"] == read


KLUE = (
    "## 토큰, 레이블 구분자 : \\t\n## 컬럼명 : CHAR\tNE_TAG\n"
    '## klue-0\t<경찰:OG> "#\n경\tB-OG\n찰\tI-OG\n \tO\n"\tO\n#\tO\n\n## klue-1\t네\n네\tO\n\n'
)


@pytest.mark.parametrize("name", ["a.tsv", "a.txt"])
def test_entities_of_klue_are_read_with_id_and_text(tmp_path, name):
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
def test_words_of_conllu_are_read(tmp_path, name):
    (tmp_path / name).write_text(CONLLU, encoding="utf-8")
    assert read_rows(tmp_path / name, [TOKENS, TAGS, ID]).rows == [
        {"tokens": ["나", "는", "간다"], "tags": ["PRON", "ADP", "VERB"], "id": "s1"},
        {"tokens": ["네"], "tags": ["INTJ"], "id": None},
    ]
    assert read_rows(tmp_path / name, [TAGS], columns={"tags": "xpos"}).rows[0]["tags"] == ["npp", "jxt", "pvg+ef"]
