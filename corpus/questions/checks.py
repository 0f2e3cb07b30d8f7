"""Rejects questions that depend on another sentence, or change the meaning of their sentence."""

from collections.abc import Sequence

from corpus.questions.nouns import ATTRIBUTES, DEICTIC, MODIFIERS, TIMES, words
from corpus.questions.phrases import Candidate
from corpus.questions.sentences import Morph, Predicate, Sentence
from corpus.questions.topics import is_named
from corpus.questions.verbs import NEGATIVE, QUOTATIVE, TRANSITIVE

__all__ = ["CONTENT", "Refused", "check_clause", "check_predicate", "check_words", "subject_of"]

CONTENT = words("NNG NNP SL SH SN XR VV VA QT")  # tags of content words
_MIN_CONTENT = 2  # besides a subject that is asked for
_MIN_COMMON = 5  # common nouns in a question without any name
_MIN_NOUNS = 4  # around a subject that is asked for, where none is a name
_SPECIFIC = words("ETM NNG NNP NNB JKG SN XSN SL SSC")  # behind these 당시 is when something was
_PLACED = TIMES | {"위", "다음", "이상", "이하", "중", "동"}
_ALIKE = ("같", "다르", "이렇", "그렇", "이러하", "그러하")
_OWN = words("자신 자기 스스로")
_MARKUP = words("Z_CODA W_URL W_EMAIL W_HASHTAG W_MENTION UN SB")


class Refused(Exception):
    """The reason why no question is made, in snake_case."""


def subject_of(sentence: Sentence, begin: int, predicate: Predicate) -> int | None:
    """The particle of the subject of a clause from morpheme `begin`, or of its topic; None where it has neither."""
    for i in range(begin, predicate.root):
        if sentence.is_topic(i):
            return i
        if sentence.morphs[i].tag == "JKS" and sentence.predicate_after(i) == predicate:
            return i
    return None


def check_words(kept: Sequence[Morph]) -> None:
    """Refuses words that refer to another sentence (그, 이 영화, 당시, X도), and markup."""
    for k, one in enumerate(kept):
        before = kept[k - 1] if k else None
        if one.tag == "NP" and one.form not in _OWN:
            raise Refused("pronoun")
        if one.tag in _MARKUP or one.form.startswith("formula"):
            raise Refused("markup")
        points = (one.tag == "MM" and one.form not in MODIFIERS) or (one.tag == "JX" and one.form == "도")
        if one.tag in ("MAG", "MAJ", "NNG", "NNB") and one.form in DEICTIC:
            points = one.form not in _PLACED or before is None or before.tag not in _SPECIFIC
        if one.tag in ("VA", "XSA") and one.form in _ALIKE:
            points = before is None or before.form != "과"
        if points:
            raise Refused("deictic")


def check_predicate(sentence: Sentence, predicate: Predicate) -> None:
    """Refuses denials, guesses, and a clause inside what somebody said (…했고 …했다고 주장한다)."""
    morphs = sentence.morphs[max(predicate.root - 1, 0) : predicate.stop]
    if any(one.form in NEGATIVE and one.tag in ("VX", "VCN", "VA", "VV", "MAG") for one in morphs):
        raise Refused("negated")
    if any(one.form == "겠" for one in morphs):
        raise Refused("conjecture")
    if any(one.form in QUOTATIVE and one.tag in ("EC", "JKQ") for one in sentence.morphs[predicate.stop :]):
        raise Refused("quoted_clause")


def check_clause(sentence: Sentence, candidate: Candidate, kept: Sequence[Morph], begin: int, carried: int) -> None:
    """Refuses a question without a named subject, or with more or less than its verb needs.

    kept: the morphemes of the question, without answer and predicate. begin, carried: see drafts.Draft.
    """
    predicate = candidate.predicate
    if sum(one.tag == "JX" and one.form == "은" for one in kept) > 1:
        raise Refused("two_topics")
    objects = [i for i in range(begin, predicate.root) if sentence.morphs[i].tag == "JKO"]
    if sum(sentence.predicate_after(i) == predicate for i in objects) > 1:
        raise Refused("two_objects")
    if candidate.kind != "언제" and sentence.text[candidate.last : candidate.last + 1] == ",":
        raise Refused("comma")
    subject = carried - 1 if carried else subject_of(sentence, begin, predicate)
    if subject is None:
        raise Refused("no_subject")

    own = [i for i in range(begin, predicate.root) if sentence.morphs[i].tag == "JKS"]
    own = [i for i in own if sentence.predicate_after(i) == predicate]
    has_object = candidate.particle == "을" or any(sentence.is_object(i) for i in objects)
    transitive = predicate.key in TRANSITIVE or predicate.key.endswith("시키")
    if transitive and not has_object and (not own or subject in own):  # 주연은 송강호가: an object
        raise Refused("no_object")
    following = sentence.predicate_after(predicate.stop)
    if following is not None and following.kind == "ETM":  # 만들고 연출한 영화: a clause of 영화
        past = sentence.morphs[predicate.stop - 2].tag == "EP"
        if subject in own or not past or sentence.morphs[predicate.stop].tag != "SP":
            raise Refused("in_relative_clause")
    asks_subject = candidate.first <= sentence.morphs[subject].start < candidate.last
    if len(own) > 1 or (asks_subject and any(i != subject for i in own)):
        raise Refused("two_subjects")

    named = is_named(sentence, _subject_start(sentence, 0 if carried else begin, subject), subject)
    if asks_subject:
        named = any(one.tag in ("NNP", "SL", "SH", "SSC") for one in kept)
        named = named or sum(one.tag == "NNG" for one in kept) >= _MIN_NOUNS
    if not named or (
        sentence.morphs[subject - 1].form in ATTRIBUTES and _is_behind_clause(sentence, subject, predicate)
    ):
        raise Refused("vague_subject")
    has_name = any(one.tag in ("NNP", "SL", "SH", "SSC") for one in kept)
    if not has_name and sum(one.tag in ("NNG", "SN") for one in kept) < _MIN_COMMON:
        raise Refused("vague_subject")
    if asks_subject and sum(one.tag in CONTENT for one in kept) < _MIN_CONTENT:
        raise Refused("too_little_said")


def _is_behind_clause(sentence: Sentence, subject: int, predicate: Predicate) -> bool:
    """Whether another clause stands between a subject and the predicate: 본명은 이대향이고, 평양에서 태어났다."""
    return any(one.kind == "EC" and subject < one.root and one.stop <= predicate.root for one in sentence.predicates)


def _subject_start(sentence: Sentence, begin: int, subject: int) -> int:
    """Where the noun phrase begins before a subject's particle, with the clauses that modify it."""
    first, modified = subject, False
    for i in range(subject - 1, begin - 1, -1):
        tag = sentence.morphs[i].tag
        modified = modified or tag == "ETM"
        if tag in ("EC", "SP") or (tag in ("JKB", "JKO", "JKS", "JX") and not modified):
            break
        first = i
    return first
