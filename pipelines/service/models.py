"""The models of a service, loaded and warm."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import korbert
from korbert.tasks.reading import Reader
from korbert.tokenization import Analyzer, AnalyzerOptions, Tokenizer
from korbert.vectors import Index
from pipelines.look_data import look_data
from pipelines.service.batching import Row
from pipelines.service.limits import Limits
from pipelines.service.operations import operations_of
from pipelines.service.served import Searcher, Served

__all__ = ["load_all"]


def load_all(
    folders: Mapping[str, Path], index: Path | None, device: str, limits: Limits
) -> tuple[dict[str, Served], Searcher | None]:
    """The models by name, warm, and the index that was made with the first one.

    Raises what opening them raises: ModelError, ArtifactError.
    """
    models = _models(folders, device, limits)
    return models, None if index is None else Index.load(index, next(iter(models.values())).model)


def _models(folders: Mapping[str, Path], device: str, limits: Limits) -> dict[str, Served]:
    """All models, with Kiwi loaded (once for tokenizers that use it alike) and weights that no file can change."""
    found: dict[str, Served] = {}
    analyzers: list[tuple[AnalyzerOptions, Analyzer]] = []
    for name, folder in folders.items():
        model = korbert.load(folder, device)
        network: Any = model.model
        # The file is mapped: what writes into it in place would change the model, or end the process.
        for tensor in (*network.parameters(), *network.buffers()):
            tensor.data = tensor.data.clone()
        if isinstance(model, Reader):
            model.batch_size = max(model.batch_size, limits.batch_pieces // 64)
        if isinstance(tokenizer := model.tokenizer, Tokenizer):
            same = [analyzer for options, analyzer in analyzers if options == tokenizer.analyzer_options]
            if same:
                tokenizer.analyzer = same[0]
            analyzers.append((tokenizer.analyzer_options, tokenizer.analyzer))
        operations = operations_of(model, limits, look_data)
        embed = operations["embed"]
        rows = [row.value for row in embed.tokenize([("안녕하세요", model.vector_settings())]) if isinstance(row, Row)]
        if embed.forward is not None:
            embed.forward(rows)  # the first pass takes longer than others
        found[name] = Served(name, str(network.kind), model, operations)
    return found
