"""The service as a process: start, shutdown, addresses, tokens, crashes, model folders that change while it runs."""

import re
import shutil
import signal
import socket
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from korbert.pipelines.commands.serving import parse_named_models
from korbert.pipelines.service import Limits, Operation, Served, Service
from korbert.pipelines.service.running import _listening_socket, application, is_loopback
from tests.pipelines.service.started import ask, started, toy
from tests.running import wait_until


def _refused(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_signals_end_it_with_their_exit_code(models, number, code):
    with started(str(models["vectors"])) as service:
        assert re.fullmatch(r"korbert: serving vectors at http://127\.0\.0\.1:\d+\n", service.said)
        assert service.ask("/v1/embeddings", {"input": "글"}).code == 200
        assert service.end(number) == code
    assert service.log == [f"korbert: ended by {signal.Signals(number).name}\n"]


@pytest.mark.slow
def test_shutdown_answers_pending_requests_and_refuses_new_ones():
    with toy(seconds_a_batch=1.5) as service, ThreadPoolExecutor() as clients:
        running = clients.submit(service.ask, "/v1/embeddings", {"input": "글"})
        service.wait_for("korbert_queue_texts 1.0")
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: service.ask("/health").json["status"] == "ending")
        refused = service.ask("/v1/embeddings", {"input": "글"})
        assert refused.code == 503
        assert refused.headers.items() >= {"retry-after": "10", "connection": "close"}.items()
        assert "the service is shutting down" in refused.error["message"]
        assert service.ask("/ready").code == 503
        assert running.result().code == 200
        assert service.process.wait(timeout=60) != 0
        assert _refused(service.port)


@pytest.mark.slow
def test_a_second_signal_ends_it_while_the_model_is_busy():
    with toy(seconds_a_batch=100) as service, ThreadPoolExecutor() as clients:
        clients.submit(service.ask, "/v1/embeddings", {"input": "글"})  # its error is nobody's
        service.wait_for("korbert_queue_texts 1.0")
        service.process.send_signal(signal.SIGINT)
        wait_until(lambda: service.ask("/health").json["status"] == "ending")
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(timeout=60) != 0


def test_requests_during_loading_get_503(free_port):
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        starting = pool.submit(stack.enter_context, toy(loading=2.0, port=free_port))
        wait_until(lambda: not _refused(free_port))
        assert ask(free_port, "/health").json == {"status": "loading", "models": [], "index": False}
        for path, body in (("/ready", None), ("/v1/models/toy", None), ("/v1/embeddings", {"input": "글"})):
            reply = ask(free_port, path, body)
            assert (reply.code, reply.headers["retry-after"]) == (503, "5")
        assert starting.result().ask("/v1/embeddings", {"input": "글"}).code == 200


def test_a_model_that_cannot_be_loaded_or_a_port_in_use_is_an_error(free_port, models, tmp_path, command):
    refused = command("serve", tmp_path / "none", "--port", "0", code=2)
    assert refused.out == ""
    assert re.fullmatch(r"korbert: .*none: no such folder: name a model folder .*\n", refused.err)
    with socket.create_server(("127.0.0.1", free_port)):
        refused = command("serve", models["vectors"], "--port", free_port, code=2)
    assert refused.err == (
        f"korbert: port {free_port} of 127.0.0.1 is in use, perhaps by another service: stop it, or use another"
        f" port, as in --port {free_port + 1}\n"
    )


@pytest.mark.slow
def test_a_killed_service_can_start_again_on_its_port(free_port):
    with toy(port=free_port, seconds_a_batch=0.5) as service, ThreadPoolExecutor() as clients:
        asking = clients.submit(service.ask, "/v1/embeddings", {"input": "글"})
        service.wait_for("korbert_queue_texts 1.0")
        assert service.end(signal.SIGKILL) == -signal.SIGKILL
        with pytest.raises(OSError):  # noqa: PT011
            asking.result()
    with toy(port=free_port) as service:
        assert service.ask("/v1/embeddings", {"input": "글"}).code == 200


