"""A first walk through Partita: publish four columns of 200,000 people once, and ask about them forever.

The people are made up, from a hash, so that everybody sees the same ones. Only because they are
made up may the truth be printed beside the noisy answers. The noise is real: it differs from run
to run, and now and then an error bar misses.
"""

from __future__ import annotations

import hashlib
import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import fill

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import partita as pt
from partita.cli import main as command_line
from partita.public.report import chart

PEOPLE = 200_000
TOP_CODE = 150_000_00
FIRST_DAY, LAST_DAY = np.datetime64("1980-01-01"), np.datetime64("2026-12-31")
WIDTH = 96

SCHEMA: Mapping[str, pt.Domain] = {
    "age": pt.Integer(0, 120),
    "salary": pt.Integer(0, 2**32 - 1),
    "hired": pt.Date("1980-01-01", "2026-12-31"),
    "postcode": pt.Integer(0, 99_999),
}
VIEWS = [("age", "salary"), ("salary",), ("hired",), ("postcode",)]
SHARES = [2, 1, 1, 1]


def main() -> None:
    """The whole story, in the order in which a data steward and a reader would live it."""
    with tempfile.TemporaryDirectory(prefix="partita-demo-") as folder:
        people = Path(folder) / "people.parquet"
        table = made_up_people()
        pq.write_table(table, people)
        show_the_plan()

        ledger = pt.Ledger(Path(folder) / "budget.db")
        ledger.open("people", epsilon=2)
        path = Path(folder) / "people.release.parquet"
        publish_once(people, ledger, path)

        release = pt.load(path)
        ask_a_dozen(release, table)
        show_more(release, table, path)
        make_mistakes(release, people, ledger)


# --- the secret table ---------------------------------------------------------------------------


def made_up_people() -> pa.Table:
    """One row per person: an age, a salary in cents, a day of hire and a postcode; a few rows are bad."""
    years = np.rint(42 + 13 * normal("age")).clip(16, 97).astype(np.int64)
    return pa.table(
        {"age": ages(years), "salary": salaries(years), "hired": days_of_hire(), "postcode": postcodes()}
    )


def ages(years: np.ndarray) -> pa.Array:
    """Working ages, a few older, some not known, and some typed in wrong."""
    written = years.copy()
    written[::25_000] = 999
    return pa.array(written, mask=shares("age known") < 0.002)


def salaries(years: np.ndarray) -> pa.Array:
    """Yearly salaries in cents: rising until 55, with heaps at round thousands, top-coded, some not known."""
    usual = 36_000_00 * np.exp(0.02 * (np.minimum(years, 55) - 42))
    cents = np.rint(usual * np.exp(0.4 * normal("salary"))).astype(np.int64)
    heaps = shares("rounded") < 0.3
    cents[heaps] = (cents[heaps] + 500_00) // 1_000_00 * 1_000_00
    return pa.array(np.minimum(cents, TOP_CODE), mask=shares("salary known") < 0.001)


def days_of_hire() -> pa.Array:
    """Days as text, mostly of late years; a few are no days at all."""
    back = (np.sqrt(shares("hired")) * 16_000).astype(np.int64)
    days = np.datetime_as_string(LAST_DAY - (16_000 - back)).astype(object)
    days[shares("hire date readable") < 0.001] = "next spring"
    return pa.array(days.tolist())


def postcodes() -> pa.Array:
    """Five digits as text: forty towns, the largest ones first, and codes around each."""
    town = (40 * shares("town") ** 3).astype(np.int64)
    code = (town * 7_919 + 10_115 + (60 * shares("street") ** 2).astype(np.int64)) % 100_000
    return pa.array([f"{each:05d}" for each in code.tolist()])


def shares(label: str) -> np.ndarray:
    """A number strictly between 0 and 1 for each person, the same in every run."""
    words = np.frombuffer(hashlib.shake_256(label.encode()).digest(4 * PEOPLE), dtype=np.uint32)
    return (words + 0.5) / 2**32


def normal(label: str) -> np.ndarray:
    """A standard normal number for each person."""
    return np.sqrt(-2 * np.log(shares(f"{label} radius"))) * np.cos(2 * np.pi * shares(f"{label} angle"))


# --- publishing ---------------------------------------------------------------------------------


