"""The tokenizer of a korbert model for `transformers`: AutoTokenizer.from_pretrained(folder, trust_remote_code=True).

Needs kiwipiepy and sentencepiece. Ids are those of korbert.tokenization.Tokenizer, which cut text the same way.
"""

import json
import os
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from transformers import BatchEncoding, PreTrainedTokenizer
from transformers.tokenization_utils_base import TruncationStrategy

from korbert.tokenization.repair import cut, repair  # an exported file has these modules' text in place of the lines
from korbert.tokenization.spans import piece_spans, runs_within, slices

__all__ = ["KorbertTokenizer"]

_CLS, _SEP = 2, 3
_FIRST_BYTE, _FIRST_PIECE = 128, 384  # entries before are special or reserved, between them bytes
_MARK = "▁"  # where a morpheme or an eojeol begins
_TYPED = "\uffff"  # a ▁ of the text
_TYPED_IDS = [_FIRST_BYTE + byte for byte in _MARK.encode()]
_REMEMBERED = 500_000  # forms
_WORD = re.compile(r"\S+")
_OF_THE_MODEL = ("model_type", "load_default_dict", "load_multi_dict", "integrate_allomorph")  # what Kiwi is told once
_FILES = {
    "vocab_file": "vocabulary.model",
    "record_file": "korbert_tokenizer.json",
    "pieces_file": "pieces.txt",
    "words_file": "words.tsv",
    "probe_file": "probe.json",
}

_SETTINGS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "special_tokens_pattern": "cls_sep",
    "token_type_ids_pattern": "bert_style",
    "split_special_tokens": True,
}

_Morpheme = tuple[str, int, int]  # form and span in the text as given


class _Piece(NamedTuple):
    """A piece of a text. span: its characters; eojeol: counted from 0."""

    id: int
    span: tuple[int, int]
    eojeol: int


class _Asked(NamedTuple):
    """What a call of the tokenizer asks for, by the names that `transformers` hands over. None: as usual."""

    padding_strategy: Any
    truncation_strategy: Any
    max_length: int | None
    add_special_tokens: bool = True
    split_special_tokens: bool | None = None
    stride: int = 0
    pad_to_multiple_of: int | None = None
    padding_side: str | None = None
    return_tensors: Any = None
    return_token_type_ids: bool | None = None
    return_attention_mask: bool | None = None
    return_overflowing_tokens: bool = False
    return_special_tokens_mask: bool = False
    return_offsets_mapping: bool = False
    return_length: bool = False
    verbose: bool = True


@dataclass(frozen=True)
class _Window:
    """What stands in one row: columns of T entries. segments, eojeols: None for special tokens and padding.

    It has the methods by which BatchEncoding answers char_to_token, sequence_ids and the like.
    """

    ids: list[int]
    tokens: list[str]
    types: list[int]
    segments: list[int | None]
    eojeols: list[int | None]
    spans: list[tuple[int, int]]

    def add(
        self,
        id: int,
        token: str,
        type: int = 0,
        segment: int | None = None,
        eojeol: int | None = None,
        span: tuple[int, int] = (0, 0),
    ) -> None:
        self.ids.append(id)
        self.tokens.append(token)
        self.types.append(type)
        self.segments.append(segment)
        self.eojeols.append(eojeol)
        self.spans.append(span)

    def __add__(self, other: "_Window") -> "_Window":
        return _Window(
            self.ids + other.ids,
            self.tokens + other.tokens,
            self.types + other.types,
            self.segments + other.segments,
            self.eojeols + other.eojeols,
            self.spans + other.spans,
        )

    @property
    def n_sequences(self) -> int:
        return len({segment for segment in self.segments if segment is not None}) or 1

    @property
    def sequence_ids(self) -> list[int | None]:
        return self.segments

    @property
    def word_ids(self) -> list[int | None]:
        return self.eojeols

    def token_to_sequence(self, token: int) -> int | None:
        return self.segments[token]

    def token_to_word(self, token: int) -> int | None:
        return self.eojeols[token]

    def token_to_chars(self, token: int) -> tuple[int, int] | None:
        return None if self.segments[token] is None else self.spans[token]

    def char_to_token(self, char: int, segment: int = 0) -> int | None:
        return next((place for place in self._of(segment) if self.spans[place][0] <= char < self.spans[place][1]), None)

    def char_to_word(self, char: int, segment: int = 0) -> int | None:
        token = self.char_to_token(char, segment)
        return None if token is None else self.eojeols[token]

    def word_to_tokens(self, word: int, segment: int = 0) -> tuple[int, int] | None:
        places = [place for place in self._of(segment) if self.eojeols[place] == word]
        return (places[0], places[-1] + 1) if places else None

    def word_to_chars(self, word: int, segment: int = 0) -> tuple[int, int]:
        spans = [self.spans[place] for place in self._of(segment) if self.eojeols[place] == word]
        return min(start for start, _ in spans), max(end for _, end in spans)

    def _of(self, segment: int) -> Iterator[int]:
        return (place for place, own in enumerate(self.segments) if own == segment)


