"""Three thousand hostile requests, overload, slow clients, and clients that disconnect."""

import asyncio
import json
import math
import random
import re
import socket
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.pipelines.service.started import toy
from tests.running import wait_until

PATHS = ("/v1/embeddings", "/fill", "/predict", "/answer", "/tokenize", "/similar", "/attention")
VALID = json.dumps({"input": ["학교에 간다", "글"], "encoding_format": "base64"}, ensure_ascii=False).encode()
LIMITS = {"body_bytes": 1_200_000, "body_seconds": 6.0, "head_seconds": 6.0, "seconds": 80.0, "connections": 400}


# Each family gives the bytes of a request, and the codes that may come back; 0: none does.
def _post(body, path="/v1/embeddings", *more):
    head = (f"POST {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}", *more)
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def _bad_json(rng):
    body = bytearray(VALID)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(body))
        body[at : at + rng.randint(0, 2)] = rng.choice([b"", b"{", b"\xff", b'"', b"\x00", b"]", b"\\", b"nan", b"\n"])
    return _post(bytes(body), rng.choice(PATHS)), {200, 400, 404, 422}


def _deep(rng):
    opening = rng.choice([b"[", b'{"input":'])
    return _post(opening * rng.randint(300, 20_000), rng.choice(PATHS)), {400}


def _announced_too_large(rng):
    length = rng.choice([1_200_001, 10**9, 10**17, 10**19])
    return _post(b"", "/fill", "X: y").replace(b"Content-Length: 0", b"Content-Length: %d" % length) + b"{", {413}


def _odd_lengths(rng):
    length = rng.choice([b"-1", b"x", b"1, 2", b"0x10", b"9" * 5_000, b"+5", b""])
    return _post(b"").replace(b"Content-Length: 0", b"Content-Length: " + length), {400, 413}


def _too_large(rng):
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [b" " * 65_536] * 19)
    head = b"POST /fill HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + chunks + b"0\r\n\r\n", {413}


def _odd_characters(rng):
    bad = [b"\\ud800", b"\\udfff\\ud800", b"\xed\xa0\x80", b"\xc0\x80", b"\x00"]
    good = [
        b"\\u0000" * 50, "\u200b\u202e\ufeff".encode() * 99, "e\u0301".encode() * 500, b"\\n" * 9_000,
        "\u1100\u1161\u11a8".encode() * 300, "😀\u200d".encode() * 400, b"<script>alert(1)</script>", b"' OR 1=1 --",
    ]  # fmt: skip
    text = rng.choice(bad + good)
    return _post(b'{"input": "%s"}' % text), {400 if text in bad else 200}


def _many_texts(rng):
    return _post(json.dumps({"input": ["가나다 " * 9] * 400, "encoding_format": "base64"}).encode()), {200, 429}


def _heads_without_end(rng):
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 700) for number in range(150))
    kinds = [lines, b"X: " + b"a" * 100_000, b"a" * 90_000]
    return b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + rng.choice(kinds), {400, 0}


def _no_http(rng):
    kinds = [
        b"\x16\x03\x01\x02\x00\x01" + rng.randbytes(60), b"GET\r\n\r\n", b"\r\n\r\n\r\nhello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n", b"GET /health HTTP/1.1\r\n\r\n", b"G\x00T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /fill HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
    ]  # fmt: skip
    return rng.choice(kinds), {400, 403, 404, 501}


def _unknown_paths(rng):
    long = "/v1/embeddings?x=" + "y" * 999
    path = rng.choice(["/../../etc/passwd", "/%2e%2e/x", "//", "/fill/..;/", "/%00", "/docs/%ff", long])
    method = rng.choice(["GET", "PUT", "TRACE", "OPTIONS", "PROPFIND"])
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode(), {404, 405}


def _valid(rng):
    return _post(VALID), {200, 429}


FAMILIES = {
    _bad_json: 700, _odd_characters: 700, _valid: 600, _announced_too_large: 150, _odd_lengths: 150, _no_http: 200,
    _unknown_paths: 300, _deep: 150, _heads_without_end: 30, _too_large: 15, _many_texts: 10,
}  # fmt: skip
SLOW = LEAVING = 60  # requests each whose body or head stops in the middle, whose sender waits or leaves


