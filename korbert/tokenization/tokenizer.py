"""Text to ids and back: Kiwi's morphemes, each cut into pieces of a vocabulary, each piece with its span.

A text goes through morphemes.analyze and pieces.pieces_of, as in exported folders.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import tee
from pathlib import Path
from typing import NamedTuple

from korbert.errors import ModelError
from korbert.folders import tokenizer_folder
from korbert.tokenization import folder as folders
from korbert.tokenization.analyzer import Analyzer
from korbert.tokenization.encoding import Frame
from korbert.tokenization.learning import processor_of
from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.pieces import CONTINUATION, EOJEOL, Pieces, encode_with_special, pieces_of
from korbert.tokenization.tokenizer_base import AnyTokenizer
from korbert.tokenization.tokenizer_settings import AnalyzerOptions, VocabularySettings
from korbert.tokenization.vocabulary import FIRST_BYTE, MARK, SPECIAL, Vocabulary, marked

PROBE_TEXTS = tuple(Path(__file__).with_name("probe.txt").read_text(encoding="utf-8").splitlines())
_SPECIAL_IDS = {token: id for id, token in enumerate(SPECIAL)}


class ProbeDifference(NamedTuple):
    """pieces: of all sentences, as saved. changed: pieces that differ now. texts: the sentences with such pieces."""

    pieces: int
    changed: int
    texts: list[str]


class Tokenizer(AnyTokenizer):
    """A vocabulary, and the analyser options and versions it belongs to: one digest, the same ids on every machine.

    Examples:
        >>> tokenizer = korbert.Tokenizer.load("korbert-mini")
        >>> encoding = tokenizer.encode("학교에 간다")
        >>> encoding.pieces
        ['[CLS]', '학교', '에', '가', 'ᆫ다', '[SEP]']
        >>> encoding.spans
        [(0, 0), (0, 2), (2, 3), (4, 5), (4, 6), (0, 0)]
    """

    pad_id, unk_id, cls_id, sep_id, mask_id = range(len(SPECIAL))

    def __init__(
        self,
        model: bytes,
        settings: VocabularySettings,
        analyzer_options: AnalyzerOptions,
        versions: Mapping[str, str],
        accepted: Mapping[str, str] | None = None,
        probe: bytes | None = None,
        base: str | None = None,
    ) -> None:
        """model: from learning.learn. analyzer_options, versions: of the Analyzer whose forms were counted.

        accepted, probe, base: as in folder.Parts. Raises ModelError for a model that is not of these settings.
        """
        fields = VocabularySettings.model_fields  # the settings of a stage have more
        self.settings = VocabularySettings(**{name: getattr(settings, name) for name in fields})
        self.analyzer_options = analyzer_options
        self.versions = dict(versions)
        other_versions = dict(accepted or {})
        self.parts = folders.Parts(model, self.settings, analyzer_options, self.versions, other_versions, probe, base)
        self.digest = folders.digest(self.parts)
        self.analyzer = Analyzer(analyzer_options)
        self._vocabulary = Vocabulary(processor_of(model), self.settings.mark, self.settings.words)
        if self.settings.mark != "none" and MARK not in self._vocabulary.pieces:
            raise ModelError(
                "the vocabulary lacks {mark}, but mark = {mark2!r}: learn it with that mark",
                mark=MARK,
                mark2=self.settings.mark,
            )
        self.vocab_size = len(self._vocabulary.pieces)
        self.frame = Frame(self.cls_id, self.sep_id)

    def __repr__(self) -> str:
        return f"<Tokenizer of {self.vocab_size:,} pieces: {self.digest[:12]}>"

    @classmethod
    def load(cls, folder: str | Path, *, accept_kiwi: bool | None = None) -> "Tokenizer":
        """Loads the tokenizer of a folder written by `save`, of a model folder, or of an artifact with either.

        Raises ModelError if a file is missing or was changed, and if the installed Kiwi is not the one the
        vocabulary was counted with: its morphemes would differ. accept_kiwi: take it all the same, which `save` then
        records; None: where $KORBERT_ACCEPT_KIWI is set.
        """
        return cls(*folders.read(tokenizer_folder(folder), accept_kiwi=accept_kiwi))

    def save(self, folder: str | Path) -> None:
        """Writes vocabulary.model, pieces.txt and korbert_tokenizer.json.

        Also words.tsv if there are whole words, and probe.json if probe encodings were recorded.
        """
        folders.write(Path(folder), self.parts, self._vocabulary.pieces)

    def record_probe_encodings(self) -> None:
        """Encodes sample sentences with the installed Kiwi. `save` writes them, for comparison with another Kiwi."""
        encodings = [{"text": text, "ids": self.encode_pieces(text).ids} for text in PROBE_TEXTS]
        self.parts = self.parts._replace(probe=(json.dumps(encodings, ensure_ascii=False, indent=1) + "\n").encode())

    def compare_probe(self) -> ProbeDifference | None:
        """Encodes the probe sentences again and compares their pieces with those recorded; None if none were."""
        if self.parts.probe is None:
            return None
        rows = json.loads(self.parts.probe)
        num_changed = 0
        texts = []
        for row in rows:
            ids = self.encode_pieces(row["text"]).ids
            matches = SequenceMatcher(None, row["ids"], ids, autojunk=False).get_matching_blocks()
            if different := max(len(row["ids"]), len(ids)) - sum(block.size for block in matches):
                num_changed += different
                texts.append(row["text"])
        return ProbeDifference(sum(len(row["ids"]) for row in rows), num_changed, texts)

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[object, ...]]:
        return type(self), tuple(self.parts)

    def encode_pieces(self, text: str, *, special_tokens: bool = False) -> Pieces:
        if special_tokens:
            return encode_with_special(text, self.encode_pieces, _SPECIAL_IDS)
        return pieces_of(self.analyzer.analyze(text), text, self._vocabulary)

    def pieces_of_many(self, texts: Iterable[str], *, workers: int = 1) -> Iterator[Pieces]:
        ahead, texts = tee(texts)
        return map(self.pieces, self.analyzer.analyze_many(ahead, workers=workers), texts)

    def pieces(self, analysis: Analysis, text: str) -> Pieces:
        return pieces_of(analysis, text, self._vocabulary)

    def ids_of(self, key: str) -> tuple[int, ...]:
        """The ids of the key of a morpheme: `marked(form, ...)`, or the form itself with mark "none"."""
        return self._vocabulary.ids[key]

    def encode_forms(self, forms: Sequence[str], eojeol_initial: Sequence[bool]) -> list[tuple[int, ...]]:
        """The ids of each form. eojeol_initial: which forms begin an eojeol."""
        keys = forms
        if (mark := self.settings.mark) != "none":
            keys = [marked(form, initial, mark) for form, initial in zip(forms, eojeol_initial, strict=True)]
        return list(map(self._vocabulary.ids.__getitem__, keys))

    def tokens(self, ids: Iterable[int]) -> list[str]:
        names = self._vocabulary.pieces
        ids = list(ids)
        if invalid := [id for id in ids if not 0 <= id < len(names)]:
            raise ModelError(
                "id {wrong} is not in the vocabulary of {num_names}: of another tokenizer",
                wrong=invalid[0],
                num_names=len(names),
            )
        return [names[id] for id in ids]

    def decode(self, ids: Sequence[int], boundaries: Sequence[int] | None = None) -> str:
        """Readable text, not the original: forms run together (가 + ᆫ다 -> 간다, but 하 + 었 -> 하었).

        Spaces stand where an eojeol begins, as far as the mark or `boundaries` tell. Of the special tokens only [MASK]
        is shown. Never cut answers from this: cut the text by spans.
        """
        pieces = self.tokens(ids)
        levels = boundaries if boundaries is not None else [CONTINUATION] * len(pieces)
        text = bytearray()
        for id, piece, level in zip(ids, pieces, levels, strict=True):
            if id < FIRST_BYTE and id != self.mask_id:
                continue
            begins = piece.startswith(MARK) and self.settings.mark == "eojeol"
            if text and (begins or level >= EOJEOL):
                text += b" "
            text += self._vocabulary.bytes_of(id)
        return unicodedata.normalize("NFC", text.decode("utf-8", errors="replace"))
