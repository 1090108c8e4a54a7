"""ServiceSettings: what cannot be meant is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidParameter
from partita.service import process
from partita.service.settings import Limits, ServiceSettings
from partita.service.tokens import TokenFile


@pytest.mark.parametrize(
    ("said", "parameter"),
    [
        ({"public": False}, "tokens"),
        ({"streams": Path("secret")}, "tokens"),
        ({"specs": Path("specs"), "tokens": Path("t")}, "ledger"),
        ({"streams": Path("public/secret"), "tokens": Path("t")}, "streams"),
        ({"streams": Path("public"), "tokens": Path("t")}, "streams"),
        ({"specs": Path("public/specs"), "tokens": Path("t"), "ledger": "b.db"}, "specs"),
        ({"streams": Path("s"), "tokens": Path("t"), "port": 7, "steward_port": 7}, "steward_port"),
        ({"port": 65_536}, "port"),
        ({"port": -1}, "port"),
        ({"delay": 0}, "delay"),
        ({"delay": "1e-10"}, "delay"),
        ({"delay": "nan"}, "delay"),
        ({"delay": 3601}, "delay"),
        ({"workers": 0}, "workers"),
        ({"hosts": ("a/b",)}, "allow_host"),
        ({"folder": ""}, "folder"),
        ({"tokens": "a\0b"}, "tokens"),
    ],
)
def test_what_cannot_be_meant_is_refused(said: dict[str, Any], parameter: str) -> None:
    """The parameter that is wrong is named."""
    with pytest.raises(InvalidParameter) as refused:
        ServiceSettings(**{"folder": Path("public"), "public": True, **said})

    assert refused.value.parameter == parameter


def test_the_token_file_is_missing_with_both_fixes() -> None:
    """Make one, or say that everybody may read."""
    with pytest.raises(InvalidParameter, match=r"partita token create.*--public"):
        ServiceSettings(folder=Path("public"))


@pytest.mark.parametrize(
    "ledger",
    [
        "postgresql://steward:hunter2@db.example.org/budget",
        "postgresql://:hunter2@db.example.org/budget",
        "postgresql://db.example.org/budget?user=steward&password=hunter2",
        "host=db.example.org password = hunter2",
    ],
)
def test_a_password_in_the_address_of_a_ledger_is_refused(ledger: str) -> None:
    """It would stand in the command line of every process that publishes; the error does not repeat it."""
    with pytest.raises(InvalidParameter, match="PGPASSFILE") as refused:
        ServiceSettings(folder=Path("public"), public=True, ledger=ledger)

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "ledger", ["postgresql://steward@db.example.org:5432/budget", "postgresql:///budget"]
)
def test_the_address_of_a_ledger_is_kept_and_not_shown(ledger: str) -> None:
    """Where it has no password; what shows settings does not show it."""
    settings = ServiceSettings(folder=Path("public"), public=True, ledger=ledger)

    assert settings.ledger == ledger
    assert "postgresql" not in repr(settings)


def test_the_steward_listens_on_this_machine_whatever_readers_use() -> None:
    """Unless its own host is named."""
    settings = ServiceSettings(folder=Path("public"), public=True, host="0.0.0.0")
    named = replace(settings, steward_host="::")

    assert (settings.address("reading"), settings.address("steward")) == (
        "http://0.0.0.0:8000",
        "http://127.0.0.1:8001",
    )
    assert (named.address("reading"), named.address("steward")) == ("http://0.0.0.0:8000", "http://[::]:8001")


def test_each_side_opens_its_own_address() -> None:
    """Nothing of the steward's is bound where readers are."""
    settings = ServiceSettings(
        folder=Path("public"), public=True, host="127.0.0.2", port=0, steward_port=0, steward_host="127.0.0.3"
    )
    with (
        process.open_listener(settings, "reading") as reading,
        process.open_listener(settings, "steward") as steward,
    ):
        bound = reading.getsockname()[0], steward.getsockname()[0]

    assert bound == ("127.0.0.2", "127.0.0.3")


def test_limits_are_positive() -> None:
    """A limit of nothing would be a service of nothing."""
    with pytest.raises(InvalidParameter, match="rate must be at least 1"):
        Limits(rate=0)


def test_settings_travel_whole() -> None:
    """What a process is told is what was meant."""
    settings = ServiceSettings(
        folder=Path("public"),
        streams=Path("secret"),
        tokens=Path("tokens.json"),
        ledger="postgresql://ledger",
        hosts=("Stats.example.org",),
        delay=Fraction(1, 3),
        proxied=True,
        workers=3,
        limits=Limits(rate=7),
    )

    assert ServiceSettings.from_json(settings.to_json()) == settings
    assert settings.folder.is_absolute()
    assert (settings.ledger, settings.hosts) == ("postgresql://ledger", ("stats.example.org",))


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    """A service with everything in its place."""
    for name in ("public", "specs"):
        (tmp_path / name).mkdir()
    (tmp_path / "budget.db").touch()
    TokenFile(tmp_path / "tokens.json").create("ada", scopes=["admin"])
    return ServiceSettings(
        folder=tmp_path / "public",
        streams=tmp_path / "secret",
        specs=tmp_path / "specs",
        tokens=tmp_path / "tokens.json",
        ledger=str(tmp_path / "budget.db"),
    )


def test_everything_in_its_place_is_fine(settings: ServiceSettings) -> None:
    """The secret folder is made, closed to others."""
    process.check_paths(settings)

    assert settings.streams is not None
    assert settings.streams.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("public", "folder"), ("specs", "publish"), ("budget.db", "ledger"), ("tokens.json", "tokens")],
)
def test_what_is_missing_is_named(settings: ServiceSettings, name: str, parameter: str) -> None:
    """Before anything starts."""
    missing = settings.folder.parent / name
    missing.rename(missing.with_name("moved"))

    with pytest.raises(InvalidParameter) as refused:
        process.check_paths(settings)

    assert refused.value.parameter == parameter


def test_a_secret_folder_that_is_open_is_refused(settings: ServiceSettings) -> None:
    """With the command that closes it."""
    assert settings.streams is not None
    settings.streams.mkdir(mode=0o755)

    with pytest.raises(InvalidParameter, match="chmod 700"):
        process.check_paths(settings)


def test_a_public_folder_that_everybody_may_write_is_refused(settings: ServiceSettings) -> None:
    """Where the steward writes too: links could be laid for it. Where nothing is written, it may be."""
    settings.folder.chmod(0o777)

    with pytest.raises(InvalidParameter, match="chmod o-w"):
        process.check_paths(settings)
    process.check_paths(replace(settings, streams=None, specs=None))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setattr(process, "find_spec", lambda _: None)

    with pytest.raises(InvalidParameter, match=r'pip install "partita\[serve\]"'):
        process.check_installed()
