"""From a value to the calls it holds: which key is the name, which are the arguments.

The contract's form is `{"tool": …, "parameters": {…}}`; models bring the keys of every other format
they were trained on. A key that nobody knows never becomes a call without arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from chathands.emulation.dialects.words import (
    ARGUMENT_KEYS,
    CALLERS,
    LATE_NAME_KEYS,
    NAME_KEYS,
    REMARKS,
    THOUGHTS,
    WRAPPERS,
    is_name_key,
    plain_key,
)
from chathands.emulation.lenient_json import read_value
from chathands.emulation.reading_found import MISSING, Found
from chathands.emulation.reading_tokens import Call, Detail, State
from chathands.emulation.reading_tools import Tools
from chathands.limits import THOUGHT_BEFORE_BLOCK
from chathands.schema import plain_name

_DEPTH: Final = 6
"""Wrappers inside wrappers, strings inside strings; deeper is nobody's format."""
_SENTENCE_END: Final = re.compile(r"(?<=[。！？!?])|(?<=\.)(?=\s)|\n")
_PRINTERS: Final = frozenset(
    {"print", "return", "await", "str", "list", "functools", "multi_tool_use.parallel"}
)


def calls_in(value: Any, tools: Tools, depth: int = 0) -> list[Found]:
    """Everything in a value that has the form of a call, in order."""
    if depth > _DEPTH:
        return []
    if isinstance(value, Call):
        return _in_call(value, tools, depth)
    if isinstance(value, str):
        return _in_text(value, tools, depth)
    if isinstance(value, list):
        if _is_pair(value, tools):
            return [Found(value[0], value[1])]
        return [found for item in value for found in calls_in(item, tools, depth + 1)]
    if isinstance(value, dict):
        return _in_object(value, tools, depth)
    return []


def _is_pair(value: list[Any], tools: Tools) -> bool:
    """Whether this is `["get_weather", {"city": "x"}]`."""
    if len(value) != 2 or not isinstance(value[0], str) or tools.find(value[0]) is None:
        return False
    return value[1] is None or isinstance(value[1], dict) or str(value[1]).lstrip()[:1] == "{"


def _in_text(text: str, tools: Tools, depth: int) -> list[Found]:
    """A call written out as a string: `"{\\"tool\\": …}"`, `"get_weather(city='x')"`."""
    text = text.strip()
    if text[:1] not in ("{", "[") and "(" not in text[:200]:
        return []
    read = read_value(text, tools)
    rest = read.src.buf[read.src.pos :].strip()
    if read.state is not State.WHOLE or rest or isinstance(read.value, str):
        return []
    found = calls_in(read.value, tools, depth + 1)
    for each in found:
        each.repairs.update(read.repairs)
    return found


def _in_call(call: Call, tools: Tools, depth: int) -> list[Found]:
    if tools.find(call.name) is None:
        if call.name in _PRINTERS:
            return calls_in([*call.args, *call.kwargs.values()], tools, depth + 1)
        if plain_key(call.name.rpartition(".")[2]) in CALLERS:
            if call.args and isinstance(call.args[0], str):
                rest = call.args[1] if len(call.args) > 1 else dict(call.kwargs) or MISSING
                return [Found(call.args[0], rest)]
            return calls_in(call.kwargs or call.args, tools, depth + 1)
        return [Found(call.name, dict(call.kwargs))]
    found = Found(call.name, dict(call.kwargs))
    spec = tools.find(call.name)
    names = list(tools.schema(spec).properties) if spec else []
    if _is_all(call, names):
        found.arguments = call.args[0]
    elif call.args:
        if len(call.args) > len(names) or set(names[: len(call.args)]) & set(call.kwargs):
            found.state = State.BROKEN
            found.detail = ("positional", "")
        else:
            found.arguments = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
            found.repairs["positional"] = None
    return [] if _is_signature(found.arguments) else [found]


def _is_all(call: Call, names: list[str]) -> bool:
    """Whether the one value given holds all arguments, `f({"a": 1})`, and is not the first one."""
    if len(call.args) != 1 or call.kwargs or not isinstance(call.args[0], dict):
        return False
    plain = {plain_name(name) for name in names}
    return not names or not call.args[0] or any(plain_name(key) in plain for key in call.args[0])


def _is_signature(arguments: Any) -> bool:
    """Whether `get_weather(city)` names its parameters instead of giving them values."""
    return isinstance(arguments, dict) and any(k == v for k, v in arguments.items())


