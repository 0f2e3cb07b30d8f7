"""A trained model in use: `korbert.load` opens a folder, `Model` embeds, predicts, fills, tags and answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray

from korbert import hub
from korbert.errors import ModelError, SettingsError
from korbert.folders import lasting
from korbert.modeling import (
    EmbeddingModel,
    PretrainingModel,
    QuestionAnsweringModel,
    TokenClassificationModel,
    load_model,
    save_model,
)
from korbert.modeling import Model as Network
from korbert.modeling.onnx_encoder import OnnxEncoder
from korbert.modeling.storage import read_config
from korbert.notebook import as_html
from korbert.processor import cores
from korbert.progress import Advance, track, untracked
from korbert.tasks.files import Row
from korbert.tasks.filling import Candidate, Expected, encode_gaps, expect, fill_gaps
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.base import Kind, Prediction, Prepared
from korbert.tasks.passages import MANY_TEXTS, encode_passages
from korbert.tasks.question_answering.answers import Answer
from korbert.tasks.token_classification.bio import is_bio
from korbert.tasks.token_classification.tagger import TaggedSpan
from korbert.texts import as_texts
from korbert.tokenization import AnyTokenizer, Encoding
from korbert.training.devices import choose_device, choose_precision, device_of
from korbert.training.scoring import NotFinite, Scoring
from korbert.training.settings import PrecisionName
from korbert.vectors.correction import Correction
from korbert.vectors.counts import PieceCounts
from korbert.vectors.encoder import digest_of, text_vectors, unit, vector_defaults, vector_settings, width_of
from korbert.vectors.names import Unit
from korbert.vectors.occurrences import Occurrence, occurrences_of
from korbert.vectors.parts import Parts, parts_of
from korbert.vectors.pooling import POOLINGS
from korbert.vectors.settings import Asked, VectorSettings

TEXTS_AT_ONCE = 4_096  # texts to embed whose pieces are in memory
_ROWS_AT_ONCE = 8_192  # rows to predict whose pieces are in memory; more give batches of more similar lengths
_LONG_ROWS_AT_ONCE = 1_024  # the same, of a kind that reads texts to their end
_MANY_WINDOWS = 32  # of texts to answer questions on: from here on, progress is shown

_REMEDIES = {  # operation -> which models can do it
    "answer": "questions need a model fine-tuned on answers (kind question-answering), such as a korquad artifact",
    "fill": "gaps need a pretrained model, such as model/ of a pretrain artifact",
    "predict": "predictions need a model fine-tuned by `korbert finetune`",
    "tag": "spans need a model fine-tuned on labels of spans or words (kind token-classification)",
}

_Vectors = NDArray[np.float32]


class Model:
    """A network with its tokenizer and the task that it was trained for.

        >>> model = korbert.load("korbert-mini-nsmc")
        >>> model.can
        ('predict', 'embed')
        >>> model.predict("정말 좋은 영화").label
        '긍정'
        >>> korbert.load("korbert-mini").fill("대한민국의 수도는 [MASK]이다")[0][0].piece != ""
        True

    A model is pickled with its weights, and shows its kind, its size and what it can do.

    Attributes:
        kind: The task; None: what the head of the network tells, nothing for a pretrained one.
        name: Of the model in errors, its folder.
        folder: Where it was loaded from; None for one that was not.
        precision: Of the matrix products where many texts are processed at once; a text to fill or to look at is
            always processed in fp32.
    """

    folder: str | None = None

    def __init__(
        self,
        network: Network,
        tokenizer: AnyTokenizer,
        kind: Kind | None = None,
        *,
        name: str = "the model",
        precision: PrecisionName = "fp32",
    ) -> None:
        self.network, self.tokenizer = network.eval(), tokenizer
        self.kind = _kind_of(network, {}, name) if kind is None else kind
        self.name, self.precision = name, precision

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", precision: PrecisionName = "fp32") -> Self:
        """The model in a folder: one written by korbert, or an artifact that has one.

        Args:
            folder: A folder, the name of a model in the box, or "hf:USER/NAME" on the Hub, also with @REVISION.
            device: "auto", "cpu" or "cuda".
            precision: "fp32", "bf16", or "auto", the faster one here.

        Raises:
            ModelError: The folder holds no model, or a tokenizer other than the one of training.
            SettingsError: bf16 is asked for on hardware without bf16 instructions.
        """
        chosen = choose_device(device)
        network, tokenizer = load_model(folder, device=chosen)
        kind = _kind_of(network, read_config(folder)["task"], str(folder))
        model = cls(network, tokenizer, kind, name=str(folder), precision=choose_precision(chosen, precision))
        model.folder = lasting(folder)
        return model

    def save(self, folder: str | Path) -> None:
        """Writes a model folder, which `load` opens. ModelError for an encoder in an ONNX file."""
        if isinstance(self.network.encoder, OnnxEncoder):
            raise ModelError(f"{self.name}: its encoder is in an ONNX file: copy the folder instead")
        save_model(folder, self.network, self.tokenizer, self.kind.task() if self.kind else None)

    def push_to_hub(self, repo: str, *, private: bool | None = None, message: str = "Upload the model") -> str:
        """Writes the model to a repository of the Hugging Face Hub, where `load("hf:USER/NAME")` finds it.

        Args:
            repo: USER/NAME; it is made if it is absent, and given a card if it has none.
            private: Whether a new repository is; None: as the account says.
            message: Of the commit.

        Returns:
            The address of the repository.

        Raises:
            ModelError: The Hub refuses it or cannot be reached.
            SettingsError: huggingface_hub is not installed.
        """
        with TemporaryDirectory(prefix="korbert-") as folder:
            self.save(folder)
            return hub.upload(Path(folder), repo, " and ".join(self.can), private=private, message=message)

    def __reduce__(self) -> tuple[Any, ...]:
        with TemporaryDirectory(prefix="korbert-") as folder:
            self.save(folder)
            paths = (path for path in Path(folder).rglob("*") if path.is_file())
            files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        return _unpickled, (type(self), files, self.name, self.folder, self.precision)

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self._what}, {self._size}; can {' and '.join(self.can)}>"

    def _repr_html_(self) -> str:
        facts = {"kind": self._what, "size": self._size, "can": ", ".join(self.can), "device": str(self.device)}
        return as_html(self.name, facts)

    @property
    def _what(self) -> str:
        """The kind of task; of a model without one, that of its network."""
        return self.kind.name if self.kind else self.network.kind

    @property
    def _size(self) -> str:
        config, count = self.network.config, sum(weights.numel() for weights in self.network.parameters())
        layers = f"{config.num_hidden_layers} layers of {config.hidden_size}"
        return f"{layers}, {config.vocab_size:,} pieces, {count / 1e6:,.1f} million parameters"

    @property
    def can(self) -> tuple[str, ...]:
        """The operations that the model supports: "predict", "tag", "answer", "fill", "embed"."""
        own = (self.kind.operation,) if self.kind else ("fill",) if isinstance(self.network, PretrainingModel) else ()
        return (*(name for name in own if name != "embed"), "embed")

    def require(self, operation: str) -> None:
        """ModelError, which names what the model is and what it can do, if it does not support the operation."""
        if operation not in self.can:
            raise self._refusal(operation)

    def _refusal(self, operation: str) -> ModelError:
        article = "an" if self._what[0] in "aeiou" else "a"
        return ModelError(
            f"{self.name}: is {article} {self._what} model: it can {' and '.join(self.can)}; {_REMEDIES[operation]}"
        )

    @property
    def task(self) -> Kind:
        """The kind of task. ModelError for a model that was not fine-tuned."""
        if self.kind is None:
            raise self._refusal("predict")
        return self.kind

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Role -> the columns of the file that it was fine-tuned on, as far as known."""
        return self.kind.columns if self.kind else {}

    @property
    def device(self) -> torch.device:
        return device_of(self.network)

    @property
    def max_length(self) -> int:
        """Pieces of a text that `embed` reads, special tokens included; the rest is cut off."""
        cut = self.kind is not None and self.kind.cuts_vectors
        return self.kind.max_length if self.kind and cut else int(self.network.config.max_position_embeddings)

    @property
    def scoring(self) -> Scoring:
        """Device and precision of batches."""
        return {"device": self.device, "precision": self.precision}

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Names the model in the error of numbers that are not finite."""
        try:
            yield
        except NotFinite as error:
            raise NotFinite(error.what, self.name) from None

    # --- predictions ---

    def predict(self, inputs: Any) -> Any:
        """Predicts one text, pair of texts or row, or a list for many, in order.

        Args:
            inputs: A string, a tuple of two, or a mapping by role ({"text": .., "choices": [..]}); or an iterable of
                these, also a table of pandas with a column for each role.

        Returns:
            By the kind of task a Label, Labels, Chosen, a number, or a SlotValue by description; a list for many.

        Raises:
            SettingsError: The inputs are something else.
            ModelError: The model cannot predict, or its scores are NaN.
        """
        self.require("predict")
        if isinstance(inputs, str | Mapping) or _is_pair(inputs):
            return self._results([self.row(inputs)])[0]
        if hasattr(inputs, "iloc") and hasattr(inputs, "columns"):  # it iterates over the names of its columns
            inputs = inputs.to_dict("records")
        if isinstance(inputs, bytes) or not isinstance(inputs, Iterable):
            raise SettingsError(f"{inputs!r:.40}: give a text, a pair of texts, a row, or a list of these")
        return self._results([self.row(one, f"[{index}]") for index, one in enumerate(inputs)])

    @overload
    def tag(self, texts: str) -> list[TaggedSpan]: ...  # type: ignore[overload-overlap]
    @overload
    def tag(self, texts: Iterable[str]) -> list[list[TaggedSpan]]: ...
    def tag(self, texts: str | Iterable[str]) -> list[TaggedSpan] | list[list[TaggedSpan]]:
        """The labelled spans of a text of any length, in order, or a list of such lists for many texts.

        With labels other than BIO tags, such as parts of speech, each eojeol gets a label.

        Raises:
            SettingsError: The texts are no strings.
            ModelError: The model cannot tag, or its scores are NaN.
        """
        self.require("tag")
        listed, single = as_texts(texts, "texts")
        results = self._results([{"text": text} for text in listed])
        return results[0] if single else results

    @overload
    def answer(self, question: str, context: str) -> Answer: ...  # type: ignore[overload-overlap]
    @overload
    def answer(self, question: Iterable[str], context: Iterable[str]) -> list[Answer]: ...
    def answer(self, question: str | Iterable[str], context: str | Iterable[str]) -> Answer | list[Answer]:
        """The best answer to a question on a context, or a list for equally many questions and contexts, in order.

        It is empty in a context of white space, and, if the model may decline to answer, where the score of no answer
        is above the best one's by more than the model's threshold.

        Args:
            question: A question, or several.
            context: The text that holds the answer, or one for each question.

        Returns:
            The Answer, with its text, its score and its span in the context; a list for many.

        Raises:
            SettingsError: One of them is no string, or they differ in number.
            ModelError: The model cannot answer, or its scores are NaN.
        """
        self.require("answer")
        questions, one_question = as_texts(question, "question")
        contexts, one_context = as_texts(context, "context")
        if one_context != one_question or len(contexts) != len(questions):
            asked = "one string" if one_question else len(questions)
            read = "one string" if one_context else len(contexts)
            raise SettingsError(f"question is {asked} and context {read}: give two strings, or lists of one length")
        pairs = zip(questions, contexts, strict=True)
        answers: list[Answer] = []
        for part in self._parts([{"question": question, "context": context} for question, context in pairs]):
            count = len(part.examples)
            with track("answer", count, "windows") if count > _MANY_WINDOWS else nullcontext(untracked) as advance:
                answers += self.results(part, advance)
        return answers[0] if one_context else answers

    def row(self, value: Any, place: str = "") -> Row:
        """Converts a text, a pair or a row to a row by role. SettingsError if the task cannot read it."""
        kind = self.task
        row: Row = {"text": value} if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else {}
        if _is_pair(value):
            if "pair" not in kind.needs:
                raise SettingsError(f"{value!r:.40}{place}: is a pair of texts: this model takes {kind.about()}")
            row = {"text": value[0], "pair": value[1]}
        try:
            texts = kind.texts(row)
        except (ValueError, KeyError, TypeError) as error:
            why = f"has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
            raise SettingsError(f"{value!r:.40}{place}: {why}: this model takes {kind.about()}") from None
        if not texts or not all(isinstance(text, str) for text in texts):
            raise SettingsError(f"{value!r:.40}{place}: is not a row of texts: this model takes {kind.about()}")
        return row

    def predict_rows(self, rows: Sequence[Row]) -> list[Prediction]:
        """Predictions for rows by role, of any kind of task, as JSON values. Targets may be absent.

        ValueError for a row without its texts, ModelError if the model's scores are NaN.
        """
        kind, predictions = self.task, list[Prediction]()
        with self._named():
            for part in self._parts(rows):
                predictions += kind.predict(self.network, part, **self.scoring)
        return predictions

    def prepared(self, rows: Sequence[Row]) -> Prepared:
        """Encodes the texts of rows by role, each once, as examples."""
        kind = self.task
        texts = list(dict.fromkeys(text for row in rows for text in kind.texts(row)))
        passages = dict(zip(texts, encode_passages(self.tokenizer, texts, workers=cores()), strict=True))
        return kind.prepare(rows, passages, self.tokenizer)

    def results(self, prepared: Prepared, advance: Advance = untracked) -> list[Any]:
        """As `predict`, `tag` or `answer`, for rows already encoded. advance: called after each batch."""
        how: Scoring = {**self.scoring, "advance": advance}
        with self._named():
            return self.task.results(self.network, prepared, **how)

    def _parts(self, rows: Sequence[Row]) -> Iterator[Prepared]:
        size = _LONG_ROWS_AT_ONCE if self.task.reads_all else _ROWS_AT_ONCE
        size = max(1, len(rows)) if self.task.compares_rows else size
        for start in range(0, len(rows), size):
            yield self.prepared(rows[start : start + size])

    def _results(self, rows: Sequence[Row]) -> list[Any]:
        return [result for part in self._parts(rows) for result in self.results(part)]

    # --- gaps ---

    @overload
    def fill(self, texts: str, top: int = 5) -> list[list[Candidate]]: ...  # type: ignore[overload-overlap]
    @overload
    def fill(self, texts: Iterable[str], top: int = 5) -> list[list[list[Candidate]]]: ...
    def fill(self, texts: str | Iterable[str], top: int = 5) -> list[list[Candidate]] | list[list[list[Candidate]]]:
        """The `top` pieces for each [MASK] of a text, most probable first; a list for many texts.

        '오늘 [MASK] 정말 좋다' -> [[Candidate('날씨', ...), ...]].

        Raises:
            SettingsError: The texts are no strings, or `top` is below 1.
            ModelError: A text has no [MASK], or more pieces than the model has positions; the model cannot fill gaps,
                or its scores are NaN.
        """
        self.require("fill")
        listed, single = as_texts(texts, "texts")
        if top < 1:
            raise SettingsError(f"top {top}: take at least 1")
        encodings = ((text, encode_gaps(self._filler, self.tokenizer, text)) for text in listed)
        filled = [gaps for text, encoding in encodings for gaps in self.fill_encoded([text], [encoding], top)]
        return filled[0] if single else filled

    def fill_encoded(
        self, texts: Sequence[str], encodings: Sequence[Encoding], top: int
    ) -> list[list[list[Candidate]]]:
        """As `fill`, for texts already encoded, each with a [MASK], in one forward pass."""
        with self._named():
            return fill_gaps(self._filler, self.tokenizer, texts, encodings, top)

    def expect(self, text: str, pair: str | None = None, top: int = 5) -> list[Expected | None]:
        """Predictions at each position of a text or pair, masked one piece at a time; None for special tokens.

        Other pieces stay visible, even those of the same word. ModelError as `fill`.
        """
        with self._named():
            return expect(self._filler, self.tokenizer, text, pair, top)

    @property
    def _filler(self) -> PretrainingModel:
        if not isinstance(self.network, PretrainingModel):
            raise self._refusal("fill")
        return self.network

    # --- vectors ---

    @property
    def vector_defaults(self) -> Asked:
        """The `embed` settings that the model was trained with, as far as they differ from VectorSettings."""
        return vector_defaults(self.network)

    def vector_settings(self, **asked: Unpack[Asked]) -> VectorSettings:
        """Merges settings with the model's defaults. SettingsError for values that the model does not support."""
        return vector_settings(self.network, asked)

    def width(self, settings: VectorSettings) -> int:
        """Numbers per vector, before it is corrected and cut."""
        return width_of(self.network, settings)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over everything that determines vectors: config, encoder weights, tokenizer, maximum length."""
        return digest_of(self.network, self.tokenizer, self.max_length)

    @cached_property
    def piece_counts(self) -> PieceCounts:
        """The counts in the model's folder, for "idf" and "bm25". SettingsError if there are none."""
        return PieceCounts.find(None, self.name, self.tokenizer)

    def embed(
        self,
        texts: str | Iterable[str],
        batch_size: int = 64,
        *,
        counts: PieceCounts | None = None,
        correction: Correction | None = None,
        **asked: Unpack[Asked],
    ) -> _Vectors:
        """The vector of a text, (D,), or of many texts, (N, D), in order. Any text is valid, even an empty one.

        In `modern` encoders the outputs of layers below the last are not normalized: each layer normalizes its input.

        Args:
            texts: A text, or several.
            batch_size: Texts at once in the model; up to rounding, vectors do not depend on it.
            counts: Of the pieces, for the poolings "idf" and "bm25"; None: those in the model's folder.
            correction: Applied before vectors are cut and normalized.
            **asked: Fields of VectorSettings: layer, mix, pooling, special_tokens, normalize, size. Those left out are
                the model's defaults.

        Raises:
            SettingsError: The texts are no strings, or the model does not support a setting.
            ModelError: A vector is not finite.
        """
        listed, single = as_texts(texts, "texts")
        vectors = np.concatenate(list(self.stream(listed, batch_size, counts=counts, correction=correction, **asked)))
        return vectors[0] if single else vectors

    def stream(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        *,
        counts: PieceCounts | None = None,
        correction: Correction | None = None,
        **asked: Unpack[Asked],
    ) -> Iterator[_Vectors]:
        """As embed, for any number of texts in constant memory: (n, D), up to 4,096 at a time; (0, D) for no texts."""
        settings, left, first = self.vector_settings(**asked), iter(texts), True
        while (part := list(islice(left, TEXTS_AT_ONCE))) or first:
            first = False
            workers = cores() if len(part) > MANY_TEXTS else 0
            encodings = self.tokenizer.encode_batch(part, max_length=self.max_length, workers=workers)
            yield self.pooled(encodings, settings, batch_size, counts=counts, correction=correction)

    def pooled(
        self,
        encodings: Sequence[Encoding],
        settings: VectorSettings,
        batch_size: int = 64,
        *,
        counts: PieceCounts | None = None,
        correction: Correction | None = None,
    ) -> _Vectors:
        """As embed, for texts already encoded, truncated to `max_length`: (N, D), computed shortest first."""
        if POOLINGS[settings.pooling].counts and counts is None:
            counts = self.piece_counts
        with self._named():
            return text_vectors(
                self.network, self.tokenizer, encodings, settings, batch_size,
                counts=counts, correction=correction, **self.scoring,
            )  # fmt: skip

    @overload
    def similarity(self, a: str, b: str, **asked: Unpack[Asked]) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def similarity(self, a: str | Iterable[str], b: str | Iterable[str], **asked: Unpack[Asked]) -> _Vectors: ...
    def similarity(self, a: str | Iterable[str], b: str | Iterable[str], **asked: Unpack[Asked]) -> float | _Vectors:
        """Cosine of the vectors of a and b, -1 to 1; of lists, (N, M): that of each text of a with each of b.

        A single text and a list give (M,) or (N,).

        Args:
            **asked: As in `embed`.
        """
        first, second = (unit(self.embed(texts, **asked)) for texts in (a, b))
        cosines = first @ second.T
        return float(cosines) if isinstance(a, str) and isinstance(b, str) else np.asarray(cosines)

    @overload
    def parts(self, texts: str, unit: Unit = "morpheme", **asked: Unpack[Asked]) -> Parts: ...  # type: ignore[overload-overlap]
    @overload
    def parts(self, texts: Iterable[str], unit: Unit = "morpheme", **asked: Unpack[Asked]) -> list[Parts]: ...
    def parts(self, texts: str | Iterable[str], unit: Unit = "morpheme", **asked: Unpack[Asked]) -> Parts | list[Parts]:
        """The vectors of the pieces, morphemes or eojeols of a text, with their spans; a list for many texts.

        asked: layer and mix, as in `embed`. Parts beyond max_length are missing; one cut by max_length has the mean of
        its pieces before the cut.
        """
        listed, single = as_texts(texts, "texts")
        settings = self.vector_settings(**asked)
        with self._named():
            parts = parts_of(self.network, self.tokenizer, listed, unit, settings, self.max_length)
        return parts[0] if single else parts

    def occurrences(self, word: str, texts: Iterable[str], **asked: Unpack[Asked]) -> list[Occurrence]:
        """The occurrences of a word in texts, with their vectors: see korbert.vectors.occurrences."""
        listed, _ = as_texts(texts, "texts")
        settings = self.vector_settings(**asked)
        with self._named():
            return occurrences_of(self.network, self.tokenizer, word, listed, settings, self.max_length)


