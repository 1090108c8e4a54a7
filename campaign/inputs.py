"""Bad inputs with canary values: whatever is done with them, nobody sees the canary.

A canary is a word and a number that occur in the data only. They come as values of the wrong type, in
malformed files, as objects that shout when they are touched, as events, ids and reports. Afterwards all that
was printed, raised, warned of, logged or left in a file is searched for them: as text, and as the bytes of
the number. What an error drags along as its context counts as shown.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import partita as pt
from campaign.overheard import overheard
from campaign.part import Outcome, Part, shown
from partita.cli import main as command_line
from partita.testing import ZeroNoise
from tests.service.streams.conftest import Service

PART: Final = Part(name="inputs", case="a bad input with canary values", goal=10_000, quick=120)
SCHEMA: Final[dict[str, pt.Domain]] = {
    "age": pt.Integer(0, 120),
    "town": pt.Category(["north", "south"]),
    "wage": pt.Real(0, 10, step="0.5"),
}
GIVEN: Final = "given"
"""How the names of files begin that a case makes itself."""


@dataclass(frozen=True)
class Canary:
    """A word and a number that stand nowhere but in the data of one case."""

    number: int

    @property
    def word(self) -> str:
        return f"Quetzal{self.number:06d}coatlus"

    @property
    def whole(self) -> int:
        return 918_273_645_000_000 + self.number

    @property
    def signs(self) -> list[bytes]:
        """How it would look: as text, with separators, and as bytes of an array."""
        texts = [self.word, str(self.whole), f"{self.whole:,}", f"{self.whole:_}", hex(self.whole)[2:]]
        packed = [struct.pack(form, self.whole) for form in ("<q", ">q", "<d", ">d")]
        return [*(text.encode() for text in texts), *packed]


class Shouting:
    """An object that says its secret whatever is asked of it."""

    def __init__(self, canary: Canary) -> None:
        self._secret = canary.word

    def _shout(self, *_: object) -> Any:
        raise ValueError(f"cannot convert {self._secret}")

    __index__ = __int__ = __float__ = __len__ = __iter__ = __array__ = __lt__ = __str__ = _shout

    def __repr__(self) -> str:
        return self._secret


def run(cases: int) -> Outcome:
    """So many inputs, every way into the library in turn."""
    return Outcome.of(shown(map(_tried, range(cases)), "bad inputs", cases))


def _tried(number: int) -> tuple[str, str | None]:
    """Which way in was tried, and what was seen of the canary."""
    dice, canary, way = Random(f"inputs {number}"), Canary(number), WAYS[number % len(WAYS)]
    with TemporaryDirectory() as place:
        folder, here = Path(place), os.getcwd()
        os.chdir(folder)
        try:
            heard = overheard(lambda: way(dice, canary, folder), folder)
        finally:
            os.chdir(here)
    leaks = heard.leaks(canary.signs, given=[name for name in heard.files if name.startswith(GIVEN)])
    faults = [*(f"seen in {leak}" for leak in leaks), *filter(None, [heard.surprise])]
    return way.__name__.strip("_").replace(
        "_", " "
    ), f"case {number}, {'; '.join(faults)}" if faults else None


# --- values and tables ------------------------------------------------------------------------


def _value(dice: Random, canary: Canary) -> Any:
    """A value that is wrong nearly everywhere."""
    word, whole = canary.word, canary.whole
    values: list[Any] = [
        word, whole, -whole, float(whole), str(whole), word.encode(), [word], {"name": word}, (whole, word),
        {whole}, Shouting(canary), np.array([whole, whole]), np.array(word), 2**70 + whole, whole + 0.5,
        complex(whole), ValueError(word), type(word, (), {}), memoryview(word.encode()),
    ]  # fmt: skip
    return dice.choice(values)


def _rows(dice: Random, canary: Canary, count: int = 6) -> dict[str, list[Any]]:
    """Rows of which one in three cells or so holds the canary."""

    def cell(good: Any) -> Any:
        return _value(dice, canary) if dice.random() < 0.35 else good

    return {
        "age": [cell(dice.randrange(100)) for _ in range(count)],
        "town": [cell("north") for _ in range(count)],
        "wage": [cell(2.5) for _ in range(count)],
    }


def _plain(rows: dict[str, list[Any]]) -> list[dict[str, str]]:
    """Rows as text: what a file can hold."""
    return [{name: _text(values[place]) for name, values in rows.items()} for place in range(6)]


def _text(value: Any) -> str:
    try:
        return str(value)
    except ValueError:
        return repr(value)


def _published(source: Any, dice: Random) -> Any:
    """Publish with a ledger, now and then with persons, sums or several columns together."""
    pt.Ledger("budget.db").open("people", epsilon=5)
    options: dict[str, Any] = dice.choice(
        [
            {},
            {"person": "town", "contributions": 2},
            {"sums": ["wage"], "by": ["age"]},
            {"by": ["age", "town"]},
        ]
    )
    named = {
        "epsilon": 1,
        "ledger": "budget.db",
        "dataset": "people",
        "path": "out.release.parquet",
        **options,
    }
    release = pt.publish(source, SCHEMA, **named)
    return release.report()


def _a_table_in_memory(dice: Random, canary: Canary, folder: Path) -> Any:
    """A mapping of lists, which may have different lengths, or no mapping; texts would be public paths."""
    rows: Any = _rows(dice, canary)
    if dice.random() < 0.3:
        rows[dice.choice(list(rows))].append(_value(dice, canary))
    other = _value(dice, canary)
    return _published(rows if dice.random() < 0.6 or isinstance(other, str | list | tuple) else other, dice)


def _a_csv_file(dice: Random, canary: Canary, folder: Path) -> Any:
    """Lines with stray quotes, too many fields, bytes that are no text, and no end."""
    lines = ["age,town,wage", *(",".join(row.values()) for row in _plain(_rows(dice, canary)))]
    content = bytearray("\n".join(lines).encode())
    for _ in range(dice.randint(0, 4)):
        place = dice.randrange(14, len(content))
        content[place:place] = dice.choice(
            [b'"', b",", b"\x00", b"\xff", b"\r", b'""', canary.word.encode(), b"'"]
        )
    path = folder / "given.csv"
    path.write_bytes(bytes(content))
    return _published(str(path), dice)


def _a_file_of_json_lines(dice: Random, canary: Canary, folder: Path) -> Any:
    """Objects that are cut off, nested, or none."""
    lines = [json.dumps(row) for row in _plain(_rows(dice, canary))]
    broken = [line[: dice.randint(1, len(line))] if dice.random() < 0.4 else line for line in lines]
    path = folder / "given.jsonl"
    path.write_text("\n".join([*broken, json.dumps([canary.word]), json.dumps({"age": {"x": canary.whole}})]))
    return _published(str(path), dice)


def _a_parquet_file(dice: Random, canary: Canary, folder: Path) -> Any:
    """Columns of other types, and files that are cut or bent."""
    count, word, whole = 6, canary.word, canary.whole
    columns: list[Any] = [
        [word] * count, [whole] * count, [float(whole)] * count, [[whole]] * count,
        [{"x": word}] * count, [word.encode()] * count, [None, word] * (count // 2),
    ]  # fmt: skip
    path = folder / "given.parquet"
    pq.write_table(pa.table({name: dice.choice(columns) for name in SCHEMA}), path)
    content = bytearray(path.read_bytes())
    for _ in range(dice.choice((0, 0, 1, 3))):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content[: dice.randint(1, len(content))] if dice.random() < 0.2 else content)
    return _published(str(path), dice)


def _a_data_frame(dice: Random, canary: Canary, folder: Path) -> Any:
    """Arrow data of any type, also as batches."""
    rows = _plain(_rows(dice, canary))
    table = pa.Table.from_pylist(rows)
    return _published(dice.choice([table, table.to_reader(), table.slice(1)]), dice)


def _the_command_line(dice: Random, canary: Canary, folder: Path) -> Any:
    """`partita publish` of a file like those above."""
    lines = ["age,town,wage", *(",".join(row.values()) for row in _plain(_rows(dice, canary)))]
    (folder / "given.csv").write_text("\n".join(lines) + '\n"' + canary.word)
    columns = ["age:integer(0,120)", "wage:integer(0,10)"]
    command_line(["init", *columns, "-o", "given.toml"])
    more = dice.choice([[], ["--json"], ["--person", "town"], ["--mechanism", "tree"]])
    return command_line(
        ["publish", "given.csv", "--spec", "given.toml", "--epsilon", "1", "-o", "out.release.parquet", *more]
    )


# --- one level down ---------------------------------------------------------------------------


def _a_mechanism(dice: Random, canary: Canary, folder: Path) -> Any:
    """Secrets that are none, or do not fit."""
    value = _value(dice, canary)
    calls: list[Callable[[], Any]] = [
        lambda: pt.Histogram.dense([1, value]),
        lambda: pt.Histogram.from_cells([value], size=8),
        lambda: pt.Histogram.from_cells([canary.whole], size=8),
        lambda: pt.Tree(size=8, epsilon=1).release(value),
        lambda: pt.Partition(size=8, epsilon=1).cut(value),
        lambda: pt.Partition(size=8, epsilon=1).cut([canary.whole, 1]),
        lambda: pt.Points.from_rows([[value, 1]], axes=[pt.Axis(size=4)] * 2),
        lambda: pt.Points.from_rows([[1, 1]], axes=[pt.Axis(size=4)] * 2, counts=[value]),
        lambda: pt.Rectangles(axes=[pt.Axis(size=4)] * 2, epsilon=1).release(value),
    ]
    return dice.choice(calls)()


def _a_counter(dice: Random, canary: Canary, folder: Path) -> Any:
    """Events that are no numbers, or far too large. What it publishes may be the number itself, by chance."""
    counters: list[Callable[[], Any]] = [
        lambda: pt.Counter(epsilon=1, horizon=8),
        lambda: pt.SparseCounter(epsilon=1, horizon=8, expected=2),
        lambda: pt.PanPrivateCounter(epsilon=1, horizon=8),
        lambda: pt.SlidingCounter(epsilon=1, window=3),
    ]
    counter, value = dice.choice(counters)(), _value(dice, canary)
    call = dice.choice(
        [
            counter.update,
            counter.update_many,
            lambda value: counter.update_many([0, value]),
            type(counter).from_state,
        ]
    )
    call(value)
    return type(counter).__name__


def _a_durable_counter(dice: Random, canary: Canary, folder: Path) -> Any:
    """Events, feeders and numbers that are malformed; the secret file may hold the feeder's name."""
    with pt.open_counter(
        folder / "given", epsilon=1, period="1h", outputs=folder / "public.outputs"
    ) as counter:
        value = _value(dice, canary)
        calls: list[Callable[[], Any]] = [
            lambda: counter.add(value),
            lambda: counter.add(1, feeder="gate", sequence=value),
            lambda: counter.add_many([value]),
        ]
        return dice.choice(calls)()


