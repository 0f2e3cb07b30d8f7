"""The sentence of a context nearest to a question, by TF-IDF of character bigrams."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from korbert.errors import CorpusError

_SENTENCE = re.compile(r"\S.*?(?:[.?!]+(?=\s|$)|$)", re.MULTILINE)


def sentences(text: str) -> list[tuple[int, int]]:
    """Half-open spans of sentences, stripped. A sentence ends at the end of its line, or at . ? or ! before a space."""
    return [(match.start(), match.start() + len(match[0].rstrip())) for match in _SENTENCE.finditer(text)]


def nearest_sentences(train: Iterable[str], asked: Sequence[tuple[str, str]]) -> list[tuple[int, int, float]]:
    """For each (question, context), the span of the first nearest sentence and its cosine to the question, 0 to 1.

    train: texts to fit character bigrams on, spaces next to words included. A context without a sentence gives
    (0, 0, 0.0). CorpusError if the texts have no bigram.
    """
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 2), sublinear_tf=True)
    try:
        vectors.fit(train)
    except ValueError as error:
        raise CorpusError("the training texts have no characters: give others to learn from") from error
    of_context = {context: sentences(context) for _, context in asked}
    nearest = []
    for question, context in asked:
        spans = of_context[context]
        if not spans:
            nearest.append((0, 0, 0.0))
            continue
        rows = vectors.transform([question, *(context[start:end] for start, end in spans)])
        cosines = (rows[1:] @ rows[0].T).toarray()[:, 0]
        best = int(np.argmax(cosines))
        nearest.append((*spans[best], float(cosines[best])))
    return nearest
