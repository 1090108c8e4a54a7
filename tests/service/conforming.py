"""Requests made from the document of an application, and whether the answers are as it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings


def conform(
    app: FastAPI, document: Any, *, examples: int, leave_out: str, headers: Mapping[str, str] | None = None
) -> None:
    """Requests that the document allows, and some that it does not, get what it says."""
    import schemathesis
    from schemathesis.core.result import Ok

    found = schemathesis.openapi.from_dict(document).exclude(path_regex=leave_out)
    found.app = app
    for operation in found.get_all_operations():
        assert isinstance(operation, Ok)
        _tried(operation.ok(), examples, dict(headers or {}))


def _checks() -> list[Any]:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    return [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]


def _tried(operation: Any, examples: int, headers: dict[str, str]) -> None:
    """Examples of one operation."""
    checks = _checks()

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def holds(case: Any) -> None:
        case.call_and_validate(checks=checks, headers=headers)

    holds()
