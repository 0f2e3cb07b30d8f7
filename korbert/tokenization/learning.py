"""Learns a vocabulary from morpheme counts: one SentencePiece BPE model, the same bytes from the same counts.

See vocabulary.py for the layout of its ids.
"""

import importlib
import io
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from korbert.errors import CorpusError, ModelError
from korbert.tokenization.tokenizer_settings import VocabularySettings
from korbert.tokenization.vocabulary import (
    FIRST_BYTE,
    FIRST_PIECE,
    MARK,
    RESERVED,
    SPECIAL,
    TYPED,
    unmarked,
    word_entries,
)

_OFTEN = 3  # occurrences that make a form worth an entry
_FAR_ABOVE = 2  # sizes above so many times _worth_having get a warning

_MAX_FORM_BYTES = 4096  # SentencePiece skips longer forms
_UNFIT = re.compile(f"[\\s\x00-\x1f{MARK}{TYPED}\u2585\ud800-\udfff]")  # ▅ is reserved by the trainer
_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb]")
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_TOO_LARGE = re.compile(r"Vocabulary size too high.*<= (\d+)")
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")

_logger = logging.getLogger(__name__)


def learn(
    counts: Iterable[tuple[str, int]], settings: VocabularySettings, model_type: Literal["bpe", "unigram"] = "bpe"
) -> bytes:
    """The bytes of a SentencePiece model with `settings.size` entries less those of whole words.

    counts: (marked(form, ...), count) in any order; those of equal strings are added. model_type: the stage learns
    "bpe"; benchmarks/quality/vocabulary.py compares both. Raises CorpusError for too little text for the size, or too
    many characters.
    """
    rows = _rows(counts, settings)
    if not rows:
        raise CorpusError(
            "no forms to learn from (min_count {min_count}): analyze more text, or lower it",
            min_count=settings.min_count,
        )
    if settings.size > _FAR_ABOVE * (worth := _worth_having(rows, settings)):
        _logger.warning(
            "vocab.size %s: far more than the text gives a reason for: about %s would hold its characters and all "
            "forms seen %d times or more",
            f"{settings.size:,}",
            f"{worth:,}",
            _OFTEN,
        )
    model = _train_sentencepiece(rows, settings, settings.character_coverage, model_type)
    if recut := _recut_rare_rows(rows, model, settings):
        less_foreign, coverage = recut
        try:
            return _train_sentencepiece(less_foreign, settings, coverage, model_type)
        except CorpusError:
            _logger.warning(
                "vocab.foreign_share %s: has no effect, as there is too little Korean to fill the freed entries",
                settings.foreign_share,
            )
    return model


def _train_sentencepiece(
    rows: Sequence[tuple[str, int]], settings: VocabularySettings, character_coverage: float, model_type: str
) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    required = "" if settings.mark == "none" else MARK
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(f"{form}\t{count}" for form, count in rows),  # a path would be written into the model
            model_writer=model,
            input_format="tsv",
            model_type=model_type,
            vocab_size=settings.size - len(word_entries(settings.words, settings.mark)),
            character_coverage=character_coverage,
            required_chars=required,
            max_sentencepiece_length=settings.max_piece_chars,
            max_sentence_length=_MAX_FORM_BYTES,
            num_threads=1,  # is written into the model, too
            byte_fallback=True,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            split_by_unicode_script=False,
            split_by_number=False,
            split_by_whitespace=False,
            split_digits=False,
            pad_id=0,
            pad_piece=SPECIAL[0],
            unk_id=1,
            unk_piece=SPECIAL[1],
            bos_id=-1,
            eos_id=-1,
            control_symbols=[*SPECIAL[2:], *(f"[RESERVED{number}]" for number in range(RESERVED))],
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _refusal(str(error), rows, settings) from error
    return model.getvalue()


