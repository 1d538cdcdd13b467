"""The committed picture of what callers may send to each tool, and how it differs from the code.

Descriptions are not in it: mending one breaks nobody's call and is what `tools report` is for.
Neither are the names of definitions, which change with the version of pydantic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chathands.conversation import canonical_json
from chathands.errors import ConfigError
from chathands.toolbox.describing import nodes
from chathands.toolbox.render import cut
from chathands.toolbox.tool import Tool

FILE = "snapshot.json"
FORMAT = 1

VALUE_CHARACTERS = 60
"""Of a value that has changed, as it is told: a default may be a page of text."""

_WORDS: Mapping[str, str] = {
    "required": "必填", "type": "类型", "enum": "可选值", "default": "默认值",
    "minimum": "最小", "maximum": "最大", "exclusiveMinimum": "要大于",
    "exclusiveMaximum": "要小于", "multipleOf": "倍数", "minLength": "最短", "maxLength": "最长",
    "minItems": "最少几项", "maxItems": "最多几项", "uniqueItems": "不能重复", "pattern": "格式",
    "format": "格式", "additionalProperties": "别的字段",
}  # fmt: skip
_STRUCTURE = {
    "properties", "$defs", "$ref", "items", "prefixItems", "anyOf", "oneOf", "allOf", "required",
    "description", "title", "examples", "discriminator", "propertyNames",
}  # fmt: skip
"""Keywords that are walked, or that nobody's call depends on."""

Facts = dict[str, dict[str, Any]]
"""Parameter (`period.start`, `rows[].name`) → what may be sent for it."""


@dataclass(frozen=True, slots=True)
class Entry:
    version: int | str
    side_effect: str
    parameters: Facts

    def row(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "side_effect": self.side_effect,
            "parameters": self.parameters,
        }


def entry_of(tool: Tool) -> Entry:
    return Entry(tool.version, tool.side_effect, facts_of(tool.signature.schema(None)))


def facts_of(schema: Mapping[str, Any]) -> Facts:
    """What a schema lets callers send, parameter by parameter; the same for schemas that only say
    it in another way."""
    gathered: dict[str, dict[str, list[Any]]] = {}
    for path, node in nodes(dict(schema), schema.get("$defs", {})):
        required = node.get("required", ())
        for name, child in node.get("properties", {}).items():
            mine = gathered.setdefault(f"{path}.{name}".lstrip("."), {})
            mine.setdefault("required", []).append(name in required)
            if not isinstance(child, dict):
                continue
        if not path:
            continue
        mine = gathered.setdefault(path, {})
        for key, value in node.items():
            if key in _STRUCTURE or isinstance(value, dict):
                continue
            if key == "const":  # a list of one, as pydantic writes Literal with one value
                key, value = "enum", [value]
            values = mine.setdefault(key, [])
            each = sorted(value, key=canonical_json) if isinstance(value, list) else value
            if each not in values:
                values.append(each)
    return {path: _joined(gathered[path]) for path in sorted(gathered)}


def _joined(keys: Mapping[str, list[Any]]) -> dict[str, Any]:
    """One value as it is; several, of the branches of a union, as a list of them."""
    found: dict[str, Any] = {}
    for key in sorted(keys):
        values = keys[key]
        if key == "required":
            found[key] = all(values)
        else:
            found[key] = values[0] if len(values) == 1 else sorted(values, key=canonical_json)
    return found


def read_snapshot(file: Path) -> dict[str, Entry] | None:
    """The tools of a snapshot; None when there is none. Raises ConfigError for what is none."""
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, type(error).__name__) from None
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ValueError("another format")
        return {
            str(name): Entry(row["version"], str(row["side_effect"]), _facts(row["parameters"]))
            for name, row in data["tools"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unreadable(file, f"{type(error).__name__}") from None


def _facts(value: Any) -> Facts:
    return {str(path): dict(facts) for path, facts in value.items()}


def _unreadable(file: Path, why: str) -> ConfigError:
    sentence = (
        f"{file.name} 读不出来（{why}）。有合并冲突就先解决；"
        "不行就删掉它，再运行 chathands tools check --update 重新生成。"
    )
    return ConfigError(f"{file}: {why}", sentence=sentence)


def write_snapshot(file: Path, entries: Mapping[str, Entry]) -> bool:
    """Write it where it says something new; whether it did. Raises OSError."""
    data = {"format": FORMAT, "tools": {name: entries[name].row() for name in sorted(entries)}}
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    try:
        if file.read_text("utf-8") == text:
            return False
    except (OSError, UnicodeDecodeError):
        pass
    partial = file.with_name(f".{file.name}.new")
    partial.write_text(text, "utf-8", newline="\n")
    partial.replace(file)
    return True


def differences(before: Entry, now: Entry) -> list[str]:
    """What changed for callers, a clause each, in Chinese; empty when nothing did."""
    found = []
    if before.side_effect != now.side_effect:
        found.append(f"side_effect：{before.side_effect} → {now.side_effect}")
    old, new = before.parameters, now.parameters
    for path in [each for each in new if each not in old]:
        if _parent(path) in old or "." not in path:
            found.append(f"多了{_called(path)}" + ("（必填）" if new[path].get("required") else ""))
    for path in [each for each in old if each not in new]:
        if _parent(path) in new or "." not in path:
            found.append(f"少了{_called(path)}")
    for path in [each for each in old if each in new]:
        found += _changed(path, old[path], new[path])
    return found


def _changed(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*old, *new}):
        before, now = old.get(key), new.get(key)
        if before == now and (key in old) == (key in new):
            continue
        if key == "enum" and isinstance(before, list) and isinstance(now, list):
            added, gone = [v for v in now if v not in before], [v for v in before if v not in now]
            changes = [f"多了 {_said(v)}" for v in added] + [f"少了 {_said(v)}" for v in gone]
            yield f"{_called(path)}的可选值{'、'.join(changes)}"
            continue
        values = (_said(each[key]) if key in each else "没有" for each in (old, new))
        yield f"{_called(path)}的{_WORDS.get(key, key)}：{' → '.join(values)}"


def gone(before: Entry, now: Entry) -> set[str]:
    """Names of parameters, nested ones too, that there were and are not any more."""
    return _names(before.parameters) - _names(now.parameters)


def _names(facts: Facts) -> set[str]:
    return {name for path in facts for name in re.split(r"[.\[\]*]+", path) if name}


def went_back(before: int | str, now: int | str) -> bool:
    return isinstance(before, int) and isinstance(now, int) and now < before


def _parent(path: str) -> str:
    return path.rpartition(".")[0].removesuffix("[]")


def _called(path: str) -> str:
    return f"参数 {path} "


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "是" if value else "否"
    return cut(value if isinstance(value, str) else canonical_json(value), VALUE_CHARACTERS)
