"""Speed of fine-tuning against the `Trainer` of transformers, and of `korbert predict` against its components.

    python -m benchmarks.speed.finetuning train --model MODEL --rows ratings_train.txt     pieces a second, no padding
    python -m benchmarks.speed.finetuning predict --model TASK --rows ratings_train.txt    share of the possible speed
    python -m benchmarks.speed.finetuning embed --model TASK --rows ratings_train.txt      the same
    python -m benchmarks.speed.finetuning memory --model TASK --rows ratings_train.txt     for N lines, and for 4 N

train: the same classifier, with an encoder of the size of MODEL, is fine-tuned on NSMC texts that were analysed before
the clock starts: by `fit` as in `finetune`, by Trainer with all rows padded to 128, and by Trainer with rows grouped by
length. They take turns, each in its own process, for --seconds each; the score is the median over rounds of ours /
theirs.
predict: lines of the file to JSON lines, as in `korbert predict`, against encoding alone and scoring alone, in turn.
embed: the same for `korbert embed --output FILE.npy`. Both print shares of wall time and of CPU time; on a busy machine
the latter counts. memory: peak memory for --count lines and for four times as many.
TASK is a folder of `korbert finetune`.
"""

import argparse
import gc
import io
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks import record
from korbert.modeling import ClassificationModel, load_model
from korbert.system.ranks import World
from korbert.tasks.finetuning.seen import only_seen_embeddings
from korbert.training import OptimizerSettings, choose_device
from korbert.training.devices import memory_kept
from korbert.training.examples import Batches, Examples
from korbert.training.plan import TrainingPlan
from korbert.training.updates import Updates

WAYS = ("ours", "Trainer padded to 128", "Trainer grouped by length")
BATCH = 32
LENGTH = 128


def texts(path: Path, count: int) -> tuple[list[str], list[int]]:
    """The first rows of an NSMC file: text and label."""
    with path.open(encoding="utf-8") as file:
        next(file)
        rows = [line.rstrip("\n").split("\t") for line, _ in zip(file, range(count), strict=False)]
    return [text for _, text, _ in rows], [int(label) for *_, label in rows]


def examples(options: argparse.Namespace) -> tuple[ClassificationModel, Examples]:
    pretrained, tokenizer = load_model(options.model)
    config = pretrained.config
    model = ClassificationModel(config, 2, generator=torch.Generator().manual_seed(0))
    lines, labels = texts(options.rows, options.count)
    encoded = tokenizer.encode_batch(lines, max_length=LENGTH, workers=os.cpu_count() or 1)
    rows = ((one.input_ids, one.boundaries) for one in encoded)
    return model, Examples.of_rows(rows, labels, tokenizer.pad_id)


def ours(options: argparse.Namespace) -> float:
    """Pieces per second in the updates of `finetune`."""
    from korbert.tasks.kinds.classification import Classification

    loss = Classification(metrics=("accuracy",), max_length=LENGTH, labels=("0", "1")).loss
    model, rows = examples(options)
    device = choose_device(options.device)
    plan = TrainingPlan(1_000_000, OptimizerSettings(learning_rate=1e-4), 0, options.precision)
    batches = Batches(rows, BATCH, seed=0)
    step = 0
    with only_seen_embeddings(model, rows), memory_kept(device):
        updates = Updates(model.train().to(device), loss, plan, device, World())
        for step in range(3):
            updates.update(step, batches(step))
        pieces_before = updates.pieces
        started = time.perf_counter()
        while (seconds := time.perf_counter() - started) < options.seconds:
            step += 1
            updates.update(step, batches(step))
    return (updates.pieces - pieces_before) / seconds


