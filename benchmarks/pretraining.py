"""A pretraining step against `transformers` BertForPreTraining as it is: the same rows, the same threads, in turn.

    python benchmarks/pretraining.py                            4 layers x 256, 102,400 entries, 32 rows x 128
    python benchmarks/pretraining.py --shards artifacts/small/shard/train   and how long making rows takes

Theirs scores every piece over the whole vocabulary and takes PyTorch's default AdamW; ours is the step that `fit`
makes. Both are run in turn, in rounds of at least --seconds each; what counts is the median over the rounds of
ours / theirs in pieces a second. Rows are full, so that nothing is gained here from grouping rows of like lengths.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertForPreTraining

from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.pretraining import MaskingSettings, PairSettings, PretrainingRows, SpecialIds, pretraining_loss
from korbert.pretraining.batches import located
from korbert.training import OptimizerSettings, choose_device
from korbert.training.devices import choose_precision, memory_kept
from korbert.training.distributed import World
from korbert.training.plan import TrainingPlan
from korbert.training.updates import Updates

IDS = SpecialIds(pad=0, cls=2, sep=3, mask=4, first_piece=384, vocab_size=102_400)


def full_rows(options: argparse.Namespace) -> dict[str, Tensor]:
    """Random pieces, 15 % of them with a label, no padding."""
    generator = torch.Generator().manual_seed(0)
    shape = (options.rows, options.length)
    ids = torch.randint(IDS.first_piece, options.vocabulary, shape, generator=generator)
    chosen = torch.rand(shape, generator=generator) < 0.15
    return {
        "input_ids": ids.masked_fill(chosen, IDS.mask),
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": (torch.arange(options.length) >= options.length // 2).long().expand(shape),
        "boundaries": torch.ones_like(ids),
        "labels": ids.masked_fill(~chosen, -100),
        "next_sentence_label": torch.randint(0, 2, (options.rows,), generator=generator),
    }


def sizes(options: argparse.Namespace) -> dict[str, int]:
    return {
        "vocab_size": options.vocabulary,
        "hidden_size": options.hidden,
        "num_hidden_layers": options.layers,
        "num_attention_heads": max(1, options.hidden // 64),
        "intermediate_size": 4 * options.hidden,
        "max_position_embeddings": 512,
    }


def theirs(options: argparse.Namespace, batch: dict[str, Tensor], device: torch.device) -> Callable[[], None]:
    model = BertForPreTraining(BertConfig.from_dict(sizes(options))).train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    inputs = {name: tensor.to(device) for name, tensor in batch.items() if name != "boundaries"}
    bf16 = choose_precision(device, "auto") == "bf16"

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def ours(
    architecture: str, options: argparse.Namespace, batch: dict[str, Tensor], device: torch.device
) -> Callable[[], None]:
    config = EncoderConfig.model_validate({"architecture": architecture, **sizes(options)})
    plan = TrainingPlan(1_000_000, OptimizerSettings(learning_rate=1e-4), 0, choose_precision(device, "auto"))
    updates = Updates(PretrainingModel(config).to(device), pretraining_loss, plan, device, World())
    done = iter(range(plan.steps))
    places = located(batch["labels"], batch["attention_mask"])
    return lambda: updates.update(next(done), [{**batch, **places}])


def pieces_per_second(step: Callable[[], None], pieces: int, seconds: float, device: torch.device) -> float:
    """Over as many steps as fill `seconds`, behind one that is not counted."""
    step()
    steps = 0
    started = time.perf_counter()
    while steps == 0 or time.perf_counter() - started < seconds:
        step()
        steps += 1
        if device.type == "cuda":
            torch.cuda.synchronize()
    return steps * pieces / (time.perf_counter() - started)


def compare(architecture: str, options: argparse.Namespace, device: torch.device) -> None:
    batch = full_rows(options)
    pieces = batch["input_ids"].numel()
    steps = (ours(architecture, options, batch, device), theirs(options, batch, device))
    rounds = []
    for _ in range(options.pairs):
        with memory_kept(device):  # as in `fit`
            one = pieces_per_second(steps[0], pieces, options.seconds, device)
        rounds.append((one, pieces_per_second(steps[1], pieces, options.seconds, device)))
    for one, other in rounds:
        print(f"{architecture:7} {one:10,.0f} pieces/s   transformers {other:10,.0f}   x {one / other:.2f}")
    print(f"{architecture:7} median ratio {statistics.median(one / other for one, other in rounds):.2f}")


def time_rows(options: argparse.Namespace) -> None:
    """Opening shards and making the rows of a step, in one thread."""
    started = time.perf_counter()
    files = sorted(options.shards.glob("*.arrow"))
    rows = PretrainingRows(files, IDS, options.length, MaskingSettings(), PairSettings(), seed=0)
    opened = time.perf_counter() - started
    steps = max(1, 3_200 // options.rows)
    started = time.perf_counter()
    pieces = sum(int(rows.batch(step, options.rows)[0]["attention_mask"].sum()) for step in range(steps))
    each = (time.perf_counter() - started) / steps
    print(f"rows    {len(rows):,} opened in {opened:.2f} s; {each * 1e3:.1f} ms a step of {pieces / steps:,.0f} pieces")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=102_400)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--shards", type=Path, help="a folder of shards whose rows are timed")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for architecture in ("bert", "modern"):
        compare(architecture, options, choose_device(options.device))
    if options.shards:
        time_rows(options)


if __name__ == "__main__":
    main()
