"""Speed of a pretraining step: against `transformers`, an earlier commit, and the limits of the machine.

    python -m benchmarks.speed.pretraining full                              full rows: 4 layers x 256, 102,400 entries
    python -m benchmarks.speed.pretraining real --shards SHARDS              rows of the shards, 64 of up to 128
    python -m benchmarks.speed.pretraining before --shards SHARDS --checkout FOLDER    the same step of another checkout
    python -m benchmarks.speed.pretraining lengths                           modern with local layers against bert
    python -m benchmarks.speed.pretraining encoder                           share of the speed of a matrix product
    python -m benchmarks.speed.pretraining where                             time of a step of full rows by operation

SHARDS is the folder `shard/train` of a recipe's artifacts. Contenders take turns, each in its own process, in
rounds of at least --seconds each; the score is the median over rounds of ours / theirs in pieces per second, without
padding. `transformers` is an unmodified BertForPreTraining: it scores every piece over the whole vocabulary, pads to
the longest row like run_mlm.py, and uses PyTorch's default AdamW; once with the default memory settings of the C
library, and once with those of `fit`, which avoid page faults for it as well. Ours is the step of `fit`.
"""

import argparse
import itertools
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.pretraining import MaskingSettings, PairSettings, PretrainingLoss, PretrainingRows, SpecialIds
from korbert.system.ranks import World
from korbert.training import OptimizerSettings, choose_device
from korbert.training.devices import memory_kept
from korbert.training.updates import Updates

Step = Callable[[], int]
"""Makes a step; returns its pieces."""

IDS = SpecialIds(cls=2, sep=3, mask=4, first_piece=384, vocab_size=102_400)
AS_IT_IS = "transformers"
STEPS_AHEAD = 12  # batches made before the clock starts, and taken in turn


