"""`partita info`, `plot`, `mechanisms`, and the keys that say who published."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from partita.public.base import figure

from .conftest import Run


def test_info_tells_and_draws(run: Run, release: Path) -> None:
    """The guarantee in words, every column, and a chart of each, in at most 100 columns."""
    done = run("info", release)

    assert done.code == 0
    assert "epsilon 4, pure, for adding or removing one row" in done.out
    assert "█" in done.out
    assert [name for name in ("age", "wage", "hired", "region") if f"\n{name}\n" not in done.out] == []
    assert max(map(len, done.out.splitlines())) <= 100


def test_info_tells_the_error_at_beta(run: Run, release: Path) -> None:
    """The bound in the text is that of the record, at the beta that was asked for."""
    bounds = {}
    for beta, confidence in ((0.2, "80%"), (0.001, "99.9%")):
        said = " ".join(run("info", release, "--beta", beta).out.split())
        [record] = run("info", release, "--beta", beta, "--json").records
        bounds[beta] = record["error"]["bound"]
        assert f"at least {confidence} no count" in said
        assert f"misses the truth by more than {figure(bounds[beta])}." in said
    assert bounds[0.2] < bounds[0.001]


def test_info_as_json(run: Run, release: Path) -> None:
    """Everything but the picture."""
    [record] = run("info", release, "--beta", 0.01, "--json").records

    assert record["error"]["beta"] == 0.01
    assert record["error"]["bound"] > 0
    assert record["provenance"]["recorded"] is False
    assert set(record["columns"][3]["specials"]) == {"null", "other"}
    assert record["columns"][0]["domain"] == {"kind": "integer", "low": "0", "high": "120"}


def test_plot_writes_a_picture(run: Run, release: Path) -> None:
    """A whole file, not overwritten by accident; without matplotlib the error names the extra."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert "partita[plot]" in run("plot", release, "region", "-o", "region.png").err
        return
    assert run("plot", release, "region", "-o", "region.png").code == 0
    assert Path("region.png").read_bytes().startswith(b"\x89PNG")
    assert run("plot", release, "region", "-o", "region.png").code == 1
    assert run("plot", release, "regoin", "-o", "other.png").code == 1
    assert not Path("other.png").exists()


def test_mechanisms_are_listed(run: Run) -> None:
    """Each has a name and a sentence of its own."""
    records = run("mechanisms", "--json").records

    assert {"tree", "histogram"} <= {record["mechanism"] for record in records}
    assert all(record["says"].endswith(".") for record in records)
    assert len({record["says"] for record in records}) == len(records)


def test_a_release_is_readable_by_any_tool(release: Path) -> None:
    """It is a Parquet file of one row."""
    assert pq.read_table(release).num_rows == 1


# --- keys -------------------------------------------------------------------------------------


def test_a_release_is_signed_and_verified(run: Run, release: Path) -> None:
    """The answers stay the same; another key, or no signature, is refused with exit code 1."""
    run("keygen")
    run("keygen", "--private", "other.pem", "--public", "other.pub")
    before = run("query", release, "count").out
    unsigned = run("verify", release, "--key", "public.pem")

    assert run("sign", release, "--key", "private.pem").code == 0
    assert run("verify", release, "--key", "public.pem", "--json").records[0]["verified"] is True
    assert run("verify", release, "--key", "other.pub").code == 1
    assert (unsigned.code, unsigned.out) == (1, "")
    assert run("query", release, "count").out == before


def test_a_key_is_not_overwritten(run: Run, folder: Path) -> None:
    """A lost private key cannot be made again."""
    run("keygen")
    secret = Path("private.pem").read_bytes()

    assert run("keygen").code == 1
    assert Path("private.pem").read_bytes() == secret
    assert Path("private.pem").stat().st_mode & 0o077 == 0
