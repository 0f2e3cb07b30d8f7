"""Roles: the fields that a task needs in a row, their usual column names, and how cells are parsed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from korbert.tasks.files import cells

__all__ = ["ROLES", "Role"]


@dataclass(frozen=True)
class Role:
    """A field that a task needs in a row.

    names: usual column names; case is ignored, and spaces and hyphens equal underscores.
    value: parses a non-empty cell, or raises ValueError with the fault ("is a list, not a text").
    required: a file without its column is refused, and a row whose cell is empty is dropped.
    may_be_empty: an empty cell of a required role is None, and its row is kept.
    unique: no two rows have the same value.
    series: prefixes of numbered columns that hold it together: "choice" for choice1, choice_2; then
    `value` receives the list of their cells.
    settle: converts the values of all rows of a file (None: without one), where they are understood together.
    """

    name: str
    names: tuple[str, ...]
    value: Callable[[Any], Any] = cells.text
    required: bool = True
    may_be_empty: bool = False
    unique: bool = False
    series: tuple[str, ...] = ()
    settle: Callable[[Sequence[Any]], Sequence[Any]] | None = None


_TEXT = "text document sentence review comment comments content utterance sentence1 premise question1 text1 text_a"
_TEXT_KOREAN = "문장 텍스트 본문 내용 리뷰 댓글 발화 문서 문장1"
_LABEL = "label labels gold_label class category sentiment emotion intent topic is_duplicate"
_LABEL_KOREAN = "라벨 레이블 분류 감정 감성 정답 주제 의도 범주 카테고리"

ROLES: Mapping[str, Role] = {
    role.name: role
    for role in (
        Role("text", tuple(f"{_TEXT} {_TEXT_KOREAN}".split())),
        Role("pair", ("sentence2", "hypothesis", "question2", "text2", "text_b", "pair", "문장2", "가설")),
        Role("label", tuple(f"{_LABEL} {_LABEL_KOREAN}".split()), cells.label),
        Role("labels", ("labels", "label", "classes", "categories", "emotions", "라벨", "감정들"), cells.labels),
        Role("score", ("score", "similarity", "rating", "점수", "유사도", "평점"), cells.score),
        Role("id", ("id", "guid", "sent_id", "idx", "uid", "번호"), cells.label, required=False, unique=True),
        Role("question", ("question", "query", "질문", "질의"), cells.text),
        Role("context", ("context", "passage", "paragraph", "지문", "문맥"), cells.text),
        Role("answers", ("answers", "answer", "정답", "답"), cells.answers, may_be_empty=True),
        Role("impossible", ("is_impossible",), cells.truth, required=False),
        Role(
            "choices",
            ("choices", "options", "endings", "선택지", "보기"),
            cells.choices,
            series=("choice", "option", "alternative", "ending", "선택지", "보기", ""),
        ),
        Role("slots", ("slots", "state", "슬롯"), cells.slots),
        Role("tokens", ("tokens", "words", "characters", "토큰", "어절"), cells.words),
        Role(
            "tags",
            ("tags", "ner_tags", "pos_tags", "upos", "labels", "태그", "개체명"),
            cells.tags,
            settle=cells.bio_tags,
        ),
        Role("spans", ("spans", "entities", "ne", "개체"), cells.spans),
    )
}
"""The roles of our kinds; `dataclasses.replace(ROLES["label"], required=False)` makes a variant."""
