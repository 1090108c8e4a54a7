"""A release promises what its views promise together, and its noise keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from partita.domain import Integer
from partita.errors import InvalidRelease
from partita.guarantee import Guarantee
from partita.public.release import Release
from partita.public.views import View

Publish = Callable[..., Release]

AGES = Integer(0, 120)


def _promising(release: Release, **changes: Guarantee | None) -> tuple[View, ...]:
    """The views, some with another guarantee."""
    return tuple(
        replace(view, axis=replace(view.axis, guarantee=changes.get(view.column, view.axis.guarantee)))  # type: ignore[type-var]
        for view in release.views
        if isinstance(view, View)
    )


def test_a_release_promises_what_its_views_promise_together(publish: Publish) -> None:
    """More, less, something where one view promises nothing, or nothing where all promise: refused."""
    release = publish(age=(AGES, []), size=(AGES, []))
    assert release.guarantee == Guarantee(epsilon=1)
    bare = _promising(release, size=None)

    assert replace(release, views=bare, guarantee=None).guarantee is None
    for views, guarantee in (
        (release.views, Guarantee(epsilon="1/100")),
        (release.views, Guarantee(epsilon=2)),
        (release.views, Guarantee(epsilon=1, unit="person")),
        (release.views, None),
        (bare, Guarantee(epsilon="1/2")),
    ):
        with pytest.raises(InvalidRelease, match="guarantee must be what its views promise together"):
            replace(release, views=views, guarantee=guarantee)


def test_views_promise_about_the_same_people(publish: Publish) -> None:
    """What is promised for rows and what is promised for persons has no sum."""
    release = publish(age=(AGES, []), size=(AGES, []))

    with pytest.raises(InvalidRelease, match="views must promise about the same neighbors"):
        replace(release, views=_promising(release, size=Guarantee(epsilon="1/2", unit="person")))


def test_special_cells_have_the_noise_that_is_promised(publish: Publish) -> None:
    """An epsilon smaller than the noise of the special cells allows is refused, even if it adds up."""
    release = publish(age=(AGES, []))
    less = Guarantee(epsilon="1/4")

    with pytest.raises(InvalidRelease, match="views must have the noise that is promised"):
        replace(release, views=_promising(release, age=less), guarantee=less)
