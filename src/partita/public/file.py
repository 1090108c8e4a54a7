"""Release files: one Parquet file, a function of the release alone, safe to read from anybody.

The format is described in docs/release-file.md, the reasons are in docs/decisions/release-file.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, final, overload

from numpy.typing import NDArray

from partita.errors import InvalidParameter, InvalidRelease, PartitaError, check_release
from partita.public.axis.base import Json, Parts
from partita.public.axis.quantiles import QuantileView
from partita.public.file_entries import (
    CHOSEN,
    CHOSEN_BOUND,
    CONCENTRATED,
    EVERY_VIEW,
    NUMBERS,
    OPTIONS,
    SELECTED,
    SEVERAL,
    STATED,
    VERSION,
    WANTED,
    FileColumn,
    Published,
    Series,
    check_list,
    checksum,
    entries,
    form_of,
    from_canonical,
    guarantee_entries,
    guarantee_from,
    lacks_specials,
    natural,
    provenance_entries,
    provenance_from,
    refusal,
    series_name,
    states_rho,
    text,
    to_canonical,
)
from partita.public.file_parquet import from_parquet, layout, to_parquet
from partita.public.release import Release
from partita.public.results import AnyView
from partita.public.sums.view import SumView
from partita.public.views import BoxView, View
from partita.public.wanted import WantedView
from partita.public.wants import Want, parse_want
from partita.public.workload.release import QueryView
from partita.storage import FilePath, Temporary, check_path, new_file, read_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

# --- a release as a specification in JSON and columns of integers, and back --------------------

FORMAT: Final = "partita release"

_MOST_COLUMNS: Final = 2**12  # columns of numbers: a limit on hostile files
_ENTRIES: Final = ("checksum", "format", "guarantee", "provenance", "version", "views")
WANTS: Final = "wants"
"""An entry of releases that were made for wants only."""

_ORDER: Final = (View, BoxView), (SumView,), (QueryView,), (QuantileView,), (WantedView,)
"""Views of counts stand first, which sums are cut by; then sums, queries, quantiles, cells of wants."""


@final
@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds: the specification, and the content of the columns that it announces."""

    spec: dict[str, Json]
    values: Sequence[NDArray[Any]]

    @classmethod
    def of(cls, release: Release) -> Stored:
        """A release, taken apart."""
        taken = [(view, form_of(view).released(view).parts()) for view in release.published]
        views = [_view_entries(view, parts) for view, parts in taken]
        promise = guarantee_entries(release.guarantee)
        spec: dict[str, Json] = {
            "format": FORMAT,
            "version": version_of(views, provenance_entries(release.provenance), promise),
            "guarantee": promise,
            "provenance": provenance_entries(release.provenance),
            "views": list[Json](views),
        }
        spec |= wants_entries(release.wants, spec)
        values = [column for _, parts in taken for column in _split(parts)]
        spec["checksum"] = checksum(spec, values)
        columns_of(spec)
        return cls(spec, values)

    def check(self) -> None:
        """Refuse numbers that are not those of the checksum."""
        rule, fix = "does not match what the file holds", "get a fresh copy of the release"
        check_release(self.spec["checksum"] == checksum(self.spec, self.values), "checksum", rule, fix=fix)

    def release(self) -> Release:
        """The release that `of` took apart; every part of it checks itself."""
        try:
            counts, sums, queries, quantiles, wanted = self._published()
            return Release(
                views=counts,
                sums=sums,
                queries=next(iter(queries), None),
                quantiles=quantiles,
                wanted=wanted,
                guarantee=guarantee_from(self.spec["guarantee"]),
                provenance=provenance_from(self.spec["provenance"]),
                wants=tuple(parse_want(text(each)) for each in check_list(self.spec.get(WANTS, []))),
            )
        except InvalidRelease:
            raise
        except PartitaError as error:
            raise refusal(f"breaks a rule: {error}") from None

    def _published(self) -> tuple[tuple[Any, ...], ...]:
        """The views of counts, sums, queries, quantiles and wants; each may look at those before it."""
        columns, read = iter(self.values), list[Any]()
        for view in _views(self.spec):
            read.append(_view(view, columns, [each for each in read if isinstance(each, AnyView)]))
        kinds = tuple(tuple(each for each in read if isinstance(each, kind)) for kind in _ORDER)
        if read != [view for views in kinds for view in views] or len(kinds[2]) > 1:
            raise refusal(
                "must have views of counts first, then of sums, at most one of queries, then of quantiles, "
                "then of wants"
            )
        return kinds


