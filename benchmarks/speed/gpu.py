"""All that needs a GPU, in one command of under ten minutes: the tests marked `gpu`, and speeds.

    python -m benchmarks.speed.gpu --output gpu.json     on a machine with a GPU
    python -m benchmarks.speed.gpu --dry                 the same parts on a processor, tiny, which shows that they run

A part that fails is reported with its error, and the others go on; the exit status is 1 then. Speeds are medians of
steps after a warm-up. The share of the peak is the arithmetic that `korbert.modeling.counting` counts for a step,
over the rate of a product of 8,192 x 8,192 matrices in bf16, measured first.
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks import record
from benchmarks.speed.pretraining import IDS, counts_of, encoder, full_rows, updates_of
from korbert.modeling import PretrainingModel
from korbert.modeling.attention import attend
from korbert.modeling.counting import flops_per_piece
from korbert.modeling.rows import Rows
from korbert.pretraining import MaskingSettings, PairSettings, Phase, PretrainingRows, in_phases
from korbert.pretraining.objectives.vocabulary import Negatives
from korbert.training.feeding import prefetch_batches

Figures = dict[str, Any]
NEGATIVES = 8_192
RATE = 0.15  # of masking
STEPS = (  # name, head, width, whether it is compiled
    ("sampled", "sampled", 768, False),
    ("compiled", "sampled", 768, True),
    ("full", "full", 768, False),
    ("small", "sampled", 512, False),
    ("small_compiled", "sampled", 512, True),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="tiny sizes, on a processor if there is no GPU")
    parser.add_argument("--output", type=Path, help="file for the figures, as JSON")
    parser.add_argument("--only", choices=PARTS, action="append", help="parts to run (default: all)")
    parser.add_argument("--steps", type=int, default=20, help="timed steps a measurement")
    record.add_option(parser)
    options = parser.parse_args()
    if not (options.dry or torch.cuda.is_available()):
        parser.error("PyTorch sees no GPU here: give --dry to try the parts on a processor")
    options.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options.steps = 3 if options.dry else options.steps
    is_gpu = options.device.type == "cuda"
    results: Figures = {
        "device": torch.cuda.get_device_name() if is_gpu else platform.processor() or platform.machine(),
        "devices": torch.cuda.device_count(),
        "torch": torch.__version__,
        "dry": options.dry,
    }
    print(", ".join(f"{name} {value}" for name, value in results.items()), flush=True)
    failed = False
    for name in options.only or PARTS:
        started = time.perf_counter()
        try:
            figures = PARTS[name](options)
        except Exception as error:  # the other parts still have something to say
            traceback.print_exc()
            figures, failed = {"error": f"{type(error).__name__}: {error}"}, True
        results[name] = figures | {"seconds": round(time.perf_counter() - started, 1)}
        failed |= bool(figures.get("failed"))
        print(f"{name:10} " + ", ".join(f"{key} {value}" for key, value in results[name].items()), flush=True)
        if options.output:
            options.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    rows = [
        [part, name, value]
        for part, figures in results.items()
        if isinstance(figures, dict)
        for name, value in figures.items()
    ]
    facts = [f"{name}: {value}" for name, value in results.items() if not isinstance(value, dict)]
    table = record.table("Figures by part", ["part", "what", "figure"], rows)
    record.write(options.record, "gpu", [table], facts)
    return int(failed)


def tests(options: argparse.Namespace) -> Figures:
    """The tests marked `gpu`. Without a GPU they skip themselves.

    not_collected: test modules that cannot be imported, for instance without a package of the extra `dev`. They are
    printed, and are no failure as long as other tests run.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/korbert", "-p", "no:cacheprovider"]
    command.append("--continue-on-collection-errors")
    finished = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True)
    summary = (finished.stdout.strip().splitlines() or [finished.stderr.strip()[-200:]])[-1].strip("= ")
    if finished.returncode:
        print(finished.stdout[-6_000:], finished.stderr[-2_000:], flush=True)
    not_collected = finished.stdout.count("ERROR collecting ")  # each is also one of the errors of the last line
    failures = sum(int(number) for number in re.findall(r"(\d+) (?:failed|error)", summary)) - not_collected
    failed = failures > 0 or finished.returncode > 1 or not re.search("passed|skipped", summary)
    return {"result": summary, "not_collected": not_collected, "failed": failed}


