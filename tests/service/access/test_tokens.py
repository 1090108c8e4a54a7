"""Tokens: hashed, limited in what they may do and for how long, changed whole."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidParameter
from partita.service import tokens as module
from partita.service.tokens import Keyring, TokenFile, TokenSet
from tests.service.web.client import Clock

DAY = 86_400


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path, clock: Clock) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json", clock)


def named(file: TokenFile, text: str) -> str | None:
    """The name that a text proves, according to a fresh look at the file."""
    caller = Keyring(file).caller(text)
    return None if caller is None else caller.name


def test_a_token_proves_its_name(file: TokenFile) -> None:
    """Whole, and only whole."""
    text = file.create("web", scopes=["feed"])
    altered = text[:-1] + ("0" if text[-1] != "0" else "1")

    assert named(file, text) == "web"
    assert [named(file, other) for other in (altered, text[:-1], f"{text}0", text.upper(), "", "\udcff")] == [
        None
    ] * 6


def stored_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: what is kept is the text itself."""
    monkeypatch.setattr(module, "_digest", lambda text: text)


def leaks(file: TokenFile, text: str) -> bool:
    """Whether the file, read as it is, lets anybody in: the secret stands in it."""
    return text.rpartition("_")[2] in file.path.read_text()


def test_no_secret_is_kept(file: TokenFile) -> None:
    """The file holds the SHA-256 of the text, and nothing that the text could be had from."""
    text = file.create("web", scopes=["read"])
    [token] = json.loads(file.path.read_text())["tokens"]

    assert not leaks(file, text)
    assert token["keys"][0]["digest"] == hashlib.sha256(text.encode()).hexdigest()


