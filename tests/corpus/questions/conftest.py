from collections import Counter

import numpy as np
import pytest

from korbert.corpus.questions.answers import candidates, definitions
from korbert.corpus.questions.asking import Refused, ask
from korbert.corpus.questions.sentences import Sentence, Stripped
from korbert.tokenization.analyzer import Analyzer


@pytest.fixture(scope="session")
def analyzer() -> Analyzer:
    return Analyzer()


class Asker:
    """All that can be asked of a sentence: over the draws of some seeds, the questions by answer, and refusals."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer

    def sentence(self, text: str) -> Sentence:
        return Sentence.of(Stripped(text, list(range(len(text)))), self._analyzer.analyze(text))

    def answers(self, text: str) -> dict[str, str]:
        """Answer -> the word that asks for it."""
        return {text[answer.start : answer.end]: answer.word for answer in candidates(self.sentence(text))}

    def asked(self, text: str) -> tuple[set[tuple[str, str]], Counter[str]]:
        """(answer, question) of all draws, and the reasons of refusals."""
        sentence = self.sentence(text)
        asked: set[tuple[str, str]] = set()
        refused: Counter[str] = Counter()
        for candidate in candidates(sentence):
            for seed in range(25):  # form, ending and verb are drawn
                try:
                    question = ask(sentence, candidate, self._analyzer, np.random.default_rng(seed))
                    asked.add((text[candidate.start : candidate.end], question))
                except Refused as why:
                    refused[str(why)] += 1
        return asked, refused

    def defined(self, text: str) -> tuple[str, str] | None:
        sentence = self.sentence(text)
        for defined in definitions(sentence):
            return text[defined.start : defined.end], ask(sentence, defined, self._analyzer, np.random.default_rng(0))
        return None


@pytest.fixture(scope="session")
def asker(analyzer: Analyzer) -> Asker:
    return Asker(analyzer)
