"""Settings of analysis and vocabulary, and files of user words. Lengths are in code points unless stated."""

import re
import unicodedata
from collections import Counter
from operator import not_
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator, model_validator

from korbert.errors import CorpusError
from korbert.messages import Message, reason
from korbert.system import read_small

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
_WORD_FORMAT = Message("a line is form, tab, tag, tab, score; without tag and score it is NNP and 0")


def is_form(form: str) -> bool:
    """Whether a form can be a word: at least one character, and no space, control or ▁."""
    return bool(form) and "▁" not in form and form.isprintable() and not any(char.isspace() for char in form)


def _form(form: str) -> str:
    """The form in NFC, as Kiwi gets texts. ValueError if it cannot be a word."""
    form = unicodedata.normalize("NFC", form)
    if not is_form(form):
        raise ValueError(
            Message(
                "{form!r} cannot be a word: a word has at least one character and no space, control or ▁", form=form
            )
        )
    return form


class UserWord(BaseModel, frozen=True, extra="forbid"):
    """A word added to Kiwi's dictionary."""

    form: Annotated[str, AfterValidator(_form)] = Field(
        description="a word to add to Kiwi's dictionary, of a verb the stem (먹, not 먹다)"
    )
    tag: str = Field("NNP", description="part of speech")
    score: float = Field(0.0, allow_inf_nan=False, description="a higher one makes Kiwi prefer the word to others")

    @field_validator("tag")
    @classmethod
    def _tag_of_kiwi(cls, tag: str) -> str:
        if not _TAGS.fullmatch(tag):
            raise ValueError(Message("{tag!r} is not a part of speech of Kiwi, such as NNP, NNG, VV or MAG", tag=tag))
        return tag


def read_user_words(path: Path) -> tuple[UserWord, ...]:
    """The words of a UTF-8 file, in its order. A line is form, tab, part of speech (default NNP), tab, score (default
    0). Blank lines and lines that begin with # are skipped.

    Raises CorpusError, naming file and line, for bytes that are not UTF-8, a line of more than three fields or with
    commas instead of tabs, a form with spaces, an unknown part of speech, a score that is not a number, and a repeated
    form and tag.
    """
    try:
        data = read_small(path, 1 << 26)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise CorpusError(
            "{path}: cannot be read ({strerror}): give a file of words", path=path, strerror=error.strerror
        ) from error
    except UnicodeDecodeError as error:
        raise CorpusError(
            "{path}, line {line}: byte 0x{byte:02x} is not UTF-8: convert the file to UTF-8",
            path=path,
            line=1 + data.count(10, 0, error.start),
            byte=data[error.start],
        ) from error
    lines: dict[tuple[str, str], int] = {}
    words: list[UserWord] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        word = _word(line, Message("{path}, line {number}", path=path, number=number))
        first_line = lines.setdefault((word.form, word.tag), number)
        if first_line != number:
            raise CorpusError(
                "{path}, line {number}: {form}/{tag} stands in line {first} already: take one",
                path=path,
                number=number,
                form=word.form,
                tag=word.tag,
                first=first_line,
            )
        words.append(word)
    if not words:
        raise CorpusError("{path}: has no words: {word_format}", path=path, word_format=_WORD_FORMAT)
    return tuple(words)


def _word(line: str, where: str) -> UserWord:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) == 1 and "," in line:  # one word to Kiwi, which no text has
        raise CorpusError(
            "{where}: commas in {line!r}, where tabs separate the fields: {word_format}",
            where=where,
            line=line.strip(),
            word_format=_WORD_FORMAT,
        )
    if len(fields) > len(UserWord.model_fields):
        raise CorpusError(
            "{where}: {num_fields} fields between tabs in {line!r}: {word_format}",
            where=where,
            num_fields=len(fields),
            line=line,
            word_format=_WORD_FORMAT,
        )
    try:
        return UserWord.model_validate(dict(zip(UserWord.model_fields, fields, strict=False)))
    except ValidationError as error:
        fault = error.errors()[0]
        problem: str = Message(
            "{field}: {said}, not {value!r}", field=fault["loc"][0], said=fault["msg"], value=fault["input"]
        )
        if fault["type"] == "value_error":  # ours: pydantic's own errors name neither field nor value
            problem = reason(fault["ctx"]["error"])
        raise CorpusError(
            "{where}: {what}: {word_format}", where=where, what=problem, word_format=_WORD_FORMAT
        ) from error


class AnalyzerOptions(BaseModel, frozen=True, extra="forbid"):
    """How Kiwi cuts text into morphemes. Every change gives other forms, so a vocabulary belongs to its options.

    Rare options are not recorded at their defaults (`exclude_if`), so that records without them keep their digests.
    """

    model_type: Literal["cong", "cong-global"] = Field(
        "cong", description="Kiwi's language model; cong-global takes 3 times as long"
    )
    load_default_dict: bool = Field(True, description="use the proper nouns of Kiwi's dictionary")
    load_multi_dict: bool = Field(False, description="analyse multi-word names as one morpheme, with spaces in it")
    integrate_allomorph: bool = Field(True, description="unify allomorphs: 았 and 었, 아 and 어")
    split_complex: bool = Field(False, description="split compound morphemes")
    z_coda: bool = Field(True, description="analyse a consonant added to an ending (갔엌) as a morpheme of its own")
    typos: Typos = Field(
        "none", description="typos that Kiwi corrects (외않되: 왜 + 안 + 되), in more time", exclude_if="none".__eq__
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

    size: int = Field(102_400, ge=_SMALLEST, le=1 << 20, description="entries, with special tokens, bytes and words")
    mark: Mark = Field("none", description="▁ before a morpheme's form: never, where an eojeol begins, or always")
    min_count: int = Field(1, ge=1, description="forms that occur less often are ignored in learning")
    character_coverage: float = Field(
        0.9995, ge=0.98, le=1, description="share of character occurrences with an entry; the rest become bytes"
    )
    max_piece_chars: int = Field(16, ge=1, le=64, description="maximum characters of a piece, mark included")
    foreign_share: float = Field(
        0.15, ge=0, le=1, description="maximum share of entries of 2 or more characters without Hangul (years, names)"
    )
    words: tuple[str, ...] = Field((), description="forms that are always one piece, regardless of their counts")

    @field_validator("words")
    @classmethod
    def _words_differ(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        words = tuple(map(_form, words))
        if repeated := sorted(word for word, times in Counter(words).items() if times > 1):
            raise ValueError(Message("{word!r} is there twice: once is enough", word=repeated[0]))
        return words

    @model_validator(mode="after")
    def _words_fit(self) -> Self:
        entries = len(self.words) * (2 if self.mark == "eojeol" else 1)  # with and without the mark
        if self.size - entries < _SMALLEST:
            raise ValueError(
                Message(
                    "words take {entries} of {size} entries and leave none to learn: raise size",
                    entries=entries,
                    size=self.size,
                )
            )
        return self
