"""Dates and numbers as answers: 언제, 몇 명, 얼마."""

import re
from collections.abc import Iterator

from korbert.corpus.questions.sentences import AnswerCandidate, Sentence
from korbert.corpus.questions.tables import TAGS, WORDS

DATE = re.compile(
    r"(?:기원전 )?(?<!\d)(?:(?<=기원전 )\d{1,2}|\d{3,4})년(?: \d{1,2}월(?: \d{1,2}일)?)?(?![대간차도생산])"
    r"|(?<![\d년])\d{1,2}월 \d{1,2}일"
    r"|(?:기원전 )?(?<!\d)\d{1,2}세기(?: (?:초|말|중반|후반|초반|중엽))?"
    r"|(?<!\d)\d{3,4}년대(?: (?:초|말|중반|후반|초반))?"
)
_NO_DATE_BEFORE = re.compile(r"\d(년|월|세기)$|음력|양력|기원전|서기|매년|약|[~–-]$")
_HEADS = (("년", "해"), ("일", "날짜"), ("월", "때"), ("", "시기"))  # ending of a date -> … 해는 언제인가?

_DIGITS = r"(?<![\d.,~:A-Za-z-])\d[\d,.]*(?:(?:천만|백만|억|만|천|조)(?: \d[\d,.]*(?:만|천)?)?)? ?"
_LONGEST_FIRST = sorted(WORDS["native"], key=len, reverse=True)
_NATIVE = rf"(?<![가-힣])(?:{'|'.join(_LONGEST_FIRST)}) ?(?=(?:{'|'.join(WORDS['native_units'])}))"
_UNITS = "|".join(sorted(WORDS["counters"] | WORDS["money"], key=lambda unit: (-len(unit), unit)))
_COUNTED = re.compile(rf"(?P<ordinal>제)?(?P<number>{_DIGITS}|{_NATIVE})(?P<unit>{_UNITS})(?![a-z])")
_DURATION = re.compile(rf"(?P<ordinal>)(?P<number>{_DIGITS})(?P<unit>년|일|주)(?= ?(?:동안|만에|간(?![가-힣])))")
_ORDINAL = re.compile(r"(?<![가-힣\d])(?P<ordinal>제)?(?P<number>\d+ ?)(?P<unit>대|회|차|기|번째|위)(?![가-힣])")
_AFTER_NUMBER = re.compile(rf"(?:으?로)?,|의 \d|의 [^,]{{1,20}} (?:{'|'.join(WORDS['among'])})(?:에서)?[ ,]")
_BEFORE_NUMBER = re.compile(r"(\d|십|백|천|만|억)(년|월|일|시|분|세기|억|만|천|대|회|위|번째)?$|^(매|각|각각)$|[~∼–-]$")


