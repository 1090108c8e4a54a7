"""Options of a mechanism by name: found among its fields, read by their types, refused with the reason.

An option is a public constant that a class has beside what it is about and whom it protects: the branching of
a tree, the rule of a truncation. Nothing is listed here but what `publish` sets itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, Union, final, get_args, get_origin, get_type_hints

from partita.errors import InvalidParameter
from partita.numbers import Converted, rational

Options: TypeAlias = Mapping[str, Any]
"""The value of each option by its name, read by its type."""

_PAID: Final = "it is a parameter of its own, from which the guarantee follows that the budget pays for"
_SCHEMA: Final = "it follows from the schema and from what is published"
_ASKED: Final = "it is a parameter of its own, which says what is published"
_SET: Final[Mapping[str, str]] = {
    **dict.fromkeys(("epsilon", "rho", "delta", "neighbors", "contributions"), _PAID),
    **dict.fromkeys(
        ("size", "axes", "keys", "value", "universe", "offset", "unit", "special_cells", "nodes"), _SCHEMA
    ),
    **dict.fromkeys(("rho", "states_rho"), _PAID),
    **dict.fromkeys(("queries", "quantiles", "together", "moments"), _ASKED),
}
"""What `publish` sets itself, and why it is no option."""

_NONE: Final = "none"
_MOST_PARTS: Final = 2**10  # values in a list: no option has more
_TRUTHS: Final = {"true": True, "false": False}
_WORDS: Final[Mapping[Any, str]] = {
    bool: "true or false",
    int: "an integer",
    str: "text",
    Fraction: "a number",
    object: "a number",
    NoneType: repr(_NONE),
}
_EXAMPLES: Final[Mapping[Any, object]] = {bool: True, int: 16, str: "text", Fraction: "1/2"}


@final
@dataclass(frozen=True)
class Option:
    """One option: its name, the type of what it holds, and its value if it is left out."""

    name: str
    hint: Any
    default: Any = MISSING

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        words = _describe(self.hint)
        nothing = self.default is None and NoneType not in get_args(self.hint)
        return f"{words}, or {_NONE!r}" if nothing else words

    def read(self, value: object) -> Any:
        """The value in its type; text is read as a command line writes it. Raises ValueError."""
        if self.default is None and value in (None, _NONE):
            return None
        return _read(self.hint, value)


def options_of(kind: type[Any]) -> dict[str, Option]:
    """The options of a class of mechanisms, in the order of its fields.

    >>> from partita.trusted.mechanisms.tree import Tree
    >>> {name: each.takes for name, each in options_of(Tree).items()}["branching"]
    'an integer'
    """
    hints = get_type_hints(kind)
    own = (each for each in fields(kind) if each.init and each.name not in _SET)
    options = (Option(each.name, _type_of(hints[each.name]), each.default) for each in own)
    return {each.name: each for each in options if _is_known(each.hint)}


def options_of_call(function: Callable[..., Any], own: Sequence[str]) -> dict[str, Option]:
    """The options of what a function makes: its parameters by keyword but for those of `own`.

    Parameters of a class that cannot be written down, such as a plan or a noise, are left out.
    """
    hints = get_type_hints(function)
    found = inspect.signature(function).parameters.values()
    named = (each for each in found if each.name not in own and each.kind is each.KEYWORD_ONLY)
    options = (Option(each.name, _type_of(hints[each.name]), each.default) for each in named)
    return {each.name: each for each in options if _is_known(each.hint) and not _has_table(each.hint)}


def read_options(known: Mapping[str, Option], given: object, owner: str) -> dict[str, Any]:
    """The options, each read by its type. What `publish` sets, what is unknown or unreadable is refused."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        rule, fix = "must map names of options to values", f"pass for example {_example(known)}"
        raise InvalidParameter("options", rule, given=given, fix=fix)
    return {name: _read_option(known, name, value, owner) for name, value in given.items()}


def _read_option(known: Mapping[str, Option], name: str, value: object, owner: str) -> Any:
    if name in _SET and name not in known:
        rule = f"must be left out of the options of {owner!r}: {_SET[name]}"
        fix = f"pass {name}= itself" if _SET[name] in (_PAID, _ASKED) else "leave it out"
        raise InvalidParameter(f"options.{name}", rule, given=value, fix=fix)
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        takes = ", ".join(f"{each.name} ({each.takes})" for each in known.values())
        rule = f"must be of {owner!r}, which takes {takes or 'no options'}"
        fix = f"did you mean {near[0]!r}?" if near else "leave it out"
        raise InvalidParameter("options", rule, given=name, fix=fix)
    with suppress(ValueError):
        return known[name].read(value)
    rule = f"of {owner!r} must be {known[name].takes}"
    raise InvalidParameter(
        f"options.{name}", rule, given=value, fix=f"pass for example {_example(known, name)}"
    )


