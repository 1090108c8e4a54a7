"""What notebooks show of counters and sketches is public: parameters, and what was published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import partita as pt
from partita.public.stream_plot import counter_card, family_card, stream_card

Shown = Callable[[Any], str]

CANARY = 271_828
"""So many came; nothing that is published says so."""


def public_twin(counter: pt.ContinualCounter) -> Any:
    """A thing with the name of the counter that knows only what everybody may know."""
    answer = counter.answer() if counter.periods else None
    public = {name: getattr(counter, name) for name in ("guarantee", "horizon", "periods", "value")}
    return type(type(counter).__name__, (), {**public, "answer": lambda self: answer})()


def test_counters_show_what_their_public_twins_show(in_memory: dict[str, pt.ContinualCounter]) -> None:
    """A card is a function of public numbers: made without the counter it is the same."""
    for counter in in_memory.values():
        assert counter_card(public_twin(counter)) == counter._repr_html_()


def test_a_counter_that_has_published_nothing_shows_nothing() -> None:
    """Only its parameters."""
    counter = pt.Counter(epsilon=1, horizon=64)

    assert counter_card(public_twin(counter)) == counter._repr_html_()
    assert "0 closed of 64" in counter._repr_html_()


def test_a_card_that_looks_at_the_state_is_caught(in_memory: dict[str, pt.ContinualCounter]) -> None:
    """Planted bug: a twin has no state to look at."""

    def leaking(counter: Any) -> str:
        return counter_card(counter) + str(len(counter.state()))

    with pytest.raises(AttributeError, match="state"):
        leaking(public_twin(in_memory["counter"]))


def test_a_family_shows_its_outputs_only() -> None:
    """One for each key."""
    family = pt.CounterFamily(keys=["<north>", "south"], epsilon=1, horizon=64)
    family.update([3, 4])
    public = {name: getattr(family, name) for name in ("guarantee", "horizon", "periods", "value", "keys")}
    twin = type("CounterFamily", (), public)()

    assert family_card(twin) == family._repr_html_()
    assert "&lt;north&gt;" in family._repr_html_()


@pytest.fixture(params=["counter", "pan-private", "sparse"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[pt.DurableCounter]:
    """A durable counter with one closed period."""
    terms = {"epsilon": 1, "period": "1h", "start": "2026-01-01", "horizon": 64, "mechanism": request.param}
    with pt.open_counter(tmp_path / "visits.db", **terms) as opened:
        opened.tick("2026-01-01T01:00:00")
        yield opened


def moves_with_the_open_period(counter: pt.DurableCounter, shown: Shown) -> bool:
    """Whether what is shown changes when somebody comes."""
    before = shown(counter)
    named = not counter.settings.pan_private
    counter.add(CANARY, feeder="door" if named else None, sequence=99 if named else None)
    return shown(counter) != before


def test_the_open_period_of_a_durable_counter_is_not_shown(durable: pt.DurableCounter) -> None:
    """Whoever comes changes nothing until the clock closes the period."""
    assert not moves_with_the_open_period(durable, lambda counter: counter._repr_html_())


def test_a_card_that_looks_at_the_open_period_is_caught(visits: pt.DurableCounter, tmp_path: Path) -> None:
    """Planted bug: the secret file shows through."""

    def leaking(counter: Any) -> str:
        secret = b"".join(file.read_bytes() for file in sorted(tmp_path.glob("visits.db*")))
        return f"{counter._repr_html_()}{secret!r}"

    assert moves_with_the_open_period(visits, leaking)


def test_a_durable_counter_shows_what_its_public_file_says(visits: pt.DurableCounter, tmp_path: Path) -> None:
    """Whoever has the public file can make the same card."""
    settings = visits.settings
    outputs = list(visits.outputs())

    assert stream_card("DurableCounter", settings, settings.guarantee, 2, outputs) == visits._repr_html_()
    assert f"{outputs[-1].value:.4g}" in visits._repr_html_()


SKETCHES: dict[str, Callable[[], Any]] = {
    "density": lambda: pt.pan.Density(universe=100, epsilon=1),
    "distinct": lambda: pt.pan.Distinct(epsilon=1, buckets=64),
    "registers": lambda: pt.pan.Registers(universe=100, epsilon=1, most=3),
}


def moves_when_users_come(sketch: Any, shown: Shown) -> bool:
    """Whether what is shown changes when users come."""
    before = shown(sketch)
    sketch.update_many(range(50))
    return shown(sketch) != before


@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_show_nothing_of_who_came(name: str) -> None:
    """Until something is released, and then that it was."""
    sketch = SKETCHES[name]()

    assert not moves_when_users_come(sketch, lambda sketch: sketch._repr_html_())
    assert "1 of 1" in sketch._repr_html_()
    sketch.release(sketch.names[0])
    assert "over" in sketch._repr_html_()


def test_a_card_that_looks_at_the_registers_is_caught() -> None:
    """Planted bug: a table shows through."""

    def leaking(sketch: Any) -> str:
        return f"{sketch._repr_html_()}{[table.tobytes() for table in sketch._tables()]}"

    assert moves_when_users_come(pt.pan.Registers(universe=100, epsilon=1, most=3), leaking)
