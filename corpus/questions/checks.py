"""Rejects questions that depend on another sentence, or change the meaning of their sentence."""

from collections.abc import Sequence

from korbert.corpus.questions.drafts import Draft
from korbert.corpus.questions.sentences import Morph, Predicate, Sentence
from korbert.corpus.questions.tables import ATTRIBUTES, TAGS, TRANSITIVE, WORDS
from korbert.corpus.questions.topics import is_named

_MIN_CONTENT = 2  # content words, not counting a subject that is asked for
_MIN_COMMON = 5  # common nouns in a question without any name
_MIN_NOUNS = 4  # around a subject that is asked for, if none is a name
_PLACED = WORDS["times"] | WORDS["placed"]


class Refused(Exception):
    """The reason why no question is made, in snake_case."""


def refuse_if(holds: object, reason: str) -> None:
    """Raises Refused if the condition holds."""
    if holds:
        raise Refused(reason)


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
        is_clear = is_named(sentence, _subject_start(sentence, 0 if draft.carried else draft.begin, subject), subject)
    # 본명은 이대향이고, 평양에서 태어났다: another clause stands between an attribute and the predicate.
    is_attribute = sentence.morphs[subject - 1].form in ATTRIBUTES
    clauses = [clause for clause in sentence.predicates if clause.kind == "EC" and clause.stop <= predicate.root]
    refuse_if(not is_clear or (is_attribute and any(subject < clause.root for clause in clauses)), "vague_subject")
    num_common = sum(morph.tag in ("NNG", "SN") for morph in draft.kept)
    refuse_if(not has_name and num_common < _MIN_COMMON, "vague_subject")
    num_content = sum(morph.tag in TAGS["content"] for morph in draft.kept)
    refuse_if(asks_subject and num_content < _MIN_CONTENT, "too_little_said")


def _subject_start(sentence: Sentence, begin: int, subject: int) -> int:
    """The first morpheme of the noun phrase before the particle of a subject, with the clauses that modify it."""
    is_modified = False
    for i in range(subject - 1, begin - 1, -1):
        tag = sentence.morphs[i].tag
        is_modified = is_modified or tag == "ETM"
        if tag in ("EC", "SP") or (tag in ("JKB", "JKO", "JKS", "JX") and not is_modified):
            return i + 1
    return begin
