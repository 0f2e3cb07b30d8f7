"""The OpenAPI 3.1 document of all routes, and a page that shows it."""

import json
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import korbert
from pipelines.service import forms
from pipelines.service.routes import ROUTES, Described

__all__ = ["document", "page"]

_CODES = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The Host header names another server, or the request comes from another origin.",
    404: "No such model, or one that cannot do this.",
    408: "The body took too long.",
    413: "Too large: the body, the number of texts, or a text.",
    422: "A field is invalid; `param` names it.",
    429: "The queue is full; Retry-After says when to try again.",
    500: "The model failed.",
    503: "The models are loading, the answer took too long, or the service is ending.",
}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, built from the table of routes and the forms."""
    known: set[type[BaseModel]] = {forms.Error}
    for route in ROUTES:
        known.update(one for one in (route.form, route.answer) if isinstance(one, type))
    _, schemas = models_json_schema(
        [(one, "validation") for one in sorted(known, key=lambda one: one.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _described(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "korbert serve",
            "version": korbert.__version__,
            "description": "Korean BERT models with morpheme tokenization.",
        },
        "paths": paths,
        "components": {"schemas": schemas["$defs"], "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _described(route: Described) -> dict[str, Any]:
    kind = "application/json" if isinstance(route.answer, type) else route.answer
    schema = _reference(route.answer) if isinstance(route.answer, type) else {}
    responses: dict[str, Any] = {"200": {"description": "The answer.", "content": {kind: {"schema": schema}}}}
    for code in sorted({401, 403, *route.codes}):
        responses[str(code)] = {
            "description": _CODES[code],
            "content": {"application/json": {"schema": _reference(forms.Error)}},
        }
    found: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{route.path.replace('/', '_').replace('.', '_')}",
        "summary": route.about,
        "responses": responses,
    }
    if route.form is not None:
        content = {"schema": _reference(route.form), "example": dict(route.example)}
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    return found


def _reference(form: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{form.__name__}"}


@cache
def page() -> str:
    """The document as a page without scripts."""
    from pipelines.reports.page import filled

    examples = {route.path: json.dumps(dict(route.example), ensure_ascii=False) for route in ROUTES}
    return filled("service.html", document=document(), codes=_CODES, examples=examples)
