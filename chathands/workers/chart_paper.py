"""What every chart is drawn on: a sheet of pixels, letters that the font really has, axis steps.

Pillow and not matplotlib: that is 30 MB more to install, 0.4 s and 60 MB more in the child, and it
draws boxes for what its font lacks, with a warning nobody sees.
"""

from __future__ import annotations

import math
import unicodedata
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from chathands.workers.cells import show_number
from chathands.workers.protocol import Rejected

SCALE = 2
"""Drawn twice as large and made smaller, so that slanted lines and circles are smooth."""

INK, GREY, LINES = (40, 40, 40), (110, 110, 110), (222, 222, 222)
PALETTE = (
    (54, 112, 190), (233, 128, 43), (76, 160, 90), (200, 70, 72), (128, 100, 180),
    (140, 106, 84), (214, 120, 176), (120, 130, 140), (178, 176, 52), (54, 170, 186),
)  # fmt: skip

NO_FONT = (
    "这台机器的字体文件打不开，或者没有中文，画不了图。"
    '管理员请装上字体（pip install "chathands[fonts]"），或写 CHATHANDS__GROUP__FONT=字体文件。'
)

_JOINERS = "\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff"


class Letters:
    """One font in several sizes; texts lose what it cannot write, and that is remembered."""

    def __init__(self, path: str) -> None:
        """Raises Rejected for a file that is no font, or has no Chinese."""
        self._path = path
        self._fonts: dict[int, Any] = {}
        self._has: dict[str, bool] = {}
        self.replaced: dict[str, None] = {}
        """Characters that were written as `?`."""
        try:
            self._missing = self._shape("\U0010fffd")
        except (OSError, ValueError) as error:
            raise Rejected(NO_FONT) from error
        if not self.has("中"):
            raise Rejected(NO_FONT)

    def font(self, size: int) -> Any:
        if size not in self._fonts:
            self._fonts[size] = ImageFont.truetype(
                self._path, size * SCALE, layout_engine=ImageFont.Layout.BASIC
            )
        return self._fonts[size]

    def has(self, character: str) -> bool:
        """Whether the font has a picture of its own for it, with ink in it."""
        if character not in self._has:
            shape = self._shape(character)
            self._has[character] = character == " " or (shape != self._missing and any(shape[1]))
        return self._has[character]

    def clean(self, text: str) -> str:
        """One line of letters that can be drawn."""
        text = unicodedata.normalize("NFC", " ".join(text.split()))
        kept: list[str] = []
        for character in text:
            if character in _JOINERS or unicodedata.category(character) in ("Cc", "Cf"):
                continue
            if not self.has(character):
                self.replaced[character] = None
                character = "?"
            kept.append(character)
        return "".join(kept)

    def width(self, text: str, size: int) -> float:
        """Pixels of the finished picture."""
        return self.font(size).getlength(text) / SCALE

    def cut(self, text: str, size: int, room: float) -> str:
        """The text, or its beginning and `…`, within `room` pixels."""
        if self.width(text, size) <= room:
            return text
        end = "…" if self.has("…") else ".."
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.width(f"{text[:middle]}{end}", size) <= room:
                low = middle
            else:
                high = middle - 1
        return f"{text[:low]}{end}"

    def _shape(self, character: str) -> tuple[Any, bytes]:
        mask = self.font(24).getmask(character)
        return mask.size, bytes(mask)


class Paper:
    """A picture in the making; coordinates are pixels of the finished one."""

    def __init__(self, width: int, height: int, letters: Letters) -> None:
        self.width, self.height, self.letters = width, height, letters
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), "white")
        self._draw = ImageDraw.Draw(self._image)

    def text(
        self, x: float, y: float, text: str, size: int, fill: Any = INK, anchor: str = "la"
    ) -> None:
        """`anchor` as Pillow has it: which point of the text is at (x, y)."""
        at = (x * SCALE, y * SCALE)
        self._draw.text(at, text, font=self.letters.font(size), fill=fill, anchor=anchor)

    def line(self, points: list[tuple[float, float]], fill: Any, width: float = 1) -> None:
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        self._draw.line(scaled, fill=fill, width=round(width * SCALE), joint="curve")

    def box(self, left: float, top: float, right: float, bottom: float, fill: Any) -> None:
        """Also when the corners come in the other order."""
        (left, right), (top, bottom) = sorted((left, right)), sorted((top, bottom))
        self._draw.rectangle([v * SCALE for v in (left, top, right, bottom)], fill=fill)

    def dot(self, x: float, y: float, radius: float, fill: Any) -> None:
        around = (x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse([v * SCALE for v in around], fill=fill)

    def slice(self, x: float, y: float, radius: float, start: float, end: float, fill: Any) -> None:
        around = [v * SCALE for v in (x - radius, y - radius, x + radius, y + radius)]
        self._draw.pieslice(around, start, end, fill=fill, outline="white", width=SCALE)

    def png(self) -> bytes:
        out = BytesIO()
        small = self._image.resize((self.width, self.height), Image.Resampling.LANCZOS)
        small.quantize(128).save(out, "PNG", compress_level=6)
        return out.getvalue()


def steps(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about as many as wanted."""
    if not high > low:
        high = low + (abs(low) or 1.0)
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    size = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough * 0.999)
    first, last = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return [float(f"{at * size:.12g}") for at in range(first, last + 1)]


def unit_of(largest: float) -> tuple[float, str]:
    """What numbers of that size are written in."""
    for size, name in ((1e8, "亿"), (1e4, "万")):
        if largest >= 10 * size:
            return size, name
    return 1.0, ""


def number(value: float, decimals: int = 2) -> str:
    """Short enough for a label."""
    if abs(value) >= 1e12:
        return f"{value:.2e}"
    shown = show_number(value, decimals)
    # What is not nothing is not written as nothing.
    return f"{float(f'{value:.2g}'):.10g}" if shown == "0" and value else shown
