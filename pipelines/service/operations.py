"""The operations of a model: how items become rows of pieces, and a batch of rows becomes answers.

Answers equal those of the model's own methods (`embed`, `fill`, `predict`, `tag`, `answer`) up to rounding.
"""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

import korbert
from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.model import Model
from korbert.modeling import OnnxEncoder
from korbert.pipelines.inference.embedding import HAS_SURROGATE
from korbert.pipelines.inference.input_records import Record, cell_text, records
from korbert.pipelines.inference.predicting import RecordReader, json_of
from korbert.pipelines.inference.tokenizing import token_rows
from korbert.pipelines.reports.look.data import look_data
from korbert.pipelines.service.analysis import AnalysisProcess, RemoteAnalyzer
from korbert.pipelines.service.batching import Operation, TokenizedItem
from korbert.pipelines.service.limits import CHARS_A_PIECE, Limits
from korbert.pipelines.service.refusals import Refusal
from korbert.pipelines.service.shared import Served
from korbert.search import Index
from korbert.search.texts import fields_to_json, is_encodable
from korbert.system import JsonObject
from korbert.tasks.files import TaskRow
from korbert.tasks.filling import Candidate
from korbert.tasks.kinds.kind import Kind
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.passages import Passage, encode_passages
from korbert.tokenization import AnyTokenizer, Encoding, Tokenizer, encode_beginnings, first_pieces
from korbert.training import InferencePrecision
from korbert.vectors import SearchWay, VectorSettings

_MOST_CANDIDATES = 1_000  # per text: each candidate comes with the whole text
_RESULTS_A_TEXT = 10  # candidates or hits of a request, for each of the texts that it may have
_MOST_ROWS = 1_000  # of a file
_CHARS_A_BYTE = 4  # of the largest body: the characters of its rows, with the name of each column
_MOST_SEEN = 1_024  # pieces: the weights grow with their square

T = TypeVar("T")
SearchArgs = tuple[int, SearchWay | None, str | None]  # top, way, where


def operations_of(model: Model, limits: Limits) -> dict[str, Operation]:
    """The operations of a model by name: tokenize, embed, and as supported fill, predict, answer, attention."""
    operations = {"tokenize": tokenize_operation(model.tokenizer, limits), "embed": embed_operation(model)}
    if "fill" in model.can:
        operations["fill"] = fill_operation(model)
    elif isinstance(model.kind, QuestionAnswering):
        operations["answer"] = answer_operation(model, model.kind, limits)
    elif model.kind is not None and {"predict", "tag"} & set(model.can):
        operations["predict"] = predict_operation(model, model.kind, limits)
    if not isinstance(model.network.encoder, OnnxEncoder):  # which exposes no attention
        operations["attention"] = attention_operation(model, limits)
    return operations


def tokenize_operation(tokenizer: AnyTokenizer, limits: Limits) -> Operation:
    """(text, whether to read special tokens such as [MASK]) -> {"pieces": rows of token_rows}"""

    def row(item: tuple[str, bool]) -> TokenizedItem:
        text, special_tokens = item
        _check_chars(text, limits.pieces)
        pieces = tokenizer.encode_pieces(text, special_tokens=special_tokens)
        return TokenizedItem(len(pieces), {"pieces": list(token_rows(pieces))})

    return Operation(_each(row), None)


def embed_operation(model: Model) -> Operation:
    """(text, its VectorSettings) -> its vector, (D,) float32. Texts of equal settings go through the model together."""

    def tokenize(items: Sequence[tuple[str, VectorSettings]]) -> list[TokenizedItem]:
        encodings = encode_beginnings(model.tokenizer, [text for text, _ in items], model.max_length)
        return [
            TokenizedItem(len(encoding), (encoding, settings))
            for encoding, (_, settings) in zip(encodings, items, strict=True)
        ]

    def forward(rows: Sequence[tuple[Encoding, VectorSettings]]) -> list[NDArray[np.float32]]:
        return _by_settings(rows, lambda batch, settings: model.pool_encoded(batch, settings, batch_size=len(batch)))

    return Operation(tokenize, forward)


