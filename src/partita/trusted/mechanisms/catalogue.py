"""The mechanisms that columns can be published with, by name, and the choice among them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    Required,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    final,
    get_args,
    get_type_hints,
)

from partita.domain.axis import Axis
from partita.domain.base import Domain
from partita.domain.category import Category
from partita.domain.numeric import Integer, Real
from partita.domain.text import Text
from partita.errors import InvalidParameter, check
from partita.guarantee import Guarantee, Neighbors, Unit, short
from partita.lazy import find_classes
from partita.public.axis.base import AxisRelease
from partita.public.axis.names import ListedNames
from partita.public.axis.quantiles import QuantileRelease
from partita.public.boxes.base import BoxRelease
from partita.public.boxes.plain_view import MOST_POSITIONS
from partita.public.queries.queries import Queries, Universe
from partita.public.sums.base import SumRelease
from partita.public.sums.group_means import GroupMeansRelease
from partita.public.sums.totals import KnotTotalRelease
from partita.public.workload.release import WorkloadRelease
from partita.trusted.mechanisms.base import Additive, AxisMechanism, FixedCounts, Private
from partita.trusted.mechanisms.boxes import BoxMechanism
from partita.trusted.mechanisms.hierarchy import HierarchyCounts
from partita.trusted.mechanisms.options import Options, option_texts, options_of, read_options
from partita.trusted.mechanisms.quantiles import QuantileSelection
from partita.trusted.mechanisms.workload import WorkloadMechanism, format_sentence

Chosen = TypeVar("Chosen", covariant=True)

AUTO: Final = "auto"
MECHANISM_PACKAGES: Final = ("partita.trusted.mechanisms",)
"""The packages whose modules define mechanisms."""
ROWS: Final = (10**3, 10**5, 10**7)
"""Numbers of rows that stand for few, usual and many, where nobody has said how many there are."""

_EQUALITY: Final = "histogram"
_NODES: Final = "hierarchy"
_NAMES: Final = "names"
_NAMES_WHY: Final = (
    "The column has text whose values nobody declared: frequent names are found, and then counted."
)
_RANGES: Final = "intervals"
_BOXES: Final = "rectangles"
_TABLE: Final = "graph"
_MOST_BOXED: Final = 6  # columns without categories that one tree of boxes answers better than a model
_FEWEST_MODELLED: Final = 4  # columns with categories from which on a model answers pairs better than a tree
_VIEWED: Final = "viewed-boxes"
_PARAMETERS: Final = ("epsilon", "neighbors", "contributions", "unit")
_FEW_CELLS: Final = 2**12  # up to here the predicted errors decide; more cells are never counted one by one
BY_NAME: Final = "It was asked for by name."
NO_OPTIONS: Final[Options] = MappingProxyType({})


class Common(TypedDict, total=False):
    """The parameters that all mechanisms have; epsilon is required.

    With `rho`, what a mechanism may cost as zero-concentrated privacy, epsilon is what a pure one may spend,
    and `delta` the delta at which one that spends rho states its epsilon.
    """

    epsilon: Required[object]
    neighbors: Neighbors
    contributions: int
    unit: Unit | None
    rho: Fraction
    delta: Fraction


MechanismOrName: TypeAlias = Any
"""The name of a mechanism, or a mechanism of the caller's own, or a function or class that makes one."""


@final
@dataclass(frozen=True)
class Choice(Generic[Chosen]):
    """A mechanism for a view, and the sentence that says why: functions of public facts."""

    name: str
    why: str
    mechanism: Chosen


def mechanisms() -> dict[str, type[Any]]:
    """Every mechanism that takes a table once and releases, by the name of its class."""
    found = find_classes(*MECHANISM_PACKAGES)
    return {each.__name__: each for each in found if issubclass(each, Private) and hasattr(each, "release")}


@cache
def axis_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that releases an axis of cells, by the name users know."""
    return _find_mechanisms({"size"}, AxisRelease)


@cache
def name_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that finds the names in a column of text, by the name users know."""
    return _find_mechanisms({"text"}, ListedNames)


@cache
def box_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that releases several axes together, by the name users know."""
    return _find_mechanisms({"axes"}, BoxRelease)


@cache
def query_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that answers a list of queries, by the name users know."""
    return _find_mechanisms({"queries", "universe"}, WorkloadRelease)


@cache
def total_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that releases totals of a column alone, by the name users know."""
    return _find_mechanisms({"value"}, KnotTotalRelease)


@cache
def mean_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that releases means by group and nothing else, by the name users know."""
    return _find_mechanisms({"keys", "value"}, GroupMeansRelease)


