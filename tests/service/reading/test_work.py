"""How much work a question is follows from the request and public facts, and is bounded before it begins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.answer import Answers
from partita.public.base import Stop, Stopped, checkpoint, run_stoppable
from partita.public.conditions import OneOf
from partita.public.grammar import parse_question
from partita.public.questions import HalfSpaceText, Question
from partita.public.release import Release
from partita.service.access import CALLER
from partita.service.errors import Refusal
from partita.service.reading.work import (
    FairSemaphore,
    Lanes,
    ReleaseSizes,
    WorkerPool,
    WorkEstimate,
    check_work,
)
from partita.service.settings import Limits
from tests.questions import cdf, count, heat_map, histogram, quantile
from tests.table_releases import table_release

from .conftest import Client, served

LIMITS = Limits(rate=10**6, burst=10**6)
EVEN = ", ".join(map(str, range(0, 62, 2)))
AGES = ", ".join(map(str, range(0, 100, 2)))
BOXES = f"age in ({EVEN}) and town in ({EVEN})"
"""961 boxes: 31 single ages by 31 single towns."""

PATIENCE = 600
"""Seconds after which something waits for ever."""


@pytest.fixture(scope="module")
def crowd() -> Release:
    """Three columns together, few people."""
    rows = np.arange(3_000)
    people = {"age": rows * 7 % 100, "town": rows * 13 % 64, "salary": rows * 37 % 1024}
    schema = {"age": pt.Integer(0, 99), "town": pt.Integer(0, 63), "salary": pt.Integer(0, 1023)}
    return pt.publish(people, schema, epsilon=4, views=[("age",), ("age", "town", "salary")])


@pytest.fixture(scope="module")
def asking(crowd: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a service with that release and the usual limits."""
    folder = tmp_path_factory.mktemp("crowd")
    crowd.save(folder / "crowd.release.parquet")
    client = Client(served(folder, limits=LIMITS))
    yield client
    client.close()


def test_sums_over_half_spaces_are_answered_and_are_work(tmp_path: Path) -> None:
    """They are asked for like counts, of a release that has sums and no counts of its keys, too."""
    rows = np.arange(2_000)
    visits = {"age": rows * 7 % 100, "stay": rows * 13 % 20, "cost": rows * 37 % 1024}
    schema = {"age": pt.Integer(0, 99), "stay": pt.Integer(0, 19), "cost": pt.Integer(0, 1023)}
    release = pt.publish(visits, schema, epsilon=4, by=["age", "stay"], sums=["cost"])
    release.save(tmp_path / "visits.release.parquet")
    text = "sum of cost where age + 2*stay <= 60"
    client = Client(served(tmp_path, limits=LIMITS))
    shape = pt.HalfSpace({"age": 1, "stay": 2}, at_most=60)

    shown = client.get("/releases/visits/sum", column="cost", where="age + 2*stay <= 60")
    client.close()

    assert shown.status_code == 200
    assert shown.json()["value"] == release.sum("cost", region=shape).value
    estimate = WorkEstimate(ReleaseSizes(release))
    plain = parse_question("sum of cost where age <= 60")
    assert estimate.of(parse_question(text)) > estimate.of(plain) > 0


def members(*values: int) -> OneOf:
    return OneOf(tuple(map(str, values)))


BOMBS: list[tuple[str, dict[str, Any]]] = [
    ("histogram", {"column": "salary", "bins": 1024, "where": BOXES}),
    ("histogram2d", {"x": "salary", "y": "town", "x_bins": 1024, "y_bins": 4, "where": f"age in ({AGES})"}),
    ("cdf", {"column": "salary", "at": list(range(1000)), "where": BOXES}),
    ("ask", {"q": f"histogram of salary in 1024 bins where {BOXES}"}),
    ("view.json", {"x": "salary", "bins": 1024, "where": BOXES}),
    ("view.csv", {"x": "salary", "bins": 1024, "where": BOXES}),
    ("view.json", {"x": "salary", "y": "town", "bins": 64, "where": f"age in ({AGES})"}),
    ("count", {"where": f"2*salary + 3*age <= 100 and town in ({EVEN}) and age in ({EVEN})"}),
]


