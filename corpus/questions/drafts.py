"""Selects the part of a sentence that becomes the question: its clause, without optional phrases."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from corpus.questions.checks import subject_of
from corpus.questions.nouns import ADVERBS, CONNECTORS, KIN, words
from corpus.questions.numbers import DATE
from corpus.questions.phrases import Candidate
from corpus.questions.sentences import NOUNS, Morph, Sentence
from corpus.questions.verbs import ONCE, SPLITTING

__all__ = ["Draft", "drafted"]

_MAX_KEPT = 0.8  # of the words of its sentence, in a question that changes neither order nor verb
_DROPS_CLAUSE, _DROPS_ADJUNCTS = 0.8, 0.8  # how often, where it is possible
_OF_PHRASE = NOUNS | words("JKG JC NNB XSN MM")  # tags inside a phrase that can be left out


@dataclass(frozen=True)
class Draft:
    """The part of a sentence that becomes the question: from morpheme `begin` to the predicate, after `carried`
    opening morphemes, the topic of the sentence; 0 for none. left_out: morphemes that the question can do without."""

    sentence: Sentence
    candidate: Candidate
    begin: int
    carried: int
    left_out: frozenset[int] = frozenset()

    @cached_property
    def skipped(self) -> frozenset[int]:
        """Morphemes that the question leaves out, including adverbs without meaning of their own."""
        morphs = self.sentence.morphs
        gone = set(self.left_out)
        gone |= {0} if self.begin and morphs[0].form in CONNECTORS and self.sentence.ends_eojeol(0) else set()
        for i in range(self.begin, self.candidate.predicate.root):
            begins_eojeol = i == 0 or morphs[i - 1].eojeol < morphs[i].eojeol or morphs[i - 1].tag == "SP"
            modified = i > 0 and morphs[i - 1].tag in ("JKG", "ETM", "MM")
            empty = morphs[i].form in ADVERBS or (i == self.begin and morphs[i].form in CONNECTORS)
            if empty and begins_eojeol and self.sentence.ends_eojeol(i) and not modified:
                gone |= {i, i + 1} if morphs[i + 1].tag == "SP" else {i}
        return frozenset(gone)

    @cached_property
    def kept(self) -> list[Morph]:
        """The morphemes of the question, without answer and predicate."""
        places = [*range(self.carried), *range(self.begin, self.candidate.predicate.root)]
        morphs = [self.sentence.morphs[i] for i in places if i not in self.skipped]
        return [one for one in morphs if not self.candidate.first <= one.start < self.candidate.last]

    @cached_property
    def can_move(self) -> bool:
        """Whether the clause can modify a noun: a verb with at most one subject, and no clause before it."""
        morphs, predicate = self.sentence.morphs, self.candidate.predicate
        if not self.candidate.head or morphs[predicate.root].tag == "VCP" or predicate.key in ("있", "없"):
            return False
        inside = range(self.begin, predicate.root)
        topics = sum((morphs[i].form, morphs[i].tag) == ("은", "JX") for i in inside)
        subjects = sum(
            morphs[i].tag in ("JKS", "JKC") and self.sentence.predicate_after(i) == predicate for i in inside
        )
        introduced = any(_ends_introduction(self.sentence, i) for i in range(1, predicate.root)) and not self.begin
        earlier = introduced or any(
            one.kind == "EC" and self.begin < one.stop <= predicate.root for one in self.sentence.predicates
        )
        return topics + subjects <= 1 and not earlier

    @cached_property
    def is_close(self) -> bool:
        """Whether the question would be its own sentence nearly word by word."""
        if self.sentence.is_completed:
            return False
        answer = range(self.candidate.first, self.candidate.last)
        predicate = self.sentence.morphs[self.candidate.predicate.root]
        others = (
            *self.sentence.morphs[: self.candidate.predicate.root],
            *self.sentence.morphs[self.candidate.predicate.stop :],
        )
        words = {one.eojeol for one in others if one.start not in answer and one.eojeol != predicate.eojeol}
        return len({one.eojeol for one in self.kept}) > _MAX_KEPT * len(words)

    @cached_property
    def fills_the_only_gap(self) -> bool:
        """Whether the question omits only the answer from its sentence, so that word matching finds it."""
        answer = range(self.candidate.first, self.candidate.last)
        predicate = range(self.candidate.predicate.root, self.candidate.predicate.stop)
        kept = {one.start for one in self.kept}
        return not any(
            one.tag in ("NNG", "NNP", "SL", "SN") and one.start not in kept and one.start not in answer
            for i, one in enumerate(self.sentence.morphs)
            if i not in predicate
        )

    def around(self) -> tuple[str, str]:
        """The text before and behind what the question word stands for, up to the predicate."""
        first = self.sentence.at(self.candidate.first)
        last = max(self.sentence.at(self.candidate.last), self.begin)
        topic = self._text(0, self.carried)
        return f"{topic} {self._text(self.begin, first)}", self._text(last, self.candidate.predicate.root)

    def _text(self, start: int, stop: int) -> str:
        morphs, text = self.sentence.morphs, self.sentence.text
        if start >= stop:
            return ""
        begin, end = morphs[start].start, morphs[stop].start if stop < len(morphs) else len(text)
        gone = {char for i in self.skipped if start <= i < stop for char in range(morphs[i].start, morphs[i].end)}
        return "".join(text[place] for place in range(begin, end) if place not in gone)


def drafted(sentence: Sentence, candidate: Candidate, rng: np.random.Generator) -> Draft:
    """The clause of an answer, mostly without time and place of unique events."""
    draft = _clause(sentence, candidate, rng)
    if candidate.predicate.key in ONCE and rng.random() < _DROPS_ADJUNCTS:
        return replace(draft, left_out=frozenset(_adjuncts(draft)))
    return draft


def _clause(sentence: Sentence, candidate: Candidate, rng: np.random.Generator) -> Draft:
    """The whole sentence up to the predicate, or, mostly, without the clauses before where those can be left out."""
    whole = Draft(sentence, candidate, 0, 0)
    morphs, root = sentence.morphs, candidate.predicate.root
    introductions = [i + 1 for i in range(1, root) if _ends_introduction(sentence, i)]
    ends = [
        one.stop
        for one in sentence.predicates
        if one.stop <= root and one.kind == "EC" and SPLITTING.get(one.ending, False)
    ]
    ends = [stop for stop in (*ends, *introductions) if morphs[stop - 1].end <= candidate.first]
    if not ends or (rng.random() >= _DROPS_CLAUSE and not introductions):
        return whole
    begin = max(ends)
    while begin < root and morphs[begin].tag == "SP":
        begin += 1
    lost_object = any(one.tag == "JKO" for one in morphs[:begin])
    if lost_object and not any(one.tag == "JKO" for one in morphs[begin:root]):
        return whole
    if any(sentence.is_topic(i) for i in range(begin, root)):
        return Draft(sentence, candidate, begin, 0)
    if subject_of(sentence, begin, candidate.predicate) is not None:
        return whole
    # The topic of the sentence is carried over, where it is its beginning.
    first = min(sentence.predicates[0].root, begin)
    topic = next((i for i in range(first) if sentence.is_topic(i)), None)
    if topic is None or any(one.tag in ("JKB", "JKO", "JKS", "SP") for one in morphs[:topic]):
        return whole
    return Draft(sentence, candidate, begin, topic + 1)


def _adjuncts(draft: Draft) -> Iterator[int]:
    """Morphemes of when, where and whose child, beside what is asked: 1976년 5월 1일, 궁전에서, 박씨의 딸로."""
    sentence, candidate = draft.sentence, draft.candidate
    morphs, predicate = sentence.morphs, candidate.predicate
    answer = range(candidate.first, candidate.last)
    phrases = []
    if candidate.kind != "언제":
        for match in DATE.finditer(sentence.text):
            stop = sentence.at(match.end())
            behind = morphs[stop] if stop < len(morphs) else None
            has_particle = behind is not None and (behind.form, behind.tag) == ("에", "JKB")
            if has_particle or match[0].endswith("일"):
                phrases.append((sentence.at(match.start()), stop + has_particle))
    for i in range(draft.begin, predicate.root):
        asked_where = candidate.kind not in ("어디", "어느") and (morphs[i].form, morphs[i].tag) == ("에서", "JKB")
        child = (morphs[i].form, morphs[i].tag) == ("으로", "JKB") and morphs[i - 1].form in KIN
        if asked_where or child:
            first = i
            while first > draft.begin and (morphs[first - 1].tag in _OF_PHRASE or morphs[first - 1].form == "과"):
                if sentence.is_date_before(first) and morphs[first - 1].eojeol < morphs[first].eojeol:
                    break
                first -= 1
            phrases.append((first, i + 1))
    for first, stop in phrases:
        modified = first > 0 and morphs[first - 1].tag in ("ETM", "MM", "JKG")
        own = sentence.predicate_after(stop - 1) == predicate and sentence.ends_eojeol(stop - 1)
        if own and not modified and first >= draft.begin and not any(one.start in answer for one in morphs[first:stop]):
            yield from range(first, stop)


def _ends_introduction(sentence: Sentence, i: int) -> bool:
    """Whether morpheme i is the 으로 of X는 대한민국의 가수로, ..."""
    morphs = sentence.morphs
    if (morphs[i].form, morphs[i].tag) != ("으로", "JKB") or morphs[i - 1].tag[:2] not in ("NN", "XS", "NR"):
        return False
    if i + 1 == len(morphs) or morphs[i + 1].tag != "SP" or not any(sentence.is_topic(k) for k in range(i)):
        return False
    return not any(one.kind in ("EC", "EF") for one in sentence.predicates if one.stop <= i)
