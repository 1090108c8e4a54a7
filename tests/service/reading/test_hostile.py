"""Whatever is sent, a typed error comes back: never a 500, and nothing of a long body."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Client

JSON = {"Content-Type": "application/json"}
BODIES = [
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b'{"where": NaN}',
    b'{"where": {"age": NaN}}',
    b'{"where": {"age": Infinity}}',
    b'{"where": {"age": [1e999, 3]}}',
    b'{"where": {"age": ' + b"9" * 100_000 + b"}}",
    b'{"where": {"age": "' + b"9" * 100_000 + b'"}}',
    b'{"where": {"age": 1' + b"0" * 4_000 + b"}}",
    b'{"where": ' + b'{"age": ' * 50_000 + b"1" + b"}" * 50_001,
    b'{"where": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"where": {"age": [1, 2, 3]}}',
    b'{"where": {"age": true}}',
    b'{"where": {"age": null}}',
    b'{"where": {"age": {}, "town": {"in": []}}}',
    b'{"where": {"age": {"is": "secret"}}}',
    b'{"where": {"age": {"low": 1, "lo": 2}}}',
    b'{"where": {"nowhere": 1}}',
    b'{"where": {"town": "Atlantis"}}',
    b'{"where": {"town": "\\ud800"}}',
    b'{"where": {"\\u0000": 1}}',
    b'{"where": {"age": [39, 30]}}',
    b'{"where": "age between"}',
    b'{"where": "' + b"a" * 5_000 + b'"}',
    b'{"confidence": 1}',
    b'{"confidence": 1e-400}',
    b'{"confidence": 0.9999999999999999999}',
    b'{"confidence": 0.9999999999999999, "where": {"age": [3, 9]}}',
    b'{"beta": 0}',
    b'{"beta": "NaN"}',
    b'{"beta": 1e-310}',
    b'{"where": {"age": 1}, "epsilon": 9}',
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body_is_answered_or_refused(client: Client, body: bytes) -> None:
    """With the kind of the error, and a message that is short however long the body was."""
    answer = client.post("/releases/people/count", content=body, headers=JSON)

    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]["kind"] in ("InvalidParameter", "InvalidRequest")
    assert len(answer.content) < 1_000


@pytest.mark.parametrize(
    "asked",
    [
        {"where": "age = 'unfinished"},
        {"where": "age = 1 and age = 2"},
        {"where": "age < " + "9" * 4_000},
        {"where": "age < nan"},
        {"where": "age < 1e999"},
        {"where": "age < \0"},
        {"where": "\ud800age < 3".encode("utf-8", "replace").decode()},
        {"where": "count where age < 3"},
        {"where": "2*age + 3*town <= 4"},
        {"where": "age < 3;"},
        {"where": "x" * 4_097},
        {"confidence": "nan"},
        {"confidence": "inf"},
        {"confidence": "0"},
        {"confidence": ""},
        {"confidence": "1e-999"},
        {"confidence": "0.9999999999999999"},
        {"confidence": "0.9999999999999999", "where": "age < 30"},
        {"confidence": "0.9999999999999999", "beta": "0.05"},
        {"beta": "1e999"},
        {"beta": "-0"},
        {"Where": "age < 3"},
        {"": "age < 3"},
    ],
)
def test_an_address_is_answered_or_refused(client: Client, asked: dict[str, str]) -> None:
    """The same way."""
    answer = client.get("/releases/people/count", **asked)

    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]["kind"] in ("InvalidParameter", "InvalidRequest")
    assert len(answer.content) < 1_000


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("quantile", {"column": "age", "q": "2"}),
        ("quantile", {"column": "age", "q": "nan"}),
        ("quantile", {"column": "nowhere"}),
        ("quantile", {"column": "age", "where": "age < 3"}),
        ("cdf", {"column": "age", "at": "old"}),
        ("cdf", {"column": "age", "at": [str(each) for each in range(1_025)]}),
        ("histogram", {"column": "age", "bins": "0"}),
        ("histogram", {"column": "age", "confidence": "0.9999999999999999"}),
        ("cdf", {"column": "age", "at": "3", "confidence": "0.9999999999999999"}),
        ("quantile", {"column": "age", "confidence": "0.9999999999999999"}),
        ("sum", {"column": "salary", "confidence": "0.9999999999999999"}),
        ("view.json", {"x": "age", "confidence": "0.9999999999999999"}),
        ("view.csv", {"x": "age", "y": "town", "confidence": "0.9999999999999999"}),
        ("histogram", {"column": "age", "bins": "1025"}),
        ("histogram", {"column": "age", "bins": "9" * 5_000}),
        ("histogram2d", {"x": "age", "y": "town", "x_bins": "33", "y_bins": "32"}),
        ("histogram2d", {"x": "age", "y": "salary"}),
        ("histogram2d", {"x": "age", "y": "age"}),
        ("sum", {"column": "age"}),
        ("sum", {}),
        ("mean", {"column": "salary", "where": "nowhere = 1"}),
        ("answers", {}),
        ("ask", {"q": ""}),
        ("ask", {"q": "drop table people"}),
        ("ask", {"q": "histogram of age in 1048576 bins"}),
        ("ask", {"q": "count where age < 3 " * 500}),
        ("ask", {}),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    client: Client, kind: str, asked: dict[str, Any]
) -> None:
    """What is not there, what is no number, and what asks for more than the limits."""
    answer = client.get(f"/releases/people/{kind}", **asked)

    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]["kind"] in ("InvalidParameter", "InvalidRequest")


def test_a_value_and_a_path_do_not_come_back(client: Client, shelf: Any) -> None:
    """An error says which release is not there by no name, and nowhere where the folder is."""
    answers = [
        client.get("/releases/Quetzalcoatlus/count"),
        client.post("/releases/people/count", json={"where": {"age": {"Quetzalcoatlus": 1}}}),
        client.get("/releases/people/count", Quetzalcoatlus=1),
    ]

    assert not any("Quetzalcoatlus" in answer.text or str(shelf) in answer.text for answer in answers)
