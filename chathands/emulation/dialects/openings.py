"""What begins where a line begins: a call without a fence or tag, or ordinary text.

Text must not wait long for the answer, so the first characters decide: a key that formats use for
names, with a declared name; a declared name with its bracket; a label like `Action:` with a name.
Every answer is `Opening` (yes), False (no) or None (more text is needed).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, Literal

from chathands.emulation.dialects.strange import PAIRS
from chathands.emulation.dialects.words import (
    ARGUMENT_KEYS,
    CALLERS,
    LATE_NAME_KEYS,
    NAME_KEYS,
    NAME_LABELS,
    REMARKS,
    WRAPPERS,
    plain_key,
)
from chathands.emulation.reading_tools import Tools


class Opening(StrEnum):
    JSON = "json"
    PYTHON = "python"
    LABEL = "label"
    NAMED = "named"
    """A declared name, then JSON with its arguments."""
    STRANGE = "strange"
    """The exact keys of a call, with a name that nobody declared."""


Answer = Opening | Literal[False] | None

_ASCII: Final = str.maketrans(
    "｛｝［］（）：，＝“”„＂「」『』‘’＇【】", "{}[]():,=" + '"' * 8 + "'''[]"
)
_STRONG_KEYS: Final = frozenset(
    {"parameters", "arguments", "args", "params", "param", "toolcalls", "functioncalls", "toolcall",
     "functioncall", "tooluses", "toolinput", "actioninput", "thought", "thoughts", "thinking",
     "reasoning", "step", "steps", "参数", "思考", "步骤", "工具调用"}
)  # fmt: skip
"""Keys that hardly any other JSON begins with."""
_CALL_TYPES: Final = frozenset({"tooluse", "toolcall", "functioncall"})
"""What `type` says of calls in the APIs' own messages."""
_HOLDERS: Final = frozenset({"tool", "function", "action"}) | (WRAPPERS - NAME_KEYS)
_KNOWN_KEYS: Final = (
    NAME_KEYS
    | ARGUMENT_KEYS
    | WRAPPERS
    | (REMARKS - {"version", "status", "message"})
    | {"role", "content"}
)
"""Keys that may stand before the one that decides; any other says that this is not for us."""
_KEY: Final = re.compile(r"""\s*["']?([\w\-./ ]{1,200}?)["']?\s*[:=]\s*""")
_KEY_BEGUN: Final = re.compile(r"""\s*["']?[\w\-./ ]{0,200}["']?\s*\Z""")
_VALUE: Final = re.compile(
    r"""["']([^"'\n]{1,90})(?:["']|(?=\())|([^\W\d][\w.\-]{0,89})(?=\s*[,}\n(])"""
)
_SCALAR: Final = re.compile(
    r"""(?:"(?:[^"\\]|\\.){0,60}"|'[^'\n]{0,60}'|[\w.+\-]{1,40})\s*(?:,|(?=\}))"""
)
_FIRST: Final = re.compile(r"[\w{\[(\\`*>\"'✿｛［（【“]")
_HALF: Final = re.compile(r"(?:\\|&[a-z]{0,4})\Z")
"""What may become an escaped quote or underscore with the next character."""
_QUOTED_NAME: Final = re.compile(r"""([\w.\-]{1,200})["'],\s?\{""")
_QUOTED_NAME_BEGUN: Final = re.compile(r"""([\w.\-]{0,200})(["'](?:,\s?)?)?\Z""")
_CALL: Final = re.compile(r"(?:>>>\s?|await\s)?(?:print\()?+([^\W\d][\w.]{0,120})\(")
_CALL_BEGUN: Final = re.compile(
    r"(?:>{1,2}|(?:>>>\s?|await\s)?(?:print\()?([^\W\d][\w.]{0,120})?)\Z"
)
_TARGET: Final = re.compile(r"[A-Za-z_]\w{0,30} ?= ?(?=[^\s=])", re.ASCII)
_TARGET_BEGUN: Final = re.compile(r"[A-Za-z_]\w{0,30} ?(?:= ?)?\Z", re.ASCII)
_BEFORE_CALL: Final = ("print(", "await ", ">>> ", "functools[")
_LABEL: Final = re.compile(
    r"[*_]{0,2}([^\W\d_][\w ]{0,20}|✿\w{1,12}✿)[*_]{0,2}[ \t]?[:：][*_]{0,2}\s*"
)
_BLOCK_LABEL: Final = re.compile(
    r"(?:(?:json[ _]action|action[ _]json|action[ _]block)\b[*_:： ]*\s+|functools)(?=(.)?)",
    re.I | re.S,
)
_BLOCK_LABEL_BEGUN: Final = re.compile(
    r"(?:json[ _]action|action[ _]json|action[ _]block)[*_:： ]*\Z", re.I
)
_SPACED: Final = frozenset(name.replace("_", " ") for name in NAME_LABELS)
_WORD: Final = re.compile(r"(?:>>>\s?)?[`\"'*]{0,3}([^\W\d][\w.\-]{0,90})")
_WORD_BEGUN: Final = re.compile(r"(?:>{1,2}|(?:>>>\s?)?[`\"'*]{0,3})\Z")
_AFTER_NAME: Final = re.compile(r"(?:\(\))?[`\"'*]{0,3}[ \t]*(?:\r?\n[ \t]*){0,2}")


