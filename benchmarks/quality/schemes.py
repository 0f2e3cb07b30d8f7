"""The tokenizers compared by benchmarks/quality/vocabulary.py: which units they use, and how units become pieces."""

import re
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from korbert.tokenization import Analysis, AnalyzerOptions, Pieces, Tokenizer, VocabularySettings, learn, marked
from korbert.tokenization.learning import processor_of
from korbert.tokenization.pieces import CONTINUATION, EOJEOL, Span
from korbert.tokenization.vocabulary import FIRST_BYTE, FIRST_PIECE, Vocabulary, piece_spans, slices

SIZE = 102_400
PLAIN = AnalyzerOptions()
MULTI = AnalyzerOptions(load_multi_dict=True)

_FIRST_TAG = 0xF0000  # private characters, one a part of speech, before the form
_WORD = re.compile(r"\S+")


def is_slice(text: str, pieces: Pieces, index: int) -> bool:
    """Whether the piece is written as the text is: 학교, not the 었 of 했. text: as it was encoded."""
    return text[slice(*pieces.spans[index])] == pieces.pieces[index].removeprefix("▁")


def forms(analysis: Analysis, text: str) -> Analysis:
    """Morphemes as Kiwi writes them: 했다 is 하 + 었 + 다."""
    return analysis


def merged(analysis: Analysis, text: str) -> Analysis:
    """Morphemes, merged if they share characters: 했다 is 했 + 다. Morphemes without characters are dropped."""
    result = Analysis()
    for row in zip(*columns(analysis), strict=True):
        _, tag, low, high, _, eojeol = row
        if low == high:
            continue
        for column, value in zip(columns(result), row, strict=True):
            column.append(value)
        # 하세요: 어요 begins before 시
        while len(result) > 1 and low < result.ends[-2] and eojeol == result.eojeols[-2]:
            low, high = min(low, result.starts[-2]), max(high, result.ends[-2])
            tag = f"{result.tags[-2]}+{tag}"
            for column in columns(result):
                column.pop()
        result.forms[-1], result.tags[-1], result.starts[-1], result.ends[-1] = text[low:high], tag, low, high
    return result


def tagged(analysis: Analysis, text: str) -> Analysis:
    """Morphemes prefixed with a private-use character for the part of speech: 하/VV and 하/XSV are different units."""
    forms = [_tag_char(tag) + form for form, tag in zip(analysis.forms, analysis.tags, strict=True)]
    return Analysis(forms, *columns(analysis)[1:])


def words(analysis: Analysis, text: str) -> Analysis:
    """Words between spaces, without an analyser."""
    matches = [(match[0], *match.span()) for match in _WORD.finditer(text)]
    names, starts, ends = map(list, zip(*matches, strict=True)) if matches else ([], [], [])
    return Analysis(names, [""] * len(names), starts, ends, [0] * len(names), list(range(len(names))))


def columns(analysis: Analysis) -> tuple[list, ...]:
    return analysis.forms, analysis.tags, analysis.starts, analysis.ends, analysis.sentences, analysis.eojeols


_TAGS: dict[str, str] = {}


def _tag_char(tag: str) -> str:
    return _TAGS.setdefault(tag, chr(_FIRST_TAG + len(_TAGS)))


class _TaggedVocabulary(Vocabulary):
    """A vocabulary where the character of the tag has no span."""

    def spans(self, key: str, form: str, start: int, end: int, text: str) -> list[Span]:
        cuts = slices(form, [len(self.bytes_of(id)) for id in self.ids[key]])
        return piece_spans(form[1:], [(max(low - 1, 0), high - 1) for low, high in cuts], start, text[start:end])


class TaggedTokenizer(Tokenizer):
    """A tokenizer for the units of `tagged` that hides the character of the tag."""

    def __init__(self, model: bytes, settings: VocabularySettings, *args) -> None:
        super().__init__(model, settings, *args)
        self._vocabulary = _TaggedVocabulary(processor_of(model), settings.mark, settings.words)

    def pieces(self, analysis: Analysis, text: str) -> Pieces:
        pieces = super().pieces(analysis, text)
        pieces.pieces = [piece.lstrip("".join(_TAGS.values())) for piece in pieces.pieces]
        return pieces


