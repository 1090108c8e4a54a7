"""A subset of SQL is translated into questions of the language, and everything else is refused by name."""

from __future__ import annotations

import pytest

from partita.errors import InvalidParameter
from partita.public.sql import parse_sql
from tests.table_releases import table_release


def translated(text: str) -> list[str]:
    """The questions of a statement."""
    statement = parse_sql(text, ["dest", "Delay", "when", "order"])
    return [statement.question(each) for each in statement.statistics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select count(*) from release", ["count"]),
        ("SELECT COUNT(1) FROM release;", ["count"]),
        ("select avg(delay) d, sum(delay) from release", ["mean of 'Delay'", "sum of 'Delay'"]),
        ("select quantile(delay, .9) from release", ["quantile .9 of 'Delay'"]),
        ("select median(delay), stddev(delay) from release", ["median of 'Delay'", "std of 'Delay'"]),
        ("select count(*) from release where delay > 15", ["count where 'Delay' > 15"]),
        (
            "select count(*) from release where dest in ('A', 'L''Aquila') and delay between -5 and 1.5",
            ["count where 'dest' in ('A', 'L''Aquila') and 'Delay' between -5 and 1.5"],
        ),
        (
            "select count(*) from release where not (dest <> 'A' or delay is not null) and \"order\" is null",
            ["count where not (('dest' != 'A' or 'Delay' is not null)) and 'order' is null"],
        ),
        (
            "select count(*) from release where \"when\" >= date '2013-01-01' and dest not in ('A')",
            ["count where 'when' >= '2013-01-01' and not ('dest' in ('A'))"],
        ),
        (
            'select month("when") m, count(*) from release group by dest, date_trunc(\'month\', "when")',
            ["count by 'dest', month('when')"],
        ),
        (
            "select dest as d, bins(delay, 5), count(*) from release group by 2, d",
            ["count by bins('Delay', 5), 'dest'"],
        ),
    ],
)
def test_statements_become_questions(text: str, expected: list[str]) -> None:
    """Capitals do not matter for words and columns; names and text are quoted, numbers stay as they are."""
    assert translated(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "sql must have select at character 1, got 'the end'; select keys, count"),
        ("select * from release", "list keys and statistics at character 8, got '\\*'"),
        ("select distinct dest from release", "sql must do without distinct at character 8"),
        ("select max(delay) from release", "do without max at character 8, got 'max'; ask for quantile"),
        ("select count(dest) from release", "sql must have count\\(\\*\\) at character 14, got 'dest'"),
        ("select count(*) from flights", "sql must select from release at character 22, got 'flights'"),
        ("select count(*) filter (where delay > 3) from release", "do without filter .* into where"),
        ("select sum(case when delay > 3 then 1 end) from release", "do without case at character 12"),
        ("select extract(month from day), count(*) from release group by 1", "group by month\\(column\\)"),
        ("select 100.0 * count(*) from release", "do without arithmetic at character 8, got '100.0'"),
        ("select r.dest, count(*) from release r group by 1", "do without names of tables"),
        ("select count(*) from release; select 1", "be one statement at character 31"),
        ("select count(*) from release -- all", "leave comments out"),
        ("select count(*) from release group by all", "do without all .* name the keys"),
        ("select corr(delay, fare) from release", "ask release.correlation"),
        ('select count(*) from release where dest = "A"', "double quotes are around columns"),
        ("select count(*) from release join x", "do without join .* register the release in DuckDB"),
        ("select dest, count(*) from release group by dest having 1", "sql must do without having"),
        (
            "select count(*) from release where delay + 1 > 2",
            r"do without arithmetic at character 42, got '\+'",
        ),
        (
            "select count(*) from release where lower(dest) = 'a'",
            "compare columns themselves at character 36, got 'lower'",
        ),
        ("select count(*) from release where delay > dest", "a number, or a value in single quotes"),
        ("select count(*) from release where dest = 'A", "close the quote that it opens at character 43"),
        ("select count(*) from release limit 1.5", "have a whole number of rows"),
        (
            "select age as low, count(*) from release group by age",
            "other names than those of intervals.* got 'low'",
        ),
        (f"select count(*) from release where {'(' * 400}age > 1", "at most 20 parentheses and `not`"),
        (f"select count(*) from release where {'not ' * 400}age > 1", "at most 20 parentheses and `not`"),
        ("select count(*) from release limit 0", "have a whole number of rows"),
        ("select count(*) from release order by 2", "name an item of its list at character 39"),
        ("select count(*) from release order by avg(delay)", "order by items of its list at character 39"),
        ("select count(*) from release group by 1", "group by keys at character 39"),
        ("select dest, stddev(delay) from release group by dest", "no variance or stddev by groups"),
        ("select dest, count(*) from release", "must group by each column that it selects .* got 'dest'"),
        ("select dest from release group by dest", "must select a statistic"),
        (
            "select count(*) as a, median(delay) as a from release",
            "give each item a name of its own, got 'a'",
        ),
        ("select count(*) from release where delay >", "sql must have a value at character 43"),
        ("select lower(dest), count(*) from release group by 1", "have a known function at character 8"),
    ],
)
def test_what_is_not_there_is_refused_by_name(text: str, said: str) -> None:
    """The error says which part, where it stands, and what to write."""
    with pytest.raises(InvalidParameter, match=said):
        parse_sql(text, ["dest", "delay"])


