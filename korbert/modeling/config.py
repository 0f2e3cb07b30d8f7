"""The configuration of an encoder. Imports no torch."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from korbert.errors import ModelError
from korbert.messages import Message

BOUNDARY_LEVELS = 4  # none, or a morpheme, an eojeol or a sentence begins (korbert.tokenization.encoding)

_WIDEST = 1 << 16  # far beyond any encoder; what is larger is a slip, and takes all memory
_MOST_PIECES = 1 << 22
_BERT_DEFAULTS: Mapping[str, Any] = {
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
}


class _Config(BaseModel, frozen=True, extra="forbid"):
    @classmethod
    def parse(cls, values: object) -> Self:
        """Parses the config of a file. ModelError, in one line, if it is invalid."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            faults = (f"{'.'.join(map(str, fault['loc'])) or 'sizes'}: {fault['msg']}" for fault in error.errors())
            raise ModelError("invalid encoder config: {faults}", faults="; ".join(faults)) from None


class EncoderConfig(_Config, frozen=True, extra="forbid"):
    """Sizes of an encoder. Names follow Hugging Face.

    `bert` is the encoder of Devlin et al. 2018 (learned positions, post-norm, GELU, biases); `modern` is that of Warner
    et al. 2024 (rotary positions, pre-norm, GeGLU, no biases). Defaults depend on the architecture: those below are
    `modern`'s; `bert` has 2 token types, dropout 0.1 and a norm epsilon of 1e-12, as in Google's code.
    """

    architecture: Literal["bert", "modern"] = Field("modern", description="Devlin et al. 2018; Warner et al. 2024")
    vocab_size: int = Field(
        ge=1, le=_MOST_PIECES, description="vocabulary size, including special and reserved entries"
    )
    hidden_size: int = Field(ge=1, le=_WIDEST, description="width of the hidden vectors")
    embedding_size: int | None = Field(
        None, ge=1, le=_WIDEST, description="width of the embeddings; none: hidden_size, else projected to it"
    )
    num_hidden_layers: int = Field(ge=1, le=1000, description="number of layers")
    layer_groups: int | None = Field(
        None, ge=1, description="number of groups of adjacent layers that share weights (ALBERT: 1); none: no sharing"
    )
    num_attention_heads: int = Field(ge=1, le=_WIDEST, description="attention heads per layer; must divide hidden_size")
    intermediate_size: int = Field(
        ge=1, le=8 * _WIDEST, description="width of the feed-forward layer (`modern`: of each half)"
    )
    max_position_embeddings: int = Field(
        512, ge=2, le=1 << 20, description="maximum pieces per row, special tokens included"
    )
    type_vocab_size: int = Field(
        0, ge=0, le=1 << 10, description="number of token types (segments); 0: none, only [SEP]"
    )
    hidden_dropout_prob: float = Field(0.0, ge=0, lt=1, description="dropout of embeddings, feed-forward layers, heads")
    attention_probs_dropout_prob: float = Field(
        0.0, ge=0, lt=1, description="dropout on attention weights; `modern`: on the output of attention, too"
    )
    layer_norm_eps: float = Field(1e-5, gt=0, description="layer norm epsilon, added to the variance")
    initializer_range: float = Field(0.02, gt=0, description="deviation of initial weights, truncated at twice")
    pad_token_id: int = Field(0, ge=0, description="id of [PAD]")
    global_attn_every_n_layers: int = Field(
        3, ge=1, description="`modern`: every n-th layer, starting with the first, has global attention; 1: all layers"
    )
    local_attention: int = Field(
        128, ge=2, multiple_of=2, description="`modern`: attention window of local layers in pieces, half on each side"
    )
    global_rope_theta: float = Field(160_000.0, gt=0, description="`modern`: base of rotary embeddings, global layers")
    local_rope_theta: float = Field(10_000.0, gt=0, description="`modern`: base of rotary embeddings, local layers")
    boundary_embedding: bool = Field(False, description="embed boundaries (none, morpheme, eojeol, sentence) of pieces")
    overlap_embedding: bool = Field(False, description="of text pairs, embed which pieces occur in both texts")
    piece_weights: bool = Field(False, description="scale each piece vector by a number from 0 to 1, computed from it")

    @model_validator(mode="before")
    @classmethod
    def _fill_bert_defaults(cls, values: object) -> object:
        if isinstance(values, Mapping) and values.get("architecture") == "bert":
            return {**_BERT_DEFAULTS, **values}
        return values

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                Message(
                    "hidden_size {hidden_size} is not a multiple of num_attention_heads {num_attention_heads}: change "
                    "one of them",
                    hidden_size=self.hidden_size,
                    num_attention_heads=self.num_attention_heads,
                )
            )
        if self.architecture == "modern" and self.head_size % 2:
            raise ValueError(
                Message(
                    "hidden_size {hidden_size} / num_attention_heads {num_attention_heads} = {head_size}, but rotary "
                    "positions need an even head size: choose other sizes",
                    hidden_size=self.hidden_size,
                    num_attention_heads=self.num_attention_heads,
                    head_size=self.head_size,
                )
            )
        if self.layer_groups and (self.num_hidden_layers % self.layer_groups or self.layers_per_set == 1):
            raise ValueError(
                Message(
                    "layer_groups {layer_groups} does not divide {layers} layers into equal groups of two or more: "
                    "choose another number, or leave it out",
                    layer_groups=self.layer_groups,
                    layers=self.num_hidden_layers,
                )
            )
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(
                Message(
                    "pad_token_id {pad_token_id} is not an id in a vocabulary of {vocab_size}",
                    pad_token_id=self.pad_token_id,
                    vocab_size=self.vocab_size,
                )
            )
        return self

    @property
    def head_size(self) -> int:
        """Dimensions per attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings, and of the vectors that the vocabulary matrix scores."""
        return self.embedding_size or self.hidden_size

    @property
    def distinct_layers(self) -> int:
        """Number of layer weight sets, fewer than layers if they share weights (Lan et al. 2020, 3.1)."""
        return self.layer_groups or self.num_hidden_layers

    @property
    def layers_per_set(self) -> int:
        """Number of layers per weight set: 1 if each layer has its own."""
        return self.num_hidden_layers // self.distinct_layers

    def is_global(self, layer: int) -> bool:
        """Whether a layer (0 is the first) attends to all pieces of the row."""
        return self.architecture == "bert" or layer % self.global_attn_every_n_layers == 0


