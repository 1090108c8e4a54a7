"""Labels in a declared order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self, cast, final

import numpy as np
import numpy.typing as npt

from partita.domain.base.base import Cells, Encoded, Position, Spec, Special, indices
from partita.domain.base.specs import taken
from partita.domain.category.canonical import canonical
from partita.domain.columns.columns import Floats, Plain, Scaled, Texts, assemble
from partita.domain.columns.read import read
from partita.errors.checks import check, check_type
from partita.errors.errors import InvalidParameter
from partita.lazy.cached import cached_property
from partita.numbers import Converted, freeze, frozen, parameter

_SPECIALS: Final = (str(Special.NULL), str(Special.OTHER))
_SHOWN: Final = 5


@final
@frozen(repr=False)
class Category:
    """The labels, in the order given; a cell for each, and `other` for every other value.

    Labels are text. Text matches exactly: no trimming, no change of case, no Unicode
    normalisation. A value that is not text matches by its canonical text: a whole number
    by its digits (1, 1.0 and Decimal("1.00") are "1"), another number by its shortest
    decimal ("0.5"), a boolean as "true" or "false", a calendar day as "2024-01-31".
    Nothing, NaN and NaT are null; infinities, times of day and all else are other.

    >>> regions = Category(["north", "south"])
    >>> regions.encode(["south", "South", None]).tolist()
    [1, 'other', 'null']
    >>> regions.decode([1])
    ['south']
    """

    labels: Converted[Sequence[str], tuple[str, ...]] = parameter()

    def __post_init__(self) -> None:
        freeze(self, labels=_checked(self.labels))

    def __repr__(self) -> str:
        return f"Category({list(self.labels)!r})"

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels)

    @property
    def specials(self) -> tuple[str, ...]:
        """The special cells: null and other."""
        return _SPECIALS

    def encode(self, values: object) -> Encoded:
        """The cell of every row of a column."""
        return assemble(read(values), self._encode, invalid=Special.OTHER)

    def decode(self, cells: Sequence[int] | Cells) -> list[str]:
        """The label of each cell."""
        return [self.labels[cell] for cell in indices(cells, self.size)]

    def locate(self, value: object, *, name: str = "value") -> Position:
        """The cell of a public value, which must be a label or have one as its canonical text."""
        encoded = self.encode([value])
        if encoded.special[0] != Special.ORDINARY:
            more = "" if self.size <= _SHOWN else " and so on"
            fix = f"choose among {', '.join(map(repr, self.labels[:_SHOWN]))}{more}"
            raise InvalidParameter(name, "must be one of the column's labels", given=value, fix=fix)
        return Position(int(encoded.cells[0]))

    def to_spec(self) -> Spec:
        """Kind and labels."""
        return {"kind": "category", "labels": list(self.labels)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """The domain that `to_spec` described."""
        (labels,) = taken(spec, "category", "labels")
        return cls(cast(Sequence[str], labels))

    @cached_property
    def _cells(self) -> dict[str, int]:
        return {label: cell for cell, label in enumerate(self.labels)}

    def _encode(self, content: Plain) -> Encoded:
        if isinstance(content, Texts):
            return self._texts(content.values)
        if isinstance(content, Scaled):
            whole, codes = np.unique(content.values, return_inverse=True)
            return self._matched(canonical(Scaled(whole, content.unit))).take(codes)
        if isinstance(content, Floats):
            floats, codes = np.unique(content.values, return_inverse=True)
            return self._matched(canonical(Floats(floats))).take(codes)
        return self._matched(canonical(content))

    def _matched(self, texts: Sequence[str | Special]) -> Encoded:
        cells = [self._cells.get(text, -1) if isinstance(text, str) else -1 for text in texts]
        specials = [text if isinstance(text, Special) else Special.OTHER for text in texts]
        return _found(np.array(cells, np.int64), np.array(specials, np.uint8))

    def _texts(self, texts: Any) -> Encoded:
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = pa.array([label.encode() for label in self.labels], pa.large_binary())
        cells = pc.index_in(texts, value_set=labels).fill_null(-1).to_numpy().astype(np.int64)
        return _found(cells, np.full(len(cells), Special.OTHER, np.uint8))


def _found(cells: npt.NDArray[np.int64], otherwise: npt.NDArray[np.uint8]) -> Encoded:
    """These cells, where they are not negative, and otherwise these special cells."""
    found = cells >= 0
    return Encoded(np.where(found, cells, 0).astype(np.uint64), np.where(found, np.uint8(0), otherwise))


def _checked(labels: object) -> tuple[str, ...]:
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence) or not labels:
        fix = 'pass for example ["north", "south"]'
        raise InvalidParameter("labels", "must be a non-empty list of texts", given=labels, fix=fix)
    for label in labels:
        _check(label)
    if len(set(labels)) < len(labels):
        [(twice, _)] = Counter(labels).most_common(1)
        raise InvalidParameter("labels", "must all be different", given=twice, fix="list it once")
    return tuple(str.__str__(label) for label in labels)


def _check(label: object) -> None:
    fix = 'write them as text: "1" matches the number 1, and "true" matches True'
    label = check_type(label, str, "labels", "must be texts", fix=fix)
    fix = "leave it out; empty text is counted in other"
    check(label, "labels", "must not be empty texts", given=label, fix=fix)
    try:
        label.encode()
    except UnicodeEncodeError:
        rule = "must be text that UTF-8 can write"
        raise InvalidParameter("labels", rule, given=ascii(label), fix="remove unpaired surrogates") from None
