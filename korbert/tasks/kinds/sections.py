"""Task sections of a recipe, one class per kind: data, training, and settings of the kind. Imports no torch."""

from collections.abc import Mapping, Sequence
from operator import not_
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from korbert.messages import Message
from korbert.modeling import FeatureSettings
from korbert.records import Form, Named, Sheet
from korbert.tasks.finetuning import LearningSettings, Numbers, Rates
from korbert.tasks.kinds import ALIASES, RUNGS
from korbert.tasks.question_answering import WindowSettings

_Columns = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
_LABEL_NAMES = 'names for labels of the files, in the model\'s order: { 0 = "부정", 1 = "긍정" }'
_Submission = Annotated[
    bool, Field(description="also write predictions.json and submission/, a folder that answers such files elsewhere")
]
_Pooling = Annotated[
    Literal["mean", "first"], Field(description="text vector: mean over pieces, or that of the first piece")
]
_SpacingNoise = Annotated[
    float, Field(ge=0, le=1, description="share of training rows learned with wrong spaces: random ones, none or all")
]
_Embedder = Annotated[
    str,
    Field(
        description="of rungs: a second model, with the same tokenizer, whose vectors are tried, too; the better ones "
        'are kept; "": none',
        exclude_if=not_,
    ),
]
_ValidationShare = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="without `valid`: share of the training texts or groups to validate on, by their hash; with the "
        "role `time`, of the rows, the latest",
    ),
]


_FIT_LINEAR = (("words",), ("vectors",), ("words", "vectors"), RUNGS)
OF_HEAD = (  # settings that have a meaning for rungs = ["encoder"] alone
    *("scratch", "warm_up", "warm_up_epochs", "features", "pooling", "overlap"),
    *("num_hidden_layers", "layer_decay", "frozen_layers"),
)
_OF_TRAINING = (
    *("learning_rates", "batch_size", "epochs", "weight_decay", "warmup_share"),
    *("frozen_embeddings", "piece_dropout"),
)


