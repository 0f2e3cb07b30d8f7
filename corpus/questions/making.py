"""A paragraph -> questions on it: a pure function of the text and the seed.

Sentences are tried in an order drawn by the hash of seed and paragraph; each is analysed only when it is tried.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from korbert.corpus.documents import sentence_spans
from korbert.corpus.questions.answers import candidates, definitions
from korbert.corpus.questions.asking import Refused, ask, refuse_if
from korbert.corpus.questions.sentences import AnswerCandidate, Sentence, Stripped, strip_sentence
from korbert.corpus.questions.topics import opening_topic, with_owner, with_topic
from korbert.tokenization import Analyzer

# Lengths in characters
_MIN_PARAGRAPH = 150
_USUAL_PARAGRAPH = 300
_MAX_PARAGRAPH = 1_500
_MIN_SENTENCE = 15
_MAX_SENTENCE = 160
_QUESTION = range(12, 91)
_ANSWER = range(2, 31)

_SENTENCES_BACK = 5  # in which the topic of a sentence without subject is looked for
_TRIES_DEFINITION = 0.5  # how often, before other answers of the sentence
_STATEMENT = re.compile(r"[다요죠][.]?$")
# Beginnings of a sentence that continues the previous one.
_CONTINUES = ("뿐만", "그러자", "그러던", "이에 ", "이로써", "이때", "그중", "이 중")
_SCAR = re.compile(  # left by markup, by removed text, and by sentences without a space between them
    r"[《〈「『\"'“‘]\s*[》〉」』\"'”’]|[(]\s*,|&#?\w+;|formula_|https?:|[\[\]{}|=\\]|\s[.,:]"
    r"|다\.[가-힣《〈「『\"“‘]|\s[은는을를과와의] "
)


class Made(NamedTuple):
    """A question on a paragraph. start: character of the answer there. kind: the question word."""

    question: str
    answer: str
    start: int
    kind: str


def paragraphs(text: str) -> list[str]:
    """The lines of a document: short ones joined up to 300 characters, those beyond 1,500 cut between sentences."""
    blocks = [""]  # the last one may still grow
    for line in map(str.strip, text.split("\n")):
        while len(line) > _MAX_PARAGRAPH:
            ends = [end for _, end in sentence_spans(line) if end <= _MAX_PARAGRAPH]
            end = max(ends, default=_MAX_PARAGRAPH)
            blocks += [line[:end], ""]
            line = line[end:].lstrip()
        if len(blocks[-1]) >= _USUAL_PARAGRAPH or len(blocks[-1]) + len(line) > _MAX_PARAGRAPH:
            blocks.append("")
        blocks[-1] = f"{blocks[-1]}\n{line}".strip()
    return [paragraph for paragraph in blocks if paragraph]


@dataclass
class Maker:
    """Makes questions on paragraphs. per_paragraph: maximum number of questions, each of another sentence.

    counts: of paragraphs, sentences and questions, and of what was left out or refused, by reason.
    """

    analyzer: Analyzer
    per_paragraph: int
    seed: int
    counts: Counter[str] = field(default_factory=Counter)

    def questions(self, paragraph: str) -> list[Made]:
        """Returns the questions on a paragraph, in the order of their sentences."""
        self.counts["paragraphs"] += 1
        if len(paragraph) < _MIN_PARAGRAPH:
            self.counts["paragraph_too_short"] += 1
            return []
        digest = blake2b(f"{self.seed}:{paragraph}".encode(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "big"))
        spans = list(sentence_spans(paragraph))
        made_by_sentence: dict[int, Made] = {}
        for number in rng.permutation(len(spans)).tolist():
            if len(made_by_sentence) == self.per_paragraph:
                break
            self.counts["sentences"] += 1
            try:
                made_by_sentence[number] = self._of_sentence(paragraph, spans[: number + 1], rng)
            except Refused as why:
                self.counts[f"sentence_{why}"] += 1
            else:
                self.counts.update(["questions", f"question_{made_by_sentence[number].kind}"])
        return [made_by_sentence[number] for number in sorted(made_by_sentence)]

    def _of_sentence(self, paragraph: str, spans: Sequence[tuple[int, int]], rng: np.random.Generator) -> Made:
        """A question on the last of the sentences."""
        text = paragraph[slice(*spans[-1])]
        source = strip_sentence(paragraph, *spans[-1])
        if source is None:
            raise Refused("unpaired_brackets")
        refuse_if(not _STATEMENT.search(text), "no_statement")
        refuse_if(len(text) < _MIN_SENTENCE, "too_short")
        refuse_if(len(text) > _MAX_SENTENCE, "too_long")
        refuse_if(_SCAR.search(text) or text.startswith(_CONTINUES), "scars")
        sentence = self._analyze_sentence(source)
        refuse_if(sentence.register is None, "no_statement")
        topic = "" if opening_topic(sentence) else self._topic_before(paragraph, spans)
        if topic and (prefixed := with_topic(sentence, topic)) is not None:
            sentence = self._analyze_sentence(prefixed)

        reason = "no_answer"
        for variant in (*map(self._analyze_sentence, with_owner(sentence)), sentence):
            for candidate in self._candidates(variant, rng):
                try:
                    question = ask(variant, candidate, self.analyzer, rng)
                    return _check_question(question, candidate, variant, paragraph)
                except Refused as why:
                    self.counts[f"refused_{why}"] += 1
                    reason = "all_refused"
        raise Refused(reason)

    def _analyze_sentence(self, source: Stripped) -> Sentence:
        return Sentence.of(source, self.analyzer.analyze(source.text))

    def _topic_before(self, paragraph: str, spans: Sequence[tuple[int, int]]) -> str:
        """Returns the topic (세종) that the sentence before the last one has or continues; "" if there is none."""
        start, _ = spans[-1]
        for begin, end in reversed(spans[-1 - _SENTENCES_BACK : -1]):
            source = strip_sentence(paragraph, begin, end)
            if source is None or "\n" in paragraph[end:start] or len(source.text) > _MAX_SENTENCE:
                break
            topic = opening_topic(self._analyze_sentence(source))
            if topic != "":
                return topic or ""
        return ""

    def _candidates(self, sentence: Sentence, rng: np.random.Generator) -> Iterator[AnswerCandidate]:
        """The possible answers of a sentence in a drawn order, one question word after the other."""
        answers = candidates(sentence)
        if not answers or rng.random() < _TRIES_DEFINITION:
            yield from definitions(sentence)
        kinds = sorted({answer.kind for answer in answers})
        draws = dict(zip(kinds, rng.random(len(kinds)).tolist(), strict=True))
        shuffled = [answers[i] for i in rng.permutation(len(answers)).tolist()]
        yield from sorted(shuffled, key=lambda answer: draws[answer.kind])


def _check_question(question: str, candidate: AnswerCandidate, sentence: Sentence, paragraph: str) -> Made:
    """The question with its answer in the paragraph. Raises Refused if they do not fit."""
    span = sentence.span(candidate.start, candidate.end)
    if span is None:
        raise Refused("answer_with_bracket")
    answer = paragraph[slice(*span)]
    refuse_if(len(answer) not in _ANSWER or answer != answer.strip(), "answer_length")
    refuse_if(paragraph.count(answer) != 1, "answer_repeated")
    refuse_if(len(question) not in _QUESTION, "question_length")
    refuse_if(all(word in question for word in answer.split()), "answer_in_question")
    return Made(question, answer, span[0], candidate.kind)
