"""Reads the texts of a command from its arguments or a file, and formats its output as JSON lines."""

import json
from collections.abc import Iterator

from korbert.errors import PartlyFailed, SettingsError
from korbert.pipelines.inference.input_records import TEXT_NAMES, records
from korbert.records import LONGEST, Format, Source, form_of
from korbert.tasks.files import ROLES, column_for


def texts(file: Source, name: str, form: Format = "lines") -> Iterator[tuple[str, str]]:
    """Yields place ("reviews.txt: line 3") and text of each record. PartlyFailed for a faulty or too long record.

    form: "auto" goes by the ending of the name; a file with an unknown ending is read as plain lines.
    """
    form = "lines" if form == "auto" and form_of(b"", name) == "auto" else form
    for batch in records(file, name, form, [ROLES["text"]]):
        for record in batch:
            place = f"{name}: line {record.line}"
            if record.cut:
                raise PartlyFailed(
                    "{place}: is longer than {longest:,} bytes: put it on several lines", place=place, longest=LONGEST
                )
            text = record.fields.get(column_for(TEXT_NAMES, tuple(record.fields)) or "")
            if not isinstance(text, str):
                raise PartlyFailed("{place}: {error}", place=place, error=record.error or "has no text")
            yield place, text


def checked_arguments(arguments: tuple[str, ...]) -> list[tuple[str, str]]:
    """Returns place and text of command line arguments. SettingsError for one that is not UTF-8: it has surrogates."""
    for number, text in enumerate(arguments, 1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SettingsError(
                "text {number}: character {start} is not UTF-8: {text!a}",
                number=number,
                start=error.start + 1,
                text=text[:40],
            ) from None
    return [(f"text {number}", text) for number, text in enumerate(arguments, 1)]


def as_json(value: object) -> bytes:
    """Returns a line of JSON in UTF-8, whatever the encoding of the terminal. Lone surrogates are escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