def _in_object(value: dict[str, Any], tools: Tools, depth: int) -> list[Found]:
    plain = {key: plain_key(key) for key in value}
    names = [key for key in value if plain[key] in NAME_KEYS]
    given = [key for key in value if plain[key] in ARGUMENT_KEYS]
    parallel = _in_parallel(value, names, given, tools)
    if parallel:
        return parallel
    for key in names:
        if given and isinstance(value[key], dict) and set(value[key]) == {"name"}:
            value = {**value, key: value[key]["name"]}  # `{"function": {"name": "x"}, …}`
    name_key = next(
        (k for k in names if isinstance(value[k], str) and tools.find(value[k])),
        next((k for k in names if isinstance(value[k], str) and value[k] != "function"), None),
    )
    if name_key is None or tools.find(value[name_key]) is None:
        late = (k for k in value if plain[k] in LATE_NAME_KEYS and isinstance(value[k], str))
        name_key = next((k for k in late if tools.find(value[k])), name_key)
    if name_key is None or tools.find(value[name_key]) is None:
        inside = _in_wrapper(value, plain, tools, depth)
        if inside:
            inside[0].thought = inside[0].thought or _thought_in(value, plain, {})
            return inside
        swapped = _swapped(value, names, given, tools)
        if swapped:
            return [swapped]
    if name_key is None:
        return _in_named_keys(value, plain, tools)
    name = value[name_key]
    spec = tools.find(name)
    if spec is None and "(" in name:
        expression = _in_text(name, tools, depth)
        if expression and not any(value[key] for key in given):
            return expression
    found = Found(name, repairs={} if name_key in ("tool", "name") else {"keys": None})
    properties = tools.schema(spec).properties if spec else {}
    found.thought = _thought_in(value, plain, properties)
    # an argument may have a name like `args` or `input` itself: then it is one among others
    own = [key for key in given if key not in properties or isinstance(value[key], dict)]
    empty = [key for key in own if value[key] in (None, "", {})]
    rest = {k: v for k, v in value.items() if k != name_key and k not in (*own[:1], *empty)}
    flat = {k: v for k, v in rest.items() if k in properties or plain[k] not in REMARKS | NAME_KEYS}
    # `"parameters": null, "arguments": …`; and text is less likely than an object
    own.sort(key=lambda key: (value[key] in (None, "", {}), not isinstance(value[key], dict)))
    if clash := _clash(value, own, [name_key, *names], properties, tools):
        found.state, found.detail = State.BROKEN, clash
        return [found]
    if own:
        found.arguments = value[own[0]]
        if own[0] not in ("parameters", "arguments"):
            found.repairs["keys"] = None
        spilled = {k: v for k, v in flat.items() if k in properties}
        if clash := _contradicted(found.arguments, spilled, plain):
            found.state, found.detail = State.BROKEN, ("two_values", clash)
        if spilled and not _holds(found.arguments, spilled):
            found.arguments = _merged(found.arguments, spilled)
            found.repairs["spilled"] = None
    elif flat:
        _flat_arguments(found, flat, properties)
    return [found]


def _thought_in(
    value: Mapping[str, Any], plain: Mapping[str, str], properties: Mapping[str, Any]
) -> str:
    """The first sentence of what stands under `thought` beside the call; "" without one."""
    texts = (
        held for key, held in value.items() if plain[key] in THOUGHTS and key not in properties
    )
    text = next((held for held in texts if isinstance(held, str)), "")
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0][:THOUGHT_BEFORE_BLOCK].strip()


def _clash(
    value: Mapping[str, Any],
    own: list[str],
    names: list[str],
    properties: Mapping[str, Any],
    tools: Tools,
) -> Detail | None:
    """What is said twice and differently: two declared tools, or two objects of arguments. Which
    one is meant only the model can say."""
    named = {key: value[key] for key in names if key not in properties or key == names[0]}
    specs = {key: tools.find(name) for key, name in named.items() if isinstance(name, str)}
    known = {spec.name: None for spec in specs.values() if spec is not None}
    if len(known) > 1:
        return "two_tools", "` / `".join(known)
    given = {key: _as_arguments(value[key], tools) for key in own if key not in properties}
    told = [key for key, arguments in given.items() if arguments]
    if any(given[key] != given[told[0]] for key in told[1:]):
        return "two_arguments", "` / `".join(told)
    return None


def _as_arguments(held: Any, tools: Tools) -> Any:
    """An object of arguments, also one that is written as text; None for anything else."""
    if isinstance(held, str) and held.lstrip()[:1] == "{":
        read = read_value(held.strip(), tools)
        held = read.value if read.state is State.WHOLE else held
    return held if isinstance(held, dict) else None


