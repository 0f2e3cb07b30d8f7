"""What `korbert serve` answers, against the models' own methods and through OpenAI's client."""

import base64
import gzip
import io
import json
import re

import numpy as np
import openai
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import korbert
from korbert.pipelines.inference.predicting import json_of
from korbert.pipelines.service import Limits, Refusal, TokenizedItem, operations_of, schemas, search_operation
from korbert.search import Index
from tests.pipelines.service.started import started, toy

TEXTS = [
    "신용 대출을 신청하고 싶어요", "", "\x00한 남자가 춤을 춘다 😀", "대출 " * 400, "<script>alert(1)</script>",
    "학교에 간다\n" * 9,
]  # fmt: skip


@pytest.fixture(scope="module")
def loaded(models):
    return {name: korbert.load(folder, "cpu") for name, folder in models.items()}


@pytest.fixture
def client(service):
    with openai.OpenAI(base_url=f"{service.address}/v1", api_key="none", max_retries=0) as client:
        yield client


def _assert_close(actual, expected):
    if isinstance(expected, float):
        assert actual == pytest.approx(expected, abs=1e-5)
    elif isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for name, value in expected.items():
            _assert_close(actual[name], value)
    elif isinstance(expected, list | tuple):
        for value, other in zip(actual, expected, strict=True):
            _assert_close(value, other)
    else:
        assert actual == expected


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_openai_client_gets_vectors_of_embed(encoding, client, loaded):
    more = {"encoding_format": encoding} if encoding else {}
    answer = client.embeddings.create(model="vectors", input=TEXTS, **more)
    vectors = [one.embedding for one in answer.data]
    if encoding == "base64":
        vectors = [np.frombuffer(base64.b64decode(vector), "<f4") for vector in vectors]
    np.testing.assert_allclose(np.array(vectors), loaded["vectors"].embed(TEXTS), atol=1e-5)
    assert [one.index for one in answer.data] == list(range(len(TEXTS)))
    pieces = sum(len(one) for one in loaded["vectors"].tokenizer.encode_batch(TEXTS, max_length=32))
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == pieces
    fewer = client.embeddings.create(model="vectors", input=TEXTS[0], dimensions=5).data[0].embedding
    cut = loaded["vectors"].embed(TEXTS[0])[:5]
    np.testing.assert_allclose(fewer, cut / np.linalg.norm(cut), atol=1e-5)


def test_openai_client_lists_models_and_understands_errors(client):
    assert [model.id for model in client.models.list()] == ["vectors", "gaps", "mood", "pairs", "names", "answers"]
    assert client.models.retrieve("gaps").id == "gaps"
    with pytest.raises(openai.NotFoundError, match="no model has that name: available are vectors, gaps") as unknown:
        client.embeddings.create(model="text-embedding-3-small", input="글")
    assert unknown.value.code == "model_not_found"
    assert unknown.value.param == "model"
    with pytest.raises(openai.NotFoundError, match="no model has that name"):
        client.models.retrieve("text-embedding-3-small")
    with pytest.raises(openai.UnprocessableEntityError, match="dimensions: 17, the vectors of vectors have 16") as wide:
        client.embeddings.create(model="vectors", input="글", dimensions=17)
    assert wide.value.code is None
    answers = [client.embeddings.create(model="vectors", input="글") for _ in range(2)]
    ids = {unknown.value.request_id, *(answer._request_id for answer in answers)}
    assert len(ids) == 3
    assert all(re.fullmatch(r"req_[0-9a-f]{24}", str(one)) for one in ids)


@pytest.mark.parametrize(
    "settings",
    [{}, {"layer": 0}, {"layer": [-2, -1], "pooling": "max"}, {"pooling": "mean-max", "dimensions": 20}],
    ids=str,
)
@pytest.mark.parametrize("name", ["gaps", "mood"])
def test_layer_and_pooling_are_those_of_embed(settings, name, service, loaded):
    reply = service.ask("/v1/embeddings", {"input": TEXTS, "model": name, **settings})
    vectors = np.array([one["embedding"] for one in reply.json["data"]])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    named = {"size" if key == "dimensions" else key: value for key, value in settings.items()}
    np.testing.assert_allclose(vectors, loaded[name].embed(TEXTS, **named), atol=1e-5)


