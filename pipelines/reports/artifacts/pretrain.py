"""The page of `pretrain`: held-out loss and accuracy against the unigram baseline, and the learning curves."""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import OBJECTIVES, Artifact, ShownFigure, formatting, label, text
from korbert.pipelines.experiments.compare_pretraining import TrainingLog
from korbert.pipelines.reports.drawing import Element, Gapped, Section, Series, Story, Use, curves
from korbert.system import JsonObject

_GAPS = Message(
    "The model's predictions for each gap, most likely first, at the first, a middle and the last evaluation. The "
    "original piece is marked, and listed below the top five if it is not among them. A slash separates the two "
    "segments of a row."
)
_COUNTED = {  # objective -> what its accuracy is counted over
    "mlm": Message("{objective}: {number:,} pieces."),
    "nsp": Message("{objective}: {number:,} pairs, chance level about 50 %."),
    "sop": Message("{objective}: {number:,} pairs, chance level about 50 %."),
    "spans": Message("{objective}: {number:,} rows, both ends correct."),
    "rtd": Message("{objective}: {number:,} pieces, most of them original."),
    "distill": Message("{objective}: {number:,} pieces, correct where the teacher's top prediction is the same."),
}
_LETTERS = {  # final consonants as letters, ᆫ as ㄴ: alone, most fonts draw them tiny
    code: unicodedata.lookup(unicodedata.name(chr(code)).replace("JONGSEONG", "LETTER"))
    for code in range(0x11A8, 0x11C3)
}


def use(folder: Path) -> Use:
    """Usage: filling gaps with the model or its generator."""
    model = "generator" if (folder / "generator").is_dir() else "model"
    return Use(
        model,
        "korbert fill {} '오늘 [MASK] 정말 좋다'",
        "import korbert\nfiller = korbert.load({})\nprint(filler.fill('오늘 [MASK] 정말 좋다')[0][0].piece)",
    )


def figures(artifact: Artifact) -> Sequence[ShownFigure]:
    scores = artifact.json("scores.json")
    unigram = text("unigram_loss", scores["unigram_loss"])
    compared = Message("unigram {unigram}", unigram=unigram)
    if (before := scores.get("init_mlm_loss")) is not None:
        compared = Message(
            "before training {before}, unigram {unigram}", before=text("mlm_loss", before), unigram=unigram
        )
    name = Message("nats, held-out {figure}", figure=label("mlm_loss"))
    shown = [ShownFigure(text("mlm_loss", scores["mlm_loss"]), name, compared)]
    for objective in OBJECTIVES:
        if f"{objective}_count" in scores:
            key = f"{objective}_accuracy"
            number = scores[f"{objective}_count"]
            note: str = Message("none in the held-out text")
            if number:  # with the binomial standard error: ± 0.6 %, n = 3,945
                error = math.sqrt(max(0.0, scores[key] * (1 - scores[key])) / number)
                note = f"± {formatting.percent(error)}, n = {formatting.count(number)}"
            shown.append(ShownFigure(text(key, scores[key]), label(key), note))
    return shown


def story(artifact: Artifact) -> Story:
    scores = artifact.json("scores.json")
    log = TrainingLog.of(list(artifact.lines("metrics.jsonl")), artifact.lines("timing.jsonl"))
    # The initial model, if training began with one, is an evaluation at step 0, on the same held-out rows.
    if initial := {key.removeprefix("init_"): value for key, value in scores.items() if key.startswith("init_")}:
        initial_evaluation = {"step": 0, "pieces": 0, "unigram_loss": scores["unigram_loss"], **initial}
        log = replace(log, heldout=[initial_evaluation, *log.heldout])
    return Story(
        title=headline(scores),
        lede=lede(scores, log, artifact.record["settings"].get("init")),
        sections=(
            Section(
                Message("Filling gaps in held-out rows"),
                list(gapped_samples(artifact.lines("samples.jsonl"))),
                _GAPS,
            ),
            Section(Message("Held-out evaluation"), list(heldout_elements(log, scores["unigram_loss"]))),
            Section(Message("Training"), list(training_elements(log))),
        ),
    )


def headline(scores: JsonObject) -> Message:
    """The difference of the held-out loss from that before training or, for a new model, from the unigram baseline.

    As in "0.12 nats better than before training". A loss is None, and cannot be compared, if no piece was masked.
    """
    loss = scores["mlm_loss"]
    reference_loss = scores["unigram_loss"]
    reference = Message("the unigram baseline")
    if scores.get("init_mlm_loss") is not None:
        reference_loss = scores["init_mlm_loss"]
        reference = Message("before training")
    if loss is None or reference_loss is None:
        return Message("Not comparable with {than}", than=reference)
    gain = reference_loss - loss
    if abs(gain) < 0.005:
        return Message("No better than {than}", than=reference)
    if gain > 0:
        return Message("{nats:.2f} nats better than {than}", nats=gain, than=reference)
    return Message("{nats:.2f} nats worse than {than}", nats=-gain, than=reference)


