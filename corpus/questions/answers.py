"""Finds the possible answers in a sentence, and a question word for each."""

import re
from collections.abc import Iterator, Sequence

from korbert.corpus.questions import phrases, tables
from korbert.corpus.questions.numbers import DATE, dates, numbers
from korbert.corpus.questions.phrases import Candidate
from korbert.corpus.questions.sentences import NOUNS, Morph, Predicate, Sentence

_MARKS = "《》〈〉「」『』“”‘’\"'"
_TITLE = re.compile(r"《([^《》]+)》|〈([^〈〉]+)〉|『([^『』]+)』|「([^「」]+)」")
_NAMED = re.compile(rf"[\"'‘“]([^\"'‘“’”,]+)[\"'’”](이?라는|이?란) (?={'|'.join(tables.NAMES)})")
_PLACE = re.compile(r"..(시|군|구|섬|산|강|(?<![속온정밀])도|특별시|광역시|공항|호텔|공원|광장)$")
_SCHOOLS = ("학교", "대학", "대학원", "학원")
_INSIDE = ("에", "에서", "을", "를", "으로", "에게")
_COUNTED = re.compile(r"\d(명|개|년|월|일|회|위|%|m|km)?$")
_BY_VERB: dict[tuple[str, str], tables.Frame] = {
    (frame.particle, verb): frame for frame in reversed(tables.FRAMES) for verb in frame.verbs.split()
}


def candidates(sentence: Sentence) -> list[Candidate]:
    """All possible answers in a sentence whose predicate may end a question, in a fixed order."""
    kinds = (dates, numbers, noun_phrases, titles, titled_persons, attributes, names)
    return sorted({candidate for kind in kinds for candidate in kind(sentence)})


def noun_phrases(sentence: Sentence) -> Iterator[Candidate]:
    """Noun phrases whose verb and particle determine the question, Korean names, and names with a class noun."""
    for i, role, last in phrases.arguments(sentence):
        predicate = sentence.clause_predicate(i + 1)
        first = phrases.phrase_start(sentence, i - 1)
        if predicate is None or first is None:
            continue
        phrase = sentence.morphs[first:i]
        frame = _frame(phrase, role, predicate)
        if frame is None:
            continue
        start, end = sentence.unquoted(first, i)
        if not _is_answer(sentence.text[start:end], phrase, frame, predicate, sentence.tag_before(first)):
            continue
        word, head = frame.word, frame.head
        class_ = phrases.class_of(phrase) if word in ("어디", "무엇", "어느 학교") else ""
        if class_:
            word, head = f"{tables.CLASSES[class_]} {class_}", class_
        kind = frame.word.split()[0]
        asked = kind if kind == "누구" or (kind == "어디" and (not class_ or class_ in tables.PLACES)) else "무엇"
        head = head if phrases.is_loose(sentence, first) else ""
        yield Candidate(kind, start, end, phrase[0].start, last, word, predicate, role, head, asked)


def _frame(phrase: Sequence[Morph], role: str, predicate: Predicate) -> tables.Frame | None:
    """What to ask for a phrase in a role (its particle; 이 for 은)."""
    if (frame := _BY_VERB.get((role, predicate.key))) is not None:
        return frame
    if predicate.key in ("이", "하"):
        return None
    if role in ("이", "에게", "에 의해", "과") and phrases.is_korean_name(phrase):
        return tables.Frame(role, "누구", "" if role == "에 의해" else "사람")
    tags = {morph.tag for morph in phrase}
    if role == "에서" and tags == {"NNP"} and _PLACE.search("".join(morph.form for morph in phrase)):
        return tables.Frame(role, "어디", "곳")
    # 베를린 장벽을: a name that ends in a common noun is a thing, whatever the verb.
    last = phrase[-1]
    if len(phrase) < 2 or tags.isdisjoint(("NNP", "SL")) or last.tag != "NNG":
        return None
    if len(last.form) < 2 or last.form in tables.PERSONS | tables.PLACES:
        return None
    if role == "을" or (role == "이" and (predicate.key.endswith(("되", "지")) or phrases.class_of(phrase))):
        return tables.Frame(role, "무엇", "것")
    return None


def _is_answer(text: str, phrase: Sequence[Morph], frame: tables.Frame, predicate: Predicate, tag_before: str) -> bool:
    """Whether a phrase is worth asking for, and fits the frame. tag_before: of the morpheme before it."""
    last, possessed, tags = phrase[-1], tag_before == "JKG", [morph.tag for morph in phrase]
    if any(mark in text for mark in _MARKS) or text in tables.CLASSES or last.form in tables.TIMES:
        return False
    if any(word.endswith(_INSIDE) for word in text.split()[:-1]):  # Kiwi took a particle for a part of a name
        return False
    if last.form in tables.VAGUE and not phrases.class_of(phrase) and frame.word != "어느 학교":
        return False
    if text.endswith("적") or DATE.search(text) or _COUNTED.search(text) or (tag_before and text.startswith("대한 ")):
        return False
    if frame.word == "누구":
        is_person = phrases.is_korean_name(phrase) or (last.tag == "NNP" and phrases.may_be_person(phrase))
        return is_person and not possessed
    if frame.word == "어느 학교":
        return text.endswith(_SCHOOLS)
    if frame.word == "어디":
        is_named = last.tag in ("NNP", "SL") or bool(phrases.class_of(phrase))
        is_place = is_named or (len(phrase) > 1 and last.form in tables.PLACES)
        return "SN" not in tags and is_place and not (possessed and phrase[0].tag == "NNG")
    if frame.word != "무엇" or frame.particle == "이라고" or predicate.key in tables.NAMING:
        return True
    # A thing: a name, several nouns, or at least a long one.
    nouns = [morph for morph in phrase if morph.tag in ("NNG", "NNP", "SL", "SN")]
    is_long = len(nouns) == 1 and frame.particle == "을" and len(nouns[0].form) >= 3
    is_name = not {"NNP", "SL", "SSC"}.isdisjoint(tags)
    return (len(nouns) >= 2 or is_long or is_name) and phrase[0].tag != "SN"


