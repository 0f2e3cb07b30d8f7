"""State shared by the handlers: the models and the index; waits for the answers to a request."""

import asyncio
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import Request
from starlette.datastructures import Headers

from korbert.messages import Message
from korbert.pipelines.service.batching import Batcher, Job, Operation
from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.refusals import Refusal


@dataclass(frozen=True)
class Served:
    """A model with its name in requests. kind: that of config.json."""

    name: str
    kind: str
    model: Any
    operations: Mapping[str, Operation]


class Service:
    """models: name -> model, the default first; empty while they are loading.

    search: of the index, if there is one. page: Accept-Language -> the body of `GET /`; None: no page. token: see
    may_ask.
    """

    def __init__(self, limits: Limits, page: Callable[[str], str] | None = None, token: str | None = None) -> None:
        self.batcher, self.limits, self.page, self.token = Batcher(limits), limits, page, token
        self.models: Mapping[str, Served] = {}
        self.search: Operation | None = None
        self.status: Literal["loading", "ready", "ending"] = "loading"

    def may_ask(self, headers: Headers) -> bool:
        """Whether a request has the token, if one is needed. Compared in constant time."""
        sent = headers.get("authorization", "").encode("latin-1")
        return self.token is None or hmac.compare_digest(sent, f"Bearer {self.token}".encode())

    def ready(self, models: Mapping[str, Served], search: Operation | None) -> None:
        """Installs the loaded models; from now on requests are answered."""
        self.models, self.search = models, search
        if self.status == "loading":
            self.status = "ready"

    def model(self, name: str | None, operation: str = "embed") -> Served:
        """The model of that name; by default the first that supports the operation, an embedding model for "embed".

        Refusal 503 while they are loading, 404 for an unknown name.
        """
        if not self.models:
            raise Refusal(
                503, Message("the models are loading: try again in a few seconds"), headers={"retry-after": "5"}
            )
        if name is None:
            able = [served for served in self.models.values() if operation in served.operations]
            learned = [served for served in able if operation == "embed" and served.kind == "embedding"]
            return next(iter([*learned, *able, *self.models.values()]))
        if name not in self.models:
            raise Refusal(
                404, Message("no model has that name: available are {models}", models=", ".join(self.models)), "model"
            )
        return self.models[name]

    def operation(self, served: Served, name: str, about: str) -> Operation:
        """The operation of a model. Refusal 404 if its kind lacks it. about: what such a model cannot do."""
        if name not in served.operations:
            able = [other.name for other in self.models.values() if name in other.operations]
            others = f": name one that can: {', '.join(able)}" if able else ""
            raise Refusal(
                404,
                Message(
                    "{served} is a model of kind {kind}, which {about}{others}",
                    served=served.name,
                    kind=served.kind,
                    about=about,
                    others=others,
                ),
                "model",
            )
        return served.operations[name]

    async def ask(self, request: Request, operation: Operation, items: Sequence[Any], param: str, value: Any) -> Job:
        """The job, once all items have answers.

        param, value: the field of the request whose items these are, for messages such as "input[3]: too long".
        Refusal if there are too many items, one is refused, the model fails, limits.seconds pass, or the client leaves.
        In any case the places in the queue are freed.
        """
        if len(items) > self.limits.texts:
            message = f"{len(items):,} texts, at most {self.limits.texts:,} are accepted: send several requests"
            raise Refusal(413, message, param)
        job = self.batcher.submit(operation, items)
        # After the body, the next message means that the client left.
        leaving = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait((job.future, leaving), timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if job.future.done():
                job.future.result()
                return job
            if leaving.done():
                raise Refusal(499, Message("the client left"))
            raise Refusal(
                503,
                Message("no answer within {seconds:g} s: send fewer texts", seconds=self.limits.seconds),
                headers={"retry-after": "5"},
            )
        except Refusal as refusal:
            if refusal.param is None:
                raise
            place = f"{param}[{refusal.param}]" if isinstance(value, list) else param
            raise Refusal(
                refusal.status_code, Message("{place}: {detail}", place=place, detail=refusal.detail), place
            ) from None
        finally:
            leaving.cancel()
            self.batcher.give_up(job)
