from __future__ import annotations

import re
from io import BytesIO

import pytest

from chathands.workers import sheetscan
from tests.workers import books

ROWS = [("品名", "金额"), *[(f"品{n}", f"=A{n}*2" if n % 3 else "#DIV/0!") for n in range(2, 62)]]


def prefixed(xml: str) -> str:
    """As some .NET writers do it: every element with a prefix."""
    return re.sub(r"<(/?)(\w)", r"<\1x:\2", xml).replace(" xmlns=", " xmlns:x=")


@pytest.mark.parametrize("chunk", [37, 1000, 1024 * 1024])
@pytest.mark.parametrize("edit", [str, prefixed])
def test_every_cell_is_judged_wherever_the_chunks_end(
    monkeypatch: pytest.MonkeyPatch, chunk: int, edit: type[str]
) -> None:
    monkeypatch.setattr(sheetscan, "_CHUNK", chunk)
    data = books.edited(books.book({"表": ROWS}), books.SHEET, edit)
    findings = sheetscan.scan(BytesIO(data), "表")
    assert findings.uncomputed == 40
    assert findings.uncomputed_at == ["B2", "B4", "B5"]
    assert findings.errors == 20
    assert findings.errors_at[0] == "B3 #DIV/0!"


def test_an_unknown_sheet_or_a_broken_archive_has_no_findings() -> None:
    data = books.book({"表": ROWS})
    assert sheetscan.scan(BytesIO(data), "别的") == sheetscan.Findings()
    assert sheetscan.scan(BytesIO(data[:500]), "表") == sheetscan.Findings()
    assert sheetscan.scan(BytesIO(books.damaged(data)), "表").errors == 0
