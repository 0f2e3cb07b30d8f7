"""State shared by the handlers: the models and the index; waits for the answers to a request."""

import asyncio
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import Request
from starlette.datastructures import Headers

from korbert.messages import Message
from korbert.names import nfc
from korbert.pipelines.service.batching import Batcher, Job, Operation
from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.refusals import Refusal
from korbert.pipelines.service.schemas import Body

_CANNOT = {  # operation -> what models without it cannot do
    "embed": Message("gives no vectors"),
    "tokenize": Message("has no tokenizer"),
    "fill": Message("fills no gaps"),
    "predict": Message("predicts no labels"),
    "answer": Message("answers no questions"),
    "attention": Message("shows no attention"),
}


@dataclass(frozen=True)
class Served:
    """A model with its name in requests.

    kind: that of its task; without a task, that in config.json. operations: by name; only an index has "similar".
    reads: the roles that a prediction needs.
    """

    name: str
    kind: str
    model: Any
    operations: Mapping[str, Operation]
    reads: Sequence[str] = ()


class Service:
    """The state of a service. models: by name, in the order of preference for requests without a name.

    It is empty while the models are loading. index: what /similar searches, if there is one. page: Accept-Language ->
    the body of `GET /`; None: no page. token: see may_ask.
    """

    def __init__(self, limits: Limits, page: Callable[[str], str] | None = None, token: str | None = None) -> None:
        self.batcher = Batcher(limits)
        self.limits = limits
        self.page = page
        self.token = token
        self.models: Mapping[str, Served] = {}
        self.index: Served | None = None
        self.status: Literal["loading", "ready", "ending"] = "loading"

    def may_ask(self, headers: Headers) -> bool:
        """Whether a request has the token, if one is needed. Compares it in constant time."""
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        return self.token is None or (
            scheme.lower() == "bearer" and hmac.compare_digest(sent.encode("latin-1"), self.token.encode())
        )

    def model(self, name: str | None, operation: str = "embed") -> Served:
        """The model of that name; by default the first that supports the operation, an embedding model for "embed".

        For "similar" it is the index, whatever the name. Refusal 503 while models are loading, 404 for an unknown name,
        for a model whose kind lacks the operation, and without an index.
        """
        if not self.models:
            raise Refusal(
                503, Message("the models are loading: try again in a few seconds"), headers={"retry-after": "5"}
            )
        if operation == "similar":
            if self.index is None:
                raise Refusal(404, Message("this service has no index: start it with --index"))
            return self.index
        able = [served for served in self.models.values() if operation in served.operations]
        if name is None:
            embedders = [served for served in able if operation == "embed" and served.kind == "embedding"]
            served = next(iter([*embedders, *able, *self.models.values()]))
        elif nfc(name) in self.models:
            served = self.models[nfc(name)]
        else:
            raise Refusal(
                404, Message("no model has that name: available are {models}", models=", ".join(self.models)), "model"
            )
        if operation not in served.operations:
            facts = {"served": served.name, "kind": served.kind, "about": _CANNOT[operation]}
            message = Message("{served} is a model of kind {kind}, which {about}", **facts)
            if able:
                names = ", ".join(entry.name for entry in able)
                message = Message(
                    "{served} is a model of kind {kind}, which {about}: name one that can: {names}",
                    names=names,
                    **facts,
                )
            raise Refusal(404, message, "model")
        return served

    async def ask(
        self, request: Request, body: Body, operation: str, items: Sequence[object], param: str = "input"
    ) -> tuple[str, Job]:
        """Queues items and waits for their answers. Returns the name of the model, and the job with the answers.

        param: the field of the body whose items these are, for messages such as "input[3]: too long". Refusal if there
        are too many items, one is refused, the model fails, limits.seconds pass, or the client leaves. The places in
        the queue are freed in any case.
        """
        served = self.model(body.model, operation)
        if len(items) > self.limits.texts:
            raise Refusal(
                413,
                Message(
                    "{number:,} texts, at most {most:,} are accepted: send several requests",
                    number=len(items),
                    most=self.limits.texts,
                ),
                param,
            )
        job = self.batcher.submit(served.operations[operation], items)
        # After the body, the next message means that the client left.
        leaving = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait((job.future, leaving), timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if job.future.done():
                job.future.result()
                return served.name, job
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
            # The batcher knows the number of the item; here it gets the name of its field.
            place = f"{param}[{refusal.param}]" if isinstance(getattr(body, param), list) else param
            raise Refusal(
                refusal.status_code, Message("{place}: {detail}", place=place, detail=refusal.detail), place
            ) from None
        finally:
            leaving.cancel()
            self.batcher.give_up(job)
