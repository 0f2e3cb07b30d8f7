"""What a command reads: a file, a folder saved by `datasets`, an address, or a pipe, which is read as it arrives."""

import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, TypeAlias, cast

from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.records.compression import File, open_bytes
from korbert.records.detection import Form, Format, detect_format, open_table
from korbert.records.encodings import utf8
from korbert.records.jsons import object_of, parse_line
from korbert.records.labelling_tools import is_labelling_export
from korbert.records.lines import LONGEST, Line, batches
from korbert.records.table import BLANK_BYTES, Columns, Fault, Table, beginning, head_of, text_file

Source: TypeAlias = "IO[bytes] | File"
Guess: TypeAlias = Callable[[Sequence[str]], Format]
"""Returns the format of a text that begins with these lines, and of which nothing else is known."""


@dataclass(frozen=True)
class Lines:
    """Plain lines of text or JSON lines, in UTF-8 (see encodings.utf8), to be read once.

    encoding: of their file. longest: bytes of a line.
    """

    batches: Iterator[list[Line]]
    form: Format
    encoding: str
    longest: int = LONGEST

    def value(self, line: Line) -> Any:
        """Returns the value of a line of JSON, {"text": ..} for a plain line, or the fault of the line.

        A fault of the encoding shows and counts bytes of UTF-8, also of a file in another encoding.
        """
        if self.form == "jsonl" and line.cut:
            return Fault("too_long", Message("is longer than {longest:,} bytes", longest=self.longest))
        try:
            text = line.text
        except UnicodeDecodeError as error:
            is_utf8 = self.encoding == "utf-8"
            remedy = Message("convert it, as with iconv -f cp949") if is_utf8 else Message("correct it")
            what = Message(
                "byte {number} is not {encoding}: {beginning}: {do}",
                number=error.start + 1,
                encoding=self.encoding.upper(),
                beginning=repr(line.data[:40]),
                do=remedy,
            )
            return Fault("bad_encoding", what)
        return object_of(parse_line(text)) if self.form == "jsonl" else {"text": text}


@contextmanager
def open_records(
    source: Source, name: str, form: Format, guess: Guess, fits: Callable[[Columns], bool], longest: int = LONGEST
) -> Iterator[Lines | Table]:
    """Opens plain lines of text, and JSON lines that no labelling tool exported, as Lines, anything else as a table.

    name: for messages; its ending, and last `guess`, tell the format where neither `form` nor the first bytes do. fits:
    as for open_table. A pipe whose format needs the whole file is first copied to a temporary file. longest: bytes of a
    line, and characters of a quoted field of CSV. Raises CorpusError as open_table does.
    """
    if hasattr(source, "is_dir"):
        path = cast(Path, source)
        if path.is_dir() or path.suffix == ".ann":
            yield open_table(path, cast(Form, form), fits)
            return
        if path.is_fifo() or path.is_char_device():  # can be read only once
            with open_bytes(path) as pipe, open_records(pipe, name, form, guess, fits, longest) as opened:
                yield opened
            return
        head = head_of(path)
        whole_lines = head
    else:
        path = None
        pipe = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(Any, source))
        head = pipe.peek()
        whole_lines = head[: head.rfind(b"\n") + 1] or head  # the last line may still be on its way
    detected_form = detect_format(whole_lines, name, form, guess)
    encoding, first_lines = beginning(head)
    if path and detected_form == "lines" and head.strip(BLANK_BYTES):
        text_file(path, head)  # refuses line ends in CR; the first line of a pipe may still be on its way
    if detected_form == "lines" or (detected_form == "jsonl" and not is_labelling_export(first_lines)):
        with open_bytes(path) if path else nullcontext(pipe) as file, utf8(file, encoding, Path(name)) as text:
            yield Lines(batches(text, longest), detected_form, encoding, longest)
    elif path is None:
        with temporary_copy(pipe, name) as copy, open_records(copy, name, form, guess, fits, longest) as opened:
            yield opened
    elif head.strip():
        yield open_table(path, detected_form, fits, longest=longest)
    else:  # a blank file has no records in any format
        yield Lines(iter(()), detected_form, "")


@contextmanager
def temporary_copy(pipe: IO[bytes], name: str) -> Iterator[Path]:
    """A temporary file with the content of a pipe, which can be read only once. Errors name the pipe."""
    with TemporaryDirectory(prefix="korbert-") as folder:
        path = Path(folder) / "input"
        with path.open("wb") as copy:
            shutil.copyfileobj(pipe, copy)
        try:
            yield path
        except CorpusError as error:
            raise CorpusError(error.message.map_texts(lambda text: text.replace(str(path), name))) from error
