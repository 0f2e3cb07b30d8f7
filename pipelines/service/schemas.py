"""The bodies of requests and responses."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, JsonValue, Tag, field_validator
from pydantic_core import PydanticCustomError

from korbert.vectors import PoolingName, Side

T = TypeVar("T")


def _integral(value: object) -> object:
    """Turns 8.0 into 8, as both are integers to JSON Schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# With discriminators, an error is about the form that the client meant, not about all forms.
_ONE_OR_MANY = Discriminator(lambda value: "many" if isinstance(value, list) else "one")
_Integer = Annotated[int, BeforeValidator(_integral)]
_Positive = Annotated[int, Field(ge=1), BeforeValidator(_integral)]
_Top = Annotated[int, Field(ge=1, le=100), BeforeValidator(_integral)]
_Layers = Annotated[list[_Integer], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
_Row = Annotated[
    Annotated[str, Tag("text")] | Annotated[dict[str, JsonValue], Tag("fields")],
    Discriminator(lambda value: "fields" if isinstance(value, dict) else "text"),
]
_Texts = Annotated[Annotated[str, Tag("one")] | Annotated[list[str], Tag("many"), Field(min_length=1)], _ONE_OR_MANY]
_Rows = Annotated[Annotated[_Row, Tag("one")] | Annotated[list[_Row], Tag("many"), Field(min_length=1)], _ONE_OR_MANY]


class Body(BaseModel):
    """The fields of every request."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    model: str | None = Field(None, description="name of the model; default: the first one that can answer")


class EmbeddingsRequest(
    Body, json_schema_extra={"examples": [{"input": ["신용 대출을 신청하고 싶어요", "대출 신청은 어떻게 하나요?"]}]}
):
    input: _Texts = Field(description="a text, or several; long texts are truncated to the model's maximum length")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="float: JSON numbers; base64: little-endian 32-bit floats"
    )
    dimensions: _Positive | None = Field(None, description="keep only this many leading dimensions")
    layer: Annotated[Annotated[_Integer, Tag("one")] | Annotated[_Layers, Tag("many")], _ONE_OR_MANY] | None = Field(
        None,
        description="extension of OpenAI's API: 0 the embeddings, 1 the first layer, -1 the last one (default); "
        "several layers are averaged",
    )
    pooling: PoolingName | None = Field(
        None,
        description="extension of OpenAI's API: how piece vectors are pooled into one text vector; default: as the "
        "model was trained, else mean",
    )
    side: Side | None = Field(
        None, description="extension of OpenAI's API: role of the texts in a search; its prompt is put before them"
    )
    user: str | None = Field(None, description="ignored")

    @field_validator("input", mode="before")
    @classmethod
    def refuse_ids(cls, value: object) -> object:
        """Refuses token ids: some clients send those of OpenAI's vocabulary, which stand for other texts in ours."""
        if isinstance(value, list) and value and isinstance(value[0], int | list):
            raise PydanticCustomError(
                "token_ids", "token ids are not accepted: send texts (LangChain: check_embedding_ctx_length=False)"
            )
        return value


class TokenizeRequest(Body, json_schema_extra={"examples": [{"input": "학교에 간다"}]}):
    input: _Texts = Field(description="a text, or several")
    special_tokens: bool = Field(False, description="parse [MASK] and the like as special tokens")


class FillRequest(Body, json_schema_extra={"examples": [{"input": "오늘 [MASK] 정말 좋다", "top": 3}]}):
    input: _Texts = Field(description="texts with [MASK]")
    top: _Top = Field(5, description="candidates per gap")


class PredictRequest(Body, json_schema_extra={"examples": [{"input": "정말 좋은 영화"}]}):
    input: _Rows = Field(description="texts, or objects with the fields of the model's task: text, pair, choices, ..")


class RowsRequest(Body, json_schema_extra={"examples": [{"name": "a.csv", "content": "dGV4dArsoJXrp5Ag7KKL64ukCg=="}]}):
    name: str = Field("rows.csv", max_length=200, description="of the file: its ending tells the format")
    content: str = Field(description="the file in base64, up to 1,000 rows")
    text: str | None = Field(None, description="column of the text; default: text, 문장, ..")


class AnswerRequest(
    Body,
    json_schema_extra={
        "examples": [{"question": "한글은 언제 만들어졌나?", "context": "세종은 1443년에 한글을 만들었다."}]
    },
):
    question: _Texts = Field(description="a question, or several")
    context: _Texts = Field(description="one context per question")


class SimilarRequest(Body, json_schema_extra={"examples": [{"input": "신용 대출을 신청하고 싶어요", "top": 3}]}):
    model: str | None = Field(None, description="ignored: an index has its own model")
    input: _Texts = Field(description="a text, or several")
    top: _Top = Field(10, description="number of results per text")
    way: Literal["both", "vectors", "words"] | None = Field(
        None,
        description="rank by vectors, by BM25 of morphemes, or by both; if missing, by words, or by both if the model "
        "was trained for search",
    )
    where: str | None = Field(
        None, max_length=1_000, description="only texts whose fields meet this condition, as in \"kind = '민사'\""
    )


class AttentionRequest(Body, json_schema_extra={"examples": [{"text": "신용 대출을 신청하고 싶어요"}]}):
    text: str = Field(description="a text; for a question answering model, the question")
    pair: str | None = Field(None, description="a second text; for a question answering model, the context")
    attribution: bool = Field(True, description="also what each piece adds to a label: 50 more passes of the model")


class ModelResponse(BaseModel, Generic[T]):
    model: str
    data: list[T]


class EmbeddingObject(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int = Field(description="pieces, special tokens included")
    total_tokens: int


class EmbeddingsResponse(BaseModel):
    object: Literal["list"] = "list"
    data: list[EmbeddingObject]
    model: str
    usage: Usage


class Piece(BaseModel):
    piece: str
    id: int
    span: tuple[int, int] = Field(description="half-open, in code points of the text")
    tag: str
    eojeol: int


class TokenizedText(BaseModel):
    pieces: list[Piece]


class TokenizeResponse(ModelResponse[TokenizedText]):
    pass


class GapCandidate(BaseModel):
    piece: str
    id: int
    probability: float
    text: str = Field(description="the whole text, with this piece in its gap")


class Gaps(BaseModel):
    gaps: list[list[GapCandidate]]


class FillResponse(ModelResponse[Gaps]):
    pass


class PredictResponse(ModelResponse[dict[str, Any]]):
    data: list[dict[str, Any]] = Field(description="label and probabilities, spans, or whatever else the task predicts")


class RowsResponse(ModelResponse[dict[str, Any]]):
    data: list[dict[str, Any]] = Field(
        description="each row by role, with its line, or its error; `fields`: all its columns"
    )


class Reading(BaseModel):
    answer: str
    start: int
    end: int
    score: float
    no_answer_score: float | None = Field(None, description="only of models that may decline")


class AnswerResponse(ModelResponse[Reading]):
    pass


class FoundText(BaseModel):
    id: str
    text: str = Field("", description="only if the passage is the whole text")
    passage: str = Field(description="the passage of the text that answers best")
    begin: int = Field(description="of the passage, in code points of the text")
    end: int
    score: float
    rank_vectors: int | None
    rank_words: int | None
    score_vectors: float | None
    score_words: float | None
    fields: dict[str, Any]


class Hits(BaseModel):
    hits: list[FoundText]


class SimilarResponse(BaseModel):
    data: list[Hits]


class AttentionResponse(BaseModel, extra="allow"):
    """The data of the page: docs/formats.md."""


class ModelName(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "korbert"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelName]


class ModelFacts(BaseModel):
    name: str
    kind: str
    operations: list[str]
    reads: list[str] = Field(description="what a prediction needs: text, pair, ..")
    precision: Literal["fp32", "bf16", "int8"]


class HealthResponse(BaseModel):
    status: Literal["loading", "ready", "ending"]
    models: list[ModelFacts] = Field(description="empty without the token, if one is required")
    index: bool = Field(description="whether there is an index for /similar")


class ReadyResponse(BaseModel):
    ready: Literal[True] = True
