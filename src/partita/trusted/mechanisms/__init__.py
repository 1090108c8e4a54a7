"""The mechanisms: exact counts in, a release out. One file per mechanism or small family."""
