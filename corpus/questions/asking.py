"""An answer of a sentence -> the question for it.

1. The clause of the answer is cut out; a clause before it is left out where the topic can be carried over.
2. The question word takes the answer's place (세종은 언제 한글을 만들었는가?), or the answer moves to
   the end (세종이 한글을 만든 때는 언제인가?).
3. The verb may become another of the same meaning; Kiwi conjugates it.
"""

import re
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from korbert.corpus.questions.checks import CONTENT, Refused, check_clause, check_predicate, check_words
from korbert.corpus.questions.drafts import Draft, drafted
from korbert.corpus.questions.numbers import DATE, has_same_unit
from korbert.corpus.questions.phrases import Candidate
from korbert.corpus.questions.sentences import Predicate, Sentence
from korbert.corpus.questions.tables import COPULA, DEFINED_AS, INTERROGATIVE, SYNONYMS, TIMES, UNIQUE, words
from korbert.corpus.questions.topics import is_named

_ONLY_GAPS = 0.3  # share that is kept of questions whose answer is all that they leave out of their sentence
_MOVES_ANSWER, _CHANGES_VERB = 0.5, 0.5  # how often, where it is possible
_CONTRACTED = (("하였", "했"), ("되었", "됐"), ("하여", "해"), ("되어", "돼"), ("이었", "였"), (" ", ""))
_PARTICLE_TAGS = {"이": "JKS", "을": "JKO", "은": "JX", "의": "JKG", "이라고": "JKQ"}  # JKB otherwise
_PAST = ("었", "EP")
_BEFORE_AUXILIARY = ("어야", "려", "게")  # endings behind which Kiwi leaves out the space before 하: 지어야 하는가

Stem = list[tuple[str, str]]  # form and tag of each morpheme of a predicate, without its ending


class Question(NamedTuple):
    """text, and its answer: characters [start, end) of the stripped sentence. kind: the question word."""

    text: str
    start: int
    end: int
    kind: str


def ask(sentence: Sentence, candidate: Candidate, kiwi: Any, rng: np.random.Generator) -> Question:
    """Raises Refused where no good question comes of it."""
    check_predicate(sentence, candidate.predicate)
    stem = _stem(sentence, candidate.predicate, kiwi)
    draft = drafted(sentence, candidate, rng)
    if draft.fills_the_only_gap and rng.random() >= _ONLY_GAPS:
        raise Refused("only_gap")
    check_words(draft.kept)
    check_clause(sentence, candidate, draft.kept, draft.begin, draft.carried)

    is_serial = any(tag == "VX" and form not in ("있", "지") for form, tag in stem)  # 이주해 나가
    other = None if is_serial else SYNONYMS.get(candidate.predicate.key)
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
    tagged = [(morph.form, morph.full_tag) for morph in morphs]
    spellings = [kiwi.join(tagged), sentence.text[morphs[0].start : morphs[-1].end]]
    for long, short in _CONTRACTED:
        spellings = [spelling.replace(long, short) for spelling in spellings]
    if morphs[0].tag != "VCP" and spellings[0] != spellings[1]:
        raise Refused("conjugation")
    stem = tagged[:-1]
    for other in sentence.predicates[sentence.predicates.index(predicate) :]:
        markers = [morph.form for morph in sentence.morphs[other.root : other.stop] if morph.tag == "EP"]
        if other.kind == "EF" or (other.kind == "EC" and markers):
            if other is not predicate and any(form.startswith("었") for form in markers):
                stem.append(_PAST)
            break
    return stem


def _in_place(draft: Draft, stem: Stem, register: str, kiwi: Any, rng: np.random.Generator) -> str:
    """세종은 언제 한글을 만들었는가"""
    candidate, text = draft.candidate, draft.sentence.text
    # 누구 + 이 -> 누가, 어느 학교 + 을 -> 어느 학교를
    word = candidate.word
    if candidate.particle:
        *modifiers, noun = word.split(" ")
        particle, *more = candidate.particle.split(" ")
        tag = "NP" if noun in ("누구", "무엇", "어디", "언제") else "NNG"
        joined = str(kiwi.join([(noun, tag), (particle, _PARTICLE_TAGS.get(particle, "JKB"))]))
        word = " ".join((*modifiers, joined, *more))
    before, behind = draft.around()
    gap = " " if text[candidate.last : candidate.last + 1] == " " else ""
    ahead = f"{before}{word}{gap}{behind}"
    endings = INTERROGATIVE[register]
    verb, adjective = endings[rng.integers(len(endings))]
    if verb == "나" and stem[-1] != _PAST:  # 하나 would be read as one
        verb = "는가"
    ending = adjective if _is_adjective(stem) else verb
    if stem[0][1] != "VCP":
        return f"{ahead}{_conjugated(kiwi, [*stem, (ending, 'EF')])}"
    # 이다 depends on the last syllable before it.
    last = ahead[-1] if "가" <= ahead[-1] <= "힣" else "것"
    return ahead + str(kiwi.join([(last, "NNG"), *stem, (ending, "EF")])).removeprefix(last)