def opening(
    text: str, tools: Tools, final: bool, *, assigned: bool = False
) -> Opening | Literal[False] | None:
    """What text at the start of a line begins. `text` is at most `tools.window` characters; with
    that many, or when there are no more, the answer is never None.

    `assigned`: `result = f(…)` begins a call as well.
    """
    if text and not _FIRST.match(text):
        return False
    enough = final or len(text) >= tools.window
    plain = _HALF.sub("", text.translate(_ASCII)).replace("\\_", "_")
    answer = _assigned(plain, tools) if assigned else False
    if answer is False:
        answer = _opening(plain, tools, enough)
    return False if answer is None and enough else answer


def _assigned(text: str, tools: Tools) -> Answer:
    target = _TARGET.match(text)
    if target:
        return _call(text[target.end() :].lstrip("[ "), tools)
    return None if _TARGET_BEGUN.match(text) else False


def _opening(text: str, tools: Tools, enough: bool) -> Answer:
    head = text[:1]
    if head == "{" or text[:2] in ("[{", "\\{"):
        return _object(text, tools, enough)
    if head in "[(":
        inner = text[1:].lstrip(" \t\r\n[(")
        if not inner:
            return None if len(text) < 16 else False
        if inner[0] == "{":
            return _object(inner, tools, enough)
        if inner[0] in "\"'":
            named = _QUOTED_NAME.match(inner, 1)
            if named:
                return Opening.JSON if tools.find(named[1]) else False
            begun = _QUOTED_NAME_BEGUN.match(inner, 1)
            if begun and (not begun[2] or tools.find(begun[1])):
                return None
        return _call(inner.lstrip("\"'"), tools)
    if text[:2] == '"[':
        return _call(text[2:], tools)
    for reading in (_call, _label, _named):
        answer = reading(text, tools)
        if answer is not False:
            return answer
    return False


def _object(text: str, tools: Tools, enough: bool) -> Answer:
    """An object is one of ours if its first keys lead to a declared name or to arguments."""
    text = text.replace('\\"', '"').replace("&quot;", '"')
    spot = len(text) - len(text.lstrip(" \t\r\n[({"))
    foreign = ""  # the key that gave a name which nobody declared
    for _ in range(8):
        key = _KEY.match(text, spot)
        if key is None:
            return None if _KEY_BEGUN.match(text, spot) else False
        name = plain_key(key[1])
        spot = key.end()
        if name in ARGUMENT_KEYS and foreign:
            return Opening.STRANGE if PAIRS.get(foreign) == key[1] else False
        if name in _STRONG_KEYS or tools.find(key[1]):
            return Opening.JSON
        if name not in _KNOWN_KEYS:
            return False
        if spot == len(text):
            return None
        if text[spot] in "{[":
            message = name == "content" and "role" in text[:spot]
            return Opening.JSON if name in _HOLDERS or message else False
        if name in NAME_KEYS:
            value = _VALUE.match(text, spot)
            written = (value[1] or value[2]).partition("(")[0] if value else ""
            if value and (tools.find(written) or (name != "name" and tools.is_no_tool(written))):
                return Opening.JSON
            if value and plain_key(written) not in CALLERS:
                foreign = foreign or key[1]
            if (
                value is None
                and enough
                and len(text) - spot > 12
                and tools.begins(text[spot + 1 :])
            ):
                return Opening.JSON  # a name longer than the window
        elif name in LATE_NAME_KEYS:
            value = _VALUE.match(text, spot)
            written = (value[1] or value[2]) if value else ""
            if tools.find(written) or plain_key(written) in _CALL_TYPES:
                return Opening.JSON
        scalar = _SCALAR.match(text, spot)
        if scalar is None:
            return None
        spot = scalar.end()
    return False


