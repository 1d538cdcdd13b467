"""In which mode an upstream is asked, why, and what it has been measured to do best.

`chathands doctor model` measures and stores; `auto` reads. Nothing here asks a model anything.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from chathands.emulation.outcome import Enforcement, Mode, ModelRequest, ThinkingStyle
from chathands.errors import StoreError, UpstreamError
from chathands.settings import Settings
from chathands.upstreams.weights import DEFAULT

_log = logging.getLogger(__name__)

FILE = "models.json"
LOCAL = "local"
UNNAMED = "default"
"""Sent as the model's name when none is set: servers with a single model accept any."""

NOT_TAKEN = (400, 422)
"""Statuses by which servers refuse fields they do not know; their texts say it in many ways."""

_WEAKER: Mapping[Enforcement, Enforcement] = {
    "json_schema": "json_object",
    "json_object": "prompt",
}


@dataclass(frozen=True, slots=True)
class Way:
    """How tools are offered to an upstream, and how it thinks in its text."""

    mode: Mode = "emulated"
    enforcement: Enforcement = "json_schema"
    thinking: ThinkingStyle = "none"
    detour: str = ""
    """The fallback upstream that has to be asked this way; what it takes says nothing about the
    one that is usually asked."""

    @property
    def weaker(self) -> Way | None:
        """What asks less of the upstream; None where nothing is left to take away."""
        if self.mode == "native":
            return replace(self, mode="emulated")
        if self.mode == "structured" and self.enforcement in _WEAKER:
            return replace(self, enforcement=_WEAKER[self.enforcement])
        return None

    def __str__(self) -> str:
        return f"{self.mode}（{self.enforcement}）" if self.mode == "structured" else self.mode


class OtherWay(UpstreamError):
    """The upstream that was asked is down, and the next one has to be asked in this `way`."""

    def __init__(self, way: Way) -> None:
        super().__init__(f"{way.detour} has to be asked in {way}", nothing_received=True)
        self.way = way


class Ways:
    """The way one upstream is asked, for the life of the process."""

    def __init__(self, way: Way | None = None, why: str = "") -> None:
        self.way = way or Way()
        self.why = why
        """One Chinese phrase; empty when the settings say the mode."""

    def after(self, error: UpstreamError, request: ModelRequest, way: Way) -> Way | None:
        """The way to ask once more after `request` was refused; None if that is no help.

        Only the status counts, and only before any byte of an answer; or another upstream that
        steps in has to be asked in a way of its own.
        """
        if isinstance(error, OtherWay):
            return error.way
        carried = request.response_format is not None or request.tools is not None
        if not carried or error.status not in NOT_TAKEN or not error.nothing_received:
            return None
        return way.weaker

    def accepted(self, way: Way) -> None:
        """A reply came to a request in this way: from now on no request begins with more."""
        known: Way | None = self.way
        while known is not None and known != way:
            known = known.weaker
        if known is not None and way != self.way:
            _log.warning("the upstream refuses %s; from now on it is asked in %s", self.way, way)
            self.why = f"上游不接受 {self.way}"
            self.way = way

    def __str__(self) -> str:
        return f"{self.way}（{self.why}）" if self.why else str(self.way)


@dataclass(frozen=True, slots=True)
class Measured:
    """What `chathands doctor model` found for one model at one address."""

    address: str
    """Host, port and path, or `local`; never user, password or query."""
    name: str
    date: str
    """ISO, a day."""
    way: Way
    reason: str
    """Why this way, in Chinese."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """By mode, as the table shows them."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "address": self.address,
            "name": self.name,
            "date": self.date,
            "mode": self.way.mode,
            "enforcement": self.way.enforcement,
            "thinking": self.way.thinking,
            "reason": self.reason,
            "figures": dict(self.figures),
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Measured:
        """Raises KeyError, TypeError or ValueError for what this program does not write."""
        mode, enforcement, thinking = row["mode"], row["enforcement"], row["thinking"]
        if mode not in get_args(Mode) or enforcement not in get_args(Enforcement):
            raise ValueError("no such mode")
        if thinking not in get_args(ThinkingStyle):
            raise ValueError("no such style of thinking")
        return cls(
            str(row["address"]),
            str(row["name"]),
            str(row["date"]),
            Way(mode, enforcement, thinking),
            str(row["reason"]),
            dict(row["figures"]),
        )


def model_key(settings: Settings) -> tuple[str, str]:
    """Address and name under which the configured model's measurement is kept."""
    model = settings.model
    if model.base_url is None:
        return LOCAL, model.name or DEFAULT
    parts = urlsplit(model.base_url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname or '?'}{port}{parts.path.rstrip('/')}", model.name or UNNAMED


def measured_for(settings: Settings) -> Measured | None:
    """The stored measurement of the configured model, if there is one."""
    key = model_key(settings)
    for row in _rows(settings.state_dir / FILE):
        try:
            measured = Measured.from_dict(row)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # of another version, or edited by hand: measuring again writes it anew
        if (measured.address, measured.name) == key:
            return measured
    return None


def ways_of(settings: Settings) -> Ways:
    """How the configured model is asked: as the settings say, or as it was measured."""
    ways = _ways_of(settings)
    entry = settings.models.get(settings.entry or "")
    if entry is not None and entry.thinking is not None:
        ways.way = replace(ways.way, thinking=entry.thinking)
    return ways


def _ways_of(settings: Settings) -> Ways:
    measured = measured_for(settings)
    mode = settings.model.mode
    if measured is None:
        if mode == "auto":
            return Ways(Way(), "没有测量过")
        return Ways(Way(mode))
    if mode == "auto":
        return Ways(measured.way, f"按 {measured.date} 的测量")
    return Ways(replace(measured.way, mode=mode))


def mode_line(settings: Settings, ways: Ways | None = None) -> str:
    """Mode and reason for start banners: `auto → native（按 2026-11-30 的测量）`."""
    ways = ways or ways_of(settings)
    return f"auto → {ways}" if settings.model.mode == "auto" else str(ways)


def store(state_dir: Path, measured: Measured) -> Path:
    """Keep a measurement in place of the last one of the same model; whole or not at all.

    Raises StoreError.
    """
    file = state_dir / FILE
    key = (measured.address, measured.name)
    rows = [row for row in _rows(file) if (row.get("address"), row.get("name")) != key]
    text = json.dumps([*rows, measured.to_dict()], ensure_ascii=False, indent=1)
    temporary = None
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=state_dir, prefix=".models-", delete=False
        ) as out:
            temporary = out.name
            out.write(text + "\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise StoreError(
            f"{file} cannot be written: {error}",
            sentence=f"测量结果写不进 {FILE}，请检查磁盘和 CHATHANDS__STATE_DIR 的权限。",
        ) from error
    return file


def _rows(file: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        _log.warning("%s cannot be read and counts as empty: %s", file, error)
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
