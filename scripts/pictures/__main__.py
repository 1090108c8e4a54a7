"""`python -m scripts.pictures [NAME ...]`: draw pictures of the mechanism pages and the README."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.pictures import pictures
from scripts.pictures.style import save

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def main(arguments: Sequence[str]) -> int:
    known = pictures()
    options = parser().parse_args(arguments)
    if unknown := sorted(set(options.names) - set(known)):
        parser().error(f"no picture {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    options.to.mkdir(parents=True, exist_ok=True)
    for name in options.names or known:
        save(known[name](), options.to / f"{name}.svg")
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m scripts.pictures", description=__doc__)
    made.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    made.add_argument("--to", type=Path, default=FOLDER, help="the folder; default: docs/pictures")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
