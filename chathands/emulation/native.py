"""Native tool calls in an emulated turn: put together and written as blocks of the contract."""

from __future__ import annotations

from chathands.conversation import canonical_json
from chathands.emulation.outcome import NativeCall


class NativeCalls:
    """Fragments of one reply's native calls, by index."""

    def __init__(self) -> None:
        self._parts: dict[int, list[str]] = {}

    def add(self, piece: NativeCall) -> None:
        part = self._parts.setdefault(piece.index, ["", ""])
        part[0] += piece.name or ""
        part[1] += piece.arguments

    def blocks(self) -> list[str]:
        """One block per call, the arguments as the model wrote them: they are read, checked and
        reviewed like any other block."""
        return [
            f'\n```json action\n{{"tool": {canonical_json(name)}, '
            f'"parameters": {arguments.strip() or "{}"}}}\n```\n'
            for _, (name, arguments) in sorted(self._parts.items())
        ]