def test_texts_with_different_settings_share_a_batch(loaded):
    """Interleaved, so that a vector at the wrong index would show."""
    model = loaded["gaps"]
    settings = [{}, {"layer": 0}, {"pooling": "mean-max"}, {"layer": 1, "size": 3}]
    embed = operations_of(model, Limits())["embed"]
    rows = embed.tokenize([(text, model.vector_settings(**one)) for text in TEXTS for one in settings])
    vectors = embed.forward([row.value for row in rows if isinstance(row, TokenizedItem)])
    expected = [model.embed(text, **one) for text in TEXTS for one in settings]
    for vector, other in zip(vectors, expected, strict=True):
        np.testing.assert_allclose(vector, other, atol=1e-5)


def test_fill_and_tokenize_give_candidates_and_pieces_of_the_model(service, loaded):
    texts = ["오늘 [MASK] 정말 [MASK]", "[MASK] 간다", "학교에 [MASK]"]
    data = service.ask("/fill", {"input": texts, "top": 3, "model": "gaps"}).json["data"]
    expected = [[[vars(one) for one in gap] for gap in gaps] for gaps in loaded["gaps"].fill(texts, top=3)]
    _assert_close([one["gaps"] for one in data], expected)
    expected = loaded["vectors"].tokenizer.encode_pieces("학교에 [MASK]", special_tokens=True)
    (data,) = service.ask("/tokenize", {"input": "학교에 [MASK]", "special_tokens": True}).json["data"]
    pieces = [(one["piece"], tuple(one["span"])) for one in data["pieces"]]
    assert pieces == list(zip(expected.pieces, expected.spans, strict=True))


def test_each_request_of_a_batch_gets_its_own_number_of_candidates(loaded, monkeypatch):
    model = loaded["gaps"]
    fill = operations_of(model, Limits())["fill"]
    texts = ["[MASK] " * 20, "학교에 [MASK]"]
    rows = fill.tokenize([(texts[0], 1), (texts[1], 90)])
    tops = []
    fill_encoded = model.fill_encoded
    monkeypatch.setattr(model, "fill_encoded", lambda *given: tops.append(given[-1]) or fill_encoded(*given))
    filled = fill.forward([row.value for row in rows])
    assert tops == [1, 90]
    assert [[len(gap) for gap in one["gaps"]] for one in filled] == [[1] * 20, [90]]


def test_predict_gives_the_predictions_of_the_model(service, loaded):
    data = service.ask("/predict", {"input": TEXTS, "model": "mood"}).json["data"]
    _assert_close(data, list(map(json_of, loaded["mood"].predict(TEXTS))))
    assert data[1] == {"label": None, "probabilities": {}, "why": "the text is empty"}
    rows = [{"text": "한 남자가", "pair": text} for text in TEXTS]
    labelled = [row | {"label": ["a"]} for row in rows]  # would be read otherwise, and fail a batch that others share
    for given in (rows, labelled):
        data = service.ask("/predict", {"input": given, "model": "pairs"}).json["data"]
        _assert_close(data, list(map(json_of, loaded["pairs"].predict(rows))))
    data = service.ask("/predict", {"input": TEXTS[:4], "model": "names"}).json["data"]
    _assert_close([one["spans"] for one in data], [list(map(vars, spans)) for spans in loaded["names"].tag(TEXTS[:4])])


def test_rows_of_a_file_are_read_as_predict_takes_them(service):
    def read(content, name="a.csv", model="mood"):
        coded = base64.b64encode(content).decode()
        return service.ask("/rows", {"name": name, "content": coded, "model": model})

    found = read("id,문장\n7,정말 좋다\n8,나쁘다\n".encode("cp949")).json["data"]
    assert found == [
        {"line": 1, "id": "7", "text": "정말 좋다", "fields": {"id": "7", "문장": "정말 좋다"}},
        {"line": 2, "id": "8", "text": "나쁘다", "fields": {"id": "8", "문장": "나쁘다"}},
    ]
    (row,) = read("a,text,b\n1,좋다,2\n".encode()).json["data"]
    assert list(row["fields"].items()) == [("a", "1"), ("text", "좋다"), ("b", "2")]  # in the order of the file
    coded = base64.b64encode("말\n정말 좋다\n".encode()).decode()
    named = service.ask("/rows", {"name": "b.csv", "content": coded, "model": "mood", "text": "말"}).json["data"]
    assert named == [{"line": 1, "text": "정말 좋다", "fields": {"말": "정말 좋다"}}]
    inputs = [{"text": row["text"]} for row in found]
    assert len(service.ask("/predict", {"input": inputs, "model": "mood"}).json["data"]) == 2
    refused = {
        "no column": read(b"a,b\n1,2\n"),
        "more than 1,000 rows": read(b"text\n" + "좋다\n".encode() * 1_001),
        "not base64": service.ask("/rows", {"content": "??", "model": "mood"}),
    }
    for said, reply in refused.items():
        assert reply.code in (413, 422)
        assert said in reply.json["error"]["message"]


