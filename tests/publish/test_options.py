"""Options of a mechanism by name: each that a class has is found, read by its type, stated and compared."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import pytest

import partita as pt
from partita.domain import Category, Domain, Integer
from partita.errors import InvalidParameter, InvalidRelease, KeyReused
from partita.ledger.ledger import Ledger
from partita.public.base import Provenance
from partita.public.file_entries import provenance_entries, provenance_from
from partita.publish.request import Request
from partita.trusted.durable.events import MECHANISMS, read_stream_options, stream_options
from partita.trusted.mechanisms.catalogue import (
    axis_mechanisms,
    box_mechanisms,
    quantile_mechanisms,
    query_mechanisms,
    sum_mechanisms,
)
from partita.trusted.mechanisms.options import Option, option_texts, options_of, read_options

AGE: Final[dict[str, Domain]] = {"age": Integer(0, 120)}
PAIR: Final[dict[str, Domain]] = {"age": Integer(0, 20), "town": Category(["a", "b"])}
ROWS: Final = {"age": [3, 5, 7] * 20}

NAMED: Final = {
    **axis_mechanisms(),
    **quantile_mechanisms(),
    **box_mechanisms(),
    **query_mechanisms(),
    **sum_mechanisms(),
}
FOUND: Final = [
    pytest.param(name, option, id=f"{name}-{option.name}")
    for name, kind in NAMED.items()
    for option in options_of(kind).values()
]
_SPECIAL: Final[dict[str, Any]] = {
    "weights": ["1/2", 1, 1, 1, 1, 2, 2, 3],
    "rounds": 3,
    "views": [1],
    "plain": [1],
    "threshold": "7/2",
}
"""Values of options that must fit others."""


def _example(option: Option) -> Any:
    """A value that is not the usual one, written as a spec has it."""
    if option.name in _SPECIAL:
        return _SPECIAL[option.name]
    kinds = get_args(option.hint) or (option.hint,)
    first = option.hint if get_origin(option.hint) is Literal else kinds[0]
    if get_origin(first) is Literal:
        return next(word for word in get_args(first) if word != option.default)
    if first is bool:
        return str(not option.default).lower()
    return {int: "4", Fraction: "1/3"}.get(first, {"growth": "3/2", "worth": 3, "depth_power": 1})


def _request(name: str, **given: Any) -> Request:
    if name in query_mechanisms():
        asked = "value(age)" if name == "single-truncation" else "ranges(age)"
        return Request.checked(PAIR, epsilon=1, queries=asked, mechanism=name, **given)
    return Request.checked(PAIR if name in box_mechanisms() else AGE, epsilon=1, mechanism=name, **given)


@pytest.mark.parametrize(("name", "option"), FOUND)
def test_every_option_reaches_its_mechanism(name: str, option: Option) -> None:
    """Given by name, it is in the mechanism, in the reason, and in what a key compares; the rest stays."""
    usual, request = _request(name), _request(name, options={option.name: _example(option)})
    (made,), (without,) = ([view.choice.mechanism for view in each.published] for each in (request, usual))
    held = option.read(_example(option))

    assert getattr(made, option.name) == held != getattr(without, option.name)
    assert made.guarantee == without.guarantee
    assert request.to_json()["options"] == option_texts({option.name: held})
    assert f"with {option.name} {option_texts({option.name: held})[option.name]}" in request.published[0].why
    assert request.to_json() != usual.to_json()
    assert "options" not in usual.to_json()


@pytest.mark.parametrize(("name", "option"), FOUND)
def test_text_of_an_option_is_read_back(name: str, option: Option) -> None:
    """What a release states is what a command line takes; a table is given in a spec or in Python."""
    held = option.read(_example(option))
    if not isinstance(_example(option), dict):
        assert option.read(option_texts({option.name: held})[option.name]) == held


def test_known_options_are_found() -> None:
    """By the fields of the classes, without a list; what publish sets is no option."""
    assert set(options_of(pt.Tree)) >= {"branching", "root", "weights"}
    assert set(options_of(pt.InstanceTruncation)) >= {"decomposition", "rounds", "rule"}
    assert set(options_of(pt.PaperRectangles)) >= {"threshold", "beta"}
    taken = {name for kind in NAMED.values() for name in options_of(kind)}
    assert not taken & {"epsilon", "delta", "neighbors", "contributions", "unit", "size", "axes", "queries"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"brunching": 4},
            r"options must be of 'tree', which takes branching \(an integer\).* 'branching'",
        ),
        ({"branching": 1}, "options.branching of 'tree' must be at least 2, got 1; raise it"),
        (
            {"branching": "four"},
            "options.branching of 'tree' must be an integer, got 'four'; pass for example",
        ),
        ({"branching": True}, "options.branching of 'tree' must be an integer, got True"),
        ({"branching": "5/2"}, "options.branching of 'tree' must be an integer"),
        ({"root": 1}, "options.root of 'tree' must be true or false, got 1"),
        (
            {"weights": [1]},
            "options.weights of 'tree' must be 8 positive numbers, one for each level, got '1'",
        ),
        ({"weights": {"a": 1}}, "options.weights of 'tree' must be a list of numbers, or 'none'"),
        (
            {"epsilon": 2},
            "options.epsilon must be left out of the options of 'tree': .* pass epsilon= itself",
        ),
        ({"contributions": 9}, "options.contributions must be left out"),
        ({"size": 9}, "options.size must be left out .*: it follows from the schema"),
        ([4], "options must map names of options to values"),
        ({4: 4}, "options must map names of options to values"),
    ],
)
def test_what_is_no_option_is_refused(given: Any, message: str) -> None:
    """The error names the option, the mechanism, what it takes, and the nearest name."""
    with pytest.raises(InvalidParameter, match=message):
        _request("tree", options=given)


@pytest.mark.parametrize("mechanism", ["auto", pt.Tree, pt.Tree(size=121, epsilon=1)])
def test_options_need_a_mechanism_by_name(mechanism: Any) -> None:
    """What is chosen by itself, or made by the caller, takes none."""
    with pytest.raises(InvalidParameter, match="options must come with a mechanism by its name"):
        Request.checked(AGE, epsilon=1, mechanism=mechanism, options={"branching": 4})


def test_options_are_refused_beside_wants() -> None:
    """Each want chooses its mechanism."""
    with pytest.raises(InvalidParameter, match="options must be left out where wants are given"):
        Request.checked(AGE, epsilon=1, wants=["median of age"], options={"branching": 4})


def test_options_are_those_of_the_views_by_that_mechanism() -> None:
    """A view of several columns is chosen as usual beside a tree of one."""
    request = Request.checked(
        PAIR, epsilon=1, views=["age", ("age", "town")], mechanism="tree", options={"branching": 4}
    )

    tree, boxes = (view.choice for view in request.published)
    assert tree.mechanism.branching == 4
    assert boxes.name != "tree"
    assert "branching" not in boxes.why


def test_a_mechanism_object_is_taken_as_it_is() -> None:
    """Its options are in the object."""
    made = pt.Tree(size=121, epsilon=1, branching=16)
    (view,) = Request.checked(AGE, epsilon=1, mechanism=made).published

    assert view.choice.mechanism is made
    assert pt.publish(ROWS, AGE, epsilon=1, mechanism=made).views[0].mechanism == "tree"


def test_release_states_its_options(tmp_path: Path) -> None:
    """In its provenance, its report, its citation, its card and its file."""
    path = tmp_path / "ages.release.parquet"
    release = pt.publish(
        ROWS, AGE, epsilon=1, mechanism="tree", options={"root": False, "branching": "16"}, path=path
    )
    copy = pt.load(path)

    assert copy.provenance.options == release.provenance.options == (("branching", "16"), ("root", "false"))
    assert "with branching 16, root false" in copy.report()
    assert "note    = {Options of the mechanism: branching 16, root false}" in copy.citation()
    assert "branching 16, root false" in copy._repr_html_()
    assert "Options of the mechanism" not in pt.publish(ROWS, AGE, epsilon=1, mechanism="tree").citation()


@pytest.mark.parametrize(
    "options", [{}, {"Bad name": "1"}, {"branching": "1\n2"}, {"branching": 16}, [], None]
)
def test_options_in_a_file_are_read_strictly(options: Any) -> None:
    """Names and printable text, one at least."""
    entries: Any = provenance_entries(Provenance(version="0.1.0", day="2026-11-15"))

    with pytest.raises(InvalidRelease):
        provenance_from({**entries, "options": options})


def test_keys_compare_options(tmp_path: Path, ledger: Ledger) -> None:
    """The same options, however written, return what is stored; others are another request."""
    terms: dict[str, Any] = {"ledger": ledger, "dataset": "people", "key": "k", "path": tmp_path / "r"}

    def publish(**options: Any) -> Any:
        return pt.publish(ROWS, AGE, epsilon=1, mechanism="tree", options=options, **terms)

    first = publish(branching=16)
    again = publish(branching="16")

    assert again.count(age=(0, 9)).value == first.count(age=(0, 9)).value
    assert ledger.balance("people").left.epsilon == 2
    for others in ({"branching": 8}, {}, {"branching": 16, "root": False}):
        with pytest.raises(KeyReused):
            publish(**others)


def test_plan_and_simulate_take_options() -> None:
    """The planned error is that of the mechanism with them, and so is the simulated release."""
    planned = pt.plan(AGE, epsilon=1, rows=60, mechanism="tree", options={"branching": 128, "root": False})
    flat = pt.Tree(size=121, epsilon=1, branching=128, root=False)

    assert planned.rows()[0]["error"] == flat.predicted_error(60)
    assert planned.to_json()["request"]["options"] == {"branching": "128", "root": "false"}
    assert pt.simulate(planned, ROWS, ranges=20).measured[0].mechanism == "tree"


def test_options_of_counters_are_their_parameters() -> None:
    """Found by the signature, without noise and plans; read by their types."""
    assert set(stream_options("tree")) == {"branching", "refine"}
    assert set(stream_options("pan-private")) == {"variant"}
    assert {"constants", "weight", "expected", "beta"} <= set(stream_options("sparse"))
    assert all(set(stream_options(name)).isdisjoint({"noise", "plan", "inner"}) for name in MECHANISMS)
    assert read_stream_options("tree", {"branching": "16", "refine": "true"}) == {
        "branching": 16,
        "refine": True,
    }


@pytest.mark.parametrize(
    ("mechanism", "given", "message"),
    [
        (
            "tree",
            {"branch": 4},
            "options must be of 'tree', which takes branching .* did you mean 'branching'",
        ),
        (
            "pan-private",
            {"variant": "bok"},
            "options.variant of 'pan-private' must be one of 'default'",
        ),
        ("counter", {"branching": 4}, "options must be of 'counter', which takes no options"),
        ("counter", {"epsilon": 4}, "options.epsilon must be left out of the options of 'counter'"),
    ],
)
def test_what_is_no_option_of_a_counter_is_refused(mechanism: str, given: Any, message: str) -> None:
    """As for mechanisms."""
    with pytest.raises(InvalidParameter, match=message):
        read_stream_options(mechanism, given)


def test_counters_are_opened_with_options(tmp_path: Path) -> None:
    """And go on with them; other options are another counter."""
    terms: dict[str, Any] = {"epsilon": 1, "period": "1m", "horizon": 1000, "mechanism": "tree"}
    with pt.open_counter(tmp_path / "c", **terms, **read_stream_options("tree", {"branching": "16"})) as made:
        assert made.settings.options == {"branching": 16}
    with pytest.raises(InvalidParameter, match="options must be what the counter was opened with"):
        pt.open_counter(tmp_path / "c", **terms, branching=4)


def test_read_options_takes_what_a_field_takes() -> None:
    """None and `none` where nothing is the usual value, numbers in any exact form."""
    known = options_of(pt.PaperRectangles)

    assert read_options(known, {"threshold": "none"}, "x") == read_options(known, {"threshold": None}, "x")
    assert read_options(known, {"threshold": 0.1}, "x") == {"threshold": Fraction(1, 10)}
    with pytest.raises(InvalidParameter, match=r"options\.beta of 'x' must be a number"):
        read_options(known, {"beta": None}, "x")
