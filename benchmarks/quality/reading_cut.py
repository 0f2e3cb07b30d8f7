"""Does it pay to cut a particle off the last piece of an answer? A rule applied to gold spans and predictions.

    python -m benchmarks.quality.reading_cut artifacts/small/vocab/tokenizer KorQuAD_v1.0_dev.json
    python -m benchmarks.quality.reading_cut ... --predictions artifacts/small/korquad/predictions.jsonl

A vocabulary may contain a name with its particle (황비홍이), so that no span of pieces equals the name alone. The rule:
if the last piece is a noun, a foreign word or an adverb that ends in a particle, and context or question contain the
answer without that particle elsewhere but not the full answer, remove the particle. Prints how often the rule applies,
and how many answers it fixes and breaks, by the official exact match.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks import record
from benchmarks.quality.schemes import is_slice
from korbert.tasks.files import TaskRow, TaskRows
from korbert.tasks.korquad.data import read
from korbert.tasks.korquad.metrics import exact_match
from korbert.tasks.question_answering.answers import right_answers
from korbert.tokenization import Pieces, Tokenizer
from korbert.tokenization.encoding import span_of, span_to_pieces
from korbert.tokenization.pieces import Span

PARTICLES = ["이", "가", "은", "는", "을", "를", "의", "에", "도", "와", "과", "로", "시", "만", "에서", "에게", "으로"]
TAGS = {"NNP", "NNG", "NNB", "SL", "XR", "MAG"}


def shortened(text: str, pieces: Pieces, span: Span, last: int, question: str) -> Span:
    """The span without the particle that the rule removes, or the unchanged span."""
    low, high = span
    answer = text[low:high]
    if not is_slice(text, pieces, last) or pieces.tags[last] not in TAGS or text.count(answer) > 1:
        return span
    result = span
    for particle in PARTICLES:
        stem = answer.removesuffix(particle)
        if stem == answer or len(stem) < 2 or high - len(particle) <= pieces.spans[last][0]:
            continue
        if any(re.search(f"{re.escape(stem)}(?!{particle})", place) for place in (text, question)):
            result = low, high - len(particle)
    return result


def gold(rows: TaskRows) -> Iterator[tuple[TaskRow, Span]]:
    return ((row, right_answers(row)[0].span) for row in rows)


def predicted(rows: TaskRows, path: Path) -> Iterator[tuple[TaskRow, Span]]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    best = {line["id"]: next(iter(line["predictions"].values()))[0] for line in lines}  # of the first model and seed
    return ((row, (best[row["id"]]["start"], best[row["id"]]["end"])) for row in rows if row["id"] in best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("dataset", type=Path, help="an official file")
    parser.add_argument("--predictions", type=Path, help="predictions.jsonl of a korquad artifact")
    record.add_option(parser)
    options = parser.parse_args()
    tokenizer, rows = Tokenizer.load(options.tokenizer), read(options.dataset)
    contexts = list(dict.fromkeys(row["context"] for row in rows))
    pieces_of = dict(zip(contexts, tokenizer.pieces_of_many(contexts), strict=True))
    questions = applied = mended = broken = right = 0
    for row, span in gold(rows) if options.predictions is None else predicted(rows, options.predictions):
        text, pieces = row["context"], pieces_of[row["context"]]
        run = span_to_pieces(pieces.spans, *span)
        if run is None:
            continue
        span_before = span_of(pieces.spans, *run)
        span_after = shortened(text, pieces, span_before, run[1], row["question"])
        answers = [answer.text for answer in row["answers"]]
        was_right, is_right = (exact_match(text[slice(*one)], answers) for one in (span_before, span_after))
        questions, right, applied = questions + 1, right + was_right, applied + (span_after != span_before)
        mended, broken = mended + (is_right and not was_right), broken + (was_right and not is_right)
    print(f"{questions:,} questions, {right:,} right without the rule; it applies to {applied},", end=" ")
    print(f"mends {mended} and breaks {broken}")
    rows_of_table = [["the rule applies", applied], ["fixes", mended], ["breaks", broken]]
    title = f"Of {questions:,} best answers"
    record.write(options.record, "reading-cut", [record.table(title, ["what", "answers"], rows_of_table)])


if __name__ == "__main__":
    main()
