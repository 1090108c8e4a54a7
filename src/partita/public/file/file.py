"""Release files: one Parquet file, a function of the release alone, safe to read from anybody.

The format is described in docs/release-file.md, the reasons are in docs/decisions/release-file.md.
"""

from __future__ import annotations

from typing import Final

from partita.errors.checks import check_release
from partita.public.file.spec import Stored, columns_of
from partita.public.file_entries.file_json import from_canonical, to_canonical
from partita.public.file_parquet.file_layout import layout
from partita.public.file_parquet.file_parquet import from_parquet, to_parquet
from partita.public.release.release import Release
from partita.storage.file_disk import FilePath, Temporary, checked_path, contents

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
    return Temporary(checked_path(path), overwrite=overwrite)


def load(path: FilePath, *, largest: int = LARGEST) -> Release:
    """The release in a file that anybody may have made; refused with a reason if it is none.

    Nothing in the file is unpacked before its size, its specification, its columns and every page
    header agree, and nothing is believed before the checksum does.
    """
    return decode(contents(path, largest=largest), largest=largest)


def encode(release: Release, *, signature: bytes | None = None) -> bytes:
    """The bytes of the file."""
    return packed(Stored.of(release), signature=signature)


def decode(data: bytes, *, largest: int = LARGEST) -> Release:
    """The release in these bytes of a file."""
    stored, _ = unpacked(data, largest=largest)
    return stored.release()


def packed(stored: Stored, *, signature: bytes | None) -> bytes:
    """A release that was taken apart, as the bytes of a file."""
    metadata = {SPEC: to_canonical(stored.spec)} | ({SIGNATURE: signature} if signature else {})
    return to_parquet(columns_of(stored.spec), stored.values, metadata)


def unpacked(data: bytes, *, largest: int) -> tuple[Stored, bytes | None]:
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
