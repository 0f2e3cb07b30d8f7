"""A tokenizer as a folder: its files, its record korbert_tokenizer.json, and its digest."""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from korbert.errors import ModelError
from korbert.messages import argument, reason
from korbert.system import check_output, read_object, sha256_of, write_bytes_atomically
from korbert.tokenization.analyzer import Analyzer
from korbert.tokenization.tokenizer_settings import AnalyzerOptions, VocabularySettings
from korbert.tokenization.vocabulary import SPECIAL, word_entries

FORMAT = 1
RECORD = "korbert_tokenizer.json"
MODEL = "vocabulary.model"
PIECES = "pieces.txt"
WORDS = "words.tsv"
PROBE = "probe.json"
ACCEPT = "KORBERT_ACCEPT_KIWI"  # an environment variable, which worker processes inherit

_logger = logging.getLogger(__name__)


class _Record(BaseModel, strict=True):
    """The entries of the record that read() uses."""

    digest: str
    base: str | None = None
    vocabulary: dict[str, Any]
    analyzer: dict[str, Any]
    versions: dict[str, str]
    accepted: dict[str, str] = {}
    files: dict[str, str]


class Parts(NamedTuple):
    """Everything that a tokenizer is made of.

    versions: package versions that the vocabulary was counted with. accepted: differing installed versions that the
    user has accepted. probe: from Tokenizer.record_probe_encodings. base: the digest of the tokenizer that
    extending.extend_tokenizer added words to.
    """

    model: bytes
    settings: VocabularySettings
    options: AnalyzerOptions
    versions: dict[str, str]
    accepted: dict[str, str] = {}  # noqa: RUF012 (never changed)
    probe: bytes | None = None
    base: str | None = None


