"""Making a counter, and looking at what it published."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from partita.cli import stream
from partita.public.stream_errors import error_band
from partita.public.stream_plot import plot
from partita.public.streams import read_outputs
from partita.trusted.durable.events import MECHANISMS
from partita.trusted.streams.counter import Counter
from partita.trusted.streams.tree_counter import TreeCounter

from .conftest import Done, Run

DAYS = ("--epsilon", "1", "--period", "1d", "--start", "2026-01-01")


@pytest.fixture
def visits(run: Run, folder: Path) -> Path:
    """A counter of days with ten outputs."""
    run("stream", "create", "visits", *DAYS, "--horizon", 365)
    Path("times").write_text("2026-01-03\n" * 200)
    run("stream", "feed", "visits", "--file", "times", "--start", "2026-01-01", "--end", "2026-01-11")
    return folder / "visits"


def test_the_mechanisms_are_those_of_the_library() -> None:
    """What can be durable can be made from a shell."""
    assert set(stream.MECHANISMS) == set(MECHANISMS)


@pytest.mark.parametrize("mechanism", stream.MECHANISMS)
def test_create_says_what_is_promised(run: Run, folder: Path, mechanism: str) -> None:
    """In words and in JSON; the secret file is its owner's only."""
    length = ("--window", 7) if mechanism == "sliding" else ("--horizon", 365)
    made = ("--mechanism", mechanism, *length)
    done = run("stream", "create", "visits", *DAYS, *made)
    told = run("stream", "create", "other", *DAYS, *made, "--json")

    [record] = told.records
    assert (done.code, told.code, done.err, told.err) == (0, 0, "", "")
    assert f"mechanism  {mechanism}" in done.out
    assert "epsilon 1, pure" in done.out
    assert (record["guarantee"]["epsilon"], record["guarantee"]["unit"]) == ("1", "event")
    assert (record["period_seconds"], record["start"]) == (86400, "2026-01-01T00:00:00+00:00")
    secrets = [path for path in folder.iterdir() if path.suffix in (".db", ".pan")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in secrets] == [0o600, 0o600]


def test_options_and_bounds_are_told(run: Run, folder: Path) -> None:
    """By create and by info, in words and in JSON; of a sparse counter by create, which knows the hint."""
    made = ("--horizon", 365, "--mechanism", "tree", "--option", "branching=16", "--option", "refine=true")
    done = run("stream", "create", "visits", *DAYS, *made)
    info = run("stream", "info", "visits", "--beta", "0.001")
    [record] = run("stream", "info", "visits", "--json").records
    counter = TreeCounter(epsilon=1, horizon=365, branching=16, refine=True)
    papers = ("--mechanism", "sparse", "--option", "constants=paper", "--option", "weight=10")
    sparse = run("stream", "create", "sparse", *DAYS, "--horizon", 365, *papers)
    endless = run("stream", "create", "endless", *DAYS)

    assert "options    branching 16, refine True" in done.out
    assert f"no output is off by more than {counter.bound():,.1f}, but for probability 0.05" in done.out
    assert f"no output is off by more than {counter.bound('0.001'):,.1f}, but for" in info.out
    assert (record["options"], record["bound"]) == ({"branching": 16, "refine": True}, counter.bound())
    assert "if at most 10 events come, but for probability 0.05" in sparse.out
    assert "it depends on how many events come" in run("stream", "info", "sparse").out
    assert "no horizon is known" in endless.out


def test_an_option_that_a_counter_does_not_have_is_refused(run: Run, folder: Path) -> None:
    """Nothing is made."""
    done = run("stream", "create", "visits", *DAYS, "--mechanism", "tree", "--option", "brnching=16")

    assert done.code == 1
    assert "did you mean 'branching'?" in done.err
    assert not list(folder.iterdir())


def test_users_are_protected_if_contributions_are_named(run: Run, folder: Path) -> None:
    """The guarantee is for a user of at most so many events, even if that is one."""
    for name, number in (("a", 1), ("b", 3)):
        [record] = run("stream", "create", name, *DAYS, "--contributions", number, "--json").records
        assert (record["guarantee"]["unit"], record["guarantee"]["contributions"]) == ("user", number)


