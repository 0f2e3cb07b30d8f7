"""The search by words: the terms of texts, which are their morphemes, and BM25 over postings in the index's database.

A posting says how often a term is in a passage, and how many terms the passage has. A posting takes 8 bytes; those of
a term are in one blob for every 65,536 numbers of passages: a query reads a few blobs, compares their checksums, and
numpy adds up the scores. (FTS5 of SQLite visits every text with any term of the query one by one: see "Engines of an
index" in benchmarks/RESULTS.md.)
"""

import sqlite3
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.messages import Message
from korbert.search.cutting import PASSAGE_PIECES, cut, sentences_of
from korbert.search.database import Damage, add_to_meta, checked_row, checksum, read_meta
from korbert.search.owners import Owners
from korbert.tokenization import (
    EOJEOL,
    MORPHEME,
    SENTENCE,
    AnyTokenizer,
    Encoding,
    Pieces,
    Tokenizer,
    assemble,
    span_of,
)

_LEFT_OUT = ("J", "E", "S")  # particles, endings, symbols: they are in nearly every text
_K1 = 1.2  # Robertson and Zaragoza 2009, 3.2; _B, too
_B = 0.75
_BUCKET = 65_536
_POSTING = np.dtype([("offset", "<u2"), ("count", "<u2"), ("length", "<u4")])


class IndexedText(NamedTuple):
    """What an index holds of a text, except its vectors.

    passages: begin and end (characters), first term and last term + 1 of each. encodings: one of each passage.
    """

    terms: list[str]
    passages: list[tuple[int, int, int, int]]
    encodings: list[Encoding]


def read_texts(tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int) -> Iterator[tuple[Encoding, list[str]]]:
    """Yields the encoding of each text, truncated to max_length, and the terms of the whole text.

    Our tokenizer makes both from one analysis.
    """
    for pieces, forms, tags, *_ in _analyze(tokenizer, texts, workers=0):
        yield assemble(pieces, None, tokenizer.frame, max_length), [term for _, term in _terms_of(forms, tags)]


def read_passages(
    tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int, workers: int = 0
) -> Iterator[IndexedText]:
    """The terms and passages of each text; a text that max_length does not truncate is one passage."""
    room = max_length - 2
    # Other tokenizers know no morphemes: their MORPHEME is the beginning of a word.
    level = EOJEOL if isinstance(tokenizer, Tokenizer) else MORPHEME
    for text, analysis in zip(texts, _analyze(tokenizer, texts, workers), strict=True):
        pieces, forms, tags, begins, sentences = analysis
        numbered_terms = _terms_of(forms, tags)
        terms = [term for _, term in numbered_terms]
        if len(pieces) <= room:
            encoding = assemble(pieces, None, tokenizer.frame, max_length)
            yield IndexedText(terms, [(0, len(text), 0, len(terms))], [encoding])
            continue
        candidates = [number for number in sentences if begins[number]]
        starts = sentences_of(
            text,
            pieces,
            [begins[number] for number in candidates],
            [tags[number - 1] for number in candidates],
        )
        term_starts = [begins[number] for number, _ in numbered_terms]
        passages = []
        encodings = []
        for first, last in cut(starts, pieces.boundaries, level, min(PASSAGE_PIECES, room)):
            begin, end = span_of(pieces.spans, first, last - 1)
            passages.append((begin, end, bisect_left(term_starts, first), bisect_left(term_starts, last)))
            encodings.append(assemble(pieces[first:last], None, tokenizer.frame))
        yield IndexedText(terms, passages, encodings)


