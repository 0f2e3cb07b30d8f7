"""Fills in the topic of a sentence without one from the previous sentence.

세종은 조선의 왕이다. 1443년에 한글을 만들었다. -> 세종은 1443년에 한글을 만들었다.
"""

from korbert.corpus.questions.sentences import Sentence, Stripped
from korbert.corpus.questions.tables import AMOUNTS, ATTRIBUTES, CLASSES, MEASURES, PLACES

_PRONOUNS = ("그", "그녀")
_MAX_TOPIC = 30  # characters


def is_named(sentence: Sentence, start: int, stop: int) -> bool:
    """Whether morphemes [start, stop) have a name, or enough common nouns to be one (개인정보 보호 위원회)."""
    morphs = sentence.morphs[start:stop]
    if morphs and morphs[-1].tag == "NNG" and morphs[-1].form in ATTRIBUTES:  # 본명은: whose is to be said
        return any(morph.tag == "JKG" for morph in morphs)
    if any(morph.tag in ("NNP", "SL", "SH", "SSC") for morph in morphs):
        return True
    nouns = [morph.form for morph in morphs if morph.tag == "NNG"]
    is_measure = bool(nouns) and (nouns[-1] in MEASURES or nouns[-1].endswith(("율", "률", "량", "수", "액")))
    return len(nouns) >= 3 and sum(map(len, nouns)) >= 7 and not is_measure


def opening_topic(sentence: Sentence) -> str | None:
    """The name that a sentence begins with as its topic (세종은 -> 세종).

    "": its topic is that of the sentence before. None: it has another one.
    """
    morphs = sentence.morphs
    opening = sentence.opening
    if opening is None:
        return None if sentence.has_subject else ""
    if morphs[0].form in _PRONOUNS or _is_attribute(sentence, 0, opening) or _points_back(sentence, opening):
        return ""
    if morphs[opening - 1].form in ATTRIBUTES:
        return None
    is_plain = not any(morph.tag in ("NP", "MM", "NNB", "MAJ", "MAG", "SN", "NR") for morph in morphs[:opening])
    text = sentence.text[morphs[0].start : morphs[opening].start]
    return text if is_plain and len(text) <= _MAX_TOPIC and is_named(sentence, 0, opening) else None


def _is_attribute(sentence: Sentence, start: int, stop: int) -> bool:
    """Whether morphemes [start, stop) are something that only a thing has (인구, 원산지), not said of which."""
    morphs = sentence.morphs[start:stop]
    is_short = 0 < len(morphs) <= 3 and all(morph.tag == "NNG" for morph in morphs)
    return is_short and (morphs[-1].form in ATTRIBUTES or morphs[-1].form in AMOUNTS)


def _points_back(sentence: Sentence, opening: int) -> bool:
    """이 영화는, 이 섬은"""
    noun = sentence.morphs[1].form
    return opening == 2 and sentence.has(0, "이", "MM") and (noun in CLASSES or noun in PLACES)


def in_full(bare: Stripped, sentence: Sentence, topic: str) -> Stripped | None:
    """The sentence with the topic of the previous one (세종) if it continues it, else None."""
    if bare.text.startswith(topic):
        return None
    # 은 behind a consonant, as far as the last character tells, else 는
    last = ord(topic[-1]) - 0xAC00
    closes = last % 28 > 0 if 0 <= last < 11_172 else topic[-1] in "013678lmnLMN"
    particle = "은" if closes else "는"
    if not sentence.has_subject:
        return bare.prefixed(f"{topic}{particle} ", 0)
    opening = sentence.opening
    if opening is None:
        return None
    if (opening == 1 and sentence.morphs[0].form in _PRONOUNS) or _points_back(sentence, opening):
        return bare.prefixed(f"{topic}{particle}", sentence.morphs[opening].end)
    return bare.prefixed(f"{topic}의 ", 0) if _is_attribute(sentence, 0, opening) else None


def owned(bare: Stripped, sentence: Sentence) -> list[Stripped]:
    """나도생강은 여러해살이풀로 학명은 …이다 -> 나도생강의 학명은 …이다"""
    topic = opening_topic(sentence)
    if not topic:
        return []
    sentences = []
    for i in range(2, len(sentence.morphs)):
        first = i
        while sentence.morphs[first - 1].tag == "NNG":
            first -= 1
        is_behind = first > 1 and sentence.morphs[first - 1].tag in ("SP", "EC", "JKB")
        if is_behind and sentence.is_topic(i) and _is_attribute(sentence, first, i):
            sentences.append(bare.prefixed(f"{topic}의 ", sentence.morphs[first].start))
    return sentences
