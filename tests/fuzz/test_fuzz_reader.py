"""A bounded run of the reader's fuzz targets; a longer one by hand is `python -m tests.fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.running import TARGETS, findings


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "runs"])
def test_no_reply_breaks_a_law(target: str) -> None:
    broken = next((found for found in findings(target) if found is not None), None)
    if broken is not None:
        raise broken
