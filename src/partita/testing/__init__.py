"""Tools that prove privacy by test. Only tests import them."""
