"""Known data sets: `load("kobest-copa", Path("DATA"))` gives their rows as tasks take them.

1. known.py: description of a set: its kind, files, columns, metrics, where to get it, published scores.
2. table.py: the sets.
3. changes.py: converts rows of a set's own form to rows of its kind.
4. loading.py: finds and reads the files, with substitutes for missing parts.

A row has the roles of its kind, and `id` (a text) where the set has ids:

| kind | roles |
|---|---|
| classification | text, label: str; pair where the set has two texts |
| regression | text, pair, score: float |
| tagging | text, spans: list of Span; or tokens, tags, spaces (whether one follows each token) |
| choice | text, choices: list of str, label: the place of the right one, from 0 |
| reading | context, question, answers: list of Answer, empty where the question has none |
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.sets.known import Files, KnownSet, Part, Published
    from korbert.tasks.sets.loading import KnownParts, files_at_hand, load
    from korbert.tasks.sets.table import SETS, known_set, listing

__all__ = [
    "SETS",
    "Files",
    "KnownParts",
    "KnownSet",
    "Part",
    "Published",
    "files_at_hand",
    "known_set",
    "listing",
    "load",
]

__getattr__ = attach(
    __name__,
    {
        "SETS": "table",
        "Files": "known",
        "KnownParts": "loading",
        "KnownSet": "known",
        "Part": "known",
        "Published": "known",
        "files_at_hand": "loading",
        "known_set": "table",
        "listing": "table",
        "load": "loading",
    },
)
