"""A few held-out rows with gaps, and the predictions of a model in training: the first thing to look at."""

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from korbert.messages import Message
from korbert.modeling import PretrainingModel
from korbert.pretraining.batches import Columns, PretrainingRows
from korbert.pretraining.mixing import permute
from korbert.seeds import derived_seed
from korbert.system import JsonObject, world
from korbert.tokenization import EOJEOL, AnyTokenizer
from korbert.training import JsonLines, device_of

_logger = logging.getLogger(__name__)

_SEARCHED = 500  # rows to choose from
_SHORTEST = 12  # pieces of a row that is easy to read
_LONGEST = 40
_MOST_GAPS = 5
_TOP = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """A row to show. number: its number among all; source: of its text."""

    number: int
    source: str
    row: Columns


def choose_samples(rows: PretrainingRows, number: int = 3) -> list[Sample]:
    """At most `number` rows with gaps: one of each source first, those of 12 to 40 pieces with few gaps before others.

    Determined by the shards and the rows' seed.
    """
    candidates = permute(np.arange(min(_SEARCHED, len(rows))), len(rows), derived_seed("samples"))
    samples = [Sample(index, rows.source(index), rows.example(0, index)) for index in candidates.tolist()]

    def unfit(sample: Sample) -> tuple[int, int]:
        """How many pieces the row is too short or too long by, and its surplus gaps."""
        pieces = len(sample.row["input_ids"])
        return max(_SHORTEST - pieces, pieces - _LONGEST, 0), max(len(sample.row["labels"]) - _MOST_GAPS, 0)

    samples = sorted((sample for sample in samples if len(sample.row["labels"])), key=unfit)
    first_of_source = {sample.source: sample for sample in reversed(samples)}
    samples.sort(key=lambda sample: first_of_source[sample.source] is not sample)
    return samples[:number]


@torch.no_grad()
def write_samples(path: Path, samples: Sequence[Sample], tokenizer: AnyTokenizer, model: nn.Module, step: int) -> None:
    """Writes the model's predictions in the gaps of the samples to `path` (docs/formats.md).

    Appends a line for each sample, in place of lines that an earlier run wrote at this step or a later one.
    model: in evaluation mode. Of several processes, the first one writes and the others return at once.
    """
    if not world().is_main_process:
        return
    assert isinstance(model, PretrainingModel)
    device = device_of(model)
    lines: list[JsonObject] = []
    for sample in samples:
        row = sample.row
        names = "input_ids", "token_type_ids", "boundaries"
        inputs = {name: torch.from_numpy(row[name])[None].to(device) for name in names}
        hidden = model.encoder(**inputs)  # (1, T, D)
        scores = model.mlm_head(hidden[0, torch.from_numpy(row["label_places"]).to(device)])
        probabilities = scores.float().softmax(-1).cpu()  # (gaps, V)
        top = probabilities.topk(_TOP)

        truths = row["labels"].tolist()
        gaps = []
        for gap, (piece, truth) in enumerate(zip(tokenizer.tokens(truths), truths, strict=True)):
            guesses = zip(tokenizer.tokens(top.indices[gap].tolist()), top.values[gap].tolist(), strict=True)
            best_of_gap = [{"piece": name, "probability": round(share, 6)} for name, share in guesses]
            probability = round(probabilities[gap, truth].item(), 6)
            gaps.append({"piece": piece, "probability": probability, "guesses": best_of_gap})
        place = {"step": step, "row": sample.number, "source": sample.source}
        lines.append({**place, "text": stretches(row, tokenizer), "gaps": gaps})

    with closing(JsonLines(path, step - 1)) as file:
        for line in lines:
            file.write(line)
        file.sync()
    if lines:
        # 서울은 [한강: 산 12 %]을 끼고 있다: each gap with its piece and the top prediction.
        words, *after_gaps = lines[0]["text"]
        for filled_gap, text in zip(lines[0]["gaps"], after_gaps, strict=True):
            guess = filled_gap["guesses"][0]
            words += f"[{filled_gap['piece']}: {guess['piece']} {guess['probability']:.0%}]{text}"
        _logger.info(Message("step {step:,}: {words}", step=step, words=words))


def stretches(row: Columns, tokenizer: AnyTokenizer) -> list[str]:
    """The texts around the gaps of a row, one more than there are gaps. " / " separates the segments."""
    ids = row["input_ids"].tolist()
    levels = row["boundaries"].tolist()
    gaps = np.isin(np.arange(len(ids)), row["label_places"]).tolist()
    frame = (tokenizer.cls_id, tokenizer.sep_id)

    def space(place: int) -> str:
        """The separator before a piece, which `decode` omits for the first one."""
        return " " if levels[place] >= EOJEOL and ids[place - 1] not in frame else ""

    texts = []
    text = ""
    start = 1
    for place in range(1, len(ids)):
        if not gaps[place] and ids[place] != tokenizer.sep_id:
            continue
        if start < place:
            text += space(start) + tokenizer.decode(ids[start:place], levels[start:place])
        if gaps[place]:
            texts.append(text + space(place))
            text = ""
        elif place < len(ids) - 1:
            text += " / "
        start = place + 1
    return [*texts, text]