def _call(text: str, tools: Tools) -> Answer:
    call = _CALL.match(text)
    if call:
        return Opening.PYTHON if tools.leads(call[1]) else False
    begun = _CALL_BEGUN.match(text)
    if begun is None:
        return False
    name = begun[1] or ""
    may_be = not name or tools.begins(name) or "print(".startswith(name)
    return None if may_be or any(b.startswith(text) for b in _BEFORE_CALL) else False


def _label(text: str, tools: Tools) -> Answer:
    block = _BLOCK_LABEL.match(text)
    if block:
        return _labels_block(text[block.end() :])
    if _BLOCK_LABEL_BEGUN.match(text):
        return None
    label = _LABEL.match(text)
    if label is None:
        begun = text.lower().strip("*_ \t").replace("_", " ")
        return (
            None if len(begun) <= 20 and any(name.startswith(begun) for name in _SPACED) else False
        )
    if label[1].lower() not in NAME_LABELS:
        return False
    rest = text[label.end() :]
    if not rest:
        return None
    if rest[0] in "{[":
        inner = _opening(rest, tools, False)
        return False if inner is Opening.STRANGE else Opening.LABEL if inner else inner
    if rest[0] == "`" and (answer := _labels_block(rest)) is not False:
        return answer
    name = _WORD.match(rest)
    if name is None:
        return None if _WORD_BEGUN.match(rest) else False
    if name.end() == len(rest) and tools.begins(name[1]):
        return None
    return Opening.LABEL if tools.leads(name[1]) else False


def _labels_block(rest: str) -> Answer:
    """Whether behind a label a fence or a bracket opens."""
    if rest[:3] == "```"[: len(rest)]:
        return Opening.LABEL if len(rest) >= 3 else None
    return Opening.LABEL if rest[0] in "{[" else False


def _named(text: str, tools: Tools) -> Answer:
    name = _WORD.match(text)
    if name is None:
        return None if _WORD_BEGUN.match(text) else False
    if name.end() == len(text) and tools.begins(name[1]):
        return None
    if not tools.leads(name[1]):
        return False
    after = _AFTER_NAME.match(text, name.end())
    spot = after.end() if after else name.end()
    if text[spot:] in ("", "(", "\r"):
        return None
    return Opening.NAMED if text[spot] == "{" else False


# --- labels again, for the reader of what they introduce


def name_label(text: str) -> int:
    """How long a name label at the start of text is, with the blanks behind it; 0 without one."""
    block = _BLOCK_LABEL.match(text)
    if block:
        return block.end()
    label = _LABEL.match(text)
    return label.end() if label and label[1].lower() in NAME_LABELS else 0


def argument_label(text: str) -> int:
    """The same for a label of arguments; it may hold an underscore."""
    label = _ARGUMENT_LABEL.match(text)
    return label.end() if label and plain_key(label[1]) in ARGUMENT_KEYS else 0


_ARGUMENT_LABEL: Final = re.compile(
    r"\s{0,8}[*_]{0,2}([^\W\d_][\w ]{0,20}|✿\w{1,12}✿)[*_]{0,2}[ \t]?[:：][*_]{0,2}[ \t]*"
)
