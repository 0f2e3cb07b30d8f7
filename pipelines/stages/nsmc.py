"""nsmc: a pretrained encoder learns to tell good reviews from bad, beside the same one untrained and a baseline."""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from corpus.documents import is_heldout
from corpus.overlap import found_in
from korbert.durable import write_whole
from korbert.errors import CorpusError, SettingsError
from korbert.modeling import ClassificationModel, PretrainingModel, init_encoder_from, load_model, save_model
from korbert.progress import track
from korbert.tasks import nsmc
from korbert.tasks.encoded import Encoded
from korbert.tasks.nsmc.settings import NsmcSettings
from korbert.tasks.nsmc.table import Build, Reviews, Row, baseline_row, confusion, encoder_rows, scores, trained_model
from korbert.tokenization import Tokenizer
from korbert.training import choose_device
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs

__all__ = ["run"]

_logger = logging.getLogger(__name__)

_VALIDATION_SEED = 0  # of the hash: the same reviews choose, whatever the seeds of training

_NOTE = (
    "Epoch, rate and C were chosen on reviews held out of the training file; the test file was scored once a seed. "
    "Unseen are test reviews whose text is neither in the training file nor a document, or a line of one, of the "
    "pretraining corpus, white space aside. A standard error is sqrt(p (1 - p) / n)."
)


def run(settings: NsmcSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes model/, scores.json, predictions.parquet and metrics/ (docs/formats.md)."""
    torch.set_num_threads(settings.threads)
    device = choose_device(runtime.device)
    train, test = _read(inputs.files["train"]), _read(inputs.files["test"])
    validation = _validation(train, settings, inputs)
    pretrained, tokenizer = load_model(inputs.artifacts["pretrain"] / "model", "pretraining")
    _check_length(settings, pretrained, inputs)
    builds = _builds(settings, pretrained)

    with track("compare", total=None):
        seen = found_in(test["text"], train["text"], inputs.artifacts["clean"] / "documents", output, runtime.workers)
    reviews = _encode(settings, inputs, train, test, validation, tokenizer, output, runtime)
    rows: list[Row] = []
    for name, build in builds.items():
        rows += encoder_rows(name, build, reviews, settings, output, device)
    rows.append(baseline_row(reviews, settings, output))

    main_build = next(iter(builds.values()))
    task = {"max_length": settings.max_length}
    save_model(output / "model", trained_model(rows[0], main_build, output), tokenizer, task=task)
    _write_predictions(output / "predictions.parquet", test, rows[0], ~seen)
    return _write_scores(output / "scores.json", settings, rows, reviews, ~seen)


def _read(paths: Sequence[Path]) -> pd.DataFrame:
    return pd.concat([nsmc.read(path) for path in paths], ignore_index=True)


def _validation(train: pd.DataFrame, settings: NsmcSettings, inputs: Inputs) -> NDArray[np.bool_]:
    """Which training reviews choose, (train,) bool. Raises CorpusError where they or the others are too few."""
    ids = train["id"].tolist()
    chosen = np.array([is_heldout(f"nsmc:{id}", _VALIDATION_SEED, settings.validation_share) for id in ids])
    names = ", ".join(map(str, inputs.files["train"]))
    if not chosen.any():
        raise CorpusError(
            f"{names}: none of {len(ids):,} reviews falls into the validation part: give more, or raise "
            f"nsmc.validation_share ({settings.validation_share})"
        )
    if train["label"][~chosen].nunique() < 2:
        raise CorpusError(f"{names}: the reviews to learn from have not both labels: give more, and some of each")
    return chosen


def _check_length(settings: NsmcSettings, pretrained: PretrainingModel, inputs: Inputs) -> None:
    positions = pretrained.config.max_position_embeddings
    if settings.max_length > positions:
        raise SettingsError(
            f"nsmc.max_length {settings.max_length} is more than the {positions} positions of "
            f"{inputs.artifacts['pretrain'] / 'model'}: lower it, or raise encoder.max_position_embeddings"
        )


def _builds(settings: NsmcSettings, pretrained: PretrainingModel) -> Mapping[str, Build]:
    """Name of each encoder's rows -> its model before the first step, the main one first."""

    def scratch(seed: int) -> ClassificationModel:
        generator = torch.Generator().manual_seed(seed)
        return ClassificationModel(
            pretrained.config, len(nsmc.LABELS), settings.pooling, labels=nsmc.LABELS, generator=generator
        )

    def with_pretrained(seed: int) -> ClassificationModel:
        model = scratch(seed)
        init_encoder_from(model, pretrained)
        return model

    if settings.init == "scratch":
        return {"scratch": scratch}
    return {"pretrained": with_pretrained, **({"scratch": scratch} if settings.scratch else {})}


def _encode(
    settings: NsmcSettings,
    inputs: Inputs,
    train: pd.DataFrame,
    test: pd.DataFrame,
    validation: NDArray[np.bool_],
    tokenizer: Tokenizer,
    output: Path,
    runtime: Runtime,
) -> Reviews:
    encoded = {}
    for name, table in (("train", train), ("test", test)):
        encoded[name] = Encoded(inputs.encoded or output / "work", table["text"].tolist(), tokenizer)
        encoded[name].make(runtime.workers, f"analyze {name}")
    with track("load", total=None):
        train_rows, test_rows = (
            encoded[name].examples(table["label"].to_numpy(), settings.max_length)
            for name, table in (("train", train), ("test", test))
        )
    first = train_rows.input_ids[: train_rows.offsets[1]].tolist()
    _logger.info("sample: %s -> %s, label %d", train["text"][0], " ".join(tokenizer.tokens(first)), train["label"][0])
    return Reviews(train_rows, test_rows, encoded["train"], encoded["test"], validation)


def _write_predictions(path: Path, test: pd.DataFrame, row: Row, unseen: NDArray[np.bool_]) -> None:
    table = pa.table(
        {
            "id": pa.array(test["id"], pa.string()),
            "text": pa.array(test["text"], pa.string()),
            "label": pa.array(test["label"], pa.int64()),
            "prediction": pa.array((row.probability > 0.5).astype(np.int64)),
            "probability": pa.array(row.probability),
            "unseen": pa.array(unseen),
        }
    )
    pq.write_table(table, path, compression="zstd")


def _write_scores(
    path: Path, settings: NsmcSettings, rows: Sequence[Row], reviews: Reviews, unseen: NDArray[np.bool_]
) -> Counts:
    labels, validation = reviews.test.labels, int(reviews.validation.sum())
    counts: Counts = {"train": len(reviews.train) - validation, "validation": validation}
    counts |= {"test": len(labels), "unseen": int(unseen.sum())}
    table: list[dict[str, Any]] = [scores(row, labels, unseen) for row in rows]
    found = {
        "rows": table,
        "confusion": confusion(rows[0], labels),
        "counts": counts,
        "note": " ".join(filter(None, (_NOTE, settings.note))),
    }
    write_whole(path, (json.dumps(found, ensure_ascii=False, indent=1) + "\n").encode())
    first = settings.seeds[0]
    accuracy = {f"{row['name']}_accuracy": row["test"]["all"]["accuracy"] for row in table if row["seed"] == first}
    return {**counts, **accuracy}
