"""A bounded run of random turns; a longer one by hand is `python -m tests.fuzz --target runs`."""

from __future__ import annotations

from tests.fuzz.running import findings


def test_no_run_breaks_a_law() -> None:
    broken = next((found for found in findings("runs") if found is not None), None)
    if broken is not None:
        raise broken
