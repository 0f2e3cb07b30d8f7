"""The filters, masks and MinHash of datatrove on a corpus, combined as in its examples.

    PYTHON benchmarks/speed/rival_datatrove.py FOLDER OUTPUT

Two processes over the .jsonl.zst files of FOLDER. Words are separated by spaces, as in korbert: the Korean tokenizer of
datatrove is Kiwi, which alone would take twenty times as long. The limits are those published by FineWeb2 for Korean.
Evaluation sets and lines repeated across documents are not handled.
"""

import sys
from pathlib import Path

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.filters import FineWebQualityFilter, GopherRepetitionFilter, LambdaFilter
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.word_tokenizers import WhitespaceTokenizer

WORDS = WhitespaceTokenizer()
MINHASH = MinhashConfig(n_grams=3, num_buckets=25, hashes_per_bucket=5)


def is_korean(document: Document) -> bool:
    visible = len("".join(document.text.split()))
    hangul = sum("가" <= char <= "힣" for char in document.text)
    return visible >= 10 and hangul >= 0.3 * visible


def main(folder: Path, output: Path) -> None:
    tasks = len(list(folder.glob("*.jsonl.zst")))

    def run(name: str, steps: list[object], tasks: int = tasks) -> None:
        LocalPipelineExecutor(steps, tasks=tasks, workers=2, logging_dir=str(output / "logs" / name)).run()

    kept, signatures, buckets, removed = (str(output / name) for name in ("kept", "signatures", "buckets", "removed"))
    repetition = GopherRepetitionFilter(
        dup_line_frac=0.374,
        dup_para_frac=None,
        dup_line_char_frac=0.374,
        dup_para_char_frac=None,
        top_n_grams=((2, 0.282), (3, 0.228), (4, 0.185)),
        dup_n_grams=((5, 0.201), (6, 0.184), (7, 0.168), (8, 0.154), (9, 0.14), (10, 0.127)),
        language=WORDS,
    )
    lines = FineWebQualityFilter(
        line_punct_thr=0.0, short_line_thr=1.0, char_duplicates_ratio=1.0, new_line_ratio=1.0, language=WORDS
    )
    run(
        "filter",
        [
            JsonlReader(str(folder), glob_pattern="*.jsonl.zst"),
            LambdaFilter(is_korean),
            repetition,
            lines,
            PIIFormatter(),
            JsonlWriter(kept, compression=None),
        ],
    )
    run("signatures", [JsonlReader(kept), MinhashDedupSignature(signatures, config=MINHASH, language=WORDS)])
    run("buckets", [MinhashDedupBuckets(signatures, buckets, config=MINHASH)], tasks=25)
    run("clusters", [MinhashDedupCluster(buckets, removed, config=MINHASH)], tasks=1)
    run(
        "write",
        [JsonlReader(kept), MinhashDedupFilter(removed), JsonlWriter(str(output / "documents"), compression=None)],
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
