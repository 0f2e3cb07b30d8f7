"""Parameters, operations and memory of a pretraining model, counted by PyTorch on the model itself."""

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from korbert.modeling.config import EncoderConfig
from korbert.modeling.encoder import Encoder
from korbert.modeling.kernels import CPU_ATTENTION
from korbert.modeling.models import PretrainingModel
from korbert.modeling.rows import Rows


def parameters(config: EncoderConfig) -> dict[str, int]:
    """Parameters of a PretrainingModel by part; tied ones count once."""
    with torch.device("meta"):
        model = PretrainingModel(config)
    modules = {
        "encoder": model.encoder,
        "pooler": model.nsp.pooler,
        "MLM transform": model.mlm.transform,
        "NSP classifier": model.nsp.classifier,
    }
    parts = {name: sum(weight.numel() for weight in module.parameters()) for name, module in modules.items()}
    embedding = model.encoder.token_weight.numel()
    parts["encoder"] -= embedding
    return {"token embedding": embedding, **parts, "MLM bias": model.mlm.bias.numel()}


def flops_per_piece(config: EncoderConfig, *, length: float, label_share: float, scored: int) -> dict[str, float]:
    """Operations per piece of a forward and a backward pass, by part: a multiply-add is two, backward twice forward.

    length: pieces per row. label_share: share of pieces that are predicted. scored: vocabulary entries that each
    prediction is scored against. The optimizer is left out.
    """
    width = config.hidden_size
    forward, _ = count_operations(config, round(length), min(1.0, label_share + 1 / length))
    heads = label_share * 2 * config.embedding_width * (width + scored) + 2 * (width * width + 2 * width) / length
    return {"encoder": 3 * forward, "heads": 3 * heads}


def count_operations(config: EncoderConfig, length: int, wanted_share: float = 1.0) -> tuple[float, float]:
    """Operations per piece of a row's forward pass, and the numbers per piece that it keeps for the backward pass.

    wanted_share: share of pieces that the last layer computes. The encoder runs without values (on "meta").
    """
    with torch.device("meta") as device:
        encoder = Encoder(config).train()
        weights = {StorageWeakRef(weight.untyped_storage()) for weight in encoder.parameters()}  # type: ignore[no-untyped-call]
        # By storage, how many numbers it holds: a tensor that several products need counts once.
        saved_sizes: dict[StorageWeakRef, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            storage = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
            if storage not in weights:
                saved_sizes[storage] = tensor.untyped_storage().nbytes() // 4
            return tensor

        def attention(query: object, key: object, value: object, *_: object, **__: object) -> int:
            return sdpa_flop_count(query, key, value)  # type: ignore[no-untyped-call]

        ids = torch.zeros(length, dtype=torch.int64)
        positions = torch.arange(max(1, round(length * wanted_share)))
        # By itself, the counter knows only GPU attention.
        flop_formulas = {CPU_ATTENTION: attention} if CPU_ATTENTION else {}
        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            FlopCounterMode(display=False, custom_mapping=flop_formulas) as counter,
        ):
            encoder.forward_flat(ids, Rows([length], device), ids, ids, wanted=positions)
    return counter.get_total_flops() / length, sum(saved_sizes.values()) / length
