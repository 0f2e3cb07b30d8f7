"""Documents with random morphemes and a small tokenizer, for tests without Kiwi."""

import random
from pathlib import Path

import pyarrow as pa

from korbert.corpus.execution.parts import write_parquet
from korbert.corpus.morphemes import SCHEMA
from korbert.tokenization import AnalyzerOptions, Tokenizer, VocabularySettings, learn, marked

LEARNED = ["학교", "에", "가", "ᆫ다", "도서관", "책", "을", "읽", "었", "다", "그리고", "사람", "들", "이"]
FORMS = [*LEARNED, "漢", "학교에", "😀"]  # the last ones take several pieces or bytes
SIZES = {"none": 410, "eojeol": 420}  # some of LEARNED whole, some in pieces


def documents(seed, number, part=0):
    """Rows with the columns of SCHEMA: 0 to 30 morphemes, in eojeols and sentences of random length."""
    generator = random.Random(seed)
    rows = []
    for index in range(number):
        length = generator.choice([0, 1, 5, 30])
        row = {"id": f"s:{part}-{index}", "source": generator.choice(["reviews", "wiki"])}
        row |= {"form": generator.choices(FORMS, k=length), "tag": generator.choices(["NNG", "JKB", "VV"], k=length)}
        row |= {"start": list(range(length)), "end": list(range(1, length + 1)), "sentence": [], "eojeol": []}
        sentence = eojeol = 0
        for i in range(length):
            if i and generator.random() < 0.4:
                eojeol += 1
                sentence += generator.random() < 0.3
            row["sentence"].append(sentence)
            row["eojeol"].append(eojeol)
        rows.append(row)
    return rows


def write_parts(folder: Path, parts):
    for number, rows in enumerate(parts):
        write_parquet(folder / "morphemes" / f"part-{number:05d}.parquet", pa.Table.from_pylist(rows, SCHEMA), folder)
    return folder / "morphemes"


def begins(numbers):
    """Which entries differ from their predecessor."""
    return [index == 0 or number != numbers[index - 1] for index, number in enumerate(numbers)]


def tokenizer(mark="none"):
    settings = VocabularySettings(size=SIZES[mark], mark=mark)
    counts = [(marked(form, first, mark), 99 - i) for i, form in enumerate(LEARNED) for first in (True, False)]
    options = AnalyzerOptions()
    from korbert.tokenization.analyzer import Analyzer

    return Tokenizer(learn(counts, settings), settings, options, Analyzer(options).versions)
