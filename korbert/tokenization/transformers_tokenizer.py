"""Adapts tokenizers of `transformers` to the interface of ours (protocol.py).

Ids are theirs. Spans come from the offsets of fast tokenizers, in Rust; those of slow tokenizers, in
Python, are found by alignment.py. All offsets refer to the original text. Special tokens in a text are text by default.
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
from typing import Any, overload

from korbert.durable import read_object
from korbert.errors import ModelError, SettingsError
from korbert.folders import tokenizer_folder
from korbert.tokenization.alignment import align, trimmed
from korbert.tokenization.analyzer import Analyzer
from korbert.tokenization.encoding import Encoding, assemble, assemble_or_cut
from korbert.tokenization.folder import RECORD
from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.pieces import CONTINUATION, MORPHEME, Pieces, Span
from korbert.tokenization.protocol import AnyTokenizer
from korbert.tokenization.tokenizer import Tokenizer
from korbert.tokenization.transformers_folder import FORMAT, KIND, digest, frame_of, opened, saved_files

__all__ = ["TransformersTokenizer", "load_tokenizer"]

_AT_ONCE = 256  # texts
_SAMPLES = ("나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!", "Café 2020년作 👍 [MASK] <mask>", " ")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LONGEST = 1_000_000  # a model_max_length above this means unlimited


class TransformersTokenizer:
    """A tokenizer of `transformers`, from its saved files.

    Boundaries: MORPHEME at pieces that begin behind white space or at the beginning of the text, CONTINUATION at all
    others. Tags are empty; `morphemes` counts those beginnings. analyzer: Kiwi as it is by default, for baselines.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """files: name -> content, from `saved_files`. ModelError if they do not make a tokenizer."""
        self.files = dict(files)
        self.digest = digest(self.files)
        with TemporaryDirectory(prefix="korbert-tokenizer-") as folder:
            for name, data in self.files.items():
                Path(folder, name).write_bytes(data)
            self.theirs = opened(Path(folder))
        try:
            self.frame = frame_of(self.theirs)
        except ModelError:
            raise
        except Exception as error:  # without an unknown token, for one
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"its tokenizer cannot encode a text ({reason}): correct its files") from None
        self.is_fast = bool(self.theirs.is_fast)

    @classmethod
    def of_folder(cls, folder: str | Path) -> "TransformersTokenizer":
        """Loads the tokenizer of a folder written by `transformers`. ModelError if it has none, or needs code."""
        theirs, files = saved_files(Path(folder))
        try:
            tokenizer = cls(files)
            changed = [text for text in _SAMPLES if tokenizer.theirs(text)["input_ids"] != theirs(text)["input_ids"]]
        except ModelError as error:
            raise ModelError(f"{Path(folder) / 'tokenizer_config.json'}: {error}") from None
        except Exception as error:  # of texts with characters that it does not know
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"{folder}: its tokenizer cannot encode a text ({reason}): correct its files") from None
        if changed:
            raise ModelError(f"{folder}: its tokenizer gives other ids once saved ({changed[0]!r}): save it anew")
        return tokenizer

    @classmethod
    def load(cls, folder: str | Path) -> "TransformersTokenizer":
        """Loads a folder written by `save`. ModelError if a file is missing or was changed."""
        folder = tokenizer_folder(folder)
        try:
            record = read_object(folder / RECORD)
            if record.get("kind") != KIND or record.get("format") != FORMAT:
                raise ModelError(f"{folder / RECORD}: is no record of a tokenizer of transformers, format {FORMAT}")
            names = [str(name) for name in record["files"] if Path(name).name == name]
            files = {name: (folder / name).read_bytes() for name in names}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{folder}: cannot be read ({error}): restore it as it was saved") from None
        if digest(files) != record.get("digest"):
            raise ModelError(f"{folder}: a file was changed since it was saved: restore it")
        return cls(files)

    def save(self, folder: str | Path) -> None:
        """Writes the tokenizer's own files and korbert_tokenizer.json. Same tokenizer: same bytes."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        record = {
            "format": FORMAT,
            "kind": KIND,
            "digest": self.digest,
            "class": type(self.theirs).__name__,
            "vocab_size": self.vocab_size,
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(self.files.items())},
        }
        (folder / RECORD).write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def __reduce__(self) -> tuple[type["TransformersTokenizer"], tuple[dict[str, bytes]]]:
        return type(self), (self.files,)

    @property
    def pad_id(self) -> int:
        """Id of padding; 0 if there is none, as padding is masked."""
        return self._id("pad_token_id", 0)

    @property
    def unk_id(self) -> int:
        """Id of the unknown piece, -1 if there is none."""
        return self._id("unk_token_id", -1)

    @property
    def mask_id(self) -> int:
        """Id of the mask, -1 if there is none."""
        return self._id("mask_token_id", -1)

    @property
    def cls_id(self) -> int:
        """Id of the special token before a text."""
        return self.frame.cls_id

    @property
    def sep_id(self) -> int:
        """Id of the special token after a text."""
        return self.frame.sep_id

    def _id(self, name: str, missing: int) -> int:
        found = getattr(self.theirs, name, None)
        return missing if found is None else int(found)

    @cached_property
    def vocab_size(self) -> int:
        """Number of entries; every id is below it."""
        return int(max(self.theirs.get_vocab().values())) + 1

    @property
    def max_length(self) -> int | None:
        """Maximum length in pieces, special tokens included; None if not specified."""
        found = int(self.theirs.model_max_length)
        return found if found < _LONGEST else None

    @cached_property
    def analyzer(self) -> Analyzer:
        """Kiwi with default options, for baselines, which count morphemes."""
        return Analyzer()

    @overload
    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_length: int | None = None,
        stride: None = None,
        special_tokens: bool = False,
    ) -> Encoding: ...
    @overload
    def encode(
        self, text: str, pair: str | None = None, *, max_length: int, stride: int, special_tokens: bool = False
    ) -> list[Encoding]: ...
    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_length: int | None = None,
        stride: int | None = None,
        special_tokens: bool = False,
    ) -> Encoding | list[Encoding]:
        """As Tokenizer.encode, with the special tokens that their tokenizer puts around texts and pairs."""
        first = self.encode_pieces(text, special_tokens=special_tokens)
        second = None if pair is None else self.encode_pieces(pair, special_tokens=special_tokens)
        return assemble_or_cut(first, second, self.frame, max_length, stride)

    def encode_pieces(self, text: str, *, special_tokens: bool = False) -> Pieces:
        """The pieces of a text without special tokens around. special_tokens: "[MASK]" and the like in it are such."""
        if not self.is_fast:
            return self._slow(text, special_tokens)
        backend = self._marking if special_tokens else self._plain
        found = backend.encode(_sound(text), add_special_tokens=False)
        return _pieces(text, found, found.ids if special_tokens else self._no_special(found.ids))

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        max_length: int | None = None,
        workers: int = 1,
    ) -> list[Encoding]:
        """The encode() of each text, in order. workers: ignored, as theirs have threads of their own."""
        if pairs is None:
            return [assemble(pieces, None, self.frame, max_length) for pieces in self.pieces_of_many(texts)]
        if len(pairs) != len(texts):
            raise SettingsError(f"{len(texts)} texts and {len(pairs)} pairs: give each text one, or None")
        return [self.encode(text, pair, max_length=max_length) for text, pair in zip(texts, pairs, strict=True)]

    def pieces_of_many(self, texts: Iterable[str], *, workers: int = 1) -> Iterator[Pieces]:
        """The encode_pieces() of each text, in order. workers: as encode_batch."""
        if not self.is_fast:
            yield from (self._slow(text, False) for text in texts)
            return
        given = iter(texts)
        while some := list(islice(given, _AT_ONCE)):
            found = self._plain.encode_batch(list(map(_sound, some)), add_special_tokens=False)
            yield from (_pieces(text, one, self._no_special(one.ids)) for text, one in zip(some, found, strict=True))

    def pieces(self, analysis: Analysis, text: str | None) -> Pieces:
        """encode_pieces(text); morphemes are not used. ModelError without the text."""
        if text is None:
            raise ModelError("a tokenizer of transformers needs the text, not only its morphemes: pass it")
        return self.encode_pieces(text)

    @cached_property
    def _plain(self) -> Any:
        """Their tokenizer in Rust, for which special tokens in a text are text."""
        backend = copy.deepcopy(self.theirs.backend_tokenizer)
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        return backend

    @cached_property
    def _marking(self) -> Any:
        """The same, recognising special tokens in a text."""
        backend = copy.deepcopy(self._plain)
        backend.encode_special_tokens = False
        return backend

    def _slow(self, text: str, special_tokens: bool) -> Pieces:
        """The pieces of a tokenizer in Python."""
        names = self.theirs.tokenize(_sound(text), split_special_tokens=not special_tokens)
        ids = self.theirs.convert_tokens_to_ids(names)
        spans = align(_sound(text), names, self.theirs.unk_token, continuation=self._continuation)
        return _assembled(text, ids if special_tokens else self._no_special(ids), names, spans)

    @cached_property
    def _continuation(self) -> str:
        """The prefix of pieces inside words, if they are marked."""
        return "##" if any(name.startswith("##") for name in self.theirs.get_vocab()) else ""

    def _no_special(self, ids: Iterable[int]) -> list[int]:
        """Replaces special ids with the unknown piece: SentencePiece vocabularies contain them as pieces, too."""
        return [self.unk_id if id in self._special else id for id in ids]

    @cached_property
    def _special(self) -> frozenset[int]:
        return frozenset(self.theirs.all_special_ids if self.unk_id >= 0 else ())

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The piece of each id, as spelled in their vocabulary. Raises ModelError for an unknown id."""
        given = [int(id) for id in ids]
        if wrong := [id for id in given if not 0 <= id < self.vocab_size]:
            raise ModelError(f"id {wrong[0]} is not in the vocabulary of {self.vocab_size}: of another tokenizer")
        return [str(name) for name in self.theirs.convert_ids_to_tokens(given)]

    def decode(self, ids: Sequence[int], boundaries: Sequence[int] | None = None) -> str:
        """Readable text, as theirs decodes it, without special tokens. boundaries: ignored."""
        return str(self.theirs.decode([int(id) for id in ids], skip_special_tokens=True))


