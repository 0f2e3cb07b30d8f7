"""Text as people write it: wrong spaces, typing errors, missing final consonants, laughter, emoji.

Each kind of noise is a function of a text and a generator; letters stay in their order.
"""

import random
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from korbert.seeds import derived_seed

_SHARE = 0.2  # share of the places, syllables or eojeols that are changed
# Rows of the two-set keyboard, by hand.
_KEYS = ("ㅂㅈㄷㄱㅅ", "ㅁㄴㅇㄹㅎ", "ㅋㅌㅊㅍ", "ㅛㅕㅑㅐㅔ", "ㅗㅓㅏㅣ", "ㅠㅜㅡ")


# Jamo of a syllable -> the jamo of the keys to its left and right.
_NEIGHBOURS = {
    letter: row[max(number - 1, 0) : number] + row[number + 1 : number + 2]
    for row in (unicodedata.normalize("NFKD", row) for row in _KEYS)
    for number, letter in enumerate(row)
}


def _random_spaces(text: str, rng: random.Random) -> str:
    """A fifth of the places between letters have a space where there is none, or none where there is one."""
    characters: list[str] = []
    for word in text.split():
        if characters and rng.random() >= _SHARE:
            characters.append(" ")
        characters += [f" {char}" if index and rng.random() < _SHARE else char for index, char in enumerate(word)]
    return "".join(characters)


def _by_syllable(change: Callable[[str, random.Random], str]) -> Callable[[str, random.Random], str]:
    """Returns a function that changes a fifth of the syllables of a text. change: of a single syllable."""

    def changed(text: str, rng: random.Random) -> str:
        return "".join(change(char, rng) if "가" <= char <= "힣" and rng.random() < _SHARE else char for char in text)

    return changed


def _mistype(syllable: str, rng: random.Random) -> str:
    """Replaces the first consonant or the vowel by that of a neighbouring key."""
    parts = list(unicodedata.normalize("NFD", syllable))
    index = rng.randrange(2)
    parts[index] = rng.choice(_NEIGHBOURS.get(parts[index], parts[index]))
    return unicodedata.normalize("NFC", "".join(parts))


def _with(marks: tuple[str, ...]) -> Callable[[str, random.Random], str]:
    """Returns a function that adds marks after a fifth of the eojeols of a text, and at its end."""

    def marked(text: str, rng: random.Random) -> str:
        words = [word + rng.choice(marks) if rng.random() < _SHARE else word for word in text.split()]
        return " ".join(words) + rng.choice(marks)

    return marked


NOISE: Mapping[str, Callable[[str, random.Random], str]] = {
    "no spaces": lambda text, rng: "".join(text.split()),
    "all spaces": lambda text, rng: " ".join("".join(text.split())),
    "random spaces": _random_spaces,
    "typing errors": _by_syllable(_mistype),
    "no final consonants": _by_syllable(
        lambda letter, rng: unicodedata.normalize("NFC", unicodedata.normalize("NFD", letter)[:2])
    ),
    "laughter": _with(("ㅋㅋ", "ㅋㅋㅋㅋ", "ㅎㅎ", "ㅠㅠ")),
    "emoji": _with(("😀", "👍🏻", "😂", "❤️")),
}
"""Name -> (text, generator) -> the disturbed text. A fifth of the places, syllables or eojeols change."""
SPACINGS = ("no spaces", "all spaces", "random spaces")
"""The kinds of noise that change spaces alone, so that `map_spans` can map spans."""


def noise_function(name: str, rng: random.Random) -> Callable[[str], str]:
    """A kind of noise as a function of a text; successive texts draw from the same generator."""
    return lambda text: NOISE[name](text, rng)


def map_spans(spans: Sequence[tuple[int, int]], text: str, changed: str) -> list[tuple[int, int]]:
    """Maps spans of a text to the same text with other spaces.

    A mapped span runs from its first letter to its last one; without letters it is empty.
    """
    places = [place for place, char in enumerate(changed) if not char.isspace()]
    letters_before = [*accumulate((not char.isspace() for char in text), initial=0)]  # before each place
    starts = [*places, len(changed)]
    return [
        (starts[first], places[last - 1] + 1 if first < last else starts[first])
        for first, last in ((letters_before[start], letters_before[end]) for start, end in spans)
    ]


def wrong_spaces(texts: Sequence[str], share: float, seed: int) -> Callable[[str], str] | None:
    """A function that corrupts the spaces of a row; None if the row stays unchanged.

    Args:
        texts: Texts of the row. Rows with the same texts change alike.
        share: Share of rows that change, from 0 to 1: half of them get random spaces, a quarter none, a quarter all.
        seed: Random seed of the choice.
    """
    rng = random.Random(derived_seed(seed, *texts))
    if rng.random() >= share:
        return None
    return noise_function(rng.choice(("random spaces", "random spaces", "no spaces", "all spaces")), rng)
