"""A vocabulary learned from morpheme counts: one SentencePiece BPE model, the same bytes from the same counts.

Ids: 0 to 4 are SPECIAL, 5 to 127 reserved, 128 to 383 the bytes, 384 and up pieces. Special and reserved entries are
control symbols, which no text matches.
"""

import io
import re
from collections import Counter
from collections.abc import Iterable

from korbert.errors import CorpusError
from korbert.tokenization.settings import Mark, VocabularySettings

__all__ = [
    "FIRST_BYTE",
    "FIRST_PIECE",
    "MARK",
    "RESERVED",
    "SPECIAL",
    "TYPED",
    "learn",
    "marked",
    "unmarked",
    "word_entries",
]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
RESERVED = 123  # entries for tasks to come
FIRST_BYTE = len(SPECIAL) + RESERVED  # 128
FIRST_PIECE = FIRST_BYTE + 256  # 384
MARK = "▁"  # where a morpheme or an eojeol begins, as in SentencePiece; typed in a text it is spelt in bytes

TYPED = "\uffff"  # a ▁ of the text in what is looked up, so that it is no mark

_MAX_FORM_BYTES = 4096  # longer ones SentencePiece leaves out by itself
_UNFIT = re.compile(f"[\\s\x00-\x1f{MARK}{TYPED}\u2585\ud800-\udfff]")  # ▅ is a sign of the trainer's own
_TOO_LARGE = re.compile(r"Vocabulary size too high.*<= (\d+)")
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def marked(form: str, eojeol_initial: bool, mark: Mark) -> str:
    """What is looked up for a form: 학교 -> ▁학교 where the mark is to stand. A ▁ of the form itself becomes TYPED."""
    if MARK in form:
        form = form.replace(MARK, TYPED)
    return MARK + form if mark == "morpheme" or (mark == "eojeol" and eojeol_initial) else form


def unmarked(piece: str) -> str:
    """The characters of a piece."""
    return piece.removeprefix(MARK)


def word_entries(settings: VocabularySettings) -> list[str]:
    """What is looked up for the whole words, in the order of their ids, which are the last ones of the vocabulary."""
    keys = (marked(word, initial, settings.mark) for word in settings.words for initial in (True, False))
    return list(dict.fromkeys(keys))


def learn(counts: Iterable[tuple[str, int]], settings: VocabularySettings) -> bytes:
    """The bytes of a SentencePiece model with `settings.size` entries less those of whole words.

    counts: (marked(form, ...), how often); equal strings are added up, their order does not matter. Raises CorpusError
    where there is too little text for the size, or too many characters.
    """
    rows = _rows(counts, settings)
    if not rows:
        raise CorpusError(f"no forms to learn from (min_count {settings.min_count}): analyze more text, or lower it")
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(rows),  # no paths: they would be written into the model
            model_writer=model,
            input_format="tsv",
            model_type="bpe",
            vocab_size=settings.size - len(word_entries(settings)),
            character_coverage=settings.character_coverage,
            required_chars="" if settings.mark == "none" else MARK,
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
        raise _refusal(str(error), settings) from error
    return model.getvalue()


def _rows(counts: Iterable[tuple[str, int]], settings: VocabularySettings) -> list[str]:
    total: Counter[str] = Counter()
    for form, count in counts:
        total[form] += count
    words = set(word_entries(settings))
    kept = (
        (form, count)
        for form, count in total.items()
        if count >= settings.min_count and form not in words and _learnable(form, settings.mark)
    )
    return [f"{form}\t{count}" for form, count in sorted(kept, key=lambda row: (-row[1], row[0]))]


def _learnable(form: str, mark: Mark) -> bool:
    bare = form if mark == "none" else unmarked(form)
    return bool(bare) and not _UNFIT.search(bare)


def _refusal(text: str, settings: VocabularySettings) -> CorpusError:
    taken = len(word_entries(settings))
    if found := _TOO_LARGE.search(text):
        allowed = int(found[1]) + taken
        return CorpusError(
            f"vocab.size {settings.size}: too little text for so many entries, it allows {allowed}:"
            f" set vocab.size to {allowed} or less, or bring more text"
        )
    if found := _TOO_SMALL.search(text):
        needed = int(found[1]) + FIRST_PIECE + taken
        return CorpusError(
            f"vocab.size {settings.size}: the characters of the text alone take {needed} entries:"
            f" set vocab.size above that, or lower character_coverage {settings.character_coverage}"
        )
    return CorpusError(f"vocab.size {settings.size}: SentencePiece cannot learn from these counts: {text}")
