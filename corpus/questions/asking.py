"""An answer of a sentence -> the question for it.

1. The clause of the answer is cut out; a clause before it is left out where the topic can be carried over.
2. The question word takes the answer's place (세종은 언제 한글을 만들었는가?), or the answer moves to
   the end (세종이 한글을 만든 때는 언제인가?).
3. The verb may become another of the same meaning; Kiwi conjugates it.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corpus.questions.checks import Refused, check_clause, check_predicate, check_words, subject_of
from corpus.questions.nouns import ADVERBS, CONNECTORS
from corpus.questions.numbers import DATE, has_same_unit
from corpus.questions.phrases import Candidate
from corpus.questions.sentences import Morph, Predicate, Sentence
from corpus.questions.verbs import COPULA, INTERROGATIVE, SPLITTING, SYNONYMS

__all__ = ["Question", "ask", "tidy"]

_MAX_KEPT = 0.8  # of the words of its sentence, in a question that changes neither order nor verb
_DROPS_CLAUSE, _MOVES_ANSWER, _CHANGES_VERB = 0.8, 0.5, 0.5  # how often, where it is possible
_CONTRACTED = (("하였", "했"), ("되었", "됐"), ("하여", "해"), ("되어", "돼"), ("이었", "였"), (" ", ""))
_PARTICLE_TAGS = {"이": "JKS", "을": "JKO", "은": "JX", "의": "JKG", "이라고": "JKQ"}  # JKB otherwise

Stem = list[tuple[str, str]]  # form and tag of each morpheme of a predicate, without its ending


class Question(NamedTuple):
    """text, and its answer: characters [start, end) of the stripped sentence. kind: the question word."""

    text: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Draft:
    """What of a sentence becomes the question: from morpheme `begin` to the predicate, behind the first `carried`
    morphemes, the topic of the sentence; 0 for none."""

    sentence: Sentence
    candidate: Candidate
    begin: int
    carried: int

    @cached_property
    def skipped(self) -> frozenset[int]:
        """Morphemes that the question leaves out: adverbs that say nothing by themselves."""
        morphs = self.sentence.morphs
        gone = {0} if self.begin and morphs[0].form in CONNECTORS and self.sentence.ends_eojeol(0) else set()
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


def ask(sentence: Sentence, candidate: Candidate, kiwi: Any, rng: np.random.Generator) -> Question:
    """Raises Refused where no good question comes of it."""
    check_predicate(sentence, candidate.predicate)
    stem = _stem(sentence, candidate.predicate, kiwi)
    draft = _draft(sentence, candidate, rng)
    check_words(draft.kept)
    check_clause(sentence, candidate, draft.kept, draft.begin, draft.carried)

    serial = any(tag == "VX" and form not in ("있", "지") for form, tag in stem)  # 이주해 나가
    other = None if serial else SYNONYMS.get(candidate.predicate.key)
    changes = other is not None and rng.random() < _CHANGES_VERB
    moves = draft.can_move and rng.random() < _MOVES_ANSWER
    if draft.is_close and not moves and not changes:
        moves = draft.can_move
        changes = not moves and other is not None
        if not moves and not changes:
            raise Refused("too_close")
    if changes and other is not None:
        simple = sentence.morphs[candidate.predicate.root].tag in ("VV", "VA")
        stem = [(other, "VV"), *stem[1 if simple else 2 :]]
    register = sentence.register or "plain"
    text = tidy(_moved(draft, stem, register, kiwi) if moves else _in_place(draft, stem, register, kiwi, rng))

    if candidate.kind == "언제" and DATE.search(text):
        raise Refused("another_date")
    if candidate.kind in ("몇", "얼마") and has_same_unit(candidate.asked or candidate.word, text):
        raise Refused("another_number")
    return Question(text, candidate.start, candidate.end, candidate.kind)


def tidy(text: str) -> str:
    """The question with single spaces and a question mark."""
    text = re.sub(r"\s+", " ", text).strip(" ,")
    return re.sub(r" ([,?])", r"\1", text) + "?"


def _stem(sentence: Sentence, predicate: Predicate, kiwi: Any) -> Stem:
    """The predicate without its ending; 만들고 (... 반포하였다) gets the past of the next predicate that has one.

    Refused where Kiwi would not write the predicate as the sentence does.
    """
    morphs = sentence.morphs[predicate.root : predicate.stop]
    given = [(one.form, one.full_tag) for one in morphs]
    written = sentence.text[morphs[0].start : morphs[-1].end]
    if morphs[0].tag != "VCP" and _contracted(kiwi.join(given)) != _contracted(written):
        raise Refused("conjugation")
    stem = given[:-1]
    for other in sentence.predicates[sentence.predicates.index(predicate) :]:
        markers = [one.form for one in sentence.morphs[other.root : other.stop] if one.tag == "EP"]
        if other.kind == "EF" or (other.kind == "EC" and markers):
            if other is not predicate and any(form.startswith("었") for form in markers):
                stem.append(("었", "EP"))
            break
    return stem


def _contracted(text: str) -> str:
    for long, short in _CONTRACTED:
        text = text.replace(long, short)
    return text


def _draft(sentence: Sentence, candidate: Candidate, rng: np.random.Generator) -> Draft:
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


def _ends_introduction(sentence: Sentence, i: int) -> bool:
    """Whether morpheme i is the 으로 of X는 대한민국의 가수로, ..."""
    morphs = sentence.morphs
    if (morphs[i].form, morphs[i].tag) != ("으로", "JKB") or morphs[i - 1].tag[:2] not in ("NN", "XS", "NR"):
        return False
    if i + 1 == len(morphs) or morphs[i + 1].tag != "SP" or not any(sentence.is_topic(k) for k in range(i)):
        return False
    return not any(one.kind in ("EC", "EF") for one in sentence.predicates if one.stop <= i)


def _in_place(draft: Draft, stem: Stem, register: str, kiwi: Any, rng: np.random.Generator) -> str:
    """세종은 언제 한글을 만들었는가"""
    candidate, text = draft.candidate, draft.sentence.text
    before, behind = draft.around()
    gap = " " if text[candidate.last : candidate.last + 1] == " " else ""
    ahead = f"{before}{_with_particle(candidate.word, candidate.particle, kiwi)}{gap}{behind}"
    endings = INTERROGATIVE[register]
    verb, adjective = endings[rng.integers(len(endings))]
    if verb == "나" and stem[-1] != ("었", "EP"):  # 하나 would be read as one
        verb = "는가"
    ending = adjective if _is_adjective(stem) else verb
    if stem[0][1] != "VCP":
        return f"{ahead}{kiwi.join([*stem, (ending, 'EF')])}"
    # 이다 depends on the last syllable before it.
    last = ahead[-1] if "가" <= ahead[-1] <= "힣" else "것"
    joined = str(kiwi.join([(last, "NNG"), *stem, (ending, "EF")]))
    return ahead + joined.removeprefix(last)


def _is_adjective(stem: Stem) -> bool:
    form, tag = stem[-1]
    return tag.split("-")[0] in ("VA", "XSA", "VCP") and form not in ("있", "없", "계시")


def _with_particle(word: str, particle: str, kiwi: Any) -> str:
    """누구 + 이 -> 누가, 어느 학교 + 을 -> 어느 학교를"""
    if not particle:
        return word
    *ahead, last = word.split(" ")
    first, *more = particle.split(" ")
    tag = "NP" if last in ("누구", "무엇", "어디", "언제") else "NNG"
    joined = str(kiwi.join([(last, tag), (first, _PARTICLE_TAGS.get(first, "JKB"))]))
    return " ".join((*ahead, joined, *more))


def _moved(draft: Draft, stem: Stem, register: str, kiwi: Any) -> str:
    """세종이 한글을 만든 때는 언제인가"""
    sentence, candidate = draft.sentence, draft.candidate
    before, behind = draft.around()
    # A topic inside a clause that modifies a noun is its subject.
    for one, noun in zip(draft.kept[1:], draft.kept, strict=False):
        if (one.form, one.tag) == ("은", "JX") and noun.end == one.start:
            topic = sentence.text[noun.start : one.end]
            subject = topic[:-1] + ("가" if topic.endswith("는") else "이")
            if topic in before:
                before = before.replace(topic, subject, 1)
            else:
                behind = behind.replace(topic, subject, 1)

    past = stem[-1] == ("었", "EP")
    plain = stem[:-1] if past else stem
    if any(tag == "EP" for _, tag in plain):
        raise Refused("tense")
    if past and (plain[-1][0] in ("있", "없") or _is_adjective(plain)):
        relative = kiwi.join([*stem, ("던", "ETM")])
    else:
        relative = kiwi.join([*plain, ("은" if past or _is_adjective(plain) else "는", "ETM")])
    gap = "" if before.endswith(" ") else " "
    head = kiwi.join([(candidate.head, "NNG"), ("은", "JX")])
    return f"{before}{gap}{behind}{relative} {head} {candidate.asked}{COPULA[register]}"
