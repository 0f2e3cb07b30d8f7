"""Packed model folders: large matrices in 8 bits, the rest in 16, and no copy of tensors that a base folder holds.

A packed folder is read like any other (storage.load_model); in memory its weights are float32.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from korbert.errors import ModelError
from korbert.folders import base_folder, model_folder
from korbert.modeling.files.storage import SCALE, load_model, read_config, write_files
from korbert.system import new_folder

_LARGE = 1 << 16  # matrices of at least this many numbers are stored in 8 bits
_NARROW = 16  # columns; a narrower matrix has a scale per column: scales per row would be as large as its numbers


def pack_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Converts tensors to float16, and large matrices to int8 with float32 scales: per row, or per column if narrow.

    Integers stay as they are. The largest magnitude of a row (of a column) becomes 127, so the error of a number is at
    most 1/254 of it. The scales of columns are (1, C), those of rows (R,).
    """
    small = {
        name: tensor.to(torch.float16) if tensor.is_floating_point() else tensor for name, tensor in tensors.items()
    }
    for name, tensor in tensors.items():
        if tensor.ndim == 2 and tensor.numel() >= _LARGE:
            narrow = tensor.shape[1] < _NARROW
            largest = tensor.abs().amax(dim=0 if narrow else 1, keepdim=True)
            scale = (largest / 127).clamp(min=torch.finfo(torch.float32).tiny)
            numbers = (tensor / scale).round().to(torch.int8)
            small |= {name: numbers, name + SCALE: scale if narrow else scale[:, 0]}
    return small


def pack(source: str | Path, folder: str | Path, base: str | Path | None = None) -> int:
    """Packs the model in `source` into a new `folder`. Returns its size in bytes.

    base: a packed folder next to `folder`, or the name of a bundled model; the tokenizer and tensors that are equal in
    both are stored only there. SettingsError for a folder that holds anything or lies in the source. ModelError if the
    base lies elsewhere, is not packed, or has another tokenizer, and for a weight that float16 cannot hold.
    """
    source = model_folder(source)
    folder = Path(folder)
    with new_folder(folder, source) as staging:
        model, tokenizer = load_model(source)
        config = read_config(source)
        tensors = pack_tensors(model.state_dict())
        for name, tensor in tensors.items():
            if not torch.isfinite(tensor.float()).all():
                raise ModelError(
                    "{source}: {name} has numbers beyond 65,504, the float16 maximum: use the model unpacked",
                    source=source,
                    name=name,
                )
        if base is not None:
            base = model_folder(base)
            base_config = read_config(base)
            is_known = os.path.realpath(base_folder(folder, base.name)) == os.path.realpath(base)
            if not is_known or "packed" not in base_config or base_config["packed"]["base"]:
                raise ModelError(
                    "{base}: a base must be a packed folder without a base of its own, next to {folder}, or the name "
                    "of a bundled model",
                    base=base,
                    folder=folder,
                )
            if base_config["tokenizer_digest"] != config["tokenizer_digest"]:
                raise ModelError(
                    "{base}: has another tokenizer than {source}: pack without this base", base=base, source=source
                )
            # Tensors that equal those of the base are left out; a matrix in 8 bits goes with its scale.
            base_tensors = safetensors.torch.load_file(base / "model.safetensors")
            shared = {
                name for name in tensors.keys() & base_tensors.keys() if torch.equal(tensors[name], base_tensors[name])
            }
            shared -= {name for name in shared if name + SCALE in tensors and name + SCALE not in shared}
            shared -= {name for name in shared if name.endswith(SCALE) and name.removesuffix(SCALE) not in shared}
            unshared = {name: tensor for name, tensor in tensors.items() if name not in shared}
            record = {"base": base.name, "base_sha256": base_config["weights_sha256"]}
            write_files(staging, config | {"packed": record}, unshared)
        else:
            tokenizer.save(staging / "tokenizer")
            write_files(staging, config | {"packed": {"base": None}}, tensors)
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
