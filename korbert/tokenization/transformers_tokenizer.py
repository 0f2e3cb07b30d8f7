"""Tokenizers of `transformers` with the interface of ours.

Ids are theirs, and spans their offsets, which refer to the original text: only tokenizers in Rust have them, the fast
ones. Special tokens in a text are text by default.
"""

import copy
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from korbert.errors import ModelError
from korbert.folders import tokenizer_folder
from korbert.messages import Message, reason
from korbert.system import package, read_object, read_small
from korbert.system.transformers_package import quietly, reason_of
from korbert.tokenization.analyzer import Analyzer
from korbert.tokenization.encoding import Frame
from korbert.tokenization.folder import RECORD, write_files
from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.pieces import CONTINUATION, MORPHEME, Pieces
from korbert.tokenization.tokenizer import Tokenizer
from korbert.tokenization.tokenizer_base import AnyTokenizer

FORMAT = 1
KIND = "transformers"  # in the record of the folder

_VOCABULARIES = (".model", ".codes", "merges.txt")
_MACHINE_KEYS = ("name_or_path", "is_local", "local_files_only", "_commit_hash")  # say where it was loaded, not what
_MOST_BYTES = 1 << 26  # of a file
_HUGE_ID = re.compile(rb'(?<!\\)"\s*:\s*([1-9]\d{7,})')  # the tokenizer would make room for all ids below it
_BATCH_TEXTS = 256
_SAMPLES = ("나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!", "Café 2020년作 👍 [MASK] <mask>", " ")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LONGEST = 1_000_000  # a model_max_length above this means unlimited


