"""What schema.py knows of single values: problems in words, near names, what a string says.

No schema is walked here.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

_SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "missing": ("缺少必填参数 {path}", "the required argument {path} is missing"),
    "unknown": ("没有名为 {path} 的参数", "there is no argument named {path}"),
    "type": ("参数 {path} 应为{expected}", "the argument {path} must be {expected}"),
    "enum": ("参数 {path} 只能取：{expected}", "{path} must be one of: {expected}"),
    "minimum": ("参数 {path} 不能小于 {expected}", "{path} must be at least {expected}"),
    "maximum": ("参数 {path} 不能大于 {expected}", "{path} must be at most {expected}"),
    "above": ("参数 {path} 必须大于 {expected}", "{path} must be above {expected}"),
    "below": ("参数 {path} 必须小于 {expected}", "{path} must be below {expected}"),
    "multiple": ("参数 {path} 必须是 {expected} 的倍数", "{path} must be a multiple of {expected}"),
    "short": ("参数 {path} 至少 {expected} 个字符", "{path} needs at least {expected} characters"),
    "long": ("参数 {path} 最多 {expected} 个字符", "{path} may have at most {expected} characters"),
    "few": ("参数 {path} 至少 {expected} 项", "{path} needs at least {expected} items"),
    "many": ("参数 {path} 最多 {expected} 项", "{path} may have at most {expected} items"),
    "repeated": ("参数 {path} 有重复的项", "the items of {path} must differ"),
    "infinite": ("参数 {path} 不是有限的数", "{path} must be a finite number"),
    "deep": ("参数 {path} 嵌套过深", "{path} is nested too deeply"),
}
_TYPES_ZH: Final[Mapping[str, str]] = {
    "string": "文本", "integer": "整数", "number": "数字", "boolean": " true 或 false",
    "array": "列表", "object": "对象", "null": " null",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """One argument that does not fit. `message` is a short code, a key of the sentence table."""

    path: str
    message: str
    expected: str = ""

    def sentence(self, language: Literal["zh", "en"] = "zh") -> str:
        """The problem as one clause for the model, naming the argument."""
        expected = self.expected
        if self.message == "type":
            names = expected.split("|")
            zh = language == "zh"
            expected = "或".join(_TYPES_ZH.get(n, n) for n in names) if zh else " or ".join(names)
        template = _SENTENCES[self.message][language != "zh"]
        return template.format(path=f"`{self.path}`", expected=expected)


# --- kinds

_KINDS: Final[Mapping[type, str]] = {
    str: "string", bool: "boolean", int: "integer", float: "number", dict: "object",
    list: "array", tuple: "array", type(None): "null",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """The JSON type of a Python value."""
    return _KINDS.get(type(value)) or ("object" if isinstance(value, Mapping) else "string")


def is_finite(value: Any) -> bool:
    """Whether a JSON value has no NaN and no infinity in it, which JSON cannot say."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict | list | tuple):
        try:
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):
            return False
    return True


def is_multiple(value: Any, step: Any) -> bool:
    """Whether a number is a multiple, as far as floats can tell."""
    if step <= 0 or not abs(value) <= 1e15:
        return True
    ratio = value / step
    return abs(ratio - round(ratio)) < 1e-9


def admits(types: tuple[str, ...], value: Any, kind: str) -> bool:
    """Whether one of the types takes the value as it is; 3.0 is an integer (2020-12, 6.1.1)."""
    if kind in types:
        return True
    if kind == "integer":
        return "number" in types
    return kind == "number" and "integer" in types and float(value).is_integer()


_TYPE_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("str", "text", "char", "character", "varchar", "date", "datetime", "time", "uuid", "email",
         "uri", "url", "文本", "字符串"),
        "string",
    ),
    **dict.fromkeys(
        ("int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64",
         "long", "short", "byte", "bigint", "biginteger", "整数"),
        "integer",
    ),
    **dict.fromkeys(
        ("float", "float32", "float64", "double", "decimal", "bigdecimal", "numeric", "real", "num",
         "数字", "数值"),
        "number",
    ),
    **dict.fromkeys(("bool", "布尔", "布尔值"), "boolean"),
    **dict.fromkeys(
        ("list", "arraylist", "linkedlist", "tuple", "set", "sequence", "vector", "列表", "数组"),
        "array",
    ),
    **dict.fromkeys(("dict", "dictionary", "map", "hashmap", "struct", "record", "对象"), "object"),
    **dict.fromkeys(("none", "nonetype", "nil"), "null"),
    **{name: name for name in _TYPES_ZH},
}  # fmt: skip
"""Words for the JSON types that tool authors bring from their languages, in lower case. `dict`,
`float`, `tuple` and `any` are those of BFCL's function documents, `ArrayList`, `HashMap` and `char`
of its Java ones.
"""
_OR: Final = re.compile(r"\s*(?:\||,|/|\bor\b|或)\s*", re.IGNORECASE)
_HEAD: Final = re.compile(r"([^\W\d_]\w*)(?:-like)?\s*(?:[\[<(（ ].*)?", re.DOTALL)


