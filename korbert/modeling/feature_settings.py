"""Settings of a head on a frozen encoder: which layers it reads, and its architecture. Imports no torch."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator

from korbert.errors import SettingsError
from korbert.messages import Message, reason

_SINGLE = {"first": 0, "last": -1, "second-to-last": -2}
_WORDS = {"two": 2, "three": 3, "four": 4}
_SEVERAL = re.compile(r"(sum|concat|weighted sum) of (?:(all)|last (\d{1,4}|two|three|four))")

HeadName = Literal["linear", "mlp", "bilstm"]


def chosen_layers(layers: str, count: int) -> tuple[tuple[int, ...], str]:
    """Resolves `layers` for an encoder of `count` layers. SettingsError if it has too few.

    Returns the indices of the layers, 0 being the embeddings, and how their vectors are combined: "one" (a single
    layer), "sum", "concat" or "weighted sum". `all` excludes the embeddings, as in Devlin et al. 2019, table 7.
    """
    if layers == "weighted sum":
        layers = "weighted sum of all"
    if match := _SEVERAL.fullmatch(layers):
        mix, all_word, count_word = match.groups()
        number = count if all_word else _WORDS.get(count_word) or int(count_word)
        if not 1 <= number <= count:
            raise SettingsError(
                "layers {layers!r}: the encoder has {count} layers: take {count} or fewer", layers=layers, count=count
            )
        return tuple(range(count + 1 - number, count + 1)), mix
    if layers not in _SINGLE and not re.fullmatch(r"\d{1,4}", layers):
        raise SettingsError(
            'layers {layers!r:.60}: take "last", "first" (the embeddings), "second-to-last", a '
            'number from 0, or "sum", "concat" or "weighted sum" with "of all" or "of last four"',
            layers=layers,
        )
    place = _SINGLE[layers] if layers in _SINGLE else int(layers)
    if not -count - 1 <= place <= count:
        raise SettingsError(
            "layers {layers!r}: the encoder has layers 0 (embeddings) to {count}: take one of them",
            layers=layers,
            count=count,
        )
    return (place % (count + 1),), "one"


class FeatureSettings(BaseModel, frozen=True, extra="forbid"):
    """A head trained on the vectors of a frozen encoder. Also accepts one string: "last, mlp, 128"."""

    layers: Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)] = Field(
        "last",
        description='"last", "first" (embeddings), a number; "sum of last four", "concat of ..", "weighted sum of .."',
    )
    head: HeadName = Field(
        "linear", description="linear; mlp: one hidden layer; bilstm: two bidirectional LSTM layers over the pieces"
    )
    width: int = Field(256, ge=1, description="hidden size of mlp, and of each direction of bilstm")
    keep: Literal["float16", "float32"] = Field("float16", description="of cached vectors; float16 takes half the disk")

    @model_validator(mode="before")
    @classmethod
    def _of_a_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        words = [word.strip() for word in value.split(",")]
        if len(words) > len(cls.model_fields):
            names = ", ".join(cls.model_fields)
            raise ValueError(Message("{value!r:.80}: give {names}, and no more", value=value, names=names))
        return dict(zip(cls.model_fields, words, strict=False))

    @field_validator("layers")
    @classmethod
    def _layers_are_known(cls, layers: str) -> str:
        try:
            chosen_layers(layers, 10_000)  # how many there are is known when the encoder is
        except SettingsError as error:
            raise ValueError(reason(error)) from None
        return layers
