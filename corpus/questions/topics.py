"""Fills in the topic of a sentence without one from the previous sentence.

세종은 조선의 왕이다. 1443년에 한글을 만들었다. -> 세종은 1443년에 한글을 만들었다.
"""

from corpus.questions.nouns import AMOUNTS, ATTRIBUTES, CLASSES, MEASURES, PLACES
from corpus.questions.sentences import Sentence, Stripped

__all__ = ["in_full", "is_named", "opening_topic", "owned"]

_PRONOUNS = ("그", "그녀")
_MAX_TOPIC = 30  # characters


def is_named(sentence: Sentence, start: int, stop: int) -> bool:
    """Whether morphemes [start, stop) have a name, or enough common nouns to be one (개인정보 보호 위원회)."""
    morphs = sentence.morphs[start:stop]
    if morphs and morphs[-1].tag == "NNG" and morphs[-1].form in ATTRIBUTES:  # 본명은: whose is to be said
        return any(one.tag == "JKG" for one in morphs)
    if any(one.tag in ("NNP", "SL", "SH", "SSC") for one in morphs):
        return True
    nouns = [one.form for one in morphs if one.tag == "NNG"]
    measure = bool(nouns) and (nouns[-1] in MEASURES or nouns[-1].endswith(("율", "률", "량", "수", "액")))
    return len(nouns) >= 3 and sum(map(len, nouns)) >= 7 and not measure


def opening_topic(sentence: Sentence) -> str | None:
    """The name that a sentence begins with as its topic (세종은 -> 세종); "" where the topic is that of the sentence
    before, None where it is another one."""
    morphs = sentence.morphs
    if (opening := _opening(sentence)) is None:
        other = any(one.tag == "JKS" or one.form == "도" or sentence.is_topic(i) for i, one in enumerate(morphs))
        return None if other else ""
    if morphs[0].form in _PRONOUNS or _is_attribute(sentence, 0, opening) or _points_back(sentence, opening):
        return ""
    if morphs[opening - 1].form in ATTRIBUTES:
        return None
    plain = not any(one.tag in ("NP", "MM", "NNB", "MAJ", "MAG", "SN", "NR") for one in morphs[:opening])
    text = sentence.text[morphs[0].start : morphs[opening].start]
    return text if plain and len(text) <= _MAX_TOPIC and is_named(sentence, 0, opening) else None


def _opening(sentence: Sentence) -> int | None:
    """The 은/는 of a topic of nouns with which a sentence begins."""
    for i, one in enumerate(sentence.morphs):
        if one.tag[0] in "JEV" or one.tag in ("SP", "SF", "XSV", "XSA"):
            return i if i and sentence.is_topic(i) else None
    return None


def _is_attribute(sentence: Sentence, start: int, stop: int) -> bool:
    """Whether morphemes [start, stop) are something that only a thing has (인구, 원산지), not said of which."""
    morphs = sentence.morphs[start:stop]
    return (
        0 < len(morphs) <= 3
        and all(one.tag == "NNG" for one in morphs)
        and (morphs[-1].form in ATTRIBUTES or morphs[-1].form in AMOUNTS)
    )


def _points_back(sentence: Sentence, opening: int) -> bool:
    """이 영화는, 이 섬은"""
    morphs = sentence.morphs
    return (
        opening == 2
        and (morphs[0].form, morphs[0].tag) == ("이", "MM")
        and (morphs[1].form in CLASSES or morphs[1].form in PLACES)
    )


def in_full(bare: Stripped, sentence: Sentence, topic: str) -> Stripped | None:
    """The sentence with the topic of the previous one (세종) if it continues it, else None."""
    morphs = sentence.morphs
    subject = any(one.tag == "JKS" or one.form == "도" or sentence.is_topic(i) for i, one in enumerate(morphs))
    particle = "은" if _closes(topic) else "는"
    if bare.text.startswith(topic):
        return None
    if not subject:
        return _prefixed(bare, f"{topic}{particle} ", 0)
    opening = _opening(sentence)
    if opening is None:
        return None
    if (opening == 1 and morphs[0].form in _PRONOUNS) or _points_back(sentence, opening):
        return _prefixed(bare, f"{topic}{particle}", morphs[opening].end)
    return _prefixed(bare, f"{topic}의 ", 0) if _is_attribute(sentence, 0, opening) else None


def owned(bare: Stripped, sentence: Sentence) -> list[Stripped]:
    """나도생강은 여러해살이풀로 학명은 …이다 -> 나도생강의 학명은 …이다"""
    topic = opening_topic(sentence)
    if not topic:
        return []
    found = []
    for i in range(2, len(sentence.morphs)):
        first = i
        while sentence.morphs[first - 1].tag == "NNG":
            first -= 1
        behind = first > 1 and sentence.morphs[first - 1].tag in ("SP", "EC", "JKB")
        if behind and sentence.is_topic(i) and _is_attribute(sentence, first, i):
            found.append(_prefixed(bare, f"{topic}의 ", sentence.morphs[first].start))
    return found


def _prefixed(bare: Stripped, prefix: str, start: int) -> Stripped:
    """The text from character `start` behind a prefix that stands nowhere in the context."""
    return Stripped(prefix + bare.text[start:], [-1] * len(prefix) + bare.places[start:])


def _closes(word: str) -> bool:
    """Whether a word ends in a consonant, as far as its last character tells."""
    last = ord(word[-1]) - 0xAC00
    return last % 28 > 0 if 0 <= last < 11_172 else word[-1] in "013678lmnLMN"
