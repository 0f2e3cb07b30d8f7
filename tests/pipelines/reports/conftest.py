"""Small artifacts of every stage in the documented schema, to make pages from."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from pipelines.reports.record import Artifact

Rows = list[dict[str, Any]]

_SENTENCES = (
    "서울은 한강을 끼고 있는 도시이다.",
    "배우의 연기가 좋아서 끝까지 보았다.",
    "이 다리는 1936년에 놓였고, 지금은 걷는 사람만 건넌다.",
    "줄거리가 뻔해서 졸았다.",
    "그 학교는 산 아래에 있다.",
)
_MORPHEMES = (
    ("서울", "NNP"),
    ("은", "JX"),
    ("한강", "NNP"),
    ("을", "JKO"),
    ("끼", "VV"),
    ("고", "EC"),
    ("있", "VX"),
    ("는", "ETM"),
    ("도시", "NNG"),
    ("이", "VCP"),
    ("다", "EF"),
    (".", "SF"),
)
_LISTS = {"form": pa.string(), "tag": pa.string(), **dict.fromkeys(("start", "end", "sentence", "eojeol"), pa.int32())}
_MORPHEME_SCHEMA = pa.schema(
    [("id", pa.string()), ("source", pa.string()), *((name, pa.list_(kind)) for name, kind in _LISTS.items())]
)
_DROPPED = pa.schema([(name, pa.string()) for name in ("id", "source", "reason", "detail", "text")])
_FAILED = pa.schema([(name, pa.string()) for name in ("id", "source", "reason", "detail")])
_SHARD = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("input_ids", pa.list_(pa.int32())),
        ("boundaries", pa.list_(pa.uint8())),
    ]
)

RUN = {
    "seconds": 83.4,
    "started": "2025-03-01T09:00:00+00:00",
    "machine": "Linux x86_64, a processor",
    "workers": 2,
    "memory_peak_bytes": 734_003_200,
    "command": "korbert run demo",
    "resumed": False,
    "sources": {"/somewhere/wiki.jsonl": {"sha256": "ab" * 32}},
}


def write_parquet(path: Path, rows: Rows, schema: pa.Schema | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def write_stream(path: Path, rows: Rows) -> None:
    """An Arrow stream file of several batches."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=_SHARD)
    with ipc.new_stream(str(path), _SHARD) as writer:
        for batch in table.to_batches(max_chunksize=16):
            writer.write_batch(batch)


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def write_lines(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def clean(folder: Path, rng: random.Random) -> dict[str, Any]:
    for part in range(3):
        texts = [" ".join(rng.choices(_SENTENCES, k=rng.choice((1, 1, 2, 12, 60)))) for _ in range(60)]
        rows = [
            {"id": f"wiki:{part}-{i}", "source": "wiki" if len(t) > 60 else "reviews", "text": t}
            for i, t in enumerate(texts)
        ]
        write_parquet(folder / f"documents/part-{part:05d}.parquet", rows)
    dropped = [
        {
            "id": f"reviews:{i}",
            "source": rng.choice(("wiki", "reviews")),
            "reason": reason,
            "detail": f"{i} characters",
            "text": text,
        }
        for i, (reason, text) in enumerate(
            [("too_short", "굿")] * 25
            + [("exact_duplicate", "재미있다")] * 9
            + [("hangul_below_min", "<script>alert(1)</script> lol & ㅋㅋㅋ")] * 4
        )
    ]
    write_parquet(folder / "dropped/part-00000.parquet", dropped, _DROPPED)
    return {"read": 218, "kept": 180, "dropped": 38}


def analyze(folder: Path, rng: random.Random) -> dict[str, Any]:
    total = 0
    for part in range(2):
        rows = []
        for i in range(40):
            size = rng.choice((5, 12, 24, 240))
            forms, tags = zip(*(_MORPHEMES[j % len(_MORPHEMES)] for j in range(size)), strict=True)
            places = list(range(size))
            rows.append(
                {
                    "id": f"wiki:{part}-{i}",
                    "source": "wiki" if size > 20 else "reviews",
                    "form": forms,
                    "tag": tags,
                    "start": places,
                    "end": [place + 1 for place in places],
                    "sentence": [j // 12 for j in places],
                    "eojeol": [j // 3 for j in places],
                }
            )
            total += size
        rows.append({"id": f"empty:{part}", "source": "reviews", **{name: [] for name in _LISTS}})
        write_parquet(folder / f"morphemes/part-{part:05d}.parquet", rows, _MORPHEME_SCHEMA)
    failed = [{"id": "wiki:9", "source": "wiki", "reason": "kiwi_timeout", "detail": "120 s, 1,000,000 characters"}]
    write_parquet(folder / "failed/part-00000.parquet", failed, _FAILED)
    return {"documents": 82, "morphemes": total, "failed": 1}


def vocab(folder: Path, rng: random.Random) -> dict[str, Any]:
    measures = {
        "documents": 40,
        "morphemes": 9210,
        "eojeols": 4100,
        "pieces": 10020,
        "whole_morpheme_share": 0.948,
        "pieces_per_morpheme": 1.088,
        "pieces_per_eojeol": 2.444,
        "byte_share": 0.0021,
    }
    split = [
        {"form": "아리스토텔레스", "tag": "NNP", "count": 31, "pieces": 4},
        {"form": "鷄", "tag": "SH", "count": 2, "pieces": 3},
    ]
    by_source = {
        "wiki": measures | {"documents": 10, "whole_morpheme_share": 0.931},
        "reviews": measures | {"documents": 30},
    }
    most_split = {"all": split, "wiki": split, "reviews": split[:1]}
    used = {"entries": 15_616, "never": 210, "rarely": 4_020}
    write_json(
        folder / "coverage.json", {"all": measures, "by_source": by_source, "most_split": most_split, "used": used}
    )
    counts = [
        {"form": f"{form}{i or ''}", "tag": tag, "count": 40_000 // (j + 12 * i + 1), "initial": 1, "documents": 3}
        for i in range(60)
        for j, (form, tag) in enumerate(_MORPHEMES)
    ]
    write_parquet(folder / "counts.parquet", counts)
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *(f"[RESERVED{i}]" for i in range(123)),
        *(f"<0x{i:02X}>" for i in range(256)),
    ]
    pieces += sorted({form for form, _ in _MORPHEMES} | {form[:k] for form in _SENTENCES for k in range(1, 9)})
    folder.joinpath("tokenizer").mkdir()
    folder.joinpath("tokenizer/pieces.txt").write_text(
        "".join(f"{id}\t{piece}\n" for id, piece in enumerate(pieces)), encoding="utf-8"
    )
    return {"size": len(pieces)}


def shard(folder: Path, rng: random.Random) -> dict[str, Any]:
    for split, parts in (("train", 2), ("heldout", 1)):
        for part in range(parts):
            sizes = [rng.choice((8, 20, 33, 400)) for _ in range(50)]
            rows = [
                {
                    "id": f"d:{i}",
                    "source": "wiki" if n > 30 else "reviews",
                    "input_ids": [384] * n,
                    "boundaries": [3] + [0] * (n - 1),
                }
                for i, n in enumerate(sizes)
            ]
            write_stream(folder / split / f"part-{part:05d}.arrow", rows)
    write_parquet(
        folder / "pieces.parquet", [{"id": i, "piece": f"조각{i}", "count": 9000 // (i + 1)} for i in range(400)]
    )
    return {"train_pieces": 20_000, "train_documents": 100}


def pretrain(folder: Path, rng: random.Random) -> dict[str, Any]:
    train, heldout, timing = [], [], [{"kind": "start", "step": 0}]
    for step in range(10, 4010, 10):
        loss = 6 + 3 / (1 + step / 200) + rng.gauss(0, 0.1)
        train.append(
            {
                "kind": "train",
                "step": step,
                "loss": loss + 0.6,
                "mlm_loss": loss,
                "nsp_loss": 0.69 - step / 20_000,
                "learning_rate": 1e-3 * (1 - step / 4010),
                "grad_norm": 1 + rng.random(),
            }
        )
        timing.append(
            {"kind": "train", "step": step, "seconds": step / 5, "pieces_per_second": 12_000 + rng.gauss(0, 400)}
        )
    for step in range(500, 4001, 500):
        heldout.append(
            {
                "kind": "heldout",
                "step": step,
                "mlm_loss": 6.2 + 2 / (1 + step / 500),
                "mlm_accuracy": 0.08 + step / 40_000,
                "mlm_count": 10_000,
                "nsp_loss": 0.66,
                "nsp_accuracy": 0.5 + step / 40_000,
                "nsp_count": 1200,
                "unigram_loss": 7.31,
            }
        )
    write_lines(folder / "metrics.jsonl", train + heldout)
    write_lines(folder / "timing.jsonl", timing)
    write_json(
        folder / "scores.json",
        heldout[-1] | {"steps": 4000, "rows": 128_000, "epochs": 1.707, "parameters": 2_400_000},
    )
    return {"steps": 4000}


def nsmc(folder: Path, rng: random.Random) -> dict[str, Any]:
    def row(name: str, accuracy: float, **more: Any) -> dict[str, Any]:
        test = {
            "all": {"accuracy": accuracy, "standard_error": 0.009, "count": 2000},
            "unseen": {"accuracy": accuracy - 0.01, "standard_error": 0.0095, "count": 1900},
        }
        return {"name": name, "seed": 1, "epoch": None, "validation_accuracy": accuracy + 0.01, "test": test} | more

    rows = [
        row("pretrained", 0.783, learning_rate=2e-4, epoch=2),
        row("scratch", 0.751, learning_rate=2e-4, epoch=3),
        row("tfidf", 0.802, c=2.0),
    ]
    counts = {"train": 9500, "validation": 500, "test": 2000, "unseen": 1900}
    write_json(
        folder / "scores.json",
        {"rows": rows, "confusion": [[800, 200], [234, 766]], "counts": counts, "note": "모두 한 번."},
    )
    predictions = []
    for i in range(200):
        probability = rng.random()
        label = int(rng.random() < 0.2 + 0.6 * probability)
        text = "" if i == 7 else rng.choice(_SENTENCES) + ("<b>&" if i % 9 == 0 else "")
        predictions.append(
            {
                "id": str(i),
                "text": text,
                "label": label,
                "prediction": int(probability >= 0.5),
                "probability": probability,
                "unseen": i % 20 > 0,
            }
        )
    write_parquet(folder / "predictions.parquet", predictions)
    for name in ("pretrained-2e-4-1", "scratch-2e-4-1"):
        lines = [{"kind": "train", "step": step, "loss": 0.7 - step / 3000} for step in range(10, 900, 10)]
        lines += [
            {"kind": "heldout", "step": 300 * e, "epoch": e, "loss": 0.5, "accuracy": 0.7 + e / 40} for e in (1, 2, 3)
        ]
        write_lines(folder / f"metrics/{name}.jsonl", lines)
    return counts


def korquad(folder: Path, rng: random.Random) -> dict[str, Any]:
    causes = ("elsewhere", "boundary", "overlap", "elsewhere")
    misses = [
        {
            "id": f"q{i}",
            "question": "그 다리는 언제 놓였나?",
            "prediction": "" if i == 2 else "1936년에 놓",
            "answers": ["1936년", "1936년"],
            "cause": causes[i % 4],
        }
        for i in range(22)
    ]
    by_cause = {"elsewhere": 11, "boundary": 6, "overlap": 5, "unreachable": 0}
    write_json(
        folder / "scores.json",
        {
            "exact_match": 26.67,
            "f1": 41.3,
            "count": 30,
            "questions_cut": 1,
            "windows": 44,
            "gold_unreachable": 1,
            "by_cause": by_cause,
            "misses": misses,
            "answer_chars": [0, 1, 4, 9, 7, 4, 2, 1, 0, 2],
            "prediction_chars": [1, 2, 3, 9, 7, 3] + [0] * 40 + [5],
            "note": "",
        },
    )
    write_json(folder / "predictions.json", {"q0": "1936년"})
    write_lines(
        folder / "metrics.jsonl", [{"kind": "train", "step": s, "loss": 4 - s / 100} for s in range(10, 300, 10)]
    )
    return {"exact_match": 26.67, "f1": 41.3}


MAKERS: Mapping[str, Callable[[Path, random.Random], dict[str, Any]]] = {
    "clean": clean,
    "analyze": analyze,
    "vocab": vocab,
    "shard": shard,
    "pretrain": pretrain,
    "nsmc": nsmc,
    "korquad": korquad,
}
READS: Mapping[str, tuple[str, ...]] = {
    "clean": (),
    "analyze": ("clean",),
    "vocab": ("analyze",),
    "shard": ("analyze", "vocab"),
    "pretrain": ("vocab", "shard"),
    "nsmc": ("clean", "vocab", "pretrain"),
    "korquad": ("vocab", "pretrain"),
}


def make(recipe: Path, stage: str) -> Path:
    """A finished artifact of `stage` in the recipe's folder."""
    folder = recipe / stage
    folder.mkdir(parents=True)
    counts = MAKERS[stage](folder, random.Random(stage))
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": "00" * 32}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    record = {
        "format": 1,
        "stage": stage,
        "stage_version": 1,
        "digest": f"{stage:0<64}",
        "settings": {
            "part_bytes": 262_144,
            "filters": {"min_chars": 10},
            "sources": [{"name": "위키", "path": "wiki.jsonl"}],
            "words": [],
        },
        "inputs": {
            "artifacts": {name: f"{name:0<64}" for name in READS[stage]},
            "files": {"wiki": [{"name": "wiki.jsonl", "size": 3_000_000, "sha256": "cd" * 32}]},
        },
        "files": files,
        "counts": counts,
        "versions": {"kiwipiepy": "0.24.1"},
        "numerics": {"threads": 2} if stage == "pretrain" else {},
    }
    write_json(folder / "stage.json", record)
    write_json(folder / "run.json", RUN)
    return folder


class Maker:
    """Makes artifacts in the folder of a recipe called 시험."""

    write_parquet = staticmethod(write_parquet)
    write_stream = staticmethod(write_stream)
    write_json = staticmethod(write_json)
    write_lines = staticmethod(write_lines)
    stages = tuple(MAKERS)

    def __init__(self, folder: Path) -> None:
        self.recipe = folder

    def __call__(self, stage: str) -> Path:
        return make(self.recipe, stage)

    def open(self, stage: str) -> Artifact:
        return Artifact.open(self.recipe / stage if (self.recipe / stage).exists() else self(stage))


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(tmp_path / "시험")
