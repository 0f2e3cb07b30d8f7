"""A definition turned round: 서울은 대한민국의 수도이다 -> 대한민국의 수도는 어디인가?"""

from typing import Any

from corpus.questions.asking import Question, tidy
from corpus.questions.checks import CONTENT, Refused, check_words
from corpus.questions.nouns import DEFINED_AS, TIMES, UNIQUE, words
from corpus.questions.sentences import Sentence
from corpus.questions.topics import is_named
from corpus.questions.verbs import COPULA

__all__ = ["ask_definition"]

_NO_HEAD = words("예정 계획 상태 경우 정도 이유 결과 과정 문제 방식 내용 수 대부분 사실 부분")
_ONE_OF_MANY = words("겸 중 하나 일종 것 등 일부 가운데")
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
    if topic is None or any(one.kind == "EC" for one in sentence.predicates):
        return None
    if any(one.tag not in ("NNP", "NNG", "SL", "SSO", "SSC", "XSN", "QT") for one in morphs[:topic]):
        return None
    # 오늘날 예수회는: a name at a time
    timed = morphs[0].eojeol < morphs[topic].eojeol and any(one.form in TIMES for one in morphs[:topic])
    if timed or not is_named(sentence, 0, topic):
        raise Refused("vague_subject")
    defined = morphs[topic + 1 : root]
    check_words(defined)
    if any(
        one.tag in ("SP", "JC") or (one.form, one.tag) == ("은", "JX") or one.form in _ONE_OF_MANY for one in defined
    ):
        raise Refused("not_the_only_one")
    relative = any(topic < one.root < root and one.kind == "ETM" for one in sentence.predicates)
    marked = any(one.form in UNIQUE for one in defined)
    named = any(one.tag in ("NNP", "SL", "SN", "SSC") for one in defined)
    said = sum(one.tag in CONTENT for one in defined)
    if not (relative or marked) or not named or said < _MIN_CONTENT - marked:
        raise Refused("not_the_only_one")

    start, end = morphs[0].start, morphs[topic - 1].end
    if (morphs[0].tag, morphs[topic - 1].tag) == ("SSO", "SSC"):
        start, end = start + 1, end - 1
    head = morphs[root - 1]
    noun = head.form if head.tag == "NNG" else morphs[root - 2].form + head.form
    word = "누구" if head.tag == "XSN" and head.form in ("인", "자", "가") else DEFINED_AS.get(noun, "무엇")
    text = sentence.text[defined[0].start : head.end]
    syllable = text[-1] if "가" <= text[-1] <= "힣" else "것"
    particle = kiwi.join([(syllable, "NNG"), ("은", "JX")]).removeprefix(syllable)
    asked = word + COPULA[sentence.register or "plain"]
    if any(one.tag == "EP" for one in morphs[root : last.stop]):
        asked = kiwi.join([(word, "NP"), ("이", "VCP"), ("었", "EP"), ("는가", "EF")])
    return Question(tidy(f"{text}{particle} {asked}"), start, end, word)