def dates(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """1443년에 -> 언제, 1998년부터 -> 언제부터"""
    for match in DATE.finditer(sentence.text):
        start, end = match.span()
        following = sentence.at(end)
        predicate = sentence.clause_predicate(following)
        is_modified = sentence.morph(sentence.at(start) - 1).tag in ("ETM", "MM", "JKG", "NNB", "XPN", "JC")
        is_part = not _begins_word(sentence, start) or _NO_DATE_BEFORE.search(sentence.word_before(start))
        if predicate is None or is_modified or is_part:
            continue
        after = sentence.morphs[following]
        head = next(head for ending, head in _HEADS if match[0].endswith(ending))
        candidate = AnswerCandidate("언제", start, end, start, end, "언제", predicate, head=head, asked="언제")
        if after.start > end:
            # Without particle: 1998년 월드컵에서 is one name, 1998년 6월 10일 월드컵에서 is not.
            is_exact = match[0].endswith("일") or (match[0].endswith("월") and not start)
            is_counted = after.tag in ("NNB", "NR", "SN", "SW") or after.form in WORDS["times"] | {"기준"}
            if is_exact and not is_counted:
                yield candidate
        elif following + 1 < len(sentence.morphs) and sentence.ends_eojeol(following):
            if (after.form, after.tag) == ("에", "JKB"):
                yield candidate._replace(last=after.end)
            elif after.form in ("부터", "까지") and after.tag == "JX":
                yield candidate._replace(last=after.end, particle=after.form, head="")


def numbers(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """12명이 -> 몇 명이, 3억 달러를 -> 얼마를, 제39대 대통령 -> 제몇 대 대통령, 16개의 소논문을 -> 몇 개의 소논문을"""
    for match in (match for pattern in (_COUNTED, _DURATION, _ORDINAL) for match in pattern.finditer(sentence.text)):
        start, end = match.span()
        following = sentence.at(end)
        predicate = sentence.clause_predicate(following)
        if predicate is None or not _stands_alone(sentence, match):
            continue
        after = sentence.morphs[following]
        if match["unit"] in WORDS["money"]:
            particle = after.form if after.tag in TAGS["cases"] else ""
            last = after.end if particle else end
            if after.start == end:
                yield AnswerCandidate("얼마", start, end, start, last, "얼마", predicate, particle)
            continue
        question_phrase = f"{match['ordinal'] or ''}몇 {match['unit']}"
        candidate = AnswerCandidate("몇", start, end, start, end, question_phrase, predicate)
        if after.form == "의" and (counted_noun := _counted_noun(sentence, following)):
            # A number can leave its place unless modified or after a bare noun (대표자 56인의 서명을).
            last, noun, particle = counted_noun
            before = sentence.morph(sentence.at(start) - 1).tag
            asked_noun = noun if before in ("", "JX", "JKS", "JKO", "JKB", "EC", "SP") else ""
            with_noun = f"{question_phrase}의 {noun}"
            candidate = AnswerCandidate(
                "몇", start, end, start, last, with_noun, predicate, particle, asked_noun, asked=question_phrase
            )
        yield candidate


def _begins_word(sentence: Sentence, start: int) -> bool:
    return start == 0 or sentence.text[start - 1] == " "


def _stands_alone(sentence: Sentence, match: re.Match[str]) -> bool:
    """Whether a number is neither part of another, nor a name (찰스 1세), nor a topic, nor bare before a noun."""
    start, end = match.span()
    unit = match["unit"]
    after = sentence.morphs[sentence.at(end)]
    before = sentence.morph(sentence.at(start) - 1)
    is_joined = after.start == end
    is_ordinal = match.re is _ORDINAL
    is_duration = match.re is _DURATION
    is_name = before.tag in ("NNP", "SL") and (is_ordinal or unit == "세" or (unit == "번" and not is_joined))
    is_topic = is_joined and (after.form, after.tag) == ("은", "JX")
    is_part = (
        not _begins_word(sentence, start)
        or _BEFORE_NUMBER.search(sentence.word_before(start))
        or sentence.text[end : end + 1] in "~∼-–"
        or _AFTER_NUMBER.match(sentence.text, end)
        or after.form in WORDS["times"] - WORDS["bare_after_number"]
    )
    if is_name or is_topic or is_part:
        return False
    if is_joined and after.tag == "VCP":
        return before.form not in WORDS["among"]  # not 주자 중 1명이다
    if is_joined:
        return after.tag in TAGS["cases"] or is_duration
    if is_ordinal and unit in ("대", "회", "번째") and after.tag in ("NNG", "NNP"):
        # 제39대 대통령
        return after.form in WORDS["persons"] if unit == "대" else not (match["ordinal"] and unit == "회")
    return is_duration or after.form in WORDS["bare_after_number"]


def _counted_noun(sentence: Sentence, genitive: int) -> tuple[int, str, str] | None:
    """After the 의 of 16개의 소논문을: (end of the particle, 소논문, 을); None if no subject or object follows."""
    stop = genitive + 1
    while sentence.morph(stop).tag in ("NNG", "NNP"):
        stop += 1
    particle = sentence.morph(stop)
    ends_eojeol = sentence.morph(stop + 1).eojeol != particle.eojeol
    if stop == genitive + 1 or particle.tag not in ("JKO", "JKS") or not ends_eojeol:
        return None
    noun = sentence.text[sentence.morphs[genitive + 1].start : sentence.morphs[stop - 1].end]
    return particle.end, noun, particle.form


def has_same_unit(word: str, text: str) -> bool:
    """Whether a text has a number with the unit that the question word (몇 명, 얼마) asks for."""
    unit = "|".join(WORDS["money"]) if word == "얼마" else re.escape(word.split("의 ")[0].split()[-1])
    return re.search(rf"\d(?:천만|백만|억|만|천|조)? ?(?:{unit})", text) is not None
