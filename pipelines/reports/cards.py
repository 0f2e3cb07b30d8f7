"""The README.md of an exported model: a Hugging Face model card, written from the artifact's records.

The YAML front matter has JSON values, as JSON is a subset of YAML. The licence is left to the user.
"""

from collections.abc import Iterator
from pathlib import Path

from korbert.folders import model_folder
from korbert.messages import Message
from korbert.modeling.models import CLASSES
from korbert.pipelines.artifacts import (
    OBJECTIVES,
    RECORD,
    Artifact,
    drawing,
    formatting,
    label,
    text,
    without_folders,
)
from korbert.pipelines.reports.artifacts import has_result, result_of, score_table, table
from korbert.pipelines.reports.drawing import fill_template
from korbert.pipelines.stages.table import TASK
from korbert.system import JsonObject, read_object, write_bytes_atomically

CARD = "README.md"


def write_card(model: Path, folder: Path) -> Path | None:
    """Writes the model card into the folder of an exported model and returns its path; None if the model is not part
    of an artifact."""
    artifact = next((parent for parent in (model, model.absolute().parent) if (parent / RECORD).is_file()), None)
    if artifact is None:
        return None
    config, exported = (read_object(parent / "config.json") for parent in (model_folder(model), folder))
    path = folder / CARD
    write_bytes_atomically(path, model_card(artifact, config, exported).encode("utf-8", "backslashreplace"))
    return path


def model_card(folder: Path, config: JsonObject, exported: JsonObject) -> str:
    """Returns the model card of an artifact. config, exported: the config.json of the model, and that of its export.

    Raises ArtifactError if a record is damaged.
    """
    artifact = Artifact.open(folder)
    with drawing(artifact):
        resolved = artifact.folder.resolve()
        name = resolved.name
        if name == artifact.stage:  # in a recipe
            name = f"{resolved.parent.name}-{artifact.stage.removeprefix(TASK)}"
        architecture = exported["architectures"][0]
        is_embedding = config["kind"] == "embedding"
        result = result_of(artifact) if has_result(artifact.stage) else None
        scores: JsonObject = {} if result is None else artifact.json("scores.json")
        return fill_template(
            "card.md",
            name=name,
            kind=config["kind"],
            # Names of the Hugging Face Hub, which has a library and a task of its own for sentence vectors.
            library="sentence-transformers" if is_embedding else "transformers",
            pipeline="sentence-similarity" if is_embedding else CLASSES[config["kind"]].pipeline or None,
            encoder=config["encoder"],
            architecture=config["encoder"]["architecture"],
            exported_class=architecture,
            auto_class=f"AutoModel{''.join(architecture.partition('For')[1:]).removesuffix('Simple')}",
            own_code="auto_map" in exported,
            pretraining=list(pretraining_rows(artifact)),
            provenance=list(provenance_rows(artifact)),
            # For the model of a task; a pretrained model has no scores.
            label=label,
            result=result,
            tags=["korbert", *([result.dataset] if result else [])],
            results=table([result]) if result else None,
            said=[str(Message.from_json(line).map_texts(without_folders)) for line in scores.get("said", ())],
            comparisons=scores.get("comparisons"),
            overlap=scores.get("counts", {}).get("test_in_train"),
            note=scores.get("note"),
            trainings=score_table(scores) if scores else None,
        )


def pretraining_rows(artifact: Artifact) -> Iterator[tuple[str, str]]:
    """How the encoder was pretrained: from the model's own record, or the recipe's if they match."""
    if artifact.stage != "pretrain":
        folder = artifact.folder.resolve().with_name("pretrain")
        if not (folder / RECORD).is_file():
            return
        pretrain = Artifact.open(folder)
        if artifact.record["inputs"]["artifacts"].get("pretrain") != pretrain.record["digest"]:
            return
        artifact = pretrain
    scores = artifact.json("scores.json")
    yield from ((label(key), formatting.count(scores[key])) for key in ("steps", "rows", "parameters") if key in scores)
    loss = f"held-out {label('mlm_loss')}"
    losses = {"mlm_loss": loss, "init_mlm_loss": f"{loss} before training", "unigram_loss": label("unigram_loss")}
    for key, name in losses.items():
        if key in scores:
            yield f"{name}, nats", text("mlm_loss", scores[key], 1)
    for key in (f"{name}_accuracy" for name in OBJECTIVES):
        if scores.get(key) is not None:
            yield f"held-out {label(key)}", text(key, scores[key])


def provenance_rows(artifact: Artifact) -> Iterator[tuple[str, str]]:
    record = artifact.record
    yield "stage", f"{artifact.stage}, version {record['stage_version']}"
    yield "digest", str(record["digest"])
    for role, files in record["inputs"]["files"].items():
        for file in files:
            digest = file.get("sha256") or file.get("version") or ""
            yield role, f"{without_folders(str(file['name']))}, {str(digest)[:12]}"
    yield from ((name, str(version)) for name, version in record["versions"].items())
