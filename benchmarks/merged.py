"""`korbert` with morphemes that share characters as one unit: 했다 is 했 + 다, not 하 + 었 + 다.

    python benchmarks/merged.py run small --root ROOT

Worker processes import this file again, so they do the same. The submission of korquad would not: it is not to be used.
"""

from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from schemes import merged

from korbert.tokenization import analyzer
from pipelines.cli import main

_plain_alone, _plain_joined = analyzer._alone, analyzer._joined


def _alone(one: Any) -> analyzer.Analysis:
    return merged(_plain_alone(one), one.text)


def _joined(batch: list[Any]) -> analyzer.Analyses:
    found = _plain_joined(batch)
    analyses = [merged(analysis, text) for analysis, text in zip(found, found.texts, strict=True)]
    columns = map(attrgetter, ("forms", "tags", "starts", "ends", "sentences", "eojeols"))
    forms, tags, *numbers = (list(chain.from_iterable(map(column, analyses))) for column in columns)
    bounds = np.cumsum([0, *map(len, analyses)])
    return analyzer.Analyses(found.texts, bounds, forms, tags, *(np.array(column, np.int32) for column in numbers))


analyzer._alone, analyzer._joined = _alone, _joined

if __name__ == "__main__":
    main()