def test_a_secret_that_is_kept_is_found(file: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above sees what it looks for."""
    stored_plainly(monkeypatch)

    assert leaks(file, file.create("web", scopes=["read"]))


def test_every_check_compares_one_digest(file: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known or not, well written or not, valid or not: the same work, in constant time."""
    text = file.create("web", scopes=["read"], expires=1)
    tokens, compared, compare = file.read(), [], hmac.compare_digest

    def watched(expected: str, given: str) -> bool:
        compared.append((len(expected), len(given)))
        return compare(expected, given)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    unknown = TokenSet().create("other", scopes=["read"])[1]
    for asked, now in ((text, 0), (text, 2**40), (unknown, 0), ("nonsense", 0)):
        tokens.caller(asked, now=now)

    assert compared == [(64, 64)] * 4


def test_secrets_have_32_bytes_and_differ() -> None:
    """Nobody guesses one."""
    texts = {TokenSet().create("web", scopes=["read"])[1] for _ in range(50)}

    assert len(texts) == 50
    assert {len(bytes.fromhex(text.rpartition("_")[2])) for text in texts} == {32}


def test_a_token_expires(file: TokenFile, clock: Clock) -> None:
    """At its second, not before."""
    text = file.create("web", scopes=["read"], expires=DAY)

    clock.pass_seconds(DAY - 1)
    assert named(file, text) == "web"
    clock.pass_seconds(1)
    assert named(file, text) is None


def test_rotation_has_a_grace(file: TokenFile, clock: Clock) -> None:
    """Old and new are good until the grace is over; then only the new one."""
    old = file.create("web", scopes=["feed"], streams=["visits"])
    new = file.rotate("web", grace=DAY)

    assert (named(file, old), named(file, new)) == ("web", "web")
    clock.pass_seconds(DAY)
    assert (named(file, old), named(file, new)) == (None, "web")
    assert file.read().all[0].streams == ("visits",)


def test_rotation_without_grace_ends_the_old_one(file: TokenFile) -> None:
    """At once."""
    old = file.create("web", scopes=["feed"])

    assert named(file, file.rotate("web")) == "web"
    assert named(file, old) is None


def test_rotation_does_not_lengthen_a_life(file: TokenFile, clock: Clock) -> None:
    """An old key ends when it would have, if the grace is longer; a new one then too, unless said."""
    old = file.create("web", scopes=["feed"], expires=DAY)
    new = file.rotate("web", grace=7 * DAY)

    clock.pass_seconds(DAY)
    assert (named(file, old), named(file, new)) == (None, None)


def test_ended_keys_are_forgotten_by_rotation(file: TokenFile, clock: Clock) -> None:
    """A token that is rotated for years has two keys at most."""
    file.create("web", scopes=["feed"])
    for _ in range(5):
        file.rotate("web", grace=DAY)
        clock.pass_seconds(2 * DAY)

    assert len(file.read().all[0].keys) == 2


def test_a_revoked_token_is_nobody(file: TokenFile) -> None:
    """A process that is running notices."""
    text, keyring = file.create("web", scopes=["feed"]), Keyring(file)

    assert keyring.caller(text) is not None
    file.revoke("web")
    assert keyring.caller(text) is None


def test_the_name_of_a_feeder_is_given_once(file: TokenFile) -> None:
    """A stream would take what a new feeder of that name sends for what the old one has sent."""
    file.create("web", scopes=["feed"])
    file.create("office", scopes=["read"])
    file.revoke("web")
    file.revoke("office")
    file.create("office", scopes=["read"])
    file.rotate("office")

    with pytest.raises(InvalidParameter, match="must be new to the streams"):
        file.create("web", scopes=["feed"])
    assert [token.name for token in file.read().all] == ["office"]


def test_a_file_of_before_has_no_retired_names(file: TokenFile) -> None:
    """It is read as it is."""
    text = file.create("web", scopes=["feed"])
    said = json.loads(file.path.read_text())
    del said["retired"]
    file.path.write_text(json.dumps(said))

    assert named(file, text) == "web"


@pytest.mark.parametrize("damage", ["{", "[]", '{"version": 2, "tokens": []}', '{"version": 1}'])
def test_a_damaged_file_proves_nobody(file: TokenFile, damage: str) -> None:
    """It is refused, never taken for an empty one."""
    text, keyring = file.create("web", scopes=["feed"]), Keyring(file)
    assert keyring.caller(text) is not None
    file.path.write_text(damage)

    with pytest.raises(InvalidParameter, match="tokens must be a file of tokens"):
        keyring.caller(text)


def test_a_missing_file_proves_nobody(file: TokenFile) -> None:
    """The tokens it held before are gone with it."""
    text, keyring = file.create("web", scopes=["feed"]), Keyring(file)
    assert keyring.caller(text) is not None
    file.path.unlink()

    with pytest.raises(InvalidParameter, match="must be a file that you may read"):
        keyring.caller(text)


def test_the_file_is_for_its_owner_only(file: TokenFile) -> None:
    """Whatever the umask is, and after every change."""
    before = os.umask(0)
    try:
        file.create("web", scopes=["feed"])
        file.rotate("web")
    finally:
        os.umask(before)

    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.path.parent.iterdir()) == ["tokens.json", "tokens.json.lock"]


def test_a_file_that_others_may_write_is_refused(file: TokenFile) -> None:
    """They could let themselves in."""
    file.create("web", scopes=["feed"])
    file.path.chmod(0o620)

    with pytest.raises(InvalidParameter, match="must not be writable for others"):
        file.read()


def test_writers_wait_for_each_other(file: TokenFile) -> None:
    """No token is lost when many are made at once."""
    threads = [
        threading.Thread(target=file.create, args=(f"web-{number}",), kwargs={"scopes": ["feed"]})
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {token.name for token in file.read().all} == {f"web-{number}" for number in range(8)}


@pytest.mark.parametrize(
    ("name", "options", "parameter"),
    [
        ("", {"scopes": ["read"]}, "name"),
        ("../x", {"scopes": ["read"]}, "name"),
        ("web", {"scopes": []}, "scope"),
        ("web", {"scopes": ["write"]}, "scope"),
        ("web", {"scopes": ["read"], "streams": ["visits"]}, "stream"),
        ("web", {"scopes": ["feed"], "streams": ["a/b"]}, "stream"),
        ("taken", {"scopes": ["read"]}, "name"),
        ("timestamps", {"scopes": ["feed"]}, "name"),
    ],
)
def test_bad_tokens_are_refused(file: TokenFile, name: str, options: Any, parameter: str) -> None:
    """The parameter is named, and the file stays as it was."""
    file.create("taken", scopes=["read"])
    before = file.path.read_bytes()

    with pytest.raises(InvalidParameter) as refused:
        file.create(name, **options)

    assert refused.value.parameter == parameter
    assert file.path.read_bytes() == before
