"""No text of a file, a label or a name reaches the terminal with an escape sequence in it."""

import io
import logging
import re
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from korbert.system.terminal import Messages, console, in_one_line, printable, say

ROOT = Path(__file__).parents[3]
ODD = "a\x1b[31mb\u202ec\x9bd\x00e\ud800"
SHOWN = r"a\x1b[31mb\u202ec\x9bd\x00e\ud800"


def test_all_output_is_escaped(capsys):
    assert printable(ODD + "\n\t👨\u200d👩") == SHOWN + "\n\t👨\u200d👩"
    say(Path(ODD))
    say(ODD, err=True)
    record = logging.LogRecord("korbert", logging.INFO, "", 1, "%s: read", (ODD,), None)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (f"{SHOWN}\n", f"{SHOWN}\n")
    assert Messages("%(message)s").format(record) == f"{SHOWN}: read"

    table = Table("name", escape(ODD), title=escape(ODD))
    table.add_row("x", escape(ODD))
    file = io.StringIO()
    console(file=file, width=200).print(table)
    console(file=file, width=200).print(ODD, markup=False)
    assert file.getvalue().count(SHOWN) == 4
    assert not set(file.getvalue()) & set("\x1b\u202e\x9b\x00\ud800")
    # A message is one line but for the items that it lists.
    assert in_one_line("a\nb: is bad:\n  first\n  second") == "a\\nb: is bad:\n  first\n  second"


def test_commands_print_through_this_module_alone():
    """Except bytes, JSON and CSV, for programs."""
    programs = r"b\"|json\.dumps|(inference\.)?lines\.as_json|line_of|tokenizing\.as_json|csv_part"
    other = re.compile(rf"click\.echo\((?!{programs})|\bConsole\(")
    assert not [path for path in (ROOT / "pipelines").rglob("*.py") if other.search(path.read_text(encoding="utf-8"))]
