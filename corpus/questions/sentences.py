"""A sentence as a question needs it: without brackets, in morphemes, with its predicates and clauses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from corpus.questions.nouns import BASES, words
from corpus.questions.verbs import DECLARATIVE, PARTICLES, POSTPOSITIONS, SERIAL, SPLITTING
from korbert.tokenization.morphemes import Analysis

__all__ = ["NOUNS", "Morph", "Predicate", "Sentence", "Stripped", "sentence_spans", "stripped"]

_SENTENCE = re.compile(r"\S.*?(?:(?<=[가-힣])[.?!]+(?=\s|$)|$)", re.MULTILINE)
_OF_A_FIRM = r"\((?:주|유|사|재)\)(?=\w)"  # (주)한국: the space before it stays
_BRACKETS = re.compile(rf"{_OF_A_FIRM}|\s*(?!{_OF_A_FIRM})(?:\([^()]*\)|（[^（）]*）|\[[^\[\]]*\])")
_PAIRS = (("“", "”"), ("‘", "’"), ("《", "》"), ("〈", "〉"), ("「", "」"), ("『", "』"), ("<", ">"), ("(", ")"))
_QUOTED = re.compile(r"《[^《》]*》|〈[^〈〉]*〉|『[^『』]*』|「[^「」]*」|“[^“”]*”|‘[^‘’]*’|\"[^\"]*\"|'[^']*'")
NOUNS = words("NNG NNP SL SN SH XSN XPN NR SW SSO SSC SO QT")  # of a noun phrase
_VERBS = words("VV VA XSV XSA VCP VCN")


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Half-open spans. A sentence ends with its line, and with . ? or ! between Hangul and a space."""
    for match in _SENTENCE.finditer(text):
        yield match.start(), match.start() + len(match[0].rstrip())


