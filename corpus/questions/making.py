"""A paragraph -> questions on it: a pure function of the text and the seed.

Sentences are tried in an order drawn by the hash of seed and paragraph; each is analysed only when it is tried.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from korbert.corpus.questions.answers import candidates
from korbert.corpus.questions.asking import Question, ask, ask_definition
from korbert.corpus.questions.checks import Refused
from korbert.corpus.questions.sentences import Sentence, Stripped, sentence_spans, stripped
from korbert.corpus.questions.topics import in_full, opening_topic, owned
from korbert.tokenization.morphemes import analyze

_MIN_PARAGRAPH, _USUAL_PARAGRAPH, _MAX_PARAGRAPH = 150, 300, 1_500  # characters
_MIN_SENTENCE, _MAX_SENTENCE = 15, 160
_MIN_QUESTION, _MAX_QUESTION = 12, 90
_MIN_ANSWER, _MAX_ANSWER = 2, 30
_SENTENCES_BACK = 5  # in which the topic of a sentence without subject is looked for
_TRIES_DEFINITION = 0.5  # how often, before other answers of the sentence
_STATEMENT = re.compile(r"[다요죠][.]?$")
# Openings that continue the previous sentence.
_GOES_ON = ("뿐만", "그러자", "그러던", "이에 ", "이로써", "이때", "그중", "이 중")
_SCAR = re.compile(  # of markup, of what was taken out, and of sentences without a space between
    r"[《〈「『\"'“‘]\s*[》〉」』\"'”’]|[(]\s*,|&#?\w+;|formula_|https?:|[\[\]{}|=\\]|\s[.,:]"
    r"|다\.[가-힣《〈「『\"“‘]|\s[은는을를과와의] "
)


class Made(NamedTuple):
    """A question on a paragraph. start: character of the answer there. kind: the question word."""

    question: str
    answer: str
    start: int
    kind: str


def paragraphs(text: str) -> Iterator[str]:
    """The lines of a document: short ones joined up to 300 characters, those beyond 1,500 cut between sentences."""
    held = ""
    for line in map(str.strip, text.split("\n")):
        while len(line) > _MAX_PARAGRAPH:
            ends = takewhile(lambda end: end <= _MAX_PARAGRAPH, (end for _, end in sentence_spans(line)))
            end = max(ends, default=_MAX_PARAGRAPH)
            if held:
                yield held
            yield line[:end]
            held, line = "", line[end:].lstrip()
        if held and len(held) + len(line) > _MAX_PARAGRAPH:
            yield held
            held = ""
        held = f"{held}\n{line}" if held and line else held or line
        if len(held) >= _USUAL_PARAGRAPH:
            yield held
            held = ""
    if held:
        yield held


class Maker:
    """Questions by one Kiwi. per_paragraph: maximum number of questions, each of another sentence.

    counts: what became of paragraphs and sentences, and why answers were refused.
    """

    def __init__(self, kiwi: Any, calling: Mapping[str, Any], *, per_paragraph: int, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._kiwi = kiwi
        self._calling = calling
        self._per_paragraph = per_paragraph
        self._seed = seed

    def questions(self, paragraph: str) -> list[Made]:
        """In the order of their answers."""
        self.counts["paragraphs"] += 1
        if len(paragraph) < _MIN_PARAGRAPH:
            self.counts["paragraph_too_short"] += 1
            return []
        digest = blake2b(f"{self._seed}:{paragraph}".encode(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "big"))
        spans = list(sentence_spans(paragraph))
        made: dict[int, Made] = {}
        for number in rng.permutation(len(spans)).tolist():
            if len(made) == self._per_paragraph:
                break
            self.counts["sentences"] += 1
            question = self._of_sentence(paragraph, spans[: number + 1], rng)
            if question is not None:
                self.counts["questions"] += 1
                self.counts[f"question_{question.kind}"] += 1
                made[number] = question
        return [made[number] for number in sorted(made)]

    def _of_sentence(self, paragraph: str, spans: Sequence[tuple[int, int]], rng: np.random.Generator) -> Made | None:
        """A question on the last of the sentences, or None."""
        text, bare, reason = paragraph[slice(*spans[-1])], stripped(paragraph, *spans[-1]), ""
        if bare is None:
            reason = "unpaired_brackets"
        elif not _STATEMENT.search(text):
            reason = "no_statement"
        elif not _MIN_SENTENCE <= len(text) <= _MAX_SENTENCE:
            reason = "too_short" if len(text) < _MIN_SENTENCE else "too_long"
        elif _SCAR.search(text) or text.startswith(_GOES_ON):
            reason = "scars"
        elif (sentence := self._analyzed(bare)).register is None:
            reason = "no_statement"
        if bare is None or reason:
            self.counts[f"sentence_{reason}"] += 1
            return None
        topic = "" if opening_topic(sentence) else self._topic_before(paragraph, spans)
        if topic and (full := in_full(bare, sentence, topic)) is not None:
            bare, sentence = full, self._analyzed(full)

        is_tried = False
        for version in (*owned(bare, sentence), bare):
            its_sentence = sentence if version is bare else self._analyzed(version)
            for question in self._asked(its_sentence, rng):
                is_tried = True
                if question is not None:
                    span = version.span(question.start, question.end)
                    fault = "answer_with_bracket" if span is None else _fault(question.text, span, paragraph)
                    if span is not None and fault is None:
                        return Made(question.text, paragraph[slice(*span)], span[0], question.kind)
                    self.counts[f"refused_{fault}"] += 1
        self.counts["sentence_all_refused" if is_tried else "sentence_no_answer"] += 1
        return None

    def _analyzed(self, bare: Stripped) -> Sentence:
        analysis = analyze(bare.text, self._kiwi, self._calling)
        return Sentence.of(bare.text, analysis, is_completed=bare.offsets[0] < 0)

    def _topic_before(self, paragraph: str, spans: Sequence[tuple[int, int]]) -> str:
        """The topic (세종) that the sentence before the last one has or continues; "" for none."""
        start, _ = spans[-1]
        for begin, end in reversed(spans[-1 - _SENTENCES_BACK : -1]):
            bare = stripped(paragraph, begin, end)
            if bare is None or "\n" in paragraph[end:start] or len(bare.text) > _MAX_SENTENCE:
                return ""
            topic = opening_topic(self._analyzed(bare))
            if topic != "":
                return topic or ""
        return ""

    def _asked(self, sentence: Sentence, rng: np.random.Generator) -> Iterator[Question | None]:
        """Questions in a drawn order, one question word after the other; None for each that was refused."""
        answers = candidates(sentence)
        if not answers or rng.random() < _TRIES_DEFINITION:
            try:
                if (definition := ask_definition(sentence, self._kiwi)) is not None:
                    yield definition
            except Refused as why:
                self.counts[f"refused_{why}"] += 1
                yield None
        kinds = sorted({answer.kind for answer in answers})
        draws = dict(zip(kinds, rng.random(len(kinds)).tolist(), strict=True))
        shuffled = [answers[i] for i in rng.permutation(len(answers)).tolist()]
        for answer in sorted(shuffled, key=lambda answer: draws[answer.kind]):
            try:
                yield ask(sentence, answer, self._kiwi, rng)
            except Refused as why:
                self.counts[f"refused_{why}"] += 1
                yield None


def _fault(question: str, span: tuple[int, int], paragraph: str) -> str | None:
    """The reason to refuse a question with its answer, or None."""
    answer = paragraph[slice(*span)]
    if not _MIN_ANSWER <= len(answer) <= _MAX_ANSWER or answer != answer.strip():
        return "answer_length"
    if paragraph.count(answer) != 1:
        return "answer_repeated"
    if not _MIN_QUESTION <= len(question) <= _MAX_QUESTION:
        return "question_length"
    if all(word in question for word in answer.split()):
        return "answer_in_question"
    return None