@pytest.mark.parametrize(("kind", "asked"), BOMBS)
def test_limits_that_multiply_are_bounded_together(asking: Client, kind: str, asked: dict[str, Any]) -> None:
    """Boxes and bins are each within their limits, and their product is refused with 413."""
    answer = asking.get(f"/releases/crowd/{kind}", **asked)

    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "TooMuchWork")


@pytest.mark.parametrize("errors", [False, True])
def test_a_batch_times_its_boxes_is_bounded(asking: Client, errors: bool) -> None:
    """Arrays of ranges go with a set of values in each of two other columns: 961 boxes for each range."""
    towns, ages = {"in": list(range(0, 62, 2))}, {"in": list(range(0, 62, 2))}
    ranges = {"low": list(range(2_000)), "high": list(range(2_000))}
    body = {"where": {"salary": ranges, "town": towns, "age": ages}, "errors": errors}

    answer = asking.post("/releases/crowd/counts", json=body)

    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "TooMuchWork")


def test_work_is_refused_before_any_of_it_is_done(asking: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release is not asked."""
    monkeypatch.setattr(Release, "histogram", lambda *_, **__: pytest.fail("work was done"))

    assert asking.get("/releases/crowd/histogram", column="salary", bins=1024, where=BOXES).status_code == 413


def test_values_that_lie_side_by_side_are_one_box(asking: Client) -> None:
    """Work goes by boxes, not by how many values were listed."""
    ages = ", ".join(map(str, range(90)))

    answer = asking.get("/releases/crowd/histogram", column="salary", bins=64, where=f"age in ({ages})")

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (histogram("salary", 10, {"age": members(1, 3)}), histogram("salary", 20, {"age": members(1, 3)})),
        (histogram("salary", 10, {"age": members(1, 3)}), histogram("salary", 10, {"age": members(1, 3, 5)})),
        (
            heat_map(("salary", "town"), (4, 4), {"age": members(1, 3)}),
            heat_map(("salary", "town"), (4, 8), {"age": members(1, 3)}),
        ),
        (cdf("salary", ("1",), {"age": members(1, 3)}), cdf("salary", ("1",), {"age": members(1, 3, 5)})),
        (cdf("salary", ("1",), {"age": members(1)}), cdf("salary", ("1", "2"), {"age": members(1)})),
        (
            quantile(Fraction(1, 2), "salary", {"age": members(1, 3)}),
            quantile(Fraction(1, 2), "salary", {"age": members(1, 3, 5)}),
        ),
        (
            count(
                {"town": members(1)}, HalfSpaceText({"age": Fraction(1), "salary": Fraction(2)}, Fraction(9))
            ),
            count(
                {"town": members(1, 3)},
                HalfSpaceText({"age": Fraction(1), "salary": Fraction(2)}, Fraction(9)),
            ),
        ),
    ],
)
def test_work_grows_with_each_of_its_factors(crowd: Release, less: Question, more: Question) -> None:
    """More bins, values or boxes are predicted to be more work; an upper bound is one."""
    exact, at_most = WorkEstimate(ReleaseSizes(crowd)), WorkEstimate(ReleaseSizes(crowd), at_most=True)

    assert 0 < exact.of(less) < exact.of(more)
    assert exact.of(more) <= at_most.of(more)


def test_twice_the_boxes_are_twice_the_work_of_a_histogram(crowd: Release) -> None:
    """WorkEstimate work is proportional to the product."""
    one, two = (
        WorkEstimate(ReleaseSizes(crowd)).of(histogram("salary", 100, {"age": members(*ages)}))
        for ages in ((1, 3), (1, 3, 5, 7))
    )

    assert two == 2 * one


def test_what_a_release_cannot_answer_is_no_work(crowd: Release) -> None:
    """It is refused with a reason of its own, not as too much."""
    assert WorkEstimate(ReleaseSizes(crowd)).of(histogram("nowhere", 10, {})) == 0


def test_a_count_is_small_and_a_large_set_of_boxes_is_not(crowd: Release) -> None:
    """Small counts stay in their lane, whatever else is asked."""
    predicted = WorkEstimate(ReleaseSizes(crowd), at_most=True)
    ages, towns = members(*range(0, 62, 2)), members(*range(0, 62, 2))

    assert predicted.of(count({"age": members(1, 3)}), beta=False) <= LIMITS.small_work
    assert predicted.of(count({"age": ages, "town": towns}), beta=False) > LIMITS.small_work


def test_guaranteed_bounds_of_a_quantile_are_not_small(crowd: Release) -> None:
    """They are found by halving the column, and each step counts on both of its sides."""
    predicted = WorkEstimate(ReleaseSizes(crowd), at_most=True)
    median = quantile(Fraction(1, 2), "salary", {"town": members(1)})
    counted = count({"town": members(1), "salary": members(1)})

    assert predicted.of(median, beta=False) <= LIMITS.small_work < predicted.of(median, beta=True)
    assert predicted.of(median, beta=True) >= 2 * 2 * 10 * predicted.of(counted, beta=True)


def test_a_few_boxes_are_compared_with_the_views_of_their_sides(crowd: Release) -> None:
    """That is most of the work of a count, up to a number of boxes, so a few of them are not small."""
    predicted = WorkEstimate(ReleaseSizes(crowd), at_most=True)
    one, few = (
        predicted.of(count({"town": members(*range(0, 2 * number, 2)), "age": members(1)}), beta=True)
        for number in (1, 8)
    )

    assert one <= LIMITS.small_work < 2 * LIMITS.small_work < few


def test_the_limit_is_the_last_that_is_allowed() -> None:
    """One more unit is refused."""
    check_work(7, Limits(work=7))

    with pytest.raises(Refusal, match="about 8 units of work, and 7 are allowed"):
        check_work(8, Limits(work=7))


def test_work_stops_at_a_checkpoint() -> None:
    """Once it is told to, and not before."""
    stop, passed = Stop(), []

    def work() -> None:
        for number in range(5):
            checkpoint()
            passed.append(number)
            if number == 2:
                stop.set()

    with pytest.raises(Stopped):
        run_stoppable(stop, work)

    assert passed == [0, 1, 2]
    checkpoint()


@pytest.mark.parametrize("question", ["histogram", "quantile", "worst", "region", "synthesize", "heat"])
def test_long_loops_have_checkpoints(crowd: Release, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that was stopped ends within the loop over boxes, in chunks, or over views."""
    stop, boxes = Stop(), type(crowd.views[1].boxes)  # type: ignore[union-attr]
    where = {"age": frozenset(range(0, 20, 2))}
    shape = pt.HalfSpace({"town": 1, "salary": 1}, at_most=40)
    median = crowd.quantile("salary", 0.5, where={"age": (1, 3)})
    work: Callable[[], object] = {
        "histogram": lambda: crowd.histogram("salary", 8, where=where),
        "heat": lambda: crowd.histogram("salary", "town", (64, 64), where={"age": (1, 3)}),
        "quantile": lambda: crowd.quantile("salary", 0.5, where=where),
        "worst": lambda: median.worst(0.05),
        "region": lambda: crowd.count(where, region=shape),
        "synthesize": lambda: crowd.synthesize(10),
    }[question]
    names = {"quantile": "along", "worst": "answer", "region": "region", "synthesize": "points"}
    name = names.get(question, "counts")
    real, calls = getattr(boxes, name), list[str]()

    def stopping(*arguments: Any) -> Any:
        calls.append(name)
        stop.set()
        return real(*arguments)

    monkeypatch.setattr(boxes, name, stopping)

    with pytest.raises(Stopped):
        run_stoppable(stop, lambda: (work(), crowd.synthesize(1)))
    assert len(calls) <= (2 if question == "worst" else 1)  # a step of halving counts on both of its sides


def asks(caller: str, work: Any) -> Any:
    """The work as a task of a caller."""

    async def asked() -> Any:
        CALLER.set(caller)
        return await work()

    return asyncio.create_task(asked())


async def until(reached: Any) -> None:
    """Wait for something that other tasks do."""
    async with asyncio.timeout(PATIENCE):
        while not reached():
            await asyncio.sleep(0.001)


def test_a_thread_is_taken_until_its_work_has_really_ended() -> None:
    """Whoever stops waiting does not free it: at no time is more work going on than there are threads."""
    threads, free, begun = WorkerPool(most=1), threading.Event(), list[int]()

    def work(number: int) -> int:
        begun.append(number)
        free.wait(PATIENCE)
        return number

    async def lived() -> list[int]:
        first = asks("a", lambda: threads.run(lambda: work(1)))
        await until(lambda: begun == [1])
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        second = asks("b", lambda: threads.run(lambda: work(2)))
        for _ in range(20):
            await asyncio.sleep(0)
        between = list(begun)
        free.set()
        assert await second == 2
        return between

    assert asyncio.run(lived()) == [1]
    assert begun == [1, 2]


def test_work_that_nobody_waits_for_is_told_to_stop() -> None:
    """It ends at its next checkpoint."""
    threads, ended, begun = WorkerPool(most=1), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            while True:
                checkpoint()
        except Stopped:
            ended.set()
            raise

    async def lived() -> None:
        task = asks("a", lambda: threads.run(work))
        await until(begun.is_set)
        task.cancel()
        await until(ended.is_set)
        assert await threads.run(lambda: 7) == 7

    asyncio.run(lived())


def test_all_work_stops_when_the_service_ends() -> None:
    """What goes on ends at its next checkpoint, what waits does not begin, and both are told why."""
    lanes, begun = Lanes(), threading.Event()

    def work() -> None:
        begun.set()
        while True:
            checkpoint()

    async def lived() -> list[str]:
        tasks = [asks("a", lambda: lanes.large.run(work)) for _ in range(2)]
        await until(begun.is_set)
        lanes.end()
        async with asyncio.timeout(PATIENCE):
            ended: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
        return [refusal.kind for refusal in ended]

    assert asyncio.run(lived()) == ["Ending", "Ending"]


def test_callers_take_turns() -> None:
    """Whoever asks for ten things gets one place, then the others get theirs."""

    async def lived() -> tuple[list[str], list[str]]:
        room, order = FairSemaphore(places=2, share=1, waiting=10), list[str]()

        async def one(caller: str) -> None:
            await room.acquire(caller)
            order.append(caller)

        tasks = [asyncio.create_task(one(caller)) for caller in "aaaaabcb"]
        await asyncio.sleep(0)
        before = list(order)
        for caller in "abcaba":
            room.release(caller)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return before, order

    assert asyncio.run(lived()) == (["a", "b"], ["a", "b", "a", "c", "b", "a", "a"])


def test_a_queue_has_an_end_for_each_caller_and_for_all() -> None:
    """The first who asks for too much gets 429; once all queues together are full, everybody gets 503."""

    async def lived() -> list[int]:
        room = FairSemaphore(places=1, share=1, waiting=2, all_waiting=3)
        tasks = [asyncio.create_task(room.acquire(caller)) for caller in "aaaabb"]
        await asyncio.sleep(0)
        statuses = [task.exception().status for task in tasks if task.done() and task.exception()]  # type: ignore[union-attr]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return statuses

    assert asyncio.run(lived()) == [429, 503]


def test_whoever_gives_up_waiting_leaves_no_trace() -> None:
    """A place that was given at that very moment is given on."""

    async def lived() -> bool:
        room = FairSemaphore(places=1, share=1, waiting=5)
        await room.acquire("a")
        waits = [asyncio.create_task(room.acquire(caller)) for caller in "bc"]
        await asyncio.sleep(0)
        room.release("a")
        waits[0].cancel()
        await asyncio.sleep(0)
        await waits[1]
        room.release("c")
        async with asyncio.timeout(PATIENCE):
            await room.acquire("d")
        return waits[0].cancelled()

    assert asyncio.run(lived())


def test_whoever_gives_up_as_a_place_becomes_free_is_cancelled() -> None:
    """The place stays free, and nothing but the cancellation reaches who gave up."""

    async def lived() -> bool:
        room = FairSemaphore(places=1, share=1, waiting=5)
        await room.acquire("a")
        wait = asyncio.create_task(room.acquire("b"))
        await asyncio.sleep(0)
        wait.cancel()
        room.release("a")
        await asyncio.wait([wait])
        async with asyncio.timeout(PATIENCE):
            await room.acquire("c")
        return wait.cancelled()

    assert asyncio.run(lived())


def test_small_questions_do_not_wait_for_large_ones(tmp_path: Path) -> None:
    """With every thread for large work taken, a small one is done at once."""
    lanes, free = Lanes(), threading.Event()

    async def lived() -> int:
        large = [asks(caller, lambda: lanes.large.run(lambda: free.wait(PATIENCE))) for caller in "abcdefgh"]
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            small = await asks("a", lambda: lanes.small.run(lambda: 7))
        free.set()
        await asyncio.gather(*large)
        return int(small)

    assert asyncio.run(lived()) == 7


def test_long_work_for_one_holds_no_lock_that_others_need() -> None:
    """While the errors of one answer are worked out in a thread, those of another are there at once."""
    begun, free = threading.Event(), threading.Event()

    def slow() -> Any:
        begun.set()
        free.wait()
        return np.ones(1)

    other = threading.Thread(target=lambda: Answers(np.zeros(1), slow).error)
    other.start()
    begun.wait(PATIENCE)
    done = threading.Event()

    def quick() -> None:
        _ = Answers(np.zeros(1), lambda: np.ones(1)).error
        done.set()

    small = threading.Thread(target=quick)
    small.start()
    was_done = done.wait(PATIENCE / 2)
    free.set()
    other.join()
    small.join()

    assert was_done


@pytest.mark.parametrize(("path", "name"), [(".json", "report"), ("/report.txt", "report")])
def test_what_has_no_parameters_is_made_once(
    path: str, name: str, crowd: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters that mean nothing, and another port in the name of the host, do not have it made again."""
    crowd.save(tmp_path / "crowd.release.parquet")
    client, real, made = Client(served(tmp_path, limits=LIMITS)), getattr(Release, name), list[str]()

    def counting(self: Release, *arguments: Any) -> Any:
        made.append(name)
        return real(self, *arguments)

    monkeypatch.setattr(Release, name, counting)
    answers = [
        client.send("GET", f"/releases/crowd{path}?x={number}", headers={"Host": f"localhost:{number}"})
        for number in range(1, 4)
    ]
    client.close()

    assert [answer.status_code for answer in answers] == [200] * 3
    assert made == [name]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("count by town, rooms", 5_000, 25_000),
        ("count by town, rooms order by count desc limit 3", 20_000, 200_000),
        ("mean of pay by rooms", 20_000, 200_000),
        ("count by bins(pay, 3000), town", 100_000, 6_000_000),
        ("count where town != Rome or rooms = 3", 10_000, 100_000),
        ("count by nothing", 0, 0),
        ("correlation of age, pay", 100_000, 6_000_000),
        ("share where pay >= 10 by town, rooms", 100_000, 2_000_000),
    ],
)
def test_the_work_of_groups_follows_their_number(text: str, least: int, most: int) -> None:
    """Counts are made together; what is made one by one, or compared, is multiplied."""
    facts = ReleaseSizes(table_release())

    predicted = WorkEstimate(facts).of(parse_question(text), beta=False)
    assert least <= predicted <= most
    assert predicted <= WorkEstimate(facts, at_most=True).of(parse_question(text), beta=False)


def test_two_units_of_a_column_are_no_more_pieces_than_one() -> None:
    """A weekday at an hour is in as many pieces as weeks, not in weeks times days; it stays in the limits."""
    hours = pt.Timestamp("2026-01-01", "2026-12-31T23:00", "1h")
    town = pt.Category(["Rome", "Bari"])
    release = pt.publish({"seen": [], "town": []}, {"seen": hours, "town": town}, epsilon=1)
    work = WorkEstimate(ReleaseSizes(release))

    both = work.of(parse_question("count by town, weekday(seen), hour(seen)"), beta=False)
    assert both <= 24 * work.of(parse_question("count by town, weekday(seen)"), beta=False)
    assert both <= Limits().work
