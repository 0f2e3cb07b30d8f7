"""`korbert` with morphemes that share characters as one unit: 했다 is 했 + 다, not 하 + 었 + 다.

    python benchmarks/merged.py run small --root ROOT

Worker processes import this file again, so they do the same. The submission of korquad would not: it is not to be used.
"""

from typing import Any

from schemes import merged

from korbert.tokenization import analyzer
from pipelines.cli import main

_plain = analyzer._joined


def _merged(batch: list[Any]) -> analyzer.Analyses:
    found = _plain(batch)
    analyses = [merged(analysis, text) for analysis, text in zip(found, found.texts, strict=True)]
    return analyzer.Analyses.of(analyses, found.texts)


analyzer._joined = _merged

if __name__ == "__main__":
    main()
