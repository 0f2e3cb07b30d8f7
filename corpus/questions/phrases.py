"""Noun phrases of a sentence that may be answers: where they begin, which particle they have, what they may name."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from korbert.corpus.questions.sentences import NOUNS, Morph, Predicate, Sentence
from korbert.corpus.questions.tables import CLASSES, GIVEN_NAME, GROUPS, SURNAMES, TIMES, words

CASES = words("JKS JKO JKB JX JKG JKQ")
_JOINING = words("및 또는 혹은 겸 등 내지 이나 과 하고")
_OPEN = ("따르", "대하", "위하", "통하", "관하", "비하", "인하", "비롯하", "포함하", "향하")
_NO_NAME_ENDS = tuple(words("시 군 구 도 강 산 원 국 대 사 성 전 교 문 당 균 소 관"))


class Candidate(NamedTuple):
    """An answer, and how to ask for it. Positions are characters of the stripped sentence.

    kind: the question word, for counting (언제, 몇). start, end: of the answer. first, last: what the question word
    stands for, particle included. word: the question word with all it takes (언제, 어느 학교). particle: behind it, as
    tables have it. head: noun of the other form (…한 곳은 어디인가?), "" for none; asked: what that form asks.
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


def phrase_start(sentence: Sentence, last: int) -> int | None:
    """The first morpheme of the noun phrase that ends with morpheme `last`; None where it is one of several joined."""
    morphs = sentence.morphs
    first = last
    while first > 0 and morphs[first - 1].tag in NOUNS:
        before = morphs[first - 1]
        if before.eojeol != morphs[first].eojeol and (before.form in TIMES or before.form == "의거"):
            break
        first -= 1
    if first == 0:
        return 0
    before = morphs[first - 1]
    if before.tag in ("JC", "ETM", "MM", "XSN", "NP") or before.form in _JOINING:
        return None
    if before.tag == "NNB" and not sentence.is_date_before(first):
        return None
    if before.tag == "SP" and sentence.tag_before(first - 1) in NOUNS:
        return None
    return first


def is_loose(sentence: Sentence, first: int) -> bool:
    """Whether the phrase that begins there can leave its place: nothing is left that modifies it."""
    return sentence.tag_before(first) not in ("JKG", "MM", "ETM", "XPN", "MAG")


def arguments(sentence: Sentence) -> Iterator[tuple[int, str, int]]:
    """(morpheme, role, end) of each particle after a noun.

    role: the particle, 이 for 은, 에 의해 counted as one. end: character behind it.
    """
    morphs = sentence.morphs
    for i in range(1, len(morphs)):
        particle, before = morphs[i], morphs[i - 1]
        is_case = particle.tag in CASES and particle.tag != "JKG"
        if not is_case or before.tag not in NOUNS or particle.start != before.end:
            continue
        role = "이" if particle.form == "은" else particle.form
        following = morphs[i + 1].form if i + 1 < len(morphs) else ""
        if sentence.ends_eojeol(i):
            if role == "에" and following == "의하":
                if sentence.has(i + 2, "어", "EC"):
                    yield i, "에 의해", morphs[i + 2].end
            elif following not in _OPEN and (particle.tag != "JKO" or sentence.is_object(i)):
                yield i, role, particle.end
        elif following == "도" and role in ("이라고", "으로"):  # 이라고도 불린다
            yield i, role, morphs[i + 1].end


def is_korean_name(phrase: Sequence[Morph]) -> bool:
    """Whether a phrase looks like the name of a Korean: a surname and two syllables of given names."""
    name = phrase[-1].form
    return (
        len(phrase) == 1
        and phrase[-1].tag == "NNP"
        and len(name) == 3
        and name[0] in SURNAMES
        and all(char in GIVEN_NAME for char in name[1:])
        and not name.endswith((*_NO_NAME_ENDS, "나라"))
    )


def may_be_person(phrase: Sequence[Morph]) -> bool:
    """Whether the subject of a person's verb looks like a name: Hangul alone, proper, without the ending of a group."""
    text = "".join(morph.form for morph in phrase)
    return (
        all(morph.tag in ("NNP", "NNG") for morph in phrase)
        and any(morph.tag == "NNP" for morph in phrase)
        and all("가" <= char <= "힣" for char in text)
        and not text.endswith(GROUPS)
        and len(text) >= 2
    )


def class_of(phrase: Sequence[Morph]) -> str:
    """The class noun with which a name ends (서울대학교, 한산도 해전); "" where it has none, or is nothing but one."""
    if not any(morph.tag in ("NNP", "SL", "SN") for morph in phrase):
        return ""
    text = "".join(morph.form for morph in phrase)
    shortest = 1 + (len(phrase) == 1)  # characters before it: 한반도 is no 반도 of a name
    endings = (text[-length:] for length in (5, 4, 3, 2) if len(text) >= length + shortest)
    return next((ending for ending in endings if ending in CLASSES), "")
