"""The document of the steward's API is true, too: answers are as it says, whatever is sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.conforming import conform
from tests.service.streams.conftest import Service


@pytest.mark.faults
@pytest.mark.filterwarnings("ignore::partita.errors.PrivacyWarning")  # an epsilon of any size may be tried
@pytest.mark.parametrize("by", ["boss", "gate"])
def test_answers_are_as_the_document_says(service: Service, by: str) -> None:
    """To an admin, who makes streams, and to a feeder, who feeds one that is there; each starts it anew."""
    assert service.create("visits").status_code == 201
    document = service.ask("GET", "/openapi.json", by="boss").json()
    headers = {"Authorization": f"Bearer {service.tokens[by]}", "Host": "localhost"}
    service.stop()

    conform(service.steward, _named(document), examples=40, leave_out="^/-/", headers=headers)


def _named(document: Any) -> Any:
    """The document with the name of a stream in place of any, so that events reach one."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    parameter["schema"] = {"enum": ["visits", "nobody"], "type": "string"}
    return document