class Scheme(ABC):
    """A way to split text into pieces. options: of the analyser that it uses."""

    name: str
    options: AnalyzerOptions = PLAIN
    whole: bool = True  # whether its units are such that "one piece a unit" means something

    @abstractmethod
    def take(self, text: str, analysis: Analysis) -> None:
        """Adds a text to the training counts."""

    @abstractmethod
    def learn(self) -> None: ...

    @abstractmethod
    def pieces(self, text: str, analysis: Analysis) -> Pieces: ...

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str: ...

    @abstractmethod
    def is_byte(self, id: int) -> bool:
        """Whether the piece is a byte or an unknown token."""


@dataclass
class Units(Scheme):
    """A SentencePiece model over counted units: our own tokenizer with other settings."""

    name: str
    settings: VocabularySettings
    unit: Callable[[Analysis, str], Analysis] = forms
    model_type: str = "bpe"
    options: AnalyzerOptions = PLAIN
    whole_first: int = 0  # that many of the most frequent units are entries, whatever the merges

    def __post_init__(self) -> None:
        self.counts: Counter[tuple[str, bool]] = Counter()

    def take(self, text: str, analysis: Analysis) -> None:
        units = self.unit(analysis, text)
        initial = chain([True], map(int.__ne__, units.eojeols[1:], units.eojeols))
        self.counts.update(zip(units.forms, initial, strict=False))

    def learn(self) -> None:
        if self.whole_first:
            total: Counter[str] = Counter()
            for (form, _), count in self.counts.items():
                total[form] += count
            fit = [
                (form, count) for form, count in total.items() if form.isprintable() and not re.search(r"[\s▁]", form)
            ]
            fit.sort(key=lambda row: (-row[1], row[0]))
            whole_words = tuple(form for form, _ in fit[: self.whole_first])
            self.settings = self.settings.model_copy(update={"words": whole_words})
        rows = ((marked(form, initial, self.settings.mark), count) for (form, initial), count in self.counts.items())
        model = learn(rows, self.settings, self.model_type)
        kind = TaggedTokenizer if self.unit is tagged else Tokenizer
        self.tokenizer = kind(model, self.settings, self.options, {})
        self.counts.clear()

    def pieces(self, text: str, analysis: Analysis) -> Pieces:
        return self.tokenizer.pieces(self.unit(analysis, text), text)

    def decode(self, ids: Sequence[int]) -> str:
        if self.unit is not tagged:
            return self.tokenizer.decode(ids)
        return _joined(self.tokenizer.tokens(ids))

    def is_byte(self, id: int) -> bool:
        return FIRST_BYTE <= id < FIRST_PIECE


def _joined(pieces: Iterable[str]) -> str:
    """Joins tagged pieces with Kiwi, from forms and tags."""
    names = {char: tag for tag, char in _TAGS.items()}
    morphemes: list[tuple[str, str]] = []
    for piece in pieces:
        for char in piece:
            if char in names:
                morphemes.append(("", names[char]))
            elif morphemes:
                morphemes[-1] = (morphemes[-1][0] + char, morphemes[-1][1])
    return kiwi().join([(form, tag) for form, tag in morphemes if form])


_kiwi = None


def kiwi():
    """One Kiwi with our options, on two threads."""
    global _kiwi
    if _kiwi is None:
        from kiwipiepy import Kiwi

        _kiwi = Kiwi(num_workers=2, load_multi_dict=False)
    return _kiwi


class Direct(Scheme):
    """The tokenizer of another library, from text to pieces."""

    whole = False

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self.texts: list[str] = []

    def take(self, text: str, analysis: Analysis) -> None:
        self.texts.append(text)

    def _pieces(self, text: str, ids: Sequence[int], names: Sequence[str], spans: Sequence[Span]) -> Pieces:
        """names: in the form that `is_slice` compares with the text."""
        levels = [EOJEOL if low == 0 or text[low - 1].isspace() else CONTINUATION for low, _ in spans]
        return Pieces(list(ids), list(names), levels, list(spans), list(range(len(ids))), [""] * len(ids))