def json_types(written: Any) -> tuple[str, ...]:
    """The JSON types that the value of a schema's `type` names; none, if any value may be meant.

    A word nobody knows means any value: a tool must not become uncallable by a word in its schema.
    """
    words: list[Any] = []
    for part in written if isinstance(written, list | tuple) else (written,):
        outside = isinstance(part, str) and not part.strip().endswith(("]", ">", ")"))
        words += _OR.split(part) if outside else (part,)
    types = [_json_type(word) for word in words if word != ""]
    return tuple(dict.fromkeys(types)) if all(types) else ()  # type: ignore[arg-type]


def _json_type(word: Any) -> str | None:
    if not isinstance(word, str):
        return None
    plain = word.strip().lower().rpartition(".")[2]
    known = _TYPE_WORDS.get(plain)
    if known is not None:
        return known
    if plain.endswith("[]"):
        return "array"
    head = _HEAD.fullmatch(plain)
    return _TYPE_WORDS.get(head[1]) if head else None


_INTEGER: Final = re.compile(r"[+-]?\d{1,300}(?:\.0{1,20})?")
_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,300}\.?\d{0,300}|\.\d{1,300})(?:[eE][+-]?\d{1,4})?")


def read_string(text: str, wanted: str) -> tuple[Any] | None:
    """What a string says in the wanted type, in a tuple of one; None when it says nothing in it."""
    text = text.strip()
    if wanted == "integer" and _INTEGER.fullmatch(text):
        return (int(text.partition(".")[0]),)
    if wanted == "number" and _NUMBER.fullmatch(text):
        number = int(text) if text.lstrip("+-").isdigit() else float(text)
        return (number,) if math.isfinite(number) else None
    if wanted == "boolean" and text.lower() in ("true", "false"):
        return (text.lower() == "true",)
    if wanted == "null" and text.lower() in ("null", "none"):
        return (None,)
    if wanted in ("array", "object") and text[:1] == "[{"[wanted == "object"]:
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return (read,) if kind_of(read) == wanted else None
    return None


# --- near names and near values

_SEPARATORS: Final = re.compile(r"[\s_.\-\\\u200b-\u200d\u2060\ufeff]+")
_IDENTIFIER: Final = re.compile(r"[\w\s.\-\\\u200b-\u200d\u2060\ufeff]{1,80}")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


def plain_name(name: str) -> str:
    """A name without case, width, spaces, dashes, dots and underscores; for finding near names."""
    if name.isascii():
        return _SEPARATORS.sub("", name).lower()
    return _SEPARATORS.sub("", unicodedata.normalize("NFKC", name).casefold())


def near_value(value: Any) -> str:
    """Equal for enum values that models mix up: `C` and `c`, `next week` and `next_week`."""
    return plain_name(value) if isinstance(value, str) else json.dumps(value, sort_keys=True)


def unambiguous(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs whose key occurs once and is not empty."""
    found: dict[str, Any] = {}
    twice: set[str] = {""}
    for key, item in pairs:
        if key in found:
            twice.add(key)
        found[key] = item
    return {key: item for key, item in found.items() if key not in twice}


def near_name(
    name: str, free: list[str], required: tuple[str, ...], unknown: list[str]
) -> str | None:
    """The one name of `free` that `name` must mean; None when none or several may be meant.

    `unknown` are all names given that nobody declared. `file_path` is a required `path` only when
    no other unknown name could be it as well.
    """
    if not _IDENTIFIER.fullmatch(name):
        return None  # a key that was misread, with half of a value in it
    plain = plain_name(name)
    same = [target for target in free if plain_name(target) == plain]
    if not same:
        same = [target for target in free if _one_letter_apart(plain_name(target), plain)]
    if not same:
        same = [target for target in free if target in required and _says(name, target)]
        if any(_says(other, target) for other in unknown if other != name for target in same):
            return None
    return same[0] if len(same) == 1 else None


def _says(name: str, target: str) -> bool:
    """Whether the name holds the target as a word of its own."""
    if not target.isascii():
        return len(target) > 1 and target in name
    words = {word.casefold() for word in _WORDS.findall(target)}
    return bool(words) and words <= {word.casefold() for word in _WORDS.findall(name)}


def _one_letter_apart(a: str, b: str) -> bool:
    """Whether one letter more, less or other makes them equal (`tag`/`tags`, `querry`/`query`)."""
    shorter = min(len(a), len(b))
    if shorter < 3 or abs(len(a) - len(b)) > 1:
        return False
    if shorter < 4:  # `tag` and `tags`, but not `end` and `and`
        return a + "s" == b or b + "s" == a
    start = 0
    while start < shorter and a[start] == b[start]:
        start += 1
    if (a[start : start + 1] + b[start : start + 1]).isdigit():
        return False  # `text1` and `text2` are two things
    return a[start + (len(a) >= len(b)) :] == b[start + (len(b) >= len(a)) :]
