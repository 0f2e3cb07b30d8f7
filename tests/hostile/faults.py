"""What every command line owes whoever typed it: the right result, or one line that says what is wrong and where."""

import re
from collections.abc import Iterator, Mapping, Sequence

import pytest

from tests.running import Outcome

# Names of Python's own errors say nothing to a user; DatasetError and the like of ours would be named otherwise.
_PYTHON = re.compile(
    r"\b(?:[A-Z]\w*Error|[A-Z]\w*Exception|KeyboardInterrupt|StopIteration|NotImplemented)\b|object has no attribute"
    r"|NoneType|unsupported operand|not subscriptable|unexpected keyword|positional argument"
)
_ASIDE = re.compile(r"\.korbert-[0-9a-f]{16}")
_NAMELESS = "with --debug shows where"  # what korbert.pipelines.cli says where it does not know the error
_RAW = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")  # \r may stand in what click prints of an option


def faults_of(
    outcome: Outcome, *, names: Sequence[str] = (), codes: Sequence[int] = (0, 1, 2), lines: bool = False
) -> Iterator[str]:
    """What is wrong with how a command ended.

    names: one of them stands in the error, if there are any. lines: the error may have several, as a name has that it
    repeats.
    """
    if outcome.code is None:
        yield "did not end"
        return
    if outcome.code not in codes:
        yield f"left with {outcome.code}, not one of {', '.join(map(str, codes))}"
    if "Traceback (most recent call last)" in outcome.err:
        yield "a trace on standard error"
    for name, text in (("output", outcome.out), ("error", outcome.err)):
        if found := _RAW.search(text):
            yield f"a raw control character {found[0]!r} on standard {name}"
    if outcome.code in (0, None):
        return
    message = _message(outcome.err, lines=lines)
    if message is None:
        yield "the last line of standard error does not begin with `korbert: `"
        return
    if _NAMELESS in message:
        yield "a nameless error"
    elif found := _PYTHON.search(message):
        yield f"{found[0]!r} in the message"
    if _ASIDE.search(message):
        yield "the message names a file that only the command knows"
    if message.startswith("korbert: ") and names and not any(name in message for name in names):
        yield f"the message names none of {', '.join(map(repr, names))}"


def shown(text: str) -> str:
    """For a report: nothing in it reaches the terminal raw."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def fail(faults: Sequence[str], told: Sequence[str]) -> None:
    """Fails the test if there are faults, and says what was done."""
    if faults:
        pytest.fail(shown("\n".join([*(f"FAULT: {fault[:600]}" for fault in faults), *told])), pytrace=False)


def _message(err: str, *, lines: bool) -> str | None:
    """The last line: korbert's, or click's where the command line is misused. None where it is neither."""
    _, mark, after = f"\n{err.rstrip()}".rpartition("\nkorbert: ")
    if mark and (lines or "\n" not in after):
        return f"korbert: {after}"
    last = err.rstrip("\n").rpartition("\n")[2]
    return last if last.startswith("Error: ") else None


def changes_of(before: Mapping[str, str], after: Mapping[str, str], allowed: Sequence[str]) -> Iterator[str]:
    """What became other, came or went outside of what may. allowed: the beginnings of relative names."""
    for name in sorted(before.keys() | after.keys()):
        may = any(name.startswith(one) or one.startswith(f"{name}/") for one in allowed)  # or a folder around it
        if before.get(name) != after.get(name) and not may:
            what = "was changed" if name in before and name in after else "came" if name in after else "went"
            yield f"{name!r} {what}"


def leftovers_of(after: Mapping[str, str]) -> Iterator[str]:
    """Files that were being written. In the folder of a stage under way they are its own affair."""
    for name in after:
        if _ASIDE.search(name) and ".partial/" not in name:
            yield f"{name!r} is half written"
