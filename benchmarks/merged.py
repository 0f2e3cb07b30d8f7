"""`korbert` with morphemes that share characters as one unit: 했다 is 했 + 다, not 하 + 었 + 다.

    python benchmarks/merged.py run small --root ROOT

Worker processes import this file again, so they do the same. The submission of korquad would not: it is not to be used.
"""

from itertools import accumulate, chain
from typing import Any

from schemes import columns, merged

from korbert.tokenization import Analysis, analyzer
from pipelines.cli import main

_plain = analyzer._joined


def _merged(batch: list[Any]) -> analyzer.Analyses:
    found = _plain(batch)
    analyses = [merged(analysis, text) for analysis, text in zip(found, found.texts, strict=True)]
    flat = (list(chain.from_iterable(column)) for column in zip(*map(columns, analyses), strict=True))
    return analyzer.Analyses(found.texts, [0, *accumulate(map(len, analyses))], Analysis(*flat))


analyzer._joined = _merged

if __name__ == "__main__":
    main()
