"""Recipe sections that combine settings of several packages."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from korbert.corpus.corpus_settings import VocabSettings
from korbert.messages import Message
from korbert.modeling import EncoderConfig
from korbert.pretraining import (
    DistillationSettings,
    HeadSettings,
    MaskingSettings,
    ObjectiveName,
    PairSettings,
    ReplacementSettings,
    SpanSettings,
    check_objectives,
)
from korbert.system import JsonObject
from korbert.training import OptimizerSettings, PrecisionName


class VocabStage(VocabSettings, frozen=True, extra="forbid"):
    """[vocab]: a new tokenizer, or an existing one with added words."""

    tokenizer: str = Field(
        "", description="folder of a tokenizer or model to use instead of learning one; new words are appended"
    )
    add: int = Field(
        0,
        ge=0,
        le=1 << 20,
        description="with tokenizer: number of words to add, from the forms that it most often splits into "
        "several pieces",
    )

    @model_validator(mode="after")
    def check_tokenizer(self) -> Self:
        if self.add and not self.tokenizer:
            raise ValueError(
                Message(
                    "add {add} adds words to an existing tokenizer: set tokenizer, or raise size instead", add=self.add
                )
            )
        if unused := [name for name in type(self).model_fields if name in self.model_fields_set & self._unused()]:
            raise ValueError(
                Message(
                    "{setting} cannot be set with tokenizer {tokenizer!r}, which has its own: remove it",
                    setting=unused[0], tokenizer=self.tokenizer,
                )
            )  # fmt: skip
        return self

    @model_serializer(mode="wrap")
    def _only_what_is_used(self, serialize: SerializerFunctionWrapHandler) -> JsonObject:
        """Leaves out settings without effect, so that records from before these settings keep their digest."""
        unused = self._unused() if self.tokenizer else {"tokenizer", "add"}
        record: dict[str, Any] = serialize(self)
        return {name: value for name, value in record.items() if name not in unused}

    def _unused(self) -> set[str]:
        """With a tokenizer, the settings of learning one and, unless `add` is set, of choosing words; else none."""
        if not self.tokenizer:
            return set()
        learning = {"size", "mark", "character_coverage", "max_piece_chars", "foreign_share"}
        return learning | (set() if self.add else {"min_count", "min_documents"})


class PhaseSettings(BaseModel, frozen=True, extra="forbid"):
    """A phase of pretraining at one length."""

    length: int = Field(128, ge=8, description="pieces per row, special tokens included")
    batch_size: int = Field(32, ge=1, description="rows per step")
    steps: int = Field(ge=1, description="optimizer updates")
    micro_batches: int = Field(
        1, ge=1, description="gradient accumulation: number of parts a step's rows are split into, to save memory"
    )
    masking_rate: float | None = Field(None, gt=0, lt=1, description="masking rate of this phase; none: masking.rate")
    fill: bool = Field(
        False, description="pack several examples into each row; attention and positions stay within an example"
    )


class EncoderSection(EncoderConfig, frozen=True, extra="forbid"):
    """[pretrain.encoder]: an encoder whose vocabulary size is not known yet."""

    vocab_size: int = Field(1, ge=1, le=1, exclude=True, description="not a setting: it is the tokenizer's")

    def config(self, vocab_size: int) -> EncoderConfig:
        """Returns the config of the encoder over a vocabulary of that size."""
        return EncoderConfig(vocab_size=vocab_size, **self.model_dump())


class PretrainStage(BaseModel, frozen=True, extra="forbid"):
    """[pretrain]"""

    precision: PrecisionName = Field("auto", description="training precision; auto: bf16 where it is faster, else fp32")
    threads: int = Field(2, ge=1, description="CPU threads for training; a different number gives different bytes")
    compile: bool = Field(
        False, description="compile the layers and the sampled loss: fewer and larger kernels on a GPU, after a minute"
    )
    seed: int = Field(0, ge=0, description="random seed of weights, rows and masks")
    init: str = Field(
        "",
        description="pretrained model to continue from: its tokenizer, and its encoder or one with layers or "
        "embeddings added",
    )
    embeddings: Literal["drawn", "kiwi"] = Field(
        "drawn",
        description="initial piece embeddings; drawn: random; kiwi: Kiwi's own vectors of the morphemes that it knows",
    )
    frozen_embeddings: bool = Field(
        False,
        description="freeze the piece embeddings of init or Kiwi; the model then packs small next to a packed init",
    )
    encoder: EncoderSection
    phases: tuple[PhaseSettings, ...] = Field(
        min_length=1, description="training phases, run in this order under one learning rate schedule"
    )
    shares: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        {}, description="source -> share of the training rows, 0 to 1; others share the rest; {}: every row once"
    )
    objectives: Annotated[tuple[ObjectiveName, ...], AfterValidator(check_objectives)] = Field(
        ("mlm", "nsp"),
        description="objectives to train jointly: mlm, nsp, sop, spans, rtd, distill (korbert/pretraining/objectives)",
    )
    head: HeadSettings = HeadSettings()
    masking: MaskingSettings = MaskingSettings()
    pairs: PairSettings = PairSettings()
    spans: SpanSettings = SpanSettings()
    rtd: ReplacementSettings = ReplacementSettings()
    distill: DistillationSettings = DistillationSettings()
    optimizer: OptimizerSettings
    log_every: int = Field(10, ge=1, description="steps between lines of metrics.jsonl")
    evaluate_every: int = Field(200, ge=1, description="steps between evaluations on held-out rows")
    checkpoint_every: int = Field(200, ge=1, description="steps between checkpoints")
    heldout_rows: int = Field(2_000, ge=1, description="maximum held-out rows per evaluation")

    @model_validator(mode="after")
    def check_positions(self) -> Self:
        longest = max(phase.length for phase in self.phases)
        if longest > (positions := self.encoder.max_position_embeddings):
            raise ValueError(
                Message(
                    "a phase has length {longest}, the encoder {positions} positions: raise "
                    "encoder.max_position_embeddings",
                    longest=longest, positions=positions,
                )
            )  # fmt: skip
        return self

    @model_validator(mode="after")
    def check_combinations(self) -> Self:
        begins_taught = bool(self.distill.teacher) and self.distill.begin
        refused = (
            (
                self.embeddings == "kiwi" and (bool(self.init) or begins_taught),
                Message("embeddings = 'kiwi' with init or a teacher's weights: leave it out, they have their own"),
            ),
            (
                self.frozen_embeddings and not self.init and self.embeddings == "drawn",
                Message("frozen_embeddings would freeze random ones: set init, or embeddings = 'kiwi'"),
            ),
            (
                self.head.kind == "sampled" and not {"rtd", "distill"}.isdisjoint(self.objectives),
                Message("head.kind = 'sampled': rtd and distill need the whole vocabulary: take kind = 'full'"),
            ),
            (
                self.frozen_embeddings and "rtd" in self.objectives,
                Message("frozen_embeddings: rtd learns its embeddings: leave one of them out"),
            ),
            (
                bool(self.init) and "rtd" in self.objectives,
                Message("init has weights for neither generator nor detector: leave it out with rtd"),
            ),
            (
                ("distill" in self.objectives) != bool(self.distill.teacher),
                Message("distill needs a teacher, and a teacher the objective: set distill.teacher, or remove it"),
            ),
            (
                bool(self.init) and begins_taught,
                Message("init and distill.begin both give the first weights: set distill.begin = false"),
            ),
        )
        for is_set, fault in refused:
            if is_set:
                raise ValueError(fault)
        return self
