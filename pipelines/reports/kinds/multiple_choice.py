"""Multiple choice: calibration, most confident errors. Choices are scored one by one: their order has no effect."""

from collections.abc import Iterator

from korbert.messages import Message
from korbert.pipelines.reports.drawing import Section
from korbert.pipelines.reports.kinds.common import ScoredRows
from korbert.system import JsonObject


def sections(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    errors, calibration = scored.by_confidence("choice")
    yield calibration
    yield from scored.worst(Message("Most confident errors"), errors, Message("errors"))
