"""Our own marks around results, taken out of what a model writes: small models copy them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from chathands.conversation import ToolCall, canonical_json
from chathands.emulation.outcome import Language
from chathands.emulation.prompts import wording

_WRAPPING = re.compile(r"`{3,}+ ?(?:json(?: action)?|action|text|plaintext|markdown)?\n")


_SLOTS = {"number": r"\d+", "name": r"[\w.-]*", "envelope": r"status=\w+[^\]\n]*"}


def _templates(*names: str) -> list[str]:
    """Entries of the `history` wording in both languages: a model may copy an older run's."""
    return [wording(language)["history"][name] for language in ("zh", "en") for name in names]


@cache
def result_head() -> str:
    """A pattern of the line over a result, without what may stand around it on the line."""
    heads = []
    for template in _templates("result", "result_orphan"):
        texts = re.split(r"\{(\w+)\}", template)
        heads.append("".join(_SLOTS[t] if n % 2 else re.escape(t) for n, t in enumerate(texts)))
    return f"(?:{'|'.join(heads)})"


@cache
def _head_line() -> re.Pattern[str]:
    return re.compile(rf"^[^\S\n]{{0,40}}{result_head()}[ \t]*(?:\n|\Z)", re.MULTILINE)


@cache
def _openings() -> tuple[str, ...]:
    """What the lines around results begin with, up to the first thing that differs."""
    templates = _templates("result", "result_orphan", "open", "close")
    return tuple(dict.fromkeys(template.partition("{")[0].rstrip() for template in templates))


def may_become_mark(line: str) -> bool:
    """Whether the beginning of a line may go on to be one of ours."""
    line = line.strip()
    return any(mark.startswith(line) or line.startswith(mark) for mark in _openings())


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
    return _head_line().sub("", text) if "[status=" in text else text


def without_wrapping(text: str) -> str:
    """An answer that is one fence around prose, without the fence."""
    found = _WRAPPING.match(text)
    if found is None or not text.endswith("```", found.end()):
        return text
    body = text[found.end() :].rstrip("`").strip()
    return text if "```" in body or body.startswith(("{", "[")) else body


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
