"""Shards of made-up documents whose pieces tell where they come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from korbert.pretraining import MaskingSettings, PairSettings, PretrainingRows, SpecialIds

IDS = SpecialIds(cls=2, sep=3, mask=4, first_piece=384, vocab_size=2000)

Document = tuple[str, Sequence[int]]  # source, pieces in each sentence


@dataclass(frozen=True)
class Written:
    """Files, and what is in them by document."""

    files: list[Path]
    sources: list[str]
    input_ids: list[np.ndarray]
    boundaries: list[np.ndarray]


def pieces_of(lengths: Sequence[int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random pieces; sentences begin where they should, other pieces begin eojeol, morphemes or nothing by chance."""
    total = sum(lengths)
    boundaries = rng.choice([0, 1, 2], size=total, p=[0.1, 0.5, 0.4]).astype(np.uint8)
    boundaries[np.cumsum([0, *lengths[:-1]])[np.array(lengths) > 0]] = 3
    return rng.integers(IDS.first_piece, IDS.vocab_size, size=total).astype(np.int32), boundaries


def write_shards(
    folder: Path, documents: Sequence[Document], seed: int = 0, files: int = 2, rows: int = 100
) -> Written:
    rng = np.random.default_rng(seed)
    ids, levels = map(list, zip(*(pieces_of(lengths, rng) for _, lengths in documents), strict=True))
    sources = [source for source, _ in documents]
    return Written(write_table(folder, sources, ids, levels, files, rows), sources, ids, levels)


def write_table(
    folder: Path,
    sources: Sequence[str],
    ids: Sequence[np.ndarray],
    levels: Sequence[np.ndarray],
    files: int = 2,
    rows: int = 100,
) -> list[Path]:
    """Shards of documents of these pieces and boundaries."""
    columns = {"id": [f"{source}:{number}" for number, source in enumerate(sources)], "source": sources}
    columns |= {"input_ids": pa.array(ids, pa.list_(pa.int32())), "boundaries": pa.array(levels, pa.list_(pa.uint8()))}
    table = pa.table(columns)
    paths = []
    for number in range(files):
        paths.append(folder / f"part-{number:05d}.arrow")
        first, last = (len(sources) * part // files for part in (number, number + 1))
        with pa.ipc.new_stream(str(paths[-1]), table.schema) as stream:
            stream.write_table(table.slice(first, last - first), max_chunksize=rows)
    return paths


def like_a_corpus(number: int, rng: np.random.Generator) -> list[Document]:
    """Articles of many sentences, reviews of which three in five have one."""
    articles = [("wiki", rng.geometric(1 / 25, size=rng.integers(2, 60)).tolist()) for _ in range(number)]
    counts = rng.choice([1, 2, 3], size=4 * number, p=[0.6, 0.25, 0.15])
    return articles + [("reviews", (1 + rng.geometric(1 / 12, size=count)).tolist()) for count in counts]


def rows_of(files: Sequence[Path], length: int = 64, seed: int = 3, **options: Any) -> PretrainingRows:
    """Rows of shards with the default settings, apart from `options`."""
    settings = {"masking": MaskingSettings(), "pairs": PairSettings()} | options
    return PretrainingRows(files, IDS, length, seed=seed, **settings)


@pytest.fixture(scope="session")
def ids() -> SpecialIds:
    return IDS


@pytest.fixture
def shards(tmp_path: Path) -> Callable[..., Written]:
    """(documents, **options) -> files with them."""
    return lambda documents, **options: write_shards(tmp_path, documents, **options)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """300 articles and 1,200 reviews."""
    return write_shards(tmp_path_factory.mktemp("shards"), like_a_corpus(300, np.random.default_rng(1)))


@pytest.fixture(scope="session")
def rows(corpus: Written) -> PretrainingRows:
    """Rows of the corpus, of at most 64 pieces."""
    return rows_of(corpus.files)