def show_the_plan() -> None:
    """Before any data is touched: which mechanism, and how exact the answers will be."""
    heading("1. The secret table, and what is public about it")
    say(
        f"{PEOPLE:,} made-up people, one row each. Public, and declared without a look at the data: the "
        "columns, their bounds, and epsilon. A plan follows from these alone, and from a guess of the "
        "number of rows:"
    )
    plan = pt.plan(SCHEMA, views=VIEWS, shares=SHARES, epsilon=1, rows=PEOPLE)
    print(f"\n{'view':<14} {'mechanism':<12} {'epsilon':>7} {'expected error':>15}   domains")
    for view, line in zip(plan.request.views, plan.rows(), strict=True):
        expected = "unknown" if line["error"] is None else f"{line['error']:,.0f}"
        public = f"{view.name:<14} {line['mechanism']:<12} {line['epsilon']:>7} {expected:>15}"
        print(f"{public}   {' x '.join(map(str, view.domains))}")


def publish_once(people: Path, ledger: pt.Ledger, path: Path) -> None:
    """Four views of the same people, one of them of two columns together: one debit, one file."""
    heading("2. One release, paid for once")
    release = pt.publish(
        people,
        SCHEMA,
        views=VIEWS,
        shares=SHARES,
        epsilon=1,
        ledger=ledger,
        dataset="people",
        path=path,
    )
    [entry] = ledger.entries("people")
    say(in_words(release.guarantee))
    say(
        f"Ledger: {entry.charged} debited for {entry.what!r}, {ledger.balance('people').left} left of "
        f"{ledger.balance('people').total}. The file has {path.stat().st_size:,} bytes; anybody may copy it, "
        "and what is asked of it costs nothing."
    )
    say(
        "Age and salary are published together, for boxes, and salary once more by itself: a question is "
        "answered by the view of fewest columns that has all it asks for."
    )


# --- asking -------------------------------------------------------------------------------------


def ask_a_dozen(release: pt.Release, table: pa.Table) -> None:
    """Counts of ranges, single values and special cells, with both kinds of error bars."""
    heading("3. A dozen questions, and two boxes")
    age, salary = (table[name].to_numpy(zero_copy_only=False) for name in ("age", "salary"))
    hired, code = days_as_numbers(table["hired"]), table["postcode"].to_numpy().astype(np.int64)
    asked: list[tuple[str, dict[str, object], np.ndarray]] = [
        ("age 30 to 39", {"age": (30, 39)}, (age >= 30) & (age <= 39)),
        ("age 18", {"age": 18}, age == 18),
        ("age 65 and more", {"age": (65, None)}, age >= 65),
        ("age not known", {"age": pt.NULL}, np.isnan(age)),
        ("age above 120", {"age": pt.ABOVE}, age > 120),
        ("salary 30,000 to 40,000", {"salary": (30_000_00, 40_000_00)}, within(salary, 30_000_00, 40_000_00)),
        ("salary exactly 36,000", {"salary": 36_000_00}, salary == 36_000_00),
        ("salary 100,000 and more", {"salary": (100_000_00, None)}, salary >= 100_000_00),
        (
            "hired in 2024",
            {"hired": ("2024-01-01", "2024-12-31")},
            within(hired, *days("2024-01-01", "2024-12-31")),
        ),
        ("hired before 2000", {"hired": (None, "1999-12-31")}, hired <= days("1999-12-31")[0]),
        ("hire date unreadable", {"hired": pt.INVALID}, np.isnan(hired)),
        ("postcode 10000 to 19999", {"postcode": (10_000, 19_999)}, within(code, 10_000, 19_999)),
        (
            "30 to 39 and 50,000 or more",
            {"age": (30, 39), "salary": (50_000_00, None)},
            within(age, 30, 39) & (salary >= 50_000_00),
        ),
        (
            "50 to 64 below 20,000",
            {"age": (50, 64), "salary": (0, 19_999_99)},
            within(age, 50, 64) & within(salary, 0, 19_999_99),
        ),
    ]
    print(f"{'':<27} {'answer':>8} {'± 95%':>8}   {'95% interval':^19}   {'guaranteed':^19} {'(truth)':>8}")
    for label, where, truth in asked:
        answer = release.count(where)
        bars = f"{pair(answer.interval(0.95))}   {pair(answer.worst(0.05))}"
        print(f"{label:<27} {answer:>8,.0f} {1.96 * answer.error:>8,.1f}   {bars} {int(truth.sum()):>8,}")
    say(
        "The interval is a calibrated model; each guaranteed bound fails with probability 5% at most, "
        "whatever the data. The truth can be shown only because the people are made up: never print it "
        "beside a real release."
    )