def test_a_counter_is_made_once(run: Run, visits: Path) -> None:
    """To go on with it is to feed it."""
    before = visits.with_suffix(".outputs").read_bytes()

    done = run("stream", "create", "visits", *DAYS)

    assert (done.code, done.out) == (1, "")
    assert "counter must not exist yet" in done.err
    assert visits.with_suffix(".outputs").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--epsilon", "0", "--period", "1m"), 2),
        (("--epsilon", "1"), 2),
        (("--epsilon", "1", "--period", "soon"), 1),
        (("--epsilon", "1", "--period", "1m", "--horizon", "0"), 2),
        (("--epsilon", "1", "--period", "1m", "--start", "tomorrow"), 1),
        (("--epsilon", "1", "--period", "1m", "--mechanism", "magic"), 2),
        (("--epsilon", "1", "--period", "1m", "--expected", "100"), 1),
        (("--epsilon", "1", "--period", "1m", "--dataset", "people"), 1),
    ],
)
def test_what_is_wrong_makes_nothing(run: Run, folder: Path, options: tuple[str, ...], code: int) -> None:
    """No file is left behind."""
    done = run("stream", "create", "visits", *options)

    assert (done.code, done.out) == (code, "")
    assert list(folder.iterdir()) == []


def test_a_ledger_pays_once(run: Run, folder: Path) -> None:
    """When the counter is made; it must be named again to go on, and what it cannot pay is refused."""
    paid = ("--ledger", "budget.db", "--dataset", "people")
    run("ledger", "open", "people", "--epsilon", 3, "--unit", "event")

    made = run("stream", "create", "visits", *DAYS, *paid)
    for _ in range(2):
        assert run("stream", "run", "visits", "--once", *paid[:2]).code == 0
    alone = run("stream", "run", "visits", "--once")
    refused = run("stream", "create", "more", "--epsilon", "2.5", "--period", "1m", *paid)

    assert (made.code, alone.code, refused.code) == (0, 1, 3)
    assert "by dataset 'people'" in made.out
    assert run("ledger", "balance", "people", "--json").records[0]["spent"]["epsilon"] == "1"
    assert [path.name for path in folder.iterdir() if path.name.startswith("more")] == []


def test_read_lists_outputs(run: Run, visits: Path) -> None:
    """All of them, or those after a period; as text and as JSON the same."""
    lines = run("stream", "read", "visits").out.splitlines()
    later = run("stream", "read", "visits", "--since", 7).out.splitlines()
    records = run("stream", "read", "visits", "--json").records

    assert (len(lines), later) == (10, lines[7:])
    assert [record["period"] for record in records] == list(range(1, 11))
    assert records[0]["end"] == lines[0].split()[0] == "2026-01-02T00:00:00+00:00"
    assert [f"{record['value']:,.1f}" for record in records] == [line.split()[-1] for line in lines]
    assert run("stream", "read", "visits", "--since", 10).out == ""


def test_the_public_file_is_enough_to_read(run: Run, visits: Path) -> None:
    """Whoever publishes it need not publish anything else."""
    acts = [("read",), ("info",), ("plot", "-o", "v.svg", "--force")]
    before = [run("stream", act, "visits", *options) for act, *options in acts]
    visits.with_suffix(".db").unlink()

    assert [run("stream", act, "visits", *options) for act, *options in acts] == before
    assert [done.code for done in before] == [0, 0, 0]


def test_info_says_how_far_off_the_last_output_may_be(run: Run, visits: Path) -> None:
    """As far as a counter with the same public numbers says."""
    twin = Counter(epsilon=1, horizon=365)
    twin.advance(10)
    low, high = twin.answer(0.01)[2:4]

    [record] = run("stream", "info", "visits", "--beta", "0.01", "--json").records
    text = run("stream", "info", "visits", "--beta", "0.01").out

    assert (record["closed"], record["beta"]) == (10, 0.01)
    assert record["off"] == pytest.approx((high - low) / 2)
    assert f"at most {record['off']:,.1f}, but for probability 0.01" in text


