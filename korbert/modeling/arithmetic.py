"""Parameter and FLOP counts of pretraining models, from the sizes of our encoders alone. Imports no torch.

Letters: D hidden size, E embedding width, I intermediate size, V vocabulary size, T pieces per row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from korbert.modeling.config import BOUNDARY_LEVELS, EncoderConfig

__all__ = [
    "HEADS",
    "Work",
    "activation_numbers",
    "encoder_parameters",
    "flop_a_piece",
    "head_flop",
    "optimizer_flop",
    "parameters",
    "visible",
]

HEADS = ("MLM transform", "MLM bias", "NSP classifier")
"""Parts of `parameters` that Devlin et al. 2018 leave out of their counts."""

_ADAMW = 16  # operations per parameter: two moments, their ratio, decay and update, and the clipping norm


def parameters(config: EncoderConfig) -> dict[str, int]:
    """Parameters of a PretrainingModel by part. The vocabulary matrix, tied to the embeddings, counts once."""
    bert, layers = config.architecture == "bert", config.distinct_layers
    width, narrow = config.hidden_size, config.embedding_width
    norm = 2 if bert else 1  # parameters per dimension: a weight, and in `bert` a bias
    biases = layers * (5 * width + config.intermediate_size) if bert else 0  # of qkv, output, up and down
    norms = 2 * layers if bert or config.layer_groups else 2 * layers - 1  # an unshared first layer of `modern` has one
    parts = {
        "token embedding": config.vocab_size * narrow,
        "position embedding": config.max_position_embeddings * narrow if bert else 0,
        "token type embedding": config.type_vocab_size * narrow,
        "boundary embedding": BOUNDARY_LEVELS * narrow if config.boundary_embedding else 0,
        "overlap embedding": narrow if config.overlap_embedding else 0,
        "embedding norm": norm * narrow,
        "embedding projection": narrow * width + bert * width if narrow != width else 0,
        "layers": _matrices(config, layers) + biases + norms * norm * width,
        "final norm": 0 if bert else width,
        "pooler": width * width + width,
        "MLM transform": width * narrow + bert * narrow + norm * narrow,
        "MLM bias": config.vocab_size,
        "NSP classifier": 2 * width + 2,
    }
    return {name: count for name, count in parts.items() if count}


def encoder_parameters(parts: Mapping[str, int]) -> int:
    """Parameters of the encoder and its pooler, without heads, as Devlin et al. 2018 count them (3).

    parts: as returned by `parameters`.
    """
    return sum(count for name, count in parts.items() if name not in HEADS)


def visible(config: EncoderConfig, length: float) -> dict[bool, float]:
    """Average number of pieces that a piece attends to, itself included, in a row of `length`. True: global layers.

    A local layer reaches local_attention / 2 pieces to each side, fewer at the ends of a row.
    """
    reach = config.local_attention // 2
    near = length if length <= reach + 1 else 2 * reach + 1 - reach * (reach + 1) / length
    return {True: length, False: min(near, length)}


@dataclass(frozen=True, slots=True)
class Work:
    """Floating point operations per piece; a multiply-add counts as two."""

    forward: float
    backward: float

    @property
    def both(self) -> float:
        return self.forward + self.backward


def flop_a_piece(
    config: EncoderConfig, *, length: float, label_share: float, scored: int, pieces_a_step: float
) -> dict[str, Work]:
    """Operations per piece of a training step, by part. The backward pass of a product costs twice the forward.

    length: pieces per row. label_share: share of pieces that are predicted. scored: vocabulary entries that each
    prediction is scored against, all or the sampled ones. pieces_a_step: pieces per optimizer update.
    After attention, the last layer runs only at predicted pieces and at the first piece of each row.
    Norms, activations and the lookup itself are left out, except in parts that consist of nothing else.
    """
    width, narrow = config.hidden_size, config.embedding_width
    tables = 1 + (config.architecture == "bert") + bool(config.type_vocab_size)
    tables += config.boundary_embedding + config.overlap_embedding
    reached = visible(config, length)
    attended = sum(reached[config.is_global(layer)] for layer in range(config.num_hidden_layers))
    left_out = (1 - min(1.0, label_share + 1 / length)) * (_matrices(config, 1) - 3 * width * width)
    forward = {
        "embedding": tables * narrow + (2 * narrow * width if narrow != width else 0),
        "encoder, linear": 2 * (_matrices(config, config.num_hidden_layers) - left_out),
        "encoder, attention": 2 * 2 * attended * width,  # scores, and the mix of values
    }
    return {
        **{name: Work(count, 2 * count) for name, count in forward.items()},
        **head_flop(width, narrow, length=length, label_share=label_share, scored=scored),
        "optimizer": optimizer_flop(sum(parameters(config).values()), pieces_a_step),
    }


def head_flop(width: int, narrow: int, *, length: float, label_share: float, scored: int) -> dict[str, Work]:
    """The heads' share of flop_a_piece. width, narrow: D and E."""
    forward = {
        "MLM transform": label_share * 2 * width * narrow,
        "vocabulary": label_share * 2 * narrow * scored,
        "NSP": 2 * (width * width + 2 * width) / length,
    }
    return {name: Work(count, 2 * count) for name, count in forward.items()}


def optimizer_flop(parameters: int, pieces_a_step: float) -> Work:
    """The optimizer's share of flop_a_piece, for AdamW."""
    return Work(0, _ADAMW * parameters / pieces_a_step)


def activation_numbers(config: EncoderConfig) -> int:
    """Numbers per piece that the layers keep for the backward pass: an estimate, accurate to about a third.

    A layer keeps its inputs, queries, keys, values (`modern` also before rotation), the attention output, the sums and
    norms around both blocks, and the feed-forward intermediates; with dropout, its outputs too.
    """
    bert = config.architecture == "bert"
    dropped = 2 if config.hidden_dropout_prob or config.attention_probs_dropout_prob else 0
    layer = (9 + dropped if bert else 12) * config.hidden_size + (2 if bert else 4) * config.intermediate_size
    return config.num_hidden_layers * layer + 4 * config.hidden_size


def _matrices(config: EncoderConfig, layers: int) -> int:
    """Entries of the weight matrices of `layers` layers: queries, keys, values, output; up, down; gate in `modern`."""
    feed_forward = (2 if config.architecture == "bert" else 3) * config.intermediate_size
    return layers * config.hidden_size * (4 * config.hidden_size + feed_forward)