def search_operation(index: Index, limits: Limits) -> Operation:
    """(text, (top, way, where)) -> {"hits": [hit, ..]}; runs on the model's thread, as the index embeds the text."""

    def row(refusals: Mapping[SearchArgs, Refusal], item: tuple[str, SearchArgs]) -> TokenizedItem:
        text, settings = item
        if not text.strip():
            raise Refusal(422, Message("is blank: give words to search for"))
        if settings in refusals:
            raise refusals[settings]
        _check_chars(text, limits.pieces)
        return TokenizedItem(len(text) // CHARS_A_PIECE + 2, item)

    def tokenize(items: Sequence[tuple[str, SearchArgs]]) -> list[TokenizedItem | Refusal]:
        refusals = {}
        for settings in {settings for _, settings in items}:  # those of a request are equal
            try:
                index.check_search(*settings[1:])
            except SettingsError as error:
                refusals[settings] = Refusal(422, error.message)
        return _each(partial(row, refusals))(items)

    def forward(rows: Sequence[tuple[str, SearchArgs]]) -> list[JsonObject]:
        try:
            results = _by_settings(rows, lambda texts, settings: index.search(texts, *settings))
        except SettingsError as error:  # a condition that fails on a text of the index, such as abs(-2^63)
            raise Refusal(422, error.message) from None
        return [{"hits": [hit.as_json() for hit in hits]} for hits in results]

    return Operation(tokenize, forward)


def _by_settings(rows: Sequence[tuple[Any, Any]], compute: Callable[[list[Any], Any], Iterable[Any]]) -> list[Any]:
    """Computes an answer for each (item, settings), in order; items of equal settings are computed together."""
    answers: list[Any] = [None] * len(rows)
    for settings in dict.fromkeys(row_settings for _, row_settings in rows):
        numbers = [number for number, (_, row_settings) in enumerate(rows) if row_settings == settings]
        for number, answer in zip(numbers, compute([rows[number][0] for number in numbers], settings), strict=True):
            answers[number] = answer
    return answers


def check_results(results: int, limits: Limits) -> None:
    """Refusal 413 for a request that asks for more candidates or hits than are made, each of which has its text."""
    most = max(_MOST_CANDIDATES, _RESULTS_A_TEXT * limits.texts)
    if results > most:
        raise Refusal(
            413,
            Message(
                "top: the texts together ask for {results:,} results, at most {most:,} are given: lower top, or send "
                "fewer texts",
                results=results,
                most=most,
            ),
            "top",
        )


def fill_operation(model: Model) -> Operation:
    """(text, number of candidates) -> {"gaps": [[candidate, ..], ..]}"""

    def row(item: tuple[str, int]) -> TokenizedItem:
        text, top = item
        encoding = _encode_single_pass(model, text, None)
        if model.tokenizer.mask_id not in encoding.input_ids:
            raise Refusal(422, Message("has no [MASK]: write [MASK] in place of the word to predict"))
        gaps = encoding.input_ids.count(model.tokenizer.mask_id)
        if gaps * top > _MOST_CANDIDATES:
            raise Refusal(
                413,
                Message(
                    "asks for {gaps:,} candidates, at most {most_candidates:,} are made: lower top",
                    gaps=gaps * top,
                    most_candidates=_MOST_CANDIDATES,
                ),
            )
        return TokenizedItem(len(encoding), ((text, encoding), top))

    def fill(batch: Sequence[tuple[str, Encoding]], top: int) -> list[list[list[Candidate]]]:
        texts, encodings = zip(*batch, strict=True)
        return model.fill_encoded(texts, encodings, top)

    def forward(rows: Sequence[tuple[tuple[str, Encoding], int]]) -> list[JsonObject]:
        # A request for few candidates, but of many gaps, does not get as many as another one in the batch wants.
        filled = _by_settings(rows, fill)
        return [{"gaps": [list(map(vars, candidates)) for candidates in gaps]} for gaps in filled]

    return Operation(_each(row), forward)


def predict_operation(model: Model, kind: Kind, limits: Limits) -> Operation:
    """Text, or row by role -> its prediction: an object, {"prediction": value}, or {"spans": [span, ..]}."""

    def row(item: str | JsonObject) -> TokenizedItem:
        if kind.operation == "tag" and not isinstance(item, str):
            raise Refusal(422, Message("is not a string: this model takes texts"))
        try:
            by_role = model.row(item)
        except SettingsError:
            raise Refusal(
                422,
                Message(
                    "cannot be read: this model takes {needs}: {about}",
                    needs=", ".join(kind.needs),
                    about=kind.description(),
                ),
            ) from None
        passages = []
        for text in kind.texts(by_role):
            if kind.reads_all:
                passages.append(_encode_whole(model.tokenizer, text, limits))
            else:
                passages.append(Passage.of_pieces(text, first_pieces(model.tokenizer, text, kind.max_length)))
        # An example is a text alone, or with one of the others: a second text, choices, slots. Windows count as one.
        size, *other_sizes = (len(passage.ids) for passage in passages)
        examples = [size + other + model.tokenizer.frame.special for other in other_sizes] or [size + 2]
        longest = limits.pieces if kind.reads_all else kind.max_length
        pieces = sum(min(longest, length) for length in examples)
        if not kind.reads_all and pieces > limits.pieces:
            raise Refusal(
                413,
                Message(
                    "has {pieces:,} pieces with its choices, at most {pieces2:,} are read: send fewer",
                    pieces=pieces,
                    pieces2=limits.pieces,
                ),
            )
        return TokenizedItem(pieces, (by_role, passages))

    return Operation(_each(row), partial(_results, model))


def rows_of(model: Model, content: bytes, name: str, text: str | None, limits: Limits) -> list[JsonObject]:
    """Reads the rows of a file as `korbert predict` does, each with its `fields`: all its columns, as texts.

    name: the name of the file. text: its column of texts; None: one with a usual name. Refusal 413 for too many rows,
    and for rows that would be much larger than the file, which may be compressed.
    """
    reading = RecordReader.of(model, {"text": [text]} if text else None)
    batches = records(io.BytesIO(content), name, "auto", reading.wanted, every_column=True)
    most_chars = _CHARS_A_BYTE * limits.body_bytes
    num_chars = 0
    file_records = []
    for record in islice(chain.from_iterable(batches), _MOST_ROWS + 1):
        num_chars += sum(len(name) + len(cell_text(cell) or "") for name, cell in record.fields.items())
        if num_chars > most_chars:
            raise Refusal(
                413,
                Message("content: its rows have more than {most:,} characters: use korbert predict", most=most_chars),
                "content",
            )
        is_valid = is_encodable(fields_to_json(record.fields))
        file_records.append(record if is_valid else Record(record.line, error=HAS_SURROGATE))
    if len(file_records) > _MOST_ROWS:
        raise Refusal(
            413, Message("content: has more than {most:,} rows: use korbert predict", most=_MOST_ROWS), "content"
        )
    fields = ({name: cell_text(cell) for name, cell in record.fields.items()} for record in file_records)
    return [{**row, "fields": cells} for row, cells in zip(reading.rows(file_records), fields, strict=True)]


def answer_operation(model: Model, kind: QuestionAnswering, limits: Limits) -> Operation:
    """(question, context) -> {"answer", "start", "end", "score"}, and "no_answer_score" if the model may decline."""

    def row(item: tuple[str, str]) -> TokenizedItem:
        question, context = item
        beginning = Passage.of_pieces(question, first_pieces(model.tokenizer, question, kind.max_query_pieces))
        passage = _encode_whole(model.tokenizer, context, limits)
        pieces = len(beginning.ids) + len(passage.ids)
        return TokenizedItem(pieces, ({"question": question, "context": context}, [beginning, passage]))

    return Operation(_each(row), partial(_results, model))


def _results(model: Model, rows: Sequence[tuple[TaskRow, Sequence[Passage]]]) -> list[JsonObject]:
    """The results of rows as JSON objects. rows: the texts by role, and the same texts as passages."""
    by_role, passages = zip(*rows, strict=True)
    return list(map(json_of, model.results_of(by_role, passages)))


def attention_operation(model: Model, limits: Limits) -> Operation:
    """(text, pair or None, whether to attribute) -> the data of the page.

    Runs on the model's thread, as it adds hooks to the model.
    """

    def row(item: tuple[str, str | None, bool]) -> TokenizedItem:
        text, pair, _ = item
        if "tag" in model.can or ("answer" in model.can and pair is not None):  # a long text: without attention
            pieces = sum(
                len(_encode_whole(model.tokenizer, side, limits).ids) for side in (text, pair) if side is not None
            )
        elif (pieces := len(_encode_single_pass(model, text, pair))) > _MOST_SEEN:
            raise Refusal(
                413,
                Message(
                    "has {pieces:,} pieces, the attention of {most_seen:,} can be seen: shorten it",
                    pieces=pieces,
                    most_seen=_MOST_SEEN,
                ),
            )
        return TokenizedItem(pieces, item)

    return Operation(
        _each(row), lambda items: [look_data(model, text, pair, attributed=wanted) for text, pair, wanted in items]
    )


def _each(row: Callable[[T], TokenizedItem]) -> Callable[[Sequence[T]], list[TokenizedItem | Refusal]]:
    """Tokenizes items one by one. row: may raise Refusal."""

    def tokenize(items: Sequence[T]) -> list[TokenizedItem | Refusal]:
        rows: list[TokenizedItem | Refusal] = []
        for item in items:
            try:
                rows.append(row(item))
            except Refusal as refusal:
                rows.append(refusal)
        return rows

    return tokenize


def _encode_single_pass(model: Model, text: str, pair: str | None) -> Encoding:
    """Encodes a text or pair, with special tokens, for a single pass of the model. Refusal 413 if it is too long."""
    longest: int = model.network.config.max_position_embeddings
    for side in filter(None, (text, pair)):
        _check_chars(side, longest)
    encoding = model.tokenizer.encode(text, pair, special_tokens=True)
    if len(encoding) > longest:
        raise Refusal(
            413,
            Message(
                "has {num_encoding:,} pieces, the model reads {longest:,}: shorten it",
                num_encoding=len(encoding),
                longest=longest,
            ),
        )
    return encoding


def _encode_whole(tokenizer: AnyTokenizer, text: str, limits: Limits) -> Passage:
    """Encodes a text that the model reads completely, in windows if necessary. Refusal 413 if it is too long."""
    _check_chars(text, limits.pieces)
    (passage,) = encode_passages(tokenizer, [text])
    if len(passage.ids) > limits.pieces:
        raise Refusal(
            413,
            Message(
                "has {num_ids:,} pieces, the service accepts {pieces:,}: split it",
                num_ids=len(passage.ids),
                pieces=limits.pieces,
            ),
        )
    return passage


def _check_chars(text: str, pieces: int) -> None:
    if len(text) > CHARS_A_PIECE * pieces:
        raise Refusal(
            413,
            Message(
                "has {num_text:,} characters, at most {chars_a_piece:,} are accepted: split it",
                num_text=len(text),
                chars_a_piece=CHARS_A_PIECE * pieces,
            ),
        )


def load_all(
    folders: Mapping[str, Path],
    index: Path | None,
    device: str,
    precision: InferencePrecision,
    limits: Limits,
    process: AnalysisProcess,
) -> tuple[dict[str, Served], Served | None]:
    """Loads and warms up the models, and the index, which was built with one of them. folders: name -> model.

    process: where Kiwi runs (analysis.py). Raises the ModelError and ArtifactError of the loaders.
    """
    models: dict[str, Served] = {}
    for name, folder in folders.items():
        model = korbert.load(folder, device, precision)
        network = model.network
        # The weights are mapped from the file: writing to it in place would change the model, or crash the process.
        for tensor in (*network.parameters(), *network.buffers()):
            tensor.data = tensor.data.clone()
        if isinstance(tokenizer := model.tokenizer, Tokenizer):
            tokenizer.analyzer = RemoteAnalyzer(tokenizer.analyzer_options, process)
        kind = model.kind.name if model.kind else str(network.kind)
        model.embed("안녕하세요")  # the first pass is slower than later ones
        models[name] = Served(name, kind, model, operations_of(model, limits), model.kind.needs if model.kind else ())
    if index is None:
        if all(served.model.precision == "int8" for served in models.values()):
            # PyTorch only computes means of vectors here, which takes longer in threads: Kiwi and HTTP have the cores.
            torch.set_num_threads(1)
        return models, None
    opened = Index.load(index, [served.model for served in models.values()])
    return models, Served(index.name, "index", opened.model, {"similar": search_operation(opened, limits)})