def lede(scores: JsonObject, log: TrainingLog, init: str | None) -> Message:
    parameters, steps, rows = (formatting.compact(scores[key]) for key in ("parameters", "steps", "rows"))
    sentences = [
        Message(
            "Masked-piece prediction on held-out text by a model with {parameters} parameters after {steps} steps, "
            "{rows} rows, {epochs} epochs.",
            parameters=parameters, steps=steps, rows=rows, epochs=formatting.decimal(scores["epochs"]),
        ),
        Message("The unigram baseline predicts from piece frequencies only."),
    ]  # fmt: skip
    if init:
        sentences.append(Message("Training started from the weights of {init}.", init=init))
    if log.waiting is not None:
        sentences.append(
            Message("The device waited {share} of the time for rows.", share=formatting.percent(log.waiting))
        )
    return join_messages(sentences, " ")


def gapped_samples(lines: Iterable[JsonObject]) -> Iterator[Gapped]:
    """Yields the samples with the predictions for their gaps at the first, a middle and the last evaluation."""
    by_row: dict[int, list[JsonObject]] = {}  # in the order of their evaluations
    for line in lines:
        by_row.setdefault(line["row"], []).append(line)
    for row, samples in by_row.items():
        samples = [samples[index] for index in sorted({0, len(samples) // 2, len(samples) - 1})]
        gaps = [
            (gaps[0]["piece"].translate(_LETTERS), [_predictions(gap) for gap in gaps])
            for gaps in zip(*(sample["gaps"] for sample in samples), strict=True)
        ]
        yield Gapped(
            Message("{source}, row {row:,}", source=samples[-1]["source"], row=row),
            [stretch.translate(_LETTERS) for stretch in samples[-1]["text"]],
            gaps,
            [Message("step {step:,}", step=sample["step"]) for sample in samples],
        )


def _predictions(gap: JsonObject) -> list[tuple[str, str, bool]]:
    """The most likely pieces, followed by the original one if it is not among them."""
    right: str = gap["piece"]
    missing = [] if right in [guess["piece"] for guess in gap["guesses"]] else [gap]
    return [
        (guess["piece"].translate(_LETTERS), formatting.percent(guess["probability"]), guess["piece"] == right)
        for guess in (*gap["guesses"], *missing)
    ]


def heldout_elements(log: TrainingLog, unigram: float) -> Iterator[Element]:
    yield from chart(
        Message("Held-out {figure}", figure=label("mlm_loss")),
        log,
        log.heldout,
        {Message("model"): "mlm_loss"},
        y=Message("nats"),
        level=unigram,
        note=Message(
            "Fixed masks; every selected piece becomes [MASK]. Unigram: piece frequencies of the training shards."
        ),
    )
    counts = {name: log.heldout[-1][f"{name}_count"] for name in OBJECTIVES if log.heldout[-1].get(f"{name}_count")}
    yield from chart(
        Message("Held-out accuracy"),
        log,
        log.heldout,
        {OBJECTIVES[name]: f"{name}_accuracy" for name in counts},
        y=Message("accuracy"),
        percent=True,
        floor=0,
        note=join_messages(
            [
                Message(_COUNTED[name].template, objective=OBJECTIVES[name], number=number)
                for name, number in counts.items()
            ],
            " ",
        ),
    )


def training_elements(log: TrainingLog) -> Iterator[Element]:
    for name, objective in OBJECTIVES.items():
        yield from chart(
            Message("{objective} training loss", objective=objective),
            log,
            log.train,
            {"": f"{name}_loss"},
            y=Message("nats"),
        )
    yield from chart(Message("Gradient norm"), log, log.train, {"": "grad_norm"}, y=Message("before clipping"), floor=0)
    yield from chart(Message("Throughput"), log, log.timing, {"": "pieces_per_second"}, y=Message("pieces/s"), floor=0)


def chart(
    title: str, log: TrainingLog, lines: Sequence[JsonObject], keys: Mapping[str, str], *, y: str,
    level: float | None = None, percent: bool = False, floor: float | None = None, note: str = "",
) -> Iterator[Element]:  # fmt: skip
    """Yields a chart with a curve per name and key, against pieces; nothing if the lines lack the keys.

    level: the loss of the unigram baseline, drawn as a horizontal line. y, percent, floor: see `pictures.curves`.
    """
    positions = log.pieces(lines)
    series = [Series.through(name, positions, [line.get(key) for line in lines]) for name, key in keys.items()]
    if level is not None and len(series[0].x):  # a horizontal line, as wide as the curve
        series.append(Series(Message("unigram"), [min(series[0].x), max(series[0].x)], [level] * 2, reference=True))
    yield from curves(title, series, x=Message("pieces"), y=y, percent=percent, floor=floor, note=note)