class TaskSection(LearningSettings, frozen=True, extra="forbid"):
    """A task of any kind: its files, initial weights, and training."""

    set: str = Field("", description="a known data set (`korbert tasks` lists them) with its files below --data")
    train: str = Field("", description="training file, relative to the data folder; a glob may match several")
    valid: str = Field("", description='validation file; "": a share of the training rows')
    test: str = Field("", description='test file, scored once per seed; "": only validation scores are reported')
    form: Named | Annotated[Sheet, Field(pattern="^xlsx:.")] = Field(
        "auto", description="file format; auto: by extension, else by content; xlsx:NAME: that sheet of a workbook"
    )
    columns: Mapping[str, _Columns] = Field({}, description='columns by role, as in { text = "문장", label = "감정" }')
    validation_share: _ValidationShare = 0.1
    train_rows: int | None = Field(
        None, ge=2, description="most training rows, with those to validate on, by hash of their text; none: all"
    )
    metrics: tuple[str, ...] = Field(
        (),
        description="the first selects epoch and learning rate, but with rungs of words and vectors the loss does; "
        "[]: those of the kind",
    )
    init: str = Field(
        "pretrain", description='initial weights: "pretrain" (of this recipe), "scratch", or a model folder'
    )
    scratch: bool = Field(False, description="also train the same encoder from random weights, as a separate row")
    warm_up: str = Field(
        "", description='rows to train on first, such as those of `korbert questions`, without texts of test; "": none'
    )
    warm_up_epochs: int = Field(1, ge=1, description="epochs over the rows of warm_up")
    unseen: bool = Field(
        False,
        description="also score apart the rows whose texts neither the training rows nor the recipe's corpus have",
    )
    epochs: Numbers = Field(
        (), description="training epochs, one number or a list; the best is kept; []: 3, or up to 20 to reach 200 steps"
    )
    minutes: float | None = Field(
        None,
        gt=0,
        description="time for all of the task: as many epochs as fit into it, by a measurement before; none: no limit",
        exclude_if=lambda minutes: minutes is None,
    )
    overlap: bool = Field(
        True, description="add an embedding to pieces that occur in both texts; exports need trust_remote_code then"
    )
    features: FeatureSettings | None = Field(
        None, description="freeze the encoder and train a head on the vectors of some layers; none: train all weights"
    )
    baselines: bool = Field(True, description="also score baselines without an encoder: majority, TF-IDF, dictionary")
    note: str = Field("", description="remark saved with the scores")

    @field_validator("kind", mode="before", check_fields=False)
    @classmethod
    def _long_name(cls, kind: object) -> object:
        return ALIASES.get(kind, kind) if isinstance(kind, str) else kind

    @model_validator(mode="before")
    @classmethod
    def _heads_learn_faster(cls, values: object) -> object:
        """Defaults for a head on a frozen encoder, which needs a higher learning rate and more epochs."""
        if isinstance(values, Mapping) and values.get("features") is not None:
            return {"learning_rates": 3e-3, "epochs": 20, **values}
        return values

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        of_encoder = self.layer_decay < 1 or self.frozen_layers or self.frozen_embeddings or self.piece_dropout
        if self.features is not None and of_encoder:
            raise ValueError(
                Message(
                    "features: the whole encoder is frozen then: leave layer_decay, frozen_layers, frozen_embeddings "
                    "and piece_dropout out"
                )
            )
        if bool(self.set) == bool(self.train):
            what = Message("both are given") if self.set else Message("neither is given")
            raise ValueError(Message("set or train: {what}: name a known data set, or a training file", what=what))
        names = ("valid", "test", "columns", "several", "split_by_article")
        if self.set and (self.form != "auto" or any(getattr(self, name, False) for name in names)):
            raise ValueError(
                Message(
                    "set {set!r} has its own files: leave valid, test, columns, form, several and split_by_article out",
                    set=self.set,
                )
            )
        return self

    def check_rungs(self, known: Sequence[tuple[str, ...]], names: Message) -> None:
        """Raises ValueError if the kind has no such `rungs`, or if another setting does not fit them.

        known: the rungs that the kind may have, apart from ["encoder"]. names: all rungs of the kind, in words.
        """
        rungs: tuple[str, ...] = getattr(self, "rungs", ())
        rungs_text = str([*rungs])
        if rungs == ("encoder",):
            if getattr(self, "embedder", ""):
                raise ValueError(Message('embedder: is for rungs with "vectors": leave it out'))
            return
        if rungs not in known:
            raise ValueError(Message("rungs {rungs}: give {names}", rungs=rungs_text, names=names))
        if changed := self._changed(OF_HEAD):
            raise ValueError(
                Message(
                    'rungs {rungs}: these are for ["encoder"] alone: leave {names} out',
                    rungs=rungs_text, names=", ".join(changed),
                )
            )  # fmt: skip
        changed = self._changed((*_OF_TRAINING, "teachers")) + ["seeds"] * (len(self.seeds) > 1)
        if "encoder" not in rungs and changed:
            raise ValueError(
                Message(
                    "rungs {rungs}: the encoder is frozen then: leave {names} out",
                    rungs=rungs_text, names=", ".join(changed),
                )
            )  # fmt: skip

    def _changed(self, names: Sequence[str]) -> list[str]:
        """The names of those settings that the kind has and that differ from their default."""
        fields = type(self).model_fields
        return [name for name in names if name in fields and getattr(self, name) != fields[name].default]

    def patterns(self) -> dict[str, str]:
        """Role -> pattern of the files that the task reads, relative to the data folder."""
        names = ("warm_up", "train", "valid", "test", "unlabelled")
        return {name: value for name in names if (value := getattr(self, name, ""))}