class KiwiUnigram(Direct):
    """kiwipiepy.sw_tokenizer: a unigram model learned together with the analysis."""

    def learn(self) -> None:
        from kiwipiepy.sw_tokenizer import SwTokenizer, SwTokenizerConfig

        special = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "cls", "sep", "pad", "mask")}
        config = SwTokenizerConfig(**special, fallback_byte=True)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "tokenizer.json")
            trained = SwTokenizer.train(path, self.texts, config, self.size, kiwi=kiwi(), show_progress=False)
        self.tokenizer, self.names = trained, trained.id2vocab
        self.texts.clear()

    def pieces(self, text: str, analysis: Analysis) -> Pieces:
        ids, offsets = self.tokenizer.encode(text, return_offsets=True)
        spans = [(int(low), int(high)) for low, high in offsets]
        names = [self.names[id].removeprefix("##").partition("/")[0] for id in ids]
        return self._pieces(text, list(map(int, ids)), names, spans)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def is_byte(self, id: int) -> bool:
        return re.fullmatch("<0x..>", self.names[id]) is not None or self.names[id] == "[UNK]"


class HuggingFace(Direct):
    """A tokenizer of the `tokenizers` package."""

    def pieces(self, text: str, analysis: Analysis) -> Pieces:
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        return self._pieces(text, encoding.ids, [text[slice(*span)] for span in encoding.offsets], encoding.offsets)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)


class KiwiBpe(HuggingFace):
    """kiwipiepy.bpe_trainer: byte-level BPE trained without merges across Kiwi's morpheme boundaries; applied without
    Kiwi."""

    def learn(self) -> None:
        from kiwipiepy.bpe_trainer import train_bpe_tokenizer
        from tokenizers import Tokenizer as Loaded

        cuts = {f"pretokenize_{kind}": True for kind in ("j", "e", "vcp", "xsv")}
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "tokenizer.json")
            train_bpe_tokenizer(path, self.texts, self.size, kiwi=kiwi(), num_workers=2, show_progress=False, **cuts)
            self.tokenizer = Loaded.from_file(path)
        self.texts.clear()

    def is_byte(self, id: int) -> bool:
        return "�" in self.tokenizer.decode([id])


class WordPiece(HuggingFace):
    """WordPiece over words and punctuation, as in BERT."""

    def learn(self) -> None:
        from tokenizers import BertWordPieceTokenizer

        trained = BertWordPieceTokenizer(lowercase=False, strip_accents=False, handle_chinese_chars=False)
        trained.train_from_iterator(self.texts, vocab_size=self.size, show_progress=False)
        self.tokenizer = trained
        self.unknown = trained.token_to_id("[UNK]")
        self.texts.clear()

    def is_byte(self, id: int) -> bool:
        return id == self.unknown


def schemes(size: int = SIZE) -> Iterator[Scheme]:
    """All schemes of the table, the default first. size: entries of each, except for two smaller ones."""
    small = min(size, 32_000)  # as the peers' are

    def settings(**changes: object) -> VocabularySettings:
        return VocabularySettings(**{"size": size, **changes})

    plain, eojeol, few = settings(), settings(mark="eojeol"), settings(mark="eojeol", size=small)
    yield Units("forms", settings=plain)
    yield Units("forms, mark on eojeols", settings=eojeol)
    yield Units("forms, mark on morphemes", settings=settings(mark="morpheme"))
    yield Units("forms with tags", settings=plain, unit=tagged)
    yield Units("merged", settings=plain, unit=merged)
    yield Units("merged, mark on eojeols", settings=eojeol, unit=merged)
    yield Units("forms, unigram", settings=plain, model_type="unigram")
    yield Units("forms, whole first", settings=plain, whole_first=int(0.69 * size))
    yield Units("forms, load_multi_dict", settings=plain, options=MULTI)
    yield Units(f"forms, {small:,}", settings=settings(size=small))
    yield KiwiUnigram("Kiwi sw_tokenizer", size)
    yield KiwiBpe("Kiwi bpe_trainer", size)
    yield Units("words, BPE", settings=eojeol, unit=words)
    yield Units(f"words, BPE, {small:,}", settings=few, unit=words)
    yield WordPiece("words, WordPiece", size)
    yield WordPiece(f"words, WordPiece, {small:,}", small)
