"""Counters that go on after a crash and publish by the clock."""
