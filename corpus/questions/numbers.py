"""Dates and numbers as answers: 언제, 몇 명, 얼마."""

import re
from collections.abc import Iterator

from korbert.corpus.questions.phrases import CASES, Candidate
from korbert.corpus.questions.sentences import Sentence
from korbert.corpus.questions.tables import BARE_AFTER_NUMBER, COUNTERS, MONEY, NATIVE, NATIVE_UNITS, PERSONS, TIMES

DATE = re.compile(
    r"(?:기원전 )?(?<!\d)(?:(?<=기원전 )\d{1,2}|\d{3,4})년(?: \d{1,2}월(?: \d{1,2}일)?)?(?![대간차도생산])"
    r"|(?<![\d년])\d{1,2}월 \d{1,2}일"
    r"|(?:기원전 )?(?<!\d)\d{1,2}세기(?: (?:초|말|중반|후반|초반|중엽))?"
    r"|(?<!\d)\d{3,4}년대(?: (?:초|말|중반|후반|초반))?"
)
_NO_DATE_BEFORE = re.compile(r"\d(년|월|세기)$|음력|양력|기원전|서기|매년|약|[~–-]$")
_HEADS = (("년", "해"), ("일", "날짜"), ("월", "때"), ("", "시기"))  # ending of a date -> … 해는 언제인가?

_DIGITS = r"(?<![\d.,~:A-Za-z-])\d[\d,.]*(?:(?:천만|백만|억|만|천|조)(?: \d[\d,.]*(?:만|천)?)?)? ?"
_NATIVE = rf"(?<![가-힣])(?:{'|'.join(sorted(NATIVE, key=len, reverse=True))}) ?(?=(?:{'|'.join(NATIVE_UNITS)}))"
_UNITS = "|".join(sorted(COUNTERS | MONEY, key=lambda unit: (-len(unit), unit)))
_COUNTED = re.compile(rf"(?P<ordinal>제)?(?P<number>{_DIGITS}|{_NATIVE})(?P<unit>{_UNITS})(?![a-z])")
_DURATION = re.compile(rf"(?P<ordinal>)(?P<number>{_DIGITS})(?P<unit>년|일|주)(?= ?(?:동안|만에|간(?![가-힣])))")
_ORDINAL = re.compile(r"(?<![가-힣\d])(?P<ordinal>제)?(?P<number>\d+ ?)(?P<unit>대|회|차|기|번째|위)(?![가-힣])")
_AMONG = ("중", "가운데")
_BEHIND_NUMBER = re.compile(rf"(?:으?로)?,|의 \d|의 [^,]{{1,20}} (?:{'|'.join(_AMONG)})(?:에서)?[ ,]")
_BEFORE_NUMBER = re.compile(r"(\d|십|백|천|만|억)(년|월|일|시|분|세기|억|만|천|대|회|위|번째)?$|^(매|각|각각)$|[~∼–-]$")


def dates(sentence: Sentence) -> Iterator[Candidate]:
    """1443년에 -> 언제, 1998년부터 -> 언제부터"""
    morphs = sentence.morphs
    for match in DATE.finditer(sentence.text):
        start, end = match.span()
        following = sentence.at(end)
        predicate = sentence.clause_predicate(following)
        if predicate is None or following == len(morphs) or sentence.text[max(start - 1, 0) : start] not in ("", " "):
            continue
        # Neither part of another date nor modified by what stands before it.
        is_modified = sentence.tag_before(sentence.at(start)) in ("ETM", "MM", "JKG", "NNB", "XPN", "JC")
        if is_modified or _NO_DATE_BEFORE.search(sentence.word_before(start)):
            continue

        after = morphs[following]
        head = next(head for ending, head in _HEADS if match[0].endswith(ending))
        candidate = Candidate("언제", start, end, start, end, "언제", predicate, head=head, asked="언제")
        if after.start == end:
            if following + 1 == len(morphs) or not sentence.ends_eojeol(following):
                continue
            if (after.form, after.tag) == ("에", "JKB"):
                yield candidate._replace(last=after.end)
            elif after.form in ("부터", "까지") and after.tag == "JX":
                yield candidate._replace(last=after.end, particle=after.form, head="")
            continue
        # Without particle: 1998년 월드컵에서 is one name, 1998년 6월 10일 월드컵에서 is not.
        exact = match[0].endswith("일") or (match[0].endswith("월") and not start)
        if exact and after.tag not in ("NNB", "NR", "SN", "SW") and after.form not in TIMES and after.form != "기준":
            yield candidate