@cache
def quantile_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that releases quantiles of an axis and nothing else, by the name users know."""
    return _find_mechanisms({"size"}, QuantileRelease)


def sum_mechanisms() -> Mapping[str, type[Any]]:
    """Every mechanism that releases sums; which is used follows from the keys, but for totals and means."""
    return {each.name: each for each in mechanisms().values() if _releases(each, SumRelease)}


def choose(
    domain: Domain, *, mechanism: str = AUTO, options: Options = NO_OPTIONS, **common: Unpack[Common]
) -> Choice[AxisMechanism]:
    """The mechanism of this name, or the best one according to public parameters.

    "auto" never reads data: names of text are found, each category is counted, and for an ordered column
    with few cells the predicted errors decide, over the numbers of rows in `ROWS`. `options` are those of
    the mechanism of this name.
    """
    if isinstance(domain, Text):
        return _choose_names(domain, mechanism, options, common)
    known = axis_mechanisms()
    if mechanism != AUTO:
        name, why = _check_known(mechanism, known), asked_by_name(options)
    else:
        name, why = _find_best(domain, known, common)
    return Choice(name, why, _make_axis(known[name], name, domain, common, options))


def takes_rho(mechanism: object) -> bool:
    """Whether a mechanism, its class or its name spends rho by itself, and cannot spend epsilon alone."""
    named = mechanisms_by_name().get(mechanism) if isinstance(mechanism, str) else mechanism
    return bool(getattr(named, "takes_rho", False)) and not getattr(named, "takes_epsilon", False)


def takes_delta(mechanism: object) -> bool:
    """Whether a mechanism of this name, of names of text, spends epsilon and a delta above 0 by itself."""
    return isinstance(mechanism, str) and bool(
        getattr(name_mechanisms().get(mechanism), "takes_delta", False)
    )


def mechanisms_by_name() -> dict[str, type[Any]]:
    """Every mechanism that users can name."""
    return {each.name: each for each in mechanisms().values() if hasattr(each, "name")}


def spend(kind: type[Any], common: Common, **shape: Any) -> dict[str, Any]:
    """The parameters that a mechanism of this class is made with, `shape` and its budget.

    If rho is spent, a class that says `takes_rho` gets it, and delta; unless it says `takes_epsilon`, too, it
    is made with rho only. Flat counts get the epsilon whose noise costs no more than that, all others the one
    whose square is at most 2 rho.
    """
    given: dict[str, Any] = dict(common)
    rho, delta = given.pop("rho", None), given.pop("delta", None)
    if getattr(kind, "takes_delta", False):
        return {**shape, **given, "delta": delta}
    if takes_rho(kind):
        rule = "must spend epsilon alone where no delta is given"
        fix = "pass rho=, or delta= beside epsilon"
        check(rho is not None, "mechanism", rule, given=getattr(kind, "name", kind.__name__), fix=fix)
    if rho is not None and getattr(kind, "takes_rho", False):
        del given["epsilon"]
        return {**shape, **given, "rho": rho, "delta": delta}
    if rho is None:
        return {**shape, **given}
    if issubclass(kind, Additive):
        given["epsilon"] = kind(**shape, **given).within_rho(rho)
        return {**shape, **given, "states_rho": True}
    return {**shape, **given}


def _choose_names(text: Text, mechanism: str, options: Options, common: Common) -> Choice[AxisMechanism]:
    """The mechanism that finds the names of a column of text."""
    name = _NAMES if mechanism == AUTO else _check_known(mechanism, name_mechanisms())
    kind = name_mechanisms()[name]
    made = kind(**spend(kind, common, text=text), **options)
    why = _NAMES_WHY if mechanism == AUTO else asked_by_name(options)
    return Choice(name, why, cast(AxisMechanism, made))


def asked_by_name(options: Options) -> str:
    """Why a mechanism was chosen that was asked for, with its options."""
    listed = ", ".join(f"{name} {text}" for name, text in option_texts(options).items())
    return f"It was asked for by name, with {listed}." if listed else BY_NAME


def checked_options(mechanism: MechanismOrName, options: object) -> Options:
    """The options of the mechanism of this name, read by their types; none for None."""
    if options is None or options == {}:
        return NO_OPTIONS
    rule = "must come with a mechanism by its name"
    fix = 'pass for example mechanism="tree"; make a mechanism of your own with its options'
    named = isinstance(mechanism, str) and mechanism != AUTO
    check(named, "options", rule, given=AUTO if mechanism == AUTO else "another", fix=fix)
    kinds = mechanisms_by_name()
    return read_options(options_of(kinds[_check_known(mechanism, kinds)]), options, mechanism)


# A mechanism of the caller's own: any object that does what ours do, or what makes one.
OWN: Final = (
    "It is a mechanism of the publisher's own, not one of Partita's: the guarantee is what it says of itself."
)
_OWN_FIX: Final = "see docs/how-to/a-mechanism-of-your-own.md"
_OWN_PARTS: Final = (*_PARAMETERS, "guarantee", "predicted_error", "predicted_numbers", "release")


def is_own(mechanism: object) -> bool:
    """Whether it is a mechanism, or a function or class that makes one, and not a name."""
    return _is_made(mechanism) or callable(mechanism)


def shape_of(mechanism: Any) -> Literal["size", "axes"]:
    """What a mechanism of one's own is made with: the size of one axis, or several axes."""
    if _is_made(mechanism):
        return "axes" if hasattr(mechanism, "axes") else "size"
    return "axes" if "axes" in inspect.signature(mechanism).parameters else "size"


