"""The handlers of all routes, and the table ROUTES, from which description.py builds the documentation."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from korbert.errors import SettingsError
from korbert.vectors.settings import VectorSettings
from pipelines.service import forms
from pipelines.service.bodies import read_form
from pipelines.service.gate import Json, may_ask
from pipelines.service.refusals import Refusal
from pipelines.service.served import Served
from pipelines.service.shared import Service

__all__ = ["ROUTES", "Described"]

_PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'unsafe-inline'",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)


async def _embeddings(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Embeddings, service.limits)
    served, texts = service.model(form.model), _listed(form.input)
    settings = await _vector_settings(served, form)
    service.check_number(len(texts))
    operation = service.operation(served, "embed", "gives no vectors")
    items = [(text, settings) for text in texts]
    job = await service.ask(request, operation, items, list(map(len, texts)), _names("input", form.input))
    data = []
    for place, vector in enumerate(job.answers):
        packed = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        shown = packed if form.encoding_format == "base64" else vector.tolist()
        data.append({"object": "embedding", "index": place, "embedding": shown})
    usage = {"prompt_tokens": job.pieces, "total_tokens": job.pieces}
    return Json({"object": "list", "data": data, "model": served.name, "usage": usage})


async def _vector_settings(served: Served, form: forms.Embeddings) -> VectorSettings:
    """The requested settings, else the model's defaults. Refusal 422 for settings that the model does not support."""
    given = {"layer": form.layer, "pooling": form.pooling}
    try:
        settings: VectorSettings = served.model.vector_settings(**{k: v for k, v in given.items() if v is not None})
    except SettingsError as error:  # the form has checked the others
        raise Refusal(422, str(error), "layer") from None
    if form.dimensions is not None and form.dimensions > (width := served.model.width(settings)):
        raise Refusal(422, f"dimensions: {form.dimensions}, the vectors of {served.name} have {width:,}", "dimensions")
    if form.dimensions is not None:
        settings = settings.model_copy(update={"size": form.dimensions})
    from korbert.vectors import POOLINGS  # imports torch

    if POOLINGS[settings.pooling].counts:
        try:
            await asyncio.to_thread(getattr, served.model, "piece_counts")  # read from a file, once
        except SettingsError:  # its text names a folder
            others = ", ".join(name for name, pooling in POOLINGS.items() if not pooling.counts)
            lacks = f"{served.name} has no piece counts, which {settings.pooling} needs"
            raise Refusal(422, f"pooling: {lacks}: use {others}", "pooling") from None
    return settings


async def _tokenize(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Tokenize, service.limits)
    items = [(text, form.special_tokens) for text in _listed(form.input)]
    return await _of_model(service, request, form, "tokenize", "has no tokenizer", items)


async def _fill(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Fill, service.limits)
    items = [(text, form.top) for text in _listed(form.input)]
    return await _of_model(service, request, form, "fill", "fills no gaps", items)


async def _predict(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Predict, service.limits)
    return await _of_model(service, request, form, "predict", "predicts no labels", _listed(form.input))


async def _answer(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Answer, service.limits)
    questions, contexts = _listed(form.question), _listed(form.context)
    if isinstance(form.question, str) != isinstance(form.context, str) or len(questions) != len(contexts):
        raise Refusal(
            422,
            f"context: {len(contexts)} for {len(questions)} questions: give two texts, or two lists of the same length",
            "context",
        )
    items = list(zip(questions, contexts, strict=True))
    return await _of_model(service, request, form, "answer", "answers no questions", items)


async def _similar(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Similar, service.limits)
    if service.search is None:
        raise Refusal(404, "this service has no index: start it with --index")
    items = [(text, form.top, form.way) for text in _listed(form.input)]
    service.check_number(len(items))
    job = await service.ask(
        request, service.search, items, [len(item[0]) for item in items], _names("input", form.input)
    )
    return Json({"data": job.answers})


async def _attention(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Attention, service.limits)
    served = service.model(form.model)
    operation = service.operation(served, "attention", "shows no attention")
    chars = len(form.text) + len(form.pair or "")
    job = await service.ask(request, operation, [(form.text, form.pair)], [chars], lambda number: "text")
    return Json(job.answers[0])


async def _of_model(
    service: Service, request: Request, form: Any, name: str, about: str, items: Sequence[Any]
) -> Response:
    """{"model", "data": the answer for each item}. name, about: see Service.operation."""
    served = service.model(form.model)
    operation = service.operation(served, name, about)
    param = "input" if hasattr(form, "input") else "context"
    service.check_number(len(items), param)
    chars = [len(item) if isinstance(item, str) else len(str(item)) for item in items]
    job = await service.ask(request, operation, items, chars, _names(param, getattr(form, param)))
    return Json({"model": served.name, "data": job.answers})


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list) else [given]


