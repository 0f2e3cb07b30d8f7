"""A thousand spoiled model folders, recipes, indexes, labelled files and requests: each is answered or refused.

    python -m benchmarks.damage.mutations --seed 59

Each trial runs in a child of this process, which has imported everything: the mutation is drawn from the seed and the
number of the trial. A fault is a traceback or an error without words of ours, another exit code than 0, 1 and 2, a
message of more than 2,000 characters, a crash, more than 10 s of processor time (or 60 s of any), more than 2 GB, and,
of the service, an answer of 5xx. Faults are printed with what repeats them: `--only KIND NUMBER`.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import korbert
from benchmarks import record
from korbert.errors import KorbertError
from korbert.modeling import EncoderConfig, models, save_model
from korbert.pipelines import cli
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.embedding import Embedding
from korbert.tokenization import analyzer, load_tokenizer
from tests.hostile.mutations import KEYS, ODD_KEYS, ODD_SETTINGS, ODD_TEXTS, dumped, spoiled, spoiled_json

SPOILED = {
    "model": "model folders",
    "recipe": "recipes",
    "index": "indexes",
    "labelled": "labelled files",
    "request": "requests",
}
KINDS = {"model": 250, "recipe": 250, "index": 150, "labelled": 200, "request": 150}
CUT_OFF_SECONDS = 12  # the service cuts off after 10 s what does not arrive
CPU_SECONDS, WALL_SECONDS, MOST_BYTES, MOST_CHARS = 10, 60, 2 << 30, 2_100
ROWS = [("정말 재미있는 영화", "긍정"), ("시간이 아깝다", "부정"), ("또 보고 싶다", "긍정"), ("지루했다", "부정")] * 5
RECIPE = """seed = 3
[[clean.sources]]
name = "texts"
path = "text.jsonl"
[vocab]
size = 8_000
[pretrain]
phases = [{ steps = 1 }]
[pretrain.encoder]
hidden_size = 32
num_hidden_layers = 1
num_attention_heads = 1
intermediate_size = 32
[pretrain.optimizer]
learning_rate = 1e-3
[tasks.mood]
train = "labelled.csv"
epochs = 1
"""
PATHS = ("/v1/embeddings", "/fill", "/predict", "/tokenize", "/attention", "/similar", "/answer", "/v1/models")
WHERE = ("lang = 'ko'", "n > 1", "1) OR (1", "lang = ", "'" * 50, "n IN (1, 2)", "x" * 5_000, "\x00", "lang = '\ud800'")


@dataclass
class Trial:
    """One spoiled thing in a folder of its own, and what to run on it."""

    folder: Path
    rng: random.Random
    what: str = ""
    run: Callable[[], int] = lambda: 0

    def command(self, *arguments: object) -> None:
        self.run = lambda: cli.run_command(list(map(str, arguments)))


def base_of(folder: Path) -> None:
    """The unharmed things: two models, an index, a recipe, labelled files."""
    tokenizer = load_tokenizer(Path(korbert.__file__).parent / "box" / "korbert-mini" / "tokenizer")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = EncoderConfig.model_validate({"vocab_size": tokenizer.vocab_size, "max_position_embeddings": 64, **sizes})
    generator = torch.Generator().manual_seed(1)
    mood = Classification(metrics=("accuracy",), max_length=32, labels=("부정", "긍정"))
    vectors = Embedding(metrics=("spearman",), max_length=32, learns="scores")
    save_model(folder / "gaps", models.PretrainingModel(config, generator), tokenizer)
    save_model(folder / "mood", mood.model(config, generator), tokenizer, mood.task())
    save_model(folder / "vectors", vectors.model(config, generator), tokenizer, vectors.task())
    index = korbert.Index.create(folder / "index", korbert.load(folder / "vectors", "cpu"))
    index.add([(f"d{number}", text, {"lang": "ko", "n": number}) for number, (text, _) in enumerate(ROWS)])
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text, _ in ROWS), "utf-8")
    (folder / "labelled.csv").write_text("text,label\n" + "".join(f"{a},{b}\n" for a, b in ROWS), "utf-8")
    lines = (json.dumps({"text": text, "label": label}, ensure_ascii=False) for text, label in ROWS)
    (folder / "labelled.jsonl").write_text("\n".join(lines), encoding="utf-8")
    import pandas as pd

    pd.DataFrame(ROWS, columns=["text", "label"]).to_parquet(folder / "labelled.parquet")


def in_place_of(path: Path, rng: random.Random, *, is_read_from_pipes: bool = False) -> str:
    """Puts something else where a file was."""
    path.unlink()
    kinds = ("a device", "a folder", "a loop of links", "nothing", "2 GB of nothing", "a pipe")
    what = rng.choice(kinds[:-1] if is_read_from_pipes else kinds)
    match what:
        case "a pipe":
            os.mkfifo(path)
        case "a device":
            path.symlink_to(rng.choice(("/dev/zero", "/dev/random", "/dev/null")))
        case "a folder":
            path.mkdir()
        case "a loop of links":
            path.symlink_to(path.name)
        case "2 GB of nothing":
            with path.open("wb") as file:
                file.truncate(2 << 30)
    return f"{path.name} is {what}"


def signed(folder: Path) -> None:
    """Makes the checksums of a model folder those of its files, as somebody who means harm would."""
    record, path = folder / "tokenizer" / "korbert_tokenizer.json", folder / "config.json"
    value = json.loads(path.read_bytes())
    if not isinstance(value, dict):
        return
    for name, file in (("weights_sha256", folder / "model.safetensors"), ("tokenizer_record_sha256", record)):
        if name in value and file.is_file():
            value[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    entries = {name: entry for name, entry in value.items() if name != "config_sha256"}
    value["config_sha256"] = hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(value), encoding="utf-8")


def spoil_config(config: dict[str, Any], rng: random.Random) -> None:
    """Another number or value in the encoder, the head or the task."""
    part = config[rng.choice(("encoder", "encoder", "head", "task"))] or config
    name = rng.choice(sorted(part))
    part[name] = rng.choice(
        (10**9, 2**62, -1, 0, 1e9, "1", None, [], {}, ["가"] * 1_000, True, 0.5, 3, 48, "가" * 9_999)
    )


def spoil_weights(data: bytes, rng: random.Random) -> bytes:
    """Another header, or numbers that are not finite."""
    size = int.from_bytes(data[:8], "little")
    if rng.random() < 0.3:
        return data[: 8 + size] + rng.choice((b"\x00\x00\xc0\x7f", b"\xff\xff\x7f\x7f")) * ((len(data) - 8 - size) // 4)
    header = spoiled_json(data[8 : 8 + size], rng)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def spoil_model(trial: Trial, base: Path) -> None:
    rng, folder = trial.rng, trial.folder / "model"
    name = rng.choice(("gaps", "mood", "vectors"))
    shutil.copytree(base / name, folder)
    path = rng.choice(sorted(file for file in folder.rglob("*") if file.is_file()))
    match rng.randrange(5):
        case 0:
            trial.what = in_place_of(path, rng)
        case 1:
            path.write_bytes(spoiled(path.read_bytes(), rng))
            trial.what = f"{path.name} is spoiled"
        case 2:
            path = folder / "model.safetensors"
            path.write_bytes(spoil_weights(path.read_bytes(), rng))
            signed(folder)
            trial.what = "weights are spoiled and signed"
        case 3:
            path = rng.choice((folder / "config.json", folder / "tokenizer" / "korbert_tokenizer.json"))
            with contextlib.suppress(ValueError, RecursionError):  # of `signed`: what is no JSON cannot be signed
                path.write_bytes(spoiled_json(path.read_bytes(), rng, rng.randrange(1, 4)))
                signed(folder)
            trial.what = f"{path.name} is spoiled and signed"
        case _:
            config = json.loads((folder / "config.json").read_bytes())
            spoil_config(config, rng)
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
            signed(folder)
            trial.what = "a setting of config.json is other, and signed"
    argument = {"gaps": ("fill", folder, "나는 [MASK]에 간다"), "mood": ("predict", folder, base / "text.jsonl")}
    vectors = ("embed", folder, base / "text.jsonl")
    exported = ("export", folder, trial.folder / "exported")
    trial.command(*(exported if rng.random() < 0.1 else argument.get(name, vectors)), "--device", "cpu")
    if rng.random() < 0.1:
        trial.command("tokenize", folder, "가나다", "--check")


def spoil_recipe(trial: Trial, base: Path) -> None:
    rng, path = trial.rng, trial.folder / "recipe.toml"
    text, changes = RECIPE, list[str]()
    match rng.randrange(6):
        case 0:
            path.write_bytes(spoiled(text.encode(), rng))
            trial.what = "is spoiled"
        case 1:
            path.write_text(text, encoding="utf-8")
            trial.what = in_place_of(path, rng)
        case 2:
            deep = (
                f"a{'.a' * rng.choice((99, 5_000, 1_000_000))} = 1\n",
                "".join(f"a.b{n} = 1\n" for n in range(99_999)),
            )
            path.write_text(rng.choice(deep) + text, encoding="utf-8")
            trial.what = "many keys"
        case 3:
            key = rng.choice(KEYS).rpartition(".")
            line = f"{key[0]}{key[1]}{key[2]} = {rng.choice(ODD_SETTINGS)}\n"
            path.write_text(line + text, encoding="utf-8", errors="surrogatepass")
            trial.what = f"{line[:80]!r}"
        case _:
            path.write_text(text, encoding="utf-8")
            for _ in range(rng.randrange(1, 3)):
                value = rng.choice(ODD_SETTINGS).replace("\x00", "")
                changes += ["--set", f"{rng.choice(rng.choice((KEYS, ODD_KEYS)))}={value}"]
            trial.what = f"{changes}"[:200]
    commands: tuple[tuple[object, ...], ...] = (("run", path, "--dry-run"), ("status", path), ("report", path))
    trial.command(*rng.choice(commands), "--root", trial.folder / "artifacts", "--data", base, *changes)
    if not changes and rng.random() < 0.1:
        trial.command("plan", path, "--root", trial.folder / "artifacts", "--seconds", 0)


def spoil_index(trial: Trial, base: Path) -> None:
    rng, folder = trial.rng, trial.folder / "index"
    shutil.copytree(base / "index", folder)
    path = rng.choice(sorted(file for file in folder.rglob("*") if file.is_file()))
    query, where = "재미있는 영화", None
    match rng.randrange(4):
        case 0:
            trial.what = in_place_of(path, rng)
        case 1:
            query, where = rng.choice(ODD_TEXTS), rng.choice((None, *WHERE))
            trial.what = f"query {query[:40]!r}, where {where!r:.40}"
        case _:
            path.write_bytes(spoiled(path.read_bytes(), rng))
            trial.what = f"{path.name} is spoiled"

    def run() -> int:
        try:
            index = korbert.Index.load(folder, base / "vectors")
            index.search(query, way=rng.choice(("words", "vectors", "both")), where=where)
        except KorbertError as error:
            print(f"korbert: {error}", file=sys.stderr)
            return error.exit_code
        return 0

    trial.run = run


def spoil_labelled(trial: Trial, base: Path) -> None:
    rng = trial.rng
    source = base / rng.choice(("labelled.csv", "labelled.jsonl", "labelled.parquet"))
    path = trial.folder / source.name
    data = source.read_bytes()
    trial.what = f"{path.name} is spoiled"
    if rng.random() < 0.1:
        path.write_bytes(data)
        trial.what = in_place_of(path, rng, is_read_from_pipes=True)
    elif path.suffix == ".jsonl" and rng.random() < 0.7:
        lines = data.splitlines()
        lines[rng.randrange(len(lines))] = spoiled_json(rng.choice(lines), rng)
        path.write_bytes(b"\n".join(lines))
    else:
        path.write_bytes(spoiled(data, rng))
    output = trial.folder / "output"
    commands: tuple[tuple[object, ...], ...] = (
        ("evaluate", base / "mood", path), ("predict", base / "mood", path, "--csv"),
        ("embed", base / "vectors", path, "--output", trial.folder / "vectors.npy"),
        ("finetune", base / "mood", "--train", path, "--output", output, "--epochs", 1, "--set", "baselines=false"),
    )  # fmt: skip
    trial.command(*rng.choices(commands, (4, 3, 2, 1))[0], "--device", "cpu")


def request_of(rng: random.Random) -> bytes:
    """A request, spoiled in its body, its head or its path."""
    body = dumped({"input": ["학교에 [MASK] 간다", "글 [MASK]"]}, rng)
    if rng.random() < 0.7:
        body = rng.choice((spoiled, spoiled_json))(body, rng)
    path = rng.choice(PATHS) if rng.random() < 0.9 else "/" + "".join(rng.choices("ab/.%?", k=30))
    head = (
        f"{rng.choice(('POST', 'POST', 'POST', 'GET', 'PUT'))} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close"
    )
    data = f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    return data if rng.random() < 0.8 else spoiled(data[:2_000], rng)


def serve(base: Path, numbers: list[int], seed: int) -> tuple[Counter[str], list[str], float, int]:
    """Sends the requests to one service; returns counts, faults, the longest answer in seconds, and its memory."""
    arguments = ["serve", *(str(base / name) for name in ("vectors", "gaps", "mood")), "--index", str(base / "index")]
    command = [sys.executable, "-m", "korbert", *arguments, "--port", "0", "--device", "cpu"]
    counts, faults, longest = Counter[str](), list[str](), 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        port = int(service.stdout.readline().rpartition(":")[2])
        for number in numbers:
            data, began, reply = request_of(random.Random(f"{seed}/request/{number}")), time.monotonic(), b""
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 30) as connection:
                connection.sendall(data)
                reply = connection.recv(65_536)
            seconds = time.monotonic() - began
            longest = max(longest, seconds)
            code = reply[9:12].decode("ascii", "replace")  # empty: what is no HTTP may be cut off without an answer
            counts["answered" if code.startswith("2") else "refused"] += 1
            if code.startswith("5") or seconds > CUT_OFF_SECONDS or b"Traceback" in reply:
                faults.append(f"request {number}: {code} after {seconds:.1f} s: {data[:200]!r}")
        status = Path(f"/proc/{service.pid}/status").read_text(encoding="ascii")
        peak = int(status.partition("VmHWM:")[2].split()[0]) << 10
        service.send_signal(signal.SIGTERM)
        messages = service.communicate(timeout=60)[1]
    if messages.count("\n") > 1:  # the signal is said
        faults.append(f"the service says {messages[:500]!r}")
    return counts, faults, longest, peak


SPOIL = {"model": spoil_model, "recipe": spoil_recipe, "index": spoil_index, "labelled": spoil_labelled}


def child(trial: Trial) -> None:
    """Runs the trial with its output in files, and leaves with its exit code."""
    code = 99
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        os.setpgid(0, 0)
        os.chdir(trial.folder)
        for number, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
        code = trial.run()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def attempt(kind: str, number: int, seed: int, base: Path, kept: Path) -> tuple[str, str, float, int]:
    """One trial: how it ended, its fault (empty if there is none), processor seconds and bytes of memory."""
    folder = kept / f"{kind}-{number}"
    folder.mkdir()
    trial = Trial(folder, random.Random(f"{seed}/{kind}/{number}"))
    SPOIL[kind](trial, base)
    if not (pid := os.fork()):
        child(trial)
    began, status = time.monotonic(), 0
    while True:
        finished, status, usage = os.wait4(pid, os.WNOHANG)
        if finished:
            break
        if time.monotonic() - began > WALL_SECONDS:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        time.sleep(0.01)
    seconds, peak, code = usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, os.waitstatus_to_exitcode(status)
    messages = (folder / "stderr").read_text("utf-8", "replace") if (folder / "stderr").exists() else ""
    fault = ""
    if "Traceback (most recent" in messages or "with --debug shows where" in messages:
        fault = "raw error"
    elif code not in (0, 1, 2):
        fault = f"left with {code}"
    elif seconds > CPU_SECONDS:
        fault = f"{seconds:.1f} s of processor time"
    elif peak > MOST_BYTES:
        fault = f"{peak / 1e9:.1f} GB"
    elif max(map(len, messages.splitlines()), default=0) > MOST_CHARS:
        fault = "a message of more than 2,000 characters"
    if fault:
        fault = f"{kind} {number}: {trial.what}: {fault}: {messages[-300:]!r} ({folder})"
    else:
        shutil.rmtree(folder)
    return {0: "answered", 1: "failed", 2: "refused"}.get(code, "crashed"), fault, seconds, peak


def prepare() -> None:
    """Imports what the commands import, and lets all models share one Kiwi, which takes seconds to load."""
    torch.set_num_threads(1)
    load_kiwi, loaded = analyzer.load_kiwi, dict[str, Any]()

    def once(options: Any, threads: int) -> Any:
        key = json.dumps(options)
        if key not in loaded:
            loaded[key] = load_kiwi(options, threads)
        return loaded[key]

    analyzer.load_kiwi = once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=59)
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each kind")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--only", nargs=2, metavar=("KIND", "NUMBER"), help="one trial again")
    record.add_option(parser)
    options = parser.parse_args()
    scratch, began = Path(tempfile.mkdtemp(prefix="korbert-mutations-")), time.monotonic()
    base = scratch / "base"
    base.mkdir()
    prepare()
    base_of(base)
    faults = []
    rows: list[list[str]] = []
    print(f"{'':10}{'trials':>8}{'answered':>10}{'refused':>10}{'failed':>8}{'faults':>8}{'longest':>10}{'memory':>9}")
    for kind, count in KINDS.items():
        numbers = list(range(round(count * options.share) if kind in options.kinds else 0))
        if options.only:
            numbers = [int(options.only[1])] if options.only[0] == kind else []
        if not numbers:
            continue
        if kind == "request":
            counts, kind_faults, longest, peak = serve(base, numbers, options.seed)
        else:
            counts, kind_faults, longest, peak = Counter[str](), list[str](), 0.0, 0
            for number in numbers:
                outcome, fault, seconds, memory = attempt(kind, number, options.seed, base, scratch)
                counts[outcome] += 1
                kind_faults += [fault] * bool(fault)
                longest, peak = max(longest, seconds), max(peak, memory)
        faults += kind_faults
        cells = "".join(f"{value:>{width},}" for value, width in (
            (len(numbers), 8), (counts["answered"], 10), (counts["refused"], 10), (counts["failed"], 8),
            (len(kind_faults), 8),
        ))  # fmt: skip
        print(f"{kind:10}{cells}{longest:>8.1f} s{peak / 1e6:>6,.0f} MB", flush=True)
        print("".join(f"  {fault}\n" for fault in kind_faults), end="", flush=True)
        answers = [f"{counts[outcome]:,}" for outcome in ("answered", "refused", "failed")]
        rows.append(
            [
                SPOILED[kind],
                f"{len(numbers):,}",
                *answers,
                str(len(kind_faults)),
                f"{longest:.1f} s",
                f"{peak / 1e6:,.0f} MB",
            ]
        )
    print(f"{len(faults)} faults in {time.monotonic() - began:.0f} s")
    columns = ["spoiled", "trials", "answered", "refused", "failed", "faults", "longest", "memory"]
    record.write(options.record, "mutations", [record.table("Trials", columns, rows)])
    shutil.rmtree(base if faults else scratch)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