def _is_made(mechanism: object) -> bool:
    return hasattr(mechanism, "release") and not isinstance(mechanism, type)


def choose_own(mechanism: Any, where: object, **common: Unpack[Common]) -> Choice[Any]:
    """A mechanism of one's own over an axis of some size, or over some axes, `where`.

    It must be made for just these, promise just what it is given, or no more rho than it is given, and say by
    an annotation what it releases.
    """
    shape = shape_of(mechanism)
    beside = {"special_cells": True} if _needs_room(mechanism) else {}
    made = mechanism
    if not _is_made(mechanism):
        kind = mechanism if isinstance(mechanism, type) else object
        made = mechanism(**spend(kind, common, **{shape: where}, **beside))
    if isinstance(made, FixedCounts):
        made.special_scale  # noqa: B018 -- refused now if it leaves special cells no part of epsilon
    for part in (shape, *_OWN_PARTS):
        check(hasattr(made, part), "mechanism", f"must have {part}", given=_name_own(made), fix=_OWN_FIX)
    found = tuple(made.axes) if shape == "axes" else made.size
    rule = "must be made for just these axes" if shape == "axes" else f"must be made for {where} cells"
    fix = "pass a function that makes it for any"
    check(found == where, "mechanism", rule, given=_name_own(made), fix=fix)
    _check_promise(made, common)
    kinds, released = released_kinds(made), BoxRelease if shape == "axes" else AxisRelease
    rule = f"must annotate release with what it returns, a subclass of {released.__name__}"
    fits = all(inspect.isclass(kind) and issubclass(kind, released) for kind in kinds) and kinds
    check(fits, "mechanism", rule, given=_name_own(made), fix=_OWN_FIX)
    ours = type(made) in {**axis_mechanisms(), **box_mechanisms()}.values()
    return Choice(_name_own(made), BY_NAME if ours else OWN, made)


def _check_promise(made: Any, common: Common) -> None:
    """Refuse a mechanism that promises something else than what it is given, or costs more rho."""
    given: dict[str, Any] = dict(common)
    rho, fix = given.pop("rho", None), "pass a function that makes it for any epsilon"
    given.pop("delta", None)
    promised = Guarantee(**given)
    rule = f"must promise just what it is given, {promised!r}"
    kept = made.guarantee == promised and made.epsilon == promised.epsilon
    if rho is not None:
        rule = f"must cost rho {short(rho)} at most, for whom it is given"
        stated: Guarantee = made.guarantee
        same = replace(promised, epsilon=stated.epsilon, delta=stated.delta, rho=stated.rho) == stated
        kept = same and (stated.rho > 0 or stated.pure) and stated.cost_in_rho <= rho
    check(kept, "mechanism", rule, given=_name_own(made), fix=fix)


def _needs_room(mechanism: Any) -> bool:
    """Whether it is a class of ours that must know of special cells beside the axis."""
    return isinstance(mechanism, type) and issubclass(mechanism, FixedCounts)


def _name_own(made: object) -> str:
    """The name that it gives itself, or that of its class; never one of ours."""
    name = getattr(made, "name", None)
    text = name if isinstance(name, str) and name.isprintable() and name else type(made).__name__
    ours = {**axis_mechanisms(), **box_mechanisms()}.get(text)
    return text if ours is None or type(made) is ours else f"own {text}"


