"""A service that runs by itself: toy operations that are slow or fail on demand, or real models under other limits.

python toy_service.py '{"limits": {..}, "models": {NAME: FOLDER}, "seconds_a_batch": 0.0, "loading": 0.0}'
"""

import json
import sys
import time
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from korbert.pipelines.service import AnalysisProcess, Limits, Operation, Served, TokenizedItem, run
from korbert.search import Hit
from korbert.vectors.vector_settings import VectorSettings


class Searcher:
    """Finds its two texts, the second one first where words are asked for."""

    def check_search(self, way, where):
        """Refuses nothing."""

    def search(self, texts, top=10, way="both", where=None):
        hits = [
            Hit(f"q{rank}", text, text, 0, 1, 1 / rank, rank, None, 0.5, None) for rank, text in ((1, "가"), (2, "나"))
        ]
        return [(hits[::-1] if way == "words" else hits)[:top] for _ in texts]


def look_data(model, text, pair, attributed):
    """Replaces look_data of korbert.pipelines.reports.look.data."""
    return {"texts": [text] if pair is None else [text, pair], "model": model.network.kind}


def main() -> None:
    how = json.loads(sys.argv[1])
    limits = Limits(**how.get("limits", {}))

    def forward(texts):
        time.sleep(how.get("seconds_a_batch", 0.0))
        if any("boom" in text for text in texts):
            raise RuntimeError(f"the text is {texts}")
        return [np.array([len(text), ord(text[0]) if text else 0], np.float32) for text in texts]

    def tokenize(items):
        return [TokenizedItem(max(1, len(text)), text) for text, _ in items]

    def load():
        time.sleep(how.get("loading", 0.0))
        if how.get("models"):
            from korbert.pipelines.service import operations
            from korbert.pipelines.service.operations import load_all

            operations.look_data = look_data
            folders = {name: Path(folder) for name, folder in how["models"].items()}
            models, _ = load_all(folders, None, "cpu", "fp32", limits, process)
            similar = operations.search_operation(Searcher(), limits)
            return models, Served("index", "index", None, {"similar": similar})
        if how.get("broken"):
            raise ValueError(how["broken"])
        model = SimpleNamespace(
            vector_settings=lambda **asked: VectorSettings.of(asked), width=lambda settings: 2, precision="fp32"
        )
        return {"toy": Served("toy", "toy", model, {"embed": Operation(tokenize, forward)})}, None

    def said(address):
        print(f"ready at {address}", flush=True)

    models = [Path(folder) for folder in how.get("models", {}).values()]
    with closing(AnalysisProcess(models)) if models else nullcontext() as process:
        run(load, "127.0.0.1", how.get("port", 0), limits=limits, token=how.get("token"), said=said)


if __name__ == "__main__":
    main()
