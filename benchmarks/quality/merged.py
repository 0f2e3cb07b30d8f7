"""`korbert` with morphemes that share characters merged into one unit: 했다 is 했 + 다, not 하 + 었 + 다.

    python -m benchmarks.quality.merged run small --root ROOT

Worker processes import this file as well, so they do the same. The korquad submission does not, so do not use it.
"""

from itertools import chain
from typing import Any

import numpy as np

from benchmarks.quality.schemes import columns, merged
from korbert.pipelines.cli import main
from korbert.tokenization import Analysis, analyzer, morphemes

_plain_joined = analyzer._joined


def _analyze(text: str, *args: Any) -> Analysis:
    return merged(morphemes.analyze(text, *args), text)


def _joined(batch: list[Any]) -> analyzer.Analyses:
    found = _plain_joined(batch)
    analyses = [merged(analysis, text) for analysis, text in zip(found, found.texts, strict=True)]
    forms, tags, *numbers = (list(chain.from_iterable(parts)) for parts in zip(*map(columns, analyses), strict=True))
    bounds = np.cumsum([0, *map(len, analyses)])
    return analyzer.Analyses(found.texts, bounds, forms, tags, *(np.array(column, np.int32) for column in numbers))


analyzer.analyze, analyzer._joined = _analyze, _joined

if __name__ == "__main__":
    main()
