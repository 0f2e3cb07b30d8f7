"""Rejects questions that depend on another sentence, or change the meaning of their sentence."""

from collections.abc import Sequence

from korbert.corpus.questions import tables
from korbert.corpus.questions.phrases import Candidate
from korbert.corpus.questions.sentences import Morph, Predicate, Sentence
from korbert.corpus.questions.topics import is_named

CONTENT = tables.words("NNG NNP SL SH SN XR VV VA QT")  # tags of content words
_NAMES = tables.words("NNP SL SH SSC")  # tags of names
_MIN_CONTENT = 2  # besides a subject that is asked for
_MIN_COMMON = 5  # common nouns in a question without any name
_MIN_NOUNS = 4  # around a subject that is asked for, where none is a name
_SPECIFIC = tables.words("ETM NNG NNP NNB JKG SN XSN SL SSC")  # behind these 당시 is when something was
_PLACED = tables.TIMES | {"위", "다음", "이상", "이하", "중", "동"}
_ALIKE = ("같", "다르", "이렇", "그렇", "이러하", "그러하")
_OWN = tables.words("자신 자기 스스로")
_MARKUP = tables.words("Z_CODA W_URL W_EMAIL W_HASHTAG W_MENTION UN SB")


class Refused(Exception):
    """The reason why no question is made, in snake_case."""


def subject_of(sentence: Sentence, begin: int, predicate: Predicate) -> int | None:
    """The particle of the subject of a clause from morpheme `begin`, or of its topic; None where it has neither."""
    subjects = sentence.own("JKS", begin, predicate)
    return next((i for i in range(begin, predicate.root) if sentence.is_topic(i) or i in subjects), None)


def check_words(kept: Sequence[Morph]) -> None:
    """Refuses words that refer to another sentence (그, 이 영화, 당시, X도), and markup."""
    for before, morph in zip((None, *kept), kept, strict=False):
        if morph.tag == "NP" and morph.form not in _OWN:
            raise Refused("pronoun")
        if morph.tag in _MARKUP or morph.form.startswith("formula"):
            raise Refused("markup")
        points = (morph.tag == "MM" and morph.form not in tables.MODIFIERS) or (morph.form, morph.tag) == ("도", "JX")
        if morph.tag in ("MAG", "MAJ", "NNG", "NNB") and morph.form in tables.DEICTIC:
            points = morph.form not in _PLACED or before is None or before.tag not in _SPECIFIC
        if morph.tag in ("VA", "XSA") and morph.form in _ALIKE:
            points = before is None or before.form != "과"
        if points:
            raise Refused("deictic")


def check_predicate(sentence: Sentence, predicate: Predicate) -> None:
    """Refuses denials, guesses, and a clause inside what somebody said (…했고 …했다고 주장한다)."""
    morphs = sentence.morphs[max(predicate.root - 1, 0) : predicate.stop]
    if any(morph.form in tables.NEGATIVE and morph.tag in ("VX", "VCN", "VA", "VV", "MAG") for morph in morphs):
        raise Refused("negated")
    if any(morph.form == "겠" for morph in morphs):
        raise Refused("conjecture")
    rest = sentence.morphs[predicate.stop :]
    if any(morph.form in tables.QUOTATIVE and morph.tag in ("EC", "JKQ") for morph in rest):
        raise Refused("quoted_clause")


def check_clause(sentence: Sentence, candidate: Candidate, kept: Sequence[Morph], begin: int, carried: int) -> None:
    """Refuses a question with more or less than its verb needs, or without a named subject.

    kept: the morphemes of the question, without answer and predicate. begin, carried: see drafts.Draft.
    """
    morphs, predicate = sentence.morphs, candidate.predicate
    if sum((morph.form, morph.tag) == ("은", "JX") for morph in kept) > 1:
        raise Refused("two_topics")
    if len(sentence.own("JKO", begin, predicate)) > 1:
        raise Refused("two_objects")
    if candidate.kind != "언제" and sentence.text[candidate.last : candidate.last + 1] == ",":
        raise Refused("comma")
    subject = carried - 1 if carried else subject_of(sentence, begin, predicate)
    if subject is None:
        raise Refused("no_subject")

    subjects = sentence.own("JKS", begin, predicate)
    has_object = candidate.particle == "을" or any(sentence.is_object(i) for i in range(begin, predicate.root))
    is_transitive = predicate.key in tables.TRANSITIVE or predicate.key.endswith("시키")
    if is_transitive and not has_object and (not subjects or subject in subjects):  # 주연은 송강호가: an object
        raise Refused("no_object")
    following = sentence.predicate_after(predicate.stop)
    is_relative = following is not None and following.kind == "ETM"  # 만들고 연출한 영화: a clause of 영화
    is_past = morphs[predicate.stop - 2].tag == "EP"
    if is_relative and (subject in subjects or not is_past or morphs[predicate.stop].tag != "SP"):
        raise Refused("in_relative_clause")
    asks_subject = candidate.first <= morphs[subject].start < candidate.last
    if len(subjects) > 1 or (asks_subject and any(i != subject for i in subjects)):
        raise Refused("two_subjects")
    _check_names(sentence, predicate, kept, 0 if carried else begin, subject, asks_subject)


def _check_names(
    sentence: Sentence, predicate: Predicate, kept: Sequence[Morph], begin: int, subject: int, asks_subject: bool
) -> None:
    """Refuses a clause from morpheme `begin` whose subject is not named, or that says too little beside it."""
    has_name = any(morph.tag in _NAMES for morph in kept)
    if asks_subject:
        is_clear = has_name or sum(morph.tag == "NNG" for morph in kept) >= _MIN_NOUNS
    else:
        # The noun phrase before the particle of the subject, with the clauses that modify it.
        first, is_modified = subject, False
        for i in range(subject - 1, begin - 1, -1):
            tag = sentence.morphs[i].tag
            is_modified = is_modified or tag == "ETM"
            if tag in ("EC", "SP") or (tag in ("JKB", "JKO", "JKS", "JX") and not is_modified):
                break
            first = i
        is_clear = is_named(sentence, first, subject)
    # 본명은 이대향이고, 평양에서 태어났다: another clause stands between an attribute and the predicate.
    is_attribute = sentence.morphs[subject - 1].form in tables.ATTRIBUTES
    clauses = [clause for clause in sentence.predicates if clause.kind == "EC" and clause.stop <= predicate.root]
    if not is_clear or (is_attribute and any(subject < clause.root for clause in clauses)):
        raise Refused("vague_subject")
    if not has_name and sum(morph.tag in ("NNG", "SN") for morph in kept) < _MIN_COMMON:
        raise Refused("vague_subject")
    if asks_subject and sum(morph.tag in CONTENT for morph in kept) < _MIN_CONTENT:
        raise Refused("too_little_said")
