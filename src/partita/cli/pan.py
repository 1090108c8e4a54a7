"""`partita pan`: pan-private sketches that live in a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from partita.cli import common
from partita.errors import SourceError, check
from partita.html import ends, with_interval

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


def declare(commands: common.Commands) -> None:
    """One act makes a sketch, one lets users come, one publishes, one protects, one says what is public."""
    acts = common.command_group(commands, "pan", "statistics of users whose memory may be read")
    _declare_create(acts)
    _declare_update(acts)
    _declare_release(acts)
    _act(acts, "announce", _announce, "forget what came, before somebody looks; begins a new epoch")
    _act(acts, "info", _info, "say what a sketch promises, and what it has left to release")


def _act(
    acts: common.Commands, name: str, run: common.Action, says: str, *, needs: str = ""
) -> common.CommandParser:
    parser = common.command(acts, name, run, says, example=f"partita pan {name} clinic.pan{needs}")
    parser.add("SKETCH", "its file")
    return parser


def _declare_create(acts: common.Commands) -> None:
    needs = " --kind density --universe 10000 --epsilon 1"
    parser = _act(acts, "create", _create, "make a sketch in a new file", needs=needs)
    parser.add("--kind", "what it is to be asked", choices=SKETCHES, required=True)
    parser.add("--epsilon E", "for a user, all outputs and one look", type=common.epsilon, required=True)
    _add_universe(parser)
    most = "the largest number of events of a user, or of ids for `distinct`, that is told apart"
    says = "how many outputs share epsilon in an epoch; default: 1"
    parser.add("--releases N", says, type=common.whole("releases"))
    parser.add("--epochs N", "how many epochs share epsilon; default: 1", type=common.whole("epochs"))
    parser.add("--most N", most, type=common.whole("most"))
    parser.add("--buckets N", "of each level, for `distinct`", type=common.whole("buckets", low=2))
    parser.add(
        "--lowest N", "if events may be taken back: below 0", type=common.whole("lowest", low=-(10**4))
    )
    parser.add("--tops N,N", "of the counters of `ramp-registers`", type=_parse_numbers)
    parser.add("--salt TEXT", "a public word that makes a hash of one's own")
    parser.add("--variant", "of `density`", choices=("default", "book"))


def _declare_update(acts: common.Commands) -> None:
    says = "let users come: one id in each line of stdin, or of a file"
    parser = _act(acts, "update", _update, says, needs=" < ids.txt")
    _add_universe(parser)
    parser.add("--file FILE", "in place of stdin")
    parser.add("--by N", "of `registers`: -1 takes events back", type=common.whole("by", low=-(2**62)))


def _declare_release(acts: common.Commands) -> None:
    says = "publish one statistic: density, distinct, exactly-T, mean-T or heavy-T"
    parser = _act(acts, "release", _release, says, needs=" density")
    parser.add("NAME", "of the statistic")
    common.add_beta(parser, "how often the bounds may fail")


def _add_universe(parser: common.CommandParser) -> None:
    says = "all ids that may come, which are public: their number, for 0 to N-1, or a file with one a line"
    parser.add("--universe N|FILE", says)


def _create(options: common.Options) -> common.Outcome:
    """Make the file; a sketch never takes the place of another."""
    from partita.pan.file import SketchFile

    sketch = _make_sketch(options)
    with closing(SketchFile.create(options.sketch, sketch)):
        return _describe_sketch(options.sketch, sketch)


def _make_sketch(options: common.Options) -> Sketch:
    from partita.pan.file import KINDS

    taken = ("releases", "epochs", *_OPTIONS[options.kind])
    offered = {name for names in _OPTIONS.values() for name in names}
    for name in sorted(offered - set(taken)):
        fix = "leave it out"
        check(
            getattr(options, name) is None, name, f"must be left out for {options.kind}", given=name, fix=fix
        )
    given: dict[str, Any] = {name: getattr(options, name) for name in taken}
    _check_universe(options)
    given["universe"] = _universe(options.universe)
    make: Any = KINDS[f"pan-{options.kind}"]
    named = {name: each for name, each in given.items() if each is not None}
    sketch: Sketch = make(epsilon=options.epsilon, **named)
    return sketch


def _check_universe(options: common.Options) -> None:
    given, has_one = options.universe, options.kind != "distinct"
    fix = "leave it out, since any id may come"
    check(has_one or given is None, "universe", "must be left out for distinct", given=given, fix=fix)
    rule, fix = f"must be given for {options.kind}", "pass --universe N or a file"
    check(not has_one or given is not None, "universe", rule, given=None, fix=fix)


def _update(options: common.Options) -> common.Outcome:
    """All lines at once; nothing is said about them, not even how many there were."""
    from partita.pan.file import SketchFile

    universe = _universe(options.universe)
    by = {} if options.by is None else {"by": options.by}
    with closing(SketchFile(options.sketch, universe=universe)) as file:
        kind, fix = file.sketch.name, "leave it out"
        numbered = not isinstance(universe, list) and kind != "pan-distinct"
        names: Any = _lines(options.file)
        check(not by or kind == "pan-registers", "by", "is for registers only", given="--by", fix=fix)
        file.update_many(_parse_ids(names) if numbered else names, **by)
    return common.Outcome.of(f"updated {options.sketch}", sketch=options.sketch)


def _release(options: common.Options) -> common.Outcome:
    """Paid for in the file before it is shown."""
    from partita.pan.file import SketchFile

    with closing(SketchFile(options.sketch)) as file:
        epoch = file.sketch.epoch
        answer = file.release(options.name)
        sketch = file.sketch
    low, high = answer.worst(options.beta)
    return common.Outcome.of(
        f"{options.name}: {with_interval(answer.value, answer.interval())}, for any data "
        f"{ends((low, high))} but for {100 * options.beta:g}%\n{_describe_rest(sketch, epoch)}",
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


def _describe_rest(sketch: Sketch, epoch: int) -> str:
    """What is left after an output of an epoch, which may have been its last."""
    if sketch.epoch == epoch:
        return f"epoch {epoch} of {sketch.epochs}, {sketch.releases_left} of {sketch.releases} releases left"
    begins = "the sketch is over" if epoch == sketch.epochs else f"epoch {sketch.epoch} begins"
    return f"the last output of epoch {epoch} of {sketch.epochs}: its table is erased, {begins}"


def _announce(options: common.Options) -> common.Outcome:
    """From now on a look at the file sees fresh noise only."""
    from partita.pan.file import SketchFile

    with closing(SketchFile(options.sketch)) as file:
        file.announce_intrusion()
        return _describe_sketch(options.sketch, file.sketch)


def _info(options: common.Options) -> common.Outcome:
    """What is public; the tables are not looked at."""
    from partita.pan.file import SketchFile

    with closing(SketchFile(options.sketch)) as file:
        return _describe_sketch(options.sketch, file.sketch)


def _describe_sketch(path: str, sketch: Sketch) -> common.Outcome:

    over, kind = sketch.epoch > sketch.epochs, sketch.name.removeprefix("pan-")
    lines = [
        ("sketch", path),
        ("kind", kind),
        ("promises", str(sketch.guarantee)),
        ("epoch", "over" if over else f"{sketch.epoch} of {sketch.epochs}"),
        ("left", f"{sketch.releases_left} of {sketch.releases} releases"),
        ("names", ", ".join(sketch.names)),
    ]
    counts = {name: getattr(sketch, name) for name in ("epochs", "releases", "releases_left")}
    return common.Outcome.of(
        common.table(lines, left=2),
        sketch=path,
        kind=kind,
        guarantee=str(sketch.guarantee),
        epsilon=sketch.terms.epsilon,
        epoch=None if over else sketch.epoch,
        **counts,
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


def _parse_ids(names: Iterator[str]) -> Iterator[int]:
    """Ids that are numbers; other lines are ignored."""
    return (int(name) for name in names if name.isascii() and name.isdecimal() and len(name) < 20)


def _parse_numbers(text: str) -> list[int]:
    return [common.whole("tops")(number) for number in text.split(",")]
