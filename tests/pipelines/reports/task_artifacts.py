"""Artifacts of tasks of every kind: rows and predictions made up, scores as the stage computes them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from korbert.messages import Message
from korbert.pipelines.experiments import scores
from korbert.pipelines.experiments.search import ModelResult
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.multiple_choice import MultipleChoice
from korbert.tasks.kinds.regression import Regression
from korbert.tasks.kinds.token_classification import TokenClassification
from tests.pipelines.reports.conftest import RUN, write_json, write_lines

Kit = tuple[Any, list[dict[str, Any]], dict[str, list[list[Any]]]]
_TEXTS = (
    "정말 재미있는 영화였다", "시간이 아깝다 <b>&</b>", "", "서울은 한강을 끼고 있는 도시이다. " * 30, "그저 그렇다",
)  # fmt: skip


def _label(labels: Sequence[str], probabilities: Sequence[float]) -> dict[str, Any]:
    most = labels[int(np.argmax(probabilities))]
    return {"label": most, "probabilities": dict(zip(labels, probabilities, strict=True))}


def labelled(labels: Sequence[str] = ("긍정", "부정", "중립 <i>"), number: int = 60) -> Kit:
    rng = np.random.default_rng(7)
    kind = Classification(metrics=("macro_f1", "accuracy"), max_length=32, labels=tuple(labels))
    rows = [{"text": _TEXTS[n % 5], "label": labels[int(rng.integers(len(labels)))]} for n in range(number)]

    def predictions(good: float) -> list[Any]:
        weights = rng.random((len(rows), len(labels)))
        for number, row in enumerate(rows):
            weights[number, labels.index(row["label"])] += good
        return [_label(labels, row.tolist()) for row in weights / weights.sum(axis=1, keepdims=True)]

    both = {"pretrained": [predictions(0.6), predictions(0.5)], "scratch": [predictions(0.2)]}
    return kind, rows, both | {"majority": [[_label(labels, np.eye(len(labels))[0].tolist()) for _ in rows]]}


def several() -> Kit:
    rng = np.random.default_rng(5)
    names = ("기쁨", "슬픔", "놀람")
    kind = Classification(metrics=("micro_f1", "macro_f1"), max_length=32, labels=names, several=True)
    rows = [{"text": _TEXTS[n % 5], "label": [name for name in names[:2] if rng.random() < 0.5]} for n in range(40)]

    pretrained, majority = ([kind.prediction(rng.random(3) * [1, 1, 0.4]) for _ in rows] for _ in range(2))
    return kind, rows, {"pretrained": [pretrained], "majority": [majority]}


def numbered() -> Kit:
    rng = np.random.default_rng(3)
    kind = Regression(metrics=("pearson", "spearman"), max_length=32, mean=2.5, deviation=1.4, pair=True)
    targets = (rng.random(50) * 5).round(1).tolist()
    rows = [{"text": _TEXTS[n % 5], "pair": "다른 글", "score": target} for n, target in enumerate(targets)]
    near = [[row["score"] + float(rng.normal()) for row in rows] for _ in range(2)]
    return kind, rows, {"pretrained": near, "mean": [[2.5] * len(rows)]}


def chosen() -> Kit:
    rng = np.random.default_rng(2)
    kind = MultipleChoice(metrics=("accuracy",), max_length=32, most=3)
    choices = ["우산을 폈다.", "모자를 <b> 썼다.", "집에 갔다."]
    rows = [{"text": "비가 왔다.", "choices": choices[: 2 + n % 2], "label": str(n % 2)} for n in range(30)]
    models = {}
    for model in ("pretrained", "majority"):
        drawn = [rng.dirichlet(np.ones(len(row["choices"]))) for row in rows]
        models[model] = [[{"choice": int(of_row.argmax()), "probabilities": of_row.tolist()} for of_row in drawn]]
    return kind, rows, models


def tagged() -> Kit:
    kind = TokenClassification(
        metrics=("entity_f1", "character_f1"), max_length=32, units="characters", stride=8,
        tags=("O", "B-사람", "I-사람", "B-곳", "I-곳"),
    )  # fmt: skip
    long = "가" * 500
    rows = [
        {"text": "세종은 서울에서 <한글>을 만들었다.", "spans": [[0, 2, "사람"], [4, 6, "곳"]]},
        {"text": f"{long} 이순신은 통영에 갔다.", "spans": [[501, 504, "사람"], [506, 508, "곳"]]},
        {"text": "아무 말도 없다.", "spans": []},
    ]
    predicted = [[[0, 3, "사람"], [4, 6, "사람"]], [[506, 508, "곳"]], [[0, 2, "곳"]]]
    return kind, rows, {"pretrained": [predicted], "dictionary": [[row["spans"] for row in rows]]}


def spoken() -> Kit:
    kind = TokenClassification(metrics=("accuracy",), max_length=32, units="words", stride=8, tags=("NOUN", "VERB"))
    rows = [{"tokens": ["봄이", "왔다", "<b>"], "tags": ["NOUN", "VERB", "NOUN"]} for _ in range(4)]
    return kind, rows, {"pretrained": [[["NOUN", "NOUN", "NOUN"]] * 4], "dictionary": [[row["tags"] for row in rows]]}


KINDS: Mapping[str, Callable[[], Kit]] = {
    "multiple-choice": chosen, "classification": labelled, "regression": numbered, "several": several,
    "token-classification": tagged, "words": spoken,
}  # fmt: skip


def write_task(recipe: Path, name: str, kit: Kit, **changes: Any) -> Path:
    """The artifact of [tasks.NAME]. changes: of scores.json."""
    kind, rows, models = kit
    folder = recipe / f"tasks.{name}"
    folder.mkdir(parents=True)
    results = []
    for model, seeds in models.items():
        for seed, predictions in enumerate(seeds):
            facts: dict[str, Any] = {"name": model, "seed": None}
            if model in ("pretrained", "scratch"):
                chosen = {"learning_rate": 3e-4, "epoch": 2, f"validation_{kind.metrics[0]}": 0.5}
                facts = {"name": model, "seed": seed, **chosen, "trials": [chosen]}
                lines: list[dict[str, Any]] = [{"kind": "train", "step": s, "loss": 1 / s} for s in range(1, 40)]
                lines += [{"kind": "heldout", "step": 20 * e, "epoch": e, kind.metrics[0]: e / 10} for e in (1, 2)]
                write_lines(folder / f"metrics/{model}-rate-0.0003-seed-{seed}.jsonl", lines)
            results.append(ModelResult(facts, predictions, folder))
    counts = {"train": 100, "valid": 10, "test": len(rows), "test_in_train": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "_RESAMPLES", 40)
        table = scores.score_table(kind, rows, results)
    read = Message("{file}: {rows} rows", file="/somewhere/else/train.csv", rows=100)
    lines = (
        Message("{kind}: {about}", kind=kind.name, about=kind.description()),
        read,
        Message("10 rows are held out"),
    )
    said = [line.as_json() for line in lines]
    written = {"task": kind.task(), "scored_on": "test", **table, "counts": counts, "said": said}
    write_json(folder / "scores.json", {**written, "details": {}, "note": "", **changes})
    write_lines(folder / "predictions.jsonl", [
        {**row, "predictions": {model: [seed[number] for seed in seeds] for model, seeds in models.items()}}
        for number, row in enumerate(rows)
    ])  # fmt: skip
    encoder = {"architecture": "modern", "num_hidden_layers": 2, "hidden_size": 128, "vocab_size": 16000}
    write_json(folder / "model/config.json", {"kind": "classification", "encoder": encoder})
    files = {"train": [{"name": "train.csv", "size": 9, "sha256": "cd" * 32}]}
    record = {
        "format": 1, "stage": f"tasks.{name}", "stage_version": 1, "settings": {"set": "", "epochs": 2},
        "inputs": {"artifacts": {"pretrain": "p" * 64}, "files": files},
        "counts": counts, "versions": {"torch": "2.0"}, "numerics": {}, "digest": "ab" * 32, "files": {},
    }  # fmt: skip
    write_json(folder / "stage.json", record)
    write_json(folder / "run.json", RUN)
    return folder
