"""Pairs of queries and passages that any corpus has, without labels: titles, headings, and sentences of a paragraph."""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Literal, NamedTuple

from korbert.corpus.documents import sentence_spans

PairSource = Literal["titles", "headings", "sentences"]

_MIN_PASSAGE = 60  # characters
_MAX_PASSAGE = 800
_HEADING = re.compile(r"(?:[^\s.][^.]{0,28}[^\s.다요까])\.|【[^】]{1,30}】|#{1,6} .{1,60}")


class QueryPassagePair(NamedTuple):
    """source: how the pair was found."""

    query: str
    passage: str
    source: PairSource


def pairs_of(title: str, text: str) -> Iterator[QueryPassagePair]:
    """The pairs of a document, the same ones for the same text.

    A paragraph is a line of 60 characters or more, of which the first 800 count; shorter ones are left out.
    titles: the title of the document, and its first paragraph, unless a heading is before it. headings: title and
    heading, and the first paragraph below; a heading is a line as in Wikipedia's extracts ("생애."), in 【】, or in
    Markdown. sentences: one sentence of a paragraph of three or more, chosen by the paragraph's hash, and the other
    sentences (the inverse cloze task, Lee et al. 2019, 3.2).
    """
    query = title  # of the next passage
    source: PairSource = "titles"
    for line in filter(None, map(str.strip, text.split("\n"))):
        if _HEADING.fullmatch(line):
            query = f"{title} {line.strip('.#【】 ')}".strip()
            source = "headings"
            continue
        passage = line[:_MAX_PASSAGE]
        if len(passage) < _MIN_PASSAGE:
            continue
        if query and query != passage:
            yield QueryPassagePair(query, passage, source)
        query = ""
        sentences = [passage[start:end] for start, end in sentence_spans(passage)]
        if len(sentences) > 2:
            chosen = int.from_bytes(blake2b(passage.encode(), digest_size=8).digest()) % len(sentences)
            rest = " ".join(sentences[:chosen] + sentences[chosen + 1 :])
            yield QueryPassagePair(sentences[chosen], rest, "sentences")
