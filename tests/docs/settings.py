"""What pages take for granted: files that they say are there, and pages that another test types in."""

from __future__ import annotations

from typing import Final

PEOPLE: Final = """
import pyarrow as pa, pyarrow.parquet as pq
rows = range(6_000)
ages, salaries = [18 + i % 60 for i in rows], [20_000 + 300 * (i % 60) + 7_919 * i % 15_000 for i in rows]
pq.write_table(pa.table({"age": ages, "salary": salaries}), "people.parquet")
"""

RELEASED: Final = """
import partita as pt
pt.publish({"age": [3, 4]}, {"age": pt.Integer(0, 9)}, epsilon=1, path="people.release.parquet")
"""

SETTINGS: Final = {
    "docs/command-line.md": PEOPLE,
    "docs/local.md": 'open("my_page.txt", "w").write("17\\n")\n',
    "docs/release-file.md": RELEASED,
}
"""Python that is run before a page, to make the files which the page says are there."""

TYPED_ELSEWHERE: Final = {
    "docs/postgres.md": ("tests/engines/test_postgres_page.py", "test_the_page_can_be_typed_in"),
    "docs/scale.md": ("tests/engines/spark/test_page.py", "test_the_page_publishes_and_aggregates"),
    "docs/service-api.md": ("tests/service/reading/test_docs.py", "test_the_commands_on_the_page_run"),
    "docs/service-streams.md": (
        "tests/service/streams/test_docs.py",
        "test_the_commands_of_the_page_do_what_it_says",
    ),
}
"""Pages that need a server or a cluster, with the test that types them in."""