def test_rows_that_no_answer_can_hold_have_an_error_and_too_large_ones_are_refused(service):
    def read(content, name):
        coded = base64.b64encode(content).decode()
        return service.ask("/rows", {"name": name, "content": coded, "model": "mood"})

    lines = b'{"text": "x", "memo": "\\ud800"}\n{"text": "\\udfff"}\n{"text": "y", "\\ud800": 1}\n{"text": "z"}\n'
    found = read(lines, "a.jsonl").json["data"]
    assert [("error" in row, row["fields"]) for row in found] == [*[(True, {})] * 3, (False, {"text": "z"})]
    assert "surrogate" in found[0]["error"]
    assert read(b'[{"\\ud800": "x"}]', "a.json").code == 422
    file = io.BytesIO()
    pq.write_table(pa.table({"text": ["가" * 100_000] * 1_000}), file)
    assert len(file.getvalue()) < 1_000_000
    for reply in (read(file.getvalue(), "a.parquet"), read(b"text," + b"a" * 10_000 + b"\n" + b"x,y\n" * 900, "a.csv")):
        assert (reply.code, reply.error["param"]) == (413, "content")
        assert "its rows have more than 4,194,304 characters: use korbert predict" in reply.error["message"]


def test_answer_gives_the_answers_of_the_model(service, loaded):
    questions = ["한글은 언제 만들어졌나?", "누가 갔나? " * 30, "?"]
    contexts = ["세종은 1443년에 한글을 만들었다.", "철수가 학교에 갔다. " * 40, " "]
    found = loaded["answers"].answer(questions, contexts)
    expected = [{name: getattr(one, name) for name in ("answer", "start", "end", "score")} for one in found]
    reply = service.ask("/answer", {"question": questions, "context": contexts, "model": "answers"})
    _assert_close(reply.json["data"], expected)
    reply = service.ask("/answer", {"question": questions[0], "context": contexts[0], "model": "answers"})
    _assert_close(reply.json["data"], expected[:1])


@pytest.mark.parametrize(("path", "body", "code", "param", "message"), [
    ("/v1/embeddings", b'{"input": ', 400, None, "not JSON in UTF-8: EOF while parsing a value at line 1"),
    ("/v1/embeddings", b"\xff\xfe", 400, None, "not JSON in UTF-8"),
    ("/v1/embeddings", b'{"input": "\\ud800"}', 400, None, "hex escape at line 1"),
    ("/v1/embeddings", b"[" * 100_000, 400, None, "recursion limit"),
    ("/v1/embeddings", [], 422, None, "the body: Input should be an object"),
    ("/v1/embeddings", {"input": ["글", [1]]}, 422, "input[1]", "should be a valid string"),
    ("/v1/embeddings", {"input": [1, 2]}, 422, "input", "token ids are not accepted: send texts"),
    ("/v1/embeddings", {"input": [[1], [2]]}, 422, "input", "LangChain: check_embedding_ctx_length=False"),
    ("/v1/embeddings", {"input": "글", "one": 1}, 422, "one", "not permitted"),
    ("/v1/embeddings", {"input": "글", "layer": 3}, 422, "layer", "layer 3: take one from 0 .* to 2; -1"),
    ("/v1/embeddings", {"input": "글", "layer": [0, "1"]}, 422, "layer[1]", "should be a valid integer"),
    ("/v1/embeddings", {"input": "글", "layer": [1, 1]}, 422, "layer", "name each layer once"),
    ("/v1/embeddings", {"input": "글", "pooling": "cls"}, 422, "pooling", "'mean', 'first', 'max' or 'mean-max'"),
    ("/v1/embeddings", {"input": "글", "pooling": "mean-max", "dimensions": 33}, 422, "dimensions", "have 32"),
    ("/v1/embeddings", {"input": "글", "model": "no"}, 404, "model", "available are vectors, gaps"),
    ("/v1/embeddings", {"input": ["글"] * 2_049}, 413, "input", "2,049 texts, at most 2,048"),
    ("/v1/embeddings", b" " * 1_048_577, 413, None, "larger than 1,048,576 bytes"),
    ("/fill", {"input": ["[MASK]", "글"], "model": "gaps"}, 422, "input[1]", "has no .MASK."),
    ("/fill", {"input": "글 " * 100 + "[MASK]", "model": "gaps"}, 413, "input", "103 pieces, the model reads 64"),
    ("/fill", {"input": "글 " * 150 + "[MASK]", "model": "gaps"}, 413, "input", "has 306 characters, at most 256"),
    ("/fill", {"input": "[MASK]", "model": "mood"}, 404, "model", "fills no gaps: name one that can: gaps"),
    ("/fill", {"input": "[MASK] " * 11, "top": 100, "model": "gaps"}, 413, "input", "asks for 1,100 candidates"),
    ("/fill", {"input": ["[MASK][MASK]"] * 103, "top": 100, "model": "gaps"}, 413, "top", "ask for 20,600 results"),
    ("/similar", {"input": ["글"] * 2_048, "top": 11}, 413, "top", "22,528 results, at most 20,480 .*: lower top"),
    ("/predict", {"input": [{"text": "글"}], "model": "pairs"}, 422, "input[0]", "takes text, pair"),
    ("/predict", {"input": ["글", {"title": "글"}], "model": "mood"}, 422, "input[1]", "takes text"),
    ("/predict", {"input": "가 " * 9_000, "model": "names"}, 413, "input", "has 18,000 characters, at most 16,384"),
    ("/answer", {"question": "?", "context": ["글"]}, 422, "context", "give two texts, or two lists"),
    ("/answer", {"question": ["?"], "context": ["글", "글"]}, 422, "context", "2 for 1 questions"),
    ("/answer", {"question": "?", "context": "1" * 16_000, "model": "answers"}, 413, "context", "pieces"),
    ("/similar", {"input": "글"}, 404, None, "start it with --index"),
    ("/nowhere", None, 404, None, "no such path"),
    ("/fill", None, 405, None, "this method is not allowed on this path"),
    ("/health", {}, 405, None, "this method is not allowed on this path"),
    ("/fill/", {}, 404, None, "no such path"),
])  # fmt: skip
def test_errors_name_the_field_and_what_to_do(path, body, code, param, message, service):
    reply = service.ask(path, body)
    assert (reply.code, reply.error["param"]) == (code, param), reply
    assert re.search(message, reply.error["message"]), reply.error["message"]
    assert reply.headers["content-type"] == "application/json"


