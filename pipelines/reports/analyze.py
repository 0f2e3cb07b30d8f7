"""The page of `analyze`: speed and failures of Kiwi, document lengths, tag frequencies."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.distributions import Lengths, most_frequent, ranked_bars
from pipelines.reports.elements import Element, Entry, Folded, Section, Story, Table
from pipelines.reports.figures import Figure, label
from pipelines.reports.pictures import columns
from pipelines.reports.record import Artifact, batches, num_rows, parts_note, sampled

__all__ = ["figures", "story"]

_TOP_TAGS = 15
_SAMPLES = 20  # failed documents shown for each reason
_EOJEOL_MORPHEMES = 8  # last column of the chart: this many or more

# Tags of the Sejong corpus (세종 말뭉치) as used by Kiwi, then those of Kiwi itself.
_TAGS = {
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
    """Lengths by source, tag frequencies, and eojeols by their number of morphemes (capped)."""

    morphemes: Lengths = field(default_factory=Lengths)
    sentences: Lengths = field(default_factory=Lengths)
    tags: Counter[str] = field(default_factory=Counter)
    eojeols: np.ndarray = field(default_factory=lambda: np.zeros(_EOJEOL_MORPHEMES + 1, dtype=np.int64))


def figures(artifact: Artifact) -> Sequence[Figure]:
    documents, failed = _documents(artifact)
    shown = [Figure(formatting.compact(documents), "documents analysed")]
    if "morphemes" in artifact.record["counts"]:
        shown.append(Figure(formatting.compact(artifact.record["counts"]["morphemes"]), "morphemes"))
    if seconds := _seconds(artifact):
        shown.append(Figure(formatting.compact(documents / seconds), "documents/s"))
    return *shown, Figure(formatting.count(failed) if failed else "none", "failed")


def _documents(artifact: Artifact) -> tuple[int, int]:
    """Numbers of documents analysed and failed."""
    return num_rows(artifact.parts("morphemes/*.parquet")), num_rows(artifact.parts("failed/*.parquet"))


def _seconds(artifact: Artifact) -> float | None:
    """Duration of the whole stage; None if unknown, as after a resumed run."""
    return None if artifact.run.get("resumed") else artifact.seconds


def story(artifact: Artifact) -> Story:
    parts = artifact.parts("morphemes/*.parquet")
    read = sampled(parts)
    measured = _measure(batches(read, ["source", "tag", "sentence", "eojeol"]))
    note = parts_note(len(read), len(parts))
    documents, failed = _documents(artifact)
    lengths = (
        *measured.morphemes.elements("Morphemes per document", unit="morphemes", note=note),
        *measured.sentences.elements("Sentences per document", unit="sentences", note=note),
    )
    return Story(
        f"{formatting.count(documents)} documents analysed, {formatting.count(failed) if failed else 'none'} failed",
        _speed(artifact),
        (
            Section("Lengths", lengths),
            Section("Morphemes", list(_morphemes(measured, note))),
            Section("Failures", list(_failures(artifact))),
        ),
    )


def _speed(artifact: Artifact) -> str:
    seconds = _seconds(artifact)
    if not seconds:
        return "Total duration unknown: run.json is missing, or the run was resumed."
    workers = artifact.run.get("workers")
    with_workers = f" with {workers} worker{'' if workers == 1 else 's'}" if workers else ""
    morphemes = artifact.record["counts"].get("morphemes")
    speed = f": {formatting.compact(morphemes / seconds)} morphemes/s, startup included" if morphemes else ""
    return f"Kiwi took {formatting.duration(seconds)}{with_workers}{speed}."


def _measure(morpheme_batches: Iterator[pa.RecordBatch]) -> _Measured:
    measured = _Measured()
    for batch in morpheme_batches:
        tags = batch.column("tag")
        measured.morphemes.add(batch.column("source"), pc.list_value_length(tags))
        for entry in pc.value_counts(tags.flatten()).to_pylist():
            measured.tags[entry["values"]] += entry["counts"]

        # A sentence or eojeol starts where its number or the document changes. All three: (morphemes of the batch,).
        document = pc.list_parent_indices(tags).to_numpy()
        sentence, eojeol = (np.asarray(batch.column(name).flatten().to_numpy()) for name in ("sentence", "eojeol"))
        next_document = np.diff(document, prepend=-1)
        sentence_starts = np.flatnonzero(next_document | np.diff(sentence, prepend=-1))
        eojeol_starts = np.flatnonzero(next_document | np.diff(eojeol, prepend=-1))

        sentences = np.bincount(document[sentence_starts], minlength=batch.num_rows)
        measured.sentences.add(batch.column("source"), pa.array(sentences))
        sizes = np.minimum(np.diff(eojeol_starts, append=len(document)), _EOJEOL_MORPHEMES)
        measured.eojeols += np.bincount(sizes, minlength=_EOJEOL_MORPHEMES + 1)
    return measured


def _morphemes(measured: _Measured, note: str) -> Iterator[Element]:
    total = measured.tags.total()
    if not total:
        return
    top = list(most_frequent(measured.tags).items())[:_TOP_TAGS]
    yield ranked_bars(
        "Most frequent tags",
        ((f"{tag} {_gloss(tag)}".rstrip(), number) for tag, number in top),
        lambda number: formatting.percent(number / total),
        note=f"{note}Share of {formatting.count(total)} morphemes.",
        korean=True,
    )
    mean = formatting.ratio(total, int(measured.eojeols.sum()))
    yield columns(
        "Morphemes per eojeol",
        measured.eojeols[1:].tolist(),
        x=f"morphemes ({_EOJEOL_MORPHEMES}: {_EOJEOL_MORPHEMES} or more)",
        y="eojeols",
        first=1,
        note=f"{note}Mean: {formatting.decimal(mean)}.",
    )


def _gloss(tag: str) -> str:
    """The Korean name of a tag. The suffixes -I and -R mark irregular and regular verbs and adjectives (VV-I)."""
    stem, _, irregular = tag.partition("-")
    return _TAGS.get(stem, "") + {"I": ", 불규칙", "R": ", 규칙"}.get(irregular, "")


def _failures(artifact: Artifact) -> Iterator[Element]:
    totals: Counter[str] = Counter()
    samples: dict[str, list[Entry]] = {}
    for batch in batches(artifact.parts("failed/*.parquet"), ["id", "source", "reason", "detail"]):
        for row in batch.to_pylist():
            totals[row["reason"]] += 1
            if totals[row["reason"]] <= _SAMPLES:
                facts = [(name, row[name]) for name in ("source", "detail") if row[name]]
                samples.setdefault(row["reason"], []).append(Entry(row["id"], facts=facts))
    reasons = most_frequent(totals)
    if reasons:
        rows = [(label(reason), formatting.count(number)) for reason, number in reasons.items()]
        yield Table("Failed documents", ("reason", "documents"), rows, "lr")
    for reason in reasons:
        yield Folded(f"{label(reason)} · {len(samples[reason])} shown", samples[reason])
