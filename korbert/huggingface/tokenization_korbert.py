"""The tokenizer of a korbert model for `transformers`: AutoTokenizer.from_pretrained(folder, trust_remote_code=True).

Needs kiwipiepy and sentencepiece. The way from text to ids is the code of korbert itself, which stands in an exported
file in place of the imports from korbert. What follows makes it a tokenizer of `transformers`.
"""

import inspect
import json
import os
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from transformers import BatchEncoding, PreTrainedTokenizer
from transformers.tokenization_utils_base import TruncationStrategy

from korbert.tokenization.morphemes import analyze, call_options, eojeols_after, load_kiwi
from korbert.tokenization.pieces import CONTINUATION, EOJEOL, Pieces, encode_with_special, pieces_of
from korbert.tokenization.vocabulary import FIRST_BYTE, MARK, SPECIAL, Vocabulary, unmarked

__all__ = ["KorbertTokenizer"]

_CLS = SPECIAL.index("[CLS]")
_SEP = SPECIAL.index("[SEP]")
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


# What a call of the tokenizer may ask for, as the base class has it.
_CALL_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(PreTrainedTokenizer._encode_plus).parameters.items()
    if parameter.default is not inspect.Parameter.empty
} | {"split_special_tokens": None, "return_offsets_mapping": False}


class _Entry(NamedTuple):
    """One entry of a row. boundary: what begins here. span: its characters, in the text or the given word. word: the
    eojeol, or the given word, from 0. segment, word: None for special tokens and padding.
    """

    id: int
    token: str
    boundary: int = 0
    span: tuple[int, int] = (0, 0)
    word: int | None = None
    type: int = 0
    segment: int | None = None


class _Window:
    """One row. Its methods are those that BatchEncoding calls for char_to_token, sequence_ids and the like."""

    def __init__(self, entries: list[_Entry]) -> None:
        self.entries = entries
        self.ids = [entry.id for entry in entries]
        self.tokens = [entry.token for entry in entries]
        self.sequence_ids = [entry.segment for entry in entries]
        self.word_ids = [entry.word for entry in entries]
        self.n_sequences = len({segment for segment in self.sequence_ids if segment is not None}) or 1

    def token_to_sequence(self, token: int) -> int | None:
        return self.sequence_ids[token]

    def token_to_word(self, token: int) -> int | None:
        return self.word_ids[token]

    def token_to_chars(self, token: int) -> tuple[int, int] | None:
        return None if self.sequence_ids[token] is None else self.entries[token].span

    def char_to_token(self, char: int, segment: int = 0) -> int | None:
        entries = enumerate(self.entries)
        return next((i for i, own in entries if own.segment == segment and own.span[0] <= char < own.span[1]), None)

    def char_to_word(self, char: int, segment: int = 0) -> int | None:
        token = self.char_to_token(char, segment)
        return None if token is None else self.word_ids[token]

    def word_to_tokens(self, word: int, segment: int = 0) -> tuple[int, int] | None:
        tokens = [i for i, own in enumerate(self.entries) if (own.segment, own.word) == (segment, word)]
        return (tokens[0], tokens[-1] + 1) if tokens else None

    def word_to_chars(self, word: int, segment: int = 0) -> tuple[int, int]:
        spans = [own.span for own in self.entries if (own.segment, own.word) == (segment, word)]
        return min(start for start, _ in spans), max(end for _, end in spans)