class TransformersConfig(_Config, frozen=True, extra="forbid"):
    """An encoder of `transformers`: its own config, and the entries that our heads and tasks read."""

    architecture: Literal["transformers"] = "transformers"
    transformers: dict[str, Any] = Field(description="config.json of `transformers`, with model_type")
    vocab_size: int = Field(ge=1, le=_MOST_PIECES, description="number of embedding rows")
    hidden_size: int = Field(ge=1, le=_WIDEST, description="width of the hidden vectors")
    embedding_width: int = Field(ge=1, le=_WIDEST, description="width of the embeddings")
    num_hidden_layers: int = Field(ge=1, le=1000, description="number of layers")
    max_position_embeddings: int = Field(ge=2, description="maximum pieces per row, special tokens included")
    type_vocab_size: int = Field(0, ge=0, description="number of token types passed to it; 0: none")
    hidden_dropout_prob: float = Field(0.0, ge=0, lt=1, description="dropout before classifiers")
    layer_norm_eps: float = Field(1e-12, gt=0, description="layer norm epsilon of our heads")
    initializer_range: float = Field(0.02, gt=0, description="standard deviation of the initial weights of our heads")
    pad_token_id: int = Field(0, ge=0, description="padding id")

    @property
    def model_type(self) -> str:
        """The name of the architecture in `transformers`: bert, electra, .."""
        return str(self.transformers.get("model_type"))


AnyConfig = EncoderConfig | TransformersConfig


def check_row(config: AnyConfig, length: int, *, is_limited: bool, has_boundaries: bool) -> None:
    """ModelError for a row that is too long for an encoder whose positions are limited, or lacks its boundaries."""
    if is_limited and length > config.max_position_embeddings:
        raise ModelError(
            "a row of {length} pieces is longer than the {max_position_embeddings} positions of this "
            "encoder: lower max_length",
            length=length,
            max_position_embeddings=config.max_position_embeddings,
        )
    if isinstance(config, EncoderConfig) and config.boundary_embedding and not has_boundaries:
        raise ModelError("this encoder embeds boundaries, but the batch has none: pass boundaries=(B, T)")


def parse_config(values: object) -> AnyConfig:
    """Parses the config of either kind of encoder. ModelError, in one line, if it is invalid."""
    if isinstance(values, Mapping) and values.get("architecture") == "transformers":
        return TransformersConfig.parse(values)
    return EncoderConfig.parse(values)
