"""The queue and its two threads, with toy operations."""

import asyncio
import re
import threading

import pytest

from korbert.pipelines.service import Batcher, Limits, Operation, Refusal, TokenizedItem


class PanicError(BaseException):
    """As libraries in Rust raise it."""


class Toy:
    """An operation whose rows are numbers, which are their pieces, too. open: the model may go on."""

    def __init__(self):
        self.batches: list[list[int]] = []
        self.open = threading.Event()
        self.open.set()
        self.inside = threading.Event()  # it has a batch
        self.operation = Operation(self._tokenize, self._forward)

    def _tokenize(self, items):
        if -2 in items:
            raise ZeroDivisionError
        return [TokenizedItem(item, item) if item >= 0 else Refusal(413, "too long") for item in items]

    def _forward(self, rows):
        self.inside.set()
        assert self.open.wait(30)
        self.batches.append(list(rows))
        if 13 in rows:
            raise RuntimeError("the text")
        if 17 in rows:
            raise Refusal(422, "not this")
        if 19 in rows:
            raise PanicError
        return [2 * row for row in rows]


@pytest.fixture
def toy():
    made = Toy()
    yield made
    made.open.set()


def _run(work, **limits):
    async def all_of_it():
        batcher = Batcher(Limits(**limits))
        batcher.start()
        try:
            return await asyncio.wait_for(work(batcher), 60)
        finally:
            batcher.stop()

    return asyncio.run(all_of_it())


async def _until(holds):
    while not holds():
        await asyncio.sleep(0.01)


def test_answers_are_in_order_and_batches_bounded_by_pieces(toy):
    async def work(batcher):
        jobs = [batcher.submit(toy.operation, [number % 7 for number in range(size)]) for size in (100, 1, 33)]
        for job in jobs:
            assert await job.future == [2 * item for item in job.items]
            assert job.pieces == sum(job.items)
        assert batcher.waiting == 0
        assert await batcher.submit(toy.operation, [40, 1, 50]).future == [80, 2, 100]

    _run(work, batch_pieces=16)
    assert toy.batches[-3:] == [[40], [1], [50]]  # a row longer than a batch is a batch
    assert all(sum(batch) <= 16 for batch in toy.batches[:-3])
    assert sum(map(len, toy.batches)) == 137
    assert max(map(len, toy.batches)) > 1


def test_waiting_requests_share_a_batch_ahead_of_a_long_list(toy):
    async def work(batcher):
        toy.open.clear()
        long = batcher.submit(toy.operation, [1] * 500)
        await _until(lambda: long.taken == 128)  # one batch is in the model, three are ready
        alone = [batcher.submit(toy.operation, [2]) for _ in range(3)]
        toy.open.set()
        await asyncio.gather(long.future, *(job.future for job in alone))

    _run(work, batch_pieces=32)
    assert [batch.count(2) for batch in toy.batches[:5]] == [0, 0, 0, 0, 3]
    assert sum(toy.batches[4]) == 32


def test_operations_alternate():
    first = Toy()
    second = Toy()
    second.batches = first.batches

    async def work(batcher):
        first.open.clear()
        long = batcher.submit(first.operation, [1] * 400)
        short = batcher.submit(second.operation, [7])
        first.open.set()
        await asyncio.gather(long.future, short.future)

    _run(work, batch_pieces=16)
    assert first.batches.index([7]) < 8 < len(first.batches)


def test_an_error_fails_only_its_own_request(toy, caplog):
    async def work(batcher):
        toy.open.clear()
        blocking = batcher.submit(toy.operation, [1])
        await _until(toy.inside.is_set)
        wrong, beside, later = (batcher.submit(toy.operation, items) for items in ([13], [3], [14]))
        toy.open.set()
        assert await blocking.future == [2]
        with pytest.raises(Refusal, match="the model failed on this request") as caught:
            await wrong.future
        assert caught.value.status_code == 500
        assert await beside.future == [6]
        assert await later.future == [28]
        assert await batcher.submit(toy.operation, [5]).future == [10]
        with pytest.raises(Refusal, match="the model failed"):
            await batcher.submit(toy.operation, [-2]).future
        assert await batcher.submit(toy.operation, [5]).future == [10]
        assert batcher.waiting == 0

    _run(work, batch_pieces=16)
    assert "RuntimeError <- " in caplog.text
    assert "the text" not in caplog.text


def test_a_refusal_of_the_model_is_that_of_the_request_alone(toy, caplog):
    async def work(batcher):
        refused, beside = batcher.submit(toy.operation, [17]), batcher.submit(toy.operation, [3])
        with pytest.raises(Refusal, match="not this"):
            await refused.future
        assert await beside.future == [6]
        assert batcher.waiting == 0

    _run(work, batch_pieces=32)
    assert caplog.text == ""


def test_a_panic_fails_its_request_and_the_thread_goes_on(toy, caplog):
    async def work(batcher):
        with pytest.raises(Refusal, match="the model failed on this request"):
            await batcher.submit(toy.operation, [19]).future
        assert await batcher.submit(toy.operation, [5]).future == [10]

    _run(work)
    assert re.search(r"RuntimeError <- .*test_batching\.py:\d+ _forward", caplog.text)


def test_a_refused_item_fails_its_request_with_its_number(toy):
    async def work(batcher):
        both = batcher.submit(toy.operation, [1, 2, -1, 4]), batcher.submit(toy.operation, [6])
        with pytest.raises(Refusal, match="too long") as caught:
            await both[0].future
        assert caught.value.status_code == 413
        assert caught.value.param == "2"
        assert await both[1].future == [12]
        assert batcher.waiting == 0

    _run(work)


def test_a_full_queue_refuses_with_retry_after(toy):
    async def work(batcher):
        toy.open.clear()
        large = batcher.submit(toy.operation, [1] * 12)  # more than the queue, but nobody waits
        with pytest.raises(Refusal, match="12 texts are waiting: try again in 1 s") as caught:
            batcher.submit(toy.operation, [1])
        assert caught.value.status_code == 429
        assert caught.value.headers == {"retry-after": "1"}
        toy.open.set()
        await large.future
        assert await batcher.submit(toy.operation, [1] * 10).future == [2] * 10

    _run(work, queue=10)


def test_an_abandoned_job_frees_its_queue_places(toy):
    async def work(batcher):
        toy.open.clear()
        jobs = [batcher.submit(toy.operation, [place] * 5) for place in (1, 2)]
        await _until(lambda: batcher._ready_pieces > 0)
        for job in jobs:
            batcher.give_up(job)
            batcher.give_up(job)
        assert batcher.waiting == 0
        assert jobs[0].future.cancelled()
        last = batcher.submit(toy.operation, [3] * 10)
        toy.open.set()
        assert await last.future == [6] * 10

    _run(work, queue=10, batch_pieces=4)
    assert len([batch for batch in toy.batches if 2 in batch]) <= 1