def load(folder: str | Path, device: str = "auto", precision: PrecisionName = "fp32") -> Model:
    """The model in a folder, in the box, or on the Hub: "hf:USER/NAME".

        >>> korbert.load("korbert-mini-ner").tag("세종대왕은 1443년에 한글을 만들었다")[0].text
        '세종대왕'

    Its files are checked against their recorded hashes. What the Hub has is loaded from its cache when there is no
    network.

    Args:
        folder: As in Model.load.
        device: "auto", "cpu" or "cuda".
        precision: "fp32", "bf16", or "auto", the faster one here.

    Returns:
        The model, which `can` do what its task is.

    Raises:
        ModelError: There is no such model, or its files were changed.
        SettingsError: The device, or the precision on this hardware, is not there.
    """
    return Model.load(folder, device, precision)


def _unpickled(
    kind: type[Model], files: Mapping[str, bytes], name: str, folder: str | None, precision: PrecisionName
) -> Model:
    with TemporaryDirectory(prefix="korbert-") as aside:
        for path, content in files.items():
            (Path(aside) / path).parent.mkdir(exist_ok=True)
            (Path(aside) / path).write_bytes(content)
        model = kind.load(aside, precision=precision)
    model.name, model.folder = name, folder
    return model


def _kind_of(network: Network, task: Mapping[str, Any], folder: str) -> Kind | None:
    """The task in config.json; if it names no kind, what the head of the network tells."""
    if "kind" in task:
        return kind_of_task(task, folder)
    longest = int(network.config.max_position_embeddings)
    usual: dict[str, Any]
    if isinstance(network, QuestionAnsweringModel):
        usual = {"kind": "question-answering", "metrics": ("f1",)}
    elif isinstance(network, EmbeddingModel):
        usual = {"kind": "embedding", "metrics": ("spearman",), "max_length": longest, "learns": "scores"}
    elif isinstance(network, TokenClassificationModel):
        usual = {
            "kind": "token-classification",
            "metrics": ("accuracy",),
            "max_length": longest,
            "tags": network.labels,
        }
        usual |= {"units": "characters" if is_bio(network.labels) else "words"}
        usual |= {"stride": task.get("max_length", longest) // 4}
    else:
        return None
    return kind_of_task({**usual, **task}, folder)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(text, str) for text in value)