def columns_of(spec: Mapping[str, Json]) -> list[FileColumn]:
    """The columns that a specification announces, in the order of the file."""
    views = _views(spec)
    found = [
        column
        for view in views
        for series in _series(view)
        for column in series.columns(form_of(view).name(view))
    ]
    names = {column.name for column in found}
    if not views or len(names) < len(found):
        raise refusal("must name its columns once each")
    if len(found) > _MOST_COLUMNS:
        raise refusal(f"must have at most {_MOST_COLUMNS} columns of numbers")
    return found


_ANY: Final = (CONCENTRATED, CHOSEN)
"""Versions of files that may have wants."""


def wants_entries(wants: Sequence[Want], spec: Mapping[str, Json]) -> dict[str, Json]:
    """The entry of wants, and the version of a file that has it; nothing without wants."""
    if not wants:
        return {}
    version = spec["version"] if spec["version"] in _ANY else WANTED
    return {WANTS: [str(want) for want in wants], "version": version}


def version_of(views: Sequence[Mapping[str, Json]], provenance: Json, guarantee: Json = None) -> int:
    """The version of a file with these entries of views, of its origin and of its guarantee."""
    origin = entries(provenance)
    if CHOSEN_BOUND in origin:
        return CHOSEN
    if states_rho(guarantee) or any(states_rho(view["guarantee"]) for view in views):
        return CONCENTRATED
    if OPTIONS in origin or any(lacks_specials(view) for view in views):
        return STATED
    return max((form_of(view).version for view in views), default=VERSION)