def _in_parallel(
    value: dict[str, Any], names: list[str], given: list[str], tools: Tools
) -> list[Found]:
    """`{"tool": ["a", "b"], "parameters": [{…}, {…}]}`: as many arguments as names."""
    if not names or not given or not isinstance(value[names[0]], list):
        return []
    written, arguments = value[names[0]], value[given[0]]
    if not all(isinstance(name, str) and tools.find(name) for name in written):
        return []
    if not isinstance(arguments, list) or len(arguments) != len(written):
        return []
    if not all(isinstance(each, dict) for each in arguments):
        return []
    return [
        Found(name, each, repairs={"parallel": None})
        for name, each in zip(written, arguments, strict=True)
    ]


def _flat_arguments(found: Found, flat: dict[str, Any], properties: Mapping[str, Any]) -> None:
    """Arguments beside the name, or under one key that nobody knows."""
    found.weak = True
    found.arguments = flat
    found.repairs["flat"] = None
    if len(flat) == 1 and not set(flat) & set(properties):
        (only,) = flat.values()
        if (
            isinstance(only, dict)
            and only
            and {plain_name(k) for k in only} <= {plain_name(p) for p in properties}
        ):
            found.arguments = only
            found.repairs["unknown_key"] = None


def _holds(arguments: Any, spilled: dict[str, Any]) -> bool:
    if arguments in (None, ""):
        return False
    return not isinstance(arguments, dict) or any(key in arguments for key in spilled)


def _contradicted(arguments: Any, spilled: dict[str, Any], plain: Mapping[str, str]) -> str | None:
    """The argument that stands beside the arguments with another value than in them. A word that
    calls carry themselves (`name`, `id`, `message`) is none."""
    if not isinstance(arguments, dict):
        return None
    both = (key for key in spilled if key in arguments and plain[key] not in REMARKS | NAME_KEYS)
    return next((key for key in both if spilled[key] != arguments[key]), None)


def _merged(arguments: Any, spilled: dict[str, Any]) -> Any:
    return {**arguments, **spilled} if isinstance(arguments, dict) else arguments or spilled


def _in_wrapper(
    value: dict[str, Any], plain: Mapping[str, str], tools: Tools, depth: int
) -> list[Found]:
    """Calls under `tool_calls`, `function`, `action` … when these hold objects, not a name."""
    found: list[Found] = []
    for key, held in value.items():
        wraps = plain[key] in WRAPPERS or (plain[key] == "content" and "role" in value)
        if wraps and isinstance(held, dict | list):
            found += calls_in(held, tools, depth + 1)
        elif key == "parameters" and isinstance(held, dict) and set(held) == {"tool_uses"}:
            found += calls_in(held["tool_uses"], tools, depth + 1)
    known = [each for each in found if each.name is not None]
    return known if any(tools.find(each.name or "") for each in known) else []


def _swapped(
    value: dict[str, Any], names: list[str], given: list[str], tools: Tools
) -> Found | None:
    """`{"name": {…arguments…}, "arguments": "tool"}`."""
    for name_key in names:
        for key in given:
            held = value[key]
            if isinstance(held, str) and isinstance(value[name_key], dict) and tools.find(held):
                return Found(held, value[name_key], repairs={"swapped": None})
    return None


def _in_named_keys(value: dict[str, Any], plain: Mapping[str, str], tools: Tools) -> list[Found]:
    """`{"get_weather": {"city": "x"}}`: the tool's name is the key."""
    keys = [key for key in value if plain[key] not in REMARKS or tools.find(key)]
    if not keys or not all(_may_be_arguments(value[key]) for key in keys):
        return []
    if not all(tools.find(key) for key in keys) and not (
        len(keys) == 1 and isinstance(value[keys[0]], dict)
    ):
        return []
    return [
        Found(key, arguments, repairs={"name_as_key": None}, weak=True)
        for key in keys
        for arguments in (value[key] if isinstance(value[key], list) else [value[key]])
    ]


def complete_ones(
    begun: list[tuple[Any, str | None]], tools: Tools
) -> tuple[list[Found], str | None]:
    """From brackets that were never closed: the calls in them that are whole, and the name of the
    one that is not.
    """
    whole: list[Found] = []
    for box, key in begun[:3]:
        if isinstance(box, list):
            whole = calls_in(box, tools)
            continue
        name = _name_so_far(box, tools)
        if name is None and key is not None and tools.find(key):
            name = key  # `{"get_weather": {"city": …`
        if name is not None or not (key and plain_key(key) in WRAPPERS):
            return whole, name
    return whole, None


def _name_so_far(box: Any, tools: Tools) -> str | None:
    if isinstance(box, Call):
        return box.name if box.name not in _PRINTERS else None
    if not isinstance(box, dict):
        return None
    written = [v for k, v in box.items() if is_name_key(k) and isinstance(v, str)]
    return next((name for name in written if tools.find(name)), written[0] if written else None)


def _may_be_arguments(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) for item in value)
    return value is None or isinstance(value, dict | str)
