"""Raw lines of a file. One line is one row, whatever it holds.

A line ends at a line feed; a carriage return before that belongs to the ending, and any
other one to the line. The last line may lack its ending. A byte order mark at the very
start is dropped. A line is readable if it is UTF-8 and at most 1 MiB long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]

LONGEST_LINE: Final = 2**20
_BLOCK: Final = 2**22
_MARK: Final = b"\xef\xbb\xbf"
_FEED: Final = ord("\n")
_RETURN: Final = ord("\r")


@dataclass(frozen=True, eq=False, repr=False)
class Lines:
    """Many lines in one block of bytes: where each starts and stops, and whether it is readable."""

    block: bytes
    start: Ints
    stop: Ints
    readable: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, block: bytes) -> Lines:
        """The lines of a block in which every line ends in a line feed."""
        data = np.frombuffer(block, np.uint8)
        feeds = np.flatnonzero(data == _FEED)
        start = np.concatenate([np.zeros(1, np.int64), feeds[:-1] + 1])[: len(feeds)]
        stop = feeds - ((feeds > start) & (data[feeds - 1] == _RETURN))
        return cls(block, start, stop, _decodable(block, start, stop) & (stop - start <= LONGEST_LINE))

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[bytes | None]:
        """The lines themselves, None for one that is not readable."""
        for low, high, readable in zip(
            self.start.tolist(), self.stop.tolist(), self.readable.tolist(), strict=True
        ):
            yield self.block[low:high] if readable else None

    def chosen(self, which: npt.NDArray[np.bool_]) -> Lines:
        """Some of these lines."""
        return Lines(self.block, self.start[which], self.stop[which], self.readable[which])


def blocks(stream: BinaryIO, size: int = _BLOCK) -> Iterator[bytes]:
    """The lines of a file, many at a time, each with its line feed.

    Of a line that is too long no more is kept than shows that it is.
    """
    rest = b""
    for chunk in _chunks(stream, size):
        whole, feed, rest = (rest + chunk).rpartition(b"\n")
        if feed:
            yield whole + feed
        rest = rest[: LONGEST_LINE + 2]
    if rest:
        yield rest + b"\n"


def _chunks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    first = stream.read(len(_MARK))
    if first != _MARK:
        yield first
    while chunk := stream.read(size):
        yield chunk


def _decodable(block: bytes, start: Ints, stop: Ints) -> npt.NDArray[np.bool_]:
    if _is_text(block):
        return np.ones(len(start), np.bool_)
    pairs = zip(start.tolist(), stop.tolist(), strict=True)
    return np.fromiter((_is_text(block[low:high]) for low, high in pairs), np.bool_, len(start))


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or data.decode() is not None
    except UnicodeDecodeError:
        return False