def _views(spec: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The entries of every view, if they are those of the version that the file says it has."""
    check_release(spec.get("format") == FORMAT, "file", "is not a Partita release", fix="check the path")
    rule, fix = "has a format that is not known here", "it needs a newer Partita"
    versions = VERSION, SEVERAL, NUMBERS, SELECTED, WANTED, STATED, CONCENTRATED, CHOSEN
    check_release(spec.get("version") in versions, "file", rule, fix=fix)
    wanted = spec["version"] == WANTED or (spec["version"] in _ANY and WANTS in spec)
    known = (*_ENTRIES, WANTS) if wanted else _ENTRIES
    given = [entries(view) for view in check_list(entries(spec, known)["views"])]
    views = [entries(view, (*form_of(view).names, *EVERY_VIEW)) for view in given]
    if wanted and not check_list(spec[WANTS]):
        raise refusal(f"must name its wants in version {WANTED}")
    version = version_of(views, spec["provenance"], spec["guarantee"])
    if spec["version"] != (WANTED if wanted and version not in _ANY else version):
        raise refusal(
            f"must be of version {CHOSEN} if a bound on rows per person was chosen, of {CONCENTRATED} if it "
            f"states rho, of {WANTED} if it has wants, of {STATED} if it states options or a column has no "
            f"special cells, of {SELECTED} if a view has quantiles alone, of {NUMBERS} if one has sums or "
            f"answers, else of {SEVERAL} if one has several columns, else of {VERSION}"
        )
    return views


def _view_entries(view: Published, parts: Parts) -> dict[str, Json]:
    series = (Series.of(name, values) for name, values in parts.series.items())
    return {
        **form_of(view).written(view, parts),
        "series": [{"name": each.name, "dtype": each.dtype, "length": each.length} for each in series],
    }


def _split(parts: Parts) -> Iterator[NDArray[Any]]:
    for name, values in parts.series.items():
        yield from Series.of(name, values).split(values)


def _series(view: Mapping[str, Json]) -> list[Series]:
    each = [entries(series, ("name", "dtype", "length")) for series in check_list(view["series"])]
    return [
        Series(name=series_name(one["name"]), dtype=text(one["dtype"]), length=natural(one["length"]))
        for one in each
    ]


def _view(view: Mapping[str, Json], columns: Iterator[NDArray[Any]], before: Sequence[AnyView]) -> Published:
    """One view; takes its columns from those that are left."""
    series = {each.name: each.join(list(islice(columns, each.width))) for each in _series(view)}
    return form_of(view).read(view, Parts(entries(view["facts"]), series), before)


# --- files -------------------------------------------------------------------------------------

LARGEST: Final = 2**30
"""Bytes of the largest file, and of all its numbers in memory, that `load` takes unless told otherwise."""

SPEC: Final = "partita"
SIGNATURE: Final = "partita.signature"


def save(release: Release, path: FilePath, *, overwrite: bool = False) -> None:
    """Write a release to `path`: the whole file appears at once, or nothing does."""
    with write_temporary(release, path, overwrite=overwrite) as temporary:
        temporary.commit()


def write_temporary(release: Release, path: FilePath, *, overwrite: bool = False) -> Temporary:
    """The release on the disk, in the folder of `path`; `commit()` gives it its name."""
    temporary = reserve(path, overwrite=overwrite)
    try:
        temporary.write(encode(release))
    except BaseException:
        temporary.discard()
        raise
    return temporary


def reserve(path: FilePath, *, overwrite: bool = False) -> Temporary:
    """An empty file beside `path`; whatever would stop `write` and `commit` there is said now.

    With `with reserve(path) as place:` do what is costly, then `place.write(encode(release))` and
    `place.commit()`.
    """
    return Temporary(check_path(path), overwrite=overwrite)


def load(path: FilePath, *, largest: int = LARGEST) -> Release:
    """The release in a file that anybody may have made; raises InvalidRelease if it is not a valid one.

    Nothing in the file is unpacked before its size, its specification, its columns and every page
    header agree, and nothing is believed before the checksum does.
    """
    return decode(read_file(path, largest=largest), largest=largest)


@final
@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What a file says of itself beside its release: two digests, and whose signature it bears.

    `checksum` is the entry of the file, over its specification and numbers; `sha256` is that of all bytes.
    `signed_by` is the public key that the signature names. It was `verified`, or nobody has checked it.
    """

    checksum: str
    sha256: str
    signed_by: str | None = None
    verified: bool = False


def inspect(
    path: FilePath, public_key: FilePath | None = None, *, largest: int = LARGEST
) -> tuple[Release, FileFacts]:
    """The release in a file, and facts about the file; with a key the signature must be that of its owner."""
    data = read_file(path, largest=largest)
    stored, signature = unpack(data, largest=largest)
    if public_key is not None:
        _check_signature(stored, signature, public_key)
    facts = FileFacts(
        checksum=text(stored.spec["checksum"]),
        sha256=hashlib.sha256(data).hexdigest(),
        signed_by=None if signature is None else text(_read_signature(signature)["public_key"]),
        verified=public_key is not None,
    )
    return stored.release(), facts


def encode(release: Release, *, signature: bytes | None = None) -> bytes:
    """The bytes of the file."""
    return pack(Stored.of(release), signature=signature)


def decode(data: bytes, *, largest: int = LARGEST) -> Release:
    """The release in these bytes of a file."""
    stored, _ = unpack(data, largest=largest)
    return stored.release()


def pack(stored: Stored, *, signature: bytes | None) -> bytes:
    """A release that was taken apart, as the bytes of a file."""
    metadata = {SPEC: to_canonical(stored.spec)} | ({SIGNATURE: signature} if signature else {})
    return to_parquet(columns_of(stored.spec), stored.values, metadata)


def unpack(data: bytes, *, largest: int) -> tuple[Stored, bytes | None]:
    """What a file holds, if it agrees with its checksum, and its signature, if it has one."""
    found = layout(data)
    metadata = found.metadata
    rule, fix = "is not a Partita release", "check the path"
    check_release(SPEC in metadata and not (set(metadata) - {SPEC, SIGNATURE}), "file", rule, fix=fix)
    spec = from_canonical(metadata[SPEC])
    columns = columns_of(spec)
    rule, fix = f"holds more than {largest} bytes of numbers", "raise `largest` if you trust it"
    check_release(sum(column.cost * column.length for column in columns) <= largest, "file", rule, fix=fix)
    found.check(columns)
    stored = Stored(spec, from_parquet(data, columns))
    stored.check()
    return stored, metadata.get(SIGNATURE)


# --- signatures: Ed25519 over the checksum and the specification, stored in the file -----------

_CONTEXT: Final = b"partita release signature 1\n"
_ALGORITHM: Final = "ed25519"
_LONGEST_KEY: Final = 2**14  # bytes: a key in PEM has a few hundred
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
    key = _read_key(private_key, private=True)
    stored, _ = unpack(read_file(path, largest=largest), largest=largest)
    stored.release()
    signature = to_canonical(
        {
            "algorithm": _ALGORITHM,
            "public_key": key.public_key().public_bytes_raw().hex(),
            "signature": key.sign(_message(stored)).hex(),
        }
    )
    with Temporary(check_path(path), overwrite=True) as temporary:
        temporary.write(pack(stored, signature=signature))
        temporary.commit()


def verify(path: FilePath, public_key: FilePath, *, largest: int = LARGEST) -> Release:
    """The release in a file, if the owner of this key signed it; else an `InvalidRelease` says why not.

    What is returned is what was verified: the file is read once.
    """
    stored, signature = unpack(read_file(path, largest=largest), largest=largest)
    _check_signature(stored, signature, public_key)
    return stored.release()


def _check_signature(stored: Stored, signature: bytes | None, public_key: FilePath) -> None:
    """Refuse a signature that is not that of the owner of this key, or that belongs to something else."""
    from cryptography.exceptions import InvalidSignature

    key = _read_key(public_key, private=False)
    if signature is None:
        raise _refuse_signature("is missing")
    given = _read_signature(signature)
    if given["algorithm"] != _ALGORITHM or given["public_key"] != key.public_bytes_raw().hex():
        raise _refuse_signature("is that of another key")
    try:
        key.verify(bytes.fromhex(text(given["signature"])), _message(stored))
    except (InvalidSignature, ValueError):
        raise _refuse_signature("does not belong to this release") from None


def _read_signature(signature: bytes) -> dict[str, Json]:
    return entries(from_canonical(signature), ("algorithm", "public_key", "signature"))


def _message(stored: Stored) -> bytes:
    """What is signed: a fixed context, the digest of everything, and the whole specification."""
    return _CONTEXT + bytes.fromhex(text(stored.spec["checksum"])) + to_canonical(stored.spec)


@overload
def _read_key(path: FilePath, *, private: Literal[True]) -> Ed25519PrivateKey: ...


@overload
def _read_key(path: FilePath, *, private: Literal[False]) -> Ed25519PublicKey: ...


def _read_key(path: FilePath, *, private: bool) -> Ed25519PrivateKey | Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    try:
        data = read_file(path, largest=_LONGEST_KEY)
        key = pem.load_pem_private_key(data, password=None) if private else pem.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    name, what = "public_key", "a public Ed25519 key in PEM"
    if private:
        name, what = "private_key", "a private Ed25519 key in PEM without a password"
    if isinstance(key, Ed25519PrivateKey if private else Ed25519PublicKey):
        return key
    fix = "make one with `partita keygen`"
    raise InvalidParameter(name, f"must be a file with {what}", given=str(path), fix=fix)


def _refuse_signature(rule: str) -> InvalidRelease:
    return InvalidRelease("signature", rule, fix="get a signed copy, or check the key")
