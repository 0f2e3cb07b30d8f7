"""The OpenAPI document against the service: examples that work, and requests that schemathesis draws from it."""

import re
from functools import cache

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from korbert.pipelines.service.routes import ROUTES

CAPABLE = {
    "/fill": "gaps",
    "/predict": "mood",
    "/rows": "mood",
    "/answer": "answers",
}  # path -> a model for it; else the first one
# What no JSON Schema can say: limits of a model, texts without [MASK], lists of different lengths.
NOT_DESCRIBED = re.compile(
    r"dimensions: \d+, the vectors|layer .*: take one from 0|pooling: |input\S*: has no \[MASK\]|"
    r"context: .* give two texts|input\S*: cannot be read: this model takes|content: "
)


@cache
def document(service):
    return service.ask("/openapi.json").json


def example(service, path):
    schema = document(service)["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    name = schema["$ref"].rpartition("/")[2]
    found = document(service)["components"]["schemas"][name]["examples"][0]
    return found | {"model": CAPABLE.get(path)}


def test_document_lists_exactly_the_routes(service):
    found = document(service)
    assert found["openapi"].startswith("3.1")
    listed = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert listed == {(method, route.path) for route in ROUTES for method in route.methods}
    operations = [one["operationId"] for methods in found["paths"].values() for one in methods.values()]
    assert len(set(operations)) == len(operations)
    assert "HTTPValidationError" not in found["components"]["schemas"]
    assert found["security"] == [{}, {"token": []}]


def test_document_is_as_strict_as_the_service(service):
    schemas = document(service)["components"]["schemas"]
    single, several = schemas["EmbeddingsRequest"]["properties"]["layer"]["anyOf"][0]["oneOf"]
    assert single == {"type": "integer"}
    assert several["uniqueItems"]
    assert (
        schemas["SimilarRequest"]["properties"]["top"].items()
        >= {"type": "integer", "minimum": 1, "maximum": 100}.items()
    )
    for number in (3, 3.0):  # the same integer to JSON Schema
        reply = service.ask("/fill", {"input": "[MASK]", "top": number, "model": "gaps"})
        assert len(reply.json["data"][0]["gaps"][0]) == 3


@pytest.mark.parametrize("path", [route.path for route in ROUTES if "POST" in route.methods])
def test_examples_are_answered_without_undescribed_fields(path, service):
    reply = service.ask(path, example(service, path))
    if path == "/similar":  # this service has no index
        assert reply.code == 404
        return
    assert reply.code == 200
    (route,) = [route for route in ROUTES if route.path == path]
    answer = route.response_model.model_validate_json(reply.body).model_dump(mode="json", exclude_unset=True)
    assert answer == reply.json


@pytest.mark.parametrize("mode", GenerationMode)
def test_drawn_requests_get_described_answers(mode, service):
    """No 5xx, no undescribed code, header or field; valid requests are accepted and invalid ones refused."""
    for operation in (found.ok() for found in schemathesis.openapi.from_dict(document(service)).get_all_operations()):
        if mode is GenerationMode.NEGATIVE and operation.method == "get":
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def ask(case):
            if mode is GenerationMode.POSITIVE and case.method == "POST":
                case.body["model"] = CAPABLE.get(case.path, "vectors")
            response = case.call(base_url=service.address)
            case.validate_response(response, excluded_checks=[positive_data_acceptance])
            if mode is GenerationMode.POSITIVE and response.status_code == 422:
                assert NOT_DESCRIBED.match(response.json()["error"]["message"]), response.text

        ask()


def test_docs_page_has_all_routes_this_address_and_no_scripts(service):
    page = service.ask("/docs").body.decode()
    assert all(f"{method} {route.path}" in page for route in ROUTES for method in route.methods)
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!openapi\.json|\./")', page)
    assert "신용 대출을 신청하고 싶어요" in page
    assert "<code>param</code> names it." in page
    assert "<code>200</code> <code>400</code> <code>401</code>" in page
    assert f"curl {service.address}/fill -d" in page
    assert "curl http://localhost:" in service.ask("/docs", Host=f"localhost:{service.port}").body.decode()
