"""The page of `korbert layers`: scores by layer as curve and table."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from korbert.messages import Message
from korbert.pipelines.artifacts import formatting, in_percent, interval, label, model_name, text
from korbert.pipelines.reports.drawing import Element, Series, TableElement, curves, write
from korbert.system import JsonObject

_HEADS = {
    "linear": Message("Linear heads"),
    "mlp": Message("Heads with a hidden layer"),
    "bilstm": Message("BiLSTM heads"),
}
_COMBINATIONS = {  # by their names in layers.json
    str(name): name
    for name in (
        Message("sum of last 2"), Message("sum of last 3"), Message("sum of last four"),
        Message("weighted sum of last 2"), Message("weighted sum of last 3"), Message("weighted sum of last four"),
        Message("concat of last 2"), Message("concat of last 3"), Message("concat of last four"),
        Message("sum of all"), Message("weighted sum of all"),
    )
}  # fmt: skip


def write_page(path: Path, name: str, record: JsonObject) -> Path:
    """Writes the page of scores by layer and returns its path. record: as in layers.json."""
    return write(
        path,
        "layers.html",
        name=name,
        about=Message(
            "{heads} on the {layers} layers of a frozen encoder, and on the embeddings below them.",
            heads=_HEADS[record["features"]["head"]],
            layers=record["num_layers"],
        ),
        blocks=list(score_elements(record)),
        note=Message("The encoder is frozen; heads are trained on its vectors."),
    )


def score_elements(record: JsonObject) -> Iterator[Element]:
    metric: str = record["metrics"][0]
    defined = [model for model in record["models"] if model[metric] is not None]
    single = [model for model in defined if model["name"].isdecimal()]
    scores = [model[metric] for model in single]
    ends = (0.0, 1.0) if in_percent(metric) else (-np.inf, np.inf)
    low, high = (  # the mean if there is a single seed
        np.clip([score["mean"] if score[end] is None else score[end] for score in scores], *ends)
        for end in ("low", "high")
    )
    means = [score["mean"] for score in scores]
    lines = [Series(Message("one layer"), [float(model["name"]) for model in single], means, band=(low, high))]
    for model in defined:
        if (name := model["name"]) in (record["best"], *record["baselines"]) and not name.isdecimal():
            level = [model[metric]["mean"]] * 2
            lines.append(Series(layer_name(name), [0, record["num_layers"]], level, reference=True))
    yield from curves(
        Message("{metric} by layer", metric=label(metric)),
        lines,
        x=Message("layer"),
        y=label(metric),
        note=Message("Means over seeds with their 95 % interval. Layer 0 is the embeddings."),
    )
    yield score_table(record)


def layer_name(name: str) -> str:
    """The display name of a layer (its number), of a combination of layers, or of a baseline."""
    return _COMBINATIONS.get(name) or model_name(name)


def score_table(record: JsonObject) -> TableElement:
    """The scores of layers and combinations. record: as in layers.json."""
    metric: str = record["metrics"][0]
    rows = []
    for model in record["models"]:
        score = model[metric] or {"mean": None, "low": None}
        ends = formatting.UNKNOWN if score["low"] is None else interval(metric, (score["low"], score["high"]))
        mean, validation = (text(metric, number) for number in (score["mean"], model["validation"]))
        rows.append((layer_name(model["name"]), mean, ends, validation, formatting.count(model["seeds"])))
    note = Message("Choose a layer by the validation column: the best of many test scores is partly luck.")
    if record["scored_on"] == "valid":
        note = Message(
            "Scored on the validation rows, which also chose the epoch: scores are optimistic, the best one most."
        )
    return TableElement(
        Message("Layers and combinations"),
        (Message("layers"), label(metric), Message("interval"), Message("validation"), Message("seeds")),
        rows,
        "lrrrr",
        note=note,
    )