class KorbertTokenizer(PreTrainedTokenizer):
    """Kiwi's morphemes, each cut into pieces of a SentencePiece vocabulary; [CLS] A [SEP] or [CLS] A [SEP] B [SEP].

    Of a model that fills gaps, '[MASK]' in a text is the mask, and so are the other special tokens what they stand for;
    of others they are text, as nobody means them there. split_special_tokens, False or True, says so to the call or to
    from_pretrained. Offsets are of the text as given; each piece of a fused morpheme (했: 하, 었) has
    all of its characters. With return_overflowing_tokens each window is a row, and overflow_to_sample_mapping tells
    which text it shows. Decoding joins forms and is readable, not the text as it was.
    """

    vocab_files_names = _FILES
    model_input_names = ["input_ids", "token_type_ids", "attention_mask"]  # noqa: RUF012 (as the base class has it)

    def __init__(
        self,
        vocab_file: str,
        record_file: str,
        pieces_file: str | None = None,
        words_file: str | None = None,
        probe_file: str | None = None,
        **kwargs: Any,
    ) -> None:
        import sentencepiece

        paths = (vocab_file, record_file, pieces_file, words_file, probe_file)
        self._files = {name: Path(path).read_bytes() for name, path in zip(_FILES.values(), paths, strict=True) if path}
        record = json.loads(self._files[_FILES["record_file"]])
        _check_versions(record["versions"])
        self._options: dict[str, Any] = record["analyzer"]
        self._call = _of_a_call(self._options)
        self._mark: str = record["vocabulary"]["mark"]
        self._typed = re.compile(rf"({_TYPED})|\s+" if self._mark != "none" else rf"([{_TYPED}{_MARK}])|\s+")
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._files[_FILES["vocab_file"]])
        learned = self._processor.vocab_size()
        words = self._word_entries(record["vocabulary"]["words"])
        self._ids = {word: [learned + place] for place, word in enumerate(words)}
        self._names = _unique([*self._processor.id_to_piece(list(range(learned))), *words])
        self._vocab = {name: id for id, name in enumerate(self._names)}
        self._kiwi: Any = None
        super().__init__(**{**_SETTINGS, **kwargs})  # type: ignore[no-untyped-call]

    def __getstate__(self) -> dict[str, Any]:
        """Without Kiwi, which loads anew where it is needed."""
        return {**self.__dict__, "_kiwi": None}

    @property
    def vocab_size(self) -> int:
        """Entries, special ones, bytes and whole words included."""
        return len(self._names)

    def get_vocab(self) -> dict[str, int]:
        """Piece -> id. A whole word that is a learned piece, too, has a space behind it here."""
        return {**self._vocab, **self._added_tokens_encoder}

    def tokenize(
        self, text: str, pair: str | None = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[str]:
        """The pieces of a text, without special tokens unless it holds them and split_special_tokens is False."""
        return [self._names[piece.id] for piece in self._text_pieces(text, kwargs.get("split_special_tokens"))]

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Writes the files that this tokenizer was made from."""
        paths = []
        for name, content in self._files.items():
            path = Path(save_directory) / (f"{filename_prefix}-{name}" if filename_prefix else name)
            path.write_bytes(content)
            paths.append(str(path))
        return tuple(paths)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Readable text: forms run together, bytes made characters."""
        text = bytearray()
        for token in tokens:
            id = self._vocab.get(token)
            if id is not None and _FIRST_BYTE <= id < _FIRST_PIECE:
                text.append(id - _FIRST_BYTE)
                continue
            special = id is not None and id < _FIRST_BYTE
            apart = special or (self._mark == "eojeol" and token.startswith(_MARK))
            shown = token.removeprefix(_MARK).rstrip(" ")  # a space sets words apart from pieces of the same name
            text += (" " * apart + shown + " " * special).encode()
        return " ".join(unicodedata.normalize("NFC", text.decode("utf-8", errors="replace")).split())

    def _encode_plus(self, text: Any, text_pair: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Texts and pairs of them, one or many; words and ids that are given already go the way of the base class."""
        samples, batched = _samples(text, text_pair)
        if samples is None or kwargs.get("is_split_into_words"):
            for name in ("return_offsets_mapping", "return_overflowing_tokens"):
                if kwargs.get(name):
                    raise NotImplementedError(f"{name} needs texts, as strings: morphemes are not cut at given words")
            return super()._encode_plus(text, text_pair, *args, **kwargs)
        known = {name: kwargs[name] for name in _Asked._fields if name in kwargs}
        return self._encode_samples(samples, batched, _Asked(**known))

    def _encode_samples(self, samples: Sequence[tuple[str, str | None]], batched: bool, asked: _Asked) -> BatchEncoding:
        windows: list[_Window] = []
        owners: list[int] = []
        for number, (text, pair) in enumerate(samples):
            first = self._text_pieces(text, asked.split_special_tokens)
            second = None if pair is None else self._text_pieces(pair, asked.split_special_tokens)
            for one, other in self._cut(first, second, asked):
                windows.append(self._window(one, other, asked.add_special_tokens))
                owners.append(number)
        for window in windows:
            self._eventual_warn_about_too_long_sequence(window.ids, asked.max_length, asked.verbose)
        rows = self._padded_rows(windows, asked)
        padded = [
            self._padded(window, len(row), asked.padding_side or self.padding_side)
            for window, row in zip(windows, rows["input_ids"], strict=True)
        ]
        if asked.return_offsets_mapping:
            rows["offset_mapping"] = [window.spans for window in padded]
        if asked.return_overflowing_tokens:
            rows["overflow_to_sample_mapping"] = owners
        if asked.return_length:
            rows["length"] = [len(row) for row in rows["input_ids"]]
        single = not batched and not asked.return_overflowing_tokens
        data = {name: column[0] for name, column in rows.items()} if single else dict(rows)
        encodings: Any = padded  # they answer what BatchEncoding asks of those of `tokenizers`
        return BatchEncoding(data, encodings, tensor_type=asked.return_tensors, prepend_batch_axis=single)

    def _padded_rows(self, windows: list[_Window], asked: _Asked) -> BatchEncoding:
        """The columns that a model gets, by the base class's padding."""
        types = asked.return_token_type_ids
        columns = {"input_ids": [window.ids for window in windows]}
        if "token_type_ids" in self.model_input_names if types is None else types:
            columns["token_type_ids"] = [window.types for window in windows]
        if asked.return_special_tokens_mask:
            columns["special_tokens_mask"] = [
                [int(segment is None) for segment in window.segments] for window in windows
            ]
        return self.pad(
            columns,
            padding=asked.padding_strategy.value,
            max_length=asked.max_length,
            pad_to_multiple_of=asked.pad_to_multiple_of,
            padding_side=asked.padding_side,
            return_attention_mask=asked.return_attention_mask,
        )

    def _cut(
        self, first: list[_Piece], second: list[_Piece] | None, asked: _Asked
    ) -> list[tuple[list[_Piece], list[_Piece] | None]]:
        """What stays of a text or pair, or where windows are asked for all of those over the one that is cut."""
        strategy, max_length, stride = asked.truncation_strategy, asked.max_length, asked.stride
        special = self.num_special_tokens_to_add(pair=second is not None) if asked.add_special_tokens else 0
        surplus = len(first) + len(second or []) + special - (max_length or 0)
        if strategy == TruncationStrategy.DO_NOT_TRUNCATE or not max_length or surplus <= 0:
            return [(first, second)]
        alone = {TruncationStrategy.ONLY_FIRST: first, TruncationStrategy.ONLY_SECOND: second or []}.get(strategy)
        if alone is not None and len(alone) < surplus:
            raise ValueError(
                f"max_length {max_length}: {strategy.value} can take {len(alone)} pieces away, not {surplus}: "
                "raise max_length or truncate by longest_first"
            )
        if not asked.return_overflowing_tokens:
            kept: Any = self.truncate_sequences(first, second, surplus, strategy)  # type: ignore[arg-type]
            return [(kept[0], kept[1])]
        if second is not None and strategy == TruncationStrategy.LONGEST_FIRST:
            raise ValueError("windows over a pair need truncation='only_first' or 'only_second', not 'longest_first'")
        cut_first = second is None or strategy == TruncationStrategy.ONLY_FIRST
        long = first if cut_first else second or []
        room = len(long) - surplus
        if room <= stride:
            raise ValueError(
                f"max_length {max_length} leaves {room} pieces for a window, which is no more than stride {stride}: "
                "raise max_length or lower stride"
            )
        parts = _windows(long, room, stride, from_left=self.truncation_side == "right")
        return [(part, second) if cut_first else (first, part) for part in parts]

    def _window(self, first: list[_Piece], second: list[_Piece] | None, add_special_tokens: bool) -> _Window:
        """[CLS] first [SEP] second [SEP], or the segments alone."""
        found = _Window([], [], [], [], [], [])
        if add_special_tokens:
            found.add(_CLS, self._names[_CLS])
        for segment, pieces in enumerate([first] if second is None else [first, second]):
            for piece in pieces:
                found.add(piece.id, self._names[piece.id], segment, segment, piece.eojeol, piece.span)
            if add_special_tokens:
                found.add(_SEP, self._names[_SEP], segment)
        return found

    def _padded(self, window: _Window, length: int, side: str) -> _Window:
        padding = _Window([], [], [], [], [], [])
        for _ in range(length - len(window.tokens)):
            padding.add(self.pad_token_id, str(self.pad_token))
        return window + padding if side == "right" else padding + window

    def _convert_token_to_id(self, token: str) -> int:
        return self._vocab.get(token, self._vocab["[UNK]"])

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def _word_entries(self, words: list[str]) -> list[str]:
        return list(dict.fromkeys(self._marked(word, initial) for word in words for initial in (True, False)))

    def _marked(self, form: str, initial: bool) -> str:
        form = form.replace(_MARK, _TYPED)
        return _MARK + form if self._mark == "morpheme" or (self._mark == "eojeol" and initial) else form

    def _text_pieces(self, text: str, split_special_tokens: bool | None) -> list[_Piece]:
        """The pieces of a text, without special tokens unless it holds them and split_special_tokens is False."""
        if self.split_special_tokens if split_special_tokens is None else split_special_tokens:
            return [piece for part in self._encode_morphemes(text) for piece in part]
        return self._encode_with_special(text)

    def _encode_morphemes(self, text: str) -> list[list[_Piece]]:
        """The pieces of each morpheme."""
        later = _later_eojeols(text)
        found = []
        before = -1
        for form, start, end in self._morphemes(text):
            eojeol = bisect_right(later, start)
            key = form if self._mark == "none" else self._marked(form, eojeol != before)
            ids = self._ids_of(key)
            spans = [(start, end)]
            if len(ids) != 1:
                spans = piece_spans(form, slices(form, [self._size(id) for id in ids]), start, text[start:end])
            found.append([_Piece(id, span, eojeol) for id, span in zip(ids, spans, strict=True)])
            before = eojeol
        return found

    def _size(self, id: int) -> int:
        """Bytes that a piece takes."""
        return 1 if _FIRST_BYTE <= id < _FIRST_PIECE else len(self._names[id].removeprefix(_MARK).rstrip(" ").encode())

    def _encode_with_special(self, text: str) -> list[_Piece]:
        """Analysed whole, so that what stands around a special token is seen; its morphemes then give way to it."""
        parts = [part for part in self._encode_morphemes(text) if part]
        pattern = re.compile("|".join(map(re.escape, self.all_special_tokens)))
        specials = [match.span() for match in pattern.finditer(text)]
        runs = runs_within([(part[0].span[0], part[-1].span[1]) for part in parts], specials)
        if runs is None:  # within a web address
            return self._encode_between(text, specials)
        found: list[_Piece] = []
        begin = 0
        for (start, end), (first, last) in zip(specials, runs, strict=True):
            found += chain.from_iterable(parts[begin:first])
            found.append(_Piece(self._added_tokens_encoder[text[start:end]], (start, end), parts[first][0].eojeol))
            begin = last
        return [*found, *chain.from_iterable(parts[begin:])]

    def _encode_between(self, text: str, specials: list[tuple[int, int]]) -> list[_Piece]:
        """The special tokens, and what stands between them, each stretch analysed by itself."""
        later = _later_eojeols(text)
        found: list[_Piece] = []
        begin = 0
        for start, end in [*specials, (len(text), len(text))]:
            for part in filter(None, self._encode_morphemes(text[begin:start])):
                eojeol = bisect_right(later, begin + part[0].span[0])
                found += (_Piece(one, (begin + low, begin + high), eojeol) for one, (low, high), _ in part)
            if start < end:
                id = self._added_tokens_encoder[text[start:end]]
                found.append(_Piece(id, (start, end), bisect_right(later, start)))
            begin = end
        return found

    def _morphemes(self, text: str) -> Iterator[_Morpheme]:
        """Line by line, as Kiwi gets it."""
        offset = 0
        for line in text.split("\n"):
            for begin, part in cut(line):
                if part and not part.isspace():
                    yield from self._analyzed(part, offset + begin)
            offset += len(line) + 1

    def _analyzed(self, part: str, offset: int) -> Iterator[_Morpheme]:
        repaired = repair(part)
        for token in self._loaded_kiwi().tokenize(part if repaired is None else repaired.text, **self._call):
            start, end = token.start, token.end
            if repaired is not None:
                start, end = repaired.span(start, end)
            yield token.form, offset + start, offset + end

    def _ids_of(self, key: str) -> list[int]:
        ids = self._ids.get(key)
        if ids is None:
            ids = []
            for part in filter(None, self._typed.split(key)):
                typed = part == _TYPED or (part == _MARK and self._mark == "none")
                ids += _TYPED_IDS if typed else self._processor.encode(part)
            if len(self._ids) < _REMEMBERED:
                self._ids[key] = ids
        return ids

    def _loaded_kiwi(self) -> Any:
        if self._kiwi is None:
            from kiwipiepy import Kiwi

            options = {name: self._options[name] for name in _OF_THE_MODEL}
            if "allowed_dialects" in self._call:
                options["enabled_dialects"] = self._call["allowed_dialects"]
            self._kiwi = Kiwi(num_workers=1, **options)
            self._kiwi.global_config.space_tolerance = self._options.get("space_tolerance", 0)
            for word in self._options.get("user_words", []):
                self._kiwi.add_user_word(word["form"], word["tag"], word["score"])
        return self._kiwi


def _later_eojeols(text: str) -> list[int]:
    """Where each eojeol but the first begins."""
    return [match.start() for match in _WORD.finditer(text)][1:]


def _of_a_call(options: dict[str, Any]) -> dict[str, Any]:
    """What Kiwi is told with each text. Options that few have are left out of the record."""
    call = {name: options[name] for name in ("split_complex", "z_coda")}
    if "typos" in options:
        call["typos"] = options["typos"]
    if "dialects" in options:
        call["allowed_dialects"] = ",".join(options["dialects"]).upper()
    return call


def _samples(text: Any, pair: Any) -> tuple[list[tuple[str, str | None]] | None, bool]:
    """(text and pair of each sample, whether they are many); no samples where something else than texts is given."""
    batched = isinstance(text, (list, tuple))
    if pair is None:
        given = list(text) if batched else [text]
        found = [tuple(one) if isinstance(one, (list, tuple)) else (one, None) for one in given]
    else:
        if batched != isinstance(pair, (list, tuple)) or (batched and len(pair) != len(text)):
            raise ValueError("give as many pairs as texts: two strings, or two lists of the same length")
        found = list(zip(text, pair, strict=True)) if batched else [(text, pair)]
    fit = all(len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], str | None) for one in found)
    return (found if fit else None), batched


def _windows(long: list[_Piece], room: int, stride: int, from_left: bool) -> list[list[_Piece]]:
    """Windows of `room` pieces, neighbours sharing `stride`, until all has been shown."""
    starts = [0, *range(room - stride, len(long) - stride, room - stride)]
    ends = [min(start + room, len(long)) for start in starts]
    if from_left:
        return [long[start:end] for start, end in zip(starts, ends, strict=True)]
    return [long[len(long) - end : len(long) - start] for start, end in zip(starts, ends, strict=True)]


def _check_versions(expected: dict[str, str]) -> None:
    for package, wanted in expected.items():
        if (found := version(package)) != wanted and not os.environ.get("KORBERT_ACCEPT_KIWI"):
            raise ImportError(
                f"this vocabulary was counted with {package} {wanted}, installed is {found}:"
                f" its morphemes would differ; pip install {package}=={wanted}, or set KORBERT_ACCEPT_KIWI=1"
            )


def _unique(names: list[str]) -> list[str]:
    """Two entries may have the same name, a learned piece and a whole word: the word gets a space behind it."""
    seen: set[str] = set()
    for place, name in enumerate(names):
        names[place] = f"{name} " if name in seen else name
        seen.add(name)
    return names