def titles(sentence: Sentence) -> Iterator[Candidate]:
    """영화 《기생충》을 -> 어떤 영화를; without a class noun 무엇을."""
    morphs = sentence.morphs
    for match in _TITLE.finditer(sentence.text):
        i, first = sentence.at(match.end()), sentence.at(match.start())
        if i >= len(morphs) or morphs[i].start != match.end() or morphs[i].tag not in phrases.CASES:
            continue
        predicate = sentence.clause_predicate(i)
        if predicate is None or predicate.key == "이" or not sentence.ends_eojeol(i):
            continue
        class_ = morphs[first - 1].form if sentence.tag_before(first) == "NNG" else ""
        if tables.CLASSES.get(class_) == "어떤":
            first -= 1
            if sentence.tag_before(first) in (*NOUNS, "NNB", "JC", "SP", "MM"):
                continue
        else:
            class_ = ""
            if sentence.tag_before(first) not in ("", "JX", "JKS", "JKO", "JKB", "EC", "MAG", "MAJ"):
                continue
            if morphs[i].tag in ("JKG", "JKB", "JKQ"):
                continue
        role = "이" if morphs[i].form == "은" else morphs[i].form
        head = (class_ or "것") if role in ("이", "을") and phrases.is_loose(sentence, first) else ""
        word, kind = (f"어떤 {class_}", "어떤") if class_ else ("무엇", "무엇")
        start, end = match.start() + 1, match.end() - 1
        yield Candidate(kind, start, end, morphs[first].start, morphs[i].end, word, predicate, role, head, asked="무엇")


def titled_persons(sentence: Sentence) -> Iterator[Candidate]:
    """배우 송강호가, 송강호 배우가 -> 어느 배우가"""
    morphs = sentence.morphs
    for i, role, last in phrases.arguments(sentence):
        predicate = sentence.clause_predicate(i + 1)
        if predicate is None:
            continue
        if morphs[i - 1].form in tables.TITLES and i > 1 and phrases.is_korean_name([morphs[i - 2]]):
            first, title, start, end = i - 2, morphs[i - 1].form, morphs[i - 2].start, morphs[i - 2].end
        else:
            first = i - 1
            while first > 0 and morphs[first].tag == "NNP":
                first -= 1
            title = morphs[first].form
            if first == i - 1 or title not in tables.TITLES or morphs[first].eojeol == morphs[first + 1].eojeol:
                continue
            start, end = morphs[first + 1].start, morphs[i - 1].end
        if sentence.tag_before(first) not in ("", "JKB", "JX", "JKS", "JKO", "JKG", "EC", "MAG"):
            continue
        head = title if role in ("이", "을") and phrases.is_loose(sentence, first) else ""
        yield Candidate(
            "누구", start, end, morphs[first].start, last, f"어느 {title}", predicate, role, head, asked="누구"
        )


def attributes(sentence: Sentence) -> Iterator[Candidate]:
    """대한민국의 수도는 서울이다 -> 대한민국의 수도는 어디인가?"""
    morphs = sentence.morphs
    for predicate in sentence.predicates:
        i = predicate.root
        if morphs[i].tag != "VCP" or i < 3 or not sentence.may_end(predicate) or morphs[i - 1].tag not in NOUNS:
            continue
        if morphs[i].start < morphs[i - 1].end or morphs[i].start == morphs[i].end:  # 루블린이지만: read as 루블린이
            continue
        first = phrases.phrase_start(sentence, i - 1)
        if first is None or first < 2 or not sentence.is_topic(first - 1):
            continue
        attribute, phrase = morphs[first - 2].form, morphs[first:i]
        word = tables.ATTRIBUTES.get(attribute)
        start, end = sentence.unquoted(first, i)
        text = sentence.text[start:end]
        if word is None or any(mark in text for mark in _MARKS) or DATE.search(text):
            continue
        if word == "누구" and not (phrases.is_korean_name(phrase) or phrases.may_be_person(phrase)):
            continue
        if phrase[-1].form not in tables.VAGUE and phrase[-1].form != attribute and not text.endswith("적"):
            yield Candidate(word, start, end, phrase[0].start, phrase[-1].end, word, predicate)


def names(sentence: Sentence) -> Iterator[Candidate]:
    """'토이'라는 이름으로 -> 무엇이라는 이름으로"""
    for match in _NAMED.finditer(sentence.text):
        i, first = sentence.at(match.end()), sentence.at(match.start())
        predicate = sentence.clause_predicate(i)
        if predicate is None or i >= len(sentence.morphs) or sentence.morphs[i].tag[0] != "J":
            continue
        if sentence.tag_before(first) in ("", "JX", "JKS", "JKO", "JKB", "EC", "MAG"):
            yield Candidate("무엇", *match.span(1), match.start(), match.end(2), "무엇이라는", predicate)
