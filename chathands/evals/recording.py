"""Replies kept in a file, and an upstream that plays them back without a model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from chathands.agent.trace import pieces_from_rows
from chathands.emulation.outcome import ModelRequest, NativeCall, Piece, Text, Thinking
from chathands.errors import ConfigError, UpstreamError
from chathands.evals.case import read_text
from chathands.upstreams.base import ModelStream, Upstream, Usage

Key = tuple[str, str, int]
"""Case id, variant, repeat."""


class Recorder:
    """An upstream that keeps what another one answers."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.name, self.context, self.local = upstream.name, upstream.context, upstream.local
        self.replies: list[dict[str, Any]] = []

    def stream(self, request: ModelRequest, *, timeout: float) -> ModelStream:
        return _RecordedStream(self._upstream.stream(request, timeout=timeout), self.replies.append)

    def taken(self) -> list[dict[str, Any]]:
        """The replies since the last time."""
        replies, self.replies = self.replies, []
        return replies

    async def aclose(self) -> None:
        await self._upstream.aclose()


class _RecordedStream:
    def __init__(self, stream: ModelStream, keep: Callable[[dict[str, Any]], None]) -> None:
        self._stream = stream
        self._keep = keep
        self._pieces: list[list[Any]] = []
        self.finish_reason: str | None = None
        self.usage: Usage | None = None

    async def __aiter__(self) -> AsyncIterator[Piece]:
        async for piece in self._stream:
            self._add(piece)
            yield piece
        self.finish_reason = self._stream.finish_reason
        self.usage = usage = self._stream.usage
        row: dict[str, Any] = {"pieces": self._pieces, "finish": self.finish_reason}
        if usage is not None:
            row["usage"] = [usage.prompt, usage.completion, usage.cached]
        self._keep(row)

    def _add(self, piece: Piece) -> None:
        """In the rows of `agent.trace`; neighbouring texts become one piece."""
        match piece:
            case Text(text) | Thinking(text):
                kind = "text" if isinstance(piece, Text) else "thinking"
                last = self._pieces[-1] if self._pieces else None
                before = self._pieces.pop()[1] if last and last[0] == kind else ""
                self._pieces.append([kind, before + text, [len(before + text)]])
            case NativeCall(index, call_id, name, arguments):
                self._pieces.append(["call", index, call_id, name, arguments, [len(arguments)]])

    async def aclose(self) -> None:
        await self._stream.aclose()


class Recorded:
    """Plays a recording back. `use(key)` says whose replies come next."""

    local = False

    def __init__(self, path: Path) -> None:
        self.name = "recorded"
        self.context = 8192
        self._replies: dict[Key, list[dict[str, Any]]] = {}
        self._seconds: dict[Key, float] = {}
        for number, line in enumerate(read_text(path).split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                key = (row["case"], row["variant"], row["repeat"])
                self._replies[key] = row["replies"]
                self._seconds[key] = float(row.get("seconds", 0))
                self.name = row.get("model", self.name)
            except (ValueError, KeyError, TypeError):
                raise ConfigError(
                    f"{path}:{number}: not a recorded case",
                    sentence=f"{path.name} 第 {number} 行不是录下的回复，请重新录制。",
                ) from None
        self._left: list[dict[str, Any]] = []

    def has(self, key: Key) -> bool:
        return key in self._replies

    def keys_of(self, case_id: str, variant: str) -> list[Key]:
        return [key for key in self._replies if key[:2] == (case_id, variant)]

    def seconds(self, key: Key) -> float:
        """What the case took when it was recorded."""
        return self._seconds[key]

    def use(self, key: Key) -> None:
        self._left = list(self._replies.get(key, ()))

    def stream(self, request: ModelRequest, *, timeout: float) -> ModelStream:
        if not self._left:
            raise UpstreamError(
                "no recorded reply is left",
                sentence="录下的回复不够用了：流程和录制时不同，请重新录制。",
            )
        return _Played(self._left.pop(0))

    async def aclose(self) -> None:
        return None


class _Played:
    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row
        self.finish_reason: str | None = row.get("finish")
        self.usage = Usage(*row["usage"]) if "usage" in row else None

    async def __aiter__(self) -> AsyncIterator[Piece]:
        for piece in pieces_from_rows(self._row["pieces"]):
            yield piece

    async def aclose(self) -> None:
        return None
