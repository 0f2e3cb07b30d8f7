"""The page of `korquad`: exact match and F1, errors by cause, and the errors themselves in context."""

from collections.abc import Iterator

from pipelines.artifacts import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Headline, Section, Story, Table
from pipelines.reports.evaluation import marked
from pipelines.reports.labels import label
from pipelines.reports.pictures import Line, curves
from pipelines.reports.record import Artifact
from pipelines.reports.usage import Use

__all__ = ["headlines", "story"]

USE = Use(
    "model",
    "korbert submit {} KorQuAD_v1.0_dev.json predictions.json",
    "import korbert\n"
    "reader = korbert.load({})\n"
    "print(reader.answer('세종은 1443년에 한글을 만들었다.', '한글은 언제 만들었나?')['answer'])",
)

_CAUSES = {
    "unreachable": "can hardly match: no span of pieces equals a correct answer",
    "boundary": "overlaps a correct answer, off by at most three characters (학교에 for 학교)",
    "overlap": "overlaps a correct answer, off by more",
    "elsewhere": "does not overlap a correct answer",
}
_MARKED = "Questions with their contexts; the correct answer in green, the predicted one in red and underlined."
_LONGEST_CHARS = 40  # last point of the histogram: this long or longer


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    scores = artifact.json("scores.json")
    return (
        Headline(formatting.decimal(scores["f1"], 1), "F1 (of 100)"),
        Headline(formatting.decimal(scores["exact_match"], 1), "exact match"),
        Headline(formatting.count(scores["count"]), "questions"),
    )


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    marked = any(miss.get("snippets") for miss in scores["misses"])
    metrics = "Scored like the official script; F1 is computed over characters."
    return Story(
        title=f"Exact match {formatting.decimal(scores['exact_match'], 1)} of 100",
        lede=f"{metrics} {scores.get('note') or ''}".rstrip(),
        sections=(
            Section("Error analysis", tuple(_causes(scores))),
            Section("Answers and windows", tuple(_answers(scores))),
            Section("Training", tuple(_curves(artifact))),
            Section("Errors", tuple(_misses(scores)), _MARKED if marked else ""),
        ),
    )


def _causes(scores: Json) -> Iterator[Element]:
    causes = _by_frequency(scores["by_cause"])
    total = sum(causes.values())
    if not total:
        return
    bars = tuple(
        Bar(
            cause,
            (number / max(causes.values()),),
            f"{formatting.count(number)}, {formatting.percent(number / total)}",
        )
        for cause, number in causes.items()
    )
    yield Bars("Errors by cause", bars, note=f"{formatting.count(total)} answers that do not match exactly.")
    rows = tuple((cause, _CAUSES.get(cause, "")) for cause in causes)
    yield Table("Definition of causes", ("cause", "predicted answer"), rows, "ll")


def _by_frequency(causes: dict[str, int]) -> dict[str, int]:
    return dict(sorted(causes.items(), key=lambda pair: (-pair[1], pair[0])))


def _answers(scores: Json) -> Iterator[Element]:
    lines = [_histogram("correct", scores["answer_chars"]), _histogram("predicted", scores["prediction_chars"])]
    if any(line.x for line in lines):
        note = f"{_LONGEST_CHARS}: {_LONGEST_CHARS} characters or more."
        yield curves("Answer length", lines, x="characters", y="answers", floor=0, whole_y=True, note=note)
    questions = scores["count"]
    per_question = f"{formatting.decimal(formatting.ratio(scores['windows'], questions))} per question"
    rows = [("windows", formatting.count(scores["windows"]), per_question)]
    for key in ("questions_cut", "gold_unreachable"):
        share = formatting.percent(formatting.ratio(scores[key], questions))
        rows.append((label(key), formatting.count(scores[key]), share))
    yield Table("Windows", ("", "number", ""), tuple(rows), "lrr")


def _histogram(name: str, numbers: list[int]) -> Line:
    """Number of answers by length; the last point includes all longer ones."""
    shown = [*numbers[:_LONGEST_CHARS], sum(numbers[_LONGEST_CHARS:])]
    shown = shown[: len(numbers)]
    return Line(name, list(range(len(shown))), shown)


def _curves(artifact: Artifact) -> Iterator[Element]:
    train = [point for point in artifact.lines("metrics.jsonl") if point["kind"] == "train"]
    if train:
        line = Line("loss", [point["step"] for point in train], [point["loss"] for point in train])
        yield curves("Training loss", [line], x="step", y="nats")


def _misses(scores: Json) -> Iterator[Element]:
    """Missed answers by cause, with the most frequent cause expanded."""
    for place, cause in enumerate(_by_frequency(scores["by_cause"])):
        entries = []
        for miss in scores["misses"]:
            if miss["cause"] == cause:
                answers = " / ".join(dict.fromkeys(map(str, miss["answers"])))
                facts = (("correct", answers), ("predicted", miss["prediction"] or "(nothing)"))
                entries.append(Entry(str(miss["id"]), miss["question"], facts, tuple(_passage(miss))))
        if entries:
            yield Folded(f"{cause} · {len(entries)} shown", tuple(entries), open=place == 0)


def _passage(miss: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The context around both answers, as marked stretches; empty for artifacts without snippets."""
    spans = {"right": miss.get("answer_span"), "given": miss.get("prediction_span")}
    marks = {name: span for name, span in spans.items() if span}
    for number, snippet in enumerate(miss.get("snippets", ())):
        start, text = snippet["start"], snippet["text"]
        if start or number:
            yield (" … " if number else "… "), ()
        yield from marked(text, {name: [span] for name, span in marks.items()}, start)
    if miss.get("snippets"):
        yield " …", ()
