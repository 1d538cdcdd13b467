"""Native tool calls: names that the protocol takes, and a reply's fragments as blocks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chathands.conversation import canonical_json
from chathands.emulation.outcome import NativeCall

_ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]+")
_READABLE = 48
"""Characters of a changed name that stay readable; with the hash it stays under 64."""


def wire_name(name: str) -> str:
    """The name as the chat-completions protocol takes it (`^[a-zA-Z0-9_-]{1,64}$`).

    A name that has to be changed ends in a hash of the whole, so that two never meet.
    """
    if _ACCEPTED.fullmatch(name):
        return name
    readable = _REFUSED.sub("_", name).strip("_")[:_READABLE] or "tool"
    mark = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{readable}_{mark}"


def declared_name(names: Iterable[str]) -> Callable[[str], str]:
    """From a name on the wire to the one that is declared; others stay as they are."""
    known = {wire_name(name): name for name in names}
    return lambda written: known.get(written, written)


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

    def blocks(self, declared: Callable[[str], str] = str) -> list[str]:
        """One block per call, the arguments as the model wrote them: they are read, checked and
        reviewed like any other block. `declared` gives the declared name for one on the wire."""
        return [
            f'\n```json action\n{{"tool": {canonical_json(declared(part.name))}, '
            f'"parameters": {part.arguments.strip() or "{}"}}}\n```\n'
            for part in self._in_order
        ]

    def lines(self) -> list[str]:
        """One line per call, as such models write it where they cannot call: for a history in
        which the call was turned down."""
        return [
            f'\n{{"name": {canonical_json(part.name)}, '
            f'"arguments": {part.arguments.strip() or "{}"}}}'
            for part in self._in_order
        ]

    @property
    def _in_order(self) -> list[_Part]:
        return sorted(self._parts, key=lambda part: part.index)


@dataclass(slots=True)
class _Part:
    index: int
    id: str | None = None
    name: str = ""
    arguments: str = ""