def test_info_before_the_first_output(run: Run, folder: Path) -> None:
    """There is nothing to be off yet."""
    run("stream", "create", "visits", *DAYS)

    [record] = run("stream", "info", "visits", "--json").records

    assert record["closed"] == 0
    assert "off" not in record


def test_plot_draws_every_output_with_its_band(run: Run, visits: Path) -> None:
    """The line is what was published, and the band around it what a twin says."""
    published = read_outputs("visits")
    axes = plot(published.outputs, published.settings, name="visits")
    [line], [area] = axes.lines, axes.collections
    halves = error_band(published.outputs, published.settings, 0.05)

    assert halves is not None
    values = np.array([output.value for output in published.outputs])
    drawn = area.get_paths()[0].vertices[:, 1]
    assert line.get_ydata().tolist() == values.tolist()
    assert (drawn.min(), drawn.max()) == pytest.approx(((values - halves).min(), (values + halves).max()))
    assert axes.get_title(loc="left") == "visits, epsilon 1"


def test_plot_of_many_outputs_draws_some(run: Run, folder: Path) -> None:
    """At most two hundred, the first and the last among them."""
    run("stream", "create", "visits", "--epsilon", "1", "--period", "1s", "--start", "2026-01-01")
    Path("times").write_text("")
    end = "2026-01-01T00:20:00"
    run("stream", "feed", "visits", "--file", "times", "--start", "2026-01-01", "--end", end)

    published = read_outputs("visits")
    [line] = plot(published.outputs, published.settings).lines

    assert line.get_ydata().size == 200
    assert line.get_ydata()[[0, -1]].tolist() == [published.outputs[place].value for place in (0, -1)]


def test_a_window_is_drawn_as_one(run: Run, folder: Path) -> None:
    """With its own bounds, and what it is said beside it."""
    run("stream", "create", "visits", *DAYS, "--mechanism", "sliding", "--window", 7)
    Path("times").write_text("2026-01-03\n" * 200)
    run("stream", "feed", "visits", "--file", "times", "--start", "2026-01-01", "--end", "2026-01-21")
    published = read_outputs("visits")

    axes = plot(published.outputs, published.settings)

    assert len(axes.collections) == 1
    assert axes.get_ylabel() == "count in 7 periods, with 95% bounds"


def test_a_sparse_counter_has_no_band(run: Run, folder: Path) -> None:
    """How far off it is depends on more than public numbers; the outputs are drawn."""
    run("stream", "create", "visits", *DAYS, "--horizon", 365, "--mechanism", "sparse", "--expected", 100)
    Path("times").write_text("2026-01-03\n" * 200)
    run("stream", "feed", "visits", "--file", "times", "--start", "2026-01-01", "--end", "2026-01-11")
    published = read_outputs("visits")

    axes = plot(published.outputs, published.settings)

    assert error_band(published.outputs, published.settings, 0.05) is None
    assert (len(axes.lines), len(axes.collections)) == (1, 0)
    assert run("stream", "info", "visits", "--json").records[0]["off"] is None


@pytest.mark.parametrize("name", ["v.png", "v.svg", "v.pdf"])
def test_plot_stores_a_picture(run: Run, visits: Path, name: str) -> None:
    """In the format that its ending says; it is not overwritten unasked."""
    beginnings = {"v.png": b"\x89PNG", "v.svg": b"<?xml", "v.pdf": b"%PDF"}

    def drawn(*options: str) -> Done:
        return run("stream", "plot", "visits", "-o", name, *options)

    assert (drawn().code, drawn().code, drawn("--force").code) == (0, 1, 0)
    assert Path(name).read_bytes().startswith(beginnings[name])


def test_what_is_not_a_counter_is_refused(run: Run, folder: Path) -> None:
    """Neither nothing nor another file is one."""
    Path("other.outputs").write_bytes(b"partita-outputs1" + bytes(2000))
    acts = [("read",), ("info",), ("plot", "-o", "v.svg"), ("run", "--once")]

    codes = [run("stream", act, name, *options).code for act, *options in acts for name in ("none", "other")]

    assert codes == [1] * 8
    assert not Path("v.svg").exists()