def _names(param: str, given: Any) -> Callable[[int], str]:
    """The place of an item in the request, by its number: input, or input[3]."""
    return lambda number: f"{param}[{number}]" if isinstance(given, list) else param


async def _models(service: Service, request: Request) -> Response:
    names = [{"id": name, "object": "model", "created": 0, "owned_by": "korbert"} for name in service.models]
    return Json({"object": "list", "data": names})


async def _health(service: Service, request: Request) -> Response:
    models = service.models.values() if may_ask(request.headers, service.token) else ()
    facts = [{"name": one.name, "kind": one.kind, "operations": sorted(one.operations)} for one in models]
    return Json({"status": service.status, "models": facts, "index": service.search is not None})


async def _ready(service: Service, request: Request) -> Response:
    if service.status != "ready":
        raise Refusal(503, f"the service is {service.status}", None, retry_after=5)
    return Json({"ready": True})


async def _metrics(service: Service, request: Request) -> Response:
    return Response(service.batcher.metrics.text(), media_type=service.batcher.metrics.content_type)


async def _openapi(service: Service, request: Request) -> Response:
    from pipelines.service.description import document

    return Json(document())


async def _docs(service: Service, request: Request) -> Response:
    from pipelines.service.description import page

    return HTMLResponse(page(), headers={"content-security-policy": _PAGE_POLICY})


async def _page(service: Service, request: Request) -> Response:
    if service.page is None:
        raise Refusal(404, "this service has no page: see /docs")
    return HTMLResponse(service.page(), headers={"content-security-policy": _PAGE_POLICY})


@dataclass(frozen=True)
class Described:
    """A route and its description in the OpenAPI document.

    form, example: of the body; None: the route takes none. answer: the form of a JSON response, or another media type.
    codes: errors besides 401 and 403, which any route may give.
    """

    method: str
    path: str
    handler: Callable[[Service, Request], Awaitable[Response]]
    about: str
    answer: type[BaseModel] | str
    form: type[forms.Form] | None = None
    example: Mapping[str, Any] = field(default_factory=dict)
    codes: tuple[int, ...] = ()


_ASKED = (400, 404, 408, 413, 422, 429, 500, 503)

ROUTES = (
    Described("POST", "/v1/embeddings", _embeddings, "Vectors of texts, in OpenAI format.", forms.EmbeddingsAnswer,
              forms.Embeddings, {"input": ["신용 대출을 신청하고 싶어요", "대출 신청은 어떻게 하나요?"]}, _ASKED),
    Described("POST", "/similar", _similar, "The texts of the index that are most similar to each text.", forms.Listed,
              forms.Similar, {"input": "신용 대출을 신청하고 싶어요", "top": 3}, _ASKED),
    Described("POST", "/tokenize", _tokenize, "Pieces of texts with their spans and tags.", forms.Tokenized,
              forms.Tokenize, {"input": "학교에 간다"}, _ASKED),
    Described("POST", "/fill", _fill, "The most probable pieces for each [MASK].", forms.Filled,
              forms.Fill, {"input": "오늘 [MASK] 정말 좋다", "top": 3}, _ASKED),
    Described("POST", "/predict", _predict, "Predictions of a fine-tuned model: labels, numbers, spans.",
              forms.Predicted, forms.Predict, {"input": "정말 좋은 영화"}, _ASKED),
    Described("POST", "/answer", _answer, "Answers to questions, as spans of texts.", forms.Answers, forms.Answer,
              {"question": "한글은 언제 만들어졌나?", "context": "세종은 1443년에 한글을 만들었다."}, _ASKED),
    Described("POST", "/attention", _attention, "Data of the page for a text or a pair.", forms.Seen,
              forms.Attention, {"text": "신용 대출을 신청하고 싶어요"}, _ASKED),
    Described("GET", "/v1/models", _models, "Names of the models.", forms.Models),
    Described("GET", "/health", _health, "Status of the service, its models and index.", forms.Health),
    Described("GET", "/ready", _ready, "Whether the models are loaded.", forms.Ready, codes=(503,)),
    Described("GET", "/metrics", _metrics, "Metrics for Prometheus.", "text/plain"),
    Described("GET", "/openapi.json", _openapi, "This document.", "application/json"),
    Described("GET", "/docs", _docs, "This document as a page.", "text/html"),
    Described("GET", "/", _page, "The page that shows what a model does.", "text/html", codes=(404,)),
)  # fmt: skip
