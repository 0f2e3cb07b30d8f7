"""A tokenizer as a folder: its files, its record korbert_tokenizer.json, and its digest."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from korbert.errors import ModelError
from korbert.tokenization.analyzer import Analyzer
from korbert.tokenization.settings import AnalyzerOptions, VocabularySettings
from korbert.tokenization.vocabulary import SPECIAL, word_entries

__all__ = ["MODEL", "PIECES", "RECORD", "WORDS", "Parts", "digest", "read", "write"]

FORMAT = 1
RECORD = "korbert_tokenizer.json"
MODEL = "vocabulary.model"
PIECES = "pieces.txt"
WORDS = "words.tsv"


class Parts(NamedTuple):
    """All that a tokenizer is made of."""

    model: bytes
    settings: VocabularySettings
    options: AnalyzerOptions
    versions: dict[str, str]


def digest(parts: Parts) -> str:
    """SHA-256 (hex) over all that shapes ids: model, mark, whole words, analyser options and versions."""
    shapes = {
        "format": FORMAT,
        "model": hashlib.sha256(parts.model).hexdigest(),
        "mark": parts.settings.mark,
        "words": parts.settings.words,
        "analyzer": parts.options.model_dump(),
        "versions": parts.versions,
    }
    return hashlib.sha256(json.dumps(shapes, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def write(folder: Path, parts: Parts, pieces: Sequence[str]) -> None:
    """Writes the files of a tokenizer; other files of the folder stay."""
    files = {MODEL: parts.model, PIECES: "".join(f"{id}\t{piece}\n" for id, piece in enumerate(pieces)).encode()}
    if entries := word_entries(parts.settings):
        first = len(pieces) - len(entries)
        files[WORDS] = "".join(f"{entry}\t{first + place}\n" for place, entry in enumerate(entries)).encode()
    record = {
        "format": FORMAT,
        "digest": digest(parts),
        "vocab_size": len(pieces),
        "special_tokens": {token: id for id, token in enumerate(SPECIAL)},
        "vocabulary": parts.settings.model_dump(),
        "analyzer": parts.options.model_dump(),
        "versions": parts.versions,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")


def read(folder: Path) -> Parts:
    """What write() was given. Raises ModelError as Tokenizer.load says."""
    record = _record(folder / RECORD)
    for name, expected in record["files"].items():
        _check(folder / name, expected)
    try:
        settings = VocabularySettings(**record["vocabulary"])
        options = AnalyzerOptions(**record["analyzer"])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ModelError(f"{folder / RECORD}: {place}: {first['msg']}: restore the file as it was saved") from error
    parts = Parts((folder / MODEL).read_bytes(), settings, options, record["versions"])
    if (found := digest(parts)) != record["digest"]:
        raise ModelError(
            f"{folder / RECORD}: the digest is {found[:12]}, {record['digest'][:12]} when it was saved:"
            " a setting was changed since; restore the file, or learn another vocabulary"
        )
    _check_versions(folder, parts.versions)
    return parts


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{path.parent}: is no tokenizer, it has no {path.name}: give a folder that was saved"
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read ({error}): restore the file as it was saved") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        found = record.get("format") if isinstance(record, dict) else None
        raise ModelError(f"{path}: format {found}, this korbert reads {FORMAT}: use the korbert that saved it")
    if missing := {"digest", "vocabulary", "analyzer", "versions", "files"} - record.keys():
        raise ModelError(f"{path}: has no {sorted(missing)[0]!r}: restore the file as it was saved")
    return record


def _check(path: Path, expected: str) -> None:
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise ModelError(f"{path}: cannot be read, but belongs to the tokenizer: restore it") from None
    if found != expected:
        raise ModelError(
            f"{path}: was changed since it was saved (SHA-256 {found[:12]}, was {expected[:12]}): restore it"
        )


def _check_versions(folder: Path, versions: Mapping[str, str]) -> None:
    installed = Analyzer().versions
    for package, expected in versions.items():
        if (found := installed.get(package, "no such package")) != expected:
            raise ModelError(
                f"{folder}: made with {package} {expected}, installed is {found}: its morphemes would differ;"
                f" install {package}=={expected}, or learn another vocabulary"
            )
