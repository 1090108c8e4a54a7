"""Many sketches beside each other: users are divided by their ids, never by the time at which they come.

A user is in one shard for good. So the shards together lose no more than one of them. If they were divided
by time, a user would be in several, each look at one would be another look, and the losses would add up.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.answer import Answer
from partita.errors.checks import check
from partita.numbers import integer
from partita.pan.sketch.ids import digest_of, written


def shard_of(name: object, shards: int) -> int:
    """The shard that a user belongs to, a public function of the id; what is no id belongs to the first.

    >>> {shard_of(f"user {number}", 3) for number in range(100)}
    {0, 1, 2}
    """
    known = written(name)
    return 0 if known is None else digest_of(known) % integer(shards, "shards", low=1)


def whole(answers: Sequence[Answer], sizes: Sequence[int]) -> Answer:
    """A fraction or a mean of all users from those of the shards, whose universes have these sizes.

    Numbers of users, such as those of `Distinct`, are added: `Answer.together`.
    """
    rule = "must be one for each answer"
    check(len(answers) == len(sizes) and answers, "sizes", rule, given=len(sizes), fix="pass as many")
    total = sum(integer(size, "sizes", low=1) for size in sizes)
    return Answer.together(
        [_times(answer, size / total) for answer, size in zip(answers, sizes, strict=True)]
    )


def _times(answer: Answer, share: float) -> Answer:
    """The part of a shard in a mean over all users."""

    def bounds(beta: float) -> tuple[float, float]:
        low, high = answer.bounds(beta)
        return share * low, share * high

    return Answer(share * answer.value, lambda: share * answer.error, bounds, share * answer.least)
