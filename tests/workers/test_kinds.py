from __future__ import annotations

from io import BytesIO

import pytest

from chathands.workers import kinds
from chathands.workers.protocol import Rejected
from tests.workers import books


@pytest.mark.parametrize(("cap", "value"), [("UNPACKED_CAP", 1000), ("MEMBERS_CAP", 2)])
def test_sizes_come_from_the_directory_before_anything_is_unpacked(
    monkeypatch: pytest.MonkeyPatch, cap: str, value: int
) -> None:
    data = books.orders(3)
    assert kinds.kind_of(BytesIO(data)) == "zip"
    monkeypatch.setattr(kinds, cap, value)
    with pytest.raises(Rejected, match="解压后太大"):
        kinds.kind_of(BytesIO(data))


def test_a_real_sheet_of_repeats_is_no_bomb() -> None:
    """30,000 equal rows shrink further than most sheets and still stay far below the ratio."""
    rows = [("区域", "产品", "数量"), *[("华东", "打印机", 1)] * 30_000]
    assert kinds.kind_of(BytesIO(books.book({"a": rows}))) == "zip"