def sizes(options: argparse.Namespace) -> dict[str, int]:
    return {
        "vocab_size": options.vocabulary,
        "hidden_size": options.hidden,
        "num_hidden_layers": options.layers,
        "num_attention_heads": max(1, options.hidden // 64),
        "intermediate_size": 4 * options.hidden,
        "max_position_embeddings": max(512, options.length),
    }


def encoder(options: argparse.Namespace, architecture: str, **others: Any) -> EncoderConfig:
    """Encoder settings. GeGLU has two halves, so two thirds of the width make both architectures the same size."""
    width_entries = {"intermediate_size": 8 * options.hidden // 3} if architecture == "modern" else {}
    return EncoderConfig.model_validate({"architecture": architecture, **sizes(options), **width_entries, **others})


def full_rows(options: argparse.Namespace, folder: Path) -> list[Path]:
    """Writes a shard of random documents that make one full row each. Entries follow Zipf's law."""
    path = folder / "rows.arrow"
    if path.exists():
        return [path]
    rng = np.random.default_rng(0)
    number, room = STEPS_AHEAD * options.rows, options.length - 3
    ids = IDS.first_piece + rng.zipf(1.1, size=4 * number * room) % (options.vocabulary - IDS.first_piece)
    boundaries = np.ones(room, dtype=np.uint8)
    boundaries[[0, room // 2]] = 3
    table = pa.table(
        {
            "source": ["made up"] * number,
            "input_ids": pa.array(
                ids[: number * room].astype(np.int32).reshape(number, room).tolist(), pa.list_(pa.int32())
            ),
            "boundaries": pa.array([boundaries.tolist()] * number, pa.list_(pa.uint8())),
        }
    )
    with pa.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table)
    return [path]


def rows_of(options: argparse.Namespace, folder: Path, head: str) -> PretrainingRows:
    """Rows of --shards, or full rows of random shards written to the folder."""
    files = sorted(options.shards.glob("*.arrow")) if options.shards else full_rows(options, folder)
    sampling: dict[str, Any] = {}
    if "sampled" in head:
        from korbert.pretraining.objectives.vocabulary import Negatives  # the checkout before has none

        sampling["negatives"] = Negatives(counts_of(files, options.vocabulary), options.negatives)
    return PretrainingRows(files, IDS, options.length, MaskingSettings(), PairSettings(), seed=0, **sampling)


def counts_of(files: list[Path], entries: int) -> np.ndarray:
    counts = np.zeros(entries, dtype=np.int64)
    for file in files:
        with pa.ipc.open_stream(str(file)) as stream:
            for batch in stream:
                counts += np.bincount(batch.column("input_ids").flatten().to_numpy(), minlength=entries)
    return counts


def updates_of(model: PretrainingModel, precision: str, device: torch.device, *, compiled: bool = False) -> Updates:
    try:
        from korbert.training.plan import TrainingPlan
    except ImportError:  # commits up to 3973bc7
        from korbert.training.updates import Plan as TrainingPlan

        plan = TrainingPlan(1_000_000, OptimizerSettings(learning_rate=1e-4), 0, precision, 10, 0)
    else:
        plan = TrainingPlan(1_000_000, OptimizerSettings(learning_rate=1e-4), 0, precision)
    if compiled:
        model.encoder.compile_layers()
    loss = PretrainingLoss(compiled=True) if compiled else PretrainingLoss()
    return Updates(model.to(device), loss, plan, device, World())


def ours(options: argparse.Namespace, precision: str, folder: Path, config: EncoderConfig, head: str = "full") -> Step:
    device = choose_device(options.device)
    updates = updates_of(PretrainingModel(config), precision, device)
    rows = rows_of(options, folder, head)
    batches = [rows.batch(step, options.rows) for step in range(STEPS_AHEAD)]
    steps = iter(range(1_000_000))

    def step() -> int:
        number = next(steps)
        before = updates.pieces
        updates.update(number, batches[number % STEPS_AHEAD])
        return updates.pieces - before

    return step


def theirs(options: argparse.Namespace, precision: str, folder: Path) -> Step:
    from transformers import BertConfig, BertForPreTraining

    from korbert.training.devices import to_device

    device = choose_device(options.device)
    model = BertForPreTraining(BertConfig.from_dict(sizes(options))).train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    rows = rows_of(options, folder, "full")
    batches = [to_device(padded(rows.batch(step, options.rows)[0]), device) for step in range(STEPS_AHEAD)]
    steps = iter(range(1_000_000))

    def step() -> int:
        batch = batches[next(steps) % STEPS_AHEAD]
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return int(batch["attention_mask"].sum())

    return step


def padded(batch: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Converts a flat batch for `transformers`, with rows padded to the longest."""
    pad = torch.nn.utils.rnn.pad_sequence
    lengths = list(batch["lengths"])
    labels = torch.full_like(batch["input_ids"], -100)
    labels[batch["label_places"]] = batch["labels"]
    ids, segments = (pad(batch[name].split(lengths), batch_first=True) for name in ("input_ids", "token_type_ids"))
    return {
        "input_ids": ids,
        "token_type_ids": segments,
        "attention_mask": pad([torch.ones(length, dtype=torch.int64) for length in lengths], batch_first=True),
        "labels": pad(labels.split(lengths), batch_first=True, padding_value=-100),
        "next_sentence_label": batch["pair_label"],
    }


def pieces_per_second(step: Step, seconds: float, device: torch.device, *, keep_memory: bool = True) -> float:
    """Speed over enough steps to fill `seconds`, after two warm-up steps. keep_memory: as in `fit`."""
    with memory_kept(device) if keep_memory else nullcontext():
        step()
        step()
        pieces = 0
        started = time.perf_counter()
        while pieces == 0 or time.perf_counter() - started < seconds:
            pieces += step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return pieces / (time.perf_counter() - started)


def in_turn(options: argparse.Namespace, names: Sequence[str], against: Callable[[str], str]) -> None:
    """Runs all in rounds, each in its own process: the speed of each, and its median ratio to `against(name)`."""
    speeds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in list(speeds):
            checkout = options.checkout if name.startswith("before") else Path(__file__).resolve().parents[2]
            # This file, not `-m benchmarks..`: `korbert` is that of the checkout.
            command = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--only", name]
            environment = {**os.environ, "PYTHONPATH": str(checkout)}
            finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, cwd="/")
            if finished.returncode == -signal.SIGKILL:
                print(f"{name:36} is killed: it needs more memory than there is", flush=True)
                del speeds[name]
                continue
            finished.check_returncode()
            speeds[name].append(float(finished.stdout.split()[-1]))
    rows = []
    for name, step_speeds in speeds.items():
        base = speeds.get(against(name), [math.nan] * len(step_speeds))  # killed
        ratio = statistics.median(one / other for one, other in zip(step_speeds, base, strict=True))
        each_round = " ".join(f"{speed:,.0f}" for speed in step_speeds)
        print(
            f"{name:36} {statistics.median(step_speeds):10,.0f} pieces/s   x {ratio:5.2f}   ({each_round})", flush=True
        )
        rows.append([name, f"{statistics.median(step_speeds):,.0f}", f"{ratio:.2f}", each_round])
    keep(options, "Pieces a second", ["step", "pieces a second", "times", "each round"], rows)


def keep(options: argparse.Namespace, title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Records a table. Only here, as another checkout, whose code this file may run with, need not have `record`."""
    if options.record is not None:
        from benchmarks import record

        record.write(options.record, f"pretraining-{options.what}", [record.table(title, columns, rows)])


def against_transformers(options: argparse.Namespace, folder: Path) -> dict[str, Callable[[], Step]]:
    steps: dict[str, Callable[[], Step]] = {}
    for precision in options.precisions:
        for name in (AS_IT_IS, "transformers, memory kept"):
            steps[f"{name} {precision}"] = partial(theirs, options, precision, folder)
        for architecture, (head, others) in itertools.product(("bert", "modern"), heads(options).items()):
            if architecture == "modern" or not others:
                config = encoder(options, architecture, **others)
                steps[f"{architecture} {head} {precision}"] = partial(ours, options, precision, folder, config, head)
    return steps


def heads(options: argparse.Namespace) -> dict[str, dict[str, int]]:
    """Name -> settings of the encoder. "narrow": an embedding of a quarter of the width."""
    slim = {"embedding_size": max(32, options.hidden // 4)}
    return {"full": {}, "sampled": {}, "narrow": slim, "narrow sampled": slim}


def against_checkout(options: argparse.Namespace, folder: Path) -> dict[str, Callable[[], Step]]:
    """Compares with another checkout, on the encoder of recipe `small`."""
    values = {**sizes(options), "intermediate_size": 2 * options.hidden}
    steps: dict[str, Callable[[], Step]] = {}
    for precision in options.precisions:
        for name, others in {"before": {}, **heads(options)}.items():
            if name != "before" and options.only.startswith("before"):
                continue  # the checkout before has none of these settings
            config = EncoderConfig.model_validate({**values, **others})
            steps[f"{name} {precision}"] = partial(ours, options, precision, folder, config, name)
    return steps


def by_length(options: argparse.Namespace, folder: Path) -> dict[str, Callable[[], Step]]:
    """Compares lengths with the sampled head, where the encoder dominates; bert with the paper's dropout, and none."""
    steps: dict[str, Callable[[], Step]] = {}
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    for length, precision in itertools.product((512, 2_048), options.precisions):
        changes = {"shards": None, "length": length, "rows": max(1, 4_096 // length)}
        length_options = argparse.Namespace(**{**vars(options), **changes})
        for name, architecture, others in (
            ("bert", "bert", {}),
            ("bert without dropout", "bert", no_dropout),
            ("modern", "modern", {}),
        ):
            config = encoder(length_options, architecture, **others)
            steps[f"{name} {length} {precision}"] = partial(ours, length_options, precision, folder, config, "sampled")
    return steps


def share_of_products(options: argparse.Namespace) -> None:
    """FLOP/s of the encoder's forward and backward pass, divided by those of a single matrix product."""
    from korbert.modeling.counting import flops_per_piece
    from korbert.modeling.rows import Rows

    device = choose_device(options.device)
    table_rows: list[list[str]] = []
    for precision in options.precisions:
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        config = encoder(options, "modern")
        model = PretrainingModel(config).train().to(device).encoder
        rows = Rows([options.length] * options.rows, device)
        ids = torch.randint(IDS.first_piece, options.vocabulary, (rows.pieces,), device=device)
        left, right = (torch.randn(2_048, 2_048, dtype=kind, device=device) for _ in range(2))
        work = flops_per_piece(config, length=options.length, label_share=1, scored=0)
        operations = rows.pieces * work["encoder"]

        def products(left: torch.Tensor = left, right: torch.Tensor = right) -> float:
            started = time.perf_counter()
            for _ in range(8):
                left @ right
            return 8 * 2 * 2_048**3 / (time.perf_counter() - started)

        def passes(model: Any = model, ids: torch.Tensor = ids, rows: Rows = rows, kind: torch.dtype = kind) -> None:
            with torch.autocast(device.type, torch.bfloat16, enabled=kind == torch.bfloat16):
                hidden = model.forward_flat(ids, rows)
            hidden.float().square().mean().backward()

        shares = []
        with memory_kept(device):
            for number in range(options.rounds + 1):
                speed = products()
                started = time.perf_counter()
                passes()
                rate = operations / (time.perf_counter() - started)
                if number:
                    shares.append(rate / speed)
                    print(f"{precision}: product {speed / 1e9:6.0f} GFLOP/s, encoder {rate / 1e9:6.0f}, ", end="")
                    print(f"{rate / speed:.0%}")
        print(f"{precision}: median share {statistics.median(shares):.1%}", flush=True)
        table_rows.append([precision, f"{statistics.median(shares):.1%}"])
    keep(options, "Share of the machine's matrix product", ["precision", "share"], table_rows)


PARTS = {
    "products": ("mm", "addmm", "linear"),
    "attention: scores, mix, softmax": ("bmm", "_softmax", "_softmax_backward_data", "masked_fill_"),
    "optimizer: update, norm, clipping": ("_fused_adamw_", "linalg_vector_norm", "mul_"),
    "gradients begun with zeros": ("fill_", "zero_"),
    "copies and casts": ("copy_", "cat", "index_select", "index_copy_"),
    "GELU": ("gelu", "gelu_backward"),
    "norms": ("native_layer_norm", "native_layer_norm_backward"),
    "softmax over the vocabulary": ("_log_softmax", "exp_"),
}


def where_time_goes(options: argparse.Namespace, folder: Path) -> None:
    """Shares of CPU time in the steps of `modern`, by the PyTorch profiler."""
    device = choose_device(options.device)
    rows: list[list[str]] = []
    for precision, head in itertools.product(options.precisions, ("full", "sampled")):
        step = ours(options, precision, folder, encoder(options, "modern"), head)
        with memory_kept(device):
            for _ in range(6):
                step()
            with torch.profiler.profile() as profile:
                for _ in range(6):
                    step()
        cpu_times = {event.key.removeprefix("aten::"): event.self_cpu_time_total for event in profile.key_averages()}
        total = sum(cpu_times.values())
        shares = {part: sum(cpu_times.get(name, 0) for name in names) / total for part, names in PARTS.items()}
        print(f"{head} head, {precision}: {total / 6e6:.3f} s a step")
        for part, share in sorted({**shares, "all else": 1 - sum(shares.values())}.items(), key=lambda one: -one[1]):
            print(f"  {part:36} {share:6.1%}")
            rows.append([f"{head}, {precision}", part, f"{share:.1%}"])
    keep(options, "Time of a step by operation, share of CPU time", ["step", "part", "share"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["full", "real", "before", "lengths", "encoder", "where"])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=102_400)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--negatives", type=int, default=4_096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--shards", type=Path)
    parser.add_argument("--checkout", type=Path)
    parser.add_argument("--only", default="", help="one of what is compared: its pieces a second")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep the figures there, as benchmarks/results")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.rows = options.rows or (64 if options.what in ("real", "before") else 32)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.what == "encoder":
            share_of_products(options)
            return
        if options.what == "where":
            where_time_goes(options, folder)
            return
        steps, against = {
            "full": (against_transformers, AS_IT_IS + " {precision}"),
            "real": (against_transformers, AS_IT_IS + " {precision}"),
            "before": (against_checkout, "before {precision}"),
            "lengths": (by_length, "bert {length} {precision}"),
        }[options.what]
        built = steps(options, folder)
        if options.only:
            step, device = built[options.only](), choose_device(options.device)
            keep_memory = not options.only.startswith(f"{AS_IT_IS} ")
            print(pieces_per_second(step, options.seconds, device, keep_memory=keep_memory))
        else:
            in_turn(
                options, list(built), lambda name: against.format(length=name.split()[-2], precision=name.split()[-1])
            )


if __name__ == "__main__":
    main()
