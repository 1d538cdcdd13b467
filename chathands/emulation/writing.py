"""How calls and answers are written in a mode: in the contract, in history, in corrections."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from chathands.conversation import canonical_json
from chathands.emulation.outcome import Mode

NamedArguments = tuple[str, Mapping[str, Any]]
"""A tool's name and the arguments it is called with."""


class Writer(Protocol):
    """What a model is shown as its own words. Reading them again gives the same calls."""

    mode: Mode

    def calls(self, calls: Sequence[NamedArguments], thought: str = "") -> str:
        """A reply that is these calls, with the line of text kept before them."""
        ...

    def answer(self, text: str) -> str:
        """A reply that calls nothing."""
        ...

    def joined(self, before: str, after: str) -> str:
        """Two replies in a row as one."""
        ...


def render_block(name: str, arguments: Mapping[str, Any]) -> str:
    """One action block in the contract's own form."""
    return f"```json action\n{_action(name, arguments)}\n```"


def _action(name: str, arguments: Mapping[str, Any]) -> str:
    # Insertion order at the top ("tool" first) is what the form shows; below it keys are sorted.
    return f'{{"tool": {canonical_json(name)}, "parameters": {canonical_json(dict(arguments))}}}'


class Blocks:
    """`emulated`: text, and an action block for each call."""

    mode: Mode = "emulated"

    def calls(self, calls: Sequence[NamedArguments], thought: str = "") -> str:
        blocks = [render_block(name, arguments) for name, arguments in calls]
        return "\n".join([thought, *blocks] if thought else blocks)

    def answer(self, text: str) -> str:
        return text

    def joined(self, before: str, after: str) -> str:
        return f"{before}\n\n{after}"


class Objects:
    """`structured`: one JSON object for the whole reply."""

    mode: Mode = "structured"

    def calls(self, calls: Sequence[NamedArguments], thought: str = "") -> str:
        return _object(thought, [_action(name, arguments) for name, arguments in calls], "")

    def answer(self, text: str) -> str:
        return _object("", (), text)

    def joined(self, before: str, after: str) -> str:
        one, two = _own_object(before), _own_object(after)
        if one is None or two is None:
            return f"{before}\n\n{after}"
        return _object(
            "\n".join(filter(None, (one["thought"], two["thought"]))),
            [_action(c["tool"], c["parameters"]) for c in [*one["calls"], *two["calls"]]],
            "\n\n".join(filter(None, (one["answer"], two["answer"]))),
        )


def _object(thought: str, actions: Sequence[str], answer: str) -> str:
    return (
        f'{{"thought": {canonical_json(thought)}, "calls": [{", ".join(actions)}], '
        f'"answer": {canonical_json(answer)}}}'
    )


def _own_object(text: str) -> dict[str, Any] | None:
    """The object that this class wrote; None for anything else (a rejected reply, say)."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    ours = isinstance(value, dict) and value.keys() == {"thought", "calls", "answer"}
    return value if ours else None


class Plain:
    """`native`: calls as text, where the protocol has no place for them (a reply that was turned
    down, a question whether a call is right). The form is the one such models leak."""

    mode: Mode = "native"

    def calls(self, calls: Sequence[NamedArguments], thought: str = "") -> str:
        lines = [
            f'{{"name": {canonical_json(name)}, "arguments": {canonical_json(dict(arguments))}}}'
            for name, arguments in calls
        ]
        return "\n".join([thought, *lines] if thought else lines)

    def answer(self, text: str) -> str:
        return text

    def joined(self, before: str, after: str) -> str:
        return f"{before}\n\n{after}"


BLOCKS: Final[Writer] = Blocks()
WRITERS: Final[Mapping[Mode, Writer]] = {
    "emulated": BLOCKS,
    "structured": Objects(),
    "native": Plain(),
}