def _analyze(
    tokenizer: AnyTokenizer, texts: Sequence[str], workers: int
) -> Iterator[tuple[Pieces, Sequence[str], Sequence[str], Sequence[int], Sequence[int]]]:
    """Yields the pieces of each text; the forms and tags of its morphemes, and the number of the piece at which each
    begins; the numbers of the morphemes with which Kiwi lets a sentence begin."""
    pieces = tokenizer.pieces_of_many(texts, workers=workers)
    if isinstance(tokenizer, Tokenizer):
        for text_pieces in pieces:
            forms: dict[int, str] = {}  # of each morpheme, from its pieces
            begins: dict[int, int] = {}
            for index, (piece, number) in enumerate(zip(text_pieces.pieces, text_pieces.morphemes, strict=True)):
                forms[number] = forms.get(number, "") + piece.removeprefix("▁")
                begins.setdefault(number, index)
            tags = [text_pieces.tags[index] for index in begins.values()]
            sentences = [
                number for number, index in enumerate(begins.values()) if text_pieces.boundaries[index] == SENTENCE
            ]
            yield text_pieces, list(forms.values()), tags, list(begins.values()), sentences
    else:
        for text_pieces, analysis in zip(pieces, tokenizer.analyzer.analyze_many(texts, workers=workers), strict=True):
            starts = [start for start, _ in text_pieces.spans]
            places = [max(bisect_right(starts, start) - 1, 0) for start in analysis.starts]
            pairs = enumerate(pairwise([-1, *analysis.sentences]))
            sentences = [number for number, (before, sentence) in pairs if before != sentence]
            yield text_pieces, analysis.forms, analysis.tags, places, sentences


def _terms_of(forms: Iterable[str], tags: Iterable[str]) -> list[tuple[int, str]]:
    """The search terms of a text by its morphemes, each with the number of its morpheme: 학교/NNG 에/JKB 가/VV ᆫ다/EF ->
    0 학교/N, 2 가/V.

    Particles, endings and symbols are left out; foreign letters, Chinese characters and numbers are terms. In a text
    without terms, all morphemes are. An index holds the terms: a change of them needs a new format of it. Recall at 1,
    compared with all forms as terms: 90.6 (all: 89.8) for questions of KorQuAD and their paragraphs, 76.8 (71.8) for
    paraphrases of KLUE-STS, 65.4 (66.8) for question pairs.
    """
    kinds = [tag if tag in ("SL", "SH", "SN") else tag[:1] for tag in tags]
    numbered = [(number, f"{form}/{kind}") for number, (form, kind) in enumerate(zip(forms, kinds, strict=True))]
    return [entry for entry, kind in zip(numbered, kinds, strict=True) if kind not in _LEFT_OUT] or numbered