class TransformersTokenizer(AnyTokenizer):
    """A tokenizer of `transformers`, from its saved files.

    Boundaries: MORPHEME at pieces that begin after white space or at the beginning of the text, CONTINUATION at all
    others. Tags are empty; `morphemes` counts those beginnings. analyzer: Kiwi as it is by default, for baselines.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """files: name -> content, from `saved_files`. ModelError if they do not make a tokenizer."""
        self.files = dict(files)
        self.digest = digest(self.files)
        with TemporaryDirectory(prefix="korbert-tokenizer-") as folder:
            for name, data in self.files.items():
                Path(folder, name).write_bytes(data)
            self.theirs = open_tokenizer(Path(folder))
        if not self.theirs.is_fast:
            name = type(self.theirs).__name__
            raise ModelError(
                "its tokenizer ({name}) gives no offsets: take a model with a fast one, in Rust", name=name
            )
        self.frame = frame_of(self.theirs)
        self.vocab_size = max(self.theirs.get_vocab().values()) + 1
        self.cls_id = self.frame.cls_id
        self.sep_id = self.frame.sep_id
        self.pad_id, self.unk_id, self.mask_id = (
            default if id is None else int(id)
            for id, default in (
                (self.theirs.pad_token_id, 0),  # padding is masked, so that any id will do
                (self.theirs.unk_token_id, -1),
                (self.theirs.mask_token_id, -1),
            )
        )
        self.analyzer = Analyzer()
        # SentencePiece vocabularies contain special tokens as pieces, too: in a text these become the unknown piece.
        never = self.theirs.all_special_ids if self.unk_id >= 0 else ()
        self._never_in_text = frozenset(never)

    @classmethod
    def of_folder(cls, folder: str | Path) -> "TransformersTokenizer":
        """Loads the tokenizer of a folder written by `transformers`. ModelError if it has none, or needs code."""
        original, files = saved_files(Path(folder))
        try:
            tokenizer = cls(files)
            changed_texts = [text for text in _SAMPLES if ids_of(tokenizer.theirs, text) != ids_of(original, text)]
        except ModelError as error:
            path = Path(folder) / "tokenizer_config.json"
            raise ModelError("{path}: {error}", path=path, error=reason(error)) from None
        if changed_texts:
            raise ModelError(
                "{folder}: its tokenizer gives other ids once saved ({changed!r}): save it anew",
                folder=folder,
                changed=changed_texts[0],
            )
        return tokenizer

    @classmethod
    def load(cls, folder: str | Path) -> "TransformersTokenizer":
        """Loads a folder written by `save`. ModelError if a file is missing or was changed."""
        folder = tokenizer_folder(folder)
        try:
            record = read_object(folder / RECORD)
            if record.get("kind") != KIND or record.get("format") != FORMAT:
                raise ModelError(
                    "{folder}: is not the record of a tokenizer of transformers, format {format}",
                    folder=folder / RECORD,
                    format=FORMAT,
                )
            names = [str(name) for name in record["files"] if Path(name).name == name]
            files = {name: read_small(folder / name, _MOST_BYTES) for name in names}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                "{folder}: cannot be read ({error}): restore it as it was saved", folder=folder, error=reason(error)
            ) from None
        if digest(files) != record.get("digest"):
            raise ModelError("{folder}: a file was changed since it was saved: restore it", folder=folder)
        return cls(files)

    def save(self, folder: str | Path) -> None:
        """Writes the tokenizer's own files and korbert_tokenizer.json. Same tokenizer: same bytes."""
        record = {
            "format": FORMAT,
            "kind": KIND,
            "digest": self.digest,
            "class": type(self.theirs).__name__,
            "vocab_size": self.vocab_size,
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(self.files.items())},
        }
        write_files(Path(folder), self.files, record)

    def __reduce__(self) -> tuple[type["TransformersTokenizer"], tuple[dict[str, bytes]]]:
        return type(self), (self.files,)

    @property
    def max_length(self) -> int | None:
        """Maximum length in pieces, special tokens included; None if not specified."""
        length = int(self.theirs.model_max_length)
        return length if length < _LONGEST else None

    def encode_pieces(self, text: str, *, special_tokens: bool = False) -> Pieces:
        encoding = self._backends[special_tokens].encode(_replace_surrogates(text), add_special_tokens=False)
        return self._pieces(text, encoding, special_tokens)

    def pieces_of_many(self, texts: Iterable[str], *, workers: int = 1) -> Iterator[Pieces]:
        remaining = iter(texts)
        while batch := list(islice(remaining, _BATCH_TEXTS)):
            encodings = self._backends[False].encode_batch(
                list(map(_replace_surrogates, batch)), add_special_tokens=False
            )
            yield from map(self._pieces, batch, encodings)

    def pieces(self, analysis: Analysis, text: str) -> Pieces:
        return self.encode_pieces(text)

    @cached_property
    def _backends(self) -> tuple[Any, Any]:
        """Their tokenizer in Rust, for which special tokens in a text are text, and a copy that recognizes them."""
        plain = copy.deepcopy(self.theirs.backend_tokenizer)
        plain.no_truncation()
        plain.no_padding()
        plain.encode_special_tokens = True
        recognizing = copy.deepcopy(plain)
        recognizing.encode_special_tokens = False
        return plain, recognizing

    def _pieces(self, text: str, encoding: Any, special_tokens: bool = False) -> Pieces:
        """The pieces of their encoding."""
        ids: list[int] = encoding.ids
        if not special_tokens:
            ids = [self.unk_id if id in self._never_in_text else id for id in ids]
        pieces = Pieces(ids, list(encoding.tokens), tags=[""] * len(ids))
        word = -1
        last_start = -1
        for name, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            # Without white space at the ends.
            start = end - len(text[start:end].lstrip())
            end = start + len(text[start:end].rstrip())
            if name == "▁" and "▁" not in text[start:end]:  # a space, even with the offsets of the next character
                end = start
            begins = end > start and start != last_start and (start == 0 or text[start - 1].isspace())
            level = CONTINUATION
            if begins:
                level = MORPHEME
                word += 1
                last_start = start
            pieces.spans.append((start, end))
            pieces.boundaries.append(level)
            pieces.morphemes.append(max(word, 0))
        return pieces

    def tokens(self, ids: Iterable[int]) -> list[str]:
        ids = [int(id) for id in ids]
        if invalid := [id for id in ids if not 0 <= id < self.vocab_size]:
            raise ModelError(
                "id {wrong} is not in the vocabulary of {vocab_size}: of another tokenizer",
                wrong=invalid[0],
                vocab_size=self.vocab_size,
            )
        return [str(name) for name in self.theirs.convert_ids_to_tokens(ids)]

    def decode(self, ids: Sequence[int], boundaries: Sequence[int] | None = None) -> str:
        """As theirs decodes, without special tokens. boundaries: ignored."""
        return str(self.theirs.decode([int(id) for id in ids], skip_special_tokens=True))


