"""Records of CSV lines. A quoted field may span lines; a mistaken quote costs only its own line."""

import csv
from collections import deque
from collections.abc import Iterable, Iterator

from korbert.records.table import Fault

_MALFORMED = "a quoted field does not end or goes on after its quote, or a carriage return stands outside quotes"


def csv_records(
    lines: Iterable[str | Fault], longest_field: int, delimiter: str = ","
) -> Iterator[tuple[int, str, list[str] | Fault]]:
    """(lines before it, its text, its fields) of each record in order, blank ones included.

    lines: with their ends, read no further than the record needs; a fault stands for a line that cannot be read. Such a
    line is a record of its own, with the fault for fields. So is a line whose quoted field does not end, goes on after
    its quote, or is longer than `longest_field` characters; the next record begins at the line after.
    """
    source = iter(lines)
    again: deque[str | Fault] = deque()  # lines read after a mistaken quote
    taken: list[str | Fault] = []  # lines of the record that is read

    def feed() -> Iterator[str]:
        while (line := again.popleft() if again else next(source, "")) != "":
            taken.append(line)
            if isinstance(line, Fault):
                raise csv.Error
            yield line

    before = 0
    reader = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        limit = csv.field_size_limit(longest_field)  # the process's; changed only while a record is read
        try:
            fields: list[str] | Fault = next(reader)
        except StopIteration:
            return
        except csv.Error:  # only the first line is at fault
            again.extendleft(reversed(taken[1:]))
            del taken[1:]
            reader = csv.reader(feed(), delimiter=delimiter, strict=True)
            fields = taken[0] if isinstance(taken[0], Fault) else Fault("bad_quotes", _MALFORMED, raw=taken[0])
        finally:
            csv.field_size_limit(limit)
        text = "".join(line for line in taken if isinstance(line, str))
        number = len(taken)
        taken.clear()
        yield before, text, fields
        before += number
