"""What may be wrong with the rows of a labelled file, for `korbert check`.

A label is doubtful if a linear model of other rows finds another one more probable. The least probable labels come
first: those with which a model of other rows agrees least are most often wrong (Northcutt et al. 2021, 3.2).
"""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from korbert.corpus.cleaning.personal import spans
from korbert.messages import Message
from korbert.model import Model
from korbert.modeling import EmbeddingModel, LinearModel
from korbert.pipelines.artifacts import StageInputs
from korbert.pipelines.experiments.linear_inputs import joined_inputs
from korbert.pipelines.experiments.task_rows import read_parts
from korbert.system import track
from korbert.tasks.doubts import first_of, seen_in, slips, words_of
from korbert.tasks.files import Place, TaskRow
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.kind import Kind
from korbert.tasks.kinds.sections import TaskSection
from korbert.tasks.kinds.texts import LinearExamples, text_vectors
from korbert.tasks.linear import LinearInputs, choose, held_out, scale_on
from korbert.training import Scoring

_FEW_ROWS = 10  # of a label, below which there is too little to learn it from
_MOST_DOUBTFUL = 0.1  # of the rows
PERSONAL = {
    "email": Message("e-mail addresses"),
    "resident_number": Message("resident numbers"),
    "card": Message("card numbers"),
    "phone": Message("phone numbers"),
    "account": Message("account numbers"),
}


class CheckedRow(NamedTuple):
    """A row with findings.

    label: as given, several with a semicolon between. likelier, probability: of a doubtful label, the most probable
    one, and the probability of the given one; "" and None for others. findings: doubtful, slip, contrary, repeated, in
    test, rare, or a key of PERSONAL.
    """

    place: Place
    texts: Sequence[str]
    label: str
    likelier: str
    probability: float | None
    findings: Sequence[str]


class Checked(NamedTuple):
    """facts: what was found, with counts and the first places. rows: those with findings, most doubtful first."""

    facts: Sequence[Message]
    rows: Sequence[CheckedRow]

    @property
    def doubtful(self) -> list[CheckedRow]:
        return [row for row in self.rows if row.likelier]


def check(section: TaskSection, inputs: StageInputs, data: Path, model: Model) -> Checked:
    """Checks the training rows of a task. data: as in read_parts. model: gives the vectors of texts.

    Labels are compared with a model if each text or pair has one. Raises what read_parts raises.
    """
    task, parts = read_parts(section, inputs, data)
    placed = [*zip(parts.train.places, parts.train, strict=True), *zip(parts.valid.places, parts.valid, strict=True)]
    places, rows = zip(*sorted(placed, key=lambda pair: pair[0].number), strict=True)
    facts = [*parts.read, *parts.doubts]
    findings: dict[int, list[str]] = defaultdict(list)

    def note(finding: str, numbers: Sequence[int]) -> str:
        for number in numbers:
            findings[number].append(finding)
        return first_of([str(places[number]).replace(f"{data}/", "") for number in numbers])

    doubtful: Mapping[int, tuple[str, float]] = {}
    learned, cut = _inputs(model, task, rows)
    if learned and isinstance(task, Classification):
        doubtful = _doubtful(task, rows, learned)
        shown = note("doubtful", list(doubtful))
        found = Message("labels that the model finds unlikely: none")
        if doubtful:
            found = Message(
                "labels that the model finds unlikely: {count:,}: {places}", count=len(doubtful), places=shown
            )
        facts.append(found)
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
        own = [_labels(task, row) for row in rows]
        counts = Counter(label for labels in own for label in labels)
        slipped = {rare for rare, _ in slips(counts)}
        note("slip", [number for number, labels in enumerate(own) if slipped.intersection(labels)])
        few = {label: count for label, count in counts.items() if count < _FEW_ROWS}
        note("rare", [number for number, labels in enumerate(own) if few.keys() & set(labels)])
        if few:
            shown = ", ".join(f"{label!r} ({count})" for label, count in few.items())
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
    """A table of rows with findings, which Excel opens, too."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("line", "text", "label", "likelier", "probability", "findings"))
    for row in rows:
        probability = "" if row.probability is None else f"{row.probability:.3f}"
        found = "; ".join(row.findings)
        writer.writerow((row.place.number, "\n".join(row.texts), row.label, row.likelier, probability, found))
    return table.getvalue().encode("utf-8-sig")  # without its mark, Excel reads CP949


def _labels(task: Kind, row: TaskRow) -> list[str]:
    """The labels of a row; of another kind, its target in words."""
    label = row.get(task.label_role)
    return list(map(str, label)) if isinstance(label, list) else [str(label)]


def _repeated(task: Kind, rows: Sequence[TaskRow]) -> tuple[list[int], list[int]]:
    """The numbers of rows that stand there before, and of all with a text that has several labels."""
    by_texts: dict[tuple[str, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(rows):
        by_texts[words_of(task, row)][repr(row.get(task.label_role))].append(number)
    repeated = [number for by_label in by_texts.values() for own in by_label.values() for number in own[1:]]
    contrary = [own for own in by_texts.values() if len(own) > 1]
    return sorted(repeated), sorted(number for by_label in contrary for own in by_label.values() for number in own)


def _personal(task: Kind, rows: Sequence[TaskRow]) -> Mapping[str, list[int]]:
    """Kind of personal data -> the numbers of the rows that have some."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        for kind in sorted({kind for text in task.texts(row) for *_, kind in spans(text)}):
            found[kind].append(number)
    return found


