"""The handlers of all routes. A body becomes an instance of its schema if it respects the limits of size and time."""

import asyncio
import base64
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, get_type_hints

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from korbert.errors import KorbertError, SettingsError
from korbert.messages import Message, language
from korbert.pipelines.inference.input_records import ColumnsMissing
from korbert.pipelines.reports.drawing import fill_template
from korbert.pipelines.service import schemas
from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.operations import check_results, rows_of
from korbert.pipelines.service.refusals import CODES, ErrorResponse, Refusal
from korbert.pipelines.service.shared import Service
from korbert.system import JsonObject
from korbert.vectors import VectorSettings

_PAGE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:;"
    " connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class JsonRoute(APIRoute):
    """A route whose handler takes a body and the request.

    FastAPI documents the route, but pydantic reads and writes the JSON: that is stricter (no lone surrogates), twice as
    fast, and accepts any Content-Type; `curl -d` sends that of a form.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        schema: type[BaseModel] = get_type_hints(self.endpoint)["body"]

        async def handle(request: Request) -> Response:
            data = await _read(request, request.app.state.service.limits)
            try:
                body = schema.model_validate_json(data)
            except ValidationError as error:
                problem = error.errors(include_url=False, include_input=False)[0]
                if problem["type"] == "json_invalid":
                    raise Refusal(
                        400, Message("the body is not JSON in UTF-8: {first}", first=problem["ctx"]["error"])
                    ) from None
                # ("input", the tag of a union, 3, ..) -> input[3]
                name, *path = problem["loc"] or ("",)
                param = f"{name}{''.join(f'[{part}]' for part in path if isinstance(part, int))}"
                raise Refusal(
                    422,
                    Message("{param}: {first}", param=param or Message("the body"), first=problem["msg"]),
                    param or None,
                ) from None
            answer: BaseModel = await self.endpoint(body, request)
            text = answer.model_dump_json(exclude_unset=self.response_model_exclude_unset)
            return Response(text, media_type="application/json")

        return handle


async def _read(request: Request, limits: Limits) -> bytes:
    """Reads the body of a request. Refusal 413 if it is too large, 408 if slow, 415 if compressed, 499 if cut off."""
    if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
        raise Refusal(
            415, Message("Content-Encoding: {coding} is not supported: send the JSON uncompressed", coding=coding)
        )
    announced = request.headers.get("content-length", "0")  # digits, as the server has checked
    if len(announced) > 18 or int(announced) > limits.body_bytes:
        raise _too_large(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise _too_large(limits)
    except TimeoutError:
        raise Refusal(
            408, Message("the body took longer than {body_seconds:g} s", body_seconds=limits.body_seconds)
        ) from None
    except ClientDisconnect:
        raise Refusal(499, Message("the client left")) from None
    return bytes(body)


def _too_large(limits: Limits) -> Refusal:
    return Refusal(
        413,
        Message(
            "the body is larger than {body_bytes:,} bytes: send the texts in several requests",
            body_bytes=limits.body_bytes,
        ),
    )


T = TypeVar("T")


def _errors(*codes: int) -> dict[int | str, JsonObject]:
    return {code: {"model": ErrorResponse, "description": CODES[code]} for code in codes}


def _text(kind: str) -> dict[int | str, JsonObject]:
    return {200: {"content": {kind: {"schema": {"type": "string"}}}}}


def _operation_id(route: APIRoute) -> str:
    return "".join(route.methods or ()).lower() + route.path.translate(str.maketrans("/.", "__", "{}"))


_facts = APIRouter(responses=_errors(401, 403), generate_unique_id_function=_operation_id)
_asked = APIRouter(
    route_class=JsonRoute,
    responses=_errors(401, 403, 400, 404, 408, 413, 415, 422, 429, 500, 503),
    generate_unique_id_function=_operation_id,
)


@_asked.post("/v1/embeddings")
async def embeddings(body: schemas.EmbeddingsRequest, request: Request) -> schemas.EmbeddingsResponse:
    """Vectors of texts, in OpenAI format."""
    service = _service(request)
    served = service.model(body.model)
    arguments = {name: value for name in ("layer", "pooling", "side") if (value := getattr(body, name)) is not None}
    try:
        settings: VectorSettings = served.model.vector_settings(**arguments)
    except SettingsError as error:  # the schema has checked the others
        raise Refusal(422, error.message, "layer") from None
    if body.dimensions is not None:
        if body.dimensions > (width := served.model.width(settings)):
            raise Refusal(
                422,
                Message(
                    "dimensions: {dimensions}, the vectors of {model} have {width:,}",
                    dimensions=body.dimensions,
                    model=served.name,
                    width=width,
                ),
                "dimensions",
            )
        settings = settings.model_copy(update={"size": body.dimensions})
    items = [(text, settings) for text in _as_list(body.input)]
    _, job = await service.ask(request, body, "embed", items)
    data = []
    for index, vector in enumerate(job.answers):
        encoded = vector.tolist()
        if body.encoding_format == "base64":
            encoded = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        data.append(schemas.EmbeddingObject(index=index, embedding=encoded))
    return schemas.EmbeddingsResponse(
        data=data,
        model=served.name,
        usage=schemas.Usage(prompt_tokens=job.pieces, total_tokens=job.pieces),
    )


@_asked.post("/similar", response_model_exclude_unset=True)
async def similar(body: schemas.SimilarRequest, request: Request) -> schemas.SimilarResponse:
    """The texts of the index that are most similar to each text."""
    service = _service(request)
    items = [(text, (body.top, body.way, body.where)) for text in _as_list(body.input)]
    check_results(len(items) * body.top, service.limits)
    _, job = await service.ask(request, body, "similar", items)
    return schemas.SimilarResponse(data=job.answers)


@_asked.post("/tokenize")
async def tokenize(body: schemas.TokenizeRequest, request: Request) -> schemas.TokenizeResponse:
    """Pieces of texts with their spans and tags."""
    items = [(text, body.special_tokens) for text in _as_list(body.input)]
    name, job = await _service(request).ask(request, body, "tokenize", items)
    return schemas.TokenizeResponse(model=name, data=job.answers)


@_asked.post("/fill")
async def fill(body: schemas.FillRequest, request: Request) -> schemas.FillResponse:
    """The most probable pieces for each [MASK]."""
    service = _service(request)
    items = [(text, body.top) for text in _as_list(body.input)]
    check_results(sum(text.count("[MASK]") for text, _ in items) * body.top, service.limits)
    name, job = await service.ask(request, body, "fill", items)
    return schemas.FillResponse(model=name, data=job.answers)


@_asked.post("/predict")
async def predict(body: schemas.PredictRequest, request: Request) -> schemas.PredictResponse:
    """Predictions of a fine-tuned model: labels, numbers, spans."""
    name, job = await _service(request).ask(request, body, "predict", _as_list(body.input))
    return schemas.PredictResponse(model=name, data=job.answers)


@_asked.post("/rows")
async def rows(body: schemas.RowsRequest, request: Request) -> schemas.RowsResponse:
    """The rows of a file of any format that `korbert predict` reads, as /predict takes them."""
    service = _service(request)
    served = service.model(body.model, "predict")
    try:
        content = base64.b64decode(body.content, validate=True)
    except ValueError:
        raise Refusal(422, Message("content: is not base64"), "content") from None
    try:
        file_rows = await asyncio.to_thread(rows_of, served.model, content, body.name, body.text, service.limits)
    except ColumnsMissing as error:  # its message proposes options of the command line
        values = error.message.values
        fault = Message(
            "content: no column {values} among {columns}: name the column of the text",
            values=values["values"], columns=values["columns"],
        )  # fmt: skip
        raise Refusal(422, fault, "content") from None
    except KorbertError as error:
        raise Refusal(422, Message("content: {error}", error=error.message), "content") from None
    return schemas.RowsResponse(model=served.name, data=file_rows)


@_asked.post("/answer", response_model_exclude_unset=True)
async def answer(body: schemas.AnswerRequest, request: Request) -> schemas.AnswerResponse:
    """Answers to questions, as spans of texts."""
    questions = _as_list(body.question)
    contexts = _as_list(body.context)
    if isinstance(body.question, str) != isinstance(body.context, str) or len(questions) != len(contexts):
        raise Refusal(
            422,
            Message(
                "context: {contexts} for {questions} questions: give two texts, or two lists of the same length",
                contexts=len(contexts),
                questions=len(questions),
            ),
            "context",
        )
    items = list(zip(questions, contexts, strict=True))
    name, job = await _service(request).ask(request, body, "answer", items, "context")
    return schemas.AnswerResponse(model=name, data=job.answers)


@_asked.post("/attention")
async def attention(body: schemas.AttentionRequest, request: Request) -> schemas.AttentionResponse:
    """Data of the page for a text or a pair."""
    items = [(body.text, body.pair, body.attribution)]
    _, job = await _service(request).ask(request, body, "attention", items, "text")
    return schemas.AttentionResponse(**job.answers[0])


def _as_list(value: T | list[T]) -> list[T]:
    return value if isinstance(value, list) else [value]


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


@_facts.get("/v1/models")
async def models(request: Request) -> schemas.ModelList:
    """Names of the models."""
    return schemas.ModelList(data=[schemas.ModelName(id=name) for name in _service(request).models])


@_facts.get("/v1/models/{model}", responses=_errors(404, 422, 503))
async def model(model: str, request: Request) -> schemas.ModelName:
    """The name of a model, if it is served."""
    return schemas.ModelName(id=_service(request).model(model).name)


@_facts.get("/health")
async def health(request: Request) -> schemas.HealthResponse:
    """Status of the service, its models and index."""
    service = _service(request)
    served = service.models.values() if service.may_ask(request.headers) else ()
    return schemas.HealthResponse(
        status=service.status,
        models=[
            schemas.ModelFacts(
                name=entry.name,
                kind=entry.kind,
                operations=sorted(entry.operations),
                reads=list(entry.reads),
                precision=entry.model.precision,
            )
            for entry in served
        ],
        index=service.index is not None,
    )


@_facts.get("/ready", responses=_errors(503))
async def ready(request: Request) -> schemas.ReadyResponse:
    """Whether the models are loaded."""
    if (status := _service(request).status) != "ready":
        raise Refusal(503, Message("the service is {status}", status=status), headers={"retry-after": "5"})
    return schemas.ReadyResponse()


@_facts.get("/metrics", response_class=Response, responses=_text("text/plain"))
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    figures = _service(request).batcher.metrics
    return Response(figures.text(), media_type=figures.content_type)


@_facts.get("/openapi.json")
async def openapi(request: Request) -> JsonObject:
    """This document."""
    document: JsonObject = request.app.openapi()
    return document


@_facts.get("/docs", response_class=Response, responses=_text("text/html"))
async def docs(request: Request) -> Response:
    """This document as a page."""
    described = fill_template(
        "service.html",
        document=request.app.openapi(),
        codes=CODES,
        address=str(request.base_url),
        written=partial(json.dumps, ensure_ascii=False),
        lang=language(request.headers.get("accept-language", "")),
    )
    return HTMLResponse(described, headers={"content-security-policy": _PAGE_POLICY})


@_facts.get("/", response_class=Response, responses=_text("text/html") | _errors(404))
async def page(request: Request) -> Response:
    """The page that shows what a model does."""
    if (service := _service(request)).page is None:
        raise Refusal(404, Message("this service has no page: see /docs"))
    return HTMLResponse(
        service.page(request.headers.get("accept-language", "")), headers={"content-security-policy": _PAGE_POLICY}
    )


ROUTES = [route for router in (_asked, _facts) for route in router.routes if isinstance(route, APIRoute)]