class TaughtSection(TaskSection, frozen=True, extra="forbid"):
    """A task whose encoder may learn from other models, too (knowledge distillation, Hinton et al. 2015)."""

    teachers: tuple[str, ...] = Field(
        (),
        description="models of the same task whose mean probabilities the encoder learns beside the labels: each "
        "target is the mean of both; []: none",
        exclude_if=not_,
    )
    unlabelled: str = Field(
        "", description='texts without labels, on which it learns what teachers give; "": none', exclude_if=not_
    )

    @model_validator(mode="after")
    def _teachers_fit(self) -> Self:
        if self.unlabelled and not self.teachers:
            raise ValueError(Message("unlabelled: only teachers can say what to learn from it: give teachers, too"))
        if self.teachers and self.features is not None:
            raise ValueError(Message("teachers: a head on a frozen encoder has none: leave features out"))
        return self


class TextSection(TaughtSection, frozen=True, extra="forbid"):
    """What is predicted for a whole text or a pair of texts."""

    pooling: _Pooling = "mean"
    spacing_noise: _SpacingNoise = 0.0
    mask_personal: bool = Field(
        False,
        description="replace e-mail addresses, phone numbers and the like by tags, as clean does",
        exclude_if=not_,
    )
    rungs: tuple[Literal["words", "vectors", "encoder"], ...] = Field(
        ("encoder",),
        description='["encoder"]: tune the encoder with a new head; ["words", "vectors"]: a linear model on TF-IDF '
        "and on vectors of the frozen encoder, in seconds, or one of them; all three: that model, and the encoder is "
        "tuned, too, where it helps",
        exclude_if=lambda rungs: rungs == ("encoder",),  # records from before keep their meaning
    )
    embedder: _Embedder = ""

    @model_validator(mode="after")
    def _rungs_fit(self) -> Self:
        self.check_rungs(_FIT_LINEAR, Message('["encoder"], ["words"], ["vectors"], ["words", "vectors"] or all three'))
        return self


class ClassificationSection(TextSection, frozen=True, extra="forbid"):
    """Labels of a text or a pair of texts."""

    kind: Literal["classification"] = "classification"
    class_weights: Literal["none", "balanced"] = Field(
        "none",
        description="balanced: rarer labels weigh more in the loss; in rungs, all labels are as likely a priori",
    )
    uncounted: str = Field("", description="label excluded from micro_f1, such as no_relation in KLUE-RE")
    several: bool = Field(False, description="any number of labels per text, as a list or separated by bars or commas")
    label_names: Mapping[str, str] = Field({}, description=_LABEL_NAMES)


class RegressionSection(TextSection, frozen=True, extra="forbid"):
    """A number for a text or a pair of texts."""

    kind: Literal["regression"] = "regression"


class MultipleChoiceSection(TaskSection, frozen=True, extra="forbid"):
    """The correct one of several continuations or answers."""

    kind: Literal["multiple-choice"] = "multiple-choice"
    pooling: _Pooling = "mean"
    label_names: Mapping[str, str] = Field({}, description=_LABEL_NAMES)


class TokenClassificationSection(TaughtSection, frozen=True, extra="forbid"):
    """Labels of spans or words."""

    kind: Literal["token-classification"] = "token-classification"
    stride: int | None = Field(None, ge=0, description="pieces that windows share; none: a quarter of max_length")
    spacing_noise: _SpacingNoise = 0.0
    rungs: tuple[Literal["words", "vectors", "encoder"], ...] = Field(
        ("encoder",),
        description='["encoder"]: tune the encoder with a new head; ["vectors"]: a CRF on layers of the frozen '
        'encoder, in seconds; ["vectors", "encoder"]: the encoder is tuned from there on, where it helps',
        exclude_if=lambda rungs: rungs == ("encoder",),
    )
    embedder: _Embedder = ""

    @model_validator(mode="after")
    def _rungs_fit(self) -> Self:
        self.check_rungs((("vectors",), ("vectors", "encoder")), Message('["encoder"], ["vectors"] or both'))
        return self