def add_postings(database: sqlite3.Connection, passages: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Adds the terms of passages, by the passages' numbers."""
    places = defaultdict[tuple[str, int], list[int]](list)  # of the postings of a term in a bucket
    postings = list[tuple[int, int, int]]()
    added = 0
    length = 0
    for number, terms in passages:
        bucket, offset = divmod(number, _BUCKET)
        for term, count in Counter(terms).items():
            places[term, bucket].append(len(postings))
            postings.append((offset, min(count, 65_535), len(terms)))
        added += 1
        length += len(terms)
    entries = np.array(postings, _POSTING)
    _change(database, places, lambda key, before: before + entries[places[key]].tobytes())
    add_to_meta(database, passages=added, length=length)


def remove_postings(database: sqlite3.Connection, passages: Mapping[int, Sequence[str]]) -> None:
    """Removes the terms of passages, by the passages' numbers."""
    is_removed = defaultdict[int, NDArray[np.bool_]](lambda: np.zeros(_BUCKET, bool))  # offsets, by bucket
    keys = set[tuple[str, int]]()
    for number, terms in passages.items():
        bucket, offset = divmod(number, _BUCKET)
        is_removed[bucket][offset] = True
        keys |= {(term, bucket) for term in terms}

    def without_removed(key: tuple[str, int], before: bytes) -> bytes:
        entries = np.frombuffer(before, _POSTING)
        return bytes(entries[~is_removed[key[1]][entries["offset"]]].tobytes())

    _change(database, keys, without_removed)
    add_to_meta(database, passages=-len(passages), length=-sum(map(len, passages.values())))


def _change(
    database: sqlite3.Connection,
    keys: Iterable[tuple[str, int]],
    changed: Callable[[tuple[str, int], bytes], bytes],
) -> None:
    """Replaces the entries of each (term, bucket) by what `changed` returns for them; deletes rows without entries."""
    sum_of_keys = 0
    for key in sorted(keys):  # so that SQLite's pages are visited in order
        select = "SELECT entries, checksum FROM postings WHERE term = ? AND bucket = ?"
        row = database.execute(select, key).fetchone()
        before: bytes = checked_row(f"term {key[0]!r:.60}", *key, *row)[-1] if row else b""
        if after := changed(key, before):
            database.execute(
                "INSERT INTO postings VALUES (?, ?, ?, ?) ON CONFLICT (term, bucket)"
                " DO UPDATE SET entries = excluded.entries, checksum = excluded.checksum",
                (*key, after, checksum(*key, after)),
            )
        else:
            database.execute("DELETE FROM postings WHERE term = ? AND bucket = ?", key)
        sum_of_keys += checksum(*key) * (bool(after) - bool(before))
    add_to_meta(database, keys=sum_of_keys)


def word_scores(database: sqlite3.Connection, terms: Sequence[str], owners: Owners) -> NDArray[np.float32]:
    """Returns the score of each passage for these terms: (1 + largest number,), 0 for a passage of a text without any
    of them.

    A score is the mean of two BM25 scores, of the passage and of the whole text that it is cut from. If every text is a
    single passage, both are the same. Damage if a posting is of a passage that is missing.
    """
    scores = np.zeros(len(owners.texts), np.float32)
    text_scores = np.zeros(len(owners.lengths), np.float32)
    num_passages = read_meta(database, "passages")
    num_texts = read_meta(database, "texts")
    mean_length = read_meta(database, "length") / max(num_passages, 1)
    mean_text_length = read_meta(database, "length") / max(num_texts, 1)
    for term, query_count in Counter(terms).items():
        select = "SELECT bucket, entries, checksum FROM postings WHERE term = ? ORDER BY bucket"
        rows = [checked_row(f"term {term!r:.60}", term, *row) for row in database.execute(select, (term,))]
        if not rows:
            continue
        buckets = [(bucket, np.frombuffer(blob, _POSTING)) for _, bucket, blob in rows]
        numbers = np.concatenate([bucket * _BUCKET + block["offset"].astype(np.int64) for bucket, block in buckets])
        if numbers.max() >= len(scores):
            raise Damage(Message("passage {number} is missing", number=numbers.max()))
        entries = np.concatenate([block for _, block in buckets])
        counts = entries["count"].astype(np.float32)
        # A number is there once.
        scores[numbers] += _bm25(query_count, num_passages, counts, entries["length"], mean_length)
        if not owners.is_single:
            texts_of_entries = owners.texts[numbers]  # passages of a text have consecutive numbers
            starts = np.flatnonzero(np.diff(texts_of_entries, prepend=-1))
            with_term = texts_of_entries[starts]
            counts = np.add.reduceat(counts, starts)
            lengths = owners.lengths[with_term]
            text_scores[with_term] += _bm25(query_count, num_texts, counts, lengths, mean_text_length)
    return scores if owners.is_single else np.asarray((scores + text_scores[owners.texts]) / 2, np.float32)


def _bm25(
    query_count: int, num_texts: int, counts: NDArray[np.float32], lengths: NDArray[np.integer], mean_length: float
) -> NDArray[np.float64]:
    """Returns what a term adds to the score of each of the N texts that have it, (N,), with Lucene's idf.

    query_count: how often the term is in the query. num_texts: of all texts. counts: how often the term is in each of
    these texts, (N,). lengths: number of terms of each, (N,). mean_length: of all texts.
    """
    idf = np.log1p((num_texts - len(counts) + 0.5) / (len(counts) + 0.5))
    return np.asarray(query_count * idf * counts / (counts + _K1 * (1 - _B + _B * lengths / mean_length)))
