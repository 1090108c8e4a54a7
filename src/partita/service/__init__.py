"""The HTTP service: a reading side for everybody and a steward side."""
