"""Fills in the topic of a sentence without one from the previous sentence.

세종은 조선의 왕이다. 1443년에 한글을 만들었다. -> 세종은 1443년에 한글을 만들었다.
"""

from korbert.corpus.questions.sentences import Sentence, Stripped
from korbert.corpus.questions.tables import ATTRIBUTES, CLASSES, TAGS, WORDS

_MAX_TOPIC = 30  # characters


def is_named(sentence: Sentence, start: int, stop: int) -> bool:
    """Whether morphemes [start, stop) have a name, or enough common nouns to be one (개인정보 보호 위원회)."""
    morphs = sentence.morphs[start:stop]
    if morphs and morphs[-1].tag == "NNG" and morphs[-1].form in ATTRIBUTES:  # 본명은: it must say whose
        return any(morph.tag == "JKG" for morph in morphs)
    if any(morph.tag in TAGS["names"] for morph in morphs):
        return True
    nouns = [morph.form for morph in morphs if morph.tag == "NNG"]
    is_measure = bool(nouns) and (nouns[-1] in WORDS["measures"] or nouns[-1].endswith(("율", "률", "량", "수", "액")))
    return len(nouns) >= 3 and sum(map(len, nouns)) >= 7 and not is_measure


def opening_topic(sentence: Sentence) -> str | None:
    """The name that a sentence begins with as its topic (세종은 -> 세종).

    "": the topic is that of the sentence before. None: the sentence has another subject, or a topic that is no name.
    """
    morphs = sentence.morphs
    opening = sentence.opening
    if opening is None:
        return None if sentence.has_subject else ""
    if morphs[0].form in WORDS["pronouns"] or _is_attribute(sentence, 0, opening) or _is_this(sentence, opening):
        return ""
    topic = morphs[:opening]
    text = sentence.text[topic[0].start : morphs[opening].start]
    is_name = (
        topic[-1].form not in ATTRIBUTES
        and not any(morph.tag in ("NP", "MM", "NNB", "MAJ", "MAG", "SN", "NR") for morph in topic)
        and len(text) <= _MAX_TOPIC
        and is_named(sentence, 0, opening)
    )
    return text if is_name else None


def _is_attribute(sentence: Sentence, start: int, stop: int) -> bool:
    """Whether morphemes [start, stop) are an attribute (인구, 원산지) without the thing that has it."""
    morphs = sentence.morphs[start:stop]
    is_short = 0 < len(morphs) <= 3 and all(morph.tag == "NNG" for morph in morphs)
    return is_short and (morphs[-1].form in ATTRIBUTES or morphs[-1].form in WORDS["amounts"])


def _is_this(sentence: Sentence, opening: int) -> bool:
    """Whether the sentence opens with 이 and a class or a place: 이 영화는, 이 섬은."""
    noun = sentence.morphs[1].form
    return opening == 2 and sentence.has(0, "이", "MM") and (noun in CLASSES or noun in WORDS["places"])


def with_topic(sentence: Sentence, topic: str) -> Stripped | None:
    """Returns the sentence with the topic of the previous sentence (세종) if it continues that topic, else None."""
    # 은 after a consonant, as far as the last character tells, else 는
    last = ord(topic[-1]) - 0xAC00
    ends_in_consonant = last % 28 > 0 if 0 <= last < 11_172 else topic[-1] in "013678lmnLMN"
    particle = "은" if ends_in_consonant else "는"
    opening = sentence.opening
    if sentence.text.startswith(topic):
        return None
    if not sentence.has_subject:
        return sentence.with_prefix(f"{topic}{particle} ", 0)
    if opening is None:
        return None
    is_pronoun = opening == 1 and sentence.morphs[0].form in WORDS["pronouns"]
    if is_pronoun or _is_this(sentence, opening):
        return sentence.with_prefix(f"{topic}{particle}", sentence.morphs[opening].end)
    return sentence.with_prefix(f"{topic}의 ", 0) if _is_attribute(sentence, 0, opening) else None


def with_owner(sentence: Sentence) -> list[Stripped]:
    """Returns the sentence from each attribute of its topic on, with the topic as its owner.

    나도생강은 여러해살이풀로 학명은 …이다 -> 나도생강의 학명은 …이다
    """
    topic = opening_topic(sentence)
    sentences = []
    for i in range(2, len(sentence.morphs)) if topic else ():
        first = i
        while sentence.morph(first - 1).tag == "NNG":
            first -= 1
        is_later = first > 1 and sentence.morphs[first - 1].tag in ("SP", "EC", "JKB")
        if is_later and sentence.is_topic(i) and _is_attribute(sentence, first, i):
            sentences.append(sentence.with_prefix(f"{topic}의 ", sentence.morphs[first].start))
    return sentences
