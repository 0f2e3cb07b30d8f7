"""Records of CSV lines. A quoted field may span lines; a mistaken quote costs only its own line."""

import csv
from collections import deque
from collections.abc import Iterable, Iterator

__all__ = ["MALFORMED", "csv_records"]

MALFORMED = "a quoted field does not end or goes on after its quote, or a carriage return stands outside quotes"


def csv_records(
    lines: Iterable[str | None], longest_field: int, delimiter: str = ","
) -> Iterator[tuple[int, str | None, list[str] | None]]:
    """(lines before it, its text, its fields) of each record in order, blank ones included.

    lines: with their ends, read no further than the record needs; None stands for a line that cannot be read. Such a
    line is a record of its own, without text and fields. So is a line whose quoted field does not end, goes on after
    its quote, or is longer than `longest_field` characters, without fields; the next record begins at the line after.
    """
    source = iter(lines)
    again: deque[str | None] = deque()  # lines read after a mistaken quote
    taken: list[str | None] = []  # lines of the record that is read

    def feed() -> Iterator[str]:
        while (line := again.popleft() if again else next(source, "")) != "":
            taken.append(line)
            if line is None:
                raise csv.Error
            yield line

    before = 0
    reader = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        limit = csv.field_size_limit(longest_field)  # the process's; changed only while a record is read
        try:
            fields: list[str] | None = next(reader)
        except StopIteration:
            return
        except csv.Error:
            fields = None
        finally:
            csv.field_size_limit(limit)
        if fields is None:  # only the first line is at fault
            again.extendleft(reversed(taken[1:]))
            del taken[1:]
            reader = csv.reader(feed(), delimiter=delimiter, strict=True)
        text = taken[0] if fields is None else "".join(filter(None, taken))
        number = len(taken)
        taken.clear()
        yield before, text, fields
        before += number
