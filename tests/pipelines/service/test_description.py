"""The OpenAPI document against the routes: all of them, no others, and examples that work."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from pipelines.service.description import document, page
from pipelines.service.routes import ROUTES, Described
from tests.pipelines.service.started import Started

DEFAULT = {"/fill": "gaps", "/predict": "mood", "/answer": "answers"}  # a model that can


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


def test_all_routes_are_described_and_all_that_is_described_is_a_route(service: Started) -> None:
    described = {(method.upper(), path) for path, methods in document()["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}
    for method, path in described:
        reply = service.ask(path, {} if method == "POST" else None)
        assert reply.code not in (405, 500)
        assert reply.code != 404 or "no such path" not in reply.error["message"]
        assert service.ask(path, None if method == "POST" else {}).code == 405
    assert service.ask("/openapi.json").json == document()


def test_the_document_is_whole() -> None:
    found = document()
    assert found["openapi"] == "3.1.0"
    schemas = found["components"]["schemas"]
    assert _references(found) <= {f"#/components/schemas/{name}" for name in schemas}
    names = [route["operationId"] for methods in found["paths"].values() for route in methods.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.form], ids=lambda route: route.path)
def test_examples_are_answered_as_described(route: Described, service: Started) -> None:
    assert route.form is not None
    example = {**route.example, "model": DEFAULT.get(route.path)}
    route.form.model_validate(example)
    reply = service.ask(route.path, example)
    described = document()["paths"][route.path]["post"]["responses"]
    assert str(reply.code) in described
    if route.path in ("/similar", "/attention"):  # there is nothing to search here; look.py shows the other
        return
    assert reply.code == 200
    assert isinstance(route.answer, type)
    assert issubclass(route.answer, BaseModel)
    found = route.answer.model_validate_json(reply.body).model_dump(mode="json", exclude_unset=True)
    assert found == reply.json  # no field that is not described


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.form], ids=lambda route: route.path)
def test_other_routes_answer_as_described(route: Described, service: Started) -> None:
    reply = service.ask(route.path)
    assert str(reply.code) in document()["paths"][route.path]["get"]["responses"]
    if isinstance(route.answer, type):
        route.answer.model_validate_json(reply.body)
    elif reply.code == 200:
        assert reply.headers["content-type"].startswith(route.answer)


def test_every_code_in_the_source_is_described() -> None:
    described = {
        code for methods in document()["paths"].values() for one in methods.values() for code in one["responses"]
    }
    folder = Path(__file__).parents[3] / "pipelines" / "service"
    raised = {code for path in folder.glob("*.py") for code in re.findall(r"Refusal\(\s*(\d+)", path.read_text())}
    assert raised <= described


def test_the_page_has_all_routes_and_no_scripts() -> None:
    text = page()
    assert all(f"{route.method} {route.path}" in text for route in ROUTES)
    assert "<script" not in text
    assert not re.search(r'(src|href)="(?!openapi\.json)', text)
    assert "신용 대출을 신청하고 싶어요" in text
