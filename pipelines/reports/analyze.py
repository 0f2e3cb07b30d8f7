"""The page of `analyze`: how fast Kiwi went, where it failed, how long documents are, which tags there are."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Headline, Section, Story, Table
from pipelines.reports.labels import label
from pipelines.reports.lengths import Lengths
from pipelines.reports.pictures import columns
from pipelines.reports.record import Artifact, batches, num_rows, parts_note, sampled

__all__ = ["TAGS", "headlines", "story"]

_TOP_TAGS = 15
_SAMPLES = 20  # failed documents shown for each reason
_EOJEOL_MORPHEMES = 8  # the last column of the picture is "this many or more"

# Tags of the Sejong corpus (세종 말뭉치) as Kiwi gives them, and Kiwi's own below.
TAGS = {
    "NNG": "일반 명사",
    "NNP": "고유 명사",
    "NNB": "의존 명사",
    "NR": "수사",
    "NP": "대명사",
    "VV": "동사",
    "VA": "형용사",
    "VX": "보조 용언",
    "VCP": "긍정 지정사",
    "VCN": "부정 지정사",
    "MM": "관형사",
    "MAG": "일반 부사",
    "MAJ": "접속 부사",
    "IC": "감탄사",
    "JKS": "주격 조사",
    "JKC": "보격 조사",
    "JKG": "관형격 조사",
    "JKO": "목적격 조사",
    "JKB": "부사격 조사",
    "JKV": "호격 조사",
    "JKQ": "인용격 조사",
    "JX": "보조사",
    "JC": "접속 조사",
    "EP": "선어말 어미",
    "EF": "종결 어미",
    "EC": "연결 어미",
    "ETN": "명사형 전성 어미",
    "ETM": "관형형 전성 어미",
    "XPN": "체언 접두사",
    "XSN": "명사 파생 접미사",
    "XSV": "동사 파생 접미사",
    "XSA": "형용사 파생 접미사",
    "XSM": "부사 파생 접미사",
    "XR": "어근",
    "SF": "종결 부호",
    "SP": "구분 부호",
    "SS": "따옴표·괄호",
    "SSO": "여는 괄호",
    "SSC": "닫는 괄호",
    "SE": "줄임표",
    "SO": "붙임표",
    "SW": "기호",
    "SL": "알파벳",
    "SH": "한자",
    "SN": "숫자",
    "SB": "순서 있는 글머리",
    "UN": "분석 불능",
    "W_URL": "URL",
    "W_EMAIL": "전자 우편",
    "W_HASHTAG": "해시태그",
    "W_MENTION": "멘션",
    "W_SERIAL": "일련 번호",
    "W_EMOJI": "이모지",
    "Z_CODA": "덧붙은 받침",
    "Z_SIOT": "사이시옷",
    "USER0": "사용자 정의",
}


@dataclass
class _Measured:
    """What one pass over some parts of the morphemes gathers."""

    morphemes: Lengths = field(default_factory=Lengths)
    sentences: Lengths = field(default_factory=Lengths)
    tags: Counter[str] = field(default_factory=Counter)
    eojeols: np.ndarray = field(default_factory=lambda: np.zeros(_EOJEOL_MORPHEMES + 1, dtype=np.int64))


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    documents, failed = _documents(artifact), _failed(artifact)
    lines = [Headline(formatting.compact(documents), "documents analysed")]
    if "morphemes" in artifact.record["counts"]:
        lines.append(Headline(formatting.compact(artifact.record["counts"]["morphemes"]), "morphemes"))
    seconds = _seconds(artifact)
    if seconds:
        lines.append(Headline(formatting.compact(documents / seconds), "documents a second"))
    lines.append(Headline(_number(failed), "failed"))
    return tuple(lines)


def story(artifact: Artifact) -> Story:
    parts = artifact.parts("morphemes/*.parquet")
    read = sampled(parts)
    measured, note = _measure(batches(read, ["source", "tag", "sentence", "eojeol"])), parts_note(len(read), len(parts))
    documents, failed = _documents(artifact), _failed(artifact)
    return Story(
        title=f"Kiwi analysed {formatting.count(documents)} documents and failed on {_number(failed)}",
        lede=_lede(artifact),
        sections=(
            Section(
                "Lengths",
                (
                    *measured.morphemes.elements("Morphemes in a document", unit="morphemes", note=note),
                    *measured.sentences.elements("Sentences in a document", unit="sentences", note=note),
                ),
            ),
            Section("Morphemes", tuple(_morpheme_elements(measured, note))),
            Section("Failures", tuple(_failures(artifact))),
        ),
    )


def _documents(artifact: Artifact) -> int:
    return num_rows(artifact.parts("morphemes/*.parquet"))


def _failed(artifact: Artifact) -> int:
    return num_rows(artifact.parts("failed/*.parquet"))


def _number(failed: int) -> str:
    return formatting.count(failed) if failed else "none"


def _seconds(artifact: Artifact) -> float | None:
    """The time of the whole stage; None where it is not known, as of a run that was resumed."""
    return None if artifact.run.get("resumed") else artifact.seconds


def _lede(artifact: Artifact) -> str:
    seconds = _seconds(artifact)
    if not seconds:
        return "How long all of it took is not on record: there is no run.json, or the run was resumed."
    workers = artifact.run.get("workers")
    with_ = f" with {workers} worker{'' if workers == 1 else 's'}" if workers else ""
    morphemes = artifact.record["counts"].get("morphemes")
    speed = f": {formatting.compact(morphemes / seconds)} morphemes a second, startup included" if morphemes else ""
    return f"It took {formatting.duration(seconds)}{with_}{speed}."


def _measure(found: Iterator[pa.RecordBatch]) -> _Measured:
    measured = _Measured()
    for batch in found:
        tags, sentences, eojeols = (batch.column(name) for name in ("tag", "sentence", "eojeol"))
        measured.morphemes.add(batch.column("source"), pc.list_value_length(tags))
        rows = pc.list_parent_indices(tags).to_numpy()
        measured.sentences.add(batch.column("source"), pa.array(_distinct(rows, _flat(sentences), batch.num_rows)))
        for entry in pc.value_counts(tags.flatten()).to_pylist():
            measured.tags[entry["values"]] += entry["counts"]
        sizes = np.minimum(_runs(rows, _flat(eojeols)), _EOJEOL_MORPHEMES)
        measured.eojeols += np.bincount(sizes, minlength=_EOJEOL_MORPHEMES + 1)
    return measured


def _flat(lists: pa.Array) -> np.ndarray:
    return np.asarray(lists.flatten().to_numpy())


def _starts(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Places in the flat lists where another document or another number begins."""
    return np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(numbers, prepend=-1))


