"""Text of strangers in Markdown and YAML: names in a release file may be anything that anybody wrote.

Nothing that goes through `code` or `prose` can become a heading, a list, a table cell, a link, a formula or
HTML. Every text in YAML is quoted, or stands in a block that is indented.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

_PLAIN: Final = re.compile(r"[^`|\\<>&{}$\n]*")
"""What may stand between backticks everywhere: in tables, on sites with templates, and beside formulas."""

_SPECIAL: Final = re.compile(
    r"[<>|`*~$#{}\[\]\\]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])|^[-+=]|(?<=^\d)[.)](?= )|:(?=//)|(?<=www)\."
)
"""What Markdown reads in a line or where it begins, and addresses, which sites make links of."""

_KEY: Final = re.compile(r"[a-z][a-z0-9_]+")
_NO_TEXT: Final = frozenset({"no", "off", "on", "yes", "true", "false", "null"})  # words of YAML 1.1


def code(text: str) -> str:
    r"""A name as it is, in the type of code; one that could end it is written in entities.

    >>> print(code("first_name"), code("a`b|c"))
    `first_name` a&#96;b&#124;c
    """
    shown = visible(text)
    if shown and shown.strip() == shown and _PLAIN.fullmatch(shown):
        return f"`{shown}`"
    return "".join(sign if sign.isalnum() or sign == " " else f"&#{ord(sign)};" for sign in shown)


def prose(text: str) -> str:
    """A sentence in which nothing is Markdown.

    >>> prose("a_b of <b>[x](y)</b>")
    'a_b of &#60;b&#62;&#91;x&#93;(y)&#60;/b&#62;'
    """
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", visible(text))


def visible(text: str) -> str:
    r"""One line that UTF-8 can write: what cannot be printed becomes an escape.

    >>> print(visible("a\nb"))
    a\nb
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; cells are Markdown already.

    >>> print(table(["day", "what"], [["1", "x"]]))
    | day | what |
    |---|---|
    | 1 | x |
    """
    lines = [heads, *rows]
    shown = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([shown[0], f"|{'---|' * len(heads)}", *shown[1:]])


def float_above(number: Fraction) -> float:
    """The nearest float that is not below, for programs that take no fractions.

    >>> float_above(Fraction(1, 2)), Fraction(float_above(Fraction(1, 3))) > Fraction(1, 3)
    (0.5, True)
    """
    near = float(number)
    return near if not math.isfinite(near) or Fraction(near) >= number else math.nextafter(near, math.inf)


def to_yaml(value: Mapping[str, object]) -> str:
    r"""A mapping as YAML 1.1 and 1.2 read it: texts, numbers, truth values, lists and mappings of these.

    >>> print(to_yaml({"name": "no", "tags": ["a: b"], "epsilon": 1e-9, "more": {"text": "x\ny"}}))
    name: "no"
    tags:
      - "a: b"
    epsilon: 1.0e-09
    more:
      text: |-
        x
        y
    """
    return "\n".join(_yaml_lines(value))


def _yaml_lines(value: object) -> Iterator[str]:
    """The lines of a mapping or a list, flush left."""
    entries = value.items() if isinstance(value, Mapping) else (("-", each) for each in _listed(value))
    for key, each in entries:
        head = "-" if key == "-" else f"{_yaml_key(key)}:"
        if isinstance(each, str) and _fits_block(each):
            yield f"{head} |-"
            yield from (f"  {line}" if line else "" for line in each.split("\n"))
        elif isinstance(each, Mapping | list | tuple) and each:
            lines = [f"  {line}" if line else "" for line in _yaml_lines(each)]
            if key == "-":
                yield f"- {lines[0].lstrip()}"
                yield from lines[1:]
            else:
                yield head
                yield from lines
        else:
            yield f"{head} {_yaml_scalar(each)}"


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _fits_block(text: str) -> bool:
    """Whether lines can stand as they are; one that is indented first would say how far all are."""
    lines = text.split("\n")
    plain = all(line.isprintable() for line in lines)
    return len(lines) > 1 and plain and bool(lines[0]) and lines[0][0] != " " and bool(lines[-1])


def _yaml_key(key: str) -> str:
    return key if _KEY.fullmatch(key) and key not in _NO_TEXT else _yaml_text(key)


def _yaml_scalar(value: object) -> str:
    if isinstance(value, str):
        return _yaml_text(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        text = repr(value)
        return text if "e" not in text or "." in text else text.replace("e", ".0e")  # 1e-09 would be text
    return "[]" if isinstance(value, list | tuple) else "{}" if isinstance(value, Mapping) else str(value)


def _yaml_text(text: str) -> str:
    r"""Text in double quotes, where a backslash and a quote are all that must be escaped.

    >>> print(_yaml_text('a "b" \x07'))
    "a \"b\" \u0007"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign.isprintable() else _yaml_sign(sign) for sign in escaped) + '"'


def _yaml_sign(sign: str) -> str:
    """A sign that cannot be printed; half of a pair, which no file can hold, becomes a question mark."""
    if sign == "\n":
        return "\\n"
    number = ord(sign)
    return "?" if 0xD800 <= number < 0xE000 else f"\\U{number:08x}" if number > 0xFFFF else f"\\u{number:04x}"
