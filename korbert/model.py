"""A trained model in use: `korbert.load` opens a folder, `Model` embeds, predicts, fills, tags and answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, overload

from korbert import hub
from korbert.embedder import Embedder, as_texts
from korbert.errors import ModelError, SettingsError
from korbert.folders import lasting
from korbert.messages import Message, reason
from korbert.modeling import OnnxEncoder, load_model, models, read_config, save_model
from korbert.notebook import as_html
from korbert.records import is_empty, list_rows
from korbert.system import cores, track, untracked
from korbert.tasks.files import ROLES, TaskRow, row_of, text_or_empty
from korbert.tasks.filling import Candidate, Expected, encode_gaps, expect, fill_gaps
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.kind import Kind, Prepared, TaskPrediction
from korbert.tasks.passages import Passage, encode_passages
from korbert.tasks.question_answering import Answer
from korbert.tasks.token_classification import TaggedSpan
from korbert.tokenization import AnyTokenizer, Encoding
from korbert.training import InferencePrecision, Scoring, choose_device
from korbert.vectors import Side

_ROWS_AT_ONCE = 8_192  # rows to predict whose pieces are in memory; more give batches of more similar lengths
_LONG_ROWS_AT_ONCE = 1_024  # the same, of a kind that reads texts to their end
_MANY_WINDOWS = 32  # of texts to answer questions on: from here on, progress is shown

_REMEDIES = {  # operation -> which models can do it
    "answer": Message(
        "questions need a model fine-tuned on answers (kind question-answering), such as a korquad artifact"
    ),
    "fill": Message("gaps need a pretrained model, such as model/ of a pretrain artifact"),
    "predict": Message("predictions need a model fine-tuned by `korbert finetune`"),
    "tag": Message("spans need a model fine-tuned on labels of spans or words (kind token-classification)"),
}


class Model(Embedder):
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
        kind: The task; None for a network that was not fine-tuned.
        name: Of the model in errors, its folder.
        folder: Where it was loaded from; None for one that was not.
        precision: Of the matrix products where many texts are processed at once; a text to fill or to look at is
            always processed in fp32.
    """

    folder: str | None = None

    def __init__(
        self,
        network: models.Network,
        tokenizer: AnyTokenizer,
        kind: Kind | None = None,
        *,
        name: str = "the model",
        precision: InferencePrecision = "fp32",
    ) -> None:
        super().__init__(network, tokenizer, name, precision)
        self.kind = kind

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", precision: InferencePrecision = "fp32") -> Self:
        """The model in a folder, as `korbert.load` opens it."""
        chosen = choose_device(device)
        network, tokenizer = load_model(folder, device=chosen)
        task = read_config(folder)["task"]
        kind = kind_of_task(task, str(folder)) if "kind" in task else None
        model = cls(network, tokenizer, kind, name=str(folder), precision=precision)
        model.folder = lasting(folder)
        return model

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes a model folder, which `load` opens: whole, or not at all.

        Args:
            folder: A new name, or an empty folder.
            overwrite: Replace the model that is there.

        Raises:
            SettingsError: The folder holds something, or with `overwrite` anything but a model of korbert.
            ModelError: The encoder is in an ONNX file.
        """
        if isinstance(self.network.encoder, OnnxEncoder):
            raise ModelError("{name}: its encoder is in an ONNX file: copy the folder instead", name=self.name)
        task = self.kind.task() if self.kind else None
        save_model(folder, self.network, self.tokenizer, task, overwrite=overwrite)

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
        return _unpickle, (type(self), files, self.name, self.folder, self.precision)

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
        config = self.network.config
        count = sum(weights.numel() for weights in self.network.parameters())
        layers = f"{config.num_hidden_layers} layers of {config.hidden_size}"
        return f"{layers}, {config.vocab_size:,} pieces, {count / 1e6:,.1f} million parameters"

    @property
    def can(self) -> tuple[str, ...]:
        """The operations that the model supports: "predict", "tag", "answer", "fill", "embed"."""
        if self.kind is None:
            return ("fill", "embed") if isinstance(self.network, models.PretrainingModel) else ("embed",)
        return ("embed",) if self.kind.operation == "embed" else (self.kind.operation, "embed")

    def require(self, operation: str) -> None:
        """ModelError, which names what the model is and what it can do, if it does not support the operation."""
        if operation not in self.can:
            model = f"{'an' if self._what[0] in 'aeiou' else 'a'} {self._what} model"
            raise ModelError(
                "{name}: is {model}: it can {can}; {remedies}",
                name=self.name,
                model=model,
                can=" and ".join(self.can),
                remedies=_REMEDIES[operation],
            )

    @property
    def task(self) -> Kind:
        """The kind of task. ModelError for a model that was not fine-tuned."""
        if self.kind is None:
            self.require("predict")
        assert self.kind is not None
        return self.kind

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Role -> the columns of the file that it was fine-tuned on, as far as known."""
        return self.kind.columns if self.kind else {}

    @property
    def max_length(self) -> int:
        """Pieces of a text that `embed` reads, special tokens included; the rest is cut off."""
        return self.kind.max_length if self.kind and self.kind.cuts_vectors else super().max_length

    def prompt(self, side: Side | None) -> str:
        return self.kind.prompt(side) if self.kind and side else super().prompt(side)

    # --- predictions ---

    def predict(self, inputs: object, *, abstain: float | None = None, why: bool = False) -> Any:
        """Predicts one text, pair of texts or row, or a list for many, in order.

        Args:
            inputs: A string, a tuple of two, or a mapping ({"text": .., "choices": [..]}) by the columns of the
                training file, by role or by usual name; or an iterable of these, also a frame of pandas or polars, a
                table of Arrow or a Dataset with such columns.
            abstain: A precision in percent. Labels are given where their probability is at least that; the rest is
                None, with the reason as `why`. The probabilities of a fine-tuned classifier are calibrated.
            why: Labels get `reasons`: the ten morphemes that add most to the log-odds of the label, or take most from
                them; exact for a linear model.

        Returns:
            By the kind of task a Label, Labels, Choice, a number, or slots by name ({"value", "start", "end"}, "any"
            or None); a list for many. The label of an empty text is None, with the reason as `why`, and its number NaN.

        Raises:
            SettingsError: The inputs are something else, or have no such columns; the model cannot abstain, or say why.
            ModelError: The model cannot predict, or its scores are NaN.
        """
        self.require("predict")
        if abstain is not None:
            return self.abstaining(abstain).predict(inputs, why=why)
        if isinstance(inputs, str | Mapping) or _is_pair(inputs):
            return self.results_of([self.row(inputs)], why=why)[0]
        if isinstance(rows := list_rows(inputs), bytes) or not isinstance(rows, Iterable):
            raise SettingsError(
                "{inputs!r:.40}: give a text, a pair of texts, a row, or a list of these", inputs=inputs
            )
        return self.results_of([self.row(value, f"[{index}]") for index, value in enumerate(rows)], why=why)

    def abstaining(self, precision: float) -> "Model":
        """A model with the same network that gives labels as `predict` with `abstain`.

        Raises:
            SettingsError: The model cannot abstain, or the precision is no percentage.
        """
        model = Model(
            self.network, self.tokenizer, self.task.abstaining(precision), name=self.name, precision=self.precision
        )
        model.folder = self.folder
        return model

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
        results = self.results_of([{"text": text} for text in listed])
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
            question_form = "one string" if one_question else len(questions)
            context_form = "one string" if one_context else len(contexts)
            raise SettingsError(
                "question is {asked} and context {read}: give two strings, or lists of one length",
                asked=question_form,
                read=context_form,
            )
        pairs = zip(questions, contexts, strict=True)
        answers = self.results_of([{"question": question, "context": context} for question, context in pairs])
        return answers[0] if one_context else answers

    def row(self, value: Any, position: str = "") -> TaskRow:
        """Converts a text, a pair or a mapping to a row by role. SettingsError if the task cannot read it."""
        kind = self.task
        row = TaskRow()
        try:
            if isinstance(value, Mapping):
                row = self._by_role({str(name): cell for name, cell in value.items()})
            elif _is_pair(value):
                if "pair" not in kind.needs:
                    raise ValueError(Message("is a pair of texts"))
                row = {"text": value[0], "pair": value[1]}
            elif isinstance(value, str) or is_empty(value):
                row = {"text": _text_as_given(value)}
            texts = kind.texts(row)
            if not texts or not all(isinstance(text, str) for text in texts):
                raise ValueError(Message("is not a row of texts"))
        except (ValueError, KeyError, TypeError) as error:
            why = reason(error)
            if isinstance(error, KeyError):
                why = Message("has no {column}", column=error.args[0])
            raise SettingsError(
                "{value!r:.40}{position}: {why}: this model takes {about}",
                value=value,
                position=position,
                why=why,
                about=kind.description(),
            ) from None
        return row

    def _by_role(self, given: Mapping[str, object]) -> TaskRow:
        """Returns what the task needs: the columns of training if all are given, else columns by role or usual name.

        ValueError for a role without a column, for two roles in one column, and for a cell that the role cannot have.
        """
        needs = self.task.needs
        present = set(given)
        trained = {role: tuple(self.columns.get(role, ())) for role in (*needs, *self.task.takes)}
        if present.issuperset(needs) and not present.issuperset(chain.from_iterable(trained.values())):
            trained = {role: (role,) for role in trained}
        roles = []
        for role, trained_columns in trained.items():
            usual = ROLES[role]
            value = _text_as_given if usual.value is ROLES["text"].value else usual.value
            roles.append(replace(usual, names=(*trained_columns, role, *usual.names), value=value))
        return row_of(given, roles, trained)

    def predict_rows(self, rows: Sequence[TaskRow]) -> list[TaskPrediction]:
        """Predictions for rows by role, of any kind of task, as JSON values. Targets may be absent.

        ValueError for a row without its texts, ModelError if the model's scores are NaN.
        """
        kind = self.task
        predictions = list[TaskPrediction]()
        with self._naming_errors():
            for batch in self.prepare_rows(rows):
                predictions += kind.predict(self.fast_network, batch, **self.scoring)
        return predictions

    def prepare_rows(self, rows: Sequence[TaskRow]) -> Iterator[Prepared]:
        """Rows by role as examples, some thousand rows at a time; each text is encoded once."""
        return (self.task.prepare(*batch, self.tokenizer) for batch in self._passages_of(rows))

    def _passages_of(self, rows: Sequence[TaskRow]) -> Iterator[tuple[Sequence[TaskRow], Sequence[Sequence[Passage]]]]:
        """Some thousand rows at a time, with the pieces of their texts."""
        size = _LONG_ROWS_AT_ONCE if self.task.reads_all else _ROWS_AT_ONCE
        size = max(1, len(rows)) if self.task.compares_rows else size
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            texts = [self.task.texts(row) for row in batch]
            distinct = list(dict.fromkeys(chain.from_iterable(texts)))
            encoded = dict(zip(distinct, encode_passages(self.tokenizer, distinct, workers=cores()), strict=True))
            yield batch, [[encoded[text] for text in row_texts] for row_texts in texts]

    def results_of(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]] | None = None, *, why: bool = False
    ) -> list[Any]:
        """As `predict`, `tag` or `answer`, for rows by role.

        passages: the pieces of the texts of each row, if they are known already; no progress is shown then.
        """
        batches = self._passages_of(rows) if passages is None else iter([(rows, passages)])
        if why:
            return [result for batch in batches for result in self._explained(*batch)]
        results = []
        for batch in (self.task.prepare(*with_passages, self.tokenizer) for with_passages in batches):
            is_long = passages is None and "answer" in self.can and len(batch.examples) > _MANY_WINDOWS
            progress = track("answer", len(batch.examples), "windows") if is_long else nullcontext(untracked)
            with progress as advance, self._naming_errors():
                options: Scoring = {**self.scoring, "advance": advance}
                results += self.task.results(self.fast_network, batch, **options)
        return results

    def _explained(self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]]) -> Iterator[Any]:
        """The results of rows with their reasons."""
        prepared = self.task.prepare(rows, passages, self.tokenizer)
        with self._naming_errors():
            results = self.task.results(self.network, prepared, **self.scoring)
            for number, (texts, result) in enumerate(zip(passages, results, strict=True)):
                yield self.task.with_reasons(self.network, prepared, number, texts, result)

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
        filler = self._filler
        listed, single = as_texts(texts, "texts")
        if top < 1:
            raise SettingsError("top {top}: take at least 1", top=top)
        encodings = ((text, encode_gaps(filler, self.tokenizer, text)) for text in listed)
        filled = [gaps for text, encoding in encodings for gaps in self.fill_encoded([text], [encoding], top)]
        return filled[0] if single else filled

    def fill_encoded(
        self, texts: Sequence[str], encodings: Sequence[Encoding], top: int
    ) -> list[list[list[Candidate]]]:
        """As `fill`, for texts already encoded, each with a [MASK], in one forward pass."""
        with self._naming_errors():
            return fill_gaps(self._filler, self.tokenizer, texts, encodings, top)

    def expect(self, text: str, pair: str | None = None, top: int = 5) -> list[Expected | None]:
        """Predictions at each position of a text or pair, masked one piece at a time; None for special tokens.

        Other pieces stay visible, even those of the same word. ModelError as `fill`.
        """
        with self._naming_errors():
            return expect(self._filler, self.tokenizer, text, pair, top)

    @property
    def _filler(self) -> models.PretrainingModel:
        self.require("fill")
        assert isinstance(self.network, models.PretrainingModel)
        return self.network