def theirs(options: argparse.Namespace, *, grouped: bool) -> float:
    """Pieces per second of Trainer on the same weights, exported."""
    import transformers
    from transformers import DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments

    from korbert.huggingface import export
    from korbert.modeling import save_model

    transformers.logging.set_verbosity_error()
    model, rows = examples(options)
    _, tokenizer = load_model(options.model)
    with tempfile.TemporaryDirectory() as aside:
        save_model(Path(aside, "model"), model, tokenizer)
        export(Path(aside, "model"), Path(aside, "exported"))
        model_exported = transformers.AutoModelForSequenceClassification.from_pretrained(Path(aside, "exported"))
        tokenizer_exported = transformers.AutoTokenizer.from_pretrained(Path(aside, "exported"), trust_remote_code=True)
        bounds = zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
        ids = [rows.input_ids[first:last].tolist() for first, last in bounds]
        data = [
            {"input_ids": row_ids, "attention_mask": [1] * len(row_ids), "labels": int(label), "length": len(row_ids)}
            for row_ids, label in zip(ids, rows.labels, strict=True)
        ]

        class Timed(TrainerCallback):  # type: ignore[misc]
            started = pieces = 0.0

            def on_step_end(self, arguments: Any, state: Any, control: Any, **rest: Any) -> None:
                if state.global_step == 3:
                    self.started, self.pieces = time.perf_counter(), 0.0
                elif state.global_step > 3 and time.perf_counter() - self.started >= options.seconds:
                    control.should_training_stop = True

        timed = Timed()
        pad = DataCollatorWithPadding(tokenizer_exported, padding=True if grouped else "max_length", max_length=LENGTH)

        def collated(batch: list[dict[str, Any]]) -> Any:
            timed.pieces += sum(row["length"] for row in batch)
            return pad([{key: value for key, value in row.items() if key != "length"} for row in batch])

        arguments = TrainingArguments(
            output_dir=str(Path(aside, "out")),
            per_device_train_batch_size=BATCH,
            max_steps=1_000_000,
            learning_rate=1e-4,
            train_sampling_strategy="group_by_length" if grouped else "random",
            bf16=options.precision == "bf16",
            use_cpu=options.device == "cpu",
            save_strategy="no",
            report_to=[],
            remove_unused_columns=False,
            disable_tqdm=True,
            logging_strategy="no",
        )
        Trainer(model_exported, arguments, train_dataset=data, data_collator=collated, callbacks=[timed]).train()
        return timed.pieces / (time.perf_counter() - timed.started)


def train(options: argparse.Namespace) -> None:
    speeds: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            command = [sys.executable, "-m", "benchmarks.speed.finetuning", *sys.argv[1:], "--only", way]
            finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            speeds[way].append(float(finished.stdout.split()[-1]))
    rows = []
    for way, way_speeds in speeds.items():
        ratio = statistics.median(first / other for first, other in zip(speeds["ours"], way_speeds, strict=True))
        each_round = " ".join(f"{speed:,.0f}" for speed in way_speeds)
        print(
            f"{way:28} {statistics.median(way_speeds):10,.0f} pieces/s   ours x {ratio:5.2f}   ({each_round})",
            flush=True,
        )
        rows.append(
            [
                way,
                f"{statistics.median(way_speeds):,.0f} ({min(way_speeds):,.0f} to {max(way_speeds):,.0f})",
                f"{ratio:.2f}",
            ]
        )
    columns = ["implementation", "pieces per second", "ours x"]
    table = record.table("Pieces a second, padding excluded", columns, rows)
    record.write(options.record, "finetuning-train", [table])


def predict(options: argparse.Namespace) -> None:
    """Seconds of `predict` for --count lines, of Kiwi alone, of the encoder alone."""
    import korbert
    from korbert.pipelines.inference.lines import as_json
    from korbert.pipelines.inference.predicting import predict_lines
    from korbert.tasks.passages import encode_passages

    model = korbert.load(options.model, options.device)
    lines, _ = texts(options.rows, options.count)
    data = "\n".join(lines).encode()

    def whole() -> None:
        with Path(os.devnull).open("wb") as file:
            for results in predict_lines(model, io.BytesIO(data)):
                file.write(b"\n".join(map(as_json, results)))

    def kiwi() -> dict[str, Any]:
        different = list(dict.fromkeys(lines))
        return dict(
            zip(different, encode_passages(model.tokenizer, different, workers=os.cpu_count() or 1), strict=True)
        )

    passages = kiwi()
    prepared = model.kind.prepare(
        [{"text": text} for text in lines], [[passages[text]] for text in lines], model.tokenizer
    )
    device = next(model.network.parameters()).device
    share(options, whole, kiwi, lambda: model.kind.predict(model.network, prepared, device=device))


