"""A signature names who published a release; nobody else can make it or move it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from partita.errors import InvalidParameter, InvalidRelease
from partita.public.file import SIGNATURE, encode, generate_key, load, pack, save, sign, unpack, verify
from partita.public.file_entries import from_canonical, to_canonical

from .specimens import release


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private and a public key."""
    pair = tmp_path / "key.pem", tmp_path / "key.pub.pem"
    generate_key(*pair)
    return pair


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A release that is not signed."""
    save(release("tree"), tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def test_a_signed_release_is_verified_and_still_the_same(path: Path, keys: tuple[Path, Path]) -> None:
    """Signing changes nothing but the signature, and signing again gives the same file."""
    sign(path, keys[0])
    signed = path.read_bytes()
    sign(path, keys[0])

    assert path.read_bytes() == signed
    assert encode(verify(path, keys[1])) == encode(load(path)) == encode(release("tree"))
    assert SIGNATURE.encode() in signed


def test_keys_are_kept_apart(keys: tuple[Path, Path]) -> None:
    """The private key is for its owner; keys are never overwritten."""
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(public.stat().st_mode) & 0o133 == 0
    assert b"PRIVATE" in private.read_bytes()
    assert b"PRIVATE" not in public.read_bytes()
    with pytest.raises(InvalidParameter, match="must not exist yet"):
        generate_key(private, public)


def test_a_pair_of_keys_is_made_whole_or_not_at_all(keys: tuple[Path, Path], tmp_path: Path) -> None:
    """Where the public key has no place, no private key is left behind, and the old one stays."""
    before = keys[1].read_bytes()
    with pytest.raises(InvalidParameter, match="must not exist yet"):
        generate_key(tmp_path / "new.pem", keys[1])

    assert not (tmp_path / "new.pem").exists()
    assert keys[1].read_bytes() == before


def test_an_unsigned_release_is_not_verified(path: Path, keys: tuple[Path, Path]) -> None:
    """It can be loaded, and verifying it says that the signature is missing."""
    with pytest.raises(InvalidRelease, match="signature is missing"):
        verify(path, keys[1])


def test_the_signature_of_somebody_else_is_refused(
    path: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    """Verifying needs the right public key."""
    generate_key(tmp_path / "other.pem", tmp_path / "other.pub")
    sign(path, tmp_path / "other.pem")
    with pytest.raises(InvalidRelease, match="is that of another key"):
        verify(path, keys[1])


def forge(path: Path, **entries: str) -> None:
    """Put other entries into the signature of a file."""
    stored, signature = unpack(path.read_bytes(), largest=2**20)
    assert signature is not None
    path.write_bytes(pack(stored, signature=to_canonical(from_canonical(signature) | entries)))


@pytest.mark.parametrize(
    ("entry", "value"),
    [("signature", "00" * 64), ("signature", "zz"), ("signature", ""), ("algorithm", "none"), ("extra", "1")],
)
def test_a_forged_signature_is_refused(path: Path, keys: tuple[Path, Path], entry: str, value: str) -> None:
    """No other bytes, no other algorithm, nothing besides."""
    sign(path, keys[0])
    forge(path, **{entry: value})
    with pytest.raises(InvalidRelease):
        verify(path, keys[1])


def test_a_signature_belongs_to_one_release(path: Path, keys: tuple[Path, Path]) -> None:
    """Moved to another release it is refused, even if only the reason given differs."""
    sign(path, keys[0])
    stored, signature = unpack(path.read_bytes(), largest=2**20)
    other, _ = unpack(encode(release("laplace")), largest=2**20)
    path.write_bytes(pack(other, signature=signature))
    with pytest.raises(InvalidRelease, match="does not belong to this release"):
        verify(path, keys[1])
    path.write_bytes(pack(stored, signature=signature))
    assert verify(path, keys[1]).columns == ("tree",)


@pytest.mark.parametrize(
    "text", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_file_that_is_no_key_is_refused(path: Path, tmp_path: Path, text: bytes) -> None:
    """And so are a key of the other sort, and none at all."""
    odd = tmp_path / "odd.pem"
    odd.write_bytes(text)
    for key in (odd, tmp_path / "missing.pem"):
        with pytest.raises(InvalidParameter, match="private_key must be a file with a private Ed25519 key"):
            sign(path, key)
        with pytest.raises(InvalidParameter, match="public_key must be a file with a public Ed25519 key"):
            verify(path, key)


def test_keys_do_not_stand_for_each_other(path: Path, keys: tuple[Path, Path]) -> None:
    """A public key signs nothing, and a private key is not handed out to verify."""
    with pytest.raises(InvalidParameter):
        sign(path, keys[1])
    with pytest.raises(InvalidParameter):
        verify(path, keys[0])
