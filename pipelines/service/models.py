"""Loading and warming up the models of a service."""

from collections.abc import Mapping
from pathlib import Path

import korbert
from korbert.search import Index
from korbert.tokenization import Tokenizer
from korbert.training.settings import PrecisionName
from pipelines.service.analysis import AnalysisProcess, RemoteAnalyzer
from pipelines.service.batching import Operation, Row
from pipelines.service.limits import Limits
from pipelines.service.operations import operations_of, search_operation
from pipelines.service.shared import Served


def load_all(
    folders: Mapping[str, Path],
    index: Path | None,
    device: str,
    precision: PrecisionName,
    limits: Limits,
    process: AnalysisProcess,
) -> tuple[dict[str, Served], Operation | None]:
    """Loads and warms up the models by name, and the search of the index, which was built with the first model.

    process: where Kiwi runs (analysis.py). Raises the ModelError and ArtifactError of the loaders.
    """
    models: dict[str, Served] = {}
    for name, folder in folders.items():
        model = korbert.load(folder, device, precision)
        network = model.network
        # The weights are mapped from the file: writing to it in place would change the model, or crash the process.
        for tensor in (*network.parameters(), *network.buffers()):
            tensor.data = tensor.data.clone()
        if isinstance(tokenizer := model.tokenizer, Tokenizer):
            tokenizer.analyzer = RemoteAnalyzer(tokenizer.analyzer_options, process)
        operations = operations_of(model, limits)
        embed = operations["embed"]
        rows = [row.value for row in embed.tokenize([("안녕하세요", model.vector_settings())]) if isinstance(row, Row)]
        if embed.forward is not None:
            embed.forward(rows)  # the first pass is slower than later ones
        models[name] = Served(name, str(network.kind), model, operations)
    if index is None:
        return models, None
    return models, search_operation(Index.load(index, next(iter(models.values())).model), limits)
