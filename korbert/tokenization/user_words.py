"""A user's dictionary: words to add to Kiwi's, one per line, in the format of Kiwi's own dictionaries."""

from pathlib import Path

from pydantic import ValidationError

from korbert.errors import CorpusError
from korbert.tokenization.settings import UserWord

_FORMAT = "a line is form, tab, tag, tab, score; without tag and score it is NNP and 0"


def read_user_words(path: Path) -> tuple[UserWord, ...]:
    """The words of a UTF-8 file, in its order. A line is form, tab, part of speech (default NNP), tab, score (default
    0). Blank lines and lines that begin with # are skipped.

    Raises CorpusError, naming file and line, for bytes that are not UTF-8, a line of more than three fields or with
    commas instead of tabs, a form with spaces, an unknown part of speech, a score that is no number, and a repeated
    form and tag.
    """
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror}): give a file of words") from error
    except UnicodeDecodeError as error:
        where = f"{path}, line {1 + data.count(10, 0, error.start)}"
        what = f"byte 0x{data[error.start]:02x} is not UTF-8: convert the file to UTF-8"
        raise CorpusError(f"{where}: {what}") from error
    lines: dict[tuple[str, str], int] = {}
    words: list[UserWord] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        word = _word(line, f"{path}, line {number}")
        first = lines.setdefault((word.form, word.tag), number)
        if first != number:
            raise CorpusError(f"{path}, line {number}: {word.form}/{word.tag} stands in line {first} already: take one")
        words.append(word)
    if not words:
        raise CorpusError(f"{path}: has no words: {_FORMAT}")
    return tuple(words)


def _word(line: str, where: str) -> UserWord:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) == 1 and "," in line:  # one word to Kiwi, which no text has
        raise CorpusError(f"{where}: commas in {line.strip()!r}, where tabs separate the fields: {_FORMAT}")
    if len(fields) > len(UserWord.model_fields):
        raise CorpusError(f"{where}: {len(fields)} fields between tabs in {line!r}: {_FORMAT}")
    try:
        return UserWord.model_validate(dict(zip(UserWord.model_fields, fields, strict=False)))
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{first['loc'][0]}: " if first["loc"] else ""
        value = "" if "Value error" in first["msg"] else f", not {first['input']!r}"
        raise CorpusError(f"{where}: {name}{first['msg'].removeprefix('Value error, ')}{value}: {_FORMAT}") from error
