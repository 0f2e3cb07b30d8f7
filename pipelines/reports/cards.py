"""The README.md of an exported model: a Hugging Face model card, written from the artifact's records.

The YAML front matter has JSON values, as JSON is a subset of YAML. The licence is left to the user.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from korbert.durable import write_whole
from korbert.errors import ArtifactError
from korbert.folders import model_folder
from pipelines.artifacts.store import RECORD, Json
from pipelines.reports import formatting
from pipelines.reports.figures import OBJECTIVES, label
from pipelines.reports.kinds.common import without_folders
from pipelines.reports.record import Artifact, drawing
from pipelines.reports.task_scores import HEAD, Result, cells, has_result, result_of

__all__ = ["CARD", "model_card", "write_card"]

CARD = "README.md"

_PIPELINES = {  # kind of model -> Hugging Face pipeline tag
    "choice": "multiple-choice",
    "classification": "text-classification",
    "detection": "feature-extraction",
    "pretraining": "fill-mask",
    "reading": "question-answering",
    "tagging": "token-classification",
}
_LEARNED = ("learning_rate", "batch_size", "epochs", "epoch", "seed")


def write_card(model: Path, folder: Path) -> Path | None:
    """Writes the model card into the folder of an exported model and returns its path.

    Returns None if the model is not part of an artifact, or if the folder already has a README.md.
    """
    path = folder / CARD
    place = next((place for place in (model, model.absolute().parent) if (place / RECORD).is_file()), None)
    if place is None or path.exists():
        return None
    config, exported = (
        json.loads((one / "config.json").read_text(encoding="utf-8")) for one in (model_folder(model), folder)
    )
    text = model_card(place, config, exported)
    write_whole(path, text.encode("utf-8", "backslashreplace"))
    return path


def model_card(folder: Path, config: Json, exported: Json) -> str:
    """The model card of an artifact. config, exported: config.json of the model, and of its export.

    Raises ArtifactError if a record is damaged.
    """
    artifact = Artifact.open(folder)
    with drawing(artifact):
        results = [result_of(artifact)] if has_result(artifact.stage) else []
        parts = [_front_matter(artifact, config, results), *_body(artifact, config, results, exported)]
    return "\n".join(parts) + "\n"


def _name(artifact: Artifact) -> str:
    """RECIPE-STAGE for a stage of a recipe, else the name of the folder."""
    folder = artifact.folder.resolve()
    inside = folder.name == artifact.stage
    return f"{folder.parent.name}-{artifact.stage.removeprefix('tasks.')}" if inside else folder.name


def _front_matter(artifact: Artifact, config: Json, results: list[Result]) -> str:
    kind = config["kind"]
    task = _PIPELINES.get(kind, kind)
    lines = [
        "---",
        "language: ko",
        "library_name: transformers",
        "# license: name the licence under which you publish this model",
        *([f"pipeline_tag: {task}"] if kind in _PIPELINES else []),
        f"tags: {_yaml(['korbert', *dict.fromkeys(result.dataset for result in results)])}",
    ]
    if any(result.scores for result in results):
        lines += ["model-index:", f"- name: {_yaml(_name(artifact))}", "  results:"]
    for result in results:
        if not result.scores:
            continue
        lines += [
            f"  - task: {_yaml({'type': task})}",
            f"    dataset: {_yaml({'name': result.dataset, 'type': result.dataset})}",
            "    metrics:",
        ]
        lines += [
            f"    - {_yaml({'type': metric, 'name': label(metric), 'value': score})}"
            for metric, score in result.scores.items()
        ]
    return "\n".join([*lines, "---", ""])


def _yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _body(artifact: Artifact, config: Json, results: list[Result], exported: Json) -> Iterator[str]:
    encoder, architecture = config["encoder"], exported["architectures"][0]
    kind = encoder.get("transformers", {}).get("model_type", encoder["architecture"])
    size = f"{encoder['num_hidden_layers']} layers of width {encoder['hidden_size']}"
    yield f"# {_text(_name(artifact))}\n"
    yield (
        f"A Korean encoder ({kind}, {size}, {formatting.count(encoder['vocab_size'])} vocabulary "
        f"entries), trained and exported with korbert. Its class in `transformers` is {architecture}.\n"
    )
    scores = artifact.json("scores.json") if (artifact.folder / "scores.json").is_file() else {}
    if scores.get("said"):
        what = _text(scores["said"][0])
        yield f"{what[:1].upper()}{what[1:]}.\n"
    yield "## Use\n"
    auto = f"AutoModel{''.join(architecture.partition('For')[1:]).removesuffix('Simple')}"
    trusted = ", trust_remote_code=True" if "auto_map" in exported else ""
    yield (
        f"```python\nfrom transformers import {auto}, AutoTokenizer\n\n"
        'tokenizer = AutoTokenizer.from_pretrained("THIS FOLDER", trust_remote_code=True)\n'
        f'model = {auto}.from_pretrained("THIS FOLDER"{trusted})\n```\n'
    )
    yield "The tokenizer is Python code in this folder; it needs `kiwipiepy` (Korean morphology) and `sentencepiece`.\n"
    if results:
        yield from _results("Results", results)
        yield from _how(scores)
    elif tried := _made_from(artifact):
        yield from _results("Results after fine-tuning", tried)
    yield from _pretraining(artifact)
    yield from _provenance(artifact)


def _results(title: str, results: list[Result]) -> Iterator[str]:
    yield f"## {title}\n"
    yield _table(HEAD, [cells(result) for result in results])
    validated = any(result.on != "test" for result in results)
    yield (
        "Score: mean and standard deviation over seeds. Interval: over examples, first seed."
        + (" Validation scores are optimistic: the same rows chose the epoch." if validated else "")
        + "\n"
    )


def _how(scores: Json) -> Iterator[str]:
    """Comparisons, notes and hyperparameters from the scores."""
    compared = [f"- {_text(one['sentence'])}" for one in scores.get("comparisons", ())]
    if compared:
        yield "\n".join(compared) + "\n"
    overlap = scores.get("counts", {}).get("test_in_train")
    if overlap:
        yield f"{formatting.count(overlap)} of the scored rows have the same texts as a training row.\n"
    if scores.get("note"):
        yield f"{_text(scores['note'])}\n"
    rows = [row for row in scores.get("rows", ()) if row.get("learning_rate") is not None]
    if not rows and not scores.get("said"):
        return
    yield "## Training\n"
    if scores.get("said"):
        yield "\n".join(f"- {_text(without_folders(line))}" for line in scores["said"][1:]) + "\n"
    keys = [key for key in _LEARNED if any(row.get(key) is not None for row in rows)]
    if rows:
        cells_of = [(row["name"], *("" if row.get(key) is None else f"{row[key]:g}" for key in keys)) for row in rows]
        yield _table(("model", *map(label, keys)), cells_of)
        yield "The published weights are those of the first row.\n"


def _made_from(artifact: Artifact) -> list[Result]:
    """Results of the tasks in the same recipe that fine-tuned this pretrained model."""
    results = []
    for folder in sorted(artifact.folder.resolve().parent.iterdir()):
        if has_result(folder.name) and (folder / RECORD).is_file():
            try:
                other = Artifact.open(folder)
                inputs = (other.record.get("inputs") or {}).get("artifacts") or {}
                if inputs.get(artifact.stage) == artifact.record.get("digest") is not None:
                    with drawing(other):
                        result = result_of(other)
                    results += [result] if result.model != "scratch" else []
            except ArtifactError:  # damaged; its own page reports it
                continue
    return results


def _pretraining(artifact: Artifact) -> Iterator[str]:
    """How the encoder was pretrained: from the model's own record, or the recipe's if they match."""
    place = artifact.folder if artifact.stage == "pretrain" else artifact.folder.resolve().with_name("pretrain")
    if not (place / RECORD).is_file():
        return
    record = Artifact.open(place)
    digest = ((artifact.record.get("inputs") or {}).get("artifacts") or {}).get("pretrain")
    if artifact.stage != "pretrain" and digest != record.record.get("digest"):
        return
    scores = record.json("scores.json")
    shown = [(label(key), formatting.count(scores[key])) for key in ("steps", "rows", "parameters") if key in scores]
    shown += [
        (name, formatting.decimal(scores[key], 3))
        for key, name in (
            ("mlm_loss", "held-out MLM loss, nats"),
            ("unigram_loss", "unigram baseline, nats"),
        )
        if key in scores
    ]
    shown += [
        (f"held-out {words} accuracy", formatting.percent(scores[f"{name}_accuracy"]))
        for name, words in OBJECTIVES.items()
        if scores.get(f"{name}_accuracy") is not None
    ]
    yield "## Pretraining\n"
    yield _table(("", ""), shown)


def _provenance(artifact: Artifact) -> Iterator[str]:
    record = artifact.record
    yield "## Provenance\n"
    shown = [
        ("stage", f"{artifact.stage}, version {record.get('stage_version')}"),
        ("digest", str(record.get("digest"))),
    ]
    for role, files in ((record.get("inputs") or {}).get("files") or {}).items():
        for file in files:
            sha = file.get("sha256") or file.get("version") or ""
            shown.append((role, f"{without_folders(str(file['name']))}, {str(sha)[:12]}"))
    shown += [(name, str(version)) for name, version in (record.get("versions") or {}).items()]
    yield _table(("", ""), shown)


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = []
    for row in (head, *rows):
        shown = (_text(cell).replace("|", "\\|").replace("\n", " ") for cell in row)
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join([lines[0], "|" + " --- |" * len(head), *lines[1:]]) + "\n"


def _text(text: str) -> str:
    """Escapes text for Markdown, so that it has neither markup nor HTML."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", text.replace("\u00a0", " "))
