"""Small artifacts of every stage, as far as pages read them, and helpers to read pages."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from korbert.messages import Message
from korbert.pipelines.artifacts.record import Artifact
from korbert.pipelines.reports.drawing.elements import Story
from korbert.pipelines.stages.table import STAGES
from korbert.system import write_json

Rows = list[dict[str, Any]]

_SENTENCES = (
    "서울은 한강을 끼고 있는 도시이다.", "배우의 연기가 좋아서 끝까지 보았다.",
    "이 다리는 1936년에 놓였고, 지금은 걷는 사람만 건넌다.", "줄거리가 뻔해서 졸았다.", "그 학교는 산 아래에 있다.",
)  # fmt: skip
_ANALYSED = "서울/NNP 은/JX 한강/NNP 을/JKO 끼/VV 고/EC 있/VX 는/ETM 도시/NNG 이/VCP 다/EF ./SF"
_MORPHEMES = [pair.split("/") for pair in _ANALYSED.split()]
_ANALYSIS = pa.schema({"id": pa.string(), "source": pa.string(), "tag": pa.list_(pa.string())})
_DROPPED = pa.schema([(name, pa.string()) for name in ("id", "source", "reason", "detail", "text")])
_FAILED = pa.schema([(name, pa.string()) for name in ("id", "source", "reason", "detail")])
_SHARD = pa.schema(
    {
        "id": pa.string(),
        "source": pa.string(),
        "input_ids": pa.list_(pa.int32()),
        "boundaries": pa.list_(pa.uint8()),
    }
)

RUN = {
    "seconds": 83.4, "started": "2025-03-01T09:00:00+00:00", "machine": "Linux x86_64, a processor", "workers": 2,
    "memory_peak_bytes": 734_003_200, "command": "korbert run demo", "resumed": False,
    "sources": {"/somewhere/wiki.jsonl": {"sha256": "ab" * 32}},
}  # fmt: skip


def write_parquet(path: Path, rows: Rows, schema: pa.Schema | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def change(path: Path, **changes: Any) -> None:
    """Changes keys of a JSON object in a file."""
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | changes)


def write_lines(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def elements(story: Story) -> dict[str, Any]:
    """Title -> element."""
    return {element.title: element for section in story.sections for element in section.elements}


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


class Reader(HTMLParser):
    """Collects tags, ids and text, and checks that elements are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str | None] = Counter()
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.ids.update(value for name, value in attrs if name == "id")
        if tag not in {"meta", "link", "br", "hr", "img", "input"}:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def clean(folder: Path, rng: random.Random) -> dict[str, int]:
    kept = Counter[str]()
    for part in range(3):
        texts = [" ".join(rng.choices(_SENTENCES, k=rng.choice((1, 1, 2, 12, 60)))) for _ in range(60)]
        sources = ["wiki" if len(text) > 60 else "reviews" for text in texts]
        kept.update(f"kept.{source}" for source in sources)
        rows = [{"id": f"wiki:{part}-{i}", "source": sources[i], "text": text} for i, text in enumerate(texts)]
        write_parquet(folder / f"documents/part-{part:05d}.parquet", rows)
    reasons = [("too_short", "굿")] * 25 + [("exact_duplicate", "재미있다")] * 9
    reasons += [("too_little_hangul", "<script>alert(1)</script> lol & ㅋㅋㅋ")] * 4
    dropped = [
        {"id": f"reviews:{i}", "source": rng.choice(("wiki", "reviews")), "reason": reason,
         "detail": f"{i} characters", "text": text}
        for i, (reason, text) in enumerate(reasons)
    ]  # fmt: skip
    write_parquet(folder / "dropped/part-00000.parquet", dropped, _DROPPED)
    by_reason = Counter(f"dropped.{reason}" for reason, _ in reasons)
    return {"read": 218, "documents": 180, "dropped": 38, **kept, **by_reason}