def test_a_body_is_json_of_any_content_type_but_not_compressed(service):
    body = json.dumps({"input": "글"}).encode()
    for kind in ("application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""):
        assert service.ask("/tokenize", body, Content_Type=kind).code == 200
    assert service.ask("/tokenize", body, Content_Encoding="identity").code == 200
    reply = service.ask("/tokenize", gzip.compress(body), Content_Encoding="gzip")
    said = "Content-Encoding: gzip is not supported: send the JSON uncompressed"
    assert (reply.code, reply.error["message"]) == (415, said)


def test_other_hosts_and_origins_are_refused(service):
    """Host names have no case, and a dot may end them."""
    for host in ("localhost", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]"):
        assert service.ask("/health", Host=host).code == 200
        assert service.ask("/health", Host=f"{host}:{service.port}").code == 200
    for host in ("evil.example", "localhost.evil.example", "localhost..", ""):
        assert service.ask("/health", Host=host).code == 403
    for origin in ("https://evil.example", "null"):
        assert service.ask("/fill", {}, Origin=origin).code == 403
    assert service.ask("/health", Origin=service.address).code == 200
    assert "access-control-allow-origin" not in service.ask("/health", Origin=service.address).headers


def test_absolute_targets_and_head_are_understood(service):
    for target, host, code in (
        ("http://localhost:8000/health", "localhost:8000", 200),
        ("HTTP://localhost:8000/health?x=y", "evil.example", 200),  # the target's host counts
        ("http://localhost:8000", "localhost:8000", 200),  # the page at /
        ("http://evil.example/health", "localhost:8000", 403),
    ):
        head = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert service.raw(head.encode()).startswith(f"HTTP/1.1 {code} ".encode()), target
    answer = service.raw(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert (answer[:13], answer[-4:]) == (b"HTTP/1.1 200 ", b"\r\n\r\n")
    assert b"content-type: application/json\r\n" in answer
    assert service.ask("/health", {}).headers["allow"] == "GET, HEAD"


def test_answers_and_logs_reveal_no_folder_and_no_text(service, models):
    paths = "/openapi.json", "/health", "/v1/models", "/", "/docs", "/metrics"
    replies = [*map(service.ask, paths), service.ask("/attention", {"text": "비밀"})]
    replies.append(service.ask("/fill", {"input": "비밀", "model": "gaps"}))
    assert not any(str(models["gaps"].parent) in reply.body.decode() for reply in replies)
    assert "비밀" not in replies[-1].body.decode()
    assert not any("비밀" in line for line in service.log)


def test_metrics_count_requests_by_route(service):
    service.ask("/v1/embeddings", {"input": TEXTS[:2]})
    service.ask("/" + "x" * 40)
    service.ask("/v1/models/gaps")
    service.ask("/fill", {}, Host="evil.example")
    lines = service.ask("/metrics").body.decode().splitlines()
    figures = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    for route, code in (("/v1/embeddings", 200), ("other", 404), ("/v1/models/{model}", 200), ("/fill", 403)):
        assert figures[f'korbert_requests_total{{code="{code}",route="{route}"}}'] >= 1
    assert figures["korbert_queue_texts"] == 0
    for name in ("queue_seconds", "tokenizing_seconds", "model_seconds", "request_seconds", "batch_pieces"):
        assert figures[f"korbert_{name}_count"] >= 1
    assert figures["korbert_batch_pieces_sum"] >= figures["korbert_batch_pieces_count"]


def test_health_lists_what_each_model_can_do(service):
    health = service.ask("/health").json
    assert (health["status"], health["index"]) == ("ready", False)
    own = {
        "vectors": [],
        "gaps": ["fill"],
        "answers": ["answer"],
        **{name: ["predict"] for name in ("mood", "pairs", "names")},
    }
    found = {one["name"]: set(one["operations"]) for one in health["models"]}
    assert found == {name: {"attention", "embed", "tokenize", *more} for name, more in own.items()}
    assert service.ask("/ready").json == {"ready": True}


def test_similar_texts_and_attention(models):
    with toy(models={"gaps": str(models["gaps"])}) as service:
        assert service.ask("/health").json["index"]
        data = service.ask("/similar", {"input": ["글", "글"], "top": 1, "way": "words"}).json["data"]
        assert [[hit["id"] for hit in one["hits"]] for one in data] == [["q2"], ["q2"]]
        reply = service.ask("/similar", {"input": "글"})
        schemas.SimilarResponse.model_validate_json(reply.body)
        assert [hit["score"] for hit in reply.json["data"][0]["hits"]] == [1.0, 0.5]
        assert reply.json["data"][0]["hits"][0]["rank_words"] is None
        reply = service.ask("/similar", {"input": ["글", "가" * 16_385]})
        assert (reply.code, reply.error["param"]) == (413, "input[1]")
        assert service.ask("/attention", {"text": "글"}).json == {"texts": ["글"], "model": "pretraining"}
        assert service.ask("/attention", {"text": "글", "pair": "또"}).json["texts"] == ["글", "또"]
        reply = service.ask("/attention", {"text": "글", "pair": "1 2 " * 40})
        assert (reply.code, reply.error["message"]) == (413, "text: has 84 pieces, the model reads 64: shorten it")


def test_an_index_is_searched_with_the_model_that_made_it(models, loaded, tmp_path):
    Index.create(tmp_path / "index", loaded["gaps"]).add([("1", "학교에 간다"), ("2", "대출을 신청한다")])
    with started(str(models["mood"]), str(models["gaps"]), "--index", str(tmp_path / "index")) as service:
        assert service.ask("/similar", {"input": "대출", "top": 1}).json["data"][0]["hits"][0]["id"] == "2"
        (found,) = service.ask("/similar", {"input": "대출", "way": "vectors", "where": "id = '1'"}).json["data"]
        assert [hit["id"] for hit in found["hits"]] == ["1"]
        reply = service.ask("/similar", {"input": "대출", "where": "부서 = '총무'"})
        assert (reply.code, reply.error["param"]) == (422, "input")
        assert "no such column: 부서" in reply.error["message"]


def test_a_condition_is_checked_once_without_reading_texts_and_a_way_needs_vectors(loaded, tmp_path, monkeypatch):
    index = Index.create(tmp_path / "index", loaded["gaps"], words_only=True)
    index.add([("1", "대출", {"rank": -(2**63)}), ("2", "대출 신청", {"rank": 2})])
    similar = search_operation(index, Limits())
    calls = []
    check_search = index.check_search
    monkeypatch.setattr(index, "check_search", lambda *given: calls.append(given) or check_search(*given))
    fails_on_a_text = (10, None, "abs(rank) = 2")
    rows = similar.tokenize([("대출", fails_on_a_text)] * 16 + [("대출", (10, "both", None))])
    assert sorted(calls, key=str) == [("both", None), fails_on_a_text[1:]]
    assert isinstance(rows[-1], Refusal)
    assert (rows[-1].status_code, "this index has only words" in rows[-1].detail) == (422, True)
    with pytest.raises(Refusal, match="integer overflow") as refused:
        similar.forward([row.value for row in rows[:-1]])
    assert refused.value.status_code == 422