def _distinct(rows: np.ndarray, numbers: np.ndarray, num_rows: int) -> np.ndarray:
    """How many different numbers each document's list has, numbers never going back: (num_rows,)."""
    return np.bincount(rows[_starts(rows, numbers)], minlength=num_rows)


def _runs(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """How often each number stands in its document, in order."""
    return np.diff(_starts(rows, numbers), append=len(rows))


def _morpheme_elements(measured: _Measured, note: str) -> Iterator[Element]:
    total = measured.tags.total()
    if not total:
        return
    top = sorted(measured.tags.items(), key=lambda pair: (-pair[1], pair[0]))[:_TOP_TAGS]
    bars = tuple(
        Bar(f"{tag} {_gloss(tag)}".rstrip(), (number / top[0][1],), formatting.percent(number / total), korean=True)
        for tag, number in top
    )
    yield Bars("The commonest tags", bars, note=f"{note}Share of {formatting.count(total)} morphemes.")
    yield columns(
        "Morphemes in an eojeol",
        [int(number) for number in measured.eojeols[1:]],
        x=f"morphemes ({_EOJEOL_MORPHEMES}: that many or more)",
        y="eojeols",
        first=1,
        note=note + _mean_note(total, int(measured.eojeols.sum())),
    )


def _mean_note(morphemes: int, eojeols: int) -> str:
    return f"{formatting.decimal(formatting.ratio(morphemes, eojeols))} on average."


def _gloss(tag: str) -> str:
    """The tag's name; irregular verbs and adjectives have -I or -R at the end (VV-I)."""
    stem, _, irregular = tag.partition("-")
    return TAGS.get(stem, "") + {"I": ", 불규칙", "R": ", 규칙"}.get(irregular, "")


def _failures(artifact: Artifact) -> Iterator[Element]:
    reasons: Counter[str] = Counter()
    chosen: dict[str, list[Entry]] = {}
    for batch in batches(artifact.parts("failed/*.parquet"), ["id", "source", "reason", "detail"]):
        for row in batch.to_pylist():
            reasons[row["reason"]] += 1
            if reasons[row["reason"]] <= _SAMPLES:
                facts = (("source", row["source"]), ("detail", row["detail"] or ""))
                chosen.setdefault(row["reason"], []).append(
                    Entry(row["id"], facts=tuple(fact for fact in facts if fact[1]))
                )
    table = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    if table:
        rows = tuple((label(reason), formatting.count(number)) for reason, number in table)
        yield Table("Documents Kiwi failed on", ("reason", "documents"), rows, "lr")
    for reason, _ in table:
        yield Folded(f"{label(reason)} · {len(chosen[reason])} shown", tuple(chosen[reason]))
