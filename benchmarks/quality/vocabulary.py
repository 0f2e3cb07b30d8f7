"""Compares ways to tokenize Korean text: coverage, reading ceilings, decoding, a linear classifier.

    python -m benchmarks.quality.vocabulary artifacts/small --data $KORBERT_DATA                    the whole table
    python -m benchmarks.quality.vocabulary artifacts/small --data $KORBERT_DATA --only forms merged

ARTIFACTS has the documents of `clean` and the morphemes of `analyze`. Every scheme (schemes.py) is trained
on the same --share of the documents that the recipe does not hold out, and measured on the held-out ones (whole units,
pieces per unit and per eojeol, share of bytes or unknowns, lines decoded exactly from ids), on the KorQuAD dev file
(the best scores that spans of pieces can have), and on NSMC by TF-IDF of its pieces (C = 2, not tuned; the standard
error is 0.15 points). Prints a Markdown table row by row.
"""

import argparse
import json
import math
import time
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import record
from benchmarks.nsmc_files import read_reviews
from benchmarks.quality.schemes import MULTI, PLAIN, SIZE, Scheme, is_slice, schemes
from korbert.corpus.documents import is_heldout
from korbert.tasks import korquad
from korbert.tasks.baselines import fit_labels
from korbert.tasks.files import GoldAnswer, TaskRows
from korbert.tasks.question_answering.answers import right_answers
from korbert.tokenization import Analysis, Analyzer, Pieces
from korbert.tokenization.encoding import span_of, span_to_pieces

_SAMPLE_SEED = 10  # of the rule that picks --share of the documents
_AROUND = 2  # pieces around the shortest run over an answer that are also tried as first and last
_KINDS_OF_SPANS = ("pieces", "characters")
_KINDS = {"default": PLAIN, "load_multi_dict": MULTI}


class Text(NamedTuple):
    """A text with one analysis per kind of analyser."""

    source: str
    text: str
    analyses: dict[str, Analysis]

    def of(self, scheme: Scheme) -> Analysis:
        return self.analyses["load_multi_dict" if scheme.options == MULTI else "default"]


def documents(artifacts: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, str, str, Analysis]]:
    """id, source, text and analysis of the wanted documents of the recipe."""
    texts = _rows(artifacts / "clean" / "documents", ["id", "text"], wanted)
    names = ["id", "source", "form", "tag", "start", "end", "sentence", "eojeol"]
    for id, source, *lists in _rows(artifacts / "analyze" / "morphemes", names, wanted):
        for text_id, text in texts:
            if text_id == id:  # a document that Kiwi failed at has no morphemes
                yield id, source, text, Analysis(*lists)
                break


