"""The work of a question, predicted before any of it is done, and the threads that callers share.

Work is a function of the request and of public facts: how many boxes the conditions make up, how many bins
or values are asked for, and how many numbers were released for the columns. Limits on each of these alone are
not enough, because they multiply: 4,096 boxes in 4,096 bins are 16 million counts.

A unit is about a microsecond on the machine of benchmarks/README.md, and a prediction is right to a factor of
about three: the constants were fitted by hand there to releases of 14,000 to 8 million numbers, rounded up.

There are two lanes. Work that is predicted to be small has threads of its own, so it never waits for large
work. In each lane a caller has at most a share of the threads and a short queue. Callers take turns, not
requests: a caller that sends more waits longer, and other callers do not.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Final, TypeVar, final

from partita.domain.base import Domain
from partita.errors import InvalidParameter
from partita.lazy import cached_property
from partita.public.base import Stop, Stopped, run_stoppable
from partita.public.boxes.rank_boxes import RankBoxesRelease
from partita.public.boxes.viewed_boxes import ViewedBoxesRelease
from partita.public.conditions import AllOf, Either, Not, OneOf, Where, is_compound
from partita.public.file_entries import form_of
from partita.public.groups import MOST_RANKED, estimate_groups
from partita.public.keys import GroupKey
from partita.public.questions import Question, Type
from partita.public.records import ANSWERS, GroupedResult, QuantileValue, Summary, TableResult
from partita.public.release import Release, find_sum_view
from partita.public.results import AnyView
from partita.public.sums.view import SumView
from partita.public.tables.sums import TableSumView
from partita.public.views import MOST_BOXES, BoxView, View, count_boxes
from partita.service.access import CALLER
from partita.service.errors import Refusal
from partita.service.settings import Limits

# ---- prediction of work ----

# Of a column alone. Ranges are looked up in a sorted array.
_RANGE: Final = 2  # the value of one range of many, and as much again for its error
_LINE_CALL: Final = 500  # one call for many ranges, however few
_LINE_ANSWER: Final = 2_000  # one count with guaranteed bounds
_LINE_TERM: Final = 50  # each range of it
_LINE_NUMBERS: Final = 50  # so many released numbers are a unit more

# Of several columns. A box opens nodes of a tree or looks at cells, in proportion to what was released.
_BOX_CALL: Final = 1_000  # one call for many rows, however few; as much for each of a set of boxes
_BOX_ERROR_CALL: Final = 4_000
_BOX: Final = 5  # each row of a call
_BOX_ERROR: Final = 25
_BOX_NUMBERS: Final = 6_000  # so many released numbers are a unit more for each row
_ANSWER: Final = 10_000  # one count with the error of just that
_ANSWER_TERM: Final = 150
_ANSWER_NUMBERS: Final = 8
_SIDES: Final = 7_000  # what views of single columns say about a box; done for each of so many boxes at most
_MOST_SIDES: Final = 16
_SIDED: Final = (RankBoxesRelease, ViewedBoxesRelease)
_HALVINGS: Final = 4  # guaranteed bounds of a quantile: two ends, and two counts where each halving asks
_CURVE: Final = 2_000  # the distribution along a column, for each box
_CURVE_NUMBERS: Final = 4
_REGION: Final = 25_000  # a half-space, for each box
_REGION_NUMBERS: Final = 30
_MOMENTS: Final = 600_000  # a correlation or a line by two columns, beside the errors of so many boxes
_MOMENT_BOXES: Final = 700
_SUM: Final = 4  # a variance is made of a few answers
_QUERY: Final = 20  # each answer to a published query
_VALUE: Final = 5  # each made-up value: synthesize
_PAIR: Final = 1_200  # the dependence of two columns; 1,150 in a table of 8 columns, 350 to 550 in one of 24

_REMEMBERED: Final = 250  # guaranteed bounds of one of many groups, by a model
_TABLE_SUM: Final = 5_000  # a sum of one of many groups, by a model
_GROUP: Final = 5  # each group that is made, whether it is shown or not
_TWENTIETHS: Final = 20  # values of a cdf that names none
_BINS: Final = 12  # bins of a histogram that names no number


@final
@dataclass(frozen=True, eq=False)
class ReleaseSizes:
    """A release, and how many numbers were released for each of its views: looked up once."""

    release: Release

    def look_up(self) -> None:
        """Look them up now."""
        _ = self._numbers

    def numbers(self, view: AnyView | SumView) -> int:
        """How many numbers were released for a view."""
        return self._numbers[id(view)]

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(view): _released(view) for view in (*self.release.views, *self.release.sums)}


@final
@dataclass(frozen=True)
class WorkEstimate:
    """The work of questions to one release. With `at_most`, an upper bound that does not look at values."""

    facts: ReleaseSizes
    at_most: bool = False

    def of(self, question: Question, *, beta: bool = True) -> int:
        """The work of one question; `beta` says whether guaranteed bounds are asked for.

        A question that the release cannot answer is no work: it is refused with a reason later on.
        """
        return zero_if_refused(lambda: self._of(question, beta=beta))

    def _of(self, question: Question, *, beta: bool) -> int:
        """By what a kind of question gives; a kind needs no rule of its own."""
        result, wheres = question.kind.result, question.having(Type.CONDITIONS) or [{}]
        columns = question.having(Type.COLUMN)
        for shape in question.having(Type.HALF_SPACE):
            if shape is not None and isinstance(result, Summary):
                return self._summary(columns[0], wheres[0], shape.weights)
            if shape is not None:
                return self._region(shape.weights, wheres[0])
        if isinstance(result, GroupedResult):
            return self._groups(question, wheres, columns, beta=beta)
        if isinstance(result, Summary):
            return self._summary(columns[0], wheres[0])
        if isinstance(result, QuantileValue):
            return self.quantile(columns[0], wheres[0], beta=beta)
        if isinstance(result, TableResult):
            return self._table(question, result, columns, wheres[0])
        if len(columns) > 1:  # moments of two columns, by the counts of a few bins and of all pairs of them
            return _MOMENTS + self.rows(columns, wheres[0], _MOMENT_BOXES)
        # Several counts together are linear questions, with guaranteed bounds or without.
        linear = beta or len(wheres) > 1
        return sum(self.count(where, beta=linear, more=tuple(columns)) for where in wheres)

    def _groups(self, question: Question, wheres: list[Where], columns: list[str], *, beta: bool) -> int:
        """The work of all groups: counts together, other statistics and guaranteed bounds one by one."""
        keys, limit = question.having(Type.KEYS)[0], question.having(Type.LIMIT)[0]
        groups = number_of_groups(self.facts.release, question)
        shown = groups if limit is None else min(groups, limit)
        by = tuple(dict.fromkeys(key.column for key in keys))
        others = {name: each for name, each in wheres[0].items() if name not in by}
        if question.kind.name != "count_by":
            where = {**others, **dict.fromkeys(by, ""), **(wheres[1] if len(wheres) > 1 else {})}
            return groups * self._of_one(question.kind.name.removesuffix("_by"), columns, where)
        view = self._view(by, others)
        pieces = groups if isinstance(view, View) else groups * self._pieces(keys)
        answer = _ANSWER + self.facts.numbers(view) // _ANSWER_NUMBERS
        compared = min(shown, MOST_RANKED) if question.having(Type.ORDER)[0] is not None else 0
        # A model remembers the sides of boxes, of which groups have few.
        bounded = _REMEMBERED if isinstance(view, BoxView) and view.boxes.has_model else answer
        return self.rows(by, others, pieces) + _GROUP * groups + answer * compared + bounded * shown * beta

    def _of_one(self, statistic: str, columns: list[str], where: Where) -> int:
        """The work of the statistic of one group."""
        if statistic == "quantile":
            return self.quantile(columns[0], where, beta=False)
        if statistic == "share":
            return 3 * self.count(where, beta=False)
        if isinstance(find_sum_view(self.facts.release, columns[0], where, unless=""), TableSumView):
            return _TABLE_SUM
        return self._summary(columns[0], where)

    def _pieces(self, keys: Iterable[GroupKey]) -> int:
        """Of how many ranges a group is made up, on average: those of a weekday lie all over the column."""
        pieces: dict[str, int] = {}  # of two keys of a column, such as weekday and hour, the fewer
        for key in keys:
            number = estimate_groups(self.facts.release.domain_of(key.column), key)[1]
            pieces[key.column] = min(number, pieces.get(key.column, number))
        return math.prod(pieces.values())

    def _table(self, question: Question, table: TableResult, columns: list[str], where: Where) -> int:
        if table is ANSWERS:
            queries = self.facts.release.queries
            return 0 if queries is None else _QUERY * len(queries)
        values = [len(each) for each in question.having(Type.VALUES)]
        bins = [each or _BINS for each in question.having(Type.BINS)]
        if not table.cumulative:
            return self.rows(columns, where, math.prod(bins))
        if any(values):
            return self.cdf(columns[0], where, sum(values))
        return self.cdf(columns[0], where, _TWENTIETHS) + self.quantile(columns[0], where)

    def rows(self, columns: Iterable[str], where: Where, rows: int, *, errors: bool = True) -> int:
        """The work of counting many rows: bins, or ranges of a batch, each cut by all boxes."""
        view = self._view(columns, where)
        if isinstance(view, View):
            return _LINE_CALL + _RANGE * rows * (2 if errors else 1)
        more = self.facts.numbers(view) // _BOX_NUMBERS
        values = _BOX_CALL + rows * (_BOX + more)
        spread = _BOX_ERROR_CALL + rows * (_BOX_ERROR + more) if errors else 0
        return self._boxes(view, where) * (values + spread)

    def count(self, where: Where, *, beta: bool = True, more: tuple[str, ...] = ()) -> int:
        """The work of one count, with `beta` as one linear question; `more` are columns asked for besides."""
        if not where and not more:
            return _ANSWER
        if not beta and not isinstance(where, Either) and not any(map(is_compound, where.values())):
            return self.rows(more, where, 1)
        view = self._view(more, where)
        boxes, numbers = self._boxes(view, where), self.facts.numbers(view)
        if isinstance(view, View):
            return _LINE_ANSWER + _LINE_TERM * boxes + numbers // _LINE_NUMBERS
        sides = _SIDES * min(boxes, _MOST_SIDES) if isinstance(view.boxes, _SIDED) else 0
        return _ANSWER + _ANSWER_TERM * boxes + sides + numbers // _ANSWER_NUMBERS

    def cdf(self, column: str, where: Where, values: int) -> int:
        """The work of a distribution at some values."""
        return self._curve(column, where) + self.rows((column,), where, values)

    def quantile(self, column: str, where: Where, *, beta: bool = False) -> int:
        """The work of a quantile, or of a few of the same rows; `beta` asks for guaranteed bounds of one.

        Of several columns together these are found by halving the column, with counts in each step.
        """
        view, count = self._view((column,), where), self.count(where, more=(column,))
        if not beta or isinstance(view, View):
            return self._curve(column, where) + count
        halvings = view.domains[view.columns.index(column)].size.bit_length()
        return self._curve(column, where) + _HALVINGS * halvings * count

    def _curve(self, column: str, where: Where) -> int:
        """The work of the distribution along a column."""
        view = self._view((column,), where)
        if isinstance(view, View):
            return _LINE_ANSWER + self.facts.numbers(view) // _LINE_NUMBERS
        return self._boxes(view, where) * (_CURVE + self.facts.numbers(view) // _CURVE_NUMBERS)

    def dependence(self) -> int:
        """The work of the dependence of all pairs of columns; 0 if the release has no model of them."""
        view = self.facts.release.table
        return 0 if view is None else _PAIR * math.comb(len(view.columns), 2)

    def _region(self, columns: Iterable[str], where: Where) -> int:
        view = self._view(columns, where)
        return self._boxes(view, where) * (_REGION + self.facts.numbers(view) // _REGION_NUMBERS)

    def _summary(self, column: str, where: Where, shape: Collection[str] = ()) -> int:
        """The work of one number about a summed column, in a half-space over some columns if any."""
        view = find_sum_view(self.facts.release, column, {*where, *shape}, unless="")
        boxes = self._number({key: view.declared[key] for key in view.keys}, where)
        numbers = self.facts.numbers(view.view if isinstance(view, TableSumView) else view)
        if shape:
            return _SUM * boxes * (_REGION + numbers // _REGION_NUMBERS)
        return _SUM * (_ANSWER + _ANSWER_TERM * boxes + numbers // _ANSWER_NUMBERS)

    def _view(self, columns: Iterable[str], where: Where) -> AnyView:
        return self.facts.release.view(*dict.fromkeys([*columns, *where]))

    def _boxes(self, view: AnyView, where: Where) -> int:
        return self._number(dict(zip(view.columns, view.domains, strict=True)), where)

    def _number(self, declared: Mapping[str, Domain], where: Where) -> int:
        """How many boxes there are. A range is one; only sets of values make up more, and multiply."""
        if isinstance(where, Either):
            return MOST_BOXES if self.at_most else count_boxes(declared, where)
        sets = {column: asked for column, asked in where.items() if is_compound(asked)}
        most = math.prod(map(most_runs, sets.values()))
        return most if self.at_most or most <= 1 else count_boxes(declared, sets)


def most_runs(condition: object) -> int:
    """The largest number of ranges that a condition can mean.

    >>> most_runs(OneOf(("1", "2", "2"))), most_runs(Not(OneOf(("1", "3"))))
    (2, 3)
    """
    match condition:
        case OneOf(values):
            plain = {each for each in values if isinstance(each, str)}
            return len(plain) + sum(most_runs(each) for each in values if not isinstance(each, str))
        case AllOf(conditions):
            return sum(map(most_runs, conditions))
        case Not(opposite):
            return most_runs(opposite) + 1
    return 1


def number_of_groups(release: Release, question: Question) -> int:
    """At most how many groups a question has, before conditions on their columns take some away."""
    keys = question.having(Type.KEYS)[0]
    return math.prod(estimate_groups(release.domain_of(key.column), key)[0] for key in keys)


def zero_if_refused(predict: Callable[[], int]) -> int:
    """The predicted work; 0 if the release cannot answer, which raises an error later."""
    try:
        return predict()
    except InvalidParameter:
        return 0


def values_work(number: int) -> int:
    """The work of so many made-up values."""
    return _VALUE * number


def check_work(predicted: int, limits: Limits) -> None:
    """Refuse what would be more work than one request may be."""
    if predicted > limits.work:
        raise Refusal(
            413,
            "TooMuchWork",
            f"this is about {predicted:,} units of work, and {limits.work:,} are allowed in one request; "
            "ask for fewer values, bins or ranges at a time",
        )


def _released(view: AnyView | SumView) -> int:
    return sum(int(series.size) for series in form_of(view).released(view).parts().series.values())


# ---- threads that callers share ----

Made = TypeVar("Made")

_SMALL_THREADS: Final = 2
_LARGE_THREADS: Final = 2
"""Threads of each lane: few, as Python runs one at a time, and each more slows down small questions."""

_SHARE: Final = 1
"""Threads of a lane that one caller may have; the other thread is for other callers."""

_WAITING: Final = 8
"""Large requests of one caller that may wait: a queue against an early 429."""

_SMALL_WAITING: Final = 64
"""Small requests of one caller that may wait: a page sends a dozen, and people share addresses."""

_ALL_WAITING: Final = 512
"""Requests of all callers that may wait in a lane: memory against an early 503."""

_LATER: Final = {"Retry-After": "1"}


@final
class FairSemaphore:
    """A semaphore that callers share fairly: each has `share` places and a queue of `waiting` requests.

    Callers with waiting requests take turns. All of it happens in one event loop.
    """

    def __init__(self, *, places: int, share: int, waiting: int, all_waiting: int = _ALL_WAITING) -> None:
        self._free, self._share = places, share
        self._waiting, self._all_waiting = waiting, all_waiting
        self._taken: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, caller: str) -> None:
        """Take a place, in turn. Raises Refusal if this caller, or all together, have too many waiting."""
        if self._may_take(caller) and caller not in self._queues:
            self._take(caller)
            return
        self._check_queue(caller)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(caller)
            else:
                self._leave(caller, turn)
            raise

    def release(self, caller: str) -> None:
        """Give a place back; the next caller takes it."""
        self._free += 1
        self._taken[caller] -= 1
        if not self._taken[caller]:
            del self._taken[caller]
        self._call_next()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place for the caller of this request, for as long as the block runs."""
        caller = CALLER.get()
        await self.acquire(caller)
        try:
            yield
        finally:
            self.release(caller)

    def _may_take(self, caller: str) -> bool:
        return self._free > 0 and self._taken[caller] < self._share

    def _take(self, caller: str) -> None:
        self._free -= 1
        self._taken[caller] += 1

    def _check_queue(self, caller: str) -> None:
        if len(self._queues.get(caller, ())) >= self._waiting:
            raise Refusal(
                429, "TooManyQuestions", "too many questions of yours wait; ask again later", headers=_LATER
            )
        if sum(map(len, self._queues.values())) >= self._all_waiting:
            raise Refusal(503, "Busy", "the service has too much to do; ask again later", headers=_LATER)

    def _leave(self, caller: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(caller, ())
        if turn in queue:  # if not, a place became free in between, and `_call_next` took the turn out
            self._queues[caller].remove(turn)
            if not self._queues[caller]:
                del self._queues[caller]

    def _call_next(self) -> None:
        """Give free places to waiting callers; a caller that got one goes to the end of the queue."""
        caller = next((each for each in self._queues if self._may_take(each)), None)
        while caller is not None:
            turn = self._queues[caller].popleft()
            self._queues.move_to_end(caller)
            if not self._queues[caller]:
                del self._queues[caller]
            if not turn.done():
                self._take(caller)
                turn.set_result(None)
            caller = next((each for each in self._queues if self._may_take(each)), None)


@final
class WorkerPool:
    """A few threads behind a fair semaphore.

    A thread counts as taken until its work has really ended, also when its caller does not wait any more.
    Such work is told to stop, and does so at its next checkpoint (`partita.public.base`).
    """

    def __init__(self, *, most: int = 1, share: int | None = None, waiting: int = _ALL_WAITING) -> None:
        self._room = FairSemaphore(places=most, share=share or most, waiting=waiting)
        self._executor = ThreadPoolExecutor(most, thread_name_prefix="reading")
        self._stops: set[Stop] = set()
        self._ended = False

    async def run(self, work: Callable[[], Made]) -> Made:
        """Run the work in a thread and return its result; a cancelled request tells the work to stop."""
        caller, stop = CALLER.get(), Stop()
        await self._room.acquire(caller)
        if self._ended:
            self._room.release(caller)
            raise _ending()
        self._stops.add(stop)
        submitted = self._executor.submit(copy_context().run, run_stoppable, stop, work)
        loop = asyncio.get_running_loop()
        submitted.add_done_callback(lambda _: self._later(loop, caller, stop))
        return await _result(submitted, stop)

    def end(self) -> None:
        """Stop all running work and refuse new work; called once, when the service is about to stop."""
        self._ended = True
        for stop in self._stops:
            stop.set()

    def _later(self, loop: asyncio.AbstractEventLoop, caller: str, stop: Stop) -> None:
        """Called by the thread when the work has really ended: only then is its place free."""
        with suppress(RuntimeError):  # the loop is closed: the place is not needed any more
            loop.call_soon_threadsafe(self._done, caller, stop)

    def _done(self, caller: str, stop: Stop) -> None:
        self._stops.discard(stop)
        self._room.release(caller)


async def _result(submitted: Future[Made], stop: Stop) -> Made:
    try:
        return await asyncio.wrap_future(submitted)
    except asyncio.CancelledError:
        stop.set()
        raise
    except Stopped:
        raise _ending() from None


def _ending() -> Refusal:
    return Refusal(503, "Ending", "the service is about to end; ask again later", headers=_LATER)


@final
class Lanes:
    """Thread pools for small work and for large work, which do not wait for each other.

    One more thread opens release files, and one prepares live updates: both work for all callers at once, so
    neither counts as the share of one.
    """

    def __init__(self) -> None:
        self.small = WorkerPool(most=_SMALL_THREADS, share=_SHARE, waiting=_SMALL_WAITING)
        self.large = WorkerPool(most=_LARGE_THREADS, share=_SHARE, waiting=_WAITING)
        self.opening, self.live = WorkerPool(), WorkerPool()

    def lane(self, *, small: bool) -> WorkerPool:
        """The pool for small or for large work."""
        return self.small if small else self.large

    def end(self) -> None:
        """Stop large work, as the service is about to stop; small questions are still answered."""
        self.large.end()
        self.opening.end()
