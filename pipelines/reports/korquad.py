"""The page of `korquad`: EM and F1, what goes wrong in the misses, and the misses themselves."""

import itertools
from collections.abc import Iterator

from pipelines.artifacts import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Entry, Folded, Headline, Section, Story, Table
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
    "unreachable": "could hardly be right: no run of pieces is exactly a right answer",
    "boundary": "overlaps a right answer and is at most three characters off (학교에 for 학교)",
    "overlap": "overlaps a right answer, but is further off",
    "elsewhere": "does not overlap a right answer",
}
_MISSES = "Each question with its context: the right answer in green, the given one in red and underlined."
_LONGEST_CHARS = 40  # the last point of the histogram is "this long or longer"


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
    return Story(
        title=f"{formatting.decimal(scores['exact_match'], 1)} of 100 answers match exactly",
        lede=_lede(scores),
        sections=(
            Section("What goes wrong", tuple(_causes(scores))),
            Section("Answers and windows", tuple(_answers(scores))),
            Section("While learning", tuple(_curves(artifact))),
            Section("Misses", tuple(_misses(scores)), _MISSES if marked else ""),
        ),
    )


def _lede(scores: Json) -> str:
    return f"Scored as the official script does; F1 counts shared characters. {scores.get('note') or ''}".rstrip()


def _causes(scores: Json) -> Iterator[Element]:
    causes = _by_size(scores["by_cause"])
    total = sum(causes.values())
    bars = tuple(
        Bar(
            cause,
            (formatting.ratio(number, max(causes.values())),),
            f"{formatting.count(number)}, {formatting.percent(number / total)}",
        )
        for cause, number in causes.items()
        if total
    )
    if bars:
        yield Bars("Misses by cause", bars, note=f"{formatting.count(total)} answers that do not match.")
        rows = tuple((cause, _CAUSES.get(cause, "")) for cause in causes)
        yield Table("What the causes mean", ("cause", "the answer given"), rows, "ll")


def _by_size(causes: dict[str, int]) -> dict[str, int]:
    return dict(sorted(causes.items(), key=lambda pair: (-pair[1], pair[0])))


def _answers(scores: Json) -> Iterator[Element]:
    lines = [
        _histogram(name, scores[key])
        for name, key in (("right answers", "answer_chars"), ("given answers", "prediction_chars"))
    ]
    if any(line.x for line in lines):
        note = f"{_LONGEST_CHARS} stands for that many and more."
        yield curves("Length of the answers", lines, x="characters", y="answers", floor=0, whole_y=True, note=note)
    yield _windows(scores)


def _histogram(name: str, numbers: list[int]) -> Line:
    """Answers of each length, those of the longest shown length and beyond together."""
    shown = [*numbers[:_LONGEST_CHARS], sum(numbers[_LONGEST_CHARS:])]
    shown = shown[: len(numbers)]
    return Line(name, list(range(len(shown))), shown)


def _windows(scores: Json) -> Table:
    questions = scores["count"]
    each = f"{formatting.decimal(formatting.ratio(scores['windows'], questions))} a question"
    rows = [("windows", formatting.count(scores["windows"]), each)]
    for key in ("questions_cut", "gold_unreachable"):
        rows.append(
            (label(key), formatting.count(scores[key]), formatting.percent(formatting.ratio(scores[key], questions)))
        )
    return Table("Windows", ("what", "number", ""), tuple(rows), "lrr")


def _curves(artifact: Artifact) -> Iterator[Element]:
    train = [point for point in artifact.lines("metrics.jsonl") if point["kind"] == "train"]
    if train:
        line = Line("loss", [point["step"] for point in train], [point["loss"] for point in train])
        yield curves("Training loss", [line], x="step", y="nats")


def _misses(scores: Json) -> Iterator[Element]:
    """Folded by cause; the first cause is open."""
    for place, cause in enumerate(_by_size(scores["by_cause"])):
        entries = tuple(_entry(miss) for miss in scores["misses"] if miss["cause"] == cause)
        if entries:
            yield Folded(f"{cause} · {len(entries)} shown", entries, open=place == 0)


def _entry(miss: Json) -> Entry:
    answers = list(dict.fromkeys(map(str, miss["answers"])))
    return Entry(
        str(miss["id"]),
        miss["question"],
        (("right", " / ".join(answers)), ("given", miss["prediction"] or "(nothing)")),
        tuple(_passage(miss)),
    )


def _passage(miss: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The context around both answers, cut where a mark begins or ends; nothing in artifacts that do not hold it."""
    spans = {"right": miss.get("answer_span"), "given": miss.get("prediction_span")}
    marks = {name: span for name, span in spans.items() if span}
    for number, snippet in enumerate(miss.get("snippets", ())):
        start, text = snippet["start"], snippet["text"]
        if start or number:
            yield (" … " if number else "… "), ()
        inner = {place for span in marks.values() for place in span if start < place < start + len(text)}
        bounds = [start, *sorted(inner), start + len(text)]
        for low, high in itertools.pairwise(bounds):
            marked = tuple(name for name, (first, last) in marks.items() if first <= low and high <= last)
            yield text[low - start : high - start], marked
    if miss.get("snippets"):
        yield " …", ()
