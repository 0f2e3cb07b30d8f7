"""Layer probing: heads on each frozen layer of an encoder, and on combinations of layers.

The vectors of all layers are computed once. The table extends table 7 of Devlin et al. 2019 to every layer.
"""

from dataclasses import replace
from pathlib import Path

from korbert.modeling import FeatureSettings
from korbert.pipelines.artifacts import Runtime, StageInputs
from korbert.pipelines.experiments.preparing import builds_of, kept_vectors, prepare
from korbert.pipelines.experiments.scores import score_table
from korbert.pipelines.experiments.search import ModelResult, baselines, learn
from korbert.system import JsonObject, write_json
from korbert.tasks.kinds.sections import TaskSection

_SEEDS = 3  # if the settings have none


def layer_table(settings: TaskSection, inputs: StageInputs, output: Path, runtime: Runtime, work: Path) -> JsonObject:
    """Writes layers.json to `output` (docs/formats.md); finished trainings are kept in `work`.

    Uses the head and width of settings.features and ignores its `layers`. If they name no seeds, three are used.
    Returns the content of layers.json.
    """
    features = settings.features or FeatureSettings()
    seeds = settings.seeds if "seeds" in settings.model_fields_set else tuple(range(_SEEDS))
    changed = {"features": features.model_copy(update={"layers": "last"}), "seeds": seeds, "scratch": False}
    settings = type(settings).model_validate(settings.model_dump(exclude_unset=True) | changed)
    ready = prepare(settings, inputs, work, runtime)
    count = ready.start.config.num_hidden_layers
    if settings.init != "scratch":  # all layers in one pass
        kept_vectors(ready, ready.start.encoder, range(count + 1))

    results: list[ModelResult] = []
    means: dict[str, float] = {}  # validation score of each layer or combination, over seeds
    for layers in [*map(str, range(count + 1)), *combinations(count)]:
        changed = {"features": features.model_copy(update={"layers": layers})}
        on_layers = replace(ready, settings=settings.model_copy(update=changed), output=work / layers.replace(" ", "-"))
        learned = learn(on_layers, builds_of(on_layers))
        means[layers] = sum(result.facts[f"validation_{ready.task.metrics[0]}"] for result in learned) / len(learned)
        results += [replace(result, facts={**result.facts, "name": layers}) for result in learned]
    baseline_results = list(baselines(ready)) if settings.baselines else []
    table = score_table(ready.task, ready.scored.rows, [*results, *baseline_results])
    record = {
        **ready.facts,
        "features": features.model_dump(exclude={"layers"}),
        "num_layers": count,
        "metrics": table["metrics"],
        "rows": table["rows"],
        "models": [{**model, "validation": means.get(model["name"])} for model in table["models"]],
        "best": max(means, key=means.__getitem__),  # by validation
        "baselines": [result.facts["name"] for result in baseline_results],
        "said": [line.as_json() for line in ready.said],
        "note": settings.note,
    }
    write_json(output / "layers.json", record)
    return record


def combinations(count: int) -> list[str]:
    """Returns the combinations of table 7 for an encoder with `count` layers; fewer than four stand for "last four"."""
    if count == 1:
        return []
    last = "last four" if count >= 4 else f"last {count}"
    more = [] if count <= 4 else ["sum of all", "weighted sum of all"]
    return [f"sum of {last}", f"weighted sum of {last}", f"concat of {last}", *more]