def _inputs(model: Model, task: Kind, rows: Sequence[TaskRow]) -> tuple[LinearInputs | None, int]:
    """The terms and vectors of rows, None if their labels are not compared, and how many texts are cut."""
    is_compared = isinstance(task, Classification) and not task.several
    network = LinearModel.on(model.network, 1, 0, 2 if task.reads_pairs else 1)
    reader = Model(network, model.tokenizer, task, name=model.name, precision=model.precision)
    cut = 0
    inputs = []

    with track("vectors", total=len(rows), unit="rows") as advance:
        how: Scoring = {**reader.scoring, "advance": advance}
        for prepared in reader.prepare_rows(rows):
            cut += prepared.examples.cut
            if is_compared and isinstance(prepared.examples, LinearExamples):
                vectors = text_vectors(reader.fast_network, prepared.examples, **how)
                inputs.append(LinearInputs(prepared.examples.terms, vectors))
    if not inputs:
        return None, cut
    joined = joined_inputs(inputs)
    texts = torch.from_numpy(joined.vectors)
    network = network.cpu()
    if not isinstance(model.network, EmbeddingModel):  # which was trained to compare texts
        network.center.copy_(texts.view(len(texts) * network.num_texts, -1).mean(dim=0))
    with torch.inference_mode():
        return LinearInputs(joined.terms, network.row_vectors(texts).numpy()), cut


def _doubtful(task: Classification, rows: Sequence[TaskRow], inputs: LinearInputs) -> dict[int, tuple[str, float]]:
    """Number of a row -> the most probable label, which is another one, and the probability of the given one."""
    targets: NDArray[np.int64] = task.numbers([task.target(row) for row in rows])
    texts = ["\n".join(words_of(task, row)) for row in rows]
    choice = choose([inputs], targets, task.num_outputs, texts)
    scores = held_out(inputs, choice, targets, task.num_outputs, texts)
    shares = softmax(scale_on(scores, targets) * scores, axis=1)
    given = shares[np.arange(len(rows)), targets]
    best = shares.argmax(axis=1)
    order = [number for number in np.argsort(given, kind="stable").tolist() if best[number] != targets[number]]
    most = max(1, round(_MOST_DOUBTFUL * len(rows)))
    return {number: (task.labels[best[number]], float(given[number])) for number in order[:most]}
