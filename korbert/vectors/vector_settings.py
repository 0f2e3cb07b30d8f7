"""How vectors of texts are made: layers, pooling, size. Imports no torch."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from korbert.errors import SettingsError
from korbert.system import JsonObject
from korbert.vectors.names import Mix, PoolingName, Side


class VectorSettings(BaseModel, frozen=True, extra="forbid"):
    """How vectors are made. Layer and pooling are by default those of sentence-transformers for a plain folder."""

    layer: Annotated[tuple[int, ...], BeforeValidator(lambda value: (value,) if isinstance(value, int) else value)] = (
        Field((-1,), min_length=1, description="layers: 0 the embeddings, 1 the first layer, -1 the last one")
    )
    mix: Mix = Field("mean", description="how several layers are combined: sum, mean or concatenation")
    pooling: PoolingName = Field("mean", description="how piece vectors are pooled into one text vector")
    special_tokens: bool = Field(True, description="include [CLS] and [SEP] in the pooling")
    normalize: bool = Field(True, description="scale vectors to unit length, after they are cut to `size`")
    side: Side | None = Field(None, description="role of the texts in a search, whose prompt precedes them")
    size: int | None = Field(None, ge=1, description="keep only this many leading dimensions; none: all")

    @classmethod
    def of(cls, values: JsonObject) -> "VectorSettings":
        """Raises SettingsError, which names the setting, for an invalid value."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"])) or "vectors"
            raise SettingsError(
                "{name}: {said} (given: {first!r:.60})", name=name, said=first["msg"], first=first["input"]
            ) from None

    def layer_indices(self, num_layers: int) -> tuple[int, ...]:
        """The layers counted from 0, in an encoder of `num_layers`. SettingsError for one that it does not have."""
        for layer in self.layer:
            if not -num_layers - 1 <= layer <= num_layers:
                raise SettingsError(
                    "layer {layer}: take one from 0 (the embeddings) to {count}; -1 is the last one",
                    layer=layer,
                    count=num_layers,
                )
        return tuple(layer % (num_layers + 1) for layer in self.layer)

    def reads_last(self, num_layers: int) -> bool:
        """Whether the last layer is the only one read, in an encoder of `num_layers`."""
        return self.layer_indices(num_layers) == (num_layers,)


class VectorArgs(TypedDict, total=False):
    """The settings of VectorSettings as arguments; those left out are the model's defaults."""

    layer: int | Sequence[int]
    mix: Mix
    pooling: PoolingName
    special_tokens: bool
    normalize: bool
    side: Side | None
    size: int | None
