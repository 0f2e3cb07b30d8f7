"""Extends a tokenizer with whole words: their entries follow all others, so that its models can be grown.

The SentencePiece model stays, byte for byte. Texts without the new words keep their ids.
"""

from collections.abc import Iterable

from pydantic import ValidationError

from korbert.errors import SettingsError
from korbert.tokenization.tokenizer import Tokenizer
from korbert.tokenization.tokenizer_settings import AnalyzerOptions, VocabularySettings
from korbert.tokenization.vocabulary import word_entries


def extended(base: Tokenizer, words: Iterable[str], options: AnalyzerOptions) -> Tokenizer:
    """`base` with those of the words that it cuts into several pieces; if it cuts none, the digest stays the same.

    options: those of `base`, or with more user words (other_options finds no difference). The result remembers the
    digest of `base`, but no probe. Raises SettingsError if a word is not a valid form, or if there are too many.
    """
    settings = base.settings
    added = [
        word
        for word in dict.fromkeys(words)
        if word not in settings.words and any(len(base.ids_of(key)) != 1 for key in word_entries([word], settings.mark))
    ]
    if not added and options == base.analyzer_options:
        return base
    size = base.vocab_size + len(word_entries(added, settings.mark))
    try:
        grown = VocabularySettings.model_validate(
            settings.model_dump() | {"size": size, "words": (*settings.words, *added)}
        )
    except ValidationError as error:
        raise SettingsError(
            "words added to a tokenizer: {errors}: change the words", errors=error.errors()[0]["msg"]
        ) from error
    return Tokenizer(*base.parts._replace(settings=grown, options=options, probe=None, base=base.digest))


def other_options(base: AnalyzerOptions, options: AnalyzerOptions) -> str:
    """The first option that differs from `base`, as "typos: 'basic', not 'none'"; "" if there is none.

    There may be more user words, after those of `base`: Kiwi cuts texts without the new ones as before.
    """
    for name in AnalyzerOptions.model_fields:
        here = getattr(options, name)
        there = getattr(base, name)
        if here != there and name != "user_words":
            return f"{name}: {here!r}, not {there!r}"
    for number, there in enumerate(base.user_words, 1):
        if options.user_words[number - 1 : number] != (there,):
            known = f"{len(options.user_words)} words" if number > len(options.user_words) else "another word"
            return f"user_words: {known}, not {there.form}/{there.tag} as word {number}, before all new ones"
    return ""


def why_not_extended(tokenizer: Tokenizer, base: Tokenizer) -> str:
    """Why `tokenizer` is neither `base` nor an extension of it; "" if it is."""
    ours = tokenizer.parts
    theirs = base.parts
    if ours.model != theirs.model:
        return "another vocabulary was learned"
    if ours.settings.mark != theirs.settings.mark:
        return f"mark: {ours.settings.mark!r}, not {theirs.settings.mark!r}"
    if ours.settings.words[: len(theirs.settings.words)] != theirs.settings.words:
        return "words: they do not begin with those of the other"
    if ours.versions != theirs.versions:
        return f"versions: {ours.versions}, not {theirs.versions}"
    return other_options(theirs.options, ours.options)


def new_entries(tokenizer: Tokenizer, base: Tokenizer) -> list[tuple[int, ...]]:
    """The ids in `base` for each added entry of `tokenizer`: 갓생 -> those of 갓 and 생.

    A word that Kiwi was not told of before is cut by the vocabulary alone, too, without its morphemes.
    """
    keys = word_entries(tokenizer.settings.words, tokenizer.settings.mark)
    known = len(word_entries(base.settings.words, base.settings.mark))
    return [base.ids_of(key) for key in keys[known:]]
