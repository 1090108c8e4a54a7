"""`partita keygen`, `sign` and `verify`: who published a release."""

from __future__ import annotations

from collections.abc import Callable

from partita.cli.common.arguments import Commands, Options, command
from partita.cli.common.output import Outcome


def declare(commands: Commands) -> None:
    """A pair of keys, and what each of them is for."""
    declared = command(
        commands,
        "keygen",
        _keygen,
        says="make a pair of keys to sign releases with",
        example="partita keygen",
    )
    for name, meaning in (("private", "keep it secret"), ("public", "hand it out")):
        declared.add_argument(
            f"--{name}", default=f"{name}.pem", metavar="FILE", help=f"{meaning}; default: %(default)s"
        )
    _declare(commands, "sign", _sign, key="private", says="sign a release, in place")
    _declare(
        commands, "verify", _verify, key="public", says="check that a release is whole and who signed it"
    )


def _declare(
    commands: Commands, name: str, run: Callable[[Options], Outcome], *, key: str, says: str
) -> None:
    declared = command(
        commands, name, run, says=says, example=f"partita {name} people.release.parquet --key {key}.pem"
    )
    declared.add_argument("release", metavar="RELEASE")
    declared.add_argument("--key", required=True, metavar="FILE", help=f"the {key} key")


def _keygen(options: Options) -> Outcome:
    from partita.public.file.signing import generate_key

    generate_key(options.private, options.public)
    text = f"wrote {options.private}, to be kept secret, and {options.public}, to be handed out"
    return Outcome.of(text, private=options.private, public=options.public)


def _sign(options: Options) -> Outcome:
    from partita.public.file.signing import sign

    sign(options.release, options.key)
    return Outcome.of(f"signed {options.release}", path=options.release, signed=True)


def _verify(options: Options) -> Outcome:
    from partita.public.file.signing import verify

    verify(options.release, options.key)
    text = f"{options.release} is whole, and the owner of {options.key} signed it"
    return Outcome.of(text, path=options.release, verified=True)
