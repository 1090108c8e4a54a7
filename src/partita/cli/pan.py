"""`partita pan`: pan-private sketches that live in a file."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from partita.cli.common import Commands, Options, Outcome, command, epsilon, probability, whole
from partita.errors import SourceError, check

if TYPE_CHECKING:
    from partita.pan.sketch import Sketch

SKETCHES: Final = ("density", "distinct", "registers", "ramp-registers")

_OPTIONS: Final = {
    "density": ("variant",),
    "distinct": ("buckets", "most", "salt"),
    "registers": ("most", "lowest"),
    "ramp-registers": ("tops",),
}
"""What each sketch takes besides a universe, epsilon, releases and epochs."""


def declare(commands: Commands) -> None:
    """One act makes a sketch, one lets users come, one publishes, one protects, one says what is public."""
    group = commands.add_parser(
        "pan", help="statistics of users whose memory may be read", allow_abbrev=False
    )
    acts = group.add_subparsers(title="acts", metavar="ACT", required=True)
    _declare_create(acts)
    _declare_update(acts)
    _declare_release(acts)
    _act(acts, "announce", _announce, says="forget what came, before somebody looks; begins a new epoch")
    _act(acts, "info", _info, says="say what a sketch promises, and what it has left to release")


def _act(
    acts: Commands, name: str, run: Callable[[Options], Outcome], *, says: str, needs: str = ""
) -> argparse.ArgumentParser:
    declared = command(acts, name, run, says=says, example=f"partita pan {name} clinic.pan{needs}")
    declared.add_argument("sketch", metavar="SKETCH", help="its file")
    return declared


def _declare_create(acts: Commands) -> None:
    needs = " --kind density --universe 10000 --epsilon 1"
    declared = _act(acts, "create", _create, says="make a sketch in a new file", needs=needs)
    declared.add_argument("--kind", choices=SKETCHES, required=True, help="what it is to be asked")
    declared.add_argument(
        "--epsilon", type=epsilon, required=True, metavar="E", help="for a user, all outputs and one look"
    )
    _add_universe(declared)
    number: tuple[tuple[str, int, str], ...] = (
        ("releases", 1, "how many outputs share epsilon in an epoch; default: 1"),
        ("epochs", 1, "how many epochs share epsilon; default: 1"),
        ("most", 1, "the largest number of events of a user, or of ids for `distinct`, that is told apart"),
        ("buckets", 2, "of each level, for `distinct`"),
    )
    for name, low, says in number:
        declared.add_argument(f"--{name}", type=whole(name, low=low), metavar="N", help=says)
    declared.add_argument(
        "--lowest",
        type=whole("lowest", low=-(10**4)),
        metavar="N",
        help="if events may be taken back: below 0",
    )
    declared.add_argument("--tops", type=_numbers, metavar="N,N", help="of the counters of `ramp-registers`")
    declared.add_argument("--salt", metavar="TEXT", help="a public word that makes a hash of one's own")
    declared.add_argument("--variant", choices=("default", "book"), help="of `density`")


def _declare_update(acts: Commands) -> None:
    says = "let users come: one id in each line of stdin, or of a file"
    declared = _act(acts, "update", _update, says=says, needs=" < ids.txt")
    _add_universe(declared)
    declared.add_argument("--file", metavar="FILE", help="in place of stdin")
    declared.add_argument(
        "--by", type=whole("by", low=-(2**62)), metavar="N", help="of `registers`: -1 takes events back"
    )


def _declare_release(acts: Commands) -> None:
    says = "publish one statistic: density, distinct, exactly-T, mean-T or heavy-T"
    declared = _act(acts, "release", _release, says=says, needs=" density")
    declared.add_argument("name", metavar="NAME", help="of the statistic")
    declared.add_argument(
        "--beta",
        type=probability("beta"),
        default=0.05,
        metavar="B",
        help="how often the bounds may fail; default: %(default)s",
    )


def _add_universe(declared: argparse.ArgumentParser) -> None:
    declared.add_argument(
        "--universe",
        metavar="N|FILE",
        help="all ids that may come, which are public: their number, for 0 to N-1, or a file with one a line",
    )


def _create(options: Options) -> Outcome:
    """Make the file; a sketch never takes the place of another."""
    from partita.pan.file import SketchFile

    sketch = _made(options)
    with closing(SketchFile.create(options.sketch, sketch)):
        return _said(options.sketch, sketch)


def _made(options: Options) -> Sketch:
    from partita.pan.file import KINDS

    taken = ("releases", "epochs", *_OPTIONS[options.kind])
    offered = {name for names in _OPTIONS.values() for name in names}
    for name in sorted(offered - set(taken)):
        fix = "leave it out"
        check(getattr(options, name) is None, name, f"is none of {options.kind}'s", given=name, fix=fix)
    given: dict[str, Any] = {name: getattr(options, name) for name in taken}
    _check_universe(options)
    given["universe"] = _universe(options.universe)
    make: Any = KINDS[f"pan-{options.kind}"]
    made: Sketch = make(
        epsilon=options.epsilon, **{name: each for name, each in given.items() if each is not None}
    )
    return made


def _check_universe(options: Options) -> None:
    check(
        options.kind != "distinct" or options.universe is None,
        "universe",
        "must be left out for distinct",
        given=options.universe,
        fix="leave it out, since any id may come",
    )
    rule, fix = f"must be given for {options.kind}", "pass --universe N or a file"
    check(options.kind == "distinct" or options.universe is not None, "universe", rule, given=None, fix=fix)


def _update(options: Options) -> Outcome:
    """All lines at once; nothing is said about them, not even how many there were."""
    from partita.pan.file import SketchFile

    universe = _universe(options.universe)
    by = {} if options.by is None else {"by": options.by}
    with closing(SketchFile(options.sketch, universe=universe)) as file:
        whole_ids = not isinstance(universe, list) and file.sketch.name != "pan-distinct"
        names: Any = _lines(options.file)
        _check_by(file.sketch, by)
        file.update_many(_whole(names) if whole_ids else names, **by)
    return Outcome.of(f"updated {options.sketch}", sketch=options.sketch)


def _check_by(sketch: Sketch, by: dict[str, int]) -> None:
    fix = "leave it out"
    check(not by or sketch.name == "pan-registers", "by", "is for registers only", given="--by", fix=fix)


def _release(options: Options) -> Outcome:
    """Paid for in the file before it is shown."""
    from partita.pan.file import SketchFile

    with closing(SketchFile(options.sketch)) as file:
        epoch = file.sketch.epoch
        answer = file.release(options.name)
        sketch = file.sketch
    low, high = answer.worst(options.beta)
    value, error, first, last = _alike(answer.error, answer.value, answer.error, low, high)
    return Outcome.of(
        f"{options.name}: {value} ± {error}, from {first} to {last}\n{_left_said(sketch, epoch)}",
        name=options.name,
        value=answer.value,
        error=answer.error,
        low=low,
        high=high,
        beta=options.beta,
        epoch=epoch,
        epochs=sketch.epochs,
        epoch_over=sketch.epoch > epoch,
        releases_left=sketch.releases_left,
    )


def _alike(error: float, *numbers: float) -> list[str]:
    """Numbers with as many decimals as two figures of their error have."""
    decimals = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 0
    return [f"{number:,.{decimals}f}" for number in numbers]


def _left_said(sketch: Sketch, epoch: int) -> str:
    """What is left after an output of an epoch, which may have been its last."""
    if sketch.epoch == epoch:
        return f"epoch {epoch} of {sketch.epochs}, {sketch.releases_left} of {sketch.releases} releases left"
    begins = "the sketch is over" if epoch == sketch.epochs else f"epoch {sketch.epoch} begins"
    return f"the last output of epoch {epoch} of {sketch.epochs}: its table is erased, {begins}"


def _announce(options: Options) -> Outcome:
    """From now on a look at the file sees fresh noise only."""
    from partita.pan.file import SketchFile

    with closing(SketchFile(options.sketch)) as file:
        file.announce_intrusion()
        return _said(options.sketch, file.sketch)


def _info(options: Options) -> Outcome:
    """What is public; the tables are not looked at."""
    from partita.pan.file import SketchFile

    with closing(SketchFile(options.sketch)) as file:
        return _said(options.sketch, file.sketch)


def _said(path: str, sketch: Sketch) -> Outcome:
    from partita.public.base import table

    over = sketch.epoch > sketch.epochs
    said = [
        ("sketch", path),
        ("kind", sketch.name.removeprefix("pan-")),
        ("promises", str(sketch.guarantee)),
        ("epoch", "over" if over else f"{sketch.epoch} of {sketch.epochs}"),
        ("left", f"{sketch.releases_left} of {sketch.releases} releases"),
        ("names", ", ".join(sketch.names)),
    ]
    return Outcome.of(
        table(said, left=2),
        sketch=path,
        kind=sketch.name.removeprefix("pan-"),
        guarantee=str(sketch.guarantee),
        epsilon=sketch.terms.epsilon,
        epoch=None if over else sketch.epoch,
        epochs=sketch.epochs,
        releases=sketch.releases,
        releases_left=sketch.releases_left,
        names=list(sketch.names),
    )


def _universe(given: str | None) -> int | list[str] | None:
    """A number of ids, or the lines of a public file."""
    if given is None or given.isdecimal():
        return None if given is None else int(given)
    return list(_lines(given))


def _lines(path: str | None) -> Iterator[str]:
    """Lines without their ends; what is not text in UTF-8 is read all the same."""
    try:
        data = sys.stdin.buffer.read() if path is None else Path(path).read_bytes()
    except OSError:
        name = "stdin" if path is None else f"data {path!r}"
        raise SourceError(name, "could not be read", fix="check the path") from None
    return (line.rstrip("\r") for line in data.decode("utf-8", "surrogateescape").split("\n") if line)


def _whole(names: Iterator[str]) -> Iterator[int]:
    """Ids that are numbers; what is none is left out without a word."""
    return (int(name) for name in names if name.isascii() and name.isdecimal() and len(name) < 20)


def _numbers(text: str) -> list[int]:
    return [whole("tops")(number) for number in text.split(",")]
