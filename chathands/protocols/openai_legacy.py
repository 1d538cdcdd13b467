"""`functions` and `function_call`, the form of tool calls before November 2023.

Clients that still write it get it back; in between it is the newer form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_functions(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request in the newer form; None when it is in that already.

    What is not the protocol stays as it is, for the validation to find.
    """
    messages = body.get("messages")
    wires = messages if isinstance(messages, list) else []
    spoken = any(
        isinstance(wire, Mapping) and (wire.get("role") == "function" or wire.get("function_call"))
        for wire in wires
    )
    functions = body.get("functions") if body.get("tools") is None else None
    if functions is None and not spoken:
        return None
    modern = {k: v for k, v in body.items() if k not in ("functions", "function_call")}
    if isinstance(messages, list):
        modern["messages"] = _messages(messages)
    if isinstance(functions, list):
        modern["tools"] = [{"type": "function", "function": one} for one in functions]
        choice = body.get("function_call")
        if isinstance(choice, Mapping):
            choice = {"type": "function", "function": choice}
        if choice is not None and "tool_choice" not in modern:
            modern["tool_choice"] = choice
    elif functions is not None:
        modern["tools"] = functions
    return modern


def _messages(wires: list[Any]) -> list[Any]:
    """A result has no id in the old form: it answers the last call of its name."""
    out: list[Any] = []
    last: dict[str, str] = {}
    for wire in wires:
        if not isinstance(wire, Mapping):
            out.append(wire)
            continue
        plain = {key: value for key, value in wire.items() if key != "function_call"}
        call = wire.get("function_call")
        if isinstance(call, Mapping):
            call_id = f"call_function_{len(out)}"
            last[str(call.get("name"))] = call_id
            plain["tool_calls"] = [{"id": call_id, "type": "function", "function": call}]
        if wire.get("role") == "function":
            plain["role"] = "tool"
            plain["tool_call_id"] = last.get(str(wire.get("name")), "")
        out.append(plain)
    return out
