"""A sentence as a question needs it: without brackets, in morphemes, with its predicates and clauses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from korbert.corpus.questions.tables import BASES, DECLARATIVE, PARTICLES, POSTPOSITIONS, SERIAL, SPLITTING, words
from korbert.tokenization.morphemes import Analysis

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
    """A sentence without its brackets; offsets[i] is where its character i stands in the context."""

    text: str
    offsets: list[int]

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The span in the context of [start, end) here; None where a bracket was taken out of it."""
        first, last = self.offsets[start], self.offsets[end - 1] + 1
        return (first, last) if last - first == end - start and first >= 0 else None

    def prefixed(self, prefix: str, start: int) -> "Stripped":
        """The text from character `start` behind a prefix that stands nowhere in the context."""
        return Stripped(prefix + self.text[start:], [-1] * len(prefix) + self.offsets[start:])


def stripped(context: str, start: int, end: int) -> Stripped | None:
    """The sentence at [start, end) of a context; None where its brackets or quotation marks do not pair up."""
    offsets: list[int] = []
    done = start
    for match in _BRACKETS.finditer(context[start:end]):
        offsets += range(done, start + match.start())
        done = start + match.end()
    offsets += range(done, end)
    text = "".join(context[i] for i in offsets)
    if any(text.count(left) != text.count(right) for left, right in _PAIRS):
        return None
    if any(text.count(mark) % 2 for mark in "\"'") or any(mark in text for mark in "()（）[]{}"):
        return None
    return Stripped(text, offsets)


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
        quoted = {i for match in _QUOTED.finditer(text) for i in range(match.start() + 1, match.end() - 1)}
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
        predicates = []
        i = 0
        while i < len(self.morphs):
            if self.morphs[i].tag in _VERBS and (predicate := self._predicate(i)) is not None:
                i = predicate.stop
                if predicate.key not in POSTPOSITIONS or predicate.kind == "EF":
                    predicates.append(predicate)
            else:
                i += 1
        return predicates

    def _predicate(self, verb: int) -> Predicate | None:
        """The predicate whose verb is that morpheme; None where no ending follows."""
        root, key = verb, self.morphs[verb].form
        if self.morphs[verb].tag in ("XSV", "XSA"):
            root = max(verb - 1, 0)
            key = self.morphs[root].form + key
        i = verb + 1
        while i < len(self.morphs):
            morph = self.morphs[i]
            following = self.morphs[i + 1] if i + 1 < len(self.morphs) else None
            becomes = morph.form == "게" and following is not None and following.form in ("되", "하")
            if morph.tag == "EC" and following is not None and (following.tag == "VX" or becomes):
                i += 2
            elif morph.tag in ("EF", "EC", "ETM", "ETN"):
                return Predicate(root, i + 1, morph.tag, morph.form, key)
            elif morph.tag == "EP":
                i += 1
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

    @property
    def opening(self) -> int | None:
        """The 은/는 of a topic of nouns with which the sentence begins."""
        for i, morph in enumerate(self.morphs):
            if morph.tag[0] in "JEV" or morph.tag in ("SP", "SF", "XSV", "XSA"):
                return i if i and self.is_topic(i) else None
        return None

    @property
    def has_subject(self) -> bool:
        """Whether something in it is a subject, or the topic."""
        return any(m.tag == "JKS" or m.form == "도" or self.is_topic(i) for i, m in enumerate(self.morphs))

    def own(self, tag: str, begin: int, predicate: Predicate) -> list[int]:
        """The particles of that tag from morpheme `begin` that belong to the predicate, not to one before it."""
        particles = [i for i in range(begin, predicate.root) if self.morphs[i].tag == tag]
        return [i for i in particles if self.predicate_after(i) == predicate]

    def is_topic(self, i: int) -> bool:
        """Whether a morpheme is 은/는 directly behind a noun."""
        return self.has(i, "은", "JX") and i > 0 and self.morphs[i - 1].tag[0] in "NSX" and self.ends_eojeol(i)

    def has(self, i: int, form: str, tag: str) -> bool:
        """Whether there is a morpheme i, of this form and tag."""
        return i < len(self.morphs) and self.morphs[i][:2] == (form, tag)

    def tag_before(self, i: int) -> str:
        """The tag of the morpheme before morpheme i; "" for the first."""
        return self.morphs[i - 1].tag if i else ""

    def at(self, char: int) -> int:
        """The first morpheme that begins at or behind a character; the number of morphemes where none does."""
        return next((i for i, morph in enumerate(self.morphs) if morph.start >= char), len(self.morphs))

    def word_before(self, char: int) -> str:
        """The last word before a character; "" for none."""
        return (self.text[:char].split() or [""])[-1]

    def unquoted(self, first: int, stop: int) -> tuple[int, int]:
        """The characters of the phrase of morphemes [first, stop), without the quotation marks around it."""
        start, end = self.morphs[first].start, self.morphs[stop - 1].end
        in_quotes = (self.morphs[first].tag, self.morphs[stop - 1].tag) == ("SSO", "SSC") and stop - first > 2
        return (start + 1, end - 1) if in_quotes else (start, end)

    def ends_eojeol(self, i: int) -> bool:
        """Whether a morpheme is the last one of its eojeol, but for a comma."""
        following = self.morphs[i + 1] if i + 1 < len(self.morphs) else None
        return following is None or following.eojeol > self.morphs[i].eojeol or following.tag == "SP"

    def is_object(self, i: int) -> bool:
        """Whether a morpheme is the 을 of an object of a verb, not of 회고록을 기반으로."""
        is_based = self.has(i + 2, "으로", "JKB") and self.morphs[i + 1].form in BASES
        return self.morphs[i].tag == "JKO" and not is_based

    def is_date_before(self, i: int) -> bool:
        """Whether the eojeol before a morpheme is 1998년, 5월 or 3일."""
        return re.search(r"\d[년월일]$", self.word_before(self.morphs[i].start)) is not None

    def clause_predicate(self, i: int) -> Predicate | None:
        """The predicate that an argument before morpheme i belongs to, if a question may end with it."""
        predicate = self.predicate_after(i)
        return predicate if predicate is not None and self.may_end(predicate) else None

    def predicate_after(self, i: int) -> Predicate | None:
        """The first predicate at or behind morpheme i."""
        return next((predicate for predicate in self.predicates if predicate.root >= i), None)

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
