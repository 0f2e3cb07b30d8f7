"""A sentence as a question needs it: without brackets, in morphemes, with its predicates and clauses."""

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from korbert.corpus.questions.tables import PARTICLES, REGISTERS, SPLITTING, TAGS, WORDS
from korbert.tokenization import Analysis

_OF_A_FIRM = r"\((?:주|유|사|재)\)(?=\w)"  # (주)한국: the space before it stays
_BRACKETS = re.compile(rf"{_OF_A_FIRM}|\s*(?!{_OF_A_FIRM})(?:\([^()]*\)|（[^（）]*）|\[[^\[\]]*\])")
_PAIRS = (("“", "”"), ("‘", "’"), ("《", "》"), ("〈", "〉"), ("「", "」"), ("『", "』"), ("<", ">"), ("(", ")"))
_QUOTED = re.compile(r"《[^《》]*》|〈[^〈〉]*〉|『[^『』]*』|「[^「」]*」|“[^“”]*”|‘[^‘’]*’|\"[^\"]*\"|'[^']*'")


class Stripped(NamedTuple):
    """A sentence without its brackets. offsets[i]: position of its character i in the paragraph, -1 if it has none."""

    text: str
    offsets: list[int]


def strip_sentence(paragraph: str, start: int, end: int) -> Stripped | None:
    """The sentence at [start, end) of a paragraph; None if its brackets or quotation marks do not pair up."""
    brackets = _BRACKETS.finditer(paragraph[start:end])
    removed = {start + i for match in brackets for i in range(*match.span())}
    offsets = [i for i in range(start, end) if i not in removed]
    text = "".join(paragraph[i] for i in offsets)
    is_unpaired = (
        any(text.count(left) != text.count(right) for left, right in _PAIRS)
        or any(text.count(mark) % 2 for mark in "\"'")
        or any(mark in text for mark in "()（）[]{}")
    )
    return None if is_unpaired else Stripped(text, offsets)


class Morph(NamedTuple):
    """A morpheme with its span in the stripped sentence.

    tag: without Kiwi's -R and -I; QT for one inside quotation marks that is no noun. form: of a particle, that after a
    consonant.
    """

    form: str
    tag: str
    start: int
    end: int
    eojeol: int
    full_tag: str


_NOTHING = Morph("", "", sys.maxsize, sys.maxsize, sys.maxsize, "")


class Predicate(NamedTuple):
    """A verb, an adjective or 이다 with its endings: morphemes [root, stop), the last of which is `ending`.

    kind: EF, EC, ETM or ETN. key: stem, as tables have it (만들, 개봉하).
    """

    root: int
    stop: int
    kind: str
    ending: str
    key: str


class AnswerCandidate(NamedTuple):
    """An answer, and how to ask for it. Positions are characters of the stripped sentence.

    kind: the question word, for counting (언제, 몇). start, end: of the answer. first, last: what the question word
    stands for, particle included. word: the question word with all it takes (언제, 어느 학교). particle: after it, as
    tables have it. head: noun of the other form (…한 곳은 어디인가?), "" for none; asked: what that form asks.
    is_definition: the answer is the name that the sentence defines.
    """

    kind: str
    start: int
    end: int
    first: int
    last: int
    word: str
    predicate: Predicate
    particle: str = ""
    head: str = ""
    asked: str = ""
    is_definition: bool = False


