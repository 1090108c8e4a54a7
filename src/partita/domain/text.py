"""Text whose values nobody has declared: all byte strings up to a length, in order, and the names found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from partita.domain import columns
from partita.domain.base import Cells, Encoded, Position, Spec, Special, indices, read_entries, whole
from partita.domain.category import Category, canonical
from partita.errors import InvalidParameter, check
from partita.lazy import cached_property
from partita.numbers import Converted, freeze, frozen, integer, parameter

MOST_BYTES: Final = 48
"""No text is longer: that makes 2^384 cells, and first successes are proved up to 2^400 (proofs/noise.md)."""

_WORD: Final = 8  # bytes
_EVERY: Final = bytes(range(256))
_SPECIALS: Final = (str(Special.NULL), str(Special.OTHER))
_UNREADABLE: Final = b"\xff"
"""What sources write for a cell that could not be read: it is counted in other."""
_CHUNK: Final = 2**16  # texts that are written into words at once: bounds memory


@final
@frozen(repr=False)
class Text:
    """Text of at most `max_bytes` bytes of UTF-8, whose values nobody declares: a release finds them.

    The cells are all byte strings of these lengths in the order of their bytes, the empty one first: about
    2^192 for 24 bytes. Text counts as it is: no trimming, no change of case, no Unicode normalisation. A
    value that is not text counts by its canonical text, as in `Category`. Longer text is counted in other,
    and so is text with bytes that are not in `alphabet`, a text of all characters that names may have, if
    one is given: fewer cells find names of fewer rows. None, NaN and NaT are null.

    >>> city = Text(max_bytes=24)
    >>> city.size.bit_length(), city.encode(["Rome", None, "x" * 25]).tolist()[1:]
    (193, ['null', 'other'])
    >>> city.decode([city.locate("Rome").cell])
    ['Rome']
    """

    max_bytes: Converted[object, int] = parameter(default=24)
    alphabet: Converted[object, str | None] = parameter(default=None)

    def __post_init__(self) -> None:
        alphabet = None if self.alphabet is None else _check_alphabet(self.alphabet)
        freeze(
            self, max_bytes=integer(self.max_bytes, "max_bytes", low=1, high=MOST_BYTES), alphabet=alphabet
        )

    def __repr__(self) -> str:
        limited = "" if self.alphabet is None else f", alphabet={self.alphabet!r}"
        return f"Text(max_bytes={self.max_bytes}{limited})"

    @cached_property
    def letters(self) -> bytes:
        """The bytes that a name may have, in order."""
        return _EVERY if self.alphabet is None else bytes(sorted(set(self.alphabet.encode())))

    @property
    def size(self) -> int:
        """The number of byte strings: more than 64 bits hold."""
        return self._below[0]

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: null and other."""
        return _SPECIALS

    @property
    def words(self) -> int:
        """How many words of 64 bits an encoded text has: its bytes, filled up with zeros, and its length."""
        return -(-self.max_bytes // _WORD) + 1

    def encode(self, values: object) -> Encoded:
        """The words of each text, one row of `cells` for each; their order is that of the cells."""
        read = columns.read(values)
        return columns.assemble(read, self._encode, invalid=Special.OTHER, width=self.words)

    def decode(self, cells: Sequence[int] | Cells) -> list[str]:
        """The text of each cell as it is shown."""
        return [show_name(self.name(cell)) for cell in indices(cells, self.size)]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """The cell of a public value."""
        encoded = self.encode([value])
        rule = f"must be text that a column {self!r} can have"
        fix = f"ask for text of at most {self.max_bytes} bytes"
        check(encoded.special[0] == Special.ORDINARY, name, rule, given=value, fix=fix)
        return Position(self.cells_of(encoded.cells)[0])

    def to_spec(self) -> Spec:
        """Kind, length, and the alphabet if there is one."""
        limited: Spec = {} if self.alphabet is None else {"alphabet": self.alphabet}
        return {"kind": "text", "max_bytes": str(self.max_bytes), **limited}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        if "alphabet" not in spec:
            (length,) = read_entries(spec, "text", "max_bytes")
            return cls(whole(length, "max_bytes"))
        length, alphabet = read_entries(spec, "text", "max_bytes", "alphabet")
        return cls(whole(length, "max_bytes"), alphabet)

    # Cells as Python integers. With k letters and L bytes, the cell of a name is the number of names before
    # it: for each of its bytes 1 (the name that ends there) plus, for each smaller letter, all names that go
    # on with that letter. There are `_below[i]` = 1 + k + ... + k^(L-i) names that share their first i bytes.

    @cached_property
    def _below(self) -> tuple[int, ...]:
        counts = [1]
        for _ in range(self.max_bytes):
            counts.append(1 + len(self.letters) * counts[-1])
        return tuple(reversed(counts))

    def names_with(self, length: int) -> int:
        """How many names begin with the same `length` bytes, the one that ends there among them."""
        return self._below[length]

    def cell(self, name: bytes) -> int:
        """The cell of a name of letters.

        >>> [Text(1, "ab").cell(name) for name in (b"", b"a", b"b")]
        [0, 1, 2]
        """
        digits = [self._digits[byte] for byte in name]
        return len(name) + sum(digit * below for digit, below in zip(digits, self._below[1:], strict=False))

    def name(self, cell: int) -> bytes:
        """The name in a cell.

        >>> city = Text(3)
        >>> all(city.cell(city.name(cell)) == cell for cell in range(0, city.size, 977))
        True
        """
        found, rest = bytearray(), cell
        for below in self._below[1:]:
            if not rest:
                break
            digit, rest = divmod(rest - 1, below)
            found.append(self.letters[digit])
        return bytes(found)

    def cells_of(self, words: npt.NDArray[np.uint64]) -> list[int]:
        """The cell of each encoded name, as `cell` says it; by one product where all bytes are letters.

        With padded digits d_i, cell = length + (k V - S) / (k - 1) where V is the number that the digits
        write in base k and S is their sum. `cell` is the sentence, this the arithmetic.
        """
        names = self.names_of(words)
        if len(self.letters) < len(_EVERY):
            return [self.cell(name) for name in names]
        length = self.max_bytes
        padded = (name.ljust(length, b"\0") for name in names)
        return [
            len(name) + ((int.from_bytes(full) << 8) - sum(name)) // 255
            for name, full in zip(names, padded, strict=True)
        ]

    def names_of(self, words: npt.NDArray[np.uint64]) -> list[bytes]:
        """The bytes of each encoded name."""
        raw = np.ascontiguousarray(words[:, :-1].astype(">u8")).tobytes()
        width = _WORD * (self.words - 1)
        lengths = words[:, -1].tolist()
        return [raw[start : start + n] for start, n in zip(range(0, len(raw), width), lengths, strict=True)]

    def words_of(self, names: Sequence[bytes]) -> npt.NDArray[np.uint64]:
        """Names of letters as words."""
        width = _WORD * (self.words - 1)
        padded = np.frombuffer(b"".join(name.ljust(width, b"\0") for name in names), ">u8")
        lengths = np.array([len(name) for name in names], np.uint64)
        both = (padded.reshape(len(names), self.words - 1).astype(np.uint64), lengths[:, None])
        return np.concatenate(both, axis=1)

    @cached_property
    def _digits(self) -> dict[int, int]:
        return {letter: digit for digit, letter in enumerate(self.letters)}

    def _encode(self, content: columns.Plain) -> Encoded:
        if isinstance(content, columns.Texts):
            return self._encode_texts(content.values)
        if isinstance(content, columns.Scaled | columns.Floats):
            distinct: Any
            distinct, codes = np.unique(content.values, return_inverse=True)
            return self._encode_labels(canonical(replace(content, values=distinct))).take(codes)
        return self._encode_labels(canonical(content))

    def _encode_labels(self, labels: Sequence[str | Special]) -> Encoded:
        import pyarrow as pa

        texts = [label.encode() if not isinstance(label, Special) else b"" for label in labels]
        found = self._encode_texts(pa.array(texts, pa.large_binary()))
        special, cells = found.special.copy(), found.cells.copy()
        for row, label in enumerate(labels):
            if isinstance(label, Special):
                special[row], cells[row] = label, 0
        return Encoded(cells, special)

    def _encode_texts(self, texts: Any) -> Encoded:
        """Names as words, some at a time; what is too long or has other bytes is in other."""
        cells = np.zeros((len(texts), self.words), np.uint64)
        special = np.zeros(len(texts), np.uint8)
        for start in range(0, len(texts), _CHUNK):
            rows = slice(start, start + _CHUNK)
            cells[rows], fits = self._chunk(texts[rows])
            special[rows] = np.where(fits, np.uint8(0), np.uint8(Special.OTHER))
        return Encoded(cells, special)

    def _chunk(self, texts: Any) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        import pyarrow.compute as pc

        width = _WORD * (self.words - 1)
        _, where, data = texts.buffers()
        ends = np.frombuffer(where, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        lengths = np.diff(ends)
        unreadable = pc.equal(texts, _UNREADABLE).to_numpy(zero_copy_only=False)
        fits = (lengths <= self.max_bytes) & ~unreadable
        places = np.arange(width)
        inside = (places < lengths[:, None]) & fits[:, None]
        content = np.frombuffer(b"" if data is None else data, np.uint8)
        padded = np.zeros((len(texts), width), np.uint8)
        padded[inside] = content[(ends[:-1, None] + places)[inside]]
        allowed = np.zeros(256, np.bool_)
        allowed[list(self.letters)] = True
        fits &= (allowed[padded] | ~inside).all(axis=1)
        words = np.zeros((len(texts), self.words), np.uint64)
        words[:, :-1], words[:, -1] = padded.view(">u8"), lengths
        words[~fits] = 0
        return words, fits


def show_name(name: bytes) -> str:
    r"""A name as text that is safe to print: what is not printable, or not UTF-8, is escaped.

    >>> show_name("Zürich".encode()), show_name(b"\xff\x1b[31m"), show_name("\u202eabc".encode())
    ('Zürich', '\\xff\\x1b[31m', '\\u202eabc')
    """
    text = name.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )


@final
class FoundNames(Category):
    """The names of a `Text` column that a release has found: labels, with all other names in other.

    Labels are the names as they are shown, in the order of their bytes; the empty one is shown as two
    quotation marks. A question may name a label or the name itself.

    >>> found = FoundNames.of(Text(24), [b"Bari", b"Rome"])
    >>> found.labels, found.encode(["Rome", "Turin"]).tolist()
    (('Bari', 'Rome'), [1, 'other'])
    """

    text: Text
    names: tuple[bytes, ...]

    @classmethod
    def of(cls, text: Text, names: Sequence[bytes]) -> FoundNames:
        """The labels of names in the order of their bytes, which are shown differently."""
        found = cls([show_name(name) or EMPTY for name in names])
        freeze(found, text=text, names=tuple(names))
        return found

    def __repr__(self) -> str:
        return f"{self.text!r} with {self.size:,} names found"

    def find_unlisted(self, value: object) -> int | None:
        """The cell of the universe of a value that is a text of the column and no label; None otherwise."""
        if isinstance(value, Special) or self.encode([value]).special[0] != Special.OTHER:
            return None
        encoded = self.text.encode([value])
        return self.text.cells_of(encoded.cells)[0] if encoded.special[0] == Special.ORDINARY else None

    def _match_texts(self, texts: Any) -> Encoded:
        """Names by their bytes, others by how they are shown."""
        import pyarrow as pa
        import pyarrow.compute as pc

        shown = super()._match_texts(texts)
        cells = pc.index_in(texts, value_set=pa.array(self.names, pa.large_binary())).fill_null(-1).to_numpy()
        named = cells >= 0
        return Encoded(
            np.where(named, cells, shown.cells).astype(np.uint64),
            np.where(named, np.uint8(Special.ORDINARY), shown.special),
        )


EMPTY: Final = '""'
"""How the empty text is shown."""


def choose_labels(names: Sequence[bytes]) -> list[bool]:
    """Which names can be labels: of those that are shown alike, names of printable text go first."""
    shown = [show_name(name) or EMPTY for name in names]
    first: dict[str, int] = {}
    for place in sorted(range(len(names)), key=lambda place: shown[place].encode() != names[place]):
        first.setdefault(shown[place], place)
    return [first[label] == place for place, label in enumerate(shown)]


def _check_alphabet(alphabet: object) -> str:
    fix = 'pass for example alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ "'
    if not isinstance(alphabet, str):
        rule = "must be a text of all characters that names may have"
        raise InvalidParameter("alphabet", rule, given=alphabet, fix=fix)
    try:
        letters = set(alphabet.encode())
    except UnicodeEncodeError:
        rule = "must be text that UTF-8 can write"
        raise InvalidParameter("alphabet", rule, given=ascii(alphabet), fix=fix) from None
    check(len(letters) >= 2, "alphabet", "must have two characters at least", given=alphabet, fix=fix)
    return "".join(sorted(set(alphabet)))
