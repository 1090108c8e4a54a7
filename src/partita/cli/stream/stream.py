"""`partita stream`: counters that publish one output for every period."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from partita.cli.common.arguments import Commands, Options, command, epsilon, probability, whole
from partita.cli.common.output import Outcome
from partita.cli.common.pictures import add_picture, draw
from partita.cli.stream import stream_feed
from partita.cli.stream.stream_said import (
    output_record,
    outputs_said,
    settings_record,
    settings_said,
    values_said,
)
from partita.errors.checks import check

if TYPE_CHECKING:
    from partita.trusted.durable.open import AnyStream

MECHANISMS: Final = ("counter", "tree", "sparse", "sliding", "pan-private")

_OPTIONS: Final = ("expected", "window")


def declare(commands: Commands) -> None:
    """One act makes a counter, two keep it going, the others look at what it published."""
    group = commands.add_parser("stream", help="count events under continual observation", allow_abbrev=False)
    acts = group.add_subparsers(title="acts", metavar="ACT", required=True)
    _declare_create(acts)
    stream_feed.declare(acts)
    _declare_read(acts)
    _add_beta(_act(acts, "info", _info, says="say what a counter promises, and how exact its last output is"))
    _declare_plot(acts)


def _act(
    acts: Commands, name: str, run: Callable[[Options], Outcome], *, says: str, needs: str = ""
) -> argparse.ArgumentParser:
    declared = command(acts, name, run, says=says, example=f"partita stream {name} visits{needs}")
    declared.add_argument("counter", metavar="COUNTER", help="its path; endings are added")
    return declared


def _declare_create(acts: Commands) -> None:
    says = "make a counter, and pay for it, once and for all"
    declared = _act(acts, "create", _create, says=says, needs=" --epsilon 1 --period 1m")
    declared.add_argument(
        "--epsilon", type=epsilon, required=True, metavar="E", help="of all outputs together"
    )
    declared.add_argument(
        "--period", required=True, metavar="LENGTH", help="of public time: 30s, 1m, 1h, 1d, 1w"
    )
    declared.add_argument("--start", metavar="TIME", help="when the first period begins; default: now")
    declared.add_argument(
        "--horizon", type=whole("horizon"), metavar="N", help="how many periods there will be, if known"
    )
    declared.add_argument("--mechanism", choices=MECHANISMS, help="default: counter")
    declared.add_argument(
        "--keys",
        metavar="KEYS",
        help="a counter for each of these public names, separated by commas; needs --horizon",
    )
    declared.add_argument(
        "--expected",
        type=whole("expected"),
        metavar="N",
        help="a public guess of the number of events in all, for the mechanism `sparse`",
    )
    declared.add_argument(
        "--window",
        type=whole("window"),
        metavar="N",
        help="count the last N periods, not all of them, for the mechanism `sliding`",
    )
    declared.add_argument(
        "--contributions",
        type=whole("contributions"),
        metavar="K",
        help="protect users, not events: at most so many events of one are counted",
    )
    declared.add_argument("--ledger", metavar="FILE", help="the ledger that is debited before noise is drawn")
    declared.add_argument("--dataset", metavar="NAME", help="whose budget pays; needed with --ledger")


def _declare_read(acts: Commands) -> None:
    declared = _act(acts, "read", _read, says="list what was published, one line for each period")
    declared.add_argument(
        "--since",
        type=whole("since", low=0),
        default=0,
        metavar="N",
        help="only what comes after period N",
    )


def _declare_plot(acts: Commands) -> None:
    says = "draw what was published, with bounds around it; needs the extra `plot`"
    declared = _act(acts, "plot", _plot, says=says, needs=" -o visits.png")
    add_picture(declared)
    _add_beta(declared)


def _add_beta(declared: argparse.ArgumentParser) -> None:
    declared.add_argument(
        "--beta",
        type=probability("beta"),
        default=0.05,
        metavar="B",
        help="how often the bounds of a period may fail; default: %(default)s",
    )


def _create(options: Options) -> Outcome:
    """Make the files, pay, and say what is promised; nothing is counted yet."""
    from partita.public.base.figures import table

    _check_new(options)
    with _made(options) as counter:
        settings = counter.settings
    said = [("counter", options.counter), *settings_said(settings)]
    return Outcome.of(table(said, left=2), counter=options.counter, **settings_record(settings))


def _made(options: Options) -> AnyStream:
    """A new counter, or a family if there are keys."""
    from partita.ledger.ledger.ledger import Ledger
    from partita.trusted.durable.open import open_counter, open_family

    common: dict[str, Any] = {
        "epsilon": options.epsilon,
        "period": options.period,
        "horizon": options.horizon,
        "start": options.start,
        "contributions": options.contributions or 1,
        "unit": None if options.contributions is None else "user",
        "ledger": None if options.ledger is None else Ledger(options.ledger),
        "dataset": options.dataset,
    }
    chosen = {name: getattr(options, name) for name in ("mechanism", *_OPTIONS)}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if options.keys is None:
        return open_counter(options.counter, **common, **given)
    if given:
        raise argparse.ArgumentTypeError(
            f"--{next(iter(given))} is about one counter; leave it out, or --keys"
        )
    return open_family(options.counter, keys=options.keys.split(","), **common)


def _check_new(options: Options) -> None:
    """A counter is made once: to go on with it is to feed it."""
    rule, fix = "must not exist yet", "go on with `partita stream feed`"
    check(not os.path.lexists(f"{options.counter}.outputs"), "counter", rule, given=options.counter, fix=fix)


def _read(options: Options) -> Outcome:
    """What the public file has; no lock, no secret."""
    from partita.public.streams.outputs import read_outputs

    return outputs_said(read_outputs(options.counter, since=options.since).outputs)


def _info(options: Options) -> Outcome:
    """What was promised, and the last output with its bounds; from the public file."""
    from partita.public.base.figures import table
    from partita.public.streams.outputs import read_outputs
    from partita.trusted.streams.plot.plot import band

    published = read_outputs(options.counter, since=-1)
    last, closed = published.outputs, sum(output.period for output in published.outputs)
    said = [("counter", options.counter), *settings_said(published.settings)]
    said.append(("closed", f"{closed:,} periods"))
    record = {**settings_record(published.settings), "closed": closed}
    off = band(last, published.settings, options.beta)
    if last:
        record |= {**output_record(last[0]), "beta": options.beta, "off": None}
        said.append(("last", values_said(last[0])))
    if last and off is not None:
        record |= {"off": float(off[0])}
        said.append(("off by", f"at most {off[0]:,.1f}, but for probability {options.beta:g}"))
    return Outcome(table(said, left=2), [record])


def _plot(options: Options) -> Outcome:
    """Draw what the public file has."""
    from partita.public.streams.outputs import read_outputs
    from partita.trusted.streams.plot.plot import plot

    published, name = read_outputs(options.counter), Path(options.counter).name
    draw(lambda: plot(published.outputs, published.settings, beta=options.beta, name=name), options)
    return Outcome.of(f"drew {name} in {options.output}", path=options.output, counter=options.counter)
