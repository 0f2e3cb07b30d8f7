"""Endings, particles, verbs and nouns of questions, read from words.toml. Tags are Kiwi's."""

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

_TABLES: dict[str, Any] = tomllib.loads(files("korbert.corpus.questions").joinpath("words.toml").read_text("utf-8"))


class QuestionFrame(NamedTuple):
    """What to ask for a noun phrase with this particle.

    head: the noun of the other form of the question (…한 곳은 어디인가?); "" for none.
    """

    particle: str
    word: str
    head: str = ""


def _by_word(table: str) -> dict[str, str]:
    """Each word of a table -> its key there."""
    return {word: key for key, words in _TABLES[table].items() for word in words.split()}


WORDS = {name: frozenset(words.split()) for name, words in _TABLES["words"].items()}
TAGS = {name: frozenset(tags.split()) for name, tags in _TABLES["tags"].items()}

ATTRIBUTES = _by_word("attributes")
CLASSES = _by_word("classes")
PARTICLES = _by_word("particles")
REGISTERS = _by_word("registers")
SYNONYMS = _by_word("synonyms")

COPULA: dict[str, str] = _TABLES["copula"]
INTERROGATIVE: dict[str, list[tuple[str, str]]] = _TABLES["interrogative"]
SPLITTING: dict[str, bool] = _TABLES["splitting"]

# Particle and verb -> frame; the first one if several have both.
FRAMES = {
    (frame[0], verb): QuestionFrame(*frame[:3]) for frame in reversed(_TABLES["frames"]) for verb in frame[3].split()
}
TRANSITIVE = WORDS["transitive"].union(verb for particle, verb in FRAMES if particle == "을")
TITLES = WORDS["persons"] - WORDS["no_titles"]
DEFINED_AS = {
    **{noun: word for noun, word in ATTRIBUTES.items() if word == "누구"},
    **dict.fromkeys(WORDS["persons"] | WORDS["descendants"], "누구"),
    **dict.fromkeys(WORDS["places"], "어디"),
}
