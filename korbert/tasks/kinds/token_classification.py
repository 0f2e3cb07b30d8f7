"""Labels of spans or words: named entities, parts of speech."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import not_
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message, argument
from korbert.modeling import AnyConfig, CrfModel, TokenClassificationModel
from korbert.tasks.files import ROLES, LabelledSpan, Role, TaskRow, TaskRows
from korbert.tasks.kinds.kind import (
    Baseline,
    Head,
    Morphemes,
    Prepared,
    TaskPrediction,
    TaughtKind,
    TeacherOutputs,
    checked_precision,
    score_named,
)
from korbert.tasks.kinds.sections import TokenClassificationSection
from korbert.tasks.metrics import token_classification as metrics
from korbert.tasks.metrics.statistics import RunArray, Score
from korbert.tasks.noise import SPACINGS, map_spans
from korbert.tasks.passages import Passage
from korbert.tasks.splits import Splits
from korbert.tasks.token_classification import (
    IGNORED,
    TaggedExamples,
    TaggedSpan,
    UnitTags,
    best_tags,
    bio_labels,
    by_text,
    encode_tags,
    eojeols,
    is_bio,
    make_examples,
    piece_scores,
    piece_tags,
    read_bio,
    sure_spans,
    tagged_spans,
    tagged_words,
    tagging_loss,
    unit_starts,
    units_of,
    word_tags,
    write_bio,
)
from korbert.tokenization import AnyTokenizer
from korbert.tokenization.pieces import Span
from korbert.training import Batch, Scoring


class TokenClassification(TaughtKind, frozen=True):
    """Labels of spans of characters, or of words.

    tags: of pieces; BIO tags for spans. units: what is labelled. For characters, targets and predictions are lists of
    [start, end, label], half-open, in characters. For words, they are lists with one label per word. rungs: what its
    model is made of, as in TokenClassificationSection. abstains_below: the probability in percent that a span needs to
    be given; 0: all are.
    """

    name: ClassVar[str] = "token-classification"
    roles: ClassVar[tuple[Role, ...]] = tuple(
        replace(ROLES[name], required=False) for name in ("text", "spans", "tokens", "tags")
    )
    operation: ClassVar[str] = "tag"
    cuts_vectors: ClassVar[bool] = True
    reads_all: ClassVar[bool] = True
    label_fields: ClassVar[tuple[str, ...]] = ("tags",)
    compared_fields: ClassVar[tuple[str, ...]] = ("units",)
    noise: ClassVar[Sequence[str]] = SPACINGS

    tags: tuple[str, ...]
    units: Literal["characters", "words"]
    stride: int
    rungs: tuple[str, ...] = Field(("encoder",), exclude_if=lambda rungs: rungs == ("encoder",))
    abstains_below: float = Field(0.0, exclude_if=not_)

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: TokenClassificationSection) -> Self:
        if not any(row.get("spans") is not None or row.get("tags") is not None for row in rows):
            raise CorpusError(
                "{files}: has neither spans with a text nor tags with tokens: name their columns", files=rows.files
            )
        # Tokens of one character each are characters: their tags are those of spans.
        tokens = [token for row in rows for token in row.get("tokens") or ()]
        units: Literal["characters", "words"] = "words" if any(len(token) > 1 for token in tokens) else "characters"
        seen = {tag for row in rows for tag in row.get("tags") or ()}
        if seen and all(tag.isdecimal() for tag in seen):
            rows.notes.append(
                Message(
                    "the tags are numbers ({tags}, ..) without names: entities need names such as B-PS and I-PS",
                    tags=", ".join(sorted(seen, key=int)[:5]),
                )
            )
        odd_tags = sorted(tag for tag in seen if not is_bio([tag]))
        if odd_tags and (units == "characters" or any(is_bio([tag]) for tag in seen - {"O"})):
            number = next(number for number, row in enumerate(rows) if odd_tags[0] in (row.get("tags") or ()))
            why = Message("as other tags are") if units == "words" else Message("as tags of characters have to be")
            raise CorpusError(
                "{place}: tag {tag!r} is not O, B-LABEL or I-LABEL, {why}: correct it",
                place=rows.places[number], tag=odd_tags[0], why=why,
            )  # fmt: skip
        stride = settings.max_length // 4 if settings.stride is None else settings.stride
        scores: tuple[str, ...] = ("accuracy", "macro_f1")
        tags = tuple(sorted(seen))
        if units == "characters" or is_bio(seen):
            labels = {tag[2:] for tag in seen - {"O"}} | {label for row in rows for *_, label in row.get("spans") or ()}
            tags = tuple(bio_labels(labels))
            scores = ("entity_f1", "entity_macro_f1")
            if units == "characters":
                scores += ("character_f1", "character_f1_without_o")
        if len(tags) < 2:
            raise CorpusError("no training row has a label: give rows with some")
        return cls.of_settings(settings, scores, tags=tags, units=units, stride=stride)

    def _text_and_words(self, row: TaskRow) -> tuple[str, list[Span] | None]:
        """The text of a row, and the span of each word; None: spans of characters are labelled.

        ValueError if the tokens of a row are not in its text.
        """
        tokens = row.get("tokens")
        text = row.get("text")
        if text is None:
            text = ("" if self.units == "characters" else " ").join(tokens or ())
        if self.units == "characters":
            return text, None
        if tokens is None:
            return text, eojeols(text)
        words: list[Span] = []
        end = 0
        for token in tokens:
            start = text.find(token, end)
            if start < 0:
                raise ValueError(
                    Message("token {token!r} does not follow in its text {text!r}", token=token, text=text[:40])
                )
            end = start + len(token)
            words.append((start, end))
        return text, words

    def description(self) -> Message:
        if not (labels := self._span_labels):
            return Message(
                "{count} label of words ({names})", "{count} labels of words ({names})",
                count=len(self.tags), names=", ".join(self.tags[:10]),
            )  # fmt: skip
        names = ", ".join(labels[:10])
        if self.units == "characters":
            return Message(
                "spans of characters with {count} label ({names})", "spans of characters with {count} labels ({names})",
                count=len(labels), names=names,
            )  # fmt: skip
        return Message(
            "spans of words with {count} label ({names})", "spans of words with {count} labels ({names})",
            count=len(labels), names=names,
        )  # fmt: skip

    @property
    def _span_labels(self) -> list[str]:
        """The labels of spans, in alphabetical order; none if single words are labelled."""
        return sorted({tag[2:] for tag in self.tags if tag != "O"}) if is_bio(self.tags) else []

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",) if self.units == "characters" else ("tokens",)

    def texts(self, row: TaskRow) -> list[str]:
        return [self._text_and_words(row)[0]]

    def target(self, row: TaskRow) -> list[Any]:
        text, words = self._text_and_words(row)
        tags = list(row.get("tags") or ())
        if words is not None:
            if len(tags) != len(words):
                raise ValueError(Message("{tags} tags for {words} words", tags=len(tags), words=len(words)))
            self._refuse_unknown(tags)
            return tags
        spans = row.get("spans")
        if spans is None:
            if len(tags) != len(text):
                raise ValueError(Message("{tags} tags for {chars} characters", tags=len(tags), chars=len(text)))
            spans = read_bio(tags)
        self._refuse_unknown(write_bio(map(tuple, spans), len(text)))
        return [[int(start), int(end), label] for start, end, label in spans]

    def with_noise(self, row: TaskRow, change: Callable[[str], str]) -> TaskRow:
        """Spans and words keep their letters; `change` changes spaces alone."""
        text, words = self._text_and_words(row)
        changed = change(text)
        if words is not None:
            tokens = [changed[start:end] for start, end in map_spans(words, text, changed)]
            return {**row, "text": changed, "tokens": tokens}
        spans = self.target(row)
        places = map_spans([(start, end) for start, end, _ in spans], text, changed)
        kept = [[*place, label] for place, (*_, label) in zip(places, spans, strict=True) if place[0] < place[1]]
        return {**row, "text": changed, "spans": kept, "tokens": None, "tags": None}

    def _refuse_unknown(self, tags: Sequence[str]) -> None:
        if unknown := [tag for tag in tags if tag not in self.tags]:
            raise ValueError(
                Message("label {label!r} is not one of training: {known}", label=unknown[0], known=", ".join(self.tags))
            )

    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        texts = [passage for (passage,) in passages]
        targets: list[NDArray[np.int64]] = []
        for row, passage in zip(rows, texts, strict=True):
            tags: Sequence[str | None] = [None] * len(passage.ids)
            if row.get("spans") is not None or row.get("tags") is not None:
                target = self.target(row)
                _, words = self._text_and_words(row)
                tags = piece_tags(target, passage) if words is None else word_tags(target, words, passage)
                if self.has_rungs:  # the units alone are a sequence
                    unit_pieces = set(units_of(words, passage).tolist())
                    tags = [tag if piece in unit_pieces else None for piece, tag in enumerate(tags)]
            targets.append(encode_tags(tags, self.tags))
        examples = make_examples(texts, targets, tokenizer, max_length=self.max_length, stride=self.stride)
        return Prepared(rows, examples, passages)

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> TokenClassificationModel:
        return TokenClassificationModel(config, self.tags, generator)

    def head(self) -> Head:
        return Head(len(self.tags), None)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        return tagging_loss(model, batch, in_sequence=self.has_rungs)

    def _scored(
        self, model: nn.Module, prepared: Prepared, *, as_characters: bool = False, **how: Unpack[Scoring]
    ) -> list[tuple[list[Span] | None, Passage, NDArray[np.float32]]]:
        """The words, the pieces, and the scores of the units of each row, (U, C) as in piece_scores.

        Without words (None), a unit is a piece with characters of its own. as_characters: treats all rows as rows
        without words.
        """
        examples = prepared.examples
        assert isinstance(examples, TaggedExamples)
        scores = piece_scores(model, examples, len(self.tags), in_sequence=self.has_rungs, **how)
        row_words = [None if as_characters else self._text_and_words(row)[1] for row in prepared.rows]
        texts = [passage for (passage,) in prepared.passages]
        rows = zip(row_words, texts, by_text(scores, examples.windows), strict=True)
        return [(words, passage, row_scores[units_of(words, passage)]) for words, passage, row_scores in rows]

    def _tagged(
        self, model: nn.Module, prepared: Prepared, *, as_characters: bool = False, **how: Unpack[Scoring]
    ) -> Iterator[tuple[list[Span] | None, Passage, UnitTags]]:
        """Words, pieces, and the tags of the units of each row. as_characters: as in `_scored`."""
        rows = self._scored(model, prepared, as_characters=as_characters, **how)
        unit_scores = [scores for *_, scores in rows]
        if isinstance(model, CrfModel):
            lengths = list(map(len, unit_scores))
            ends = np.cumsum(lengths)[:-1]
            decoded = (np.split(column, ends) for column in model.decode(np.concatenate(unit_scores), lengths))
            tagged = list(map(UnitTags, *decoded))
        else:
            tagged = [best_tags(scores, self.tags) for scores in unit_scores]
        for (words, passage, _), tags in zip(rows, tagged, strict=True):
            if self.abstains_below:
                tags = sure_spans(tags, self.tags, self.abstains_below / 100)
            yield words, passage, tags

    def teacher_outputs(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> TeacherOutputs:
        rows = self._scored(model, prepared, **how)
        counts = np.array([len(row_scores) for *_, row_scores in rows], np.int32)
        scores = np.concatenate([np.empty((0, len(self.tags)), np.float32), *(row_scores for *_, row_scores in rows)])
        shares = model.marginals(scores, counts.tolist()) if isinstance(model, CrfModel) else np.exp(scores)
        starts = [unit_starts(words, passage) for words, passage, _ in rows]
        return TeacherOutputs(shares.astype(np.float32), np.concatenate([np.empty(0, np.int32), *starts]), counts)

    def soft_targets(self, outputs: TeacherOutputs, teacher: Any, prepared: Prepared) -> NDArray[np.float32]:
        """Gives each unit the output of the teacher's unit that holds its first character.

        Where the teacher's unit begins earlier, B becomes I.
        """
        values = outputs.values[:, [teacher.tags.index(tag) for tag in self.tags]]
        inside = values @ self._continued
        ends = np.cumsum(outputs.units)
        targets_of_texts = []  # for all pieces of each text
        for row, (passage,), first, last in zip(
            prepared.rows, prepared.passages, ends - outputs.units, ends, strict=True
        ):
            words = self._text_and_words(row)[1]
            text_targets = np.zeros((len(passage.ids), len(self.tags)), np.float32)
            if last > first:
                starts = unit_starts(words, passage)
                places = first + np.searchsorted(outputs.starts[first:last], starts, side="right") - 1
                places = places.clip(first)
                begins = outputs.starts[places] == starts
                text_targets[units_of(words, passage)] = np.where(begins[:, None], values[places], inside[places])
            targets_of_texts.append(text_targets)
        examples = prepared.examples
        assert isinstance(examples, TaggedExamples)
        shares = np.zeros((len(examples.labels), len(self.tags)), np.float32)
        for number, (text, start, _, low, high) in enumerate(examples.windows):
            offset = int(examples.offsets[number]) + 1 - start
            shares[offset + low : offset + high] = targets_of_texts[text][low:high]
        return shares

    @property
    def _continued(self) -> NDArray[np.float32]:
        """(C, C): which tag each becomes where a span does not begin: B-X becomes I-X."""
        places = list(range(len(self.tags)))
        if is_bio(self.tags):
            inside = {f"B-{tag[2:]}": number for number, tag in enumerate(self.tags) if tag.startswith("I-")}
            places = [inside.get(tag, number) for number, tag in enumerate(self.tags)]
        return np.eye(len(self.tags), dtype=np.float32)[places]

    def with_soft_targets(self, prepared: Prepared, soft: NDArray[np.float32], labelled: int) -> Prepared:
        examples = prepared.examples
        assert isinstance(examples, TaggedExamples)
        is_labelled = np.repeat([window.text < labelled for window in examples.windows], np.diff(examples.offsets))
        has_output = np.asarray(soft.any(axis=1))
        has_label = is_labelled & (examples.labels != IGNORED)
        labels = np.where(has_output & ~is_labelled, soft.argmax(axis=1), examples.labels)
        targets = soft.copy()
        hard_targets = np.eye(len(self.tags), dtype=np.float32)[examples.labels[has_label]]
        targets[has_label] = np.where(
            has_output[has_label, None], (targets[has_label] + hard_targets) / 2, hard_targets
        )
        return replace(prepared, examples=replace(examples, labels=labels, shares=targets.astype(np.float16)))

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        predictions: list[TaskPrediction] = []
        for words, passage, tagged in self._tagged(model, prepared, **how):
            if words is None:
                spans = tagged_spans(passage, tagged, self.tags)
                predictions.append([[start, end, label] for start, end, label, _ in spans])
            else:
                labels = tagged_words(words, passage, tagged, self.tags)
                common = "O" if "O" in self.tags else self.tags[0]  # of a word without pieces
                predictions.append([label or common for label, _ in labels])
        return predictions

    def results(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[list[TaggedSpan]]:
        """The labelled spans of each text, in order; of words, unless the tags are BIO."""
        results = []
        in_spans = is_bio(self.tags)
        for words, passage, tagged in self._tagged(
            model, prepared, as_characters=in_spans and not self.has_rungs, **how
        ):
            if words is None:
                spans = tagged_spans(passage, tagged, self.tags)
            else:
                labels = tagged_words(words, passage, tagged, self.tags)
                pairs = list(zip(words, labels, strict=True))
                spans = [(*word, label, score) for word, (label, score) in pairs if label is not None]
                if in_spans:
                    tags = [label or "O" for label, _ in labels]
                    spans = [
                        (
                            words[first][0],
                            words[last - 1][1],
                            label,
                            float(np.mean([score for _, score in labels[first:last]])),
                        )
                        for first, last, label in read_bio(tags)
                    ]
            results.append(
                [TaggedSpan(start, end, label, passage.text[start:end], score) for start, end, label, score in spans]
            )
        return results

    def abstaining(self, precision: float) -> Self:
        if not is_bio(self.tags):
            raise SettingsError("{option}: each word has a tag: it is for labels of spans", option=argument("abstain"))
        return self.model_copy(update={"abstains_below": checked_precision(precision)})

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        """The most frequent tag of each word, or the spans of training looked up."""
        if self.units == "characters":
            dictionary = learn_dictionary((self.texts(row)[0], self.target(row)) for row in parts.train)
            spans = [[[*span] for span in look_up(self.texts(row)[0], dictionary)] for row in parts.scored]
            yield Baseline("dictionary", {}, spans)
            return
        counts: dict[str, Counter[str]] = {}
        for row in parts.train:
            for word, tag in zip(self._words(row), self.target(row), strict=True):
                counts.setdefault(word, Counter())[tag] += 1
        common = sum(counts.values(), Counter()).most_common(1)[0][0]
        best = {word: max(sorted(tag_counts), key=tag_counts.__getitem__) for word, tag_counts in counts.items()}
        tagged = [[best.get(word, common) for word in self._words(row)] for row in parts.scored]
        yield Baseline("dictionary", {}, tagged)

    def _words(self, row: TaskRow) -> list[str]:
        text, words = self._text_and_words(row)
        return [text[start:end] for start, end in words or ()]

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N, types + tags, 3): right, predicted and gold counts, of entities by label, then of units by tag."""
        gold = self._tags(rows, map(self.target, rows))
        predicted = self._tags(rows, predictions)

        def counts(spans_of: Callable[[list[str]], metrics.Spans], labels: Sequence[str]) -> RunArray:
            return metrics.span_counts(list(map(spans_of, gold)), list(map(spans_of, predicted)), labels)

        unit_counts = counts(lambda tags: [(unit, unit + 1, tag) for unit, tag in enumerate(tags)], self.tags)
        types = self._span_labels
        return np.concatenate([counts(read_bio, types), unit_counts], axis=1) if types else unit_counts

    def _tags(self, rows: Sequence[TaskRow], values: Iterable[Sequence[Any]]) -> list[list[str]]:
        """One tag per unit of each row. values: targets or predictions."""
        if self.units == "words":
            return list(map(list, values))
        texts = (self.texts(row)[0] for row in rows)
        return [write_bio(map(tuple, spans), len(text)) for spans, text in zip(values, texts, strict=True)]

    def row_scores(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        """Compares spans in any order, labels of words in order."""
        ordered = sorted if self.units == "characters" else list
        pairs = zip(rows, predictions, strict=True)
        return np.array(
            [ordered(self.target(row)) == ordered(prediction) for row, prediction in pairs], dtype=np.float64
        )

    def score(self, metric: str) -> Score:
        types = len(self._span_labels)
        outside = self.tags.index("O") if "O" in self.tags else None
        metric_function = score_named(_METRICS, metric)
        return lambda run, counts: metric_function(np.tensordot(counts, run, 1), types, outside)


_METRICS: dict[str, Callable[[NDArray[np.int64], int, int | None], float | None]] = {
    "entity_f1": lambda totals, types, outside: metrics.entity_f1(totals[:types]),
    "entity_macro_f1": lambda totals, types, outside: metrics.tag_f1(totals[:types]),
    "character_f1": lambda totals, types, outside: metrics.tag_f1(totals[types:], None),
    "character_f1_without_o": lambda totals, types, outside: metrics.tag_f1(totals[types:], outside),
    "macro_f1": lambda totals, types, outside: metrics.tag_f1(totals[types:], None),
    "accuracy": lambda totals, types, outside: (
        float(totals[types:, 0].sum() / totals[types:, 2].sum()) if totals[types:, 2].any() else None
    ),
}


def learn_dictionary(rows: Iterable[tuple[str, Iterable[tuple[int, int, str]]]]) -> dict[str, str]:
    """Surface -> label, from texts with their spans, in the order of the surfaces.

    A surface gets its most frequent label, the first by name among ties. It is left out if it occurs in the texts
    at least as often without a label, as a longest match (이 is a family name, but mostly a particle).
    """
    texts = [(text, [LabelledSpan(*span) for span in spans]) for text, spans in rows]
    surfaces = {text[start:end]: "" for text, spans in texts for start, end, _ in spans}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text, spans in texts:
        gold = {(start, end) for start, end, _ in spans}
        for start, end, label in spans:
            counts[text[start:end]][label] += 1
        for start, end, _ in look_up(text, surfaces):
            counts[text[start:end]][""] += (start, end) not in gold
    best = {surface: max(sorted(counts[surface]), key=counts[surface].__getitem__) for surface in sorted(counts)}
    return {surface: label for surface, label in best.items() if label}


def look_up(text: str, dictionary: Mapping[str, str]) -> list[LabelledSpan]:
    """Dictionary entries in a text, by longest match from the left, without overlaps."""
    lengths = sorted({len(surface) for surface in dictionary if surface}, reverse=True)
    entries: list[LabelledSpan] = []
    start = 0
    while start < len(text):
        ends = (start + length for length in lengths if start + length <= len(text))
        end = next((end for end in ends if text[start:end] in dictionary), 0)
        if end:
            entries.append(LabelledSpan(start, end, dictionary[text[start:end]]))
        start = end or start + 1
    return entries
