"""The sets of KLUE v1.1 (Park et al. 2021) but dependency parsing and dialogue. Its test sets have no public labels."""

from collections.abc import Callable, Mapping
from typing import Any

from korbert.tasks.sets import changes
from korbert.tasks.sets.known import Files, KnownSet, Part, Published, SetKind

__all__ = ["KLUE"]

_README = "KLUE-benchmark/KLUE README"
_URL = "https://github.com/KLUE-benchmark/KLUE"
_LICENCE = "CC BY-SA 4.0"


def _klue(
    name: str,
    title: str,
    kind: SetKind,
    about: str,
    metrics: tuple[str, ...],
    sizes: tuple[int, int],
    columns: Mapping[str, str],
    best: Published,
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> KnownSet:
    """A set of KLUE v1.1 in JSON; the labels of the test sets are not published."""
    stem = "ynat-v1.1" if name == "tc" else f"klue-{name}-v1.1"
    parts: dict[Part, tuple[str, ...]] = {"train": (f"{stem}_train.json",), "valid": (f"{stem}_dev.json",)}
    files = Files(("klue", f"KLUE/klue_benchmark/{stem}"), parts, {**columns, "id": "guid"}, "json", change)
    size: dict[Part, int] = {"train": sizes[0], "valid": sizes[1]}
    uncounted = "no_relation" if name == "re" else ""
    return KnownSet(
        f"klue-{name}", f"KLUE-{title}", kind, about, metrics, _URL, _LICENCE, size, best, (files,), uncounted
    )


_IN_JSON = (
    _klue(
        "tc",
        "TC (YNAT)",
        "classification",
        "topic of a headline, one of seven",
        ("macro_f1", "accuracy"),
        (45_678, 9_107),
        {"text": "title", "label": "label"},
        Published(85.73, "KLUE-BERT-base", "test", _README),
    ),
    _klue(
        "sts",
        "STS",
        "regression",
        "semantic similarity of two sentences, 0 to 5",
        ("pearson", "spearman", "f1_at_3"),
        (11_668, 519),
        {"text": "sentence1", "pair": "sentence2", "score": "labels.label"},
        Published(92.95, "KPF-BERT", "dev", "KPFBERT/kpfbert README"),
    ),
    _klue(
        "nli",
        "NLI",
        "classification",
        "does the second sentence follow from the first?",
        ("accuracy", "macro_f1"),
        (24_998, 3_000),
        {"text": "premise", "pair": "hypothesis", "label": "gold_label"},
        Published(87.67, "KPF-BERT", "dev", "KPFBERT/kpfbert README"),
    ),
    _klue(
        "re",
        "RE",
        "classification",
        "relation between two marked entities, one of thirty",
        ("micro_f1", "accuracy"),
        (32_470, 7_765),
        {"text": "sentence", "subject": "subject_entity", "object": "object_entity", "label": "label"},
        Published(67.65, "KLUE-RoBERTa-base", "test", _README),
        changes.relation,
    ),
    _klue(
        "mrc",
        "MRC",
        "reading",
        "answer to a question in a text, or none",
        ("klue_exact_match", "rouge_w"),
        (17_554, 5_841),
        {"context": "context", "question": "question", "answers": "answers", "impossible": "is_impossible"},
        Published(70.33, "KoBigBird", "dev", "monologg/KoBigBird README"),
        changes.unanswerable,
    ),
)
_NER_COLUMNS = {"tokens": "tokens", "tags": "tags", "id": "id"}
_NER_FOLDERS = ("klue", "KLUE/klue_benchmark/klue-ner-v1.1")
_NER_DEV = ("klue-ner-v1.1_dev.tsv",)
_ENTITIES = KnownSet(
    "klue-ner",
    "KLUE-NER",
    "tagging",
    "named entities of six types",
    ("entity_macro_f1", "entity_f1", "character_f1", "character_f1_without_o"),
    _URL,
    _LICENCE,
    {"train": 21_008, "valid": 5_000},
    Published(86.11, "KoELECTRA-base", "test", _README),
    (
        Files(
            _NER_FOLDERS,
            {"train": ("klue-ner-v1.1_train.tsv",), "valid": _NER_DEV},
            _NER_COLUMNS,
            "klue-ner",
            changes.entities,
        ),
        Files(
            _NER_FOLDERS,
            {"train": ("klue-ner-mini_train.tsv",), "valid": _NER_DEV},
            _NER_COLUMNS,
            "klue-ner",
            changes.entities,
            "klue-ner-mini_train.tsv has 5,000 of the 21,008 training sentences: not comparable with published scores",
        ),
    ),
)
KLUE = (*_IN_JSON[:3], _ENTITIES, *_IN_JSON[3:])
