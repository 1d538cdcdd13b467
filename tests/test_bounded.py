"""What is remembered of people and messages stays small."""

from __future__ import annotations

from chathands.bounded import Bounded


def test_what_was_set_longest_ago_is_forgotten_first():
    kept: Bounded[str, int] = Bounded(2)
    kept["a"], kept["b"] = 1, 2
    kept["a"] = 3  # set again: younger than b now
    kept["c"] = 4
    assert list(kept.items()) == [("a", 3), ("c", 4)]
