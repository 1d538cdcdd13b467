"""A bounded run of the reader's fuzz targets; a longer one by hand is `python -m tests.fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.running import findings


@pytest.mark.parametrize(
    "target", ["any text", "faultless calls", "damaged blocks", "cut replies", "schemas"]
)
def test_no_reply_breaks_a_law(target: str) -> None:
    broken = next((found for found in findings(target) if found is not None), None)
    if broken is not None:
        raise broken
