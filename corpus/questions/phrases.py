"""Noun phrases of a sentence that may be answers: where they begin, which particle they have, what they may name."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from korbert.corpus.questions.sentences import Morph, Predicate, Sentence
from korbert.corpus.questions.tables import CLASSES, TAGS, WORDS


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


def phrase_start(sentence: Sentence, last: int) -> int | None:
    """The first morpheme of the noun phrase that ends with morpheme `last`; None if it is one of several joined."""
    morphs = sentence.morphs
    first = last
    while first > 0 and morphs[first - 1].tag in TAGS["nouns"]:
        before = morphs[first - 1]
        is_time = before.form in WORDS["times"] or before.form == "의거"
        if is_time and before.eojeol != morphs[first].eojeol:
            break
        first -= 1
    before = sentence.morph(first - 1)
    is_joined = (
        before.tag in ("JC", "ETM", "MM", "XSN", "NP")
        or before.form in WORDS["joining"]
        or (before.tag == "NNB" and not sentence.is_date_before(first))
        or (before.tag == "SP" and sentence.morph(first - 2).tag in TAGS["nouns"])
    )
    return None if is_joined else first


def is_loose(sentence: Sentence, first: int) -> bool:
    """Whether the phrase that begins there can leave its place: nothing is left that modifies it."""
    return sentence.morph(first - 1).tag not in ("JKG", "MM", "ETM", "XPN", "MAG")


def arguments(sentence: Sentence) -> Iterator[tuple[int, str, int, Predicate]]:
    """(morpheme, role, end, predicate) of each particle after a noun whose predicate may end a question.

    role: the particle, 이 for 은, 에 의해 counted as one. end: character after it.
    """
    morphs = sentence.morphs
    for i, particle in enumerate(morphs):
        before = sentence.morph(i - 1)
        following = sentence.morph(i + 1).form
        is_case = particle.tag in TAGS["cases"] and particle.tag != "JKG"
        predicate = sentence.clause_predicate(i + 1)
        if not is_case or before.tag not in TAGS["nouns"] or particle.start != before.end or predicate is None:
            continue
        role = "이" if particle.form == "은" else particle.form
        if not sentence.ends_eojeol(i):
            if following == "도" and role in ("이라고", "으로"):  # 이라고도 불린다
                yield i, role, morphs[i + 1].end, predicate
        elif role == "에" and following == "의하":
            if sentence.has(i + 2, "어", "EC"):
                yield i, "에 의해", morphs[i + 2].end, predicate
        elif following not in WORDS["governing"] and (particle.tag != "JKO" or sentence.is_object(i)):
            yield i, role, particle.end, predicate


def is_korean_name(phrase: Sequence[Morph]) -> bool:
    """Whether a phrase looks like the name of a Korean: a surname and two syllables of given names."""
    name = "".join(morph.form for morph in phrase)
    return (
        [morph.tag for morph in phrase] == ["NNP"]
        and len(name) == 3
        and name[0] in WORDS["surnames"]
        and WORDS["given_names"].issuperset(name[1:])
        and not name.endswith(tuple(WORDS["no_given_names"]))
    )


def may_be_person(phrase: Sequence[Morph]) -> bool:
    """Whether the subject of a person's verb looks like a name: Hangul alone, proper, without the ending of a group."""
    text = "".join(morph.form for morph in phrase)
    return (
        all(morph.tag in ("NNP", "NNG") for morph in phrase)
        and any(morph.tag == "NNP" for morph in phrase)
        and all("가" <= char <= "힣" for char in text)
        and not text.endswith(tuple(WORDS["groups"]))
        and len(text) >= 2
    )


def class_of(phrase: Sequence[Morph]) -> str:
    """The class noun with which a name ends (서울대학교, 한산도 해전); "" if it has none, or is nothing but one."""
    if not any(morph.tag in ("NNP", "SL", "SN") for morph in phrase):
        return ""
    text = "".join(morph.form for morph in phrase)
    shortest = 1 + (len(phrase) == 1)  # characters before it: 한반도 does not name a 반도
    endings = (text[-length:] for length in (5, 4, 3, 2) if len(text) >= length + shortest)
    return next((ending for ending in endings if ending in CLASSES), "")
