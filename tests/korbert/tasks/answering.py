"""What tests of reading share: texts of made-up pieces, and the search of a network that is scripted."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from korbert.modeling import QuestionAnsweringModel
from korbert.tasks.kinds.kind import Prepared
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.passages import Passage
from korbert.tasks.question_answering.window_settings import WindowSettings
from korbert.tasks.question_answering.windows import Window, WindowExamples, cut_windows
from korbert.tokenization.encoding import Frame
from tests.korbert.tiny import tiny_config

TOKENIZER: Any = SimpleNamespace(pad_id=0, cls_id=2, sep_id=3, frame=Frame(2, 3))


def small_network(architecture: str = "modern") -> torch.nn.Module:
    config = tiny_config(architecture, vocab_size=512, num_hidden_layers=1)
    return QuestionAnsweringModel(config, torch.Generator().manual_seed(0)).eval()


class Scripted(torch.nn.Module):
    """A model that gives each piece the score that stands for its id; all others, [CLS] too, get 0."""

    def __init__(self, starts: dict[int, float], ends: dict[int, float]) -> None:
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.scripts = starts, ends

    def forward(self, input_ids: Tensor, **rest: Any) -> tuple[Tensor, ...]:
        zeros = torch.zeros(input_ids.shape)
        return tuple(sum(((input_ids == id) * one[id] for id in one), zeros) for one in self.scripts)


def passage(text: str, spans: Sequence[tuple[int, int]], first_id: int = 100) -> Passage:
    """A text with pieces that stand for those spans; ids count up from first_id."""
    ids = np.arange(first_id, first_id + len(spans), dtype=np.int32)
    return Passage(text, ids, np.ones(len(spans), dtype=np.uint8), np.array(spans, dtype=np.int32).reshape(-1, 2))


def letters(text: str, first_id: int = 100) -> Passage:
    """A text whose pieces are its characters that are not space."""
    return passage(text, [(i, i + 1) for i, char in enumerate(text) if not char.isspace()], first_id)


def collate(windows: Sequence[Window], tokenizer: Any, settings: WindowSettings) -> dict[str, Any]:
    """The windows as one batch."""
    return WindowExamples.of(windows, tokenizer, settings).batch(np.arange(len(windows)))


def reading(**settings: Any) -> QuestionAnswering:
    return QuestionAnswering(**{"metrics": ("f1",), **settings})


def search(network: Any, kind: Any, pairs: Sequence[tuple[Passage, Passage]], tokenizer: Any = TOKENIZER) -> Any:
    """The answers of each question and context."""
    windows = list[Window]()
    for index, pair in enumerate(pairs):
        windows += cut_windows(*pair, kind, index=index, special=tokenizer.frame.special)
    prepared = Prepared([{}] * len(pairs), WindowExamples.of(windows, tokenizer, kind))
    return kind.search(network, prepared, device=torch.device("cpu"))
