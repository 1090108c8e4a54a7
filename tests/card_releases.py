"""A small release whose every name and promise can be chosen, for tests of its papers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import partita as pt
from partita.domain import Category, Integer
from partita.guarantee import Guarantee, rows_changed
from partita.public.axis.base import Specials
from partita.public.base import Provenance
from partita.public.release import Release
from partita.public.views import View
from partita.testing import EndlessTape, tape_noise
from partita.trusted.secret import Histogram

HOSTILE: Final = (
    "a|b",
    "`x`",
    "```",
    "---",
    "# head",
    "- item",
    "1. item",
    "<script>alert(1)</script>",
    "[a](http://b)",
    "![a](b)",
    "&lt;",
    "**b**",
    "__b__",
    "~~b~~",
    "$x$ \\(y\\)",
    '"quoted": yes',
    "{{ site }}",
    "tab\tline\nnext\r\u2028\u0085",
    "\x07\x1b[2J",
    "https://example.org",
    "é 漢 \U0001f600",
)
"""Names that anybody may have written into a file."""


def release(**changes: Any) -> Release:
    """A column of ages, with another guarantee or provenance if one is given."""
    guarantee: Guarantee = changes.pop("guarantee", Guarantee(epsilon=1))
    domain, column = changes.pop("domain", Integer(0, 9)), changes.pop("column", "age")
    counts, noise = Histogram.dense([50] * domain.size), tape_noise(EndlessTape("card"))
    made = pt.Laplace(size=domain.size, epsilon=1).release(counts, noise=noise)
    scale = rows_changed(guarantee.neighbors, guarantee.contributions) / guarantee.epsilon
    view = View(
        column=column,
        domain=domain,
        axis=replace(made, guarantee=guarantee),
        specials=Specials(counts=dict.fromkeys(domain.specials, 3), scale=scale),
        mechanism=changes.pop("mechanism", "laplace"),
        why=changes.pop("why", "It was asked for by name."),
    )
    provenance = Provenance(version="0.1.0", day="2026-11-15", **changes)
    return Release(views=(view,), guarantee=guarantee, provenance=provenance)


def hostile(name: str) -> Release:
    """A release in which all that a stranger could name has this name."""
    return release(
        guarantee=Guarantee(epsilon=1, unit="person", contributions=2),
        domain=Category([name, "other one"]),
        column=name,
        mechanism=name,
        why=name,
        dataset=name,
        person=name,
        part=(name, name),
        options=(("branching", name if name.isprintable() else ""),),
    )
