"""Native tool calls in an emulated turn: put together and written as blocks of the contract."""

from __future__ import annotations

from dataclasses import dataclass

from chathands.conversation import canonical_json
from chathands.emulation.outcome import NativeCall


class NativeCalls:
    """Fragments of one reply's native calls.

    Fragments of one `index` belong together, until another id comes at that index: some servers
    number every parallel call 0. A name that comes again with each fragment counts once.
    """

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._current: dict[int, _Part] = {}

    def add(self, piece: NativeCall) -> None:
        part = self._current.get(piece.index)
        if part is None or (piece.id and part.id and piece.id != part.id):
            part = self._current[piece.index] = _Part(piece.index)
            self._parts.append(part)
        part.id = part.id or piece.id
        if piece.name and piece.name != part.name:
            part.name += piece.name
        part.arguments += piece.arguments

    def blocks(self) -> list[str]:
        """One block per call, the arguments as the model wrote them: they are read, checked and
        reviewed like any other block."""
        return [
            f'\n```json action\n{{"tool": {canonical_json(part.name)}, '
            f'"parameters": {part.arguments.strip() or "{}"}}}\n```\n'
            for part in sorted(self._parts, key=lambda part: part.index)
        ]


@dataclass(slots=True)
class _Part:
    index: int
    id: str | None = None
    name: str = ""
    arguments: str = ""
