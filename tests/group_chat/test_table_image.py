"""Tables as pictures: with a font that has Chinese, bounded, and never with boxes in them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageFont

from chathands.workers import fonts
from chathands.workers.fonts import find_font
from plugins.group_chat import table_image
from plugins.group_chat.rendering_tables import Table
from plugins.group_chat.table_image import MOST_ROWS, TALLEST, WIDEST, draw


def opened(png: bytes) -> Image.Image:
    return Image.open(BytesIO(png))


def test_a_table_is_drawn_with_a_font_that_has_chinese():
    drawn = draw(Table.of(["地区", "销售额"], [["华东", "120"], ["华南", "98"]]))
    assert drawn is not None
    assert drawn.whole
    image = opened(drawn.png)
    assert (image.format, image.mode) == ("PNG", "L")
    assert image.width < 400
    assert len(image.getcolors() or []) > 10  # letters, not only lines


def test_a_huge_table_is_bounded_and_says_so():
    for table in (
        Table.of([f"列{n}" for n in range(50)], [[f"值{n}"] * 50 for n in range(2000)]),
        Table.of(["甲", "乙"], [["字" * 5000, "b" * 5000]] * 100),
        Table.of(["甲"], [["x"]] * (MOST_ROWS + 1)),
    ):
        drawn = draw(table)
        assert drawn is not None
        assert not drawn.whole
        image = opened(drawn.png)
        assert image.width <= WIDEST + 100
        assert image.height <= TALLEST
        assert len(drawn.png) < 1_000_000


def test_what_the_font_cannot_write_is_not_drawn():
    assert draw(Table.of(["状态"], [["🦩"]])) is None


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch):
    """A machine without the extra `fonts`."""
    monkeypatch.setattr(fonts.importlib.util, "find_spec", lambda name: None)
    for cached in (fonts._installed, table_image._pen):
        cached.cache_clear()
    yield
    for cached in (fonts._installed, table_image._pen):
        cached.cache_clear()


def test_well_known_names_are_found_by_preference(no_package, monkeypatch, tmp_path: Path):
    below = tmp_path / "truetype" / "wqy"
    below.mkdir(parents=True)
    for name in ("DejaVuSans.ttf", "simsun.ttc", "WQY-MicroHei.ttc"):
        (below / name).write_bytes(b"")
    monkeypatch.setattr(fonts, "_directories", lambda: [tmp_path / "none", tmp_path])
    assert find_font() == below / "WQY-MicroHei.ttc"
    chosen = tmp_path / "own.ttf"
    chosen.write_bytes(b"")
    assert find_font(str(chosen)) == chosen
    assert find_font(str(tmp_path / "missing.ttf")) == below / "WQY-MicroHei.ttc"


def test_without_a_usable_font_there_is_no_picture(no_package, monkeypatch, tmp_path: Path):
    table = Table.of(["a"], [["b"]])
    monkeypatch.setattr(fonts, "_directories", lambda: [tmp_path])
    assert draw(table) is None
    (tmp_path / "msyh.ttc").write_bytes(b"not a font")
    for cached in (fonts._installed, table_image._pen):
        cached.cache_clear()
    assert draw(table) is None
    table_image._pen.cache_clear()
    latin = ImageFont.load_default(26)
    monkeypatch.setattr(ImageFont, "truetype", lambda *_, **__: latin)
    assert draw(table) is None  # a font, but without Chinese
