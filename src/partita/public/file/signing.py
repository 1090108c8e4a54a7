"""Signed releases: Ed25519 over the checksum and the specification, kept inside the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from partita.errors.errors import InvalidParameter, InvalidRelease
from partita.public.file.file import LARGEST, packed, unpacked
from partita.public.file.spec import Stored
from partita.public.file_entries.file_entries import entries, text
from partita.public.file_entries.file_json import from_canonical, to_canonical
from partita.public.release.release import Release
from partita.storage.file_disk import FilePath, Temporary, checked_path, contents, new_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_CONTEXT: Final = b"partita release signature 1\n"
_ALGORITHM: Final = "ed25519"
_LONGEST_KEY: Final = 2**14
_SECRET, _PUBLIC = 0o600, 0o644


def generate_key(private: FilePath, public: FilePath) -> None:
    """Write a new pair of keys in PEM, both or none, the private one for its owner only; replaces nothing."""
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    shown = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    new_file(private, secret, mode=_SECRET)
    try:
        new_file(public, shown, mode=_PUBLIC)
    except BaseException:
        os.unlink(private)
        raise


def sign(path: FilePath, private_key: FilePath, *, largest: int = LARGEST) -> None:
    """Sign the release in a file; the file is replaced in one step, and holds the same release.

    A signature that was there before is replaced.
    """
    key = _private_key(private_key)
    stored, _ = unpacked(contents(path, largest=largest), largest=largest)
    stored.release()
    signature = to_canonical(
        {
            "algorithm": _ALGORITHM,
            "public_key": key.public_key().public_bytes_raw().hex(),
            "signature": key.sign(_message(stored)).hex(),
        }
    )
    with Temporary(checked_path(path), overwrite=True) as temporary:
        temporary.write(packed(stored, signature=signature))
        temporary.commit()


def verify(path: FilePath, public_key: FilePath, *, largest: int = LARGEST) -> Release:
    """The release in a file, if the owner of this key signed it; else an `InvalidRelease` says why not.

    What is returned is what was verified: the file is read once.
    """
    from cryptography.exceptions import InvalidSignature

    key = _public_key(public_key)
    stored, signature = unpacked(contents(path, largest=largest), largest=largest)
    if signature is None:
        raise _refused("is missing")
    given = entries(from_canonical(signature), ("algorithm", "public_key", "signature"))
    if given["algorithm"] != _ALGORITHM or given["public_key"] != key.public_bytes_raw().hex():
        raise _refused("is that of another key")
    try:
        key.verify(bytes.fromhex(text(given["signature"])), _message(stored))
    except (InvalidSignature, ValueError):
        raise _refused("does not belong to this release") from None
    return stored.release()


def _message(stored: Stored) -> bytes:
    """What is signed: a fixed context, the digest of everything, and the whole specification."""
    return _CONTEXT + bytes.fromhex(text(stored.spec["checksum"])) + to_canonical(stored.spec)


def _private_key(path: FilePath) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(contents(path, largest=_LONGEST_KEY), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key("private_key", "a private Ed25519 key in PEM without a password", path)
    return key


def _public_key(path: FilePath) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(contents(path, largest=_LONGEST_KEY))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key("public_key", "a public Ed25519 key in PEM", path)
    return key


def _no_key(parameter: str, what: str, path: FilePath) -> InvalidParameter:
    fix = "make one with `partita keygen`"
    return InvalidParameter(parameter, f"must be a file with {what}", given=str(path), fix=fix)


def _refused(rule: str) -> InvalidRelease:
    return InvalidRelease("signature", rule, fix="get a signed copy, or check the key")