def show_more(release: pt.Release, table: pa.Table, path: Path) -> None:
    """Quantiles, a table of boxes, a difference, a picture, and the same from a shell."""
    heading("4. Quantiles, a table, a difference, a picture, and a shell")
    show_quantiles(release, table)
    show_bands(release)
    more = release.difference({"age": (40, 49)}, {"age": (30, 39)})
    say(f"There are {more:,.0f} ± {1.96 * more.error:,.1f} more people of 40 to 49 than of 30 to 39.")
    print()
    print("\n".join(chart(release.slice("age"), WIDTH, 12)))
    asked = ["count where age between 20 and 29", "count where age < 30 and salary > 5e6"]
    print("\nThe same from a shell, where a salary is in cents as in the table, so that 5e6 is 50,000:")
    print('$ partita query people.release.parquet "{}" \\\n      "{}"'.format(*asked))
    sys.stdout.flush()
    command_line(["query", str(path), *asked])


def show_quantiles(release: pt.Release, table: pa.Table) -> None:
    """Salaries of everybody, and of people of some ages only."""
    age, salary = (table[name].to_numpy(zero_copy_only=False) for name in ("age", "salary"))
    asked: list[tuple[str, float, dict[str, object], np.ndarray]] = [
        ("first quartile", 0.25, {}, salary >= 0),
        ("median", 0.5, {}, salary >= 0),
        ("90% quantile", 0.9, {}, salary >= 0),
        ("median, age 20 to 29", 0.5, {"age": (20, 29)}, within(age, 20, 29)),
        ("median, age 50 to 59", 0.5, {"age": (50, 59)}, within(age, 50, 59)),
    ]
    print(f"{'salaries':<24} {'answer':>10}   {'95% interval':^23} {'(truth)':>11}")
    for label, q, where, among in asked:
        answer, known = release.quantile("salary", q, where), np.sort(salary[among & (salary >= 0)]) / 100
        low, high = (int(end) / 100 for end in answer.interval(0.95))
        bars = f"{answer.value / 100:>10,.2f}   {low:>10,.2f} .. {high:<9,.2f}"
        print(f"{label:<24} {bars} {known[math.ceil(q * len(known)) - 1]:>11,.2f}")


def show_bands(release: pt.Release) -> None:
    """Boxes side by side: people by bands of age and of salary."""
    lows, highs = [0, 20_000_00, 40_000_00, 60_000_00], [19_999_99, 39_999_99, 59_999_99, None]
    heads = ("below 20,000", "below 40,000", "below 60,000", "60,000 or more")
    print(f"\n{'age':<10}", *(f"{head:>16}" for head in heads))
    for first, last in ((18, 29), (30, 39), (40, 49), (50, 64)):
        found = release.counts(age=(first, last), salary=(lows, highs))
        cells = (
            f"{value:,.0f} ± {1.96 * error:,.0f}"
            for value, error in zip(found.values, found.error, strict=True)
        )
        print(f"{f'{first} to {last}':<10}", *(f"{cell:>16}" for cell in cells))


def make_mistakes(release: pt.Release, people: Path, ledger: pt.Ledger) -> None:
    """An error says what to do, costs nothing, and never shows a value of the data."""
    heading("5. Four mistakes")
    attempt(
        "overspending",
        lambda: pt.publish(people, SCHEMA, views=VIEWS, epsilon="1.5", ledger=ledger, dataset="people"),
    )
    attempt("a wrong column", lambda: release.count(salery=(0, 10)))
    attempt("columns that are apart", lambda: release.count(age=(30, 39), postcode=(10_000, 19_999)))
    attempt("a bound that is none", lambda: release.count(age=("young", None)))
    say(f"Still {ledger.balance('people').left} left.")


# --- words and layout ---------------------------------------------------------------------------


def within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return (values >= low) & (values <= high)


def days(*texts: str) -> list[float]:
    return [float((np.datetime64(text) - FIRST_DAY).astype(np.int64)) for text in texts]


def days_as_numbers(texts: pa.ChunkedArray) -> np.ndarray:
    """Days since the first one; NaN where the text is no day."""
    return np.array([days(text)[0] if text[0].isdigit() else math.nan for text in texts.to_pylist()])


def in_words(guarantee: pt.Guarantee | None) -> str:
    """What the guarantee promises, for somebody who has not met epsilon."""
    if guarantee is None:
        return "Guarantee: none."
    return (
        f"Guarantee: {guarantee}. Whether any one {guarantee.unit} is in the data or not changes the "
        f"probability of any output by a factor of at most {math.exp(guarantee.epsilon):.2f}."
    )


def attempt(label: str, mistake: Callable[[], object]) -> None:
    """Make a mistake and show what Partita says."""
    try:
        mistake()
    except pt.PartitaError as error:
        say(f"{label}: {type(error).__name__}: {error}")


def pair(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:>8,.0f} .. {bounds[1]:>7,.0f}"


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def say(text: str) -> None:
    print(fill(text, WIDTH))


if __name__ == "__main__":
    main()
