"""The five sets of KoBEST (Kim et al. 2022, arXiv 2204.04541)."""

from collections.abc import Callable, Mapping
from typing import Any

from korbert.tasks.sets import changes
from korbert.tasks.sets.known import Files, KnownSet, Part, SetKind

__all__ = ["KOBEST"]

_URL = "https://github.com/SKT-LSL/KoBEST_datarepo"
_LICENCE = "CC BY-SA 4.0"


def _kobest(
    name: str,
    kind: SetKind,
    about: str,
    sizes: tuple[int, int, int],
    columns: Mapping[str, str | tuple[str, ...]],
    hub_columns: Mapping[str, str | tuple[str, ...]],
    change: tuple[Callable[[dict[str, Any]], dict[str, Any]] | None, ...] = (None, None),
) -> KnownSet:
    """A set of KoBEST: TSV in the authors' repository, JSON lines in theirs on the hub. change: of either."""
    tables: dict[Part, tuple[str, ...]] = {"train": ("train.tsv",), "valid": ("dev.tsv",), "test": ("test.tsv",)}
    lines: dict[Part, tuple[str, ...]] = {
        "train": ("train.jsonl",),
        "valid": ("validation.jsonl",),
        "test": ("test.jsonl",),
    }
    size: dict[Part, int] = {"train": sizes[0], "valid": sizes[1], "test": sizes[2]}
    quoted = name == "HellaSwag"
    files = (
        Files(
            (f"kobest/{name}", f"KoBEST_datarepo/v1.0/{name}"),
            tables,
            columns if quoted else {**columns, "id": "ID"},
            "tsv-quoted" if quoted else "tsv-plain",
            change[0],
        ),
        Files((f"kobest/{name.lower()}", f"kobest_v1/{name.lower()}"), lines, hub_columns, "jsonl", change[1]),
    )
    metrics = ("macro_f1", "accuracy")
    return KnownSet(f"kobest-{name.lower()}", f"KoBEST {name}", kind, about, metrics, _URL, _LICENCE, size, None, files)


KOBEST = (
    _kobest(
        "BoolQ",
        "classification",
        "yes/no question about a text",
        (3_665, 700, 1_404),
        {"text": "Text", "pair": "Question", "label": "Answer"},
        {"text": "paragraph", "pair": "question", "label": "label"},
        (changes.truth, changes.truth),
    ),
    _kobest(
        "COPA",
        "choice",
        "more plausible cause or effect, of two",
        (3_076, 500, 1_000),
        {"text": "sentence", "question": "question", "choices": ("1", "2"), "label": "Answer"},
        {"text": "premise", "question": "question", "choices": ("alternative_1", "alternative_2"), "label": "label"},
        (changes.chosen_by_question(1), changes.chosen_by_question(0)),
    ),
    _kobest(
        "HellaSwag",
        "choice",
        "most plausible ending of a story, of four",
        (2_029, 500, 500),
        {"text": "context", "choices": ("choice1", "choice2", "choice3", "choice4"), "label": "label"},
        {"text": "context", "choices": ("ending_1", "ending_2", "ending_3", "ending_4"), "label": "label"},
        (changes.chosen(), changes.chosen()),
    ),
    _kobest(
        "SentiNeg",
        "classification",
        "is a review positive? The test reviews are negated",
        (3_649, 400, 397),
        {"text": "Text", "label": "Label"},
        {"text": "sentence", "label": "label"},
    ),
    _kobest(
        "WiC",
        "classification",
        "has a word the same meaning in two sentences?",
        (3_318, 610, 1_260),
        {"word": "Target", "text": "SENTENCE1", "pair": "SENTENCE2", "label": "ANSWER"},
        {"word": "word", "text": "context_1", "pair": "context_2", "label": "label"},
        (changes.word_in_context, changes.word_in_context),
    ),
)