@asynccontextmanager
async def _connected(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _code(reader):
    """The status code, 0 if the connection ends without one, and all bytes received."""
    received = b""
    try:
        while part := await reader.read(1 << 16):
            received += part
    except ConnectionError:  # it closed while more was sent
        pass
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", received)
    return (int(match[1]) if match else 0), received


async def _send(port, data):
    async with _connected(port) as (reader, writer):
        writer.write(data)
        return await asyncio.wait_for(_code(reader), 90)


async def _attack(service, families, rng):
    """Sends all of these and the slow ones, 40 at a time. Returns the number of replies by family and code."""
    counts: Counter[str] = Counter()
    left = iter(families)

    async def quick():
        for family in left:
            data, codes = family(rng)
            code, received = await _send(service.port, data)
            assert code in codes, (family.__name__, data[:300], received[:300])
            if code >= 400:
                assert b"content-type: application/json\r\n" in received, (family.__name__, received[:300])
                assert b"x-content-type-options: nosniff\r\n" in received, (family.__name__, received[:300])
                assert json.loads(received.partition(b"\r\n\r\n")[2])["error"]["message"]
            counts[f"{family.__name__} {code}"] += 1

    async def slow(number):
        half = _post(VALID)[: -len(VALID) // 2] if number % 2 else b"GET /health HTTP/1.1\r\nHost: loc"
        code, _ = await _send(service.port, half)
        assert code == 408
        counts["slow 408"] += 1

    async def leaving(number):
        await asyncio.sleep(number * 0.02)
        async with _connected(service.port) as (_, writer):
            data = _post(json.dumps({"input": ["가나다"] * 30}).encode())
            writer.write(data[: len(data) if number % 2 else -9])
            await writer.drain()
        counts["left"] += 1

    waiting = [*map(slow, range(SLOW)), *map(leaving, range(LEAVING))]
    await asyncio.gather(*(quick() for _ in range(40)), *waiting)
    return counts


async def _ordinary_client(service, ended, expected):
    """Requests one vector after the other meanwhile. Returns the seconds of each."""
    seconds = []
    while not ended.is_set():
        began = time.monotonic()
        code, received = await _send(service.port, _post('{"input": "학교에 간다"}'.encode()))
        assert code == 200
        vector = json.loads(received.partition(b"\r\n\r\n")[2])["data"][0]["embedding"]
        assert vector == pytest.approx(expected, abs=1e-5)
        seconds.append(time.monotonic() - began)
        await asyncio.sleep(0.05)
    return seconds


@pytest.mark.parametrize("share", [0.05, pytest.param(1, marks=pytest.mark.slow)])
def test_thousands_of_hostile_requests_get_errors_and_do_no_harm(models, share):
    """share: that of the drawn requests that are sent; at least one of each family."""
    rng = random.Random(27)
    families = [family for family, number in FAMILIES.items() for _ in range(math.ceil(number * share))]
    rng.shuffle(families)
    with toy(models={"vectors": str(models["vectors"]), "gaps": str(models["gaps"])}, limits=LIMITS) as service:
        before = service.ask("/v1/embeddings", {"input": "학교에 간다"}).json["data"][0]["embedding"]
        open_files = Path(f"/proc/{service.process.pid}/fd")
        files = len(list(open_files.iterdir()))

        async def run_all():
            ended = asyncio.Event()
            ordinary = asyncio.ensure_future(_ordinary_client(service, ended, before))
            try:
                counts = await _attack(service, families, rng)
            finally:
                ended.set()
            return counts, await ordinary

        counts, seconds = asyncio.run(run_all())
        assert counts.total() == len(families) + SLOW + LEAVING
        assert len(seconds) > 20 * share
        assert max(seconds) < 60
        assert service.ask("/ready").code == 200
        service.wait_for("korbert_queue_texts 0.0")
        wait_until(lambda: len(list(open_files.iterdir())) <= files + 2, 30)
        after = service.ask("/v1/embeddings", {"input": "학교에 간다"}).json["data"][0]["embedding"]
        assert after == pytest.approx(before)
    assert service.log == []


def test_a_client_that_writes_its_whole_body_before_it_reads_gets_413():
    body = b"x" * 30_000_000
    with toy(limits={"head_seconds": 0.5}) as service:
        for protocol in ("HTTP/1.1", "HTTP/1.1\r\nConnection: close", "HTTP/1.0"):
            head = f"POST /v1/embeddings {protocol}\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            assert service.raw(head.encode() + body).startswith(b"HTTP/1.1 413 "), protocol


def test_an_endless_body_is_cut_off_a_while_after_its_answer():
    def drip(connection):
        connection.sendall(b"POST /fill HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n")
        for _ in range(3_000):
            connection.sendall(b"x")
            time.sleep(0.01)

    with (
        toy(limits={"head_seconds": 0.2, "unread_seconds": 0.5}) as service,
        socket.create_connection(("127.0.0.1", service.port)) as connection,
        pytest.raises(ConnectionError),
    ):
        drip(connection)


@pytest.mark.slow
def test_overload_is_refused_at_once_with_a_bounded_queue():
    """Twice as many clients as queue places."""

    async def client(service, replies):
        for _ in range(12):
            began = time.monotonic()
            code, received = await _send(service.port, _post(b'{"input": "aaaa"}'))
            replies.append((code, received, time.monotonic() - began))
            if code == 429:
                await asyncio.sleep(0.02)

    async def run_all(service):
        replies = []
        await asyncio.gather(*(client(service, replies) for _ in range(32)))
        return replies

    with toy(seconds_a_batch=0.05, limits={"queue": 16, "batch_pieces": 32}) as service:
        replies = asyncio.run(run_all(service))
        codes = Counter(code for code, _, _ in replies)
        assert codes.keys() == {200, 429}
        assert codes.total() == 32 * 12
        assert min(codes.values()) > 20
        refused = [(received, seconds) for code, received, seconds in replies if code == 429]
        assert all(re.search(rb"\r\nretry-after: [1-9]\d*\r\n", received) for received, _ in refused)
        assert sorted(seconds for _, seconds in refused)[len(refused) // 2] < 2
        assert max(seconds for *_, seconds in replies) < 20
        assert service.ask("/v1/embeddings", {"input": "aaaa"}).code == 200


@pytest.mark.slow
def test_a_disconnect_frees_queue_places():
    async def leave(service):
        async with _connected(service.port) as (_, writer):
            writer.write(_post(b'{"input": ["a", "b"]}'))
            await writer.drain()
            while "korbert_queue_texts 2.0" not in (await asyncio.to_thread(service.ask, "/metrics")).body.decode():
                pass

    with toy(seconds_a_batch=2.0, limits={"queue": 2}) as service:
        asyncio.run(leave(service))
        service.wait_for("korbert_queue_texts 0.0")
        service.wait_for('korbert_requests_total{code="499",route="/v1/embeddings"} 1.0')
        assert service.ask("/v1/embeddings", {"input": ["a", "b"]}).code == 200


def test_connections_above_the_limit_get_503():
    async def many(service):
        idle = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(5)]
        code, received = await _send(service.port, b"")
        assert code == 503
        assert b"5 connections are open" in received
        for _, writer in idle:
            writer.close()

    with toy(limits={"connections": 5}) as service:
        asyncio.run(many(service))
        wait_until(lambda: service.ask("/ready").code == 200, 20)


@pytest.mark.slow
def test_slow_heads_and_bodies_are_cut_off_and_so_is_waiting_for_an_answer():
    with toy(
        limits={"body_seconds": 0.5, "head_seconds": 1.0, "seconds": 0.5, "queue": 1}, seconds_a_batch=3.0
    ) as service:
        received = service.raw(_post(VALID)[:-5])
        assert received.startswith(b"HTTP/1.1 408 ")
        assert b"the body took longer than 0.5 s" in received
        endless = b"POST /fill HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n{"
        assert service.raw(endless).startswith(b"HTTP/1.1 413 ")
        head = service.raw(b"GET /health HTTP/1.1\r\nHo")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert b"the head of the request took longer than 1 s" in head
        idle = service.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
        assert idle.startswith(b"HTTP/1.1 200 ")
        reply = service.ask("/v1/embeddings", {"input": "글"})
        assert (reply.code, reply.headers["retry-after"]) == (503, "5")
        assert "no answer within 0.5 s" in reply.error["message"]
        assert "korbert_queue_texts 0.0" in service.ask("/metrics").body.decode()
