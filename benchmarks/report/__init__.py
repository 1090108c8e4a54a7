"""The benchmark report: Partita beside other libraries and published methods, in one run."""
