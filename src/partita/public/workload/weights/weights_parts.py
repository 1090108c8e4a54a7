"""What private multiplicative weights release, taken apart for a file and put together again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from partita.errors.errors import InvalidParameter
from partita.public.axis.base.ranges import Json, Parts
from partita.public.axis.base.reading import PartsReader
from partita.public.base.released import damaged
from partita.public.queries.operator.operator import Operator
from partita.public.workload.weights.margin import Margin
from partita.public.workload.weights.measured import Scales, Weighed

WEIGHED_FACTS: Final = ("grain", "total_scale", "marginal_scale", "selection_scale", "answer_scale")
WEIGHED_SERIES: Final = ("total", "axes", "bins", "marginals", "indices", "noisy")

_MOST_ROUNDS: Final = 2**16
_LARGEST_GRAIN: Final = 2**62


def written_weighed(weighed: Weighed) -> Parts:
    """The measurements and their noise scales."""
    scales = weighed.scales
    facts: dict[str, Json] = {
        "grain": weighed.grain,
        "total_scale": str(scales.total),
        "marginal_scale": str(scales.marginal),
        "selection_scale": str(scales.selection),
        "answer_scale": str(scales.answer),
    }
    series: dict[str, Any] = {
        "total": _row([weighed.total]),
        "axes": np.array([margin.axis for margin in weighed.margins], np.int64),
        "bins": np.array([margin.bins for margin in weighed.margins], np.int64),
        "marginals": weighed.marginals,
        "indices": weighed.indices,
        "noisy": weighed.noisy,
    }
    return Parts(facts, series)


def read_weighed(reader: PartsReader, operator: Operator, unit: int) -> Weighed:
    """The measurements that were written about these queries; anything else is an `InvalidRelease`."""
    margins = _margins(reader, operator)
    indices = reader.row("indices", np.int64)
    if not 1 <= indices.size <= _MOST_ROUNDS:
        raise damaged("indices", f"must be of 1 to {_MOST_ROUNDS} rounds")
    return Weighed(
        operator=operator,
        unit=unit,
        grain=reader.integer("grain", low=1, high=_LARGEST_GRAIN),
        total=int(reader.noisy("total", count=1)[0]),
        margins=margins,
        marginals=reader.noisy("marginals", count=sum(margin.bins for margin in margins)),
        indices=indices,
        noisy=reader.noisy("noisy", count=indices.size),
        scales=Scales(
            total=reader.scale("total_scale"),
            marginal=reader.scale("marginal_scale"),
            selection=reader.scale("selection_scale"),
            answer=reader.scale("answer_scale"),
        ),
    )


def _margins(reader: PartsReader, operator: Operator) -> tuple[Margin, ...]:
    axes, bins = (reader.row(name, np.int64).tolist() for name in ("axes", "bins"))
    if len(axes) != len(bins) or len(set(axes)) != len(axes):
        raise damaged("axes", "must be distinct, with a number of bins for each")
    try:
        return tuple(Margin(operator.shape, axis, number) for axis, number in zip(axes, bins, strict=True))
    except InvalidParameter as error:
        raise damaged(error.parameter, "must fit the universe") from None


def _row(values: list[int]) -> Any:
    fits = all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, np.int64 if fits else object)
