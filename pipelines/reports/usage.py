"""How to use what a stage made: the command and the lines of Python, with the artifact's own path."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.reports.elements import Code

__all__ = ["shown", "usage"]


@dataclass(frozen=True)
class _Use:
    """folder: what is loaded, in the artifact. command, python: `{}` is its path, quoted."""

    folder: str
    command: str
    python: str


_USES: Mapping[str, _Use] = {
    "vocab": _Use(
        "tokenizer",
        "korbert tokenize {} '학교에 방문한다'",
        "from korbert.tokenization import Tokenizer\n"
        "encoding = Tokenizer.load({}).encode('학교에 방문한다')\n"
        "print(encoding.pieces, encoding.spans)",
    ),
    "pretrain": _Use(
        "model",
        "korbert fill {} '오늘 [MASK] 정말 좋다'",
        "import korbert\nfiller = korbert.load({})\nprint(filler.fill('오늘 [MASK] 정말 좋다')[0][0].piece)",
    ),
    "nsmc": _Use(
        "model",
        "korbert predict {} reviews.txt",
        "import korbert\n"
        "classifier = korbert.load({})\n"
        "print(classifier.predict(['정말 재미있는 영화였다'])[0]['label'])",
    ),
    "korquad": _Use(
        "model",
        "korbert submit {} KorQuAD_v1.0_dev.json predictions.json",
        "import korbert\n"
        "reader = korbert.load({})\n"
        "print(reader.answer('세종은 1443년에 한글을 만들었다.', '한글은 언제 만들었나?')['answer'])",
    ),
}


def shown(folder: Path) -> str:
    """The folder as a page names it: as given if relative, else its last three parts, artifacts/RECIPE/STAGE."""
    return "/".join(folder.parts[-3:]) if folder.is_absolute() else folder.as_posix()


def usage(artifacts: Mapping[str, Path]) -> tuple[Code, ...]:
    """A command for each artifact that can be used, and Python for the last of them; nothing where none can.

    artifacts: stage -> its folder.
    """
    found = list(_uses(artifacts))
    if not found:
        return ()
    commands = "\n".join(use.command.format(shlex.quote(path)) for use, path in found)
    use, path = found[-1]
    return Code("In a shell", commands), Code("In Python", use.python.format(json.dumps(path, ensure_ascii=False)))


def _uses(artifacts: Mapping[str, Path]) -> Iterator[tuple[_Use, str]]:
    for stage, folder in artifacts.items():
        if stage in _USES:
            yield _USES[stage], f"{shown(folder)}/{_USES[stage].folder}"