def released_kinds(made: object) -> tuple[Any, ...]:
    """The classes that a mechanism may release, as its annotation says."""
    released = get_type_hints(type(made).release).get("return")  # type: ignore[attr-defined]
    return tuple(get_args(released) or ([] if released is None else [released]))


def choose_quantiles(
    domain: Domain,
    *,
    mechanism: str,
    quantiles: object,
    interval: bool = False,
    options: Options = NO_OPTIONS,
    **common: Unpack[Common],
) -> Choice[QuantileSelection]:
    """The mechanism of this name for quantiles of a column, and nothing else.

    Round values are told by what a cell stands for: whole numbers, or multiples of the step.
    """
    if isinstance(domain, Category | Text):
        raise _unsuited(mechanism, "must suit a column of categories or text, which has no quantiles")
    kind = quantile_mechanisms()[_check_known(mechanism, quantile_mechanisms())]
    first = domain.low if isinstance(domain, Integer) else 0
    offset = int(domain.low / domain.step) if isinstance(domain, Real) else first
    facts = {"quantiles": quantiles, "offset": offset, "interval": interval, **options}
    made = kind(**spend(kind, common, size=domain.size, **facts))
    return Choice(mechanism, asked_by_name(options), cast(QuantileSelection, made))


_HELD_ANYWAY: Final = "All columns are counted together, so also those that are named in together."


def choose_boxes(
    domains: Sequence[Domain],
    *,
    mechanism: str = AUTO,
    together: Sequence[Sequence[int]] = (),
    options: Options = NO_OPTIONS,
    **common: Unpack[Common],
) -> Choice[BoxMechanism]:
    """The mechanism for several columns together: the one of this name, or the default.

    The default decides on its structure itself: it explains how, and its release says what it decided.
    `together` has sets of columns, by number, that matter: a mechanism that holds all columns together
    has them anyway.
    """
    known = box_mechanisms()
    asked = asked_by_name(options)
    name, why = _find_engine(domains) if mechanism == AUTO else (_check_known(mechanism, known), asked)
    sets = {"together": together} if together and name == _TABLE else {}
    made = _make_boxes(known[name], name, domains, common, {**sets, **options})
    if (
        mechanism == AUTO
        and "rho" in common
        and math.prod(Axis.of(each).width for each in domains) <= _FEW_CELLS
    ):
        name, why, made = _least_of_boxes(name, why, made, domains, common)
    held = _HELD_ANYWAY if together and name != _TABLE else ""
    return Choice(name, f"{why} {made.why} {held}".rstrip(), made)


def _least_of_boxes(
    name: str, why: str, made: BoxMechanism, domains: Sequence[Domain], common: Common
) -> tuple[str, str, BoxMechanism]:
    """The default for these few cells, or a mechanism that spends rho by itself and errs less."""
    known = box_mechanisms()
    others = [each for each in known if takes_rho(known[each]) and each not in (name, _TABLE)]
    rivals = {each: _make_boxes(known[each], each, domains, common, {}) for each in others}
    errors = {each: _typical(rival) for each, rival in rivals.items()}
    best = min(errors, key=lambda each: errors[each], default=name)
    if best == name or errors[best] >= _typical(made):
        return name, why, made
    compared = f"{errors[best]:.3g} against {_typical(made):.3g} of {name!r}"
    reason = (
        f"It has the smallest predicted error of a box, as a mean over 10^3, 10^5 and 10^7 rows: {compared}."
    )
    return best, reason, rivals[best]


def _find_engine(domains: Sequence[Domain]) -> tuple[str, str]:
    """The default for some columns together, and why: a public rule."""
    number, labels = len(domains), any(isinstance(domain, Category) for domain in domains)
    if number > _MOST_BOXED or (labels and number >= _FEWEST_MODELLED):
        reason = f"more than {_MOST_BOXED}" if number > _MOST_BOXED else "some of them categories"
        return _TABLE, f"It is the default for {number} columns, {reason}: a model of views and pairs."
    if _can_be_viewed(domains):
        return _VIEWED, f"It is the default for {number} columns, some of them categories."
    return _BOXES, f"It is the default for {number} columns together."


def _can_be_viewed(domains: Sequence[Domain]) -> bool:
    """Whether a category is small enough for a view of its own beside boxes."""
    return any(isinstance(domain, Category) and Axis.of(domain).width <= MOST_POSITIONS for domain in domains)


