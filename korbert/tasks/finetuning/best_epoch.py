"""Keeps the weights of the best epoch during training, and loads them at the end."""

import logging
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
from safetensors import SafetensorError
from torch import nn

from korbert.errors import ModelError
from korbert.modeling import digest_of
from korbert.system import write_bytes_atomically
from korbert.tasks.finetuning.seen import SeenEmbedding

_logger = logging.getLogger(__name__)

WEIGHTS = "best.safetensors"
_ROWS = ".rows"  # suffix of an embedding's name: the numbers of the rows whose weights are kept


@dataclass(frozen=True)
class Best:
    """The epoch (from 1) with the highest validation score; the earliest among ties."""

    epoch: int
    score: float


def keep_best(work: Path, model: nn.Module, now: Best) -> None:
    """Keeps the weights of `model` in `work` if `now` is better than the kept epoch, or as good and earlier.

    Weights and score are one file, replaced atomically, so they always match after an interruption. A resumed run that
    repeats the end of an epoch finds or writes the same file.
    """
    best = read_best(work)
    # The earlier one of equal epochs, also in a run that repeats the end of an epoch.
    if best and not (now.score, -now.epoch) > (best.score, -best.epoch):
        return
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    for path, module in model.named_modules():
        if isinstance(module, SeenEmbedding):
            weights[f"{path}.weight"] = module.weight.detach().cpu()
            weights[f"{path}{_ROWS}"] = module.seen.cpu()
    record = {
        "epoch": str(now.epoch),
        "score": repr(now.score),
        "sha256": digest_of(repr(now).encode(), weights),
    }
    write_bytes_atomically(work / WEIGHTS, safetensors.torch.save(weights, metadata=record))


def load_best(work: Path, model: nn.Module) -> Best:
    """Loads the weights kept in `work` into `model` and puts it in eval mode. ModelError if there are none.

    Only the trained rows of embeddings are kept: the other rows of `model` have to be as they were before training.
    """
    best = read_best(work)
    if best is None:
        raise ModelError(
            "{work}: is missing or damaged: run the same command again to recreate it", work=work / WEIGHTS
        )
    weights = safetensors.torch.load_file(work / WEIGHTS)
    for name in [name for name in weights if name.endswith(_ROWS)]:
        weight_name = f"{name.removesuffix(_ROWS)}.weight"
        weights[weight_name] = (
            model.state_dict()[weight_name].cpu().index_copy(0, weights.pop(name), weights[weight_name])
        )
    model.load_state_dict(weights)
    model.eval()
    return best


def read_best(work: Path) -> Best | None:
    """Epoch and score kept in `work`; None if there are none, or if the file is damaged, which is logged."""
    path = work / WEIGHTS
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            record = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        best = Best(int(record["epoch"]), float(record["score"]))
        if record["sha256"] != digest_of(repr(best).encode(), weights):
            raise ValueError("was changed since it was written")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        _logger.warning("%s: damaged (%s)", path, error)
        return None
    return best
