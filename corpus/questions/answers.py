"""Finds the possible answers in a sentence, and a question word for each."""

import re
from collections.abc import Iterator, Sequence

from korbert.corpus.questions.numbers import DATE, dates, numbers
from korbert.corpus.questions.sentences import AnswerCandidate, Morph, Predicate, Sentence
from korbert.corpus.questions.tables import ATTRIBUTES, CLASSES, DEFINED_AS, FRAMES, TAGS, TITLES, WORDS, QuestionFrame

_TITLE_MARKS = re.compile("[《》〈〉「」『』“”‘’\"']")
_TITLE = re.compile(r"《([^《》]+)》|〈([^〈〉]+)〉|『([^『』]+)』|「([^「」]+)」")
_NAMED = re.compile(rf"[\"'‘“]([^\"'‘“’”,]+)[\"'’”](이?라는|이?란) (?={'|'.join(WORDS['names'])})")
_PLACE = re.compile(r"..(시|군|구|섬|산|강|(?<![속온정밀])도|특별시|광역시|공항|호텔|공원|광장)$")
_COUNTED = re.compile(r"\d(명|개|년|월|일|회|위|%|m|km)?$")


def candidates(sentence: Sentence) -> list[AnswerCandidate]:
    """All possible answers in a sentence whose predicate may end a question, in a fixed order."""
    kinds = (dates, numbers, noun_phrases, titles, titled_persons, attributes, names)
    return sorted({candidate for kind in kinds for candidate in kind(sentence)})