def ceiling(options: argparse.Namespace) -> Figures:
    """TFLOP/s of a large matrix product in bf16, and TB/s of a copy, bytes read and written both counted."""
    source = torch.empty((1 << 20) if options.dry else (1 << 30), dtype=torch.uint8, device=options.device)
    target = torch.empty_like(source)
    copied = seconds_of(lambda: target.copy_(source), options)
    rate = round(matrix_rate(options) / 1e12, 2)
    return {"tflops": rate, "tb_per_second": round(2 * len(source) / copied / 1e12, 3)}


def matrix_rate(options: argparse.Namespace) -> float:
    """FLOP/s of a product of two large matrices in bf16."""
    size = 256 if options.dry else 8_192
    left, right = (torch.randn(size, size, device=options.device, dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / seconds_of(lambda: left @ right, options)


def step(options: argparse.Namespace) -> Figures:
    """A step on full rows of 512, modern: base (12 x 768) with the sampled head, the same compiled, and with the full
    head; small (12 x 512), as it is and compiled.
    """
    peak = matrix_rate(options)
    figures: Figures = {}
    for name, head, width, compiled in STEPS:
        rows, config = training(options, head, width)
        batches = [rows.batch(number, options.rows) for number in range(4)]
        model = PretrainingModel(config)
        updates = updates_of(model, options.precision, options.device, compiled=compiled)
        numbers = iter(range(1_000_000))

        def update(batches: list[Any] = batches, updates: Any = updates, numbers: Any = numbers) -> None:
            number = next(numbers)
            updates.update(number, batches[number % len(batches)])

        seconds = seconds_of(update, options)
        pieces = statistics.mean(batch["pieces"] for micro in batches for batch in micro)
        work = flops_per_piece(
            config, length=options.length, label_share=RATE, scored=config.vocab_size if head == "full" else NEGATIVES
        )
        rate = sum(work.values()) * pieces / seconds
        figures |= {
            f"{name}_pieces_per_second": round(pieces / seconds),
            f"{name}_tflops": round(rate / 1e12, 2),
            f"{name}_share_of_peak": round(rate / peak, 3),
        }
    if options.device.type == "cuda":
        figures["memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)
    return figures


def waiting(options: argparse.Namespace) -> Figures:
    """Share of the time that steps wait for their rows, by the number of processes that make them."""
    figures: Figures = {}
    for workers in (0, 1) if options.dry else (0, 2, 4, 8):
        rows, config = training(options, "sampled")
        first = 2 + 2 * workers  # before it, steps wait for processes to start, each for its own
        steps = first + options.steps
        batches = in_phases([Phase(rows, steps, options.rows)])
        updates = updates_of(PretrainingModel(config), options.precision, options.device)
        waited = pieces = 0.0
        with prefetch_batches(batches, range(steps), workers=workers, pin=options.device.type == "cuda") as walk:
            for number, micro_batches, seconds in walk:
                if number == first:
                    synchronize(options)
                    started = time.perf_counter()
                if number >= first:
                    waited += seconds
                    pieces += sum(batch["pieces"] for batch in micro_batches)
                updates.update(number, micro_batches)
            synchronize(options)
        took = time.perf_counter() - started
        figures |= {f"waited_{workers}": round(waited / took, 3), f"pieces_per_second_{workers}": round(pieces / took)}
    return figures


def attention(options: argparse.Namespace) -> Figures:
    """Forward and backward of an attention layer over rows of mixed lengths, as they are and padded to the longest."""
    rng = np.random.default_rng(0)
    count, longest, heads, size = (4, 64, 2, 32) if options.dry else (128, 512, 12, 64)
    lengths = sorted(int(length) for length in rng.integers(longest // 16, longest + 1, size=count))
    rows = Rows(lengths, options.device)
    flat = torch.randn(rows.pieces, 3, heads, size, device=options.device, dtype=torch.bfloat16, requires_grad=True)
    dense = torch.randn(count, 3, heads, longest, size, device=options.device, dtype=torch.bfloat16, requires_grad=True)
    mask = (torch.arange(longest, device=options.device) < torch.tensor(lengths, device=options.device)[:, None])[
        :, None, None
    ]
    is_gpu = options.device.type == "cuda"  # elsewhere `attend` groups rows into blocks
    varlen = seconds_of(lambda: attend(flat, rows).float().sum().backward(), options)
    padded = seconds_of(
        lambda: F.scaled_dot_product_attention(*dense.unbind(1), attn_mask=mask).float().sum().backward(), options
    )
    return {
        "varlen_ms" if is_gpu else "blocks_ms": round(1e3 * varlen, 3),
        "padded_ms": round(1e3 * padded, 3),
        "times": round(padded / varlen, 2),
        "padding": round(1 - rows.pieces / (count * longest), 3),
    }


def processes(options: argparse.Namespace) -> Figures:
    """Runs the recipe `demo` to `pretrain` under torchrun, one process per device; skipped with fewer than two."""
    count = torch.cuda.device_count()
    if count < 2:
        return {"skipped": f"{count} device{'s' * (count != 1)}"}
    command = ["torchrun", f"--nproc-per-node={count}", "-m", "korbert", "run", "demo", "--to", "pretrain"]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        finished = subprocess.run([*command, "--root", folder], capture_output=True, text=True)
        return {
            "devices": count,
            "demo_seconds": round(time.perf_counter() - started, 1),
            "failed": finished.returncode != 0,
        }


def models(options: argparse.Namespace) -> Figures:
    """Texts a second of `embed` and `predict` with the models of the box, Kiwi included, in one process."""
    import korbert

    texts = [
        f"{number}번 영화는 생각보다 훨씬 재미있었고 배우들의 연기도 참 좋았다."
        for number in range(8 if options.dry else 4_000)
    ]
    figures: Figures = {}
    for name, model in {"embed": "korbert-mini", "predict": "korbert-mini-nsmc"}.items():
        loaded = korbert.load(model, device=options.device.type)
        work = loaded.embed if name == "embed" else loaded.predict
        work(texts[:32])
        started = time.perf_counter()
        work(texts)
        figures[f"{name}_texts_per_second"] = round(len(texts) / (time.perf_counter() - started))
    return figures


def training(options: argparse.Namespace, head: str, width: int = 768) -> tuple[PretrainingRows, Any]:
    """Full rows of made-up text, and the encoder that reads them."""
    large = {"hidden": width, "layers": 12, "length": 512, "rows": 64}
    small = {"hidden": 64, "layers": 2, "length": 32, "rows": 4}
    vars(options).update(small if options.dry else large, vocabulary=IDS.vocab_size)
    options.precision = "bf16" if options.device.type == "cuda" else "fp32"
    folder = Path(tempfile.gettempdir()) / f"korbert-gpu-{options.length}-{options.rows}"
    folder.mkdir(exist_ok=True)
    files = full_rows(options, folder)
    negatives = Negatives(counts_of(files, options.vocabulary), NEGATIVES) if head == "sampled" else None
    masking = MaskingSettings(rate=RATE)
    rows = PretrainingRows(files, IDS, options.length, masking, PairSettings(), seed=0, negatives=negatives)
    return rows, encoder(options, "modern")


def seconds_of(work: Callable[[], Any], options: argparse.Namespace) -> float:
    """Median time of a call, in seconds, its work on the device included."""
    for _ in range(3):
        work()
    synchronize(options)
    times = []
    for _ in range(options.steps):
        started = time.perf_counter()
        work()
        synchronize(options)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def synchronize(options: argparse.Namespace) -> None:
    if options.device.type == "cuda":
        torch.cuda.synchronize()


PARTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "ceiling": ceiling,
    "tests": tests,
    "step": step,
    "waiting": waiting,
    "attention": attention,
    "processes": processes,
    "models": models,
}

if __name__ == "__main__":
    sys.exit(main())
