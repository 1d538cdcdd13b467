"""What nobody is shown of a reply: thinking, made-up results, the thought lines of ReAct."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from chathands.emulation.dialects.labels import read_to_line_end
from chathands.emulation.dialects.tags import THINKING
from chathands.emulation.dialects.values import peek_opening
from chathands.emulation.dialects.words import ANSWER_LABELS, SELF_TALK, THOUGHT_LABELS
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tools import Tools

_LONGEST_CLOSING: Final = 64
_LABEL_WIDTH: Final = 24
_LABEL: Final = r"[*_]{{0,2}}(?:{})[*_]{{0,2}}\s?[:：][*_]{{0,2}}[ \t]*"
_THOUGHT: Final = re.compile(_LABEL.format("|".join(THOUGHT_LABELS)), re.IGNORECASE)
_ANSWER: Final = re.compile(_LABEL.format("|".join(ANSWER_LABELS)), re.IGNORECASE)
_BLOCK: Final = re.compile(
    r"`{3,}\s?(?:json|action|tool)|<[|｜]?(?:tool|function|invoke)|\[TOOL", re.I
)

_THOUGHT_END: Final = re.compile(
    r"</\s?(?:\w{1,12}:)?(?:" + "|".join(sorted(THINKING)) + r")\s?>|"
    r"\[/THINK\]|◁/think▷|<\|end\|>|<\|start\|>|<\|end_(?:of_thought|thinking)\|>|<channel\|>",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)
def _closing(name: str) -> re.Pattern[str]:
    stem = re.escape(name.removesuffix("_begin")).replace("_", "[_▁]")
    return re.compile(rf"<[|｜]?/?[|｜]?(?:\w{{1,12}}:)?{stem}(?:[_▁]end)?[|｜]?>", re.IGNORECASE)


def pass_result(src: Source, name: str) -> Reads[bool]:
    """Pass over what stands in a result's tag, which was just read, and its end; nothing is passed
    when it has no end: then it is only spoken of."""
    start = src.offset
    src.mark()
    pattern = _closing(name)
    while True:
        found = pattern.search(src.buf, src.pos)
        if found is not None:
            src.pos = found.end()
            break
        if src.final:
            src.rewind(start)
            break
        src.pos = max(src.pos, len(src.buf) - _LONGEST_CLOSING)
        yield
    src.release()
    return found is not None


def begins_thought(text: str) -> bool | None:
    """Whether a line begins with the label of a thought; None if that is not known yet."""
    if _THOUGHT.match(text):
        return True
    plain = text.strip("*_ \t").casefold()
    may_be = len(text) < _LABEL_WIDTH and any(label.startswith(plain) for label in THOUGHT_LABELS)
    return None if may_be else False


def read_thought(src: Source, tools: Tools) -> Reads[str | None]:
    """Read labelled thoughts up to the call or answer behind them, and the answer's label; None,
    and nothing is read, where no such thing is at the source's place."""
    while (begins := begins_thought(src.buf[src.pos : src.pos + _LABEL_WIDTH])) is None:
        if src.final:
            return None
        yield
    if not begins:
        return None
    start = src.offset
    src.mark()
    thoughts: list[str] = []
    talks = False
    while True:
        yield from src.need(_LABEL_WIDTH + 8)  # the label's own marks and blanks
        label = _THOUGHT.match(src.buf, src.pos)
        if label is None:
            break
        src.pos = label.end()
        line = yield from read_to_line_end(src)
        thoughts.append(line)
        talks = talks or SELF_TALK.search(line) is not None
        if not (yield from src.skip_space()):
            break
    is_thought = False
    if src.pos < len(src.buf):
        answer = _ANSWER.match(src.buf, src.pos)
        if answer is not None:
            src.pos = answer.end()
        calls = answer or _BLOCK.match(src.buf, src.pos)
        is_thought = talks or calls is not None or bool((yield from peek_opening(src, tools)))
    if not is_thought:
        src.rewind(start)
    src.release()
    return "\n".join(thoughts) if is_thought else None


def pass_thinking(src: Source, keep: Callable[[str], None]) -> Reads[None]:
    """Hand over everything up to the end of the thinking; to the end of the reply if none."""
    while True:
        found = _THOUGHT_END.search(src.buf, src.pos)
        upto = found.start() if found else len(src.buf)
        if not found and not src.final:
            upto = max(src.pos, upto - 32)  # the end's first characters may be here
        keep(src.buf[src.pos : upto])
        src.pos = found.end() if found else upto
        if found or src.final:
            return
        yield