class QuestionAnsweringSection(WindowSettings, TaughtSection, frozen=True, extra="forbid"):
    """Answers to questions, extracted from texts."""

    kind: Literal["question-answering"] = "question-answering"
    unanswerable: bool | None = Field(
        None, description="questions may have no answer; none: if one of training has none"
    )
    split_by_article: bool = Field(
        False, description="score on some articles of the training file, by hash of the title, instead of on `test`"
    )
    submission: _Submission = False

    def patterns(self) -> dict[str, str]:
        return {role: name for role, name in super().patterns().items() if role != "test" or not self.split_by_article}


class SlotsSection(WindowSettings, TaskSection, frozen=True, extra="forbid"):
    """Values of described slots, extracted from texts; the description takes the place of a question."""

    kind: Literal["slots"] = "slots"


class EmbeddingSection(TaskSection, frozen=True, extra="forbid"):
    """Text embeddings: similar texts get nearby vectors."""

    kind: Literal["embedding"] = "embedding"
    pooling: _Pooling = "mean"
    piece_weights: bool | None = Field(
        None, description="learn how pieces count in the mean; none: in a `modern`; exports need trust_remote_code then"
    )
    normalize: bool = Field(
        False, description="unit length inside the network, too; vectors that are given out have it"
    )
    near: _Columns = Field(("entailment",), description="labels of positive pairs, as in NLI")
    far: _Columns = Field(("contradiction",), description="labels of negative pairs; rows with others are left out")
    temperature: float = Field(
        0.05, gt=0, description="temperature of cosines, in the softmax over a batch (Gao et al. 2021) and in ranking"
    )
    dropout: float = Field(
        0.1, ge=0, lt=1, description="least dropout of the encoder; single texts learn from two masks"
    )
    sizes: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (), description="also train these leading dimensions as vectors, so that they can be cut, as in [128, 64]"
    )
    near_batches: bool = Field(
        False,
        description="of a teacher's vectors: a batch has texts that are near each other by them, as in korbert distill",
        exclude_if=not_,
    )
    query_prompt: str = Field("", description="before each query, in training on pairs and in search, as in '질문: '")
    passage_prompt: str = Field("", description="the same before each passage, as in '문서: '")
    chunk_pieces: int = Field(
        8_192, ge=1, description="pieces per forward pass; those of a larger batch are computed twice, to save memory"
    )


class RerankSection(TaskSection, frozen=True, extra="forbid"):
    """Relevance of passages to queries, read together."""

    kind: Literal["rerank"] = "rerank"
    pooling: _Pooling = "mean"
    found_weight: float = Field(
        8.0, ge=0, description="weight of the search score, as a share of the best hit's, added to the reranker's score"
    )


class NsmcSection(ClassificationSection, frozen=True, extra="forbid"):
    """The stage nsmc: the Naver sentiment movie corpus (github.com/e9t/nsmc)."""

    train: str = Field("nsmc/ratings_train.txt", description="official training file, relative to the data folder")
    test: str = Field("nsmc/ratings_test.txt", description="official test file, scored once per seed")
    form: Form = Field("tsv-plain", description="file format")
    columns: Mapping[str, _Columns] = Field(
        {"text": ("document",), "label": ("label",), "id": ("id",)}, description="column names by role"
    )
    label_names: Mapping[str, str] = Field({"0": "부정", "1": "긍정"}, description="names for the labels of the files")
    validation_share: _ValidationShare = 0.05
    scratch: bool = Field(True, description="also train the same encoder from random weights, as a separate row")
    unseen: bool = Field(
        True, description="also score the reviews that are neither in the training file nor in the recipe's corpus"
    )


class KorquadSection(QuestionAnsweringSection, frozen=True, extra="forbid"):
    """The stage korquad: KorQuAD 1.0 (korquad.github.io)."""

    train: str = Field("korquad1/KorQuAD_v1.0_train.json", description="official training file")
    test: str = Field("korquad1/KorQuAD_v1.0_dev.json", description="official evaluation file, scored once per seed")
    validation_share: _ValidationShare = 0.05
    learning_rates: Rates = (3e-4,)
    submission: _Submission = True
