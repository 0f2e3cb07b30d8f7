"""Settings of analysis and vocabulary. Lengths are in code points unless stated."""

import re
import unicodedata
from collections import Counter
from operator import not_
from typing import Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

Mark = Literal["none", "eojeol", "morpheme"]

Typos = Literal[
    "none", "basic", "continual", "basic_with_continual", "lengthening", "basic_with_continual_and_lengthening"
]
Dialect = Literal[
    "gyeonggi", "chungcheong", "gangwon", "gyeongsang", "jeolla", "jeju", "hwanghae", "hamgyeong", "pyeongan", "archaic"
]

_SMALLEST = 128 + 256 + 1  # special and reserved entries, bytes, and at least one piece


_TAGS = re.compile(  # parts of speech that a user's word may have, as Kiwi names them
    "(NN[GPB]|NR|NP|V[VAX](-[RI])?|VC[PN]|MM|MAG|MAJ|IC|JK[SCGOBVQ]|JX|JC|E[PFC]|ET[NM]|XPN|XS[NVAM]|XR|S[FPSEOWLHN]"
    "|SSO|SSC|USER[0-4])"
)


class UserWord(BaseModel, frozen=True, extra="forbid"):
    """A word added to Kiwi's dictionary."""

    form: str = Field(description="a word to add to Kiwi's dictionary, of a verb the stem (먹, not 먹다)")
    tag: str = Field("NNP", description="part of speech")
    score: float = Field(
        0.0, allow_inf_nan=False, description="a higher score makes Kiwi prefer the word to other analyses"
    )

    @field_validator("form")
    @classmethod
    def _as_the_analyser_sees_it(cls, form: str) -> str:
        return unicodedata.normalize("NFC", form)

    @model_validator(mode="after")
    def _can_be_known(self) -> Self:
        _check_form(self.form)
        if not _TAGS.fullmatch(self.tag):
            raise ValueError(f"{self.tag!r} is no part of speech of Kiwi, such as NNP, NNG, VV or MAG")
        return self


def is_form(form: str) -> bool:
    """Whether a form can be a word: at least one character, and no space, control or ▁."""
    return bool(form) and "▁" not in form and form.isprintable() and not any(char.isspace() for char in form)


def _check_form(form: str) -> None:
    if not is_form(form):
        raise ValueError(f"{form!r} is no form: a word has at least one character and no space, control or ▁")


class AnalyzerOptions(BaseModel, frozen=True, extra="forbid"):
    """How Kiwi cuts text into morphemes. Every change gives other forms, so a vocabulary belongs to its options.

    Rare options are not recorded at their defaults (`exclude_if`), so that records without them keep their digests.
    """

    model_type: Literal["cong", "cong-global"] = Field(
        "cong", description="Kiwi's language model; cong-global takes 3 times as long"
    )
    load_default_dict: bool = Field(True, description="use the proper nouns of Kiwi's dictionary")
    load_multi_dict: bool = Field(
        False, description="analyse multi-word names as one morpheme, whose form then contains spaces"
    )
    integrate_allomorph: bool = Field(True, description="unify allomorphs: 았 and 었, 아 and 어")
    split_complex: bool = Field(False, description="split compound morphemes")
    z_coda: bool = Field(True, description="analyse a consonant added to an ending (갔엌) as a morpheme of its own")
    typos: Typos = Field(
        "none",
        description="typos that Kiwi corrects (외않되 is 왜 + 안 + 되); analysis takes longer",
        exclude_if="none".__eq__,
    )
    space_tolerance: int = Field(
        0, ge=0, description="surplus spaces allowed inside a morpheme (맛 있다 is 맛있 + 다)", exclude_if=not_
    )
    dialects: tuple[Dialect, ...] = Field(
        (), description="dialects for Kiwi to recognize; analysis takes longer and 4 GB of memory", exclude_if=not_
    )
    user_words: tuple[UserWord, ...] = Field(
        (), description="words added to Kiwi's dictionary, read from analyze.user_words", exclude_if=not_
    )


class VocabularySettings(BaseModel, frozen=True, extra="forbid"):
    """Which strings get an id. Ids 0 to 127 are special or reserved, 128 to 383 bytes, 384 and up pieces."""

    size: int = Field(
        102_400, ge=_SMALLEST, le=1 << 20, description="entries, including special tokens, bytes and words"
    )
    mark: Mark = Field(
        "none", description="▁ before the form of a morpheme: never, at the beginning of an eojeol, or always"
    )
    min_count: int = Field(1, ge=1, description="forms that occur less often are ignored in learning")
    character_coverage: float = Field(
        0.9995,
        ge=0.98,
        le=1,
        description="share of character occurrences covered by entries; rare characters fall back to bytes",
    )
    max_piece_chars: int = Field(16, ge=1, le=64, description="maximum characters of a piece, mark included")
    foreign_share: float = Field(
        0.15,
        ge=0,
        le=1,
        description="maximum share of entries with two or more characters and no Hangul (years, names)",
    )
    words: tuple[str, ...] = Field((), description="forms that are always one piece, regardless of their counts")

    @field_validator("words")
    @classmethod
    def _words_are_forms(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        words = tuple(unicodedata.normalize("NFC", word) for word in words)
        for word in words:
            _check_form(word)
        if repeated := sorted(word for word, times in Counter(words).items() if times > 1):
            raise ValueError(f"{repeated[0]!r} stands there twice: once is enough")
        return words

    @model_validator(mode="after")
    def _words_fit(self) -> Self:
        entries = len(self.words) * (2 if self.mark == "eojeol" else 1)  # with and without the mark
        if self.size - entries < _SMALLEST:
            raise ValueError(f"words take {entries} of {self.size} entries and leave none to learn: raise size")
        return self
