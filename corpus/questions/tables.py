"""Endings, particles, verbs and nouns of questions; the longer tables are in words.toml. Tags are Kiwi's."""

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

_WORDS: dict[str, Any] = tomllib.loads(files("korbert.corpus.questions").joinpath("words.toml").read_text("utf-8"))


def words(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())


# Endings. A statement ends in one of these; its register is that of the question.
DECLARATIVE = {
    **dict.fromkeys(words("다 ᆫ다 는다"), "plain"),
    **dict.fromkeys(words("습니다 ᆸ니다"), "formal"),
    **dict.fromkeys(words("어요 에요 지요 죠"), "polite"),
}
# register -> (ending after a verb or 었, after an adjective or 이); the first of plain is the usual one.
INTERROGATIVE = {
    "plain": (("는가", "은가"), ("는가", "은가"), ("는가", "은가"), ("나", "은가"), ("나요", "은가요")),
    "formal": (("습니까", "습니까"),),
    "polite": (("나요", "은가요"),),
}
# 이다 behind a question word, where Kiwi would contract 어디인가 to 어딘가 (somewhere).
COPULA = {"plain": "인가", "formal": "입니까", "polite": "인가요"}
# A clause that ends so can stand alone. True: what follows can, too, so that the clause may be left out.
SPLITTING = {"고": True, "으며": True, "며": True, "지만": True, "으나": True, "나": True, "어": False}
# Particles: any form -> the form after a consonant.
PARTICLES = {
    "가": "이",
    "는": "은",
    "를": "을",
    "와": "과",
    "로": "으로",
    "로서": "으로서",
    "로써": "으로써",
    "라고": "이라고",
}


class Frame(NamedTuple):
    """What to ask for the noun phrase with this particle before these verbs.

    head: the noun of the other form of the question (…한 곳은 어디인가?); "" for none.
    """

    particle: str
    word: str
    head: str = ""
    verbs: str = ""


# Verbs
FRAMES = tuple(Frame(*frame) for frame in _WORDS["frames"])
NAMING = words(_WORDS["naming"])
NEGATIVE = words(_WORDS["negative"])
ONCE = words(_WORDS["once"])
POSTPOSITIONS = words(_WORDS["postpositions"])
QUOTATIVE = words(_WORDS["quotative"])
SERIAL = words(_WORDS["serial"])
SYNONYMS: dict[str, str] = {verb: other for other, verbs in _WORDS["synonyms"].items() for verb in verbs.split()}
TRANSITIVE = words(" ".join([_WORDS["transitive"], *(frame.verbs for frame in FRAMES if frame.particle == "을")]))

# Nouns
AMOUNTS = words(_WORDS["amounts"])
ATTRIBUTES: dict[str, str] = {noun: word for word, nouns in _WORDS["attributes"].items() for noun in nouns.split()}
BASES = words(_WORDS["bases"])
CLASSES: dict[str, str] = {noun: word for word, nouns in _WORDS["classes"].items() for noun in nouns.split()}
KIN = words(_WORDS["kin"])
MEASURES = words(_WORDS["measures"])
NAMES = words(_WORDS["names"])
PERSONS = words(_WORDS["persons"])
PLACES = words(_WORDS["places"])
TIMES = words(_WORDS["times"])
TITLES = PERSONS - words(_WORDS["no_titles"])
UNIQUE = words(_WORDS["unique"])
VAGUE = words(_WORDS["vague"])
DEFINED_AS = {
    **{noun: word for noun, word in ATTRIBUTES.items() if word == "누구"},
    **dict.fromkeys(PERSONS | words(_WORDS["descendants"]), "누구"),
    **dict.fromkeys(PLACES, "어디"),
}

# Numbers
BARE_AFTER_NUMBER = words(_WORDS["bare_after_number"])
COUNTERS = words(_WORDS["counters"])
MONEY = words(_WORDS["money"])
NATIVE = words(_WORDS["native"])
NATIVE_UNITS = words(_WORDS["native_units"])

# Adverbs and determiners
ADVERBS = words(_WORDS["adverbs"])
CONNECTORS = words(_WORDS["connectors"])
DEICTIC = words(_WORDS["deictic"])
MODIFIERS = words(_WORDS["modifiers"])

# Names of persons
GIVEN_NAME = frozenset(_WORDS["given_name"]) - {"\n"}
GROUPS = tuple(_WORDS["groups"].split())
SURNAMES = frozenset(_WORDS["surnames"]) - {"\n"}
