"""Our own marks around results, taken out of what a model writes: small models copy them."""

from __future__ import annotations

import re
from dataclasses import replace

from chathands.conversation import ToolCall, canonical_json
from chathands.emulation.outcome import Language
from chathands.emulation.prompts import wording

_HEAD = re.compile(
    r"^\s*(?:(?:结果|Result) #\d+|结果（没有对应的动作块）|Result \(of no known block\)) ?[\w.-]*"
    r" \[status=\w+[^\]\n]*\][ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_WRAPPED = re.compile(
    r"```+ ?(?:json(?: action)?|action|text|plaintext|markdown)?\n(?P<body>.*?)\n?```+", re.DOTALL
)


def dropped_result(language: Language) -> str:
    """What stands in place of an old result's content."""
    return wording(language)["history"]["dropped_result"]


def copies_dropped(call: ToolCall) -> str | None:
    """Why a call that passes such a mark on as content must not run: the sentence for the model."""
    text = canonical_json(dict(call.arguments))
    for language in ("zh", "en"):
        if dropped_result(language).strip("（）()") in text:
            return wording(language)["history"]["copied_mark"]
    return None


def without_marks(text: str, fence: str) -> str:
    """Text without the lines that carry the run's fence token or head a result."""
    if fence and fence in text:
        mark = rf"^[ \t]*-{{2,}} ?{re.escape(fence)} ?-*[ \t]*(?:\n|\Z)"
        text = re.sub(mark, "", text, flags=re.MULTILINE)
    return _HEAD.sub("", text) if "[status=" in text else text


def without_wrapping(text: str) -> str:
    """An answer that is one fence around prose, without the fence."""
    found = _WRAPPED.fullmatch(text)
    if found is None or "```" in found["body"] or found["body"].lstrip().startswith(("{", "[")):
        return text
    return found["body"].strip()


def clean_call(call: ToolCall, fence: str) -> ToolCall:
    """The call without our marks in its texts; tagged as repaired when there were any."""
    if not fence or fence not in canonical_json(dict(call.arguments)):
        return call
    arguments = {
        key: without_marks(value, fence).strip("\n") if isinstance(value, str) else value
        for key, value in call.arguments.items()
    }
    return replace(
        call,
        arguments=arguments,
        confidence="repaired" if call.confidence == "strict" else call.confidence,
        repairs=(*call.repairs, "result_marks_removed"),
    )
