"""The document of the API is true: all that is served is in it, and answers are as it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from tests.service.conforming import conform

from .conftest import Client, served

METHODS = ("get", "post")


@pytest.fixture(scope="module")
def app(shelf: Path) -> FastAPI:
    """The app of the shelf, under the name that test clients call."""
    return served(shelf, hosts=("*",))


@pytest.fixture(scope="module")
def document(client: Client) -> Any:
    """The document as anybody gets it."""
    return client.get("/openapi.json").json()


def operations(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation, with its address."""
    for path, methods in document["paths"].items():
        yield from ((path, methods[method]) for method in METHODS if method in methods)


@pytest.mark.thorough
def test_the_document_is_valid(document: Any) -> None:
    """OpenAPI 3.1, by its own schema."""
    schemathesis: Any = pytest.importorskip("schemathesis")
    assert document["openapi"].startswith("3.1")
    schemathesis.openapi.from_dict(document).validate()


def test_every_route_is_in_the_document(client: Client, document: Any) -> None:
    """But for the pages of people, which are no API."""
    described = {(path, method) for path in document["paths"] for method in document["paths"][path]}
    routes = [route for route in iter_route_contexts(client.app.routes) if route.include_in_schema]
    served = {(route.path, method.lower()) for route in routes for method in route.methods or ()}

    assert served == described
    assert {"/index.json", "/releases/{name}/count", "/releases/{name}/counts"} <= {
        path for path, _ in described
    }


def test_every_operation_says_what_it_is_and_how_it_fails(document: Any) -> None:
    """A name for programs, a line for people, and all errors; no two have the same name."""
    found = [each for path, each in operations(document) if path.startswith(("/releases", "/index"))]

    assert all({"400", "404", "409", "422", "429", "503"} <= set(each["responses"]) for each in found)
    assert all(each["summary"] for each in found)
    names = [each["operationId"] for _, each in operations(document)]
    assert len(names) == len(set(names))


def test_every_reference_in_the_document_leads_somewhere(document: Any) -> None:
    """Those of bodies that a route reads by itself, too."""
    schemas = document["components"]["schemas"]

    assert {name.rpartition("/")[2] for name in references(document)} <= set(schemas)


def references(node: Any) -> Iterator[str]:
    """Every reference below a node."""
    if isinstance(node, dict):
        yield from ([node["$ref"]] if isinstance(node.get("$ref"), str) else [])
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from references(each)


def fuzzed(document: Any) -> Any:
    """The document with the names of the shelf in place of any, so that questions reach a release."""
    for _, operation in operations(document):
        for parameter in operation.get("parameters", []):
            if parameter["name"] == "name":
                parameter["schema"] = {"enum": ["people", "asked", "nobody", "..%2fpeople"], "type": "string"}
            if parameter["name"] in ("column", "x", "y"):
                parameter["schema"] = {
                    "anyOf": [{"enum": ["age", "salary", "seen", "town"]}, parameter["schema"]]
                }
    return document


@pytest.mark.faults
def test_answers_are_as_the_document_says(app: FastAPI, document: Any) -> None:
    """Requests that the document allows, and some that it does not, get what it says."""
    conform(app, fuzzed(document), examples=40, leave_out="/live$|^/-/")