def choose_queries(
    queries: Queries,
    universe: Universe,
    *,
    mechanism: str = AUTO,
    options: Options = NO_OPTIONS,
    approximate: object = 0,
    **common: Unpack[Common],
) -> Choice[WorkloadMechanism]:
    """The mechanism for a list of queries: the one of this name, or that of the smallest predicted error.

    `approximate` is the delta that they may spend. The predicted errors are compared over the numbers of
    rows in `ROWS`, for rows that reach the largest weights. A mechanism that cannot answer these queries, or
    has too many cells, is left out.
    """
    known = query_mechanisms()

    def make(kind: type[Any]) -> WorkloadMechanism:
        made = spend(kind, common, queries=queries, universe=universe, **options)
        if "delta" in inspect.signature(kind).parameters and "delta" not in made:
            made["delta"] = approximate
        return cast(WorkloadMechanism, kind(**made))

    if mechanism == AUTO:
        return _choose_least_error(dict(_make_all(make, known)))
    name = _check_known(mechanism, known)
    made = make(known[name])
    return Choice(name, f"{asked_by_name(options)} {_reason(made)}".rstrip(), made)


def check_name(
    mechanism: object,
    widths: Iterable[int],
    *,
    queries: bool = False,
    sums: bool = False,
) -> None:
    """Raise InvalidParameter unless the mechanism exists and suits a view, queries, or plain sums."""
    if mechanism == AUTO:
        return
    if is_own(mechanism):
        shape, listed = shape_of(mechanism), list(widths)
        meant = "one column" if shape == "size" else "several columns"
        rule = f"must suit a view, and this one is for {meant}"
        suits = any((width > 1) == (shape == "axes") for width in listed)
        check(suits, "mechanism", rule, given=type(mechanism).__name__, fix="choose other views")
        return
    alone = {**axis_mechanisms(), **quantile_mechanisms(), **name_mechanisms()}
    suiting = [box_mechanisms() if width > 1 else alone for width in widths]
    suiting += [query_mechanisms()] if queries else []
    suiting += [total_mechanisms(), mean_mechanisms()] if sums else []
    several = (box_mechanisms(), query_mechanisms(), total_mechanisms(), mean_mechanisms())
    every = {name: each for found in (alone, *several) for name, each in found.items()}
    name = _check_known(mechanism, every)
    if any(name in known for known in suiting):
        return
    kind = "several columns together" if name in box_mechanisms() else "one column"
    kind = "queries" if name in query_mechanisms() else kind
    kind = "totals, with sums= and no moments=" if name in total_mechanisms() else kind
    kind = "means, with sums= and no moments=" if name in mean_mechanisms() else kind
    others = ", ".join(sorted(set().union(*suiting)))
    fix = f"use {AUTO!r}, or one of {others}" if others else f"use {AUTO!r}"
    raise InvalidParameter("mechanism", f"must suit a view, and this one is for {kind}", given=name, fix=fix)


def _make_all(
    make: Callable[[type[Any]], WorkloadMechanism], known: Mapping[str, type[Any]]
) -> Iterator[tuple[str, WorkloadMechanism]]:
    """The mechanisms that can answer these queries; the first refusal is raised if there are none."""
    refusals: list[InvalidParameter] = []
    for name, kind in known.items():
        try:
            yield name, make(kind)
        except InvalidParameter as error:
            refusals.append(error)
    if len(refusals) == len(known):
        raise refusals[0]


def _choose_least_error(able: Mapping[str, WorkloadMechanism]) -> Choice[WorkloadMechanism]:
    """The mechanism of the smallest predicted error, and a comparison with the next one."""
    errors = {name: _typical(made) for name, made in able.items()}
    best, *others = sorted(errors, key=lambda name: errors[name])
    beside = f" against {errors[others[0]]:.3g} of {others[0]!r}" if others else ""
    why = (
        "It has the smallest predicted error of an answer, as a mean over 10^3, 10^5 and 10^7 rows: "
        f"{errors[best]:.3g}{beside}. {_reason(able[best])}"
    )
    return Choice(best, why.rstrip(), able[best])


def _reason(made: WorkloadMechanism) -> str:
    """The explanation of a mechanism for queries, as a sentence."""
    return format_sentence(made.why) if made.why else ""


