"""How fast the library is, each figure beside a named baseline of the same run."""
