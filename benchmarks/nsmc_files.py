"""The reviews of NSMC for measurements."""

import csv
from pathlib import Path

import pandas as pd

LABELS = ("부정", "긍정")


def read_reviews(path: Path) -> pd.DataFrame:
    """The rows of an official file, in order: id, text and label (0 or 1)."""
    table = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    return table.rename(columns={"document": "text"})
