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


def predict_lines(model: Loaded, lines: Iterable[bytes], name: str = "input") -> Iterator[Mapping[str, Any]]:
    """One result a line, in order. Raises CorpusError, naming the line, where it is not UTF-8 or not a reader's JSON.

    name: what errors call the input.
    """
    texts = decoded(lines, name)
    if isinstance(model, Classifier):
        while part := list(islice(texts, _LINES_AT_ONCE)):
            yield from model.predict(part)
    elif isinstance(model, Reader):
        for number, line in enumerate(texts, 1):
            yield model.answer(**_question(line, f"{name}: line {number}"))
    else:
        assert isinstance(model, Filler)
        raise ModelError(
            "this model fills gaps and has learned no task: use `korbert fill`, or a model of nsmc or korquad"
        )


def decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines without their ends, and without the byte-order mark that some editors write; see predict_lines."""
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            place = f"{name}: line {number}, byte {error.start + 1}"
            raise CorpusError(f"{place}: is not UTF-8: {line[:40]!r}: convert it, as with iconv -f cp949") from error
        yield text.rstrip("\r\n")


def _question(line: str, place: str) -> dict[str, str]:
    try:
        value = json.loads(line)
        return {key: str(value[key]) for key in ("context", "question")}
    except (ValueError, KeyError, TypeError) as error:
        wanted = '{"context": "..", "question": ".."}'
        raise CorpusError(f"{place}: is not {wanted} in JSON: {line.strip()[:60]!r}") from error