def load_tokenizer(folder: str | Path) -> AnyTokenizer:
    """Loads the tokenizer of a folder, ours or one of `transformers`, found as by Tokenizer.load."""
    record = tokenizer_folder(folder) / RECORD
    try:
        kind = read_object(record).get("kind")
    except (OSError, ValueError):
        kind = None  # Tokenizer.load says what is wrong
    return TransformersTokenizer.load(folder) if kind == KIND else Tokenizer.load(folder)


def _sound(text: str) -> str:
    """Replaces lone surrogates, which Rust refuses, with as many replacement characters."""
    return _SURROGATES.sub("\ufffd", text)


def _pieces(text: str, found: Any, ids: Sequence[int]) -> Pieces:
    spans = [trimmed(text, start, end) for start, end in found.offsets]
    for place, name in enumerate(found.tokens):
        start, end = spans[place]
        if name == "▁" and "▁" not in text[start:end]:  # a space, though its offsets may be those of the next character
            spans[place] = (start, start)
    return _assembled(text, ids, found.tokens, spans)


def _assembled(text: str, ids: Sequence[int], names: Sequence[str], spans: Sequence[Span]) -> Pieces:
    levels: list[int] = []
    word = -1
    words: list[int] = []
    behind = -1  # where the last word began
    for start, end in spans:
        begins = end > start and start != behind and (start == 0 or text[start - 1].isspace())
        if begins:
            word, behind = word + 1, start
        levels.append(MORPHEME if begins else CONTINUATION)
        words.append(max(word, 0))
    return Pieces(list(ids), list(names), levels, list(spans), words, [""] * len(names))
