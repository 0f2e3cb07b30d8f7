"""Encoders of the shapes of published Korean ones next to ours: size, and texts a second on this machine's cores.

    python -m benchmarks.speed.peers [--rounds 3] [--record FOLDER]

The others have random weights, as none is at hand; speed does not depend on them. Each reads the same number of texts
of PIECES pieces, in batches of 64, fp32, in turn. A text has another number of pieces in each vocabulary, which this
leaves out, as it does the work of the tokenizers.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from transformers import BertConfig, BertModel, ElectraConfig, ElectraModel, RobertaConfig, RobertaModel

import korbert
from benchmarks import record

PIECES = 32
BATCH = 64
BATCHES = 4
_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3_072}
_MADE: dict[str, Callable[[], Any]] = {  # sizes: config.json of each model's page
    "KoELECTRA small v3": lambda: ElectraModel(
        ElectraConfig(
            vocab_size=35_000, embedding_size=128, hidden_size=256, num_hidden_layers=12, num_attention_heads=4,
            intermediate_size=1_024,
        )
    ),
    "KoELECTRA base v3": lambda: ElectraModel(ElectraConfig(vocab_size=35_000, embedding_size=768, **_BASE)),
    "KcBERT base": lambda: BertModel(BertConfig(vocab_size=30_000, max_position_embeddings=300, **_BASE)),
    "KLUE RoBERTa small": lambda: RobertaModel(
        RobertaConfig(vocab_size=32_000, max_position_embeddings=514, **{**_BASE, "num_hidden_layers": 6})
    ),
    "KLUE RoBERTa base": lambda: RobertaModel(RobertaConfig(vocab_size=32_000, max_position_embeddings=514, **_BASE)),
    "multilingual-e5-small": lambda: BertModel(
        BertConfig(
            vocab_size=250_037, hidden_size=384, num_hidden_layers=12, num_attention_heads=12, intermediate_size=1_536
        )
    ),
}  # fmt: skip


def seconds_of(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(BATCHES):
        run()
    return time.perf_counter() - began


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    record.add_option(parser)
    arguments = parser.parse_args()
    ids = torch.randint(1_000, 29_000, (BATCH, PIECES), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    encoders: dict[str, Any] = {"korbert-mini": korbert.load("korbert-mini", "cpu").network.encoder}
    encoders |= {name: make() for name, make in _MADE.items()}
    runs = {name: partial(model.eval(), ids, attention_mask=mask) for name, model in encoders.items()}
    runs["korbert-mini"] = partial(runs["korbert-mini"], boundaries=mask)
    seconds_of_encoder: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(arguments.rounds + 1):
        for name, run in runs.items():
            seconds = seconds_of(run)
            if number:  # the first one warms up
                seconds_of_encoder[name].append(seconds)
    columns = ["encoder", "parameters, million", "MB in fp32", "texts a second", "times korbert-mini"]
    base = statistics.median(seconds_of_encoder["korbert-mini"])
    rows = []
    for name, model in encoders.items():
        count = sum(parameter.numel() for parameter in model.parameters())
        median = statistics.median(seconds_of_encoder[name])
        speed = f"{BATCH * BATCHES / median:.0f}"
        rows.append([name, f"{count / 1e6:.1f}", f"{4 * count / 1e6:.0f}", speed, f"{base / median:.2f}"])
        print(f"| {' | '.join(rows[-1])} |", flush=True)
    record.write(arguments.record, "peers", [record.table(f"Encoders of {PIECES} pieces a text", columns, rows)])


if __name__ == "__main__":
    main()