def _moved(draft: Draft, stem: Stem, register: str, kiwi: Any) -> str:
    """세종이 한글을 만든 때는 언제인가"""
    candidate = draft.candidate
    before, behind = draft.around()
    # A topic inside a clause that modifies a noun is its subject.
    for noun, particle in pairwise(draft.kept):
        if (particle.form, particle.tag) == ("은", "JX") and noun.end == particle.start:
            topic = draft.sentence.text[noun.start : particle.end]
            subject = topic[:-1] + ("가" if topic.endswith("는") else "이")
            if topic in before:
                before = before.replace(topic, subject, 1)
            else:
                behind = behind.replace(topic, subject, 1)

    is_past = stem[-1] == _PAST
    present = stem[:-1] if is_past else stem
    if any(tag == "EP" for _, tag in present):
        raise Refused("tense")
    if is_past and (present[-1][0] in ("있", "없") or _is_adjective(present)):
        relative = _conjugated(kiwi, [*stem, ("던", "ETM")])
    else:
        relative = _conjugated(kiwi, [*present, ("은" if is_past or _is_adjective(present) else "는", "ETM")])
    gap = "" if before.endswith(" ") else " "
    head = kiwi.join([(candidate.head, "NNG"), ("은", "JX")])
    return f"{before}{gap}{behind}{relative} {head} {candidate.asked}{COPULA[register]}"


def _conjugated(kiwi: Any, morphs: Stem) -> str:
    """The joined morphemes, with a space before auxiliaries."""
    spaced = [
        (form, tag, True) if form == "하" and before[0] in _BEFORE_AUXILIARY else (form, tag)
        for before, (form, tag) in pairwise([("", ""), *morphs])
    ]
    return str(kiwi.join(spaced))


def _is_adjective(stem: Stem) -> bool:
    form, tag = stem[-1]
    return tag.split("-")[0] in ("VA", "XSA", "VCP") and form not in ("있", "없", "계시")


_NO_HEAD = words("예정 계획 상태 경우 정도 이유 결과 과정 문제 방식 내용 수 대부분 사실 부분")
_ONE_OF_MANY = words("겸 중 하나 일종 것 등 일부 가운데")
_OF_NAME = words("NNP NNG SL SSO SSC XSN QT")
_MIN_CONTENT = 5  # content words in a definition specific enough for one thing; one less with 최초 and the like


def ask_definition(sentence: Sentence, kiwi: Any) -> Question | None:
    """None where the sentence is no definition of a name; Refused where others could fit the definition."""
    morphs, last = sentence.morphs, sentence.predicates[-1]
    root = last.root
    if morphs[root].tag != "VCP" or root < 2 or morphs[root - 1].tag not in ("NNG", "XSN"):
        return None
    if morphs[root - 1].form in _NO_HEAD or morphs[root - 1].form.endswith("적"):
        return None
    topic = next((i for i in range(1, root) if sentence.is_topic(i)), None)
    if topic is None or any(predicate.kind == "EC" for predicate in sentence.predicates):
        return None
    if any(morph.tag not in _OF_NAME for morph in morphs[:topic]):
        return None
    _check_definition(sentence, topic, root)

    head = morphs[root - 1]
    noun = head.form if head.tag == "NNG" else morphs[root - 2].form + head.form
    word = "누구" if head.tag == "XSN" and head.form in ("인", "자", "가") else DEFINED_AS.get(noun, "무엇")
    text = sentence.text[morphs[topic + 1].start : head.end]
    syllable = text[-1] if "가" <= text[-1] <= "힣" else "것"
    particle = kiwi.join([(syllable, "NNG"), ("은", "JX")]).removeprefix(syllable)
    asked = word + COPULA[sentence.register or "plain"]
    if any(morph.tag == "EP" for morph in morphs[root : last.stop]):
        asked = kiwi.join([(word, "NP"), ("이", "VCP"), ("었", "EP"), ("는가", "EF")])
    return Question(tidy(f"{text}{particle} {asked}"), *sentence.unquoted(0, topic), word)


def _check_definition(sentence: Sentence, topic: int, root: int) -> None:
    """Refuses a definition, morphemes (topic, root), that others than its subject could fit."""
    name, defined = sentence.morphs[:topic], sentence.morphs[topic + 1 : root]
    # 오늘날 예수회는: a name at a time
    is_timed = name[0].eojeol < sentence.morphs[topic].eojeol and any(morph.form in TIMES for morph in name)
    if is_timed or not is_named(sentence, 0, topic):
        raise Refused("vague_subject")
    check_words(defined)
    is_joined = any(morph.tag in ("SP", "JC") or (morph.form, morph.tag) == ("은", "JX") for morph in defined)
    if is_joined or any(morph.form in _ONE_OF_MANY for morph in defined):
        raise Refused("not_the_only_one")
    is_relative = any(topic < clause.root < root and clause.kind == "ETM" for clause in sentence.predicates)
    is_unique = any(morph.form in UNIQUE for morph in defined)
    has_name = any(morph.tag in ("NNP", "SL", "SN", "SSC") for morph in defined)
    said = sum(morph.tag in CONTENT for morph in defined)
    if not (is_relative or is_unique) or not has_name or said < _MIN_CONTENT - is_unique:
        raise Refused("not_the_only_one")
