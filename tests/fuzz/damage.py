"""Calls whose structure is written wrong and whose values are untouched."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.fuzz.material import Call

_QUOTES = {"double": ('"', '"'), "single": ("'", "'"), "smart": ("“", "”"), "full": ("＂", "＂")}
_AROUND = {
    "contract": ("```json action\n", "\n```"),
    "fence": ("```json\n", "\n```"),
    "plain fence": ("```\n", "\n```"),
    "tag": ("<tool_call>\n", "\n</tool_call>"),
    "nothing": ("", ""),
}


class Careless:
    """Writes JSON the way small models do. The faults are drawn once for each reply."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.around = rng.choice(("contract", "contract", *_AROUND))
        self.quotes = rng.choice(list(_QUOTES))
        self.bare_keys = rng.random() < 0.2
        self.colon = rng.choice((":", ":", "：", " : ", "=" if rng.random() < 0.2 else ":"))
        self.comma = rng.choice((",", ",", "，", ",\n", " ,", "、" if rng.random() < 0.2 else ","))
        self.trailing = rng.random() < 0.25
        self.comments = rng.random() < 0.2
        self.python = rng.random() < 0.3

    def reply(self, calls: list[Call]) -> str:
        rng = self.rng
        body = "\n".join(self._value({"tool": c[0], "parameters": c[1]}) for c in calls)
        missing = rng.choice((0, 0, 0, 1, 2))
        for _ in range(missing):
            body = body.removesuffix("}")
        start, end = _AROUND[self.around]
        return start + body + ("" if rng.random() < 0.15 else end)

    def _string(self, text: str) -> str:
        start, end = _QUOTES[self.quotes]
        written = json.dumps(text, ensure_ascii=False)[1:-1]
        if self.quotes == "single":
            written = written.replace('\\"', '"').replace("'", "\\'")
        return start + written + end

    def _value(self, value: Any) -> str:
        if isinstance(value, dict):
            parts = [f"{self._key(k)}{self.colon}{self._value(v)}" for k, v in value.items()]
            return self._joined("{", parts, "}")
        if isinstance(value, list):
            return self._joined("[", [self._value(inner) for inner in value], "]")
        if isinstance(value, str):
            return self._string(value)
        if self.python and isinstance(value, bool):
            return repr(value)
        return json.dumps(value)

    def _key(self, key: str) -> str:
        return key if self.bare_keys else self._string(key)

    def _joined(self, start: str, parts: list[str], end: str) -> str:
        between = self.comma
        if self.comments and self.rng.random() < 0.5:
            between += self.rng.choice((" // 注\n", " /* note */ ", " # n\n"))
        tail = "," if self.trailing and parts else ""
        return start + between.join(parts) + tail + end