def _a_pan_private_sketch(dice: Random, canary: Canary, folder: Path) -> Any:
    """Users that are not on the list; the state is searched too, for it is private."""
    sketches: list[Callable[[], Any]] = [
        lambda: pt.pan.Density(universe=100, epsilon=1),
        lambda: pt.pan.Distinct(epsilon=1, buckets=64),
        lambda: pt.pan.Registers(universe=100, epsilon=1),
    ]
    sketch, value = dice.choice(sketches)(), _value(dice, canary)
    dice.choice([sketch.update, sketch.update_many, lambda value: sketch.update_many([1, value])])(value)
    return repr(sketch)


def _a_device(dice: Random, canary: Canary, folder: Path) -> Any:
    """Answers that the question does not know, and reports that are none."""
    questions = [
        pt.local.Frequency(16, epsilon=1),
        pt.local.Mean(0, 10, epsilon=1),
        pt.local.Range(64, epsilon=1),
    ]
    question, value = dice.choice(questions), _value(dice, canary)
    calls: list[Callable[[], Any]] = [
        lambda: question.randomize(value),
        lambda: question.randomize_many([1, value]),
        lambda: question.randomize_many(value),
        lambda: question.aggregator().add(value),
        lambda: question.aggregator().add_many([value]),
    ]
    found = dice.choice(calls)()
    return type(found).__name__


def _the_service(dice: Random, canary: Canary, folder: Path) -> Any:
    """Feeding requests that are malformed; headers and bodies of the answers are searched."""
    inside = folder / "given"
    inside.mkdir()
    service = Service(inside, ZeroNoise())
    try:
        service.create()
        word, whole = canary.word, canary.whole
        bodies: list[Any] = [
            {"count": word}, {"count": [whole]}, {"counts": {word: 1}}, {"events": [word]}, {word: whole},
            f'{{"count": {whole}.5}}'.encode(), f'{{"count": "{word}'.encode(), word.encode(), [word],
            {"count": 2**70 + whole},
        ]  # fmt: skip
        answers = [service.feed(dice.choice(bodies), f"k{turn}") for turn in range(3)]
        return [(answer.status_code, dict(answer.headers), answer.text) for answer in answers]
    finally:
        service.stop()


WAYS: Final = (
    _a_table_in_memory, _a_csv_file, _a_mechanism, _a_counter, _a_file_of_json_lines, _a_pan_private_sketch,
    _a_parquet_file, _a_device, _a_durable_counter, _a_data_frame, _the_command_line, _the_service,
)  # fmt: skip