def load(folder: str | Path, device: str = "auto", precision: InferencePrecision = "fp32") -> Model:
    """The model in a folder, in the box, or on the Hub: "hf:USER/NAME".

        >>> korbert.load("korbert-mini-ner").tag("세종대왕은 1443년에 한글을 만들었다")[0].text
        '세종대왕'

    Its files are checked against their recorded hashes. What the Hub has is loaded from its cache when there is no
    network.

    Args:
        folder: A model folder, an artifact that has one, the name of a model in the box, or "hf:USER/NAME" on the Hub,
            also with @REVISION.
        device: "auto", "cpu" or "cuda".
        precision: "fp32", "bf16", "int8" (through ONNX Runtime, on a CPU), or "auto", the fastest one here.

    Raises:
        ModelError: There is no such model, its files were changed, or its tokenizer is not the one of training.
        SettingsError: The device, or the precision on this hardware, is not there.
    """
    return Model.load(folder, device, precision)


def _unpickle(
    kind: type[Model], files: Mapping[str, bytes], name: str, folder: str | None, precision: InferencePrecision
) -> Model:
    with TemporaryDirectory(prefix="korbert-") as temporary:
        for path, content in files.items():
            (Path(temporary) / path).parent.mkdir(exist_ok=True)
            (Path(temporary) / path).write_bytes(content)
        model = kind.load(temporary, precision=precision)
    model.name = name
    model.folder = folder
    return model


def _text_as_given(cell: object) -> str:
    """Returns a text unchanged, whatever its characters are; reads another cell as a cell of a file."""
    return cell if isinstance(cell, str) else text_or_empty(cell)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(text, str) for text in value)