def analyze(folder: Path, rng: random.Random) -> dict[str, int]:
    total = 0
    for part in range(2):
        rows = []
        for i in range(40):
            size = rng.choice((5, 12, 24, 240))
            tags = [_MORPHEMES[j % len(_MORPHEMES)][1] for j in range(size)]
            rows.append({"id": f"wiki:{part}-{i}", "source": "wiki" if size > 20 else "reviews", "tag": tags})
            total += size
        rows.append({"id": f"empty:{part}", "source": "reviews", "tag": []})
        write_parquet(folder / f"morphemes/part-{part:05d}.parquet", rows, _ANALYSIS)
    failed = [{"id": "wiki:9", "source": "wiki", "reason": "kiwi_timeout", "detail": "120 s, 1,000,000 characters"}]
    write_parquet(folder / "failed/part-00000.parquet", failed, _FAILED)
    return {"documents": 82, "morphemes": total, "failed": 1}


def vocab(folder: Path, rng: random.Random) -> dict[str, int]:
    measures = {
        "documents": 40, "morphemes": 9210, "eojeols": 4100, "pieces": 10020, "whole_morpheme_share": 0.948,
        "pieces_per_morpheme": 1.088, "pieces_per_eojeol": 2.444, "byte_share": 0.0021,
    }  # fmt: skip
    split = [{"form": "아리스토텔레스", "tag": "NNP", "count": 31, "pieces": 4}]
    wiki = measures | {"documents": 10, "whole_morpheme_share": 0.931}
    coverage = {
        "all": measures, "by_source": {"wiki": wiki, "reviews": measures | {"documents": 30}},
        "most_split": dict.fromkeys(("all", "wiki", "reviews"), split),
        "used": {"entries": 15_616, "never": 210, "rarely": 4_020},
    }  # fmt: skip
    write_json(folder / "coverage.json", coverage)
    counts = [
        {"form": f"{form}{i or ''}", "tag": tag, "count": 40_000 // (j + 12 * i + 1), "initial": 1, "documents": 3}
        for i in range(60)
        for j, (form, tag) in enumerate(_MORPHEMES)
    ]
    write_parquet(folder / "counts.parquet", counts)
    return {"size": 400}


def shard(folder: Path, rng: random.Random) -> dict[str, int]:
    counted = Counter[str]()
    for split, parts in (("train", 2), ("heldout", 1)):
        for part in range(parts):
            sizes = [rng.choice((8, 20, 33, 400)) for _ in range(50)]
            counted.update({split: sum(sizes)})
            columns = {
                "id": [f"d:{i}" for i in range(len(sizes))],
                "source": ["wiki" if size > 30 else "reviews" for size in sizes],
                "input_ids": [[384] * size for size in sizes],
                "boundaries": [[3] + [0] * (size - 1) for size in sizes],
            }
            path = folder / split / f"part-{part:05d}.arrow"
            path.parent.mkdir(parents=True, exist_ok=True)
            with ipc.new_stream(str(path), _SHARD) as writer:  # of several batches
                writer.write_table(pa.table(columns, schema=_SHARD), max_chunksize=16)
    entries = [{"id": i, "piece": f"조각{i}", "count": 9000 // (i + 1)} for i in range(400)]
    write_parquet(folder / "pieces.parquet", entries)
    heldout = {"heldout_documents": 50, "heldout_pieces": counted["heldout"]}
    return {"documents": 150, "pieces": counted.total(), **heldout}


def pretrain(folder: Path, rng: random.Random) -> dict[str, int]:
    train = []
    heldout = []
    timing = [{"kind": "start", "step": 0}]
    for step in range(10, 4010, 10):
        at = {"kind": "train", "step": step}
        loss = 6 + 3 / (1 + step / 200) + rng.gauss(0, 0.1)
        losses = {"loss": loss + 0.6, "mlm_loss": loss, "nsp_loss": 0.69 - step / 20_000}
        update = {"learning_rate": 1e-3 * (1 - step / 4010), "grad_norm": 1 + rng.random()}
        train.append({**at, "pieces": 500 * step, **losses, **update})
        speed = 2500 + rng.gauss(0, 40)
        timing.append({**at, "seconds": 2.0, "waited_seconds": 0.5, "pieces_per_second": speed})
    for step in range(500, 4001, 500):
        mlm = {"mlm_loss": 6.2 + 2 / (1 + step / 500), "mlm_accuracy": 0.08 + step / 40_000, "mlm_count": 10_000}
        nsp = {"nsp_loss": 0.66, "nsp_accuracy": 0.5 + step / 40_000, "nsp_count": 1200}
        at = {"kind": "heldout", "step": step, "pieces": 500 * step}
        heldout.append({**at, **mlm, **nsp, "unigram_loss": 7.31})
    write_lines(folder / "metrics.jsonl", train + heldout)
    write_lines(folder / "timing.jsonl", timing)
    sizes = {"steps": 4000, "rows": 128_000, "epochs": 1.707, "parameters": 2_400_000}
    write_json(folder / "scores.json", heldout[-1] | sizes)
    return {"steps": 4000}


def scored(metrics: Sequence[str], models: Mapping[str, float], *, unseen: bool = False, **more: Any) -> dict[str, Any]:
    """A record of scores. models: name -> its score, the same in every metric; those but the first have no seed."""
    rows = []
    summaries = []
    for number, (name, score) in enumerate(models.items()):
        trained = {"seed": None, "c": 2.0} if number else {"seed": 0, "learning_rate": 2e-4, "epoch": 2}
        values = dict.fromkeys(metrics, score)
        row = {"name": name, **trained, f"validation_{metrics[0]}": score + 0.01, "scores": values}
        rows.append(row | ({"unseen": dict.fromkeys(metrics, score - 0.01)} if unseen else {}))
        spread = {"mean": score, "deviation": None, "low": None, "high": None}
        summary = {"name": name, "seeds": 1, "examples": [score - 0.02, score + 0.02]}
        summaries.append(summary | dict.fromkeys(metrics, spread))
    table = {"metrics": list(metrics), "rows": rows, "models": summaries, "comparisons": []}
    return {
        "scored_on": "test",
        **table,
        "details": {},
        "said": [Message("a task: of the test").as_json()],
        "note": "",
    } | more


def nsmc(folder: Path, rng: random.Random) -> dict[str, int]:
    labels = ("부정", "긍정")
    task = {"kind": "classification", "metrics": ["accuracy", "macro_f1"], "max_length": 128, "labels": labels}
    counts = {"train": 9500, "valid": 500, "test": 2000, "test_in_train": 3, "unseen": 1900}
    models = {"pretrained": 0.783, "scratch": 0.751, "tfidf": 0.802}
    record = scored(("accuracy", "macro_f1"), models, unseen=True, task=task, counts=counts, note="모두 한 번.")
    write_json(folder / "scores.json", record)
    lines = []
    for number in range(200):
        probability = rng.random()
        both = dict(zip(labels, (1 - probability, probability), strict=True))
        prediction = {"label": labels[probability > 0.5], "probabilities": both}
        text = "" if number == 7 else rng.choice(_SENTENCES) + ("<b>&" if number % 9 == 0 else "")
        label = labels[rng.random() < 0.2 + 0.6 * probability]
        lines.append({"text": text, "label": label, "predictions": {key: [prediction] for key in models}})
    write_lines(folder / "predictions.jsonl", lines)
    curve: Rows = [{"kind": "train", "step": step, "loss": 0.7 - step / 3000} for step in range(10, 900, 10)]
    curve += [{"kind": "heldout", "step": 300 * e, "epoch": e, "accuracy": 0.7 + e / 40} for e in (1, 2, 3)]
    write_lines(folder / "metrics/pretrained-rate-0.0002-seed-0.jsonl", curve)
    return counts


def korquad(folder: Path, rng: random.Random) -> dict[str, int]:
    causes = ("elsewhere", "boundary", "overlap", "elsewhere")
    miss = {
        "question": "그 다리는 언제 놓였나?", "prediction": "1936년에 놓", "answers": ["1936년", "1936년"],
        "answer_span": [0, 5], "prediction_span": None, "snippets": [{"start": 0, "text": "1936년에 놓였다."}],
    }  # fmt: skip
    misses = [miss | {"id": f"q{i}", "cause": causes[i % 4]} for i in range(22)]
    misses[2]["prediction"] = ""
    details = {
        "questions_cut": 1, "windows": 44, "gold_unreachable": 1, "misses": misses,
        "by_cause": {"elsewhere": 11, "boundary": 6, "overlap": 5, "unreachable": 0},
        "answer_chars": [0, 1, 4, 9, 7, 4, 2, 1, 0, 2], "prediction_chars": [1, 2, 3, 9, 7, 3] + [0] * 40 + [5],
    }  # fmt: skip
    counts = {"train": 90, "valid": 3, "test": 30, "test_in_train": 0}
    task = {"kind": "question-answering", "metrics": ["f1", "exact_match"]}
    models = {"pretrained": 0.413, "sentence": 0.11}
    write_json(folder / "scores.json", scored(("f1", "exact_match"), models, task=task, counts=counts, details=details))
    prediction = {"answer": "1936년에 놓", "start": 0, "end": 7, "score": 0.5}
    row = {"context": "1936년에 놓였다.", "question": "언제?", "answers": [["1936년", 0]]}
    write_lines(folder / "predictions.jsonl", [{**row, "predictions": {key: [prediction] for key in models}}])
    write_json(folder / "predictions.json", {"q0": "1936년"})
    return counts


MAKERS: Mapping[str, Callable[[Path, random.Random], dict[str, int]]] = {
    "clean": clean, "analyze": analyze, "vocab": vocab, "shard": shard, "pretrain": pretrain, "nsmc": nsmc,
    "korquad": korquad,
}  # fmt: skip


def make(recipe: Path, stage: str) -> Path:
    """A finished artifact of `stage` in the recipe's folder."""
    folder = recipe / stage
    folder.mkdir(parents=True)
    counts = MAKERS[stage](folder, random.Random(stage))
    made = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(folder)): {"size": path.stat().st_size, "sha256": "00" * 32} for path in made}
    sources = [{"name": "위키", "path": "wiki.jsonl"}]
    record = {
        "format": 1, "stage": stage, "stage_version": 1, "digest": f"{stage:0<64}", "files": files, "counts": counts,
        "settings": {"part_bytes": 262_144, "filters": {"min_chars": 10}, "sources": sources, "words": []},
        "inputs": {
            "artifacts": {name: f"{name:0<64}" for name in STAGES[stage].reads},
            "files": {"wiki": [{"name": "wiki.jsonl", "size": 3_000_000, "sha256": "cd" * 32}]},
        },
        "versions": {"kiwipiepy": "0.24.1"}, "numerics": {"threads": 2} if stage == "pretrain" else {},
    }  # fmt: skip
    write_json(folder / "stage.json", record)
    write_json(folder / "run.json", RUN)
    return folder


class Maker:
    """Makes artifacts in the folder of a recipe called 시험."""

    def __init__(self, folder: Path) -> None:
        self.recipe = folder

    def __call__(self, stage: str) -> Path:
        """The artifact of the stage, made at the first call."""
        folder = self.recipe / stage
        return folder if folder.exists() else make(self.recipe, stage)

    def open(self, stage: str) -> Artifact:
        return Artifact.open(self(stage))


@pytest.fixture
def maker(tmp_path):
    return Maker(tmp_path / "시험")
