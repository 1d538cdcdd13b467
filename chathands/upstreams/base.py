"""What a model endpoint is to the rest of the program. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from chathands.emulation.outcome import ModelRequest, Piece


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the upstream counted them."""

    prompt: int
    completion: int
    cached: int = 0


class ModelStream(Protocol):
    """One reply on its way. Iterate it once; read `finish_reason` and `usage` afterwards.

    Iterating raises UpstreamError. `aclose()` may be called at any time and ends the request.
    """

    finish_reason: str | None
    usage: Usage | None

    def __aiter__(self) -> AsyncIterator[Piece]: ...

    async def aclose(self) -> None: ...


class Upstream(Protocol):
    @property
    def name(self) -> str:
        """Model name as shown to people."""
        ...

    @property
    def context(self) -> int:
        """Tokens."""
        ...

    @property
    def local(self) -> bool:
        """Runs on this machine: longer deadline, one run at a time."""
        ...

    def stream(self, request: ModelRequest, *, timeout: float) -> ModelStream:
        """Send `request`; the whole reply has `timeout` seconds."""
        ...

    async def aclose(self) -> None: ...