def _recut_rare_rows(
    rows: Sequence[tuple[str, int]], model: bytes, settings: VocabularySettings
) -> tuple[list[tuple[str, int]], float] | None:
    """Cuts forms without Hangul into the pieces that a smaller model gives them. Returns the new rows, and the share of
    characters that have an entry; None if no entry is beyond `foreign_share`.

    The smaller model lacks the entries beyond `foreign_share`: of those of two or more characters without Hangul, the
    ones merged last.

    A vocabulary learned from these merges nothing across such pieces, which leaves the room to Korean. It may merge in
    other steps: up to 20 more of 102,400 entries have no Hangul.
    """
    processor = processor_of(model)
    entries: list[str] = processor.id_to_piece(list(range(FIRST_PIECE, processor.vocab_size())))  # as merged
    foreign = [piece for piece in entries if len(unmarked(piece)) > 1 and not _HANGUL.search(piece)]
    surplus = set(foreign[int(settings.foreign_share * settings.size) :])
    if not surplus:
        return None
    protocol: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")  # made by protobuf, without types
    content = protocol.ModelProto.FromString(model)
    for entry in content.pieces:
        if entry.piece in surplus:
            entry.type = protocol.ModelProto.SentencePiece.UNUSED
    processor = processor_of(content.SerializeToString())
    total: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    for form, count in rows:
        for piece in [form] if _HANGUL.search(form) else processor.encode(form, out_type=str):
            if not _BYTE.fullmatch(piece):
                total[piece] += count
    for piece, count in total.items():
        for char in piece:
            characters[char] += count
    covered = sum(characters[char] for char in characters.keys() & set(entries))
    return sorted(total.items(), key=lambda item: (-item[1], item[0])), covered / characters.total()


def _rows(counts: Iterable[tuple[str, int]], settings: VocabularySettings) -> list[tuple[str, int]]:
    """Training rows, most frequent first, without rare forms, whole words, and forms that SentencePiece cannot take."""
    total: Counter[str] = Counter()
    for form, count in counts:
        total[form] += count
    words = set(word_entries(settings.words, settings.mark))
    rows: list[tuple[str, int]] = []
    for form, count in total.items():
        bare = form if settings.mark == "none" else unmarked(form)
        if count >= settings.min_count and form not in words and bare and not _UNFIT.search(bare):
            rows.append((form, count))
    return sorted(rows, key=lambda item: (-item[1], item[0]))


def _worth_having(rows: Sequence[tuple[str, int]], settings: VocabularySettings) -> int:
    """Entries that the text justifies: its characters and forms seen often enough; rounded up to two digits."""
    entries = {char for form, _ in rows for char in form} | {form for form, count in rows if count >= _OFTEN}
    exact = FIRST_PIECE + len(entries) + len(word_entries(settings.words, settings.mark))
    step = int(10 ** max(0, len(str(exact)) - 2))
    return -(-exact // step) * step


def _refusal(text: str, rows: Sequence[tuple[str, int]], settings: VocabularySettings) -> CorpusError:
    """Converts SentencePiece's error text to an error that says what to do."""
    reserved = len(word_entries(settings.words, settings.mark))
    if match := _TOO_LARGE.search(text):
        allowed = int(match[1]) + reserved
        often = sum(count >= _OFTEN for _, count in rows)
        return CorpusError(
            "vocab.size {size}: too little text for so many entries: of its {num_rows:,} forms {often:,} "
            "are seen {often2} times or more: set vocab.size to about {allowed} ({allowed2} is the most "
            "that it allows), or bring more text",
            size=settings.size,
            num_rows=len(rows),
            often=often,
            often2=_OFTEN,
            allowed=min(allowed, _worth_having(rows, settings)),
            allowed2=allowed,
        )
    if match := _TOO_SMALL.search(text):
        needed = int(match[1]) + FIRST_PIECE + reserved
        return CorpusError(
            "vocab.size {size}: the characters of the text alone take {needed} entries: set vocab.size "
            "above that, or lower character_coverage {character_coverage}",
            size=settings.size,
            needed=needed,
            character_coverage=settings.character_coverage,
        )
    return CorpusError(
        "vocab.size {size}: SentencePiece cannot learn from these counts: {text}", size=settings.size, text=text
    )


def processor_of(model: bytes) -> Any:
    """The SentencePieceProcessor of what `learn` returned. ModelError for anything else."""
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise ModelError(
            "the vocabulary is not a SentencePiece model ({error}): learn it with korbert.tokenization.learn",
            error=error,
        ) from error
    names = processor.id_to_piece([*range(len(SPECIAL)), FIRST_BYTE, FIRST_PIECE - 1])
    if names != [*SPECIAL, "<0x00>", "<0xFF>"]:
        raise ModelError(
            "the vocabulary begins with {names}, not {special}: learn it with korbert.tokenization.learn",
            names=names[:5],
            special=list(SPECIAL),
        )
    return processor
