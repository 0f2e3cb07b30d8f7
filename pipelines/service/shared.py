"""State shared by the handlers: the models and the index; waits for the answers to a request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request

from korbert.vectors.names import Way
from pipelines.service.batching import Batcher, Job, Operation, Row
from pipelines.service.limits import CHARS_A_PIECE, Limits
from pipelines.service.refusals import Refusal
from pipelines.service.served import Searcher, Served

__all__ = ["Service"]


class Service:
    """models: name -> model, the default first; empty while they are loading.

    searcher: the index of /similar. page: returns the body of `GET /`. Either may be None. token: see may_ask.
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
        """Installs the loaded models; from now on requests are answered."""
        self.models, self.searcher = models, searcher
        if searcher is not None:
            self.search = _search(searcher, self.limits)
        self.status = "ready"

    def model(self, name: str | None) -> Served:
        """The model of that name, or the default. Refusal 503 while they are loading, 404 for an unknown name."""
        if not self.models:
            raise Refusal(503, "the models are loading: try again in a few seconds", None, retry_after=5)
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise Refusal(404, f"no model has that name: available are {', '.join(self.models)}", "model")
        return self.models[name]

    def operation(self, served: Served, name: str, about: str) -> Operation:
        """The operation of a model. Refusal 404 if its kind lacks it. about: what such a model cannot do."""
        if name not in served.operations:
            able = [other.name for other in self.models.values() if name in other.operations]
            others = f": name one that can: {', '.join(able)}" if able else ""
            raise Refusal(404, f"{served.name} is a model of kind {served.kind}, which {about}{others}", "model")
        return served.operations[name]

    def check_number(self, number: int, param: str = "input") -> None:
        """Refusal 413 for more texts than a request may have."""
        if number > self.limits.texts:
            limit = f"{number:,} texts, at most {self.limits.texts:,} are accepted"
            raise Refusal(413, f"{limit}: send several requests", param)

    async def ask(
        self, request: Request, operation: Operation, items: Sequence[Any], chars: Sequence[int],
        name: Callable[[int], str],
    ) -> Job:  # fmt: skip
        """The job, once all items have answers. name: number of an item -> its place in the request.

        Refusal if an item is refused, the model fails, or limits.seconds pass. ClientDisconnect if the client leaves.
        In any case the places in the queue are freed.
        """
        job = self.batcher.submit(operation, items, chars)
        leaving = asyncio.ensure_future(
            request.receive()
        )  # after the body, the next message means that the client left
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
    """(text, top, way) -> {"hits": [hit, ..]}; runs on the model's thread, as the index embeds the text."""

    def row(item: tuple[str, int, Way | None]) -> Row | Refusal:
        if len(item[0]) > CHARS_A_PIECE * limits.pieces:
            most = CHARS_A_PIECE * limits.pieces
            return Refusal(413, f"has {len(item[0]):,} characters, at most {most:,} are accepted")
        return Row(len(item[0]) // CHARS_A_PIECE + 2, item)

    def forward(items: Sequence[tuple[str, int, Way | None]]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{} for _ in items]
        for top, way in dict.fromkeys(item[1:] for item in items):
            places = [place for place, item in enumerate(items) if item[1:] == (top, way)]
            hits = searcher.search([items[place][0] for place in places], top=top, way=way)
            for place, own in zip(places, hits, strict=True):
                found[place] = {"hits": own}
        return found

    return Operation(lambda items: list(map(row, items)), forward)
