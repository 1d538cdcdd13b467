"""Finding a font file that has Chinese, for pictures of tables and charts."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import lru_cache
from pathlib import Path

_FONTS = (
    "NotoSansCJK-Regular.ttc", "NotoSansCJKsc-Regular.otf", "NotoSansSC-Regular.otf",
    "NotoSansSC-Regular.ttf", "NotoSansSC[wght].ttf", "NotoSansSC-VF.ttf",
    "SourceHanSansSC-Regular.otf", "SourceHanSansCN-Regular.otf", "SourceHanSans.ttc",
    "msyh.ttc", "msyh.ttf", "PingFang.ttc", "Hiragino Sans GB.ttc", "HarmonyOS_Sans_SC_Regular.ttf",
    "MiSans-Regular.ttf", "wqy-microhei.ttc", "wqy-zenhei.ttc", "DroidSansFallbackFull.ttf",
    "DroidSansFallback.ttf", "STHeiti Light.ttc", "Deng.ttf", "simhei.ttf", "simsun.ttc",
    "LXGWWenKai-Regular.ttf", "Arial Unicode.ttf", "uming.ttc", "ukai.ttc",
)  # fmt: skip
"""By preference; names as the systems and their packages have them."""
_MOST_ENTRIES = 20_000
"""Directory entries looked at; a machine with more fonts has one of these earlier."""


def find_font(font: str = "") -> Path | None:
    """The font that would be used."""
    if font and Path(font).is_file():
        return Path(font)
    return _installed()


@lru_cache(maxsize=1)
def _installed() -> Path | None:
    package = importlib.util.find_spec("pylopdf_fonts_zh_cn")  # what the extra `fonts` brings
    for where in (package.submodule_search_locations or ()) if package else ():
        if (path := Path(where, "NotoSansSC-Regular.otf")).is_file():
            return path
    wanted = {name.casefold(): rank for rank, name in enumerate(_FONTS)}
    best: tuple[int, Path] | None = None
    seen = 0
    for directory in _directories():
        for where, _, names in os.walk(directory):
            seen += len(names)
            for name in names:
                rank = wanted.get(name.casefold())
                if rank is not None and (best is None or rank < best[0]):
                    best = rank, Path(where, name)
            if seen > _MOST_ENTRIES:
                break
    return best[1] if best else None


def _directories() -> list[Path]:
    home = Path.home()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        windows = os.environ.get("WINDIR", r"C:\Windows")
        return [Path(windows, "Fonts"), Path(local, "Microsoft", "Windows", "Fonts")]
    if sys.platform == "darwin":
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library/Fonts"]
    below = ("/usr/share/fonts", "/usr/local/share/fonts")
    return [*map(Path, below), home / ".local/share/fonts", home / ".fonts"]