def test_answers_are_those_of_the_questions() -> None:
    """Values and intervals are those of the library, under the names of the list."""
    release = table_release()

    result = release.sql("select count(*) n, avg(pay) from release where age between 20 and 29")

    [row] = result.to_dicts()
    count, mean = release.count(age=(20, 29)), release.mean("pay", age=(20, 29))
    assert (row["n"], row["n_low"], row["n_high"]) == (count.value, *count.interval())
    assert (row["avg_pay"], row["avg_pay_low"], row["avg_pay_high"]) == (mean.value, *mean.interval())
    assert [str(each) for each in result.questions] == [
        "count where age between 20 and 29",
        "mean of pay where age between 20 and 29",
    ]


def test_one_statistic_has_low_and_high() -> None:
    """And what the answer rests on; a wider confidence gives wider ends."""
    release = table_release()
    text = "select count(*) from release where town = 'Rome' and age < 30"

    [row], [wide] = release.sql(text).to_dicts(), release.sql(text, confidence=0.99).to_dicts()

    assert list(row) == ["count", "low", "high", "basis"]
    assert row["basis"] == release.count(town="Rome", age=(None, 29)).basis
    assert wide["high"] > row["high"]


def test_what_a_sum_covers_is_printed_first() -> None:
    """A number that leaves values out says so."""
    result = table_release().sql("select sum(pay), count(*) from release")

    assert result.notes
    assert str(result).startswith(f"sum_pay covers {table_release().sum('pay').covers}")


def test_groups_are_sorted_and_limited() -> None:
    """All statistics are those of the group of the row; the order is checked against the library."""
    release = table_release()
    text = (
        "select town, count(*) n, avg(pay) from release where age >= 30 group by town order by n desc limit 2"
    )

    result = release.sql(text)

    rows = result.to_dicts()
    counts = {town: release.count(town=town, age=(30, None)) for town in ("Rome", "Bari", "Turin")}
    largest = sorted(counts, key=lambda town: -counts[town].value)[:2]
    assert [row["town"] for row in rows] == largest
    for row in rows:
        assert row["n"] == pytest.approx(counts[row["town"]].value)
        assert (row["n_low"], row["n_high"]) == pytest.approx(counts[row["town"]].interval())
        assert row["avg_pay"] == pytest.approx(release.mean("pay", town=row["town"], age=(30, None)).value)
    assert "told apart" in result.notes[0] or "clear" in result.notes[0]


def test_groups_sort_by_keys_in_their_own_order() -> None:
    """Labels stand as they were declared, and a second term decides among equal ones."""
    release = table_release()

    rows = release.sql(
        "select town, rooms, count(*) from release group by 1, 2 order by 1 desc, 2"
    ).to_dicts()

    assert [row["town"] for row in rows][::10] == [None, "(other)", "Turin", "Bari", "Rome"]
    assert [row["rooms"] for row in rows][:10] == list(range(10))


def test_many_groups_are_counted_together() -> None:
    """Of more than 200 groups intervals are made together, from the errors of counts."""
    release = table_release()

    rows = release.sql("select age, town, count(*) from release group by age, town").to_dicts()

    [row] = [row for row in rows if (row["age"], row["town"]) == (7, "Rome")]
    count = release.count(age=7, town="Rome")
    assert len(rows) == 300
    assert (row["count"], row["high"]) == pytest.approx(
        (count.value, count.value + 1.96 * count.error), rel=1e-3
    )
