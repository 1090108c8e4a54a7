"""`python -m partita` is the command line."""

import sys

from partita.cli.main.entry import main

if __name__ == "__main__":
    sys.exit(main())
