"""The fields of requests and responses: validation, and the schemas of the OpenAPI document."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag

from korbert.search import Hit
from korbert.vectors.names import PoolingName

__all__ = [
    "Answer",
    "Answers",
    "Attention",
    "Embeddings",
    "EmbeddingsAnswer",
    "Error",
    "Fill",
    "Filled",
    "Form",
    "Health",
    "Listed",
    "Models",
    "Predict",
    "Predicted",
    "Ready",
    "Seen",
    "Similar",
    "Tokenize",
    "Tokenized",
]


_Many = Field(min_length=1)
# With it an error is about the one form that was meant, not about both.
_ONE_OR_MANY = Discriminator(lambda value: "many" if isinstance(value, list) else "one")
Texts = Annotated[Annotated[str, Tag("one")] | Annotated[list[str], Tag("many"), _Many], _ONE_OR_MANY]
_Row = str | dict[str, JsonValue]
_Layers = Annotated[Annotated[int, Tag("one")] | Annotated[list[int], Tag("many"), _Many], _ONE_OR_MANY]
_Rows = Annotated[Annotated[_Row, Tag("one")] | Annotated[list[_Row], Tag("many"), _Many], _ONE_OR_MANY]


class Form(BaseModel):
    """The fields of every request."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    model: str | None = Field(None, description="name of the model; default: the first one served")


class Embeddings(Form):
    input: Texts = Field(description="a text, or several; long texts are truncated to the model's maximum length")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="float: JSON numbers; base64: little-endian 32-bit floats"
    )
    dimensions: int | None = Field(None, ge=1, description="keep only this many leading dimensions")
    layer: _Layers | None = Field(
        None,
        description="extension of OpenAI's API: 0 the embeddings, 1 the first layer, -1 the last one (default); "
        "several layers are averaged",
    )
    pooling: PoolingName | None = Field(
        None,
        description="extension of OpenAI's API: how piece vectors are pooled into one text vector; idf and bm25 "
        "need piece counts in the model's folder; default: as the model was trained, else mean",
    )
    user: str | None = Field(None, description="ignored")


class Tokenize(Form):
    input: Texts = Field(description="a text, or several")
    special_tokens: bool = Field(False, description="parse [MASK] and the like as special tokens")


class Fill(Form):
    input: Texts = Field(description="texts with [MASK]")
    top: int = Field(5, ge=1, le=100, description="candidates per gap")


class Predict(Form):
    input: _Rows = Field(description="texts, or objects with the fields of the model's task: text, pair, choices, ..")


class Answer(Form):
    question: Texts = Field(description="a question, or several")
    context: Texts = Field(description="one context per question")


class Similar(Form):
    input: Texts = Field(description="a text, or several; `model` is ignored: an index has its own")
    top: int = Field(10, ge=1, le=100, description="number of results per text")
    way: Literal["both", "vectors", "words"] | None = Field(
        None,
        description="rank by vectors, by BM25 of morphemes, or by both; if missing, by words, or by both if the model "
        "was trained for search",
    )


class Attention(Form):
    text: str = Field(description="a text; for a question answering model, the question")
    pair: str | None = Field(None, description="a second text; for a question answering model, the context")


class _Fault(BaseModel):
    message: str = Field(description="what is wrong, and what to do")
    type: str
    param: str | None = Field(description="the place in the request, such as input[3]")


class Error(BaseModel):
    error: _Fault


class _Embedding(BaseModel):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class _Usage(BaseModel):
    prompt_tokens: int = Field(description="pieces, special tokens included")
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"]
    data: list[_Embedding]
    model: str
    usage: _Usage


class _Piece(BaseModel):
    piece: str
    id: int
    span: tuple[int, int] = Field(description="half-open, in code points of the text")
    tag: str
    eojeol: int


class _Pieces(BaseModel):
    pieces: list[_Piece]


class Tokenized(BaseModel):
    model: str
    data: list[_Pieces]


class _Candidate(BaseModel):
    piece: str
    id: int
    probability: float
    text: str = Field(description="the whole text, with this piece in its gap")


class _Gaps(BaseModel):
    gaps: list[list[_Candidate]]


class Filled(BaseModel):
    model: str
    data: list[_Gaps]


class Predicted(BaseModel):
    model: str
    data: list[dict[str, JsonValue]] = Field(
        description="label and probabilities, spans, or whatever else the task predicts"
    )


class _Reading(BaseModel):
    answer: str
    start: int
    end: int
    score: float
    no_answer_score: float | None = None


class Answers(BaseModel):
    model: str
    data: list[_Reading]


class _Hits(BaseModel):
    hits: list[Hit]


class Listed(BaseModel):
    data: list[_Hits]


class Seen(BaseModel, extra="allow"):
    """The data of the page: docs/formats.md."""


class _ModelName(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(BaseModel):
    object: Literal["list"]
    data: list[_ModelName]


class _ModelFacts(BaseModel):
    name: str
    kind: str
    operations: list[str]


class Health(BaseModel):
    status: Literal["loading", "ready", "ending"]
    models: list[_ModelFacts] = Field(description="empty without the token, if one is required")
    index: bool = Field(description="whether there is an index for /similar")


class Ready(BaseModel):
    ready: Literal[True]