def embed(options: argparse.Namespace) -> None:
    """Seconds of `embed --output` for --count lines, of Kiwi alone, of the encoder alone."""
    import korbert
    from korbert.pipelines.inference.embedding import TextEmbedder, text_records, write_vectors

    model = korbert.load(options.model, options.device)
    lines, _ = texts(options.rows, options.count)
    data = "\n".join(lines).encode()

    def kiwi() -> Any:
        return model.tokenizer.encode_batch(lines, max_length=model.max_length, workers=os.cpu_count() or 1)

    encodings, settings = kiwi(), model.vector_settings()
    with tempfile.TemporaryDirectory() as folder:

        def whole() -> None:
            rows = itertools.chain.from_iterable(text_records(io.BytesIO(data), "input"))
            write_vectors(
                TextEmbedder(model, {}), rows, Path(folder, "vectors.npy"), lambda row: False, lambda count: None
            )

        share(options, whole, kiwi, lambda: model.pool_encoded(encodings, settings))


def share(options: argparse.Namespace, *parts: Callable[[], object]) -> None:
    """Prints the seconds of the whole, of Kiwi and of the encoder, and the share of the latter two in the whole."""
    gc.freeze()  # what is held here for comparison would be looked at by every collection, and no command holds it
    clocks = {"wall": time.perf_counter, "processor": time.process_time}
    shares: dict[str, list[float]] = {clock: [] for clock in clocks}
    for number in range(options.rounds):
        seconds: dict[str, list[float]] = {clock: [] for clock in clocks}
        for part in parts:
            started = {clock: now() for clock, now in clocks.items()}
            part()
            for clock, now in clocks.items():
                seconds[clock].append(now() - started[clock])
        for clock, (whole, kiwi, encoder) in seconds.items():
            shares[clock].append((kiwi + encoder) / whole)
            summary = f"whole {whole:.2f} s, Kiwi {kiwi:.2f}, encoder {encoder:.2f}: {shares[clock][-1]:.1%}"
            print(f"round {number}, {clock} time: {summary}", flush=True)
    rows = []
    for clock, found in shares.items():
        middle = f"{statistics.median(found):.1%} ({min(found):.1%} to {max(found):.1%})"
        rows.append([options.what, f"{options.count:,}", clock, middle])
        print(f"median share of {clock} time {statistics.median(found):.1%}, {options.count:,} lines", flush=True)
    columns = ["command", "lines", "clock", "share"]
    table = record.table("Time of Kiwi and of the encoder alone, as a share (target 95 %)", columns, rows)
    record.write(options.record, f"finetuning-{options.what}", [table])


def memory(options: argparse.Namespace) -> None:
    """Peak memory of `korbert predict` for --count lines and for four times as many."""
    lines, _ = texts(options.rows, options.count)
    rows = []
    for repeats in (1, 4):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for _ in range(repeats) for text in lines)
            file.flush()
            command = [sys.executable, "-m", "korbert", "predict", str(options.model), file.name]
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            print(f"{repeats * len(lines):,} lines: peak {max(peak, before) / 1024:,.0f} MiB", flush=True)
            rows.append([f"{repeats * len(lines):,}", f"{max(peak, before) / 1024:,.0f} MiB"])
    record.write(
        options.record, "finetuning-memory", [record.table("Peak memory of `predict`", ["lines", "peak"], rows)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "predict", "embed", "memory"))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help=argparse.SUPPRESS)
    record.add_option(parser)
    options = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)
    if options.only:
        speed = ours(options) if options.only == "ours" else theirs(options, grouped="grouped" in options.only)
        print(speed, flush=True)
        return
    {"train": train, "predict": predict, "embed": embed, "memory": memory}[options.what](options)


if __name__ == "__main__":
    main()
