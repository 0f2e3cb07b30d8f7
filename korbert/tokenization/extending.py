"""Extends a tokenizer with whole words: their entries follow all others, so that its models can be grown.

The SentencePiece model stays, byte for byte. Texts without the new words keep their ids.
"""

from collections.abc import Iterable

from pydantic import ValidationError

from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.tokenization.tokenizer import Tokenizer
from korbert.tokenization.tokenizer_settings import AnalyzerOptions, VocabularySettings
from korbert.tokenization.vocabulary import word_entries


def extend_tokenizer(base: Tokenizer, words: Iterable[str], options: AnalyzerOptions) -> Tokenizer:
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
        value = getattr(options, name)
        base_value = getattr(base, name)
        if value != base_value and name != "user_words":
            return Message("{name}: {here!r}, not {there!r}", name=name, here=value, there=base_value)
    for number, base_word in enumerate(base.user_words, 1):
        if options.user_words[number - 1 : number] != (base_word,):
            difference = Message("another word")
            if number > len(options.user_words):
                difference = Message("{count} words", count=len(options.user_words))
            return Message(
                "user_words: {known}, not {form}/{tag} as word {number}, before all new ones",
                known=difference,
                form=base_word.form,
                tag=base_word.tag,
                number=number,
            )
    return ""


def why_not_extended(tokenizer: Tokenizer, base: Tokenizer) -> str:
    """Why `tokenizer` is neither `base` nor an extension of it; "" if it is."""
    ours = tokenizer.parts
    theirs = base.parts
    if ours.model != theirs.model:
        return Message("another vocabulary was learned")
    if ours.settings.mark != theirs.settings.mark:
        return Message("mark: {here!r}, not {there!r}", here=ours.settings.mark, there=theirs.settings.mark)
    if ours.settings.words[: len(theirs.settings.words)] != theirs.settings.words:
        return Message("words: they do not begin with those of the other")
    if ours.versions != theirs.versions:
        return Message("versions: {here}, not {there}", here=ours.versions, there=theirs.versions)
    return other_options(theirs.options, ours.options)


def new_entries(tokenizer: Tokenizer, base: Tokenizer) -> list[tuple[int, ...]]:
    """The ids in `base` for each added entry of `tokenizer`: 갓생 -> those of 갓 and 생.

    A word that Kiwi was not told of before is cut by the vocabulary alone, too, without its morphemes.
    """
    keys = word_entries(tokenizer.settings.words, tokenizer.settings.mark)
    num_base_entries = len(word_entries(base.settings.words, base.settings.mark))
    return [base.ids_of(key) for key in keys[num_base_entries:]]
