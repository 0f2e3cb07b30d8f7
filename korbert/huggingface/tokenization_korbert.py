"""The tokenizer of a korbert model for `transformers`: AutoTokenizer.from_pretrained(folder, trust_remote_code=True).

Needs kiwipiepy and sentencepiece. Ids are those of korbert.tokenization.Tokenizer, which cut text the same way.
"""

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizer

from korbert.tokenization.repair import cut, repair  # an exported file has that module's text in place of this line

__all__ = ["KorbertTokenizer"]

_FIRST_BYTE, _FIRST_PIECE = 128, 384  # entries before are special or reserved, between them bytes
_MARK = "▁"  # where a morpheme or an eojeol begins
_TYPED = "\uffff"  # a ▁ of the text
_TYPED_IDS = [_FIRST_BYTE + byte for byte in _MARK.encode()]
_REMEMBERED = 500_000  # forms
_WORD = re.compile(r"\S+")
_KIWI_CALL = ("split_complex", "z_coda")  # options of each call; the others are of the constructor
_FILES = {
    "vocab_file": "vocabulary.model",
    "record_file": "korbert_tokenizer.json",
    "pieces_file": "pieces.txt",
    "words_file": "words.tsv",
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


class KorbertTokenizer(PreTrainedTokenizer):
    """Kiwi's morphemes, each cut into pieces of a SentencePiece vocabulary; [CLS] A [SEP] or [CLS] A [SEP] B [SEP].

    Special tokens typed in a text are text: '[MASK]' is not the mask. To fill gaps pass split_special_tokens=False, to
    the call or to from_pretrained. Offsets (return_offsets_mapping) are not offered: korbert's own Tokenizer has spans.
    Decoding joins forms and is readable, not the text as it was.
    """

    vocab_files_names = _FILES
    model_input_names = ["input_ids", "token_type_ids", "attention_mask"]  # noqa: RUF012 (as the base class has it)

    def __init__(
        self,
        vocab_file: str,
        record_file: str,
        pieces_file: str | None = None,
        words_file: str | None = None,
        **kwargs: Any,
    ) -> None:
        import sentencepiece

        paths = (vocab_file, record_file, pieces_file, words_file)
        self._files = {name: Path(path).read_bytes() for name, path in zip(_FILES.values(), paths, strict=True) if path}
        record = json.loads(self._files[_FILES["record_file"]])
        _check_versions(record["versions"])
        self._options: dict[str, Any] = record["analyzer"]
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
        if kwargs.get("split_special_tokens", self.split_special_tokens):
            ids = self._encode_text(text)
        else:
            ids = self._encode_with_special(text)
        return [self._names[id] for id in ids]

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
            text += (" " * apart + token.removeprefix(_MARK) + " " * special).encode()
        return " ".join(unicodedata.normalize("NFC", text.decode("utf-8", errors="replace")).split())

    def _encode_plus(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("return_offsets_mapping"):
            raise NotImplementedError(
                "KorbertTokenizer gives no offsets: leave return_offsets_mapping out,"
                " or take the spans of korbert.tokenization.Tokenizer.encode(text)"
            )
        return super()._encode_plus(*args, **kwargs)

    def _convert_token_to_id(self, token: str) -> int:
        return self._vocab.get(token, self._vocab["[UNK]"])

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def _word_entries(self, words: list[str]) -> list[str]:
        return list(dict.fromkeys(self._marked(word, initial) for word in words for initial in (True, False)))

    def _marked(self, form: str, initial: bool) -> str:
        form = form.replace(_MARK, _TYPED)
        return _MARK + form if self._mark == "morpheme" or (self._mark == "eojeol" and initial) else form

    def _encode_text(self, text: str) -> list[int]:
        return [id for ids, _, _ in self._encode_morphemes(text) for id in ids]

    def _encode_morphemes(self, text: str) -> list[tuple[list[int], int, int]]:
        """The ids of each morpheme, and its span."""
        later = [match.start() for match in _WORD.finditer(text)][1:]  # where each eojeol but the first begins
        found = []
        before = -1
        for form, start, end in self._morphemes(text):
            eojeol = bisect_right(later, start)
            key = form if self._mark == "none" else self._marked(form, eojeol != before)
            found.append((self._ids_of(key), start, end))
            before = eojeol
        return found

    def _encode_with_special(self, text: str) -> list[int]:
        """Analysed whole, so that what stands around a special token is seen; its morphemes then give way to it."""
        parts = self._encode_morphemes(text)
        specials = re.compile("|".join(map(re.escape, self.all_special_tokens)))
        for match in reversed(list(specials.finditer(text))):
            start, end = match.span()
            id = self._added_tokens_encoder[match[0]]
            touching = [place for place, part in enumerate(parts) if part[1] < end and part[2] > start]
            if any(parts[place][1] < start or parts[place][2] > end for place in touching):  # within a web address
                return [*self._encode_with_special(text[:start]), id, *self._encode_with_special(text[end:])]
            parts[touching[0] : touching[-1] + 1] = [([id], start, end)]
        return [id for ids, _, _ in parts for id in ids]

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
        call = {name: self._options[name] for name in _KIWI_CALL}
        for token in self._loaded_kiwi().tokenize(part if repaired is None else repaired.text, **call):
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

            options = {name: value for name, value in self._options.items() if name not in _KIWI_CALL}
            self._kiwi = Kiwi(num_workers=1, **options)
        return self._kiwi


def _check_versions(expected: dict[str, str]) -> None:
    for package, wanted in expected.items():
        if (found := version(package)) != wanted:
            raise ImportError(
                f"this vocabulary was counted with {package} {wanted}, installed is {found}:"
                f" its morphemes would differ; pip install {package}=={wanted}"
            )


def _unique(names: list[str]) -> list[str]:
    """Two entries may have the same name, a learned piece and a whole word: the word gets a space behind it."""
    seen: set[str] = set()
    for place, name in enumerate(names):
        names[place] = f"{name} " if name in seen else name
        seen.add(name)
    return names
