"""The documents that describe both sides name every address about streams, and are whole."""

from __future__ import annotations

import json
from typing import Any

from tests.service.streams.conftest import Service


def resolved(document: Any, reference: str) -> Any:
    """What a reference within a document stands for."""
    found = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def references(node: Any) -> list[str]:
    """All references below a node."""
    if isinstance(node, list):
        return [found for part in node for found in references(part)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [found for part in node.values() for found in references(part)]


def test_every_address_about_streams_is_described(service: Service) -> None:
    """In OpenAPI 3.1, with every reference leading somewhere."""
    steward, reading = service.steward.openapi(), service.reading.openapi()

    assert {"/streams", "/streams/{name}", "/streams/{name}/events"} <= set(steward["paths"])
    streams = {path for path in reading["paths"] if path.startswith("/streams")}
    assert streams == {
        f"/streams/{{name}}{end}" for end in (".json", "/outputs.json", "/outputs.csv", "/live")
    }
    for document in (steward, reading):
        assert document["openapi"].startswith("3.1")
        assert all(resolved(document, reference) for reference in references(document))


def test_the_body_of_a_feeding_request_is_described(service: Service) -> None:
    """With its three forms, and as JSON."""
    feed = service.steward.openapi()["paths"]["/streams/{name}/events"]["post"]
    schema = feed["requestBody"]["content"]["application/json"]["schema"]

    assert set(schema["properties"]) == {"count", "counts", "events"}
    assert "Idempotency-Key" in json.dumps(feed["parameters"]).title()
    assert set(feed["responses"]) >= {"204", "400", "401", "403", "404", "409", "413", "503"}