def numbers(sentence: Sentence) -> Iterator[Candidate]:
    """12명이 -> 몇 명이, 3억 달러를 -> 얼마를, 제39대 대통령 -> 제몇 대 대통령, 16개의 소논문을 -> 몇 개의 소논문을"""
    for match in (match for pattern in (_COUNTED, _DURATION, _ORDINAL) for match in pattern.finditer(sentence.text)):
        start, end = match.span()
        following = sentence.at(end)
        predicate = sentence.clause_predicate(following)
        if predicate is None or following == len(sentence.morphs) or not _stands_alone(sentence, match):
            continue
        after = sentence.morphs[following]
        if match["unit"] in MONEY:
            candidate = Candidate("얼마", start, end, start, end, "얼마", predicate)
            if after.start == end and after.tag in CASES:
                candidate = candidate._replace(last=after.end, particle=after.form)
            if after.start == end:
                yield candidate
            continue
        word = f"{match['ordinal'] or ''}몇 {match['unit']}"
        candidate = Candidate("몇", start, end, start, end, word, predicate)
        if after.form == "의" and (counted := _counted(sentence, following)):
            # A number can leave its place unless modified or after a bare noun (대표자 56인의 서명을).
            before = sentence.morphs[sentence.at(start) - 1].tag if start else ""
            last, noun, particle = counted
            candidate = candidate._replace(
                last=last,
                word=f"{word}의 {noun}",
                particle=particle,
                head=noun if before in ("", "JX", "JKS", "JKO", "JKB", "EC", "SP") else "",
                asked=word,
            )
        yield candidate


def _stands_alone(sentence: Sentence, match: re.Match[str]) -> bool:
    """Whether a number is neither part of another, nor a name (찰스 1세), nor a topic, nor bare before a noun."""
    start, end = match.span()
    text, unit = sentence.text, match["unit"]
    after, before = sentence.morphs[sentence.at(end)], sentence.morphs[sentence.at(start) - 1] if start else None
    joined = after.start == end
    if text[max(start - 1, 0) : start] not in ("", " ") or _BEFORE_NUMBER.search(sentence.word_before(start)):
        return False
    if text[end : end + 1] in "~∼-–" or _BEHIND_NUMBER.match(text, end):
        return False
    if (joined and (after.form, after.tag) == ("은", "JX")) or after.form in TIMES - BARE_AFTER_NUMBER:
        return False
    named = before is not None and before.tag in ("NNP", "SL")
    if named and (match.re is _ORDINAL or unit == "세" or (unit == "번" and not joined)):
        return False
    if joined and after.tag == "VCP":
        return before is None or before.form not in _AMONG  # not 주자 중 1명이다
    if joined:
        return after.tag in CASES or match.re is _DURATION
    if match.re is _ORDINAL and unit in ("대", "회", "번째") and after.tag in ("NNG", "NNP"):
        return after.form in PERSONS if unit == "대" else not (match["ordinal"] and unit == "회")  # 제39대 대통령
    return match.re is _DURATION or after.form in BARE_AFTER_NUMBER


def _counted(sentence: Sentence, genitive: int) -> tuple[int, str, str] | None:
    """Behind the 의 of 16개의 소논문을: (end of the particle, 소논문, 을); None for no plain subject or object."""
    morphs = sentence.morphs
    stop = genitive + 1
    while stop < len(morphs) and morphs[stop].tag in ("NNG", "NNP"):
        stop += 1
    if stop == genitive + 1 or stop >= len(morphs) or morphs[stop].tag not in ("JKO", "JKS"):
        return None
    if stop + 1 < len(morphs) and morphs[stop + 1].eojeol == morphs[stop].eojeol:
        return None
    return morphs[stop].end, sentence.text[morphs[genitive + 1].start : morphs[stop - 1].end], morphs[stop].form


def has_same_unit(word: str, text: str) -> bool:
    """Whether a text has another number of what 몇 명, 얼마 ask for."""
    unit = "|".join(sorted(MONEY)) if word == "얼마" else re.escape(word.split("의 ")[0].split()[-1])
    return re.search(rf"\d(?:천만|백만|억|만|천|조)? ?(?:{unit})", text) is not None