class _Engine:
    """From texts to pieces: the vocabulary, and Kiwi, which each process loads at its first text.

    Pickled as the files that it is made from: `datasets` finds what it has made by the hash of the tokenizer, which
    use must not change.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        import sentencepiece

        self.files = files
        record = json.loads(files[_FILES["record_file"]])
        for package, wanted in record["versions"].items():
            if (installed := version(package)) != wanted and not os.environ.get("KORBERT_ACCEPT_KIWI"):
                raise ImportError(
                    f"this vocabulary was counted with {package} {wanted}, installed is {installed}:"
                    f" its morphemes would differ; pip install {package}=={wanted}, or set KORBERT_ACCEPT_KIWI=1"
                )
        processor = sentencepiece.SentencePieceProcessor(model_proto=files[_FILES["vocab_file"]])
        self.vocabulary = Vocabulary(processor, record["vocabulary"]["mark"], record["vocabulary"]["words"])
        self._options: dict[str, Any] = record["analyzer"]
        self._calling = call_options(self._options)
        self._kiwi: Any = None

    def __reduce__(self) -> tuple[type["_Engine"], tuple[dict[str, bytes]]]:
        return type(self), (self.files,)

    def encode(self, text: str) -> Pieces:
        if self._kiwi is None:
            self._kiwi = load_kiwi(self._options, threads=1)
        return pieces_of(analyze(text, self._kiwi, self._calling), text, self.vocabulary)


class KorbertTokenizer(PreTrainedTokenizer):
    """Kiwi's morphemes, each cut into pieces of a SentencePiece vocabulary; [CLS] A [SEP] or [CLS] A [SEP] B [SEP].

    With a model that fills gaps, '[MASK]' and other special tokens in a text are these tokens; with others they are
    text. split_special_tokens, False or True, chooses for a call, or for all in from_pretrained. Tokens that were added
    later (add_tokens, add_special_tokens) are found in every text. Offsets are of the text as given; each piece of a
    fused morpheme (했: 하, 었) has all of its characters. Words (is_split_into_words) are analyzed as one text with
    spaces between them, and one by one if a word would have no piece of its own; offsets are of the word then. With
    return_overflowing_tokens each window is a row, and overflow_to_sample_mapping tells which text it shows. Decoding
    joins forms: the result is readable, but not the original text.
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
        **kwargs: object,
    ) -> None:
        paths = (vocab_file, record_file, pieces_file, words_file, probe_file)
        files = {name: Path(path).read_bytes() for name, path in zip(_FILES.values(), paths, strict=True) if path}
        self._engine = _Engine(files)
        self._vocab: dict[str, int] = {}
        for id, piece in enumerate(self._engine.vocabulary.pieces):
            # A whole word may be a learned piece, too; `transformers` needs one name an entry.
            self._vocab[f"{piece} " if piece in self._vocab else piece] = id
        self._names = list(self._vocab)
        super().__init__(**{**_SETTINGS, **kwargs})  # type: ignore[no-untyped-call]

    @property
    def is_fast(self) -> bool:
        """True, as the tokenizer gives offsets and the words of pieces: `transformers` asks for both by this name."""
        return True

    @property
    def vocab_size(self) -> int:
        """Entries, special ones, bytes and whole words included."""
        return len(self._names)

    def get_vocab(self) -> dict[str, int]:
        """Piece -> id. A whole word that is a learned piece, too, has a space after it here."""
        return {**self._vocab, **self._added_tokens_encoder}

    def tokenize(
        self,
        text: str,
        pair: str | None = None,
        add_special_tokens: bool = False,
        split_special_tokens: bool | None = None,
        **kwargs: object,
    ) -> list[str]:
        """The pieces of a text, without special tokens unless it holds them and split_special_tokens is False."""
        return [entry.token for entry in self._entries(text, split_special_tokens)]

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Writes the files that this tokenizer was made from."""
        paths = []
        for name, content in self._engine.files.items():
            path = Path(save_directory) / (f"{filename_prefix}-{name}" if filename_prefix else name)
            path.write_bytes(content)
            paths.append(str(path))
        return tuple(paths)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Readable text: forms run together, bytes become characters."""
        text = bytearray()
        specials = set(self.all_special_tokens)
        for token in tokens:
            id = self._vocab.get(token)
            special = token in specials or (id is not None and id < FIRST_BYTE)
            apart = special or (self._engine.vocabulary.mark == "eojeol" and token.startswith(MARK))
            content = unmarked(token).encode() if id is None else self._engine.vocabulary.bytes_of(id)
            text += b" " * apart + content + b" " * special
        return " ".join(unicodedata.normalize("NFC", text.decode("utf-8", errors="replace")).split())

    def _encode_plus(self, text: Any, text_pair: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Texts, or words of texts, and pairs of them, one or many; the base class encodes ids."""
        samples, batched = _samples(text, text_pair, bool(kwargs.get("is_split_into_words")))
        if samples is None:
            for name in ("return_offsets_mapping", "return_overflowing_tokens"):
                if kwargs.get(name):
                    raise NotImplementedError(f"{name} needs texts: ids have no characters")
            return super()._encode_plus(text, text_pair, *args, **kwargs)
        options = SimpleNamespace(**{**_CALL_DEFAULTS, **kwargs})
        windows: list[_Window] = []
        owners: list[int] = []
        for number, (text, pair) in enumerate(samples):
            first = self._entries(text, options.split_special_tokens)
            second = None if pair is None else self._entries(pair, options.split_special_tokens)
            for segments in self._cut(first, second, options):
                windows.append(self._window(*segments, options.add_special_tokens))
                owners.append(number)
                self._eventual_warn_about_too_long_sequence(windows[-1].ids, options.max_length, options.verbose)
        single = not batched and not options.return_overflowing_tokens
        return self._rows(windows, owners, single, options)

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Pads `boundaries` as well; the base class pads all other columns."""
        padded = super()._pad(encoded_inputs, *args, **kwargs)
        if "boundaries" in padded:
            levels = padded["boundaries"]
            padding = [0] * (len(padded["input_ids"]) - len(levels))
            right = (kwargs.get("padding_side") or self.padding_side) == "right"
            padded["boundaries"] = levels + padding if right else padding + levels
        return padded

    def _rows(self, windows: list[_Window], owners: list[int], single: bool, options: SimpleNamespace) -> BatchEncoding:
        """Makes the result of a call from windows. owners: the text each window shows. single: one row, not a list."""
        rows = self.pad(
            {"input_ids": [window.ids for window in windows]},
            padding=options.padding_strategy.value,
            max_length=options.max_length,
            pad_to_multiple_of=options.pad_to_multiple_of,
            padding_side=options.padding_side,
            return_attention_mask=options.return_attention_mask,
        )
        # The windows get the same padding, for other columns and for what BatchEncoding looks up in them.
        padded: list[_Window] = []
        for window, row in zip(windows, rows["input_ids"], strict=True):
            padding = [_Entry(self.pad_token_id, str(self.pad_token))] * (len(row) - len(window.ids))
            right = (options.padding_side or self.padding_side) == "right"
            entries = window.entries + padding if right else padding + window.entries
            padded.append(_Window(entries))
        types = options.return_token_type_ids
        if "token_type_ids" in self.model_input_names if types is None else types:
            rows["token_type_ids"] = [[entry.type for entry in window.entries] for window in padded]
        if "boundaries" in self.model_input_names:
            rows["boundaries"] = [[entry.boundary for entry in window.entries] for window in padded]
        if options.return_special_tokens_mask:
            rows["special_tokens_mask"] = [[int(own is None) for own in window.sequence_ids] for window in padded]
        if options.return_offsets_mapping:
            rows["offset_mapping"] = [[entry.span for entry in window.entries] for window in padded]
        if options.return_overflowing_tokens:
            rows["overflow_to_sample_mapping"] = owners
        if options.return_length:
            rows["length"] = [len(row) for row in rows["input_ids"]]
        data = {name: column[0] for name, column in rows.items()} if single else dict(rows)
        encodings: Any = padded  # in the place of encodings of `tokenizers`
        return BatchEncoding(data, encodings, tensor_type=options.return_tensors, prepend_batch_axis=single)

    def _cut(
        self, first: list[_Entry], second: list[_Entry] | None, options: SimpleNamespace
    ) -> list[tuple[list[_Entry], list[_Entry] | None]]:
        """Cuts a text or pair to max_length; with return_overflowing_tokens, into windows over the segment cut."""
        strategy = options.truncation_strategy
        max_length = options.max_length
        stride = options.stride
        special = self.num_special_tokens_to_add(pair=second is not None) if options.add_special_tokens else 0
        surplus = len(first) + len(second or []) + special - (max_length or 0)
        if strategy == TruncationStrategy.DO_NOT_TRUNCATE or not max_length or surplus <= 0:
            return [(first, second)]
        alone = {TruncationStrategy.ONLY_FIRST: first, TruncationStrategy.ONLY_SECOND: second or []}.get(strategy)
        if alone is not None and len(alone) < surplus:
            raise ValueError(
                f"max_length {max_length}: {strategy.value} can take {len(alone)} pieces away, not {surplus}: "
                "raise max_length or truncate by longest_first"
            )
        if not options.return_overflowing_tokens:
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
        # Neighbours share `stride` pieces, until all has been shown.
        starts = [0, *range(room - stride, len(long) - stride, room - stride)]
        bounds = [(start, min(start + room, len(long))) for start in starts]
        if self.truncation_side == "left":
            bounds = [(len(long) - end, len(long) - start) for start, end in bounds]
        parts = [long[start:end] for start, end in bounds]
        return [(part, second) if cut_first else (first, part) for part in parts]

    def _window(self, first: list[_Entry], second: list[_Entry] | None, add_special_tokens: bool) -> _Window:
        """[CLS] first [SEP] second [SEP], or the segments alone."""
        cls, sep = (_Entry(id, self._names[id]) for id in (_CLS, _SEP))
        entries = [cls] * add_special_tokens
        segments = [first] if second is None else [first, second]
        for segment, own in enumerate(segments):
            entries += [entry._replace(type=segment, segment=segment) for entry in own]
            entries += [sep._replace(type=segment)] * add_special_tokens
        return _Window(entries)

    def _convert_token_to_id(self, token: str) -> int:
        return self._vocab.get(token, self._vocab["[UNK]"])

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def _entries(self, text: str | Sequence[str], split_special_tokens: bool | None) -> list[_Entry]:
        """The pieces of a text or of words, without special tokens unless it holds them and split_special_tokens is
        False."""
        split = self.split_special_tokens if split_special_tokens is None else split_special_tokens
        added = {token: id for token, id in self._added_tokens_encoder.items() if not (split and token in SPECIAL)}
        if isinstance(text, str):
            return self._locate_pieces(text, eojeols_after(text), added)
        # Words: as one text, so that Kiwi sees their neighbours, unless a morpheme over two leaves one without a piece.
        starts = list(accumulate((len(word) + 1 for word in text), initial=0))
        joined = self._locate_pieces(" ".join(text), starts[1:-1], added)
        entries: list[_Entry] = []
        if {entry.word for entry in joined} >= {number for number, word in enumerate(text) if word.strip()}:
            for entry in joined:
                place = entry.word or 0
                end = min(entry.span[1] - starts[place], len(text[place]))
                entries.append(entry._replace(span=(entry.span[0] - starts[place], end)))
            return entries
        for number, word in enumerate(text):
            own = [entry._replace(word=number) for entry in self._locate_pieces(word, [], added)]
            if entries and own:
                own[0] = own[0]._replace(boundary=EOJEOL)  # no sentence begins here
            entries += own
        return entries

    def _locate_pieces(self, text: str, later: list[int], added: dict[str, int]) -> list[_Entry]:
        """The pieces of a text, with the word of each. later: where the words but the first begin; added: tokens that
        are one piece, with their ids."""
        encode = self._engine.encode
        pieces = encode_with_special(text, encode, added) if added else encode(text)
        word = 0
        entries: list[_Entry] = []
        columns = pieces.ids, self.convert_ids_to_tokens(pieces.ids), pieces.boundaries, pieces.spans
        for id, token, level, span in zip(*columns, strict=True):
            if level != CONTINUATION:  # all pieces of a morpheme have the word that it begins in
                word = bisect_right(later, span[0])
            entries.append(_Entry(id, token, level, span, word))
        return entries


_Text = str | Sequence[str]  # or its words


def _samples(text: Any, pair: Any, words: bool) -> tuple[list[tuple[_Text, _Text | None]] | None, bool]:
    """(text and pair of each sample, whether a list was given); None for samples that are not texts.

    words: each text is a list of words, and a pair in one argument a tuple of two lists.
    """
    batched = _is_list(text, words)
    texts = text if batched else [text]
    if pair is None:
        pair_type = tuple if words else (list, tuple)
        are_pairs = [isinstance(part, pair_type) and _is_list(part, words) for part in texts]
        samples = [tuple(part) if is_pair else (part, None) for part, is_pair in zip(texts, are_pairs, strict=True)]
    elif batched == _is_list(pair, words) and (not batched or len(pair) == len(text)):
        pairs = pair if batched else [pair]
        samples = list(zip(texts, pairs, strict=True))
    else:
        raise ValueError("give as many pairs as texts: two texts, or two lists of the same length")

    def is_text(part: object) -> bool:
        if words:
            return isinstance(part, (list, tuple)) and all(isinstance(word, str) for word in part)
        return isinstance(part, str)

    fit = all(len(row) == 2 and is_text(row[0]) and (row[1] is None or is_text(row[1])) for row in samples)
    return (samples if fit else None), batched


def _is_list(text: object, words: bool) -> bool:
    """Whether it holds texts, and is not one. words: a text is a list of words."""
    return isinstance(text, (list, tuple)) and not (words and (not text or isinstance(text[0], str)))
