"""A winter of influenza, published every evening: the count so far, and that of the last seven days.

People who feel ill answer a few questions on a page of the health office [DR14, section 12.3]. They are made
up, and only because they are made up may the truth be printed beside what is published. The noise is
real: it differs from run to run.
"""

from __future__ import annotations

from math import exp

import partita as pt

DAYS, WEEK = 180, 7
EPSILON = 1
"""Of all outputs of both counters together, for each visit."""


def main() -> None:
    """Two counters see the same visits, and share epsilon."""
    total = pt.Counter(epsilon=f"{EPSILON}/2", horizon=DAYS)
    week = pt.SlidingCounter(epsilon=f"{EPSILON}/2", window=WEEK)
    visits = [made_up_visits(day) for day in range(DAYS)]
    print(f"Each counter: {total.guarantee}. Both together: epsilon {EPSILON}.\n")
    print("day   so far  published  low - high     week  published")
    for day, count in enumerate(visits, 1):
        total.update(count)
        week.update(count)
        if day % 15 == 0:
            bounds = total.answer(beta=0.05)
            so_far, last = sum(visits[:day]), sum(visits[max(0, day - WEEK) : day])
            print(
                f"{day:3}  {so_far:7,}  {total.value:9,.0f}  {bounds.low:6,.0f} - {bounds.high:6,.0f}"
                f"  {last:6,}  {week.value:9,.0f}  {'#' * max(0, round(week.value / 80))}"
            )
    print(f"\nAll {DAYS} totals at once are off by at most {bounds.everywhere:.0f}, in 19 of 20 winters.")


def made_up_visits(day: int) -> int:
    """A quiet autumn, a wave around the seventieth day, and fewer visits at weekends."""
    wave = 30 + 350 * exp(-(((day - 70) / 18) ** 2))
    return round(wave * (0.6 if day % WEEK in (5, 6) else 1))


if __name__ == "__main__":
    main()
