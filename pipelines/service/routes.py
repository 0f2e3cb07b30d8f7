"""The routes: what each one reads, asks of the batcher, and answers. ROUTES is their table, for description.py, too."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from pipelines.service import forms
from pipelines.service.batching import Batcher, Job, Operation, Row
from pipelines.service.bodies import read_form
from pipelines.service.gate import Json, may_ask
from pipelines.service.limits import CHARS_A_PIECE, Limits
from pipelines.service.refusals import Refusal
from pipelines.service.served import Searcher, Served

__all__ = ["ROUTES", "Described", "Service"]

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


class Service:
    """What the routes share. models: name -> model, the default first; empty while they are loaded.

    searcher: what /similar searches. page: the text of `GET /`. Both None: there is none. token: as Gate has it.
    """

    def __init__(
        self, batcher: Batcher, limits: Limits, page: Callable[[], str] | None = None, token: str | None = None
    ) -> None:
        self.batcher, self.limits, self.page, self.token = batcher, limits, page, token
        self.models: Mapping[str, Served] = {}
        self.searcher: Searcher | None = None
        self.search: Operation | None = None
        self.status = "loading"

    def ready(self, models: Mapping[str, Served], searcher: Searcher | None) -> None:
        """From now on the models answer."""
        self.models, self.searcher = models, searcher
        if searcher is not None:
            self.search = _search(searcher, self.limits)
        self.status = "ready"

    def model(self, name: str | None) -> Served:
        """The model of that name, or the default. Refusal 503 while they are loaded, 404 where there is none."""
        if not self.models:
            raise Refusal(503, "the models are being loaded: try again in some seconds", None, retry_after=5)
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise Refusal(404, f"no model has that name: there are {', '.join(self.models)}", "model")
        return self.models[name]

    def operation(self, served: Served, name: str, about: str) -> Operation:
        """The operation of a model. Refusal 404 where its kind cannot do it. about: what it cannot, for the error."""
        if name not in served.operations:
            able = [other.name for other in self.models.values() if name in other.operations]
            others = f": name one that can: {', '.join(able)}" if able else ""
            raise Refusal(404, f"{served.name} is a model of the kind {served.kind}, which {about}{others}", "model")
        return served.operations[name]

    def check_number(self, number: int, param: str = "input") -> None:
        """Refusal 413 for more texts than a request may have."""
        if number > self.limits.texts:
            raise Refusal(
                413, f"{number:,} texts, at most {self.limits.texts:,} are taken: send several requests", param
            )

    async def ask(
        self, request: Request, operation: Operation, items: Sequence[Any], chars: Sequence[int],
        name: Callable[[int], str],
    ) -> Job:  # fmt: skip
        """The job, once all items have answers. name: number of an item -> what the request calls it.

        Refusal where an item is refused, the model fails, or limits.seconds pass; ClientDisconnect where the client
        leaves, whose places are then free.
        """
        job = self.batcher.submit(operation, items, chars)
        leaving = asyncio.ensure_future(request.receive())  # behind the body: the next thing to come is that it leaves
        try:
            either: list[asyncio.Future[Any]] = [job.future, leaving]
            await asyncio.wait(either, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if job.future.done():
                job.future.result()
                return job
            if leaving.done():
                raise ClientDisconnect
            raise Refusal(503, f"no answer within {self.limits.seconds:g} s: send fewer texts", None, retry_after=5)
        except Refusal as refusal:
            if refusal.param is None:
                raise
            param = name(int(refusal.param))
            raise Refusal(refusal.status, f"{param}: {refusal.message}", param) from None
        finally:
            leaving.cancel()
            self.batcher.give_up(job)


def _search(searcher: Searcher, limits: Limits) -> Operation:
    """(text, top, way) -> {"hits": [hit, ..]}. All on the model's thread, as an index embeds what it searches for."""

    def row(item: tuple[str, int, str]) -> Row | Refusal:
        if len(item[0]) > CHARS_A_PIECE * limits.pieces:
            return Refusal(413, f"has {len(item[0]):,} characters, at most {CHARS_A_PIECE * limits.pieces:,} are taken")
        return Row(len(item[0]) // CHARS_A_PIECE + 2, item)

    def forward(items: Sequence[tuple[str, int, str]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{} for _ in items]
        for top, way in dict.fromkeys(item[1:] for item in items):
            places = [place for place, item in enumerate(items) if item[1:] == (top, way)]
            hits = searcher.search([items[place][0] for place in places], top=top, way=way)
            for place, own in zip(places, hits, strict=True):
                found[place] = {"hits": [{name: getattr(hit, name) for name in forms.Hit.model_fields} for hit in own]}
        return found

    return Operation(lambda items: list(map(row, items)), forward)


async def _embeddings(service: Service, request: Request) -> Response:
    form = await read_form(request, forms.Embeddings, service.limits)
    served, texts = service.model(form.model), _listed(form.input)
    size = int(served.model.model.config.hidden_size)
    if form.dimensions is not None and form.dimensions > size:
        raise Refusal(422, f"dimensions: {form.dimensions:,}, the vectors of {served.name} have {size:,}", "dimensions")
    service.check_number(len(texts))
    operation = service.operation(served, "embed", "gives no vectors")
    job = await service.ask(request, operation, texts, list(map(len, texts)), _names("input", form.input))
    data = []
    for place, vector in enumerate(job.answers):
        if form.dimensions is not None:
            vector = vector[: form.dimensions]
            if getattr(served.model.model, "normalize", False):
                vector = vector / max(float(np.linalg.norm(vector)), 1e-12)
        packed = base64.b64encode(vector.astype("<f4").tobytes()).decode()
        shown = packed if form.encoding_format == "base64" else vector.tolist()
        data.append({"object": "embedding", "index": place, "embedding": shown})
    usage = {"prompt_tokens": job.pieces, "total_tokens": job.pieces}
    return Json({"object": "list", "data": data, "model": served.name, "usage": usage})


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
            422, f"context: {len(contexts)} for {len(questions)} questions: give two texts, or lists alike", "context"
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
    """{"model", "data": the answer to each item}. name, about: as Service.operation has them."""
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
    """What a request calls its items: input, or input[3]."""
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
    """A route, and what the OpenAPI document says of it.

    form, example: of its body; None: it has none. answer: the form of a JSON answer, or the media type of another one.
    codes: refusals beside 401 and 403, which any route may give.
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
    Described("POST", "/v1/embeddings", _embeddings, "Vectors of texts, in OpenAI's form.", forms.EmbeddingsAnswer,
              forms.Embeddings, {"input": ["신용 대출을 신청하고 싶어요", "대출 신청은 어떻게 하나요?"]}, _ASKED),
    Described("POST", "/similar", _similar, "The texts of the index that are nearest to each text.", forms.Listed,
              forms.Similar, {"input": "신용 대출을 신청하고 싶어요", "top": 3}, _ASKED),
    Described("POST", "/tokenize", _tokenize, "Texts as pieces with their spans and tags.", forms.Tokenized,
              forms.Tokenize, {"input": "학교에 간다"}, _ASKED),
    Described("POST", "/fill", _fill, "The likeliest pieces for each [MASK].", forms.Filled,
              forms.Fill, {"input": "오늘 [MASK] 정말 좋다", "top": 3}, _ASKED),
    Described("POST", "/predict", _predict, "What a model has learned to predict: labels, numbers, spans.",
              forms.Predicted, forms.Predict, {"input": "정말 좋은 영화"}, _ASKED),
    Described("POST", "/answer", _answer, "Answers to questions, cut out of texts.", forms.Answers, forms.Answer,
              {"question": "한글은 언제 만들어졌나?", "context": "세종은 1443년에 한글을 만들었다."}, _ASKED),
    Described("POST", "/attention", _attention, "What the page shows of a text or a pair.", forms.Seen,
              forms.Attention, {"text": "신용 대출을 신청하고 싶어요"}, _ASKED),
    Described("GET", "/v1/models", _models, "The names of the models.", forms.Models),
    Described("GET", "/health", _health, "Whether the service runs, and what it has.", forms.Health),
    Described("GET", "/ready", _ready, "Whether the models are loaded.", forms.Ready, codes=(503,)),
    Described("GET", "/metrics", _metrics, "Counts and times for Prometheus.", "text/plain"),
    Described("GET", "/openapi.json", _openapi, "This document.", "application/json"),
    Described("GET", "/docs", _docs, "This document as a page.", "text/html"),
    Described("GET", "/", _page, "The page that shows what a model does.", "text/html", codes=(404,)),
)  # fmt: skip
