"""Every exception and warning that Partita raises.

    PartitaError
    ├── InvalidParameter (ValueError)      a public parameter breaks its rule
    ├── InvalidData (ValueError)           secret input is malformed; no value is ever shown
    ├── IncompatibleGuarantees (ValueError)  two guarantees cannot be composed or converted
    ├── LedgerError (RuntimeError)         a ledger cannot be read or written, or is none
    │   └── LedgerRefusal                  a sound ledger says no; nothing was written
    │       ├── BudgetExceeded             the release costs more than is left
    │       ├── BudgetLost                 the key was charged, and its release is not stored
    │       ├── KeyReused                  the key belongs to another request
    │       ├── TermsDiffer                the dataset is open with other terms
    │       └── UnknownDataset             the steward has not opened the dataset
    ├── InvalidRelease (ValueError)        a release file is damaged, hostile or too new
    ├── InvalidState (ValueError)          the state of a counter is damaged, or of another counter
    ├── HorizonReached (RuntimeError)      a counter has no periods left; nothing was lost
    ├── StreamError (RuntimeError)         the files of a counter cannot be read or written
    │   ├── StreamBusy                     another process has the counter open
    │   └── StreamForked                   the state is older than what was published from it
    ├── SourceError (RuntimeError)         rows could not be read; no row and no cause is shown
    └── EntropyError (RuntimeError)        randomness could not be had, or may not be shared
        └── TapeExhausted                  a test tape ran out of words

    PrivacyWarning (UserWarning)           legal, but weaker than people expect
    ImplausibleReports (UserWarning)       local reports that cannot all be honest

A message says which parameter, what the rule is, what was given, and what to do.
What was given is shown for short public scalars only: an array or a table handed in
by mistake is named by its type, so that no error can carry a value from the data.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeVar

_SHOWN: Final = (bool, int, float, str, Fraction, Decimal, type(None))
_LONGEST: Final = 60  # characters of a value in a message
_INSIDE: Final = ("partita", "functools", "contextlib", "dataclasses")  # what a warning does not point at


class PartitaError(Exception):
    """The root of every exception that Partita raises on purpose."""


class InvalidParameter(PartitaError, ValueError):
    """A public parameter breaks its rule; nothing was drawn, spent or written.

    >>> raise InvalidParameter("epsilon", "must be positive", given=-1, fix="pass for example 1")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidParameter: epsilon must be positive, got -1; pass for example 1
    """

    def __init__(self, parameter: str, rule: str, *, given: object, fix: str) -> None:
        super().__init__(f"{parameter} {rule}, got {_public(given)}; {fix}")
        self.parameter = parameter
        self.rule = rule
        self.fix = fix

    def with_fix(self, fix: str) -> InvalidParameter:
        """The same error with other advice, from somebody who knows more."""
        self.args, self.fix = (f"{str(self).removesuffix(self.fix)}{fix}",), fix
        return self


class _RuleBroken(Exception):
    """Says what broke which rule and what to do; never what was in the data."""

    def __init__(self, parameter: str, rule: str, *, fix: str) -> None:
        super().__init__(f"{parameter} {rule}; {fix}")
        self.parameter = parameter
        self.rule = rule
        self.fix = fix


class InvalidData(PartitaError, _RuleBroken, ValueError):
    """Secret input is malformed. The message never holds a value, a position or a count.

    >>> raise InvalidData("cells", "must be in ascending order", fix="sort them first")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidData: cells must be in ascending order; sort them first
    """


class IncompatibleGuarantees(PartitaError, ValueError):
    """Two guarantees have different neighbours or units, and no public factor relates them."""


class LedgerError(PartitaError, RuntimeError):
    """A ledger cannot be read or written, or the file is none; nothing may be released."""


class LedgerRefusal(LedgerError):
    """A sound ledger says no; nothing was written."""


class BudgetExceeded(LedgerRefusal):
    """The release costs more than the dataset has left."""


class BudgetLost(LedgerRefusal):
    """The key was charged before and its release is not stored: that budget is gone."""


class KeyReused(LedgerRefusal):
    """The idempotency key belongs to another request."""


class TermsDiffer(LedgerRefusal):
    """The dataset is open with other terms, and terms never change."""


class UnknownDataset(LedgerRefusal):
    """The steward has not opened the dataset in this ledger."""


class InvalidRelease(PartitaError, _RuleBroken, ValueError):
    """A release file, or a part of one, is not what a release is; nothing of it was believed."""


class InvalidState(PartitaError, _RuleBroken, ValueError):
    """The state of a counter is damaged, or of another counter; nothing of it was believed."""


class HorizonReached(PartitaError, RuntimeError):
    """A counter has no period left. What it counted and published stays as it was."""


class StreamError(PartitaError, RuntimeError):
    """The files of a durable counter cannot be read or written. What was acknowledged is not lost."""


class StreamBusy(StreamError):
    """A durable counter has one writer, and that is another process or another object."""


class StreamForked(StreamError):
    """The state of a durable counter is an old copy: to go on from it would publish a period twice."""


class SourceError(PartitaError, _RuleBroken, RuntimeError):
    """Rows could not be read or grouped. What another library said about it is never repeated.

    >>> raise SourceError("data 'people.parquet'", "does not exist", fix="check the path")
    Traceback (most recent call last):
        ...
    partita.errors.SourceError: data 'people.parquet' does not exist; check the path
    """


class EntropyError(PartitaError, RuntimeError):
    """Randomness could not be had, or a generator was about to be copied."""


class TapeExhausted(EntropyError):
    """A tape of given words, used in tests only, has no word left."""


class ImplausibleReports(UserWarning):
    """Reports of the local model that honest devices would not send together, but for one case in 10^9."""


class PrivacyWarning(UserWarning):
    """A legal choice that protects people less than they may expect."""


_WARNED: Final[ContextVar[set[type[Warning]] | None]] = ContextVar("warned", default=None)
"""Of which kinds the running call of a public function has warned; None outside of one."""


@contextmanager
def warn_once() -> Iterator[None]:
    """Within it, or in a function that it decorates, one warning of each kind is given: the first."""
    token = _WARNED.set(set() if _WARNED.get() is None else _WARNED.get())
    try:
        yield
    finally:
        _WARNED.reset(token)


def warn(message: Warning) -> None:
    """Warn at the line outside of Partita that led here."""
    given = _WARNED.get()
    if given is not None:
        if type(message) in given:
            return
        given.add(type(message))
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level + 1)


def _public(given: object) -> str:
    if not isinstance(given, _SHOWN):
        return f"a value of type {type(given).__name__}"
    if isinstance(given, int) and abs(given) >= 10**_LONGEST:
        return f"an integer of {given.bit_length()} bits"
    text = repr(given) if isinstance(given, str) else str(given)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


# --- checks: one line for each rule ------------------------------------------------------------

Wanted = TypeVar("Wanted")
Kind = TypeVar("Kind")


def check(holds: object, parameter: str, rule: str, *, given: object, fix: str) -> None:
    """Raise InvalidParameter unless the rule holds.

    >>> check(-1 > 0, "epsilon", "must be positive", given=-1, fix="pass for example 1")
    Traceback (most recent call last):
        ...
    partita.errors.InvalidParameter: epsilon must be positive, got -1; pass for example 1
    """
    if not holds:
        raise InvalidParameter(parameter, rule, given=given, fix=fix)


def check_type(
    value: object, kinds: type[Wanted] | tuple[type[Any], ...], parameter: str, rule: str, *, fix: str
) -> Wanted:
    """`value`, if it is an instance of one of the `kinds`.

    >>> check_type("age", str, "column", "must be text", fix="pass a name")
    'age'
    """
    if not isinstance(value, kinds):
        raise InvalidParameter(parameter, rule, given=value, fix=fix)
    return value


def check_arguments(kind: type[Kind]) -> type[Kind]:
    """The same class, whose constructor says which argument is missing, or unknown, as InvalidParameter.

    >>> @check_arguments
    ... class Slot:
    ...     def __init__(self, start, *, length): ...
    >>> Slot(1)
    Traceback (most recent call last):
        ...
    partita.errors.InvalidParameter: length must be given, got None; write Slot(start, *, length)
    """
    made = kind.__init__

    @functools.wraps(made)
    def init(self: Any, *positional: Any, **named: Any) -> None:
        try:
            made(self, *positional, **named)
        except TypeError:
            wrong = _wrong_argument(kind, made, (self, *positional), named)
            if wrong is None:
                raise
        else:
            return
        raise wrong

    kind.__init__ = init  # type: ignore[method-assign]
    return kind


def _wrong_argument(
    kind: type[Any], made: Callable[..., None], positional: tuple[Any, ...], named: dict[str, Any]
) -> InvalidParameter | None:
    """What is wrong with the arguments of a constructor, if not every parameter has one that it may have."""
    import inspect  # takes longer to load than all the rest

    signature = inspect.signature(made)
    try:
        signature.bind(*positional, **named)
    except TypeError:
        pass
    else:
        return None
    parameters = list(signature.parameters.values())[1:]
    plain = [each.replace(annotation=each.empty) for each in parameters]
    fix = f"write {kind.__name__}{inspect.Signature(plain)}"
    known = [each.name for each in parameters]
    for name in named:
        if name not in known:
            rule = f"must be a parameter of {kind.__name__}"
            return InvalidParameter(name, rule, given=name, fix=fix)
    in_a_row = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    if len(positional) - 1 > len(in_a_row):
        rule = f"must have at most {len(in_a_row)} arguments without a name"
        return InvalidParameter(kind.__name__, rule, given=len(positional) - 1, fix=fix)
    given = {*in_a_row[: len(positional) - 1], *named}
    needed = [each.name for each in parameters if each.default is each.empty]
    missing = next((name for name in needed if name not in given), None)
    twice = next((name for name in named if name in in_a_row[: len(positional) - 1]), kind.__name__)
    rule = "must be given once" if missing is None else "must be given"
    return InvalidParameter(missing or twice, rule, given=None, fix=fix)


def check_bool(value: object, parameter: str) -> bool:
    """`value`, if it is True or False."""
    return check_type(value, bool, parameter, "must be True or False", fix="pass one of them")


def check_data(holds: object, part: str, rule: str, *, fix: str) -> None:
    """Raise InvalidData unless the rule holds."""
    if not holds:
        raise InvalidData(part, rule, fix=fix)


def check_release(holds: object, part: str, rule: str, *, fix: str) -> None:
    """Raise InvalidRelease unless the rule holds."""
    if not holds:
        raise InvalidRelease(part, rule, fix=fix)


def check_source(holds: object, part: str, rule: str, *, fix: str) -> None:
    """Raise SourceError unless the rule holds."""
    if not holds:
        raise SourceError(part, rule, fix=fix)


def raise_without_cause(work: Callable[[], Wanted], failure: PartitaError, *kinds: type[Exception]) -> Wanted:
    """The result of `work`; if it fails with an error of these kinds, `failure`, which has no cause.

    What failed on data must not carry the data along. So `failure` is raised outside of the handler: with
    `from None` inside of it, the cause would not be shown, but it would still be there for every tool that
    looks at the context of an error.
    """
    try:
        return work()
    except kinds:
        pass
    raise failure