class Stripped(NamedTuple):
    """A sentence without its brackets; places[i] is where its character i stands in the context."""

    text: str
    places: list[int]

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The span in the context of [start, end) here; None where a bracket was taken out of it."""
        first, last = self.places[start], self.places[end - 1] + 1
        return (first, last) if last - first == end - start and first >= 0 else None


def stripped(context: str, start: int, end: int) -> Stripped | None:
    """The sentence at [start, end) of a context; None where its brackets or quotation marks do not pair up."""
    sentence = context[start:end]
    kept: list[int] = []
    at = 0
    for match in _BRACKETS.finditer(sentence):
        kept += range(at, match.start())
        at = match.end()
    kept += range(at, len(sentence))
    text = "".join(sentence[place] for place in kept)
    if any(text.count(left) != text.count(right) for left, right in _PAIRS):
        return None
    if any(text.count(mark) % 2 for mark in "\"'") or any(mark in text for mark in "()（）[]{}"):
        return None
    return Stripped(text, [start + place for place in kept])


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


class Predicate(NamedTuple):
    """A verb, an adjective or 이다 with its endings: morphemes [root, stop), the last of which is `ending`.

    kind: EF, EC, ETM or ETN. key: stem, as tables have it (만들, 개봉하).
    """

    root: int
    stop: int
    kind: str
    ending: str
    key: str


@dataclass(frozen=True)
class Sentence:
    """morphs: of `text`, without its final punctuation. is_completed: `text` begins with words of another sentence."""

    text: str
    morphs: Sequence[Morph]
    is_completed: bool = False

    @classmethod
    def of(cls, text: str, analysis: Analysis, *, is_completed: bool = False) -> "Sentence":
        fields = analysis.forms, analysis.tags, analysis.starts, analysis.ends, analysis.eojeols
        morphs = []
        quoted = {place for match in _QUOTED.finditer(text) for place in range(match.start() + 1, match.end() - 1)}
        for form, full_tag, start, end, eojeol in zip(*fields, strict=True):
            tag = full_tag.split("-")[0]
            tag = "QT" if start in quoted and tag not in NOUNS else tag
            form = PARTICLES.get(form, form) if tag in ("JKS", "JKO", "JKB", "JX", "JKC", "JC", "JKQ") else form
            morphs.append(Morph(form, tag, start, end, eojeol, full_tag))
        while morphs and morphs[-1].tag == "SF":
            morphs.pop()
        return cls(text, morphs, is_completed)

    @cached_property
    def predicates(self) -> list[Predicate]:
        """In order. A verb in a particle (에 의해) is none; an auxiliary (고 있다) belongs to the verb before it."""
        found = []
        at = 0
        while at < len(self.morphs):
            if self.morphs[at].tag in _VERBS and (one := self._predicate(at)) is not None:
                at = one.stop
                if one.key not in POSTPOSITIONS or one.kind == "EF":
                    found.append(one)
            else:
                at += 1
        return found

    def _predicate(self, verb: int) -> Predicate | None:
        """The predicate whose verb is that morpheme; None where no ending follows."""
        morphs = self.morphs
        root = verb
        key = morphs[verb].form
        if morphs[verb].tag in ("XSV", "XSA"):
            root = max(verb - 1, 0)
            key = morphs[root].form + key
        at = verb + 1
        while at < len(morphs):
            tag = morphs[at].tag
            following = morphs[at + 1] if at + 1 < len(morphs) else None
            becomes = morphs[at].form == "게" and following is not None and following.form in ("되", "하")
            if tag == "EC" and following is not None and (following.tag == "VX" or becomes):
                at += 2
            elif tag in ("EF", "EC", "ETM", "ETN"):
                return Predicate(root, at + 1, tag, morphs[at].form, key)
            elif tag == "EP":
                at += 1
            else:
                return None
        return None

    @property
    def register(self) -> str | None:
        """The register of a statement (plain, formal, polite); None for anything else."""
        last = self.predicates[-1] if self.predicates else None
        if last is None or last.stop != len(self.morphs) or last.kind != "EF":
            return None
        return DECLARATIVE.get(last.ending)

    def is_topic(self, place: int) -> bool:
        """Whether a morpheme is 은/는 directly behind a noun."""
        one = self.morphs[place]
        behind_noun = place > 0 and self.morphs[place - 1].tag[0] in "NSX"
        return one.tag == "JX" and one.form == "은" and behind_noun and self.ends_eojeol(place)

    def at(self, char: int) -> int:
        """The first morpheme that begins at or behind a character; the number of morphemes where none does."""
        return next((i for i, one in enumerate(self.morphs) if one.start >= char), len(self.morphs))

    def ends_eojeol(self, place: int) -> bool:
        """Whether a morpheme is the last one of its eojeol, but for a comma."""
        following = self.morphs[place + 1] if place + 1 < len(self.morphs) else None
        return following is None or following.eojeol > self.morphs[place].eojeol or following.tag == "SP"

    def is_object(self, place: int) -> bool:
        """Whether a morpheme is the 을 of an object of a verb, not of 회고록을 기반으로."""
        base = self.morphs[place + 1 : place + 3]
        based = len(base) == 2 and base[0].form in BASES and (base[1].form, base[1].tag) == ("으로", "JKB")
        return self.morphs[place].tag == "JKO" and not based

    def is_date_before(self, place: int) -> bool:
        """Whether the eojeol before a morpheme is 1998년, 5월 or 3일."""
        words = self.text[: self.morphs[place].start].split()
        return bool(words) and re.search(r"\d[년월일]$", words[-1]) is not None

    def clause_predicate(self, place: int) -> Predicate | None:
        """The predicate that an argument before morpheme `place` belongs to, if a question may end with it."""
        predicate = self.predicate_after(place)
        return predicate if predicate is not None and self.may_end(predicate) else None

    def predicate_after(self, place: int) -> Predicate | None:
        """The first predicate at or behind morpheme `place`."""
        return next((one for one in self.predicates if one.root >= place), None)

    def may_end(self, predicate: Predicate) -> bool:
        """Whether a question may end with this predicate: that of the sentence, or that of a clause like it."""
        if predicate.kind == "EF":
            return predicate.stop == len(self.morphs)
        if predicate.kind != "EC" or predicate.ending not in SPLITTING or predicate.stop == len(self.morphs):
            return False
        following = self.morphs[predicate.stop].tag
        if predicate.ending in ("나", "으나") and self.morphs[predicate.root].tag == "VCP":  # 저체온증이나 영양실조로
            return False
        if predicate.ending == "어":  # 졸업하여, 입단했다: but not 전해져 내려왔다
            return following == "SP"
        if predicate.ending == "고" and self.morphs[predicate.stop - 2].tag != "EP":  # 데리고 나가
            return following == "SP" or (following not in ("VV", "VX") and predicate.key not in SERIAL)
        return True
