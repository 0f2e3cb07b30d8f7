"""`korbert` with morphemes that share characters merged into one unit: 했다 is 했 + 다, not 하 + 었 + 다.

    python -m benchmarks.quality.merged run small --root ROOT

Worker processes import this file as well, so they do the same. The korquad submission does not, so do not use it.
"""

from typing import Any

from benchmarks.quality.schemes import merged
from korbert.pipelines.cli import main
from korbert.tokenization import Analysis, analyzer, morphemes

_plain_analysis = morphemes.analysis_of


def _analysis_of(text: str, *args: Any) -> Analysis:
    return merged(_plain_analysis(text, *args), text)


analyzer.analysis_of = morphemes.analysis_of = _analysis_of

if __name__ == "__main__":
    main()
