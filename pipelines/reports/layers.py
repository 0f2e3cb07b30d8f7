"""Pages on layers: scores by layer as curve and table; texts of a labelled file in two dimensions, by layer."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.reports import formatting
from pipelines.reports.elements import Element, Table
from pipelines.reports.page import write
from pipelines.reports.pictures import COLOURS, Line, curves, groups

__all__ = ["write_page", "write_pictures"]

_HEADS = {"linear": "Linear heads", "mlp": "Heads with a hidden layer", "bilstm": "BiLSTM heads"}


def write_page(path: Path, name: str, record: Mapping[str, Any]) -> Path:
    """Writes the page of scores by layer and returns its path. record: as in layers.json."""
    head = _HEADS[record["features"]["head"]]
    about = f"{head} on the {record['num_layers']} layers of a frozen encoder, and on the embeddings below them."
    note = "The encoder is frozen; heads are trained on its vectors."
    return write(path, "layers.html", name=name, about=about, legend=(), blocks=list(_blocks(record)), note=note)


def write_pictures(path: Path, name: str, record: Mapping[str, Any]) -> Path:
    """Writes the page of texts by layer and returns its path. record: from looking_layers.layer_points."""
    labels = record["labels"]
    legend = [(label, number, False) for number, label in enumerate(labels[:COLOURS], start=1)]
    legend += [("others", 0, False)] if len(labels) > COLOURS else []
    blocks = [
        groups(
            "Embeddings" if number == 0 else f"Layer {number}",
            np.asarray(layer["points"]),
            record["members"],
            note=f"Nearest neighbour has the same label: {formatting.percent(layer['neighbours'])}.",
        )
        for number, layer in enumerate(record["layers"])
    ]
    count, way = formatting.count(len(record["members"])), {"pca": "principal components", "tsne": "t-SNE"}
    about = f"{count} texts in each layer of {name}: mean vectors over pieces, projected to two dimensions."
    note = (
        f"Projected by {way[record['way']]}. Neighbours are by cosine in all dimensions; chance level"
        f" {formatting.percent(record['chance'])}."
    )
    return write(path, "layers.html", name=record["set"], about=about, legend=legend, blocks=blocks, note=note)


def _blocks(record: Mapping[str, Any]) -> Iterator[Element]:
    metric: str = record["metrics"][0]
    label = metric.replace("_", " ")
    known = [model for model in record["models"] if model[metric] is not None]
    single = [model for model in known if model["name"].isdecimal()]
    means, lows, highs = ([_end(model[metric], end) for model in single] for end in ("mean", "low", "high"))
    lines = [Line("one layer", [float(model["name"]) for model in single], means, band=(lows, highs))]
    for model in known:
        if model["name"] in (record["best"], *record["baselines"]) and not model["name"].isdecimal():
            lines.append(Line(model["name"], [0, record["num_layers"]], [model[metric]["mean"]] * 2, reference=True))
    note = "Means over seeds with their 95 % interval. Layer 0 is the embeddings."
    yield curves(f"{label} by layer", lines, x="layer", y=label, note=note)
    rows = tuple(
        (
            model["name"],
            "–" if model[metric] is None else formatting.decimal(model[metric]["mean"], 3),
            "–"
            if model[metric] is None or model[metric]["low"] is None
            else "{low:.3f} to {high:.3f}".format(**model[metric]),
            formatting.decimal(model["validation"], 3),
            formatting.count(model["seeds"]),
        )
        for model in record["models"]
    )
    note = "Choose a layer by the validation column: the best of many test scores is partly luck."
    if record["scored_on"] == "valid":
        note = "Scored on the validation rows, which also chose the epoch: scores are optimistic, the best one most."
    yield Table("Layers and combinations", ("layers", label, "interval", "validation", "seeds"), rows, "lrrrr", note)


def _end(spread: Mapping[str, float | None], end: str) -> float:
    """An end of the interval; the mean if there is a single seed."""
    value = spread["mean"] if spread[end] is None else spread[end]
    assert value is not None
    return value
