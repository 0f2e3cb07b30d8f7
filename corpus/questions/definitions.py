"""A definition turned round: 서울은 대한민국의 수도이다 -> 대한민국의 수도는 어디인가?"""

from typing import Any

from corpus.questions.asking import Question, tidy
from corpus.questions.checks import CONTENT, Refused, check_words
from corpus.questions.sentences import Sentence
from corpus.questions.tables import COPULA, DEFINED_AS, TIMES, UNIQUE, words
from corpus.questions.topics import is_named

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
