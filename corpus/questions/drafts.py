"""Selects the part of a sentence that becomes the question: its clause, without optional phrases."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from korbert.corpus.questions.numbers import DATE
from korbert.corpus.questions.sentences import AnswerCandidate, Morph, Sentence
from korbert.corpus.questions.tables import SPLITTING, TAGS, WORDS

_MAX_KEPT = 0.8  # of the words of its sentence, in a question that changes neither order nor verb
_DROPS_CLAUSE = 0.8  # how often, if it is possible
_DROPS_ADJUNCTS = 0.8


@dataclass(frozen=True)
class Draft:
    """The part of a sentence that becomes the question: the morphemes from `begin` to the predicate.

    carried: number of morphemes before them, those of the topic of the sentence, from its first on; 0 for none.
    left_out: morphemes that the question can do without.
    """

    sentence: Sentence
    candidate: AnswerCandidate
    begin: int
    carried: int
    left_out: frozenset[int] = frozenset()

    @cached_property
    def skipped(self) -> frozenset[int]:
        """Morphemes that the question leaves out, including adverbs without meaning of their own."""
        morphs = self.sentence.morphs
        skipped = set(self.left_out)
        for i in {0, *range(self.begin, self.candidate.predicate.root)}:
            is_adverb = i >= self.begin and morphs[i].form in WORDS["adverbs"]
            is_connector = i in (0, self.begin) and morphs[i].form in WORDS["connectors"]
            before = self.sentence.morph(i - 1)
            is_modified = before.tag in ("JKG", "ETM", "MM")
            begins_eojeol = before.eojeol != morphs[i].eojeol or before.tag == "SP"
            is_word = begins_eojeol and self.sentence.ends_eojeol(i)
            if (is_adverb or is_connector) and is_word and not is_modified:
                skipped |= {i, i + 1} if morphs[i + 1].tag == "SP" else {i}
        return frozenset(skipped)

    @cached_property
    def kept(self) -> list[Morph]:
        """The morphemes of the question, without answer and predicate."""
        indices = [*range(self.carried), *range(self.begin, self.candidate.predicate.root)]
        morphs = [self.sentence.morphs[i] for i in indices if i not in self.skipped]
        return [morph for morph in morphs if not self.candidate.first <= morph.start < self.candidate.last]

    @property
    def can_move(self) -> bool:
        """Whether the clause can modify a noun: a verb with at most one subject, and no clause before it."""
        sentence = self.sentence
        predicate = self.candidate.predicate
        topics = [i for i in range(self.begin, predicate.root) if sentence.has(i, "은", "JX")]
        subjects = [*sentence.own("JKS", self.begin, predicate), *sentence.own("JKC", self.begin, predicate)]
        is_clause_before = any(
            clause.kind == "EC" and self.begin < clause.stop <= predicate.root for clause in sentence.predicates
        )
        return (
            self.candidate.head != ""
            and sentence.morphs[predicate.root].tag != "VCP"
            and predicate.key not in ("있", "없")
            and len(topics) + len(subjects) <= 1
            and not is_clause_before
            and (self.begin > 0 or not introductions(sentence, predicate.root))
        )

    @property
    def others(self) -> list[Morph]:
        """The morphemes of the sentence, without answer and predicate."""
        predicate = range(self.candidate.predicate.root, self.candidate.predicate.stop)
        answer = range(self.candidate.first, self.candidate.last)
        morphs = enumerate(self.sentence.morphs)
        return [morph for i, morph in morphs if i not in predicate and morph.start not in answer]

    @property
    def is_close(self) -> bool:
        """Whether the question repeats its sentence nearly word by word, and the whole sentence is in the paragraph."""
        eojeols = {morph.eojeol for morph in self.others}
        eojeols.discard(self.sentence.morphs[self.candidate.predicate.root].eojeol)
        num_kept = len({morph.eojeol for morph in self.kept})
        return num_kept > _MAX_KEPT * len(eojeols) and self.sentence.offsets[0] >= 0

    @property
    def fills_the_only_gap(self) -> bool:
        """Whether the question omits only the answer from its sentence, so that word matching finds it."""
        kept = {morph.start for morph in self.kept}
        nouns = [morph for morph in self.others if morph.tag in ("NNG", "NNP", "SL", "SN")]
        return all(morph.start in kept for morph in nouns)

    def around(self) -> tuple[str, str]:
        """The text before and after what the question word stands for, up to the predicate."""
        first = self.sentence.at(self.candidate.first)
        last = max(self.sentence.at(self.candidate.last), self.begin)
        before = f"{self._text(0, self.carried)} {self._text(self.begin, first)}"
        return before, self._text(last, self.candidate.predicate.root)

    def _text(self, start: int, stop: int) -> str:
        """The text of morphemes [start, stop), without those skipped."""
        morphs = self.sentence.morphs
        chars = range(morphs[start].start, morphs[stop].start) if start < stop else ()
        skipped = [range(morphs[i].start, morphs[i].end) for i in self.skipped]
        return "".join(self.sentence.text[i] for i in chars if not any(i in span for span in skipped))


def draft_question(sentence: Sentence, candidate: AnswerCandidate, rng: np.random.Generator) -> Draft:
    """The clause of an answer, mostly without time and place of unique events."""
    draft = _clause(sentence, candidate, rng)
    if candidate.predicate.key in WORDS["once"] and rng.random() < _DROPS_ADJUNCTS:
        return replace(draft, left_out=frozenset(_adjuncts(draft)))
    return draft


def introductions(sentence: Sentence, stop: int) -> list[int]:
    """The morphemes before `stop` that are the 으로 of X는 대한민국의 가수로, ..."""
    clauses = [predicate.stop for predicate in sentence.predicates if predicate.kind in ("EC", "EF")]
    first_topic = next((i for i in range(stop) if sentence.is_topic(i)), stop)
    candidates = range(first_topic + 1, min([stop, *clauses]))
    return [
        i
        for i in candidates
        if sentence.has(i, "으로", "JKB")
        and sentence.morphs[i - 1].tag[:2] in ("NN", "XS", "NR")
        and sentence.morph(i + 1).tag == "SP"
    ]


def _clause(sentence: Sentence, candidate: AnswerCandidate, rng: np.random.Generator) -> Draft:
    """The whole sentence up to the predicate, or, mostly, without the clauses before it if those can be left out."""
    whole_draft = Draft(sentence, candidate, 0, 0)
    morphs = sentence.morphs
    root = candidate.predicate.root
    introduction_ends = [i + 1 for i in introductions(sentence, root)]
    clauses = [clause for clause in sentence.predicates if clause.stop <= root and clause.kind == "EC"]
    ends = [*introduction_ends, *(clause.stop for clause in clauses if SPLITTING.get(clause.ending, False))]
    ends = [stop for stop in ends if morphs[stop - 1].end <= candidate.first]
    if not ends or (rng.random() >= _DROPS_CLAUSE and not introduction_ends):
        return whole_draft
    begin = max(ends)
    while begin < root and morphs[begin].tag == "SP":
        begin += 1
    objects = [i for i in range(root) if morphs[i].tag == "JKO"]
    if objects and objects[-1] < begin:  # they would be lost
        return whole_draft
    if any(sentence.is_topic(i) for i in range(begin, root)):
        return Draft(sentence, candidate, begin, 0)
    # The topic of the sentence is carried over, if it is its beginning.
    first = min(sentence.predicates[0].root, begin)
    topic = next((i for i in range(first) if sentence.is_topic(i)), None)
    if topic is None or sentence.subject(begin, candidate.predicate) is not None:
        return whole_draft
    is_beginning = all(morph.tag not in ("JKB", "JKO", "JKS", "SP") for morph in morphs[:topic])
    return Draft(sentence, candidate, begin, topic + 1) if is_beginning else whole_draft


def _adjuncts(draft: Draft) -> Iterator[int]:
    """Yields the morphemes that say when, where and whose child, unless they are asked for: 1976년 5월 1일, 궁전에서,
    박씨의 딸로."""
    sentence = draft.sentence
    candidate = draft.candidate
    morphs = sentence.morphs
    phrases = []
    for match in DATE.finditer(sentence.text) if candidate.kind != "언제" else ():
        stop = sentence.at(match.end())
        has_particle = sentence.has(stop, "에", "JKB")
        if has_particle or match[0].endswith("일"):
            phrases.append((sentence.at(match.start()), stop + has_particle))
    for i in range(draft.begin, candidate.predicate.root):
        is_place = candidate.kind not in ("어디", "어느") and sentence.has(i, "에서", "JKB")
        is_child = sentence.has(i, "으로", "JKB") and morphs[i - 1].form in WORDS["kin"]
        if is_place or is_child:
            first = i
            while first > draft.begin and (morphs[first - 1].tag in TAGS["adjuncts"] or morphs[first - 1].form == "과"):
                if sentence.is_date_before(first) and morphs[first - 1].eojeol < morphs[first].eojeol:
                    break
                first -= 1
            phrases.append((first, i + 1))
    answer = range(candidate.first, candidate.last)
    for first, stop in phrases:
        is_modified = sentence.morph(first - 1).tag in ("ETM", "MM", "JKG")
        is_own = sentence.predicate_after(stop - 1) == candidate.predicate and sentence.ends_eojeol(stop - 1)
        is_asked = any(morph.start in answer for morph in morphs[first:stop])
        if is_own and not is_modified and not is_asked and first >= draft.begin:
            yield from range(first, stop)
