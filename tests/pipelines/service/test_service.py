"""What `korbert serve` answers, against the models themselves and against the client that people have."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest

import korbert
from pipelines.service import forms
from pipelines.service.batching import Row
from pipelines.service.limits import Limits
from pipelines.service.operations import operations_of
from pipelines.service.routes import ROUTES
from tests.pipelines.service.started import Started, toy

TEXTS = [
    "신용 대출을 신청하고 싶어요",
    "",
    "\x00한 남자가 춤을 춘다 😀",
    "대출 " * 400,
    "<script>alert(1)</script>",
    "학교에 간다\n" * 9,
]


@pytest.fixture(scope="module")
def loaded(models: dict[str, Path]) -> dict[str, Any]:
    return {name: korbert.load(folder, "cpu") for name, folder in models.items()}


@pytest.fixture
def client(service: Started) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{service.address}/v1", api_key="none", max_retries=0)


def _close(found: Any, expected: Any) -> None:
    """Equal, numbers up to rounding."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-5)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            _close(found[name], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _close(one, other)
    else:
        assert found == expected


@pytest.mark.parametrize("form", ["float", "base64"])
def test_the_client_of_openai_gets_the_vectors_of_embed(
    form: Any, client: openai.OpenAI, loaded: dict[str, Any]
) -> None:
    found = client.embeddings.create(model="vectors", input=TEXTS, encoding_format=form)
    vectors = [
        np.frombuffer(base64.b64decode(one.embedding), "<f4") if isinstance(one.embedding, str) else one.embedding
        for one in found.data
    ]
    np.testing.assert_allclose(np.array(vectors), loaded["vectors"].embed(TEXTS), atol=1e-5)
    assert [one.index for one in found.data] == list(range(len(TEXTS)))
    pieces = sum(len(one) for one in loaded["vectors"].tokenizer.encode_batch(TEXTS, max_length=32))
    assert found.usage.prompt_tokens == found.usage.total_tokens == pieces


def test_the_client_of_openai_without_a_form_and_with_fewer_numbers(
    client: openai.OpenAI, loaded: dict[str, Any]
) -> None:
    whole = loaded["vectors"].embed(TEXTS[0])
    np.testing.assert_allclose(
        client.embeddings.create(model="vectors", input=TEXTS[0]).data[0].embedding, whole, atol=1e-5
    )
    fewer = client.embeddings.create(model="vectors", input=TEXTS[0], dimensions=5).data[0].embedding
    np.testing.assert_allclose(fewer, whole[:5] / np.linalg.norm(whole[:5]), atol=1e-5)
    assert [model.id for model in client.models.list()] == ["vectors", "gaps", "mood", "pairs", "names", "answers"]


def test_the_client_of_openai_understands_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no model has that name: available are vectors, gaps"):
        client.embeddings.create(model="text-embedding-3-small", input="글")
    with pytest.raises(openai.UnprocessableEntityError, match="dimensions: 17, the vectors of vectors have 16"):
        client.embeddings.create(model="vectors", input="글", dimensions=17)


def test_other_fields_of_a_row_are_not_read(service: Started) -> None:
    """A target would be, and its fault would be that of a batch, which others share."""
    plain = service.ask("/predict", {"input": [{"text": "글", "pair": "말"}], "model": "pairs"})
    more = service.ask("/predict", {"input": [{"text": "글", "pair": "말", "label": ["a"]}], "model": "pairs"})
    assert plain.code == more.code == 200
    assert plain.json["data"] == more.json["data"]


def test_models_of_other_kinds_give_the_mean_over_their_last_layer(service: Started, loaded: dict[str, Any]) -> None:
    import torch

    reply = service.ask("/v1/embeddings", {"input": TEXTS[0], "model": "gaps"})
    encoding = loaded["gaps"].tokenizer.encode(TEXTS[0])
    with torch.inference_mode():
        hidden = loaded["gaps"].network.encoder(
            torch.tensor([encoding.input_ids]), boundaries=torch.tensor([encoding.boundaries])
        )
    np.testing.assert_allclose(reply.json["data"][0]["embedding"], hidden[0].mean(dim=0), atol=1e-5)


