"""Other ways to read calls out of a reply, all behind one shape: reply in, list of calls out.

A library that is not installed stays in the list with `read=None`, so that a table can say so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from types import ModuleType
from typing import Any

Calls = list[dict[str, Any]]
Reader = Callable[[str], Calls]
Tools = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Peer:
    name: str
    read: Reader | None
    """None: not installed."""
    failures: tuple[type[BaseException], ...] = (ValueError, TypeError, RecursionError)
    """What reading raises on text it cannot take; then nothing was found, and it is counted."""


NAMES = (
    "chathands",
    "glue + json.loads",
    "glue + json_repair",
    "agent-tool-parser",
    "agent-tool-parser, Python",
    "baml-py, class per tool",
)


def peers(tools: Tools, names: Sequence[str] = NAMES) -> list[Peer]:
    """The readers of these names, in this order."""
    return [_MAKERS[name](name, tools) for name in names]


def functions(tools: Tools) -> dict[str, Mapping[str, Any]]:
    """Name to JSON Schema."""
    bare = [tool.get("function", tool) for tool in tools]
    return {tool["name"]: tool.get("parameters", {}) for tool in bare}


def _installed(module: str, name: str, distribution: str) -> str | None:
    """The name with the version behind it; None when the module is not there."""
    found = importlib.util.find_spec(module) is not None
    return f"{name} {version(distribution)}" if found else None


# --- ours


def _chathands(name: str, tools: Tools) -> Peer:
    from chathands.conversation import as_specs
    from chathands.emulation.reading import parse_reply

    specs = as_specs(tools)

    def read(reply: str) -> Calls:
        calls = parse_reply(reply, specs).calls
        return [{"tool": call.name, "parameters": dict(call.arguments)} for call in calls]

    return Peer(name, read, failures=())


# --- thirty lines of glue around a JSON library


def glue(loads: Callable[[str], Any], names: set[str]) -> Reader:
    """What people write themselves: strip thinking, take the first fence, load, map the keys."""

    def read(reply: str) -> Calls:
        reply = re.sub(r"<think>.*?</think>", "", reply, flags=re.DOTALL)
        fence = re.search(r"```[^\n{\[]*\n?(.*?)```", reply, re.DOTALL)
        body = fence.group(1) if fence else reply
        if not fence and (bare := re.search(r"[{\[].*[}\]]", reply, re.DOTALL)):
            body = bare.group()
        try:
            value = loads(body.strip())
        except ValueError:
            return []
        calls = []
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                continue
            keys = ("tool", "name", "function", "action", "tool_name")
            name = next((item[k] for k in keys if isinstance(item.get(k), str)), None)
            given = ("parameters", "arguments", "args", "input", "params", "action_input")
            arguments = next((item[k] for k in given if k in item), {})
            if isinstance(arguments, str):
                arguments = json.loads(arguments) if arguments.startswith("{") else {}
            if name in names:
                calls.append({"tool": name, "parameters": arguments or {}})
        return calls

    return read


def _json(name: str, tools: Tools) -> Peer:
    return Peer(name, glue(json.loads, set(functions(tools))))


def _json_repair(name: str, tools: Tools) -> Peer:
    label = _installed("json_repair", name, "json-repair")
    if label is None:
        return Peer(name, None)
    import json_repair

    return Peer(label, glue(json_repair.loads, set(functions(tools))))


# --- agent-tool-parser


def _agent_tool_parser(name: str, tools: Tools) -> Peer:
    """Its Rust engine cuts strings at byte offsets and panics inside Chinese characters, with an
    exception that is no `Exception`; the Python one beside it is slower and reads more."""
    label = _installed("agent_tool_parser", name, "agent-tool-parser")
    if label is None:
        return Peer(name, None)
    if name.endswith("Python"):
        from agent_tool_parser.parser import (  # pyright: ignore[reportMissingImports]
            try_parse_tool_calls,
        )
    else:
        from agent_tool_parser import (  # pyright: ignore[reportMissingImports]
            try_parse_tool_calls,
        )
    names = set(functions(tools))

    def read(reply: str) -> Calls:
        calls = [(call.name, call.args) for call in try_parse_tool_calls(reply)]
        return [{"tool": name, "parameters": given} for name, given in calls if name in names]

    return Peer(label, read, failures=(BaseException,))


# --- BAML


def _baml(name: str, tools: Tools) -> Peer:
    """Its runtime without generated code: one class for each tool, the reply a list of them."""
    label = _installed("baml_py", name, "baml-py")
    if label is None:
        return Peer(name, None)
    os.environ.setdefault("BAML_LOG", "off")
    os.environ.setdefault("RUST_BACKTRACE", "0")
    from baml_py import BamlRuntime  # pyright: ignore[reportMissingImports]

    source = _BamlSource()
    for at, (tool, schema) in enumerate(functions(tools).items()):
        source.tool(at, tool, schema)
    runtime = BamlRuntime.from_files(".", {"tools.baml": source.text()}, {})
    context = runtime.create_context_manager()
    module = source.module()

    def read(reply: str) -> Calls:
        found = runtime.parse_llm_response(
            "Read", reply, module, module, module, False, context, None, None, {}
        )
        return [call for call in found if isinstance(call, dict)]

    return Peer(label, read, failures=(Exception,))


class _BamlSource:
    """Class definitions made from JSON Schemas. Names and keys may be Chinese: they are aliases."""

    def __init__(self) -> None:
        self._classes: list[str] = []
        self._keys: dict[str, dict[str, str]] = {}
        self._tools: list[str] = []

    def tool(self, at: int, name: str, schema: Mapping[str, Any]) -> None:
        inner = self._class(f"Params{at}", schema)
        self._keys[f"Tool{at}"] = {"tool": "tool", "parameters": "parameters"}
        given = f"  parameters {inner}\n" if inner else ""
        self._classes.append(f"class Tool{at} {{\n  tool {json.dumps(name)}\n{given}}}\n")
        self._tools.append(f"Tool{at}")

    def text(self) -> str:
        return (
            "".join(self._classes)
            + 'client<llm> Nobody {\n  provider openai\n  options {\n    model "x"\n'
            '    api_key "x"\n  }\n}\n'
            + f"function Read(reply: string) -> ({' | '.join(self._tools)})[] {{\n"
            '  client Nobody\n  prompt #"{{ reply }} {{ ctx.output_format }}"#\n}\n'
        )

    def module(self) -> ModuleType:
        """The classes as the runtime looks them up. What it validates comes back as a dict."""
        module = ModuleType("baml_classes")
        for name, keys in self._keys.items():
            setattr(module, name, type(name, (), {"model_validate": staticmethod(_named(keys))}))
        return module

    def _class(self, name: str, schema: Mapping[str, Any]) -> str | None:
        properties = schema.get("properties") or {}
        if not properties:
            return None
        lines, keys = [], {}
        for at, (key, inner) in enumerate(properties.items()):
            keys[f"k{at}"] = key
            optional = "" if key in schema.get("required", ()) else "?"
            kind = self._type(f"{name}_{at}", inner)
            lines.append(f"  k{at} {kind}{optional} @alias({json.dumps(key)})\n")
        self._keys[name] = keys
        self._classes.append(f"class {name} {{\n{''.join(lines)}}}\n")
        return name

    def _type(self, name: str, schema: Mapping[str, Any]) -> str:
        if "enum" in schema:
            return f"({' | '.join(json.dumps(value) for value in schema['enum'])})"
        kind = schema.get("type")
        if isinstance(kind, list):
            return next(_BAML_TYPES[one] for one in kind if one != "null")
        if kind == "array":
            return f"{self._type(name, schema.get('items') or {})}[]"
        if kind == "object":
            return self._class(name, schema) or "map<string, string>"
        return _BAML_TYPES.get(str(kind), "(int | float | bool | string)")


_BAML_TYPES = {"string": "string", "integer": "int", "number": "float", "boolean": "bool"}


def _named(keys: Mapping[str, str]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def validate(value: Mapping[str, Any]) -> dict[str, Any]:
        out = {keys[key]: inner for key, inner in value.items() if inner is not None}
        if "tool" in keys:
            out.setdefault("parameters", {})
        return out

    return validate


_MAKERS: dict[str, Callable[[str, Tools], Peer]] = {
    NAMES[0]: _chathands,
    NAMES[1]: _json,
    NAMES[2]: _json_repair,
    NAMES[3]: _agent_tool_parser,
    NAMES[4]: _agent_tool_parser,
    NAMES[5]: _baml,
}
