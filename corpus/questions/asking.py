"""An answer of a sentence -> the question for it.

1. The clause of the answer is selected; a clause before it is left out if the topic can be carried over.
2. The question word takes the answer's place (세종은 언제 한글을 만들었는가?), or the answer moves to
   the end (세종이 한글을 만든 때는 언제인가?).
3. The verb may become another of the same meaning; Kiwi conjugates it.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from korbert.corpus.questions.drafts import Draft, draft_question
from korbert.corpus.questions.numbers import DATE, has_same_unit
from korbert.corpus.questions.sentences import AnswerCandidate, Morph, Predicate, Sentence
from korbert.corpus.questions.tables import ATTRIBUTES, COPULA, INTERROGATIVE, SYNONYMS, TAGS, TRANSITIVE, WORDS
from korbert.corpus.questions.topics import is_named
from korbert.tokenization import Analyzer

_ONLY_GAPS = 0.3  # share that is kept of questions that leave out only the answer
_MOVES_ANSWER = 0.5  # how often, if it is possible
_CHANGES_VERB = 0.5
_MIN_CONTENT = 5  # content words in a definition specific enough for one thing; one less with 최초 and the like
_MIN_SAID = 2  # content words, not counting a subject that is asked for
_MIN_COMMON = 5  # common nouns in a question without any name
_MIN_NOUNS = 4  # around a subject that is asked for, if none is a name
_PLACED = WORDS["times"] | WORDS["placed"]

_CONTRACTED = (("하였", "했"), ("되었", "됐"), ("하여", "해"), ("되어", "돼"), ("이었", "였"), (" ", ""))
_PARTICLE_TAGS = {"이": "JKS", "을": "JKO", "은": "JX", "의": "JKG", "이라고": "JKQ"}  # JKB otherwise
_PAST = ("었", "EP")

Stem = list[tuple[str, str]]  # form and tag of each morpheme of a predicate, without its ending


class Refused(Exception):
    """The reason why no question is made, in snake_case."""


def refuse_if(holds: object, reason: str) -> None:
    """Raises Refused if the condition holds."""
    if holds:
        raise Refused(reason)


def ask(sentence: Sentence, candidate: AnswerCandidate, analyzer: Analyzer, rng: np.random.Generator) -> str:
    """The question. Raises Refused if no good one comes of it."""
    if candidate.is_definition:
        return _ask_definition(sentence, candidate, analyzer)
    check_predicate(sentence, candidate.predicate)
    stem = _stem(sentence, candidate.predicate, analyzer)
    draft = draft_question(sentence, candidate, rng)
    refuse_if(draft.fills_the_only_gap and rng.random() >= _ONLY_GAPS, "only_gap")
    check_words(draft.kept)
    check_clause(draft)

    is_serial = any(tag == "VX" and form not in ("있", "지") for form, tag in stem)  # 이주해 나가
    synonym = None if is_serial else SYNONYMS.get(candidate.predicate.key)
    changes_verb = synonym is not None and rng.random() < _CHANGES_VERB
    moves_answer = draft.can_move and rng.random() < _MOVES_ANSWER
    if draft.is_close and not moves_answer and not changes_verb:
        moves_answer = draft.can_move
        changes_verb = not moves_answer and synonym is not None
        refuse_if(not moves_answer and not changes_verb, "too_close")
    if changes_verb and synonym is not None:
        is_simple = sentence.morphs[candidate.predicate.root].tag in ("VV", "VA")
        stem = [(synonym, "VV"), *stem[1 if is_simple else 2 :]]
    register = sentence.register or "plain"
    if moves_answer:
        text = _tidy(_with_answer_moved(draft, stem, register, analyzer))
    else:
        text = _tidy(_in_place(draft, stem, register, analyzer, rng))

    refuse_if(candidate.kind == "언제" and DATE.search(text), "another_date")
    is_number = candidate.kind in ("몇", "얼마")
    refuse_if(is_number and has_same_unit(candidate.asked or candidate.word, text), "another_number")
    return text


def _tidy(text: str) -> str:
    """The question with single spaces and a question mark."""
    text = re.sub(r"\s+", " ", text).strip(" ,")
    return re.sub(r" ([,?])", r"\1", text) + "?"


def _stem(sentence: Sentence, predicate: Predicate, analyzer: Analyzer) -> Stem:
    """The predicate without its ending; 만들고 (... 반포하였다) gets the past of the next predicate that has one.

    Refused if Kiwi would not write the predicate as the sentence does.
    """
    morphs = sentence.morphs[predicate.root : predicate.stop]
    tagged = [(morph.form, morph.full_tag) for morph in morphs]
    spellings = [analyzer.join(tagged), sentence.text[morphs[0].start : morphs[-1].end]]
    for long, short in _CONTRACTED:
        spellings = [spelling.replace(long, short) for spelling in spellings]
    refuse_if(morphs[0].tag != "VCP" and spellings[0] != spellings[1], "conjugation")
    stem = tagged[:-1]
    for other in sentence.predicates[sentence.predicates.index(predicate) :]:
        markers = [morph.form for morph in sentence.morphs[other.root : other.stop] if morph.tag == "EP"]
        if other.kind == "EF" or (other.kind == "EC" and markers):
            is_past = any(form.startswith("었") for form in markers)
            return [*stem, _PAST] if is_past and other is not predicate else stem
    return stem


def _in_place(draft: Draft, stem: Stem, register: str, analyzer: Analyzer, rng: np.random.Generator) -> str:
    """세종은 언제 한글을 만들었는가"""
    candidate = draft.candidate
    # 누구 + 이 -> 누가, 어느 학교 + 을 -> 어느 학교를
    word = candidate.word
    if candidate.particle:
        *modifiers, noun = word.split(" ")
        particle, *more = candidate.particle.split(" ")
        tag = "NP" if noun in ("누구", "무엇", "어디", "언제") else "NNG"
        joined = analyzer.join([(noun, tag), (particle, _PARTICLE_TAGS.get(particle, "JKB"))])
        word = " ".join((*modifiers, joined, *more))
    before, after = draft.around()
    gap = " " if draft.sentence.text[candidate.last : candidate.last + 1] == " " else ""
    beginning = f"{before}{word}{gap}{after}"
    endings = INTERROGATIVE[register]
    verb, adjective = endings[rng.integers(len(endings))]
    if verb == "나" and stem[-1] != _PAST:  # 하나 would be read as one
        verb = "는가"
    ending = adjective if _is_adjective(stem) else verb
    if stem[0][1] == "VCP":
        return _attach_particle(analyzer, beginning, [*stem, (ending, "EF")])
    return f"{beginning}{_conjugate(analyzer, [*stem, (ending, 'EF')])}"


def _with_answer_moved(draft: Draft, stem: Stem, register: str, analyzer: Analyzer) -> str:
    """세종이 한글을 만든 때는 언제인가"""
    candidate = draft.candidate
    before, after = draft.around()
    gap = "" if before.endswith(" ") else " "
    clause = f"{before}{gap}{after}"
    # A topic inside a clause that modifies a noun is its subject.
    for noun, particle in pairwise(draft.kept):
        if (particle.form, particle.tag) == ("은", "JX") and noun.end == particle.start:
            topic = draft.sentence.text[noun.start : particle.end]
            subject = topic[:-1] + ("가" if topic.endswith("는") else "이")
            clause = clause.replace(topic, subject, 1)

    is_past = stem[-1] == _PAST
    present = stem[:-1] if is_past else stem
    is_adjective = _is_adjective(present)
    refuse_if(any(tag == "EP" for _, tag in present), "tense")
    if is_past and (present[-1][0] in ("있", "없") or is_adjective):
        relative = _conjugate(analyzer, [*stem, ("던", "ETM")])
    else:
        ending = "은" if is_past or is_adjective else "는"
        relative = _conjugate(analyzer, [*present, (ending, "ETM")])
    head = analyzer.join([(candidate.head, "NNG"), ("은", "JX")])
    return f"{clause}{relative} {head} {candidate.asked}{COPULA[register]}"


def _conjugate(analyzer: Analyzer, morphs: Stem) -> str:
    """The joined morphemes, with a space before auxiliaries."""
    spaced = [
        (form, tag, True) if form == "하" and before[0] in WORDS["before_auxiliary"] else (form, tag)
        for before, (form, tag) in pairwise([("", ""), *morphs])
    ]
    return analyzer.join(spaced)


def _attach_particle(analyzer: Analyzer, text: str, morphs: Stem) -> str:
    """The text with 은, 이다 or the like after its noun; their form depends on the last syllable before them."""
    syllable = text[-1] if "가" <= text[-1] <= "힣" else "것"
    return text + analyzer.join([(syllable, "NNG"), *morphs]).removeprefix(syllable)


def _is_adjective(stem: Stem) -> bool:
    form, tag = stem[-1]
    return tag.split("-")[0] in ("VA", "XSA", "VCP") and form not in ("있", "없", "계시")


def _ask_definition(sentence: Sentence, candidate: AnswerCandidate, analyzer: Analyzer) -> str:
    """The question that a definition answers. Raises Refused if others than the subject could fit it."""
    morphs = sentence.morphs
    predicate = candidate.predicate
    topic = sentence.at(candidate.last) - 1
    name = morphs[:topic]
    defined = morphs[topic + 1 : predicate.root]
    # 오늘날 예수회는: a name at a time
    is_timed = name[0].eojeol < morphs[topic].eojeol and any(morph.form in WORDS["times"] for morph in name)
    refuse_if(is_timed or not is_named(sentence, 0, topic), "vague_subject")
    check_words(defined)
    is_joined = any(morph.tag in ("SP", "JC") or (morph.form, morph.tag) == ("은", "JX") for morph in defined)
    refuse_if(is_joined or any(morph.form in WORDS["one_of_many"] for morph in defined), "not_the_only_one")
    is_relative = any(topic < clause.root < predicate.root and clause.kind == "ETM" for clause in sentence.predicates)
    is_unique = any(morph.form in WORDS["unique"] for morph in defined)
    has_name = any(morph.tag in ("NNP", "SL", "SN", "SSC") for morph in defined)
    num_content = sum(morph.tag in TAGS["content"] for morph in defined)
    is_specific = (is_relative or is_unique) and has_name and num_content >= _MIN_CONTENT - is_unique
    refuse_if(not is_specific, "not_the_only_one")

    question_end = candidate.word + COPULA[sentence.register or "plain"]
    if any(morph.tag == "EP" for morph in morphs[predicate.root : predicate.stop]):
        question_end = analyzer.join([(candidate.word, "NP"), ("이", "VCP"), ("었", "EP"), ("는가", "EF")])
    definition = _attach_particle(analyzer, sentence.text[defined[0].start : defined[-1].end], [("은", "JX")])
    return _tidy(f"{definition} {question_end}")


def check_words(kept: Sequence[Morph]) -> None:
    """Refuses words that refer to another sentence (그, 이 영화, 당시, X도), and markup."""
    for before, morph in zip((None, *kept), kept, strict=False):
        refuse_if(morph.tag == "NP" and morph.form not in WORDS["reflexive"], "pronoun")
        refuse_if(morph.tag in TAGS["markup"] or morph.form.startswith("formula"), "markup")
        refers = (morph.tag == "MM" and morph.form not in WORDS["modifiers"]) or (morph.form, morph.tag) == ("도", "JX")
        if morph.tag in ("MAG", "MAJ", "NNG", "NNB") and morph.form in WORDS["deictic"]:
            refers = morph.form not in _PLACED or before is None or before.tag not in TAGS["events"]
        if morph.tag in ("VA", "XSA") and morph.form in WORDS["alike"]:
            refers = before is None or before.form != "과"
        refuse_if(refers, "deictic")


def check_predicate(sentence: Sentence, predicate: Predicate) -> None:
    """Refuses denials, guesses, and a clause inside what somebody said (…했고 …했다고 주장한다)."""
    morphs = sentence.morphs[max(predicate.root - 1, 0) : predicate.stop]
    negative = [morph for morph in morphs if morph.form in WORDS["negative"]]
    refuse_if(any(morph.tag in ("VX", "VCN", "VA", "VV", "MAG") for morph in negative), "negated")
    refuse_if(any(morph.form == "겠" for morph in morphs), "conjecture")
    quotative = [morph for morph in sentence.morphs[predicate.stop :] if morph.form in WORDS["quotative"]]
    refuse_if(any(morph.tag in ("EC", "JKQ") for morph in quotative), "quoted_clause")


def check_clause(draft: Draft) -> None:
    """Refuses a question with more or less than its verb needs, without a named subject, or that says too little."""
    sentence = draft.sentence
    candidate = draft.candidate
    predicate = candidate.predicate
    is_followed_by_comma = candidate.kind != "언제" and sentence.text[candidate.last : candidate.last + 1] == ","
    refuse_if(sum((morph.form, morph.tag) == ("은", "JX") for morph in draft.kept) > 1, "two_topics")
    refuse_if(len(sentence.own("JKO", draft.begin, predicate)) > 1, "two_objects")
    refuse_if(is_followed_by_comma, "comma")
    subject = draft.carried - 1 if draft.carried else sentence.subject(draft.begin, predicate)
    if subject is None:
        raise Refused("no_subject")

    subjects = sentence.own("JKS", draft.begin, predicate)
    has_object = candidate.particle == "을" or any(sentence.is_object(i) for i in range(draft.begin, predicate.root))
    is_transitive = predicate.key in TRANSITIVE or predicate.key.endswith("시키")
    has_own_subject = not subjects or subject in subjects  # not 주연은 송강호가, where the topic is the object
    refuse_if(is_transitive and not has_object and has_own_subject, "no_object")
    following = sentence.predicate_after(predicate.stop)
    is_relative = following is not None and following.kind == "ETM"  # 만들고 연출한 영화: a clause of 영화
    is_separate = sentence.morphs[predicate.stop - 2].tag == "EP" and sentence.morph(predicate.stop).tag == "SP"
    refuse_if(is_relative and (subject in subjects or not is_separate), "in_relative_clause")
    asks_subject = candidate.first <= sentence.morphs[subject].start < candidate.last
    refuse_if(len(subjects) > 1 or (asks_subject and any(i != subject for i in subjects)), "two_subjects")

    has_name = any(morph.tag in TAGS["names"] for morph in draft.kept)
    if asks_subject:
        is_clear = has_name or sum(morph.tag == "NNG" for morph in draft.kept) >= _MIN_NOUNS
    else:
        begin = 0 if draft.carried else draft.begin
        is_clear = is_named(sentence, _subject_start(sentence, begin, subject), subject)
    # 본명은 이대향이고, 평양에서 태어났다: another clause stands between an attribute and the predicate.
    is_attribute = sentence.morphs[subject - 1].form in ATTRIBUTES
    clauses = [clause for clause in sentence.predicates if clause.kind == "EC" and clause.stop <= predicate.root]
    refuse_if(not is_clear or (is_attribute and any(subject < clause.root for clause in clauses)), "vague_subject")
    num_common = sum(morph.tag in ("NNG", "SN") for morph in draft.kept)
    refuse_if(not has_name and num_common < _MIN_COMMON, "vague_subject")
    num_content = sum(morph.tag in TAGS["content"] for morph in draft.kept)
    refuse_if(asks_subject and num_content < _MIN_SAID, "too_little_said")


def _subject_start(sentence: Sentence, begin: int, subject: int) -> int:
    """The first morpheme of the noun phrase before the particle of a subject, with the clauses that modify it."""
    is_modified = False
    for i in range(subject - 1, begin - 1, -1):
        tag = sentence.morphs[i].tag
        is_modified = is_modified or tag == "ETM"
        if tag in ("EC", "SP") or (tag in ("JKB", "JKO", "JKS", "JX") and not is_modified):
            return i + 1
    return begin
