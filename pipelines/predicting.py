"""Lines in, results out: what `korbert predict` does with a model."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from korbert.errors import CorpusError, ModelError
from korbert.loading import Loaded
from korbert.tasks.classification import Classifier
from korbert.tasks.filling import Filler
from korbert.tasks.reading import Reader

_LINES_AT_ONCE = 256


def predict_lines(model: Loaded, lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """One result a line, in order. Raises CorpusError, naming the line, where a reader's line is not its JSON."""
    if isinstance(model, Classifier):
        source = iter(lines)
        while part := list(islice(source, _LINES_AT_ONCE)):
            yield from model.predict([line.rstrip("\r\n") for line in part])
    elif isinstance(model, Reader):
        for number, line in enumerate(lines, 1):
            yield model.answer(**_question(line, number))
    else:
        assert isinstance(model, Filler)
        raise ModelError(
            "this model fills gaps and has learned no task: use `korbert fill`, or a model of nsmc or korquad"
        )


def _question(line: str, number: int) -> dict[str, str]:
    try:
        value = json.loads(line)
        return {key: str(value[key]) for key in ("context", "question")}
    except (ValueError, KeyError, TypeError) as error:
        wanted = '{"context": "..", "question": ".."}'
        raise CorpusError(f"line {number}: is not {wanted} in JSON: {line.strip()[:60]!r}") from error