def _rows(folder: Path, names: list[str], wanted: Callable[[str], bool]) -> Iterator[tuple]:
    for path in sorted(folder.glob("part-*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(1000, columns=names):
            chosen = batch.filter(pa.array(list(map(wanted, batch["id"].to_pylist())), pa.bool_()))
            yield from zip(*(chosen[name].to_pylist() for name in names), strict=True)


def with_multi(texts: Iterator[tuple[str, str, str, Analysis]]) -> Iterator[tuple[str, Text]]:
    """id and text, analysed once more with load_multi_dict."""
    analyzer = Analyzer(MULTI)
    while chunk := list(islice(texts, 5_000)):
        others = analyzer.analyze_many((text for _, _, text, _ in chunk), workers=2)
        for (id, source, text, analysis), other in zip(chunk, others, strict=True):
            yield id, Text(source, text, {"default": analysis, "load_multi_dict": other})


def analyzed(texts: list[str], multi: bool) -> list[Text]:
    kinds = {kind: options for kind, options in _KINDS.items() if multi or options == PLAIN}
    analyses = [list(Analyzer(options).analyze_many(texts, workers=2)) for options in kinds.values()]
    return [Text("", text, dict(zip(kinds, row, strict=True))) for text, *row in zip(texts, *analyses, strict=True)]


def coverage(scheme: Scheme, heldout: list[Text]) -> dict[str, float]:
    """Shares by source, and the lines restored exactly from ids, with and without spaces."""
    sums: Counter[str] = Counter()
    for row in heldout:
        pieces = scheme.pieces(row.text, row.of(scheme))
        pieces_of_unit = Counter(pieces.morphemes)
        source = "reviews" if row.source == "reviews" else "wiki"
        sums.update(
            {
                f"{source} units": len(pieces_of_unit),
                f"{source} whole": sum(count == 1 for count in pieces_of_unit.values()),
                f"{source} pieces": len(pieces),
                f"{source} eojeols": len(row.text.split()),
                f"{source} bytes": sum(map(scheme.is_byte, pieces.ids)),
            }
        )
        for line, ids in lines(row.text, pieces):
            decoded = unicodedata.normalize("NFC", " ".join(scheme.decode(ids).split()))  # it may hold the line feed
            sums[f"{source} lines"] += 1
            sums[f"{source} exact"] += decoded == line
            sums[f"{source} spaceless"] += decoded.replace(" ", "") == line.replace(" ", "")
    shares = {}
    for source in ("wiki", "reviews"):
        shares |= {
            f"whole {source}": 100 * sums[f"{source} whole"] / sums[f"{source} units"] if scheme.whole else math.nan,
            f"per unit {source}": sums[f"{source} pieces"] / sums[f"{source} units"] if scheme.whole else math.nan,
            f"per eojeol {source}": sums[f"{source} pieces"] / sums[f"{source} eojeols"],
            f"bytes {source}": 100 * sums[f"{source} bytes"] / sums[f"{source} pieces"],
            f"exact {source}": 100 * sums[f"{source} exact"] / sums[f"{source} lines"],
            f"spaceless {source}": 100 * sums[f"{source} spaceless"] / sums[f"{source} lines"],
        }
    return shares


def lines(text: str, pieces: Pieces) -> Iterator[tuple[str, list[int]]]:
    """Each non-blank line, with white space normalized, and the ids of its pieces."""
    starts = [low for low, _ in pieces.spans]  # a step back within a contraction stays in its line
    begin = 0
    for line in text.split("\n"):
        end = begin + len(line)
        if line.strip():
            ids = pieces.ids[bisect_left(starts, begin) : bisect_left(starts, end + 1)]
            yield unicodedata.normalize("NFC", " ".join(line.split())), ids
        begin = end + 1


def ceilings(questions: TaskRows, contexts: list[Text], scheme: Scheme) -> dict[str, float]:
    """The best scores in percent that spans of pieces can have, `pieces em` to `characters f1`.

    pieces: whole pieces, a first and a last; characters: cut within these two, too, where they are slices of the text.
    """
    pieces_of = {row.text: scheme.pieces(row.text, row.of(scheme)) for row in contexts}
    sums = Counter[str]()
    for row in questions:
        gold_answers = right_answers(row)
        answers = [answer.text for answer in gold_answers]
        for kind, texts in _reachable(row["context"], pieces_of[row["context"]], gold_answers, answers).items():
            exact, f1 = max(
                ((korquad.exact_match(text, answers), korquad.f1(text, answers)) for text in texts), default=(0, 0)
            )
            sums.update({f"{kind} em": exact, f"{kind} f1": f1})
    return {
        f"{kind} {name}": 100 * sums[f"{kind} {name}"] / len(questions)
        for kind in _KINDS_OF_SPANS
        for name in ("em", "f1")
    }


def _reachable(text: str, pieces: Pieces, right: list[GoldAnswer], answers: list[str]) -> dict[str, list[str]]:
    """Texts of the spans around each right answer, until both kinds have it exactly, as nearly always at once."""
    tried: dict[str, list[str]] = {kind: [] for kind in _KINDS_OF_SPANS}
    offsets = sorted(range(-_AROUND, _AROUND + 1), key=abs)
    for answer in right:
        if (run := span_to_pieces(pieces.spans, *answer.span)) is None:
            continue
        for of_first, of_last in product(offsets, offsets):  # the shortest run over it first
            first, last = run[0] + of_first, run[1] + of_last
            if not 0 <= first <= last < len(pieces):
                continue
            low, high = span_of(pieces.spans, first, last)
            tried["pieces"].append(text[low:high])
            start, end = answer.span
            if is_slice(text, pieces, first):
                low = max(low, min(start, pieces.spans[first][1]))
            if is_slice(text, pieces, last):
                high = min(high, max(end, pieces.spans[last][0]))
            tried["characters"].append(text[low:high])
            if all(korquad.exact_match(texts[-1], answers) for texts in tried.values()):
                return {kind: texts[-1:] for kind, texts in tried.items()}
    return tried


class Sentiment(NamedTuple):
    """NSMC: texts of train and test, with labels."""

    train: list[Text]
    test: list[Text]
    labels: tuple[np.ndarray, np.ndarray]

    def accuracy(self, scheme: Scheme) -> float:
        """Test accuracy in percent of logistic regression on TF-IDF over unigrams and bigrams of ids."""
        train, test = (
            [list(map(str, scheme.pieces(row.text, row.of(scheme)).ids)) for row in rows]
            for rows in (self.train, self.test)
        )
        sides = (train, train[:100], test)
        test_shares, _ = fit_labels(sides, self.labels[0], lambda probabilities: None, 2, [2.0])  # one C
        return 100 * float(((test_shares[:, 1] >= 0.5) == self.labels[1]).mean())


COLUMNS = {
    "whole, wiki / reviews": ("whole wiki", "whole reviews", ".2f"),
    "pieces per unit": ("per unit wiki", "per unit reviews", ".3f"),
    "pieces per eojeol": ("per eojeol wiki", "per eojeol reviews", ".3f"),
    "bytes or unknown, %": ("bytes wiki", "bytes reviews", ".2f"),
    "lines exact, %": ("exact wiki", "exact reviews", ".1f"),
    "except spaces, %": ("spaceless wiki", "spaceless reviews", ".1f"),
    "oracle of pieces, EM / F1": ("pieces em", "pieces f1", ".2f"),
    "of characters": ("characters em", "characters f1", ".2f"),
    "NSMC, TF-IDF": ("nsmc", None, ".2f"),
    "learning, s": ("seconds", None, ".0f"),
}


def shown(found: dict[str, float], first: str, second: str | None, form: str) -> str:
    names = [first] if second is None else [first, second]
    return " / ".join("-" if math.isnan(found[name]) else format(found[name], form) for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artifacts", type=Path, help="folder of a recipe's artifacts, clean to vocab")
    parser.add_argument("--data", type=Path, required=True, help="folder of docs/data.md")
    parser.add_argument("--share", type=float, default=0.25, help="of the documents to learn from")
    parser.add_argument("--size", type=int, default=SIZE, help="entries")
    parser.add_argument("--only", nargs="*", help="names of schemes")
    parser.add_argument("--reviews", type=int, default=150_000, help="NSMC rows to learn from")
    record.add_option(parser)
    options = parser.parse_args()

    chosen = [scheme for scheme in schemes(options.size) if not options.only or scheme.name in options.only]
    multi = any(scheme.options == MULTI for scheme in chosen)
    recipe = json.loads((options.artifacts / "vocab" / "stage.json").read_text())["settings"]
    seed, heldout_share = recipe["seed"], recipe["heldout_share"]

    def wanted(id: str) -> bool:
        return is_heldout(id, seed, heldout_share) or is_heldout(id, _SAMPLE_SEED, options.share)

    rows = documents(options.artifacts, wanted)
    plain = ((id, Text(source, text, {"default": found})) for id, source, text, found in rows)
    heldout, learned = [], Counter()
    for id, row in with_multi(rows) if multi else plain:
        if is_heldout(id, seed, heldout_share):
            heldout.append(row)
            continue
        learned.update(documents=1, bytes=len(row.text.encode()), morphemes=len(row.analyses["default"]))
        for scheme in chosen:
            scheme.take(row.text, row.of(scheme))
    print(f"{learned} to learn from, {len(heldout):,} documents held out", flush=True)

    questions = korquad.read(options.data / "korquad1" / "KorQuAD_v1.0_dev.json")
    contexts = analyzed(list(dict.fromkeys(row["context"] for row in questions)), multi)
    tables = [read_reviews(options.data / "nsmc" / f"ratings_{part}.txt") for part in ("train", "test")]
    tables[0] = tables[0][: options.reviews]
    labels = tuple(table["label"].to_numpy() for table in tables)
    sentiment = Sentiment(*(analyzed(table["text"].tolist(), multi) for table in tables), labels)

    print("| | " + " | ".join(COLUMNS) + " |\n|---" + "|---" * len(COLUMNS) + "|", flush=True)
    lines: list[list[str]] = []
    for scheme in chosen:
        began = time.perf_counter()
        scheme.learn()
        figures = {"seconds": time.perf_counter() - began} | coverage(scheme, heldout)
        figures |= ceilings(questions, contexts, scheme)
        figures["nsmc"] = sentiment.accuracy(scheme)
        lines.append([scheme.name, *(shown(figures, *column) for column in COLUMNS.values())])
        print(f"| {' | '.join(lines[-1])} |", flush=True)
    table = record.table("Schemes of tokenization", ["scheme", *COLUMNS], lines)
    record.write(options.record, "vocabulary", [table])


if __name__ == "__main__":
    main()