def noun_phrases(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """Noun phrases whose verb and particle determine the question, Korean names, and names with a class noun."""
    for i, role, last, predicate in arguments(sentence):
        first = phrase_start(sentence, i - 1)
        if first is None:
            continue
        phrase = sentence.morphs[first:i]
        frame = _frame(phrase, role, predicate)
        start, end = sentence.strip_quotes(first, i)
        tag_before = sentence.morph(first - 1).tag
        if frame is None or not _is_answer(sentence.text[start:end], phrase, frame, predicate, tag_before):
            continue
        class_ = class_of(phrase) if frame.word in ("어디", "무엇", "어느 학교") else ""
        word = f"{CLASSES[class_]} {class_}" if class_ else frame.word
        head = (class_ or frame.head) if is_loose(sentence, first) else ""
        kind = frame.word.split()[0]
        is_place = kind == "어디" and (not class_ or class_ in WORDS["places"])
        asked = kind if kind == "누구" or is_place else "무엇"
        yield AnswerCandidate(kind, start, end, phrase[0].start, last, word, predicate, role, head, asked)


def _frame(phrase: Sequence[Morph], role: str, predicate: Predicate) -> QuestionFrame | None:
    """What to ask for a phrase in a role (its particle; 이 for 은)."""
    frame = FRAMES.get((role, predicate.key))
    if frame is not None or predicate.key in ("이", "하"):
        return frame
    if role in ("이", "에게", "에 의해", "과") and is_korean_name(phrase):
        head = "" if role == "에 의해" else "사람"
        return QuestionFrame(role, "누구", head)
    tags = {morph.tag for morph in phrase}
    if role == "에서" and tags == {"NNP"} and _PLACE.search("".join(morph.form for morph in phrase)):
        return QuestionFrame(role, "어디", "곳")
    last = phrase[-1]
    is_name_of_a_thing = (  # 베를린 장벽을: a name that ends in a common noun is a thing, whatever the verb
        len(phrase) >= 2
        and not tags.isdisjoint(("NNP", "SL"))
        and last.tag == "NNG"
        and len(last.form) >= 2
        and last.form not in WORDS["persons"] | WORDS["places"]
    )
    is_subject = role == "이" and (predicate.key.endswith(("되", "지")) or class_of(phrase))
    return QuestionFrame(role, "무엇", "것") if is_name_of_a_thing and (role == "을" or is_subject) else None


def _is_answer(text: str, phrase: Sequence[Morph], frame: QuestionFrame, predicate: Predicate, tag_before: str) -> bool:
    """Whether a phrase is worth asking for, and fits the frame. tag_before: of the morpheme before it."""
    last = phrase[-1]
    class_ = class_of(phrase)
    is_possessed = tag_before == "JKG"
    is_unfit = (
        _TITLE_MARKS.search(text)
        or text in CLASSES
        or last.form in WORDS["times"]
        or any(word.endswith(tuple(WORDS["inside"])) for word in text.split()[:-1])
        or (last.form in WORDS["vague"] and not class_ and frame.word != "어느 학교")
        or text.endswith("적")
        or DATE.search(text)
        or _COUNTED.search(text)
        or (tag_before and text.startswith("대한 "))
    )
    if is_unfit:
        return False
    nouns = [morph for morph in phrase if morph.tag in ("NNG", "NNP", "SL", "SN")]
    tags = {morph.tag for morph in phrase}
    match frame.word:
        case "누구":
            is_person = is_korean_name(phrase) or (last.tag == "NNP" and may_be_person(phrase))
            return is_person and not is_possessed
        case "어느 학교":
            return text.endswith(tuple(WORDS["schools"]))
        case "어디":
            is_named = last.tag in ("NNP", "SL") or class_ != ""
            is_place = is_named or (len(phrase) > 1 and last.form in WORDS["places"])
            return is_place and "SN" not in tags and not (is_possessed and phrase[0].tag == "NNG")
        case "무엇" if frame.particle != "이라고" and predicate.key not in WORDS["naming"]:
            # A thing: a name, several nouns, or at least a long one.
            is_long = len(nouns) == 1 and frame.particle == "을" and len(nouns[0].form) >= 3
            is_name = not tags.isdisjoint(("NNP", "SL", "SSC"))
            return (len(nouns) >= 2 or is_long or is_name) and phrase[0].tag != "SN"
    return True


def titles(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """영화 《기생충》을 -> 어떤 영화를; without a class noun 무엇을."""
    for match in _TITLE.finditer(sentence.text):
        i = sentence.at(match.end())
        particle = sentence.morph(i)
        is_argument = particle.start == match.end() and particle.tag in TAGS["cases"] and sentence.ends_eojeol(i)
        predicate = sentence.clause_predicate(i)
        if predicate is None or predicate.key == "이" or not is_argument:
            continue
        first = sentence.at(match.start())
        before = sentence.morph(first - 1)
        class_ = before.form if before.tag == "NNG" and CLASSES.get(before.form) == "어떤" else ""
        if class_:
            first -= 1
            is_alone = sentence.morph(first - 1).tag not in TAGS["nouns"] | {"NNB", "JC", "SP", "MM"}
        else:
            is_alone = before.tag in ("", "JX", "JKS", "JKO", "JKB", "EC", "MAG", "MAJ")
        if not is_alone or (not class_ and particle.tag in ("JKG", "JKB", "JKQ")):
            continue
        role = "이" if particle.form == "은" else particle.form
        head = (class_ or "것") if role in ("이", "을") and is_loose(sentence, first) else ""
        kind = "어떤" if class_ else "무엇"
        word = f"{kind} {class_}".strip()
        begin = sentence.morphs[first].start
        last = particle.end
        yield AnswerCandidate(
            kind, match.start() + 1, match.end() - 1, begin, last, word, predicate, role, head, "무엇"
        )


def titled_persons(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """배우 송강호가, 송강호 배우가 -> 어느 배우가"""
    morphs = sentence.morphs
    for i, role, last, predicate in arguments(sentence):
        title = i - 1
        if morphs[title].form in TITLES and is_korean_name(morphs[max(title - 1, 0) : title]):
            first = title - 1
            name = morphs[first:title]
        else:
            while title > 0 and morphs[title].tag == "NNP":
                title -= 1
            first = title
            name = morphs[title + 1 : i]
            if not name or morphs[title].form not in TITLES or morphs[title].eojeol == name[0].eojeol:
                continue
        if sentence.morph(first - 1).tag in ("", "JKB", "JX", "JKS", "JKO", "JKG", "EC", "MAG"):
            head = morphs[title].form if role in ("이", "을") and is_loose(sentence, first) else ""
            word = f"어느 {morphs[title].form}"
            start = name[0].start
            begin = morphs[first].start
            yield AnswerCandidate("누구", start, name[-1].end, begin, last, word, predicate, role, head, asked="누구")


def attributes(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """대한민국의 수도는 서울이다 -> 대한민국의 수도는 어디인가?"""
    morphs = sentence.morphs
    for predicate in sentence.predicates:
        i = predicate.root
        before = sentence.morph(i - 1)
        is_fused = morphs[i].start < before.end or morphs[i].start == morphs[i].end  # 루블린이지만: read as 루블린이
        is_copula = morphs[i].tag == "VCP" and before.tag in TAGS["nouns"] and not is_fused
        first = phrase_start(sentence, i - 1) if i > 2 and is_copula and sentence.may_end(predicate) else None
        if first is None or first < 2 or not sentence.is_topic(first - 1):
            continue
        attribute = morphs[first - 2].form
        phrase = morphs[first:i]
        word = ATTRIBUTES.get(attribute)
        start, end = sentence.strip_quotes(first, i)
        text = sentence.text[start:end]
        is_unfit = (
            _TITLE_MARKS.search(text)
            or DATE.search(text)
            or (word == "누구" and not is_korean_name(phrase) and not may_be_person(phrase))
            or phrase[-1].form in WORDS["vague"]
            or phrase[-1].form == attribute
            or text.endswith("적")
        )
        if word is not None and not is_unfit:
            yield AnswerCandidate(word, start, end, phrase[0].start, phrase[-1].end, word, predicate)


def names(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """'토이'라는 이름으로 -> 무엇이라는 이름으로"""
    for match in _NAMED.finditer(sentence.text):
        i = sentence.at(match.end())
        before = sentence.morph(sentence.at(match.start()) - 1)
        predicate = sentence.clause_predicate(i)
        is_alone = before.tag in ("", "JX", "JKS", "JKO", "JKB", "EC", "MAG")
        if predicate is not None and is_alone and sentence.morphs[i].tag[0] == "J":
            yield AnswerCandidate("무엇", *match.span(1), match.start(), match.end(2), "무엇이라는", predicate)


def definitions(sentence: Sentence) -> Iterator[AnswerCandidate]:
    """The name that a sentence defines: 서울은 …의 수도이다 -> …의 수도는 어디인가?"""
    morphs = sentence.morphs
    last = sentence.predicates[-1]
    head = sentence.morph(last.root - 1)
    topic = next((i for i in range(1, last.root) if sentence.is_topic(i)), None)
    is_definition = (
        last.root >= 2
        and morphs[last.root].tag == "VCP"
        and head.tag in ("NNG", "XSN")
        and head.form not in WORDS["no_definition"]
        and not head.form.endswith("적")
        and all(predicate.kind != "EC" for predicate in sentence.predicates)
        and all(morph.tag in TAGS["name_parts"] for morph in morphs[:topic])
    )
    if topic is not None and is_definition:
        noun = head.form if head.tag == "NNG" else morphs[last.root - 2].form + head.form
        is_person = head.tag == "XSN" and head.form in ("인", "자", "가")
        word = "누구" if is_person else DEFINED_AS.get(noun, "무엇")
        start, end = sentence.strip_quotes(0, topic)
        yield AnswerCandidate(word, start, end, morphs[0].start, morphs[topic].end, word, last, is_definition=True)


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