def _find_best(domain: Domain, known: Mapping[str, type[Any]], common: Common) -> tuple[str, str]:
    if isinstance(domain, Category) and domain.nodes:
        return _NODES, "The column has labels below nodes: each is asked for by itself, so each is counted."
    noisy = [name for name in known if "rho" in common and takes_rho(known[name])]
    if isinstance(domain, Category):
        why = "The column has categories: each is asked for by itself, so each is counted."
        best, compared = _compare(domain, known, common, (_EQUALITY, *noisy))
        return best, f"{why} {compared}" if noisy else why
    if domain.size > _FEW_CELLS:
        return _RANGES, f"The column has {domain.size:,} cells in order, too many to count one by one."
    return _compare(domain, known, common, (_RANGES, _EQUALITY, *noisy))


def _compare(
    domain: Domain, known: Mapping[str, type[Any]], common: Common, names: Sequence[str]
) -> tuple[str, str]:
    """The one of these mechanisms that errs least, and a comparison with the next one."""
    errors = {name: _typical(_make_axis(known[name], name, domain, common)) for name in names}
    best, *others = sorted(errors, key=lambda name: errors[name])
    order = "" if isinstance(domain, Category) else " in order"
    against = f" against {errors[others[0]]:.3g} of {others[0]!r}" if others else ""
    return best, (
        f"For {domain.size:,} cells{order} it has the smallest predicted error of a range, as a mean over "
        f"10^3, 10^5 and 10^7 rows: {errors[best]:.3g}{against}."
    )


def _typical(mechanism: AxisMechanism | BoxMechanism | WorkloadMechanism) -> float:
    """The geometric mean of the predicted errors over `ROWS`."""
    return math.prod(mechanism.predicted_error(rows) for rows in ROWS) ** (1 / len(ROWS))


def _make_axis(
    kind: type[Any], name: str, domain: Domain, common: Common, options: Options = NO_OPTIONS
) -> AxisMechanism:
    """The mechanism over the cells of a domain; an error about its size is one about the mechanism."""
    beside: dict[str, Any] = {"special_cells": bool(domain.specials)} if issubclass(kind, FixedCounts) else {}
    if issubclass(kind, HierarchyCounts) and isinstance(domain, Category) and domain.tree:
        beside["nodes"] = domain.tree.ranges
    try:
        return cast(AxisMechanism, kind(**spend(kind, common, size=domain.size, **beside, **options)))
    except InvalidParameter as error:
        if error.parameter != "size":
            raise
        rule = error.rule
    raise _unsuited(name, f"must suit a column of {domain.size} cells, where size {rule}")


def _make_boxes(
    kind: type[Any], name: str, domains: Sequence[Domain], common: Common, options: Mapping[str, Any]
) -> BoxMechanism:
    """The mechanism over the axes of some domains; an error about the axes is one about the mechanism."""
    axes = [Axis.of(domain) for domain in domains]
    try:
        return cast(BoxMechanism, kind(**spend(kind, common, axes=axes, **options)))
    except InvalidParameter as error:
        if error.parameter != "axes":
            raise
        rule = error.rule
    widths = " x ".join(str(axis.width) for axis in axes)
    raise _unsuited(name, f"must suit columns of {widths} cells, special cells included: axes {rule}")


def _unsuited(name: str, rule: str) -> InvalidParameter:
    return InvalidParameter("mechanism", rule, given=name, fix=f"use {AUTO!r}, or a coarser domain")


def _check_known(name: object, known: Mapping[str, type[Any]]) -> str:
    if isinstance(name, str) and name in known:
        return name
    near = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    rule = f"must be {AUTO!r} or one of {', '.join(sorted(known))}"
    fix = f"did you mean {near[0]!r}?" if near else f"leave it {AUTO!r}"
    raise InvalidParameter("mechanism", rule, given=name, fix=fix)


def _find_mechanisms(shape: set[str], released: type[object]) -> Mapping[str, type[Any]]:
    """The mechanisms that need no parameters but `shape` and the common ones, and release this class."""
    found = mechanisms().values()
    return {each.name: each for each in found if _takes(each, shape) and _releases(each, released)}


def _takes(each: type[Any], shape: set[str]) -> bool:
    if not hasattr(each, "name"):
        return False
    takes = inspect.signature(each).parameters
    needed = {name for name, parameter in takes.items() if parameter.default is inspect.Parameter.empty}
    return {*shape, *_PARAMETERS} <= set(takes) and needed <= {*shape, *_PARAMETERS}


def _releases(each: type[Any], released: type[object]) -> bool:
    """Whether the release of a mechanism, or every type of a union, is of this class."""
    made = get_type_hints(each.release).get("return")
    return all(inspect.isclass(kind) and issubclass(kind, released) for kind in get_args(made) or (made,))
