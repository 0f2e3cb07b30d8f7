"""What may be wrong with the rows of a labelled file, for `korbert check`.

A label is doubtful if a linear model of other rows finds another one more probable. The least probable labels come
first: those with which a model of other rows agrees least are most often wrong (Northcutt et al. 2021, 3.2).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from korbert.messages import Message
from korbert.model import Model
from korbert.modeling import EmbeddingModel, LinearModel
from korbert.personal_data import spans
from korbert.pipelines.artifacts import StageInputs
from korbert.pipelines.experiments.linear_inputs import joined_inputs
from korbert.pipelines.experiments.task_rows import read_parts
from korbert.pipelines.inference.predicting import csv_line
from korbert.system import track
from korbert.tasks.doubts import first_of, seen_in, slips, words_of
from korbert.tasks.files import Place, TaskRow
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.kind import Kind
from korbert.tasks.kinds.sections import TaskSection
from korbert.tasks.kinds.texts import LinearExamples, text_vectors
from korbert.tasks.linear import LinearInputs, choose, held_out, scale_on
from korbert.training import Scoring

_FEW_ROWS = 10  # a label with fewer rows is too rare to be learned
_MOST_DOUBTFUL = 0.1  # largest share of the rows that is reported as doubtful
PERSONAL = {
    "email": Message("e-mail addresses"),
    "resident_number": Message("resident numbers"),
    "card": Message("card numbers"),
    "phone": Message("phone numbers"),
    "account": Message("account numbers"),
}


class CheckedRow(NamedTuple):
    """A row with findings.

    label: the given label; several are joined by semicolons. likelier, probability: if the label is doubtful, the most
    probable label, and the probability of the given label; otherwise "" and None. findings: doubtful, slip, contrary,
    repeated, in test, rare, or a key of PERSONAL.
    """

    place: Place
    texts: Sequence[str]
    label: str
    likelier: str
    probability: float | None
    findings: Sequence[str]


class Checked(NamedTuple):
    """The result of a check.

    facts: what was found, with counts and the first places. rows: the rows with findings, the most doubtful first.
    """

    facts: Sequence[Message]
    rows: Sequence[CheckedRow]

    @property
    def doubtful(self) -> list[CheckedRow]:
        return [row for row in self.rows if row.likelier]


def check(section: TaskSection, inputs: StageInputs, data: Path, model: Model) -> Checked:
    """Checks the training rows of a task, including those held out. data: as in read_parts. model: computes vectors.

    Labels are compared with a linear model if each text or pair has exactly one. Raises the errors of read_parts.
    """
    task, parts = read_parts(section, inputs, data)
    placed = [*zip(parts.train.places, parts.train, strict=True), *zip(parts.valid.places, parts.valid, strict=True)]
    places, rows = zip(*sorted(placed, key=lambda pair: pair[0].number), strict=True)
    facts = [*parts.read, *parts.doubts]
    findings: dict[int, list[str]] = defaultdict(list)

    def note(finding: str, numbers: Sequence[int]) -> str:
        """Adds a finding to the rows with these numbers, and returns the first of their places as text."""
        for number in numbers:
            findings[number].append(finding)
        return first_of([str(places[number]).replace(f"{data}/", "") for number in numbers])

    doubtful: Mapping[int, tuple[str, float]] = {}
    row_inputs, cut = _inputs(model, task, rows)
    if row_inputs and isinstance(task, Classification):
        doubtful, count = _doubtful(task, rows, row_inputs)
        shown = note("doubtful", list(doubtful))
        line = Message("labels that the model finds unlikely: none")
        if doubtful:
            line = Message("labels that the model finds unlikely: {count:,}: {places}", count=count, places=shown)
        facts.append(line)
        if len(doubtful) < count:
            facts.append(Message("only the {kept:,} least likely of them are findings", kept=len(doubtful)))
    else:
        facts.append(Message("labels are not compared with a model: that is for one label of a text or a pair"))
    repeated, contrary = _repeated(task, rows)
    note("contrary", contrary)
    if repeated:
        shown = note("repeated", repeated)
        facts.append(Message("rows that stand there before: {count:,}: {places}", count=len(repeated), places=shown))
    if parts.test:
        note("in test", seen_in(task, rows, parts.test))
    if isinstance(task, Classification):
        row_labels = [_labels(task, row) for row in rows]
        counts = Counter(label for labels in row_labels for label in labels)
        slipped = {rare for rare, _ in slips(counts)}
        note("slip", [number for number, labels in enumerate(row_labels) if slipped.intersection(labels)])
        rare_counts = {label: count for label, count in counts.items() if count < _FEW_ROWS}
        note("rare", [number for number, labels in enumerate(row_labels) if rare_counts.keys() & set(labels)])
        if rare_counts:
            shown = ", ".join(f"{label!r} ({count})" for label, count in rare_counts.items())
            facts.append(Message("labels with fewer than {least} rows: {labels}", least=_FEW_ROWS, labels=shown))
    for kind, numbers in _personal(task, rows).items():
        shown = note(kind, numbers)
        facts.append(
            Message("rows with {what}: {count:,}: {places}", what=PERSONAL[kind], count=len(numbers), places=shown)
        )
    if cut:
        facts.append(Message("texts that are cut: {count:,}", count=cut))
    checked = []
    for number in [*doubtful, *sorted(findings.keys() - doubtful.keys())]:
        row = rows[number]
        likelier, probability = doubtful.get(number, ("", None))
        label = "; ".join(_labels(task, row))
        checked.append(CheckedRow(places[number], task.texts(row), label, likelier, probability, findings[number]))
    return Checked(facts, checked)


def as_csv(rows: Sequence[CheckedRow]) -> bytes:
    """Returns the rows with findings as a CSV table that Excel can open."""
    lines = [csv_line(("line", "text", "label", "likelier", "probability", "findings"))]
    for row in rows:
        probability = "" if row.probability is None else f"{row.probability:.3f}"
        findings = "; ".join(row.findings)
        text = "\n".join(row.texts)
        lines.append(csv_line((row.place.number, text, row.label, row.likelier, probability, findings)))
    return "".join(lines).encode("utf-8-sig")  # without a byte order mark, Excel reads CP949


def _labels(task: Kind, row: TaskRow) -> list[str]:
    """Returns the labels of a row as strings; if its kind of task has no labels, its target as a string."""
    label = row.get(task.label_role)
    return list(map(str, label)) if isinstance(label, list) else [str(label)]


def _repeated(task: Kind, rows: Sequence[TaskRow]) -> tuple[list[int], list[int]]:
    """Returns the numbers of rows that repeat an earlier row, and of all rows whose texts occur with several labels."""
    by_texts: dict[tuple[str, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(rows):
        by_texts[words_of(task, row)][repr(row.get(task.label_role))].append(number)
    repeated = [number for by_label in by_texts.values() for numbers in by_label.values() for number in numbers[1:]]
    contrary = [by_label for by_label in by_texts.values() if len(by_label) > 1]
    contradicting = [number for by_label in contrary for numbers in by_label.values() for number in numbers]
    return sorted(repeated), sorted(contradicting)


def _personal(task: Kind, rows: Sequence[TaskRow]) -> Mapping[str, list[int]]:
    """Returns kind of personal data -> the numbers of the rows whose texts contain it."""
    numbers_by_kind: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        for kind in sorted({kind for text in task.texts(row) for *_, kind in spans(text)}):
            numbers_by_kind[kind].append(number)
    return numbers_by_kind


def _inputs(model: Model, task: Kind, rows: Sequence[TaskRow]) -> tuple[LinearInputs | None, int]:
    """Returns the terms and vectors of rows (None if labels are not compared) and the number of texts that are cut."""
    is_compared = isinstance(task, Classification) and not task.several
    network = LinearModel.on(model.network, 1, 0, 2 if task.reads_pairs else 1)
    reader = Model(network, model.tokenizer, task, name=model.name, precision=model.precision)
    cut = 0
    inputs = []

    with track("vectors", total=len(rows), unit="rows") as advance:
        scoring: Scoring = {**reader.scoring, "advance": advance}
        for prepared in reader.prepare_rows(rows):
            cut += prepared.examples.cut
            if is_compared and isinstance(prepared.examples, LinearExamples):
                vectors = text_vectors(reader.fast_network, prepared.examples, **scoring)
                inputs.append(LinearInputs(prepared.examples.terms, vectors))
    if not inputs:
        return None, cut
    joined = joined_inputs(inputs)
    texts = torch.from_numpy(joined.vectors)
    if not isinstance(model.network, EmbeddingModel):  # whose vectors need no centring
        network.center.copy_(texts.view(len(texts) * network.num_texts, -1).mean(dim=0))
    with torch.inference_mode():
        return LinearInputs(joined.terms, network.row_vectors(texts.to(network.center.device)).cpu().numpy()), cut


def _doubtful(
    task: Classification, rows: Sequence[TaskRow], inputs: LinearInputs
) -> tuple[dict[int, tuple[str, float]], int]:
    """Returns number of a doubtful row -> its most probable label, and the probability of its given label: of a tenth
    of the rows at most, the least probable ones; and how many rows there are whose label is not the most probable one.
    """
    targets: NDArray[np.int64] = task.numbers([task.target(row) for row in rows])
    texts = ["\n".join(words_of(task, row)) for row in rows]
    choice = choose([inputs], targets, task.num_outputs, texts)
    scores = held_out(inputs, choice, targets, task.num_outputs, texts)
    probabilities = softmax(scale_on(scores, targets) * scores, axis=1)
    given = probabilities[np.arange(len(rows)), targets]
    best = probabilities.argmax(axis=1)
    order = [number for number in np.argsort(given, kind="stable").tolist() if best[number] != targets[number]]
    max_doubtful = max(1, round(_MOST_DOUBTFUL * len(rows)))
    doubtful = {number: (task.labels[best[number]], float(given[number])) for number in order[:max_doubtful]}
    return doubtful, len(order)