def digest(parts: Parts) -> str:
    """SHA-256 (hex) over everything that determines ids: model, mark, whole words, analyzer options and versions."""
    shapes = {
        "format": FORMAT,
        "model": hashlib.sha256(parts.model).hexdigest(),
        "mark": parts.settings.mark,
        "words": parts.settings.words,
        "analyzer": parts.options.model_dump(),
        "versions": parts.versions,
    }
    text = json.dumps(shapes, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write(folder: Path, parts: Parts, pieces: Sequence[str]) -> None:
    """Writes the files of a tokenizer; other files of the folder stay."""
    files = {MODEL: parts.model, PIECES: "".join(f"{id}\t{piece}\n" for id, piece in enumerate(pieces)).encode()}
    if entries := word_entries(parts.settings.words, parts.settings.mark):
        first_id = len(pieces) - len(entries)
        files[WORDS] = "".join(f"{entry}\t{id}\n" for id, entry in enumerate(entries, first_id)).encode()
    if parts.probe is not None:
        files[PROBE] = parts.probe
    record = {
        "format": FORMAT,
        "digest": digest(parts),
        **({"base": parts.base} if parts.base else {}),
        "vocab_size": len(pieces),
        "special_tokens": {token: id for id, token in enumerate(SPECIAL)},
        "vocabulary": parts.settings.model_dump(),
        "analyzer": parts.options.model_dump(),
        "versions": parts.versions,
        **({"accepted": parts.accepted} if parts.accepted else {}),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    write_files(folder, files, record)


def write_files(folder: Path, files: Mapping[str, bytes], record: Mapping[str, object]) -> None:
    """Writes the files and the record. SettingsError if one of them is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    contents = {**files, RECORD: text.encode()}
    for name in contents:
        check_output(folder / name)
    for name, data in contents.items():
        write_bytes_atomically(folder / name, data)


def read(folder: Path, *, accept_kiwi: bool | None = None) -> Parts:
    """The parts that write() was given. accept_kiwi, ModelError: see Tokenizer.load."""
    try:
        record = _record(folder / RECORD)
        settings = VocabularySettings.model_validate(record.vocabulary)
        options = AnalyzerOptions.model_validate(record.analyzer)
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(map(str, fault["loc"]))
        raise ModelError(
            "{folder}: {name}: {first}: restore the file as it was saved",
            folder=folder / RECORD,
            name=name,
            first=fault["msg"],
        ) from error
    if not {MODEL, PIECES} <= record.files.keys() <= {MODEL, PIECES, WORDS, PROBE}:  # paths are refused, too
        names = ", ".join(sorted(record.files))
        raise ModelError(
            "{folder}: files: {names!r} are not the files of a tokenizer: restore the file as it was saved",
            folder=folder / RECORD,
            names=names[:80],
        )
    for name, expected in record.files.items():
        try:
            current = sha256_of(folder / name)
        except OSError:
            raise ModelError(
                "{folder}: cannot be read, but belongs to the tokenizer: restore it", folder=folder / name
            ) from None
        if current != expected:
            raise ModelError(
                "{folder}: was changed (SHA-256 {current}, was {expected}): restore it",
                folder=folder / name,
                current=current[:12],
                expected=expected[:12],
            )
    probe = (folder / PROBE).read_bytes() if PROBE in record.files else None
    parts = Parts((folder / MODEL).read_bytes(), settings, options, record.versions, {}, probe, record.base)
    if (current := digest(parts)) != record.digest:
        raise ModelError(
            "{folder}: the digest is {current}, {digest} when it was saved: a setting was changed since; "
            "restore the file, or learn another vocabulary",
            folder=folder / RECORD,
            current=current[:12],
            digest=record.digest[:12],
        )
    accept = bool(os.environ.get(ACCEPT)) if accept_kiwi is None else accept_kiwi
    return parts._replace(accepted=_other_versions(folder, parts.versions, record.accepted, accept=accept))


def _record(path: Path) -> _Record:
    """Reads the record. Raises ValidationError if an entry is missing or has the wrong type."""
    try:
        record = read_object(path)
    except FileNotFoundError:
        raise ModelError(
            "{parent}: is no tokenizer, it has no {file}: give a saved one", parent=path.parent, file=path.name
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(
            "{path}: cannot be read ({error}): restore the file as it was saved", path=path, error=reason(error)
        ) from error
    if record.get("kind") == "transformers":
        raise ModelError(
            "{parent}: is a tokenizer of transformers: use korbert.tokenization.load_tokenizer", parent=path.parent
        )
    if record.get("format") != FORMAT:
        value = repr(record.get("format"))[:80]
        raise ModelError(
            "{path}: format {value}, this korbert reads {format}: use the korbert that saved it",
            path=path,
            value=value,
            format=FORMAT,
        )
    return _Record.model_validate(record)


def _other_versions(
    folder: Path, versions: Mapping[str, str], accepted_before: Mapping[str, str], *, accept: bool
) -> dict[str, str]:
    """Installed versions that differ from those of the vocabulary. ModelError unless they are accepted.

    accepted_before: those that the tokenizer was saved with. accept: whether the caller accepts others.
    """
    installed = Analyzer().versions
    differing = {
        name: installed.get(name, "absent") for name, version in versions.items() if installed.get(name) != version
    }
    if not differing or differing == accepted_before:
        return differing
    made_with, installed_with = (
        ", ".join(f"{name} {group[name]}" for name in differing) for group in (versions, differing)
    )
    if not accept:
        requirements = " ".join(f"{name}=={versions[name]}" for name in differing)
        raise ModelError(
            "{folder}: made with {made}, installed is {here}: its morphemes would differ (`korbert "
            "tokenize {folder} --check` says how many); install {requirements}, learn another vocabulary, or say "
            "{option}",
            folder=folder,
            made=made_with,
            here=installed_with,
            requirements=requirements,
            option=argument("accept_kiwi"),
        )
    _logger.warning("%s: made with %s, used with %s", folder, made_with, installed_with)
    return differing