def open_tokenizer(folder: Path) -> Any:
    """AutoTokenizer of a local folder, without running its code. ModelError if there is none."""
    library = package("transformers", "a tokenizer of transformers")
    try:
        for path in (path for path in (folder / "tokenizer.json", folder / "vocab.json") if path.is_file()):
            if match := _HUGE_ID.search(read_small(path, _MOST_BYTES)):
                id = match[1].decode()
                raise ValueError(Message("{file}: id {id} is beyond any vocabulary", file=path.name, id=id))
        with quietly():
            return library.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # each class has errors of its own
        raise ModelError(
            "{folder}: its tokenizer cannot be loaded ({reason_of}): save it anew",
            folder=folder,
            reason_of=reason_of(error),
        ) from None


def saved_files(folder: Path) -> tuple[Any, dict[str, bytes]]:
    """The tokenizer of a folder; what it saves of itself, and the model_type, by which its class is found again."""
    config = folder / "tokenizer_config.json"
    try:
        settings = read_object(config) if config.is_file() else {}
        model_type = read_object(folder / "config.json").get("model_type")
    except (OSError, ValueError) as error:
        raise ModelError(
            "{folder}: cannot be read ({error}): name a folder that transformers has written",
            folder=folder,
            error=reason(error),
        ) from None
    if settings.get("auto_map"):
        raise ModelError(
            "{config}: auto_map: the tokenizer needs code of its folder, which is never run", config=config
        )
    length = settings.get("model_max_length")
    if length is not None and (isinstance(length, bool) or not isinstance(length, int | float) or not length >= 3):
        raise ModelError(
            "{config}: model_max_length: {length!r:.60} is not a number of pieces: correct it",
            config=config,
            length=length,
        )
    names = [path.name for path in folder.iterdir()]
    if not any(name == "tokenizer.json" or name.startswith("vocab.") or name.endswith(_VOCABULARIES) for name in names):
        raise ModelError(
            "{folder}: has no tokenizer (tokenizer.json, vocab.txt, ..): put its files there", folder=folder
        )
    theirs = open_tokenizer(folder)
    with TemporaryDirectory(prefix="korbert-tokenizer-") as aside:
        theirs.save_pretrained(aside)
        files = {path.name: path.read_bytes() for path in sorted(Path(aside).iterdir()) if path.is_file()}
    if "tokenizer_config.json" in files:
        saved = json.loads(files["tokenizer_config.json"])
        portable = {key: value for key, value in saved.items() if key not in _MACHINE_KEYS}
        files["tokenizer_config.json"] = (json.dumps(portable, ensure_ascii=False, indent=2) + "\n").encode()
    files["config.json"] = (json.dumps({"model_type": model_type}) + "\n").encode()
    return theirs, files


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 (hex) over the names and bytes of all files."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return hashlib.sha256(json.dumps([FORMAT, KIND, sums], sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def ids_of(theirs: Any, *texts: str, **options: bool) -> list[int]:
    """The ids that their tokenizer gives a text or a pair. ModelError if it fails, as without an unknown token."""
    try:
        return list(theirs(*texts, **options)["input_ids"])
    except Exception as error:  # each class has errors of its own
        raise ModelError(
            "its tokenizer cannot encode a text ({reason_of}): correct its files", reason_of=reason_of(error)
        ) from None


def frame_of(theirs: Any) -> Frame:
    """The special tokens that their tokenizer puts around and between texts. ModelError for an unsupported frame."""
    body = ids_of(theirs, "가", add_special_tokens=False)
    single = ids_of(theirs, "가")
    pair = ids_of(theirs, "가", "가")
    first, *_, last = single
    middle = pair[1 + len(body) : -1 - len(body)]
    if single != [first, *body, last] or not middle or pair != [first, *body, *[last] * len(middle), *body, last]:
        raise ModelError(
            "its tokenizer puts special tokens around texts as in {convert_ids_to_tokens}: one before the "
            "first and the same one after each is needed, as of BERT and RoBERTa",
            convert_ids_to_tokens=theirs.convert_ids_to_tokens(pair),
        )
    cls, sep = theirs.convert_ids_to_tokens([first, last])
    return Frame(first, last, cls, sep, len(middle))


def load_tokenizer(folder: str | Path) -> AnyTokenizer:
    """Loads the tokenizer of a folder, ours or one of `transformers`, found as by Tokenizer.load."""
    record = tokenizer_folder(folder) / RECORD
    try:
        kind = read_object(record).get("kind")
    except (OSError, ValueError):
        kind = None  # Tokenizer.load says what is wrong
    return TransformersTokenizer.load(folder) if kind == KIND else Tokenizer.load(folder)


def _replace_surrogates(text: str) -> str:
    """Replaces lone surrogates, which Rust refuses, with as many replacement characters."""
    return _SURROGATES.sub("\ufffd", text)
