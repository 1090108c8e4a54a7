"""Other libraries, each run by a small worker in an environment of its own."""
