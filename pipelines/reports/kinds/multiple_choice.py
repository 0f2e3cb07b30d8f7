"""Multiple choice: calibration, most confident errors. Choices are scored one by one: their order has no effect."""

from collections.abc import Iterator

from korbert.messages import Message
from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports.drawing import Section
from korbert.pipelines.reports.kinds.common import ScoredRows


def sections(scored: ScoredRows, details: Json) -> Iterator[Section]:
    errors, calibration = scored.by_confidence("choice")
    yield calibration
    yield from scored.worst(Message("Most confident errors"), errors, Message("errors"))