@pytest.mark.slow
def test_changes_to_a_model_folder_do_not_affect_it(models, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(models["vectors"], folder)
    with started(f"mine={folder}") as service:
        before = service.ask("/v1/embeddings", {"input": ["글", "학교에 간다"]})
        weights = folder / "model.safetensors"
        with weights.open("r+b") as file:  # in place, as `cp` over it does
            file.seek(1_000)
            file.write(b"\0" * (weights.stat().st_size - 1_000))
        assert service.ask("/v1/embeddings", {"input": ["글", "학교에 간다"]}).body == before.body
        shutil.rmtree(folder)
        assert service.ask("/v1/embeddings", {"input": ["글", "학교에 간다"]}).body == before.body
        assert before.json["model"] == "mine"
        assert np.isfinite(before.json["data"][1]["embedding"]).all()


def test_requests_need_the_token():
    with toy(token="비밀".encode().hex()) as service:
        token = "비밀".encode().hex()
        for wrong in (None, "Bearer no", f"bearer{token}", token):
            headers = {"Authorization": wrong} if wrong else {}
            reply = service.ask("/v1/embeddings", {"input": "글"}, **headers)
            assert (reply.code, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert service.ask("/metrics", **headers).code == 401
            assert service.ask("/health", **headers).json["models"] == []
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert service.ask("/v1/embeddings", {"input": "글"}, Authorization=f"{scheme} {token}").code == 200
        assert service.ask("/health", Authorization=f"Bearer {token}").json["models"][0]["name"] == "toy"
        assert service.ask("/docs").code == service.ask("/ready").code == 200


def test_a_model_error_fails_one_request_and_is_logged_without_its_text():
    with toy() as service:
        reply = service.ask("/v1/embeddings", {"input": "boom 비밀"})
        assert (reply.code, reply.error["type"]) == (500, "server_error")
        assert "비밀" not in reply.body.decode()
        assert service.ask("/v1/embeddings", {"input": "글"}).code == 200
    assert len(service.log) == 1
    assert "a batch of 1 texts failed: RuntimeError <- " in service.log[0]
    assert "비밀" not in "".join(service.log)


def test_an_internal_error_is_logged_with_the_request_id_and_without_texts(caplog):
    def page(browser):
        raise ValueError("비밀")

    client = TestClient(application(Service(Limits(), page), lambda: None), raise_server_exceptions=False)
    reply = client.get("/")
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")
    assert f"{reply.headers['x-request-id']}: GET / failed: ValueError <- " in caplog.text
    assert "비밀" not in reply.text + caplog.text


def test_other_machines_need_a_token(models, monkeypatch, command):
    said = "--host 0.0.0.0 admits other machines: give a --token that they must send, or --insecure"
    assert said in command("serve", models["vectors"], "--host", "0.0.0.0", code=2).err
    assert all(map(is_loopback, ("127.0.0.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "a.b")))
    refused = command("serve", "model", "--host", "192.0.2.1", "--insecure", code=2)
    assert re.match(r"korbert: 192\.0\.2\.1, port 8000: .*: use another --host or --port", refused.err)
    refused = command("serve", "model", "--host", "a" * 64, "--insecure", code=2)
    assert re.match(r"korbert: --host a+: .*too long.*: give an address of this machine\n", refused.err)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "korbert.pipelines.service.running")
    said = "korbert: korbert serve needs uvicorn: pip install 'korbert[serve]'\n"
    assert command("serve", "model", code=2).err == said


def test_a_token_has_no_white_space_around_it(models, monkeypatch, command):
    given = []
    monkeypatch.setattr("korbert.pipelines.service.running.run", lambda *_, token, **__: given.append(token))
    monkeypatch.setenv("KORBERT_TOKEN", "abc\n")
    command("serve", models["vectors"])
    assert given == ["abc"]


def test_a_folder_is_found_and_asked_for_in_any_form_of_unicode(tmp_path):
    folder = tmp_path / unicodedata.normalize("NFD", "감정")
    folder.mkdir()
    assert parse_named_models([str(tmp_path / "감정")]) == {"감정": folder}
    assert parse_named_models([f"{unicodedata.normalize('NFD', '말')}={tmp_path / '감정'}"]) == {"말": folder}
    service = Service(Limits())
    service.models = {"감정": Served("감정", "classification", None, {"embed": Operation(list, None)})}
    assert service.model(unicodedata.normalize("NFD", "감정")).name == "감정"


def test_names_of_models():
    expected = {"b": Path("a/b"), "c": Path("d/e"), "f": Path("f/model"), "g": Path("g")}
    assert parse_named_models(["a/b", "c=d/e", "f/model", "g/"]) == expected
    twice = "c/b: a/b is named b, too: rename one, as in b=c/b"
    wrong = {("a/b", "c/b"): twice, ("=a",): "'' cannot name a model", ("a b=c",): "'a b' cannot name a model"}
    for given, message in wrong.items():
        with pytest.raises(Exception, match=re.escape(message)):
            parse_named_models(list(given))


def test_small_answers_are_sent_without_delay():
    """asyncio turns Nagle's algorithm off where the socket names its protocol: else each answer takes 40 ms more."""
    with _listening_socket("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