@pytest.mark.parametrize(
    "asked",
    [
        {"layer": 0},
        {"layer": [-2, -1], "pooling": "max"},
        {"pooling": "mean-max", "dimensions": 20},
        {"pooling": "idf"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["vectors", "gaps", "mood"])
def test_layer_and_pooling_are_those_of_embed(
    asked: dict[str, Any], name: str, service: Started, loaded: dict[str, Any]
) -> None:
    reply = service.ask("/v1/embeddings", {"input": TEXTS, "model": name, **asked})
    if asked.get("pooling") == "idf" and name != "gaps":  # whose folder alone has counts of pieces
        assert (reply.code, reply.error["param"]) == (422, "pooling")
        expected = f"pooling: {name} has no piece counts, which idf needs: use mean, first, max, mean-max"
        assert reply.error["message"] == expected
        return
    found = np.array([one["embedding"] for one in reply.json["data"]])
    given = {"size" if key == "dimensions" else key: value for key, value in asked.items()}
    np.testing.assert_allclose(found, loaded[name].embed(TEXTS, **given), atol=1e-5)


def test_one_batch_may_hold_texts_of_several_settings(loaded: dict[str, Any]) -> None:
    """Interleaved, so that a vector in another one's place would show."""
    model = loaded["gaps"]
    ways: list[Any] = [{}, {"layer": 0}, {"pooling": "mean-max"}, {"layer": 1, "size": 3}]
    embed = operations_of(model, Limits())["embed"]
    items = [(text, model.vector_settings(**way)) for text in TEXTS for way in ways]
    rows = embed.tokenize(items)
    assert embed.forward is not None
    found = embed.forward([row.value for row in rows if isinstance(row, Row)])
    expected = [model.embed(text, **way) for text in TEXTS for way in ways]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_gaps_are_filled_as_by_fill(service: Started, loaded: dict[str, Any]) -> None:
    texts = ["오늘 [MASK] 정말 [MASK]", "[MASK] 간다", "학교에 [MASK]"]
    found = service.ask("/fill", {"input": texts, "top": 3, "model": "gaps"}).json["data"]
    expected = [[[vars(one) for one in gap] for gap in gaps] for gaps in loaded["gaps"].fill(texts, top=3)]
    _close([one["gaps"] for one in found], expected)


def test_labels_are_those_of_predict(service: Started, loaded: dict[str, Any]) -> None:
    found = service.ask("/predict", {"input": TEXTS, "model": "mood"}).json
    _close(found["data"], list(map(vars, loaded["mood"].predict(TEXTS))))
    rows = [{"text": "한 남자가", "pair": text} for text in TEXTS]
    found = service.ask("/predict", {"input": rows, "model": "pairs"}).json["data"]
    _close(found, list(map(vars, loaded["pairs"].predict(rows))))
    found = service.ask("/predict", {"input": TEXTS[:4], "model": "names"}).json["data"]
    _close([one["spans"] for one in found], [list(map(vars, spans)) for spans in loaded["names"].tag(TEXTS[:4])])


def test_answers_are_those_of_answer(service: Started, loaded: dict[str, Any]) -> None:
    questions = ["한글은 언제 만들어졌나?", "누가 갔나? " * 30, "?"]
    contexts = ["세종은 1443년에 한글을 만들었다.", "철수가 학교에 갔다. " * 40, " "]
    found = service.ask("/answer", {"question": questions, "context": contexts, "model": "answers"}).json["data"]
    answers = loaded["answers"].answer(questions, contexts)
    plain = [{"answer": one.answer, "start": one.start, "end": one.end, "score": one.score} for one in answers]
    _close(found, plain)
    alone = service.ask("/answer", {"question": questions[0], "context": contexts[0], "model": "answers"})
    _close(alone.json["data"], plain[:1])


def test_pieces_are_those_of_the_tokenizer(service: Started, loaded: dict[str, Any]) -> None:
    pieces = loaded["vectors"].tokenizer.encode_pieces("학교에 [MASK]", special_tokens=True)
    (found,) = service.ask("/tokenize", {"input": "학교에 [MASK]", "special_tokens": True}).json["data"]
    assert [one["piece"] for one in found["pieces"]] == pieces.pieces
    assert [tuple(one["span"]) for one in found["pieces"]] == pieces.spans


@pytest.mark.parametrize(
    ("path", "body", "code", "param", "message"),
    [
        ("/v1/embeddings", b'{"input": ', 400, None, "not JSON in UTF-8: EOF while parsing a value at line 1"),
        ("/v1/embeddings", b"\xff\xfe", 400, None, "not JSON in UTF-8"),
        ("/v1/embeddings", b'{"input": "\\ud800"}', 400, None, "hex escape at line 1"),
        ("/v1/embeddings", b"[" * 100_000, 400, None, "recursion limit"),
        ("/v1/embeddings", [], 422, None, "the body: Input should be an object"),
        ("/v1/embeddings", {}, 422, "input", "input: Field required"),
        ("/v1/embeddings", {"input": 5}, 422, "input", "should be a valid string"),
        ("/v1/embeddings", {"input": []}, 422, "input", "at least 1 item"),
        ("/v1/embeddings", {"input": ["글", [1]]}, 422, "input[1]", "should be a valid string"),
        ("/v1/embeddings", {"input": "글", "temperature": 1}, 422, "temperature", "not permitted"),
        ("/v1/embeddings", {"input": "글", "encoding_format": "int8"}, 422, "encoding_format", "'float' or 'base64'"),
        ("/v1/embeddings", {"input": "글", "dimensions": 0}, 422, "dimensions", "greater than or equal to 1"),
        ("/v1/embeddings", {"input": "글", "layer": 3}, 422, "layer", "layer 3: the encoder has layers 0 .* to 2, -1"),
        ("/v1/embeddings", {"input": "글", "layer": "-1"}, 422, "layer", "layer: Input should be a valid integer"),
        ("/v1/embeddings", {"input": "글", "layer": [0, "1"]}, 422, "layer[1]", "should be a valid integer"),
        ("/v1/embeddings", {"input": "글", "layer": []}, 422, "layer", "at least 1 item"),
        ("/v1/embeddings", {"input": "글", "layer": [1, 1]}, 422, "layer", "name each layer once"),
        ("/v1/embeddings", {"input": "글", "pooling": "cls"}, 422, "pooling", "'first', 'max', 'mean-max', 'idf' or"),
        ("/v1/embeddings", {"input": "글", "pooling": "mean-max", "dimensions": 33}, 422, "dimensions", "have 32"),
        ("/v1/embeddings", {"input": "글", "model": "no"}, 404, "model", "available are vectors, gaps"),
        ("/v1/embeddings", {"input": ["글"] * 2_049}, 413, "input", "2,049 texts, at most 2,048"),
        ("/v1/embeddings", b" " * 1_048_577, 413, None, "larger than 1,048,576 bytes"),
        ("/fill", {"input": ["[MASK]", "글"], "model": "gaps"}, 422, "input[1]", "has no .MASK."),
        ("/fill", {"input": "글 " * 100 + "[MASK]", "model": "gaps"}, 413, "input", "103 pieces, the model reads 64"),
        ("/fill", {"input": "글 " * 150 + "[MASK]", "model": "gaps"}, 413, "input", "has 306 characters, at most 256"),
        ("/fill", {"input": "[MASK]"}, 404, "model", "fills no gaps: name one that can: gaps"),
        ("/fill", {"input": "[MASK]", "top": True}, 422, "top", "valid integer"),
        ("/fill", {"input": "[MASK] " * 11, "top": 100, "model": "gaps"}, 413, "input", "asks for 1,100 candidates"),
        ("/predict", {"input": [{"text": "글"}], "model": "pairs"}, 422, "input[0]", "takes text, pair"),
        ("/predict", {"input": ["글", {"title": "글"}], "model": "mood"}, 422, "input[1]", "takes text"),
        ("/predict", {"input": "가 " * 9_000, "model": "names"}, 413, "input", "has 18,000 characters, at most 16,384"),
        ("/answer", {"question": "?", "context": ["글"]}, 422, "context", "give two texts, or two lists"),
        ("/answer", {"question": ["?"], "context": ["글", "글"]}, 422, "context", "2 for 1 questions"),
        ("/answer", {"question": "?", "context": "1" * 16_000, "model": "answers"}, 413, "context", "pieces"),
        ("/similar", {"input": "글"}, 404, None, "start it with --index"),
        ("/nowhere", None, 404, None, "no such path"),
        ("/fill", None, 405, None, "this method is not allowed on this path"),
        ("/fill/", {}, 404, None, "no such path"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    path: str, body: Any, code: int, param: str | None, message: str, service: Started
) -> None:
    reply = service.ask(path, body)
    assert (reply.code, reply.error["param"]) == (code, param), reply
    assert re.search(message, reply.error["message"]), reply.error["message"]
    assert reply.headers["content-type"] == "application/json"


def test_no_text_becomes_a_page(service: Started) -> None:
    script = "<script>alert(1)</script>"
    replies = [
        service.ask("/tokenize", {"input": script}),
        service.ask("/fill", {"input": script, "model": "gaps"}),
        service.ask(f"/{script}"),
        service.ask("/fill", {script: script}),
        service.ask("/fill", {"input": "[MASK]", "model": script}),
    ]
    assert {reply.headers["content-type"] for reply in replies} == {"application/json"}
    assert {reply.headers["x-content-type-options"] for reply in replies} == {"nosniff"}
    assert all("default-src 'none'" in reply.headers["content-security-policy"] for reply in replies)


def test_browsers_that_were_led_here_are_refused(service: Started) -> None:
    assert service.ask("/health", Host="evil.example").code == 403
    assert service.ask("/health", Host=f"localhost:{service.port}").code == 200
    assert service.ask("/fill", {}, Origin="https://evil.example").code == 403
    assert service.ask("/fill", {}, Origin="null").code == 403
    assert service.ask("/health", Origin=service.address).code == 200
    assert "access-control-allow-origin" not in service.ask("/health", Origin=service.address).headers


def test_no_answer_and_no_log_tells_a_folder_or_a_text(service: Started, models: dict[str, Path]) -> None:
    replies = [service.ask(route.path, dict(route.example) or None).body.decode() for route in ROUTES]
    replies += [service.ask("/fill", {"input": "비밀", "model": "gaps"}).body.decode()]
    assert not any(str(models["gaps"].parent) in reply for reply in replies)
    assert not any("비밀" in line or "신용" in line for line in service.log)


def test_figures_for_prometheus(service: Started) -> None:
    service.ask("/v1/embeddings", {"input": TEXTS[:2]})
    service.ask("/" + "x" * 40)
    lines = service.ask("/metrics").body.decode().splitlines()
    figures = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    assert figures['korbert_requests_total{code="200",route="/v1/embeddings"}'] >= 1
    assert figures['korbert_requests_total{code="404",route="other"}'] >= 1
    assert figures["korbert_queue_texts"] == 0
    for name in ("queue_seconds", "tokenizing_seconds", "model_seconds", "request_seconds", "batch_pieces"):
        assert figures[f"korbert_{name}_count"] >= 1
    assert figures["korbert_batch_pieces_sum"] >= figures["korbert_batch_pieces_count"]


def test_health(service: Started) -> None:
    health = service.ask("/health").json
    assert health["status"] == "ready"
    assert not health["index"]
    able = {
        one["name"]: [name for name in one["operations"] if name not in ("tokenize", "embed", "attention")]
        for one in health["models"]
    }
    del able["vectors"]
    assert json.dumps(able) == json.dumps(
        {"gaps": ["fill"], "mood": ["predict"], "pairs": ["predict"], "names": ["predict"], "answers": ["answer"]}
    )
    assert service.ask("/ready").json == {"ready": True}


def test_similar_texts_and_attention(models: dict[str, Path]) -> None:
    with toy(models={"gaps": str(models["gaps"])}) as service:
        assert service.ask("/health").json["index"]
        found = service.ask("/similar", {"input": ["글", "글"], "top": 1, "way": "words"}).json["data"]
        assert [[hit["id"] for hit in one["hits"]] for one in found] == [["q2"], ["q2"]]
        reply = service.ask("/similar", {"input": "글"})
        forms.Listed.model_validate_json(reply.body)
        assert [hit["score"] for hit in reply.json["data"][0]["hits"]] == [1.0, 0.5]
        reply = service.ask("/similar", {"input": ["글", "가" * 16_385]})
        assert (reply.code, reply.error["param"]) == (413, "input[1]")
        assert service.ask("/attention", {"text": "글"}).json == {"texts": ["글"], "model": "pretraining"}
        assert service.ask("/attention", {"text": "글", "pair": "또"}).json["texts"] == ["글", "또"]
        reply = service.ask("/attention", {"text": "글", "pair": "1 2 " * 40})
        assert (reply.code, reply.error["message"]) == (413, "text: has 84 pieces, the model reads 64: shorten it")
