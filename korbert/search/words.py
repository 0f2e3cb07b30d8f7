"""The search by words: the terms of texts, which are their morphemes, and BM25 over postings in the index's database.

A posting says how often a term is in a text, and how many terms that text has. Those of a term are 8 bytes each, in a
blob for every 65,536 numbers of texts: a query reads a few blobs, compares their checksums, and numpy adds up the
scores. (FTS5 of SQLite visits every text with any term of the query one by one: see "Engines of an index" in
benchmarks/RESULTS.md.)
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from korbert.messages import Message
from korbert.search.database import Damage, add_to_meta, checked_row, checksum, read_meta
from korbert.tokenization import AnyTokenizer, Encoding, Tokenizer, assemble

_LEFT_OUT = ("J", "E", "S")  # particles, endings, symbols: they are in nearly every text
_K1 = 1.2  # Robertson and Zaragoza 2009, 3.2; _B, too
_B = 0.75
_BUCKET = 65_536
_POSTING = np.dtype([("offset", "<u2"), ("count", "<u2"), ("length", "<u4")])


def read_texts(
    tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int, workers: int = 0
) -> Iterator[tuple[Encoding, list[str]]]:
    """The encoding of each text, truncated to max_length, and the terms of the whole text; our tokenizer gets both from
    one analysis."""
    pieces = tokenizer.pieces_of_many(texts, workers=workers)
    if isinstance(tokenizer, Tokenizer):
        for own in pieces:
            forms: dict[int, str] = {}  # of each morpheme, from its pieces
            for piece, number in zip(own.pieces, own.morphemes, strict=True):
                forms[number] = forms.get(number, "") + piece.removeprefix("▁")
            tags = dict(zip(own.morphemes, own.tags, strict=True))
            yield assemble(own, None, tokenizer.frame, max_length), terms_of_tags(forms.values(), tags.values())
    else:
        for own, analysis in zip(pieces, tokenizer.analyzer.analyze_many(texts, workers=workers), strict=True):
            yield assemble(own, None, tokenizer.frame, max_length), terms_of_tags(analysis.forms, analysis.tags)


def terms_of_tags(forms: Iterable[str], tags: Iterable[str]) -> list[str]:
    """The search terms of a text by its morphemes: 학교/NNG 에/JKB 가/VV ᆫ다/EF -> 학교/N, 가/V.

    Letters and numbers are terms, other symbols are not. In a text without terms, all morphemes are. Recall at 1,
    compared with all forms as terms: 90.6 (89.8) for questions of KorQuAD and their paragraphs, 76.8 (71.8) for
    paraphrases of KLUE-STS, 65.4 (66.8) for question pairs.
    """
    kinds = [tag if tag in ("SL", "SH", "SN") else tag[:1] for tag in tags]
    pairs = list(zip(forms, kinds, strict=True))
    kept = [f"{form}/{kind}" for form, kind in pairs if kind not in _LEFT_OUT]
    return kept or [f"{form}/{kind}" for form, kind in pairs]


def add_postings(database: sqlite3.Connection, texts: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Adds the terms of texts, by the texts' numbers."""
    places = defaultdict[tuple[str, int], list[int]](list)  # of the postings of a term in a bucket
    postings = list[tuple[int, int, int]]()
    added = 0
    length = 0
    for number, terms in texts:
        bucket, offset = divmod(number, _BUCKET)
        for term, count in Counter(terms).items():
            places[term, bucket].append(len(postings))
            postings.append((offset, min(count, 65_535), len(terms)))
        added += 1
        length += len(terms)
    entries = np.array(postings, _POSTING)
    _change(database, places, lambda key, before: before + entries[places[key]].tobytes())
    add_to_meta(database, texts=added, length=length)


def remove_postings(database: sqlite3.Connection, texts: Mapping[int, Sequence[str]]) -> None:
    """Removes the terms of texts, by the texts' numbers."""
    gone = defaultdict[int, NDArray[np.bool_]](lambda: np.zeros(_BUCKET, bool))  # offsets, by bucket
    keys = set[tuple[str, int]]()
    for number, terms in texts.items():
        bucket, offset = divmod(number, _BUCKET)
        gone[bucket][offset] = True
        keys |= {(term, bucket) for term in terms}

    def left(key: tuple[str, int], before: bytes) -> bytes:
        entries = np.frombuffer(before, _POSTING)
        return bytes(entries[~gone[key[1]][entries["offset"]]].tobytes())

    _change(database, keys, left)
    add_to_meta(database, texts=-len(texts), length=-sum(map(len, texts.values())))


def _change(
    database: sqlite3.Connection,
    keys: Iterable[tuple[str, int]],
    changed: Callable[[tuple[str, int], bytes], bytes],
) -> None:
    """Gives each (term, bucket) the entries that `changed` makes of those that it has; no row has none."""
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


def word_scores(database: sqlite3.Connection, terms: Sequence[str]) -> NDArray[np.float32]:
    """The BM25 score of each text for these terms, with Lucene's idf: (1 + largest number,), 0 without any of them."""
    (highest,) = database.execute("SELECT coalesce(max(number), -1) FROM texts").fetchone()
    scores = np.zeros(highest + 1, np.float32)
    texts = read_meta(database, "texts")
    mean = read_meta(database, "length") / max(texts, 1)
    for term, times in Counter(terms).items():
        select = "SELECT bucket, entries, checksum FROM postings WHERE term = ?"
        rows = [checked_row(f"term {term!r:.60}", term, *row) for row in database.execute(select, (term,))]
        entries = [np.frombuffer(blob, _POSTING) for *_, blob in rows]
        document_frequency = sum(map(len, entries))
        idf = np.log1p((texts - document_frequency + 0.5) / (document_frequency + 0.5))
        for (_, bucket, _), own in zip(rows, entries, strict=True):
            numbers = bucket * _BUCKET + own["offset"].astype(np.int64)
            if numbers.max(initial=0) > highest:
                raise Damage(Message("text {number} is missing", number=numbers.max()))
            counts = own["count"].astype(np.float32)
            weights = times * idf * counts / (counts + _K1 * (1 - _B + _B * own["length"] / mean))
            scores[numbers] += weights  # a number is there once
    return scores