@dataclass(frozen=True)
class Sentence:
    """morphs: of `text`, without its final punctuation. offsets: see Stripped."""

    text: str
    offsets: list[int]
    morphs: list[Morph]

    @classmethod
    def of(cls, source: Stripped, analysis: Analysis) -> "Sentence":
        quoted = {i for match in _QUOTED.finditer(source.text) for i in range(match.start() + 1, match.end() - 1)}
        fields = analysis.forms, analysis.tags, analysis.starts, analysis.ends, analysis.eojeols
        morphs = []
        for form, full_tag, start, end, eojeol in zip(*fields, strict=True):
            tag = full_tag.split("-")[0]
            if start in quoted and tag not in TAGS["nouns"]:
                tag = "QT"
            if tag in TAGS["particles"]:
                form = PARTICLES.get(form, form)
            morphs.append(Morph(form, tag, start, end, eojeol, full_tag))
        while morphs and morphs[-1].tag == "SF":
            morphs.pop()
        return cls(source.text, source.offsets, morphs)

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The span of [start, end) in the paragraph; None if it is not there or has a bracket inside."""
        first = self.offsets[start]
        last = self.offsets[end - 1] + 1
        return (first, last) if last - first == end - start and first >= 0 else None

    def with_prefix(self, prefix: str, start: int) -> Stripped:
        """The text from character `start`, after a prefix that is not in the paragraph."""
        return Stripped(prefix + self.text[start:], [-1] * len(prefix) + self.offsets[start:])

    @cached_property
    def predicates(self) -> list[Predicate]:
        """The predicates in order, without verbs in particles (에 의해).

        An auxiliary (고 있다) belongs to the predicate of the verb before it.
        """
        predicates = []
        stop = 0
        for i, morph in enumerate(self.morphs):
            predicate = self._predicate(i) if i >= stop and morph.tag in TAGS["verbs"] else None
            if predicate is not None:
                stop = predicate.stop
                if predicate.key not in WORDS["postpositions"] or predicate.kind == "EF":
                    predicates.append(predicate)
        return predicates

    def _predicate(self, verb: int) -> Predicate | None:
        """The predicate whose verb is that morpheme; None if no ending follows."""
        root = verb
        key = self.morphs[verb].form
        if self.morphs[verb].tag in ("XSV", "XSA"):
            root = max(verb - 1, 0)
            key = self.morphs[root].form + key
        i = verb + 1
        while self.morph(i).tag == "EP" or self._joins_auxiliary(i):
            i += 1 if self.morph(i).tag == "EP" else 2
        ending = self.morph(i)
        is_ending = ending.tag in ("EF", "EC", "ETM", "ETN")
        return Predicate(root, i + 1, ending.tag, ending.form, key) if is_ending else None

    def _joins_auxiliary(self, i: int) -> bool:
        """Whether morpheme i joins an auxiliary to its verb: 고 of 고 있다, 게 of 게 되다."""
        following = self.morph(i + 1)
        becomes = self.morph(i).form == "게" and following.form in ("되", "하")
        return self.morph(i).tag == "EC" and (following.tag == "VX" or becomes)

    @property
    def register(self) -> str | None:
        """The register of a statement (plain, formal, polite); None for anything else."""
        if not self.predicates:
            return None
        last = self.predicates[-1]
        return REGISTERS.get(last.ending) if last.stop == len(self.morphs) and last.kind == "EF" else None

    @property
    def opening(self) -> int | None:
        """The 은/는 of a topic of nouns with which the sentence begins."""
        for i, morph in enumerate(self.morphs):
            if morph.tag[0] in "JEV" or morph.tag in ("SP", "SF", "XSV", "XSA"):
                return i if self.is_topic(i) else None
        return None

    @property
    def has_subject(self) -> bool:
        """Whether it has a subject or a topic."""
        return any(m.tag == "JKS" or m.form == "도" or self.is_topic(i) for i, m in enumerate(self.morphs))

    def own(self, tag: str, begin: int, predicate: Predicate) -> list[int]:
        """Returns the particles with this tag, from morpheme `begin` on, that belong to this predicate."""
        particles = [i for i in range(begin, predicate.root) if self.morphs[i].tag == tag]
        return [i for i in particles if self.predicate_after(i) == predicate]

    def subject(self, begin: int, predicate: Predicate) -> int | None:
        """The particle of the subject of a clause from morpheme `begin`, or of its topic; None if it has neither."""
        subjects = self.own("JKS", begin, predicate)
        return next((i for i in range(begin, predicate.root) if self.is_topic(i) or i in subjects), None)

    def morph(self, i: int) -> Morph:
        """Morpheme i; before the first and after the last, one without form and tag."""
        return self.morphs[i] if 0 <= i < len(self.morphs) else _NOTHING

    def has(self, i: int, form: str, tag: str) -> bool:
        """Whether morpheme i has this form and tag."""
        return self.morph(i)[:2] == (form, tag)

    def at(self, char: int) -> int:
        """The first morpheme that begins at or after a character; the number of morphemes if none does."""
        return next((i for i, morph in enumerate(self.morphs) if morph.start >= char), len(self.morphs))

    def word_before(self, char: int) -> str:
        """The last word before a character; "" for none."""
        return (self.text[:char].split() or [""])[-1]

    def strip_quotes(self, first: int, stop: int) -> tuple[int, int]:
        """The characters of the phrase of morphemes [first, stop), without the quotation marks around it."""
        start = self.morphs[first].start
        end = self.morphs[stop - 1].end
        in_quotes = (self.morphs[first].tag, self.morphs[stop - 1].tag) == ("SSO", "SSC") and stop - first > 2
        return (start + 1, end - 1) if in_quotes else (start, end)

    def ends_eojeol(self, i: int) -> bool:
        """Whether a morpheme is the last one of its eojeol, a comma aside."""
        following = self.morph(i + 1)
        return following.eojeol > self.morph(i).eojeol or following.tag == "SP"

    def is_topic(self, i: int) -> bool:
        """Whether a morpheme is 은/는 directly after a noun."""
        return self.has(i, "은", "JX") and i > 0 and self.morphs[i - 1].tag[0] in "NSX" and self.ends_eojeol(i)

    def is_object(self, i: int) -> bool:
        """Whether a morpheme is the 을 of an object of a verb, not of 회고록을 기반으로."""
        is_based = self.has(i + 2, "으로", "JKB") and self.morphs[i + 1].form in WORDS["bases"]
        return self.morphs[i].tag == "JKO" and not is_based

    def is_date_before(self, i: int) -> bool:
        """Whether the eojeol before a morpheme is 1998년, 5월 or 3일."""
        return re.search(r"\d[년월일]$", self.word_before(self.morphs[i].start)) is not None

    def predicate_after(self, i: int) -> Predicate | None:
        """The first predicate at or after morpheme i."""
        return next((predicate for predicate in self.predicates if predicate.root >= i), None)

    def clause_predicate(self, i: int) -> Predicate | None:
        """The predicate that an argument before morpheme i belongs to, if a question may end with it."""
        predicate = self.predicate_after(i)
        return predicate if predicate is not None and self.may_end(predicate) else None

    def may_end(self, predicate: Predicate) -> bool:
        """Whether a question may end with this predicate: that of the sentence, or that of a clause like it."""
        if predicate.kind == "EF":
            return predicate.stop == len(self.morphs)
        if predicate.kind != "EC" or predicate.ending not in SPLITTING or predicate.stop == len(self.morphs):
            return False
        following = self.morphs[predicate.stop].tag
        match predicate.ending:
            case "나" | "으나":
                return self.morphs[predicate.root].tag != "VCP"  # not 저체온증이나 영양실조로
            case "어":  # 졸업하여, 입단했다: but not 전해져 내려왔다
                return following == "SP"
            case "고":
                is_past = self.morphs[predicate.stop - 2].tag == "EP"
                is_serial = following in ("VV", "VX") or predicate.key in WORDS["serial"]  # 데리고 나가
                return is_past or following == "SP" or not is_serial
        return True
