"""One file for each command: `declare` says what it takes, `run` does it."""
