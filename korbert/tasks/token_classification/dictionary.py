"""Dictionary baseline: looks up the training entities."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from korbert.tasks.token_classification.bio import LabelledSpan


def learn_dictionary(rows: Iterable[tuple[str, Iterable[tuple[int, int, str]]]]) -> dict[str, str]:
    """Surface -> label, from texts with their spans, in the order of the surfaces.

    A surface gets its most frequent label, the first by name among ties. It is left out if it occurs in the texts
    without a label at least as often, as a longest match (이 is a family name, but mostly a particle).
    """
    texts = [(text, [LabelledSpan(*span) for span in spans]) for text, spans in rows]
    surfaces = {text[start:end]: "" for text, spans in texts for start, end, _ in spans}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text, spans in texts:
        gold = {(start, end) for start, end, _ in spans}
        for start, end, label in spans:
            counts[text[start:end]][label] += 1
        for start, end, _ in look_up(text, surfaces):
            counts[text[start:end]][""] += (start, end) not in gold
    best = {surface: max(sorted(counts[surface]), key=counts[surface].__getitem__) for surface in sorted(counts)}
    return {surface: label for surface, label in best.items() if label}


def look_up(text: str, dictionary: Mapping[str, str]) -> list[LabelledSpan]:
    """Dictionary entries in a text, by longest match from the left, without overlaps."""
    lengths = sorted({len(surface) for surface in dictionary if surface}, reverse=True)
    entries: list[LabelledSpan] = []
    start = 0
    while start < len(text):
        ends = (start + length for length in lengths if start + length <= len(text))
        end = next((end for end in ends if text[start:end] in dictionary), 0)
        if end:
            entries.append(LabelledSpan(start, end, dictionary[text[start:end]]))
        start = end or start + 1
    return entries
