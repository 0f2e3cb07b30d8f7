"""Roles: the fields that a task needs in a row, their usual column names, and how cells are parsed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from korbert.messages import Message
from korbert.system import JsonObject
from korbert.tasks.files import cells


@dataclass(frozen=True)
class Role:
    """A field that a task needs in a row.

    names: usual column names, in NFC; case is ignored, and spaces and hyphens equal underscores.
    value: parses a non-empty cell, or raises ValueError with the fault ("is a list, not a text").
    required: a file without its column is refused, and a row whose cell is empty is dropped.
    empty: returns the value of an empty cell of a required role, whose row is then kept; None: the row is dropped.
    unique: no two rows have the same value.
    series: prefixes of numbered columns that hold the role together: "choice" for choice1, choice_2; then
    `value` receives the list of their cells.
    alike: names of other columns, which hold the role if their cells are values of it, such as spans in `label`.
    flags: several columns of 0 and 1 may hold the role, each named after its label.
    complete: changes a row whose roles are all parsed; returns a remark for people, which is counted. ValueError drops
    the row.
    settle: converts the values of all rows of a file together (None for a row without a value). ValueError refuses the
    file.
    """

    name: str
    names: tuple[str, ...]
    value: Callable[[Any], Any] = cells.text
    required: bool = True
    empty: Callable[[], Any] | None = None
    unique: bool = False
    series: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    flags: bool = False
    complete: Callable[[JsonObject], Message | None] | None = None
    settle: Callable[[Sequence[Any]], Sequence[Any]] | None = None


def rename_labels(role: Role, names: Mapping[str, str], *, strict: bool = False) -> Role:
    """Returns the role with its labels renamed. names: label in the file -> its name, by which it is known elsewhere.

    strict: refuse labels without a name, and ignore case; by default labels without a name stay. If one label's name is
    another label (1 is called 0, and 2 is called 1), labels are renamed only in files whose labels all have names,
    unless strict.
    """

    def rename(label: str) -> str:
        if not strict:
            return names.get(label, label)
        if label.lower() not in names:
            raise ValueError(Message("is {label!r}, none of {known}", label=label, known=", ".join(names)))
        return names[label.lower()]

    def value(cell: object) -> str | list[str]:
        labels = role.value(cell)
        return list(map(rename, labels)) if isinstance(labels, list) else rename(labels)

    def settle(labels: Sequence[str | None]) -> Sequence[str | None]:
        are_of_files = {label for label in labels if label is not None} <= names.keys()
        return [label and names[label] for label in labels] if are_of_files else labels

    if not strict and names.keys() & set(names.values()) and role.settle is None:
        return replace(role, settle=settle)
    return replace(role, value=value) if names else role


def _place_spans(row: JsonObject) -> Message | None:
    text = row.get("text")
    spans = row.get("spans")
    if text is None or spans is None:
        return None
    row["spans"] = cells.place_spans(text, spans)
    counted = max((span.end for span in spans if isinstance(span, cells.LabelledSpan)), default=0)
    if not any(char > "\uffff" for char in text[:counted]):
        return None
    return Message(
        "have spans after characters above U+FFFF (emoji), without their text: offsets are read as characters, but"
        " tools that count UTF-16 units, as browsers do, mean positions further left"
    )


def _place_answers(row: JsonObject) -> None:
    starts = row.pop("starts", None)
    answers = row.get("answers")
    if starts is None or not answers or row.get("impossible"):
        return
    if len(starts) != len(answers):
        raise ValueError(Message("{starts} starts for {answers} answers", starts=len(starts), answers=len(answers)))
    row["answers"] = [
        answer if answer.start is not None or start < 0 else cells.GoldAnswer(answer.text, start)
        for answer, start in zip(answers, starts, strict=True)
    ]


def _role(name: str, names: str, value: Callable[[Any], Any] = cells.text, **more: Any) -> Role:
    return Role(name, tuple(names.split()), value, **more)


_TEXT = (
    "text document sentence review comment comments content utterance sentence1 premise question1 text1 text_a"
    " 문장 텍스트 본문 내용 리뷰 댓글 발화 문서 문장1"
)
_LABEL = (
    "label labels cats gold_label class category sentiment emotion intent topic is_duplicate"
    " 라벨 레이블 분류 감정 감성 정답 주제 의도 범주 카테고리"
)
_CHOICES = ("choice", "option", "alternative", "ending", "선택지", "보기", "")
_LISTS = ("label", "labels", "annotations", "라벨", "레이블")

ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        _role("text", _TEXT),
        _role("pair", "sentence2 hypothesis question2 text2 text_b pair 문장2 가설"),
        _role("negatives", "negatives negative hard_negatives hard_negative", cells.texts, required=False,
              series=("negative",)),
        _role("label", _LABEL, cells.label),
        _role("labels", "labels label classes categories emotions cats 라벨 감정들", cells.labels, empty=list,
              flags=True, settle=cells.labels_of_lists),
        _role("score", "score similarity rating stars 점수 유사도 평점 별점", cells.score),
        _role("vector", "vector embedding", cells.vector, required=False),
        _role("id", "id _id guid sent_id idx uid 번호", cells.name, required=False, unique=True),
        _role("question", "question query 질문 질의"),
        _role("context", "context passage paragraph 지문 문맥"),
        _role("title", "title article 제목"),
        _role("answers", "answers answer 정답 답", cells.answers, empty=lambda: None),
        _role("starts", "answer_start answer_starts 정답_시작", cells.starts, required=False, complete=_place_answers),
        _role("impossible", "is_impossible", cells.truth, required=False),
        _role("choices", "choices options endings 선택지 보기", cells.choices, series=_CHOICES),
        _role("slots", "slots 슬롯", partial(cells.parse_named, cells.slot)),
        _role("descriptions", "descriptions 슬롯_설명", partial(cells.parse_named, cells.text), required=False),
        _role("tokens", "tokens words word characters 토큰 어절", cells.words, settle=cells.sentences),
        _role("tags", "tags tag ner_tags pos_tags upos labels 태그 개체명", cells.tags, settle=cells.bio_tags),
        _role("spans", "spans entities ne 개체", cells.spans, alike=_LISTS, complete=_place_spans),
        # Never guessed by name. Held-out rows have other groups than training rows, or are later.
        _role("group", "", cells.name),
        _role("time", "", cells.moment),
    )
}  # fmt: skip
"""The roles of our kinds; `dataclasses.replace(ROLES["label"], required=False)` makes a variant."""