@contextmanager
def naming_options(given: Mapping[str, Any], owner: str) -> Iterator[None]:
    """While something is made with options: what it refuses about one of them is said of that option."""
    try:
        yield
    except InvalidParameter as error:
        if error.parameter not in given:
            raise
        name, rule, fix = error.parameter, error.rule, error.fix
    else:
        return
    rule = f"of {owner!r} {rule}"
    raise InvalidParameter(f"options.{name}", rule, given=_shown(given[name]), fix=fix)


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Each option as text: the same for the same value, however it was given."""
    return {name: _write(options[name]) for name in sorted(options)}


# The types of options: what they take, in words and as values.


def _type_of(hint: Any) -> Any:
    """The type of a field; of one that is given as another type, that one if its values can be read."""
    if get_origin(hint) is not Converted:
        return hint
    given, held = get_args(hint)
    return given if given is not object and _is_known(given) else held


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_known(hint: Any) -> bool:
    """Whether values of a type can be read: numbers, words, lists and tables of these."""
    try:
        return bool(_describe(hint))
    except TypeError:
        return False


def _has_table(hint: Any) -> bool:
    return any(is_dataclass(each) for each in _members(hint))


def _describe(hint: Any) -> str:
    return ", or ".join(_describe_member(each) for each in _members(hint))


def _describe_member(hint: Any) -> str:
    if hint in _WORDS:
        return _WORDS[hint]
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    if get_origin(hint) is tuple:
        plural = {"an integer": "integers", "a number": "numbers"}
        each = _describe(get_args(hint)[0])
        return f"a list of {plural.get(each, each)}"
    if is_dataclass(hint):
        return f"a table of {', '.join(each.name for each in fields(hint))}"
    raise TypeError(f"no option can be of the type {hint!r}")


def _read(hint: Any, value: object) -> Any:
    for each in _members(hint):
        with suppress(ValueError):
            return _read_member(each, value)
    raise ValueError


def _read_member(hint: Any, value: object) -> Any:
    if hint is bool:
        return _read_truth(value)
    if hint is int:
        return _read_integer(value)
    if hint in (Fraction, object):
        return rational(value, "options")
    if hint is NoneType and value in (None, _NONE):
        return None
    if get_origin(hint) is Literal and value in get_args(hint):
        return value
    if hint is str and isinstance(value, str):
        return value
    if get_origin(hint) is tuple:
        return tuple(_read(get_args(hint)[0], each) for each in _parts(value))
    if is_dataclass(hint):
        return _read_table(hint, value)
    raise ValueError


def _read_truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUTHS:
        return _TRUTHS[value]
    raise ValueError


def _read_integer(value: object) -> int:
    exact = rational(value, "options")
    if exact.denominator != 1:
        raise ValueError
    return int(exact)


def _parts(value: object) -> Sequence[object]:
    """The values of a list, or of text with commas between them."""
    listed = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or len(listed) > _MOST_PARTS:
        raise ValueError
    return listed


def _read_table(kind: Any, value: object) -> Any:
    if isinstance(value, kind):
        return value
    names = {each.name for each in fields(kind)}
    if not isinstance(value, Mapping) or set(value) != names:
        raise ValueError
    return kind(**value)


def _write(value: object) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(_write, value))
    if is_dataclass(value) and not isinstance(value, type):
        return ",".join(f"{each.name}={_write(getattr(value, each.name))}" for each in fields(value))
    return str(value)


def _shown(value: object) -> object:
    return _write(value) if isinstance(value, tuple) or is_dataclass(value) else value


def _example(known: Mapping[str, Option], name: str | None = None) -> str:
    """An option with its usual value, or with one that suits its type."""
    if not known:
        return "{}"
    each = known[name or next(iter(known))]
    usual = None if each.default is MISSING else each.default
    value = _EXAMPLES.get(_members(each.hint)[0], [1, 2]) if usual is None else usual
    return str({each.name: str(value) if isinstance(value, Fraction) else value})
