"""Selects the part of a sentence that becomes the question: its clause, without optional phrases."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from korbert.corpus.questions.checks import subject_of
from korbert.corpus.questions.numbers import DATE
from korbert.corpus.questions.phrases import Candidate
from korbert.corpus.questions.sentences import NOUNS, Morph, Sentence
from korbert.corpus.questions.tables import ADVERBS, CONNECTORS, KIN, ONCE, SPLITTING, words

_MAX_KEPT = 0.8  # of the words of its sentence, in a question that changes neither order nor verb
_DROPS_CLAUSE, _DROPS_ADJUNCTS = 0.8, 0.8  # how often, where it is possible
_OF_PHRASE = NOUNS | words("JKG JC NNB XSN MM")  # tags inside a phrase that can be left out


@dataclass(frozen=True)
class Draft:
    """The part of a sentence that becomes the question: the morphemes from `begin` to the predicate.

    carried: number of morphemes before them, those of the topic of the sentence, from its first on; 0 for none.
    left_out: morphemes that the question can do without.
    """

    sentence: Sentence
    candidate: Candidate
    begin: int
    carried: int
    left_out: frozenset[int] = frozenset()

    @cached_property
    def skipped(self) -> frozenset[int]:
        """Morphemes that the question leaves out, including adverbs without meaning of their own."""
        morphs = self.sentence.morphs
        skipped = set(self.left_out)
        if self.begin and morphs[0].form in CONNECTORS and self.sentence.ends_eojeol(0):
            skipped.add(0)
        for i in range(self.begin, self.candidate.predicate.root):
            is_empty = morphs[i].form in ADVERBS or (i == self.begin and morphs[i].form in CONNECTORS)
            begins_eojeol = i == 0 or morphs[i - 1].eojeol < morphs[i].eojeol or morphs[i - 1].tag == "SP"
            is_modified = self.sentence.tag_before(i) in ("JKG", "ETM", "MM")
            if is_empty and begins_eojeol and self.sentence.ends_eojeol(i) and not is_modified:
                skipped |= {i, i + 1} if morphs[i + 1].tag == "SP" else {i}
        return frozenset(skipped)

    @cached_property
    def kept(self) -> list[Morph]:
        """The morphemes of the question, without answer and predicate."""
        indices = [*range(self.carried), *range(self.begin, self.candidate.predicate.root)]
        morphs = [self.sentence.morphs[i] for i in indices if i not in self.skipped]
        return [morph for morph in morphs if not self.candidate.first <= morph.start < self.candidate.last]

    @cached_property
    def can_move(self) -> bool:
        """Whether the clause can modify a noun: a verb with at most one subject, and no clause before it."""
        morphs, predicate = self.sentence.morphs, self.candidate.predicate
        if not self.candidate.head or morphs[predicate.root].tag == "VCP" or predicate.key in ("있", "없"):
            return False
        inside = range(self.begin, predicate.root)
        topics = sum(self.sentence.has(i, "은", "JX") for i in inside)
        subjects = sum(
            morphs[i].tag in ("JKS", "JKC") and self.sentence.predicate_after(i) == predicate for i in inside
        )
        if topics + subjects > 1 or (not self.begin and introductions(self.sentence, predicate.root)):
            return False
        clauses = [clause for clause in self.sentence.predicates if clause.kind == "EC"]
        return not any(self.begin < clause.stop <= predicate.root for clause in clauses)

    @cached_property
    def is_close(self) -> bool:
        """Whether the question would be its own sentence nearly word by word."""
        if self.sentence.is_completed:
            return False
        answer = range(self.candidate.first, self.candidate.last)
        root, stop = self.candidate.predicate.root, self.candidate.predicate.stop
        others = (*self.sentence.morphs[:root], *self.sentence.morphs[stop:])
        eojeols = {morph.eojeol for morph in others if morph.start not in answer}
        eojeols.discard(self.sentence.morphs[root].eojeol)
        return len({morph.eojeol for morph in self.kept}) > _MAX_KEPT * len(eojeols)

    @cached_property
    def fills_the_only_gap(self) -> bool:
        """Whether the question omits only the answer from its sentence, so that word matching finds it."""
        answer = range(self.candidate.first, self.candidate.last)
        predicate = range(self.candidate.predicate.root, self.candidate.predicate.stop)
        kept = {morph.start for morph in self.kept}
        return not any(
            morph.tag in ("NNG", "NNP", "SL", "SN") and morph.start not in kept and morph.start not in answer
            for i, morph in enumerate(self.sentence.morphs)
            if i not in predicate
        )

    def around(self) -> tuple[str, str]:
        """The text before and behind what the question word stands for, up to the predicate."""
        morphs, text = self.sentence.morphs, self.sentence.text
        skipped = {char for i in self.skipped for char in range(morphs[i].start, morphs[i].end)}

        def between(start: int, stop: int) -> str:
            """The text of morphemes [start, stop)."""
            chars = range(morphs[start].start, morphs[stop].start) if start < stop else ()
            return "".join(text[i] for i in chars if i not in skipped)

        first = self.sentence.at(self.candidate.first)
        last = max(self.sentence.at(self.candidate.last), self.begin)
        before = f"{between(0, self.carried)} {between(self.begin, first)}"
        return before, between(last, self.candidate.predicate.root)


def drafted(sentence: Sentence, candidate: Candidate, rng: np.random.Generator) -> Draft:
    """The clause of an answer, mostly without time and place of unique events."""
    draft = _clause(sentence, candidate, rng)
    if candidate.predicate.key in ONCE and rng.random() < _DROPS_ADJUNCTS:
        return replace(draft, left_out=frozenset(_adjuncts(draft)))
    return draft


def introductions(sentence: Sentence, stop: int) -> list[int]:
    """The morphemes before `stop` that are the 으로 of X는 대한민국의 가수로, ..."""
    morphs = sentence.morphs
    clauses = [predicate.stop for predicate in sentence.predicates if predicate.kind in ("EC", "EF")]
    ends = [i for i in range(1, stop) if sentence.has(i, "으로", "JKB") and morphs[i - 1].tag[:2] in ("NN", "XS", "NR")]
    ends = [i for i in ends if i + 1 < len(morphs) and morphs[i + 1].tag == "SP"]
    ends = [i for i in ends if any(sentence.is_topic(k) for k in range(i))]
    return [i for i in ends if not any(end <= i for end in clauses)]


def _clause(sentence: Sentence, candidate: Candidate, rng: np.random.Generator) -> Draft:
    """The whole sentence up to the predicate, or, mostly, without the clauses before where those can be left out."""
    whole = Draft(sentence, candidate, 0, 0)
    morphs, root = sentence.morphs, candidate.predicate.root
    introduced = [i + 1 for i in introductions(sentence, root)]
    clauses = [clause for clause in sentence.predicates if clause.stop <= root and clause.kind == "EC"]
    ends = [*introduced, *(clause.stop for clause in clauses if SPLITTING.get(clause.ending, False))]
    ends = [stop for stop in ends if morphs[stop - 1].end <= candidate.first]
    if not ends or (rng.random() >= _DROPS_CLAUSE and not introduced):
        return whole
    begin = max(ends)
    while begin < root and morphs[begin].tag == "SP":
        begin += 1
    objects = [i for i in range(root) if morphs[i].tag == "JKO"]
    if objects and objects[-1] < begin:  # they would be lost
        return whole
    if any(sentence.is_topic(i) for i in range(begin, root)):
        return Draft(sentence, candidate, begin, 0)
    if subject_of(sentence, begin, candidate.predicate) is not None:
        return whole
    # The topic of the sentence is carried over, where it is its beginning.
    first = min(sentence.predicates[0].root, begin)
    topic = next((i for i in range(first) if sentence.is_topic(i)), None)
    if topic is None or any(morph.tag in ("JKB", "JKO", "JKS", "SP") for morph in morphs[:topic]):
        return whole
    return Draft(sentence, candidate, begin, topic + 1)


def _adjuncts(draft: Draft) -> Iterator[int]:
    """Morphemes of when, where and whose child, beside what is asked: 1976년 5월 1일, 궁전에서, 박씨의 딸로."""
    sentence, candidate = draft.sentence, draft.candidate
    morphs, predicate = sentence.morphs, candidate.predicate
    answer = range(candidate.first, candidate.last)
    phrases = []
    for match in DATE.finditer(sentence.text) if candidate.kind != "언제" else ():
        stop = sentence.at(match.end())
        has_particle = sentence.has(stop, "에", "JKB")
        if has_particle or match[0].endswith("일"):
            phrases.append((sentence.at(match.start()), stop + has_particle))
    for i in range(draft.begin, predicate.root):
        is_place = candidate.kind not in ("어디", "어느") and sentence.has(i, "에서", "JKB")
        is_child = sentence.has(i, "으로", "JKB") and morphs[i - 1].form in KIN
        if is_place or is_child:
            first = i
            while first > draft.begin and (morphs[first - 1].tag in _OF_PHRASE or morphs[first - 1].form == "과"):
                if sentence.is_date_before(first) and morphs[first - 1].eojeol < morphs[first].eojeol:
                    break
                first -= 1
            phrases.append((first, i + 1))
    for first, stop in phrases:
        is_modified = sentence.tag_before(first) in ("ETM", "MM", "JKG")
        is_own = sentence.predicate_after(stop - 1) == predicate and sentence.ends_eojeol(stop - 1)
        is_asked = any(morph.start in answer for morph in morphs[first:stop])
        if is_own and not is_modified and not is_asked and first >= draft.begin:
            yield from range(first, stop)
