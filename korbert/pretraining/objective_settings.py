"""Settings of the pretraining objectives."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from korbert.messages import Message

ObjectiveName = Literal["mlm", "nsp", "sop", "rtd", "spans", "distill"]


def check_objectives(names: tuple[ObjectiveName, ...]) -> tuple[ObjectiveName, ...]:
    """Returns the names if they can be combined. ValueError otherwise."""
    partners = {"mlm": {"nsp", "sop", "spans", "distill"}, "rtd": {"nsp", "sop"}}
    main = set(names) & partners.keys()
    additions = set(names) - partners.keys()
    fit = len(main) == 1 and additions <= partners[min(main)] and not {"nsp", "sop"} <= additions
    if len(set(names)) < len(names) or not fit:
        raise ValueError(
            Message("do not go together: name mlm (with nsp or sop, spans, distill), or rtd (with nsp or sop)")
        )
    return names


class HeadSettings(BaseModel, frozen=True, extra="forbid"):
    """How a step's predictions are scored over the vocabulary. Held-out figures are always over all of it."""

    kind: Literal["full", "sampled"] = Field(
        "full", description="softmax over all entries (full), or over the label and negatives (sampled), at less cost"
    )
    negatives: int = Field(4_096, ge=1, description="sampled: negatives per step, drawn by their frequency in the text")


class MaskingSettings(BaseModel, frozen=True, extra="forbid"):
    """How pieces are chosen for prediction, and what replaces them (MLM; Devlin et al. 2019, 3.1 and A.1)."""

    rate: float = Field(0.15, gt=0, lt=1, description="share of a row's pieces to predict, special tokens excluded")
    unit: Literal["piece", "morpheme", "eojeol"] = Field("morpheme", description="unit masked as a whole")
    mask_share: float = Field(0.8, ge=0, le=1, description="share of the chosen pieces replaced by [MASK]")
    random_share: float = Field(0.1, ge=0, le=1, description="share replaced by a random piece; the rest is unchanged")

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.mask_share + self.random_share > 1:
            raise ValueError(
                Message(
                    "mask_share {mask_share} + random_share {random_share} > 1: lower one of them",
                    mask_share=self.mask_share,
                    random_share=self.random_share,
                )
            )
        return self

    def all_masked(self) -> Self:
        """For evaluation: every chosen piece is replaced by [MASK].

        With 80/10/10 a model gains 0.6 nats by copying the pieces that are kept, which would look like learning.
        """
        return self.model_copy(update={"mask_share": 1.0, "random_share": 0.0})


class PairSettings(BaseModel, frozen=True, extra="forbid"):
    """How segment B of a row is chosen (NSP)."""

    share_random: float = Field(0.5, ge=0, le=1, description="share of labelled pairs with B from another document")
    without: tuple[str, ...] = Field((), description="sources without NSP pairs; by default those with pairs = false")
    tries: int = Field(16, ge=1, description="tries, of 32 places each, to find a random B of equal length")


class SpanSettings(BaseModel, frozen=True, extra="forbid"):
    """Recurring span selection (Ram et al. 2021): which spans are hidden and found again."""

    share: float = Field(1.0, gt=0, le=1, description="share of rows with a recurring span that ask for it")
    min_morphemes: int = Field(2, ge=1, description="minimum span length in morphemes")
    max_pieces: int = Field(10, ge=1, description="maximum span length in pieces")
    max_query_pieces: int = Field(64, ge=8, description="maximum pieces of the query sentence")
    rarity: float = Field(8.0, ge=0, description="a span's rarest piece: minimum of -ln(relative frequency)")


class ReplacementSettings(BaseModel, frozen=True, extra="forbid"):
    """Replaced token detection (Clark et al. 2020): the generator, and the weight of the detector's loss."""

    generator_share: float = Field(0.25, gt=0, le=1, description="the generator's width as a share of the encoder's")
    weight: float = Field(50.0, gt=0, description="weight of the detector's loss, relative to the generator's MLM loss")


class DistillationSettings(BaseModel, frozen=True, extra="forbid"):
    """Distillation from a teacher (Sanh et al. 2019), and the weights of its losses relative to MLM.

    The paper's weights are 5 for the soft targets, 2 for MLM, 1 for the cosine.
    """

    teacher: str = Field("", description="folder of the teacher, a pretrained model with the same tokenizer")
    begin: bool = Field(True, description="initialize from the teacher's embeddings, heads and evenly spaced layers")
    temperature: float = Field(2.0, gt=0, description="temperature of both distributions")
    soft: float = Field(2.5, ge=0, description="weight of the soft-target loss (the teacher's distribution of pieces)")
    cosine: float = Field(0.5, ge=0, description="weight of the cosine loss of vectors; must be 0 if the widths differ")
