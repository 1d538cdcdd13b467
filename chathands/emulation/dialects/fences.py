"""Fences: what their first line says they are, and what stands inside.

A fence is closed where its content says so, not at the first line of backticks: these may stand in
a string. Content that is neither JSON nor tags has no strings; there the first such line ends it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from chathands.emulation.dialects.labels import read_labelled
from chathands.emulation.dialects.markup import Region
from chathands.emulation.dialects.openings import Opening, name_label, opening
from chathands.emulation.dialects.tags import peek_known_tag
from chathands.emulation.dialects.values import read_call, read_values
from chathands.emulation.dialects.words import CONTRACT_INFO, DATA_INFO, MARKED_INFO
from chathands.emulation.dialects.yaml_body import NotYaml, read_yaml
from chathands.emulation.reading_envelope import calls_in
from chathands.emulation.reading_found import GUESSED, MISSING, Block, Found
from chathands.emulation.reading_source import Reads, Source, run
from chathands.emulation.reading_tokens import CLOSERS, COMMAS, OPENERS, QUOTES, State
from chathands.emulation.reading_tools import Tools
from chathands.emulation.reading_words import skip_comment
from chathands.limits import MAX_CALLS

INFO: Final = 40
"""Characters of a first line; longer ones are prose."""

_INFO_END: Final = re.compile(r"[\n{\[<`｀｛\"“\\(]")
_NUMBER: Final = re.compile(r"(?<=action) ?#?\d{0,3}$")
_INVISIBLE: Final = re.compile("[\u200b-\u200d\u2060\ufeff]+")
_RUN: Final = re.compile(r"`{2,}|｀{2,}|~{3,}|'{3,}")
_STATEMENT: Final = re.compile(
    r"(?:>>>\s?|await\s+|return\s+|[^\W\d]\w{0,40}\s?=\s?(?!=)){0,3}[^\W\d][\w.]{0,120}[(（]"
)
_LABEL: Final = re.compile(
    r"(?:json|action|json action|tool_call|tool|call)\s*[:：]?\s*"
    r"(?=[{\[]|\"[^\"\n]{1,40}\"\s{0,8}[:：])",
    re.I,
)


_STATEMENT_WIDTH: Final = 240
_TARGET: Final = re.compile(r"([A-Za-z_]\w{0,30}) ?= ?(?=[^\s=])", re.ASCII)
_SHOWN: Final = re.compile(r"(?:print\()?([A-Za-z_]\w{0,30})\)?[ \t]{0,8}(?=[\r\n`]|\Z)", re.ASCII)
_PRINTED: Final = re.compile(r"print\((f?[\"'][^\n]{0,200})\)[ \t]{0,8}(?=[\r\n`]|\Z)")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_IMPORT: Final = re.compile(r"(?:import|from) [\w., ]{1,120}(?=[\r\n])")

_COMMENTS: Final = (("#", "\n"), ("//", "\n"), ("/*", "*/"), ("<!--", "-->"))
_INSIDE_LABEL: Final = re.compile(r"(?:json )?action[ \t]*\r?\n\s*(?=(.)?)")
_INSIDE_BEGUN: Final = re.compile(r"(?:json )?action\s*\Z")


class FenceKind(StrEnum):
    CONTRACT = "contract"
    MARKED = "marked"
    """Named for calls, though not by the contract: ` ```tool_call `."""
    DATA = "data"
    """May hold a call in another form; its content decides."""
    OTHER = "other"


def _plain(info: str) -> str:
    words = _INVISIBLE.sub("", info).lower().replace("：", ":").split()
    return _NUMBER.sub("", " ".join(words).strip(" :-"))


def fence_kind(info: str) -> FenceKind:
    """What a fence with this first line is."""
    words = _plain(info)
    if words in CONTRACT_INFO:
        return FenceKind.MARKED if words in MARKED_INFO else FenceKind.CONTRACT
    return FenceKind.DATA if words in DATA_INFO else FenceKind.OTHER


def read_info(src: Source) -> Reads[str | None]:
    """The rest of a fence's first line, up to its content; None when it is too long to be one."""
    while True:
        end = _INFO_END.search(src.buf, src.pos, src.pos + INFO + 1)
        rest = len(src.buf) - src.pos
        if end or (src.final and rest <= INFO):
            info = src.buf[src.pos : end.start() if end else len(src.buf)]
            src.pos += len(info)
            return info
        if rest > INFO:
            return None
        yield


def peek_content(src: Source, tools: Tools, *, alone: bool) -> Reads[Opening | bool]:
    """What the content of a fence begins with, as far as its first characters tell; True: a tag.

    `alone`: nothing was said before it. Only then is `result = f(…)` a call, not a sample of code.
    """
    while (yield from src.skip_space()):
        yield from src.need(2)
        if not ((alone and src.buf[src.pos] == "#") or src.buf.startswith("//", src.pos)):
            break
        yield from skip_comment(src, "\n")
    if not (yield from src.need(1)):
        return False
    if src.buf[src.pos] == "<":
        tag = yield from peek_known_tag(src, tools)
        return tag is not None and not tag.closing
    while True:
        text = src.buf[src.pos : src.pos + tools.window]
        label = _INSIDE_LABEL.match(text)
        if label and label[1]:
            return Opening.LABEL if label[1] in "{[" else False
        if src.final or not (label or _INSIDE_BEGUN.match(text)):
            answer = opening(text, tools, src.final, assigned=alone)
            if answer is not None:
                return answer
        yield


def read_body(
    src: Source, tools: Tools, mark: str, width: int, kind: FenceKind, begins: Opening | bool
) -> Reads[Block]:
    """Read the content of a fence and its end. It is `plain` if it is code around a call."""
    block = Block([], "fence", kind is FenceKind.CONTRACT, kind is FenceKind.MARKED, closed=False)
    code = _Code(src, marked=block.marked)
    while len(block.found) < MAX_CALLS:
        if not (yield from src.skip_space()):
            return block
        char = src.buf[src.pos]
        if char in COMMAS or char in CLOSERS:
            src.pos += 1
            if char in CLOSERS and block.found:
                block.found[-1].repairs["extra_closer"] = None
            continue
        if char in "`｀~'" and (yield from _closing(src)):
            block.closed = True
            return block
        before = src.offset
        if char in OPENERS or char in QUOTES or char in "\\&":
            found, state = yield from read_values(src, tools)
            lacks = block.found and block.found[-1].arguments is MISSING
            guessed = block.found and not GUESSED.isdisjoint(block.found[-1].repairs)
            if not found and (guessed or lacks):
                # a value without a name belongs to the call before it, if that was closed by guess
                # or has no arguments
                block.found[-1].state = State.BROKEN
                block.found[-1].detail = ("brackets", "")
            elif (
                block.found
                and char in QUOTES
                and not any(f.name for f in found)
                and not (yield from src.need(1))
            ):
                block.found[-1].state, found = State.CUT, []  # another member of it had begun
        elif char == "<" and not ((yield from src.need(4)) and src.buf.startswith("<!--", src.pos)):
            region = yield from Region(src, tools).read("tag")
            found, state = region.found, State.EMPTY if region.plain else State.WHOLE
        elif (yield from code.passes()):
            continue
        else:
            found, state = yield from _read_text(src, tools, mark, width)
            if begins is Opening.PYTHON and not found:
                block.plain = True
                return block
        block.found += found if begins is not Opening.STRANGE else []  # nothing in it may run
        if state is not State.WHOLE or src.offset == before:
            break
    block.closed = yield from _skip_to_end(src, mark, width)
    return block


class _Code:
    """The statements around calls in a block of code that call nothing themselves."""

    def __init__(self, src: Source, *, marked: bool) -> None:
        self._src = src
        self._marked = marked
        self._results: set[str] = set()
        """Names that got the result of a call."""

    def passes(self) -> Reads[bool]:
        """Take a statement that only shows a result, `print(result)`; False if it is another."""
        src = self._src
        yield from src.need(_STATEMENT_WIDTH)
        ahead = src.buf[src.pos : src.pos + _STATEMENT_WIDTH]
        shown = _SHOWN.match(ahead)
        printed = _PRINTED.match(ahead)
        imported = _IMPORT.match(ahead) if self._marked else None
        passed = imported
        if shown and shown[1] in self._results:
            passed = shown
        elif printed and not self._results.isdisjoint(_IDENTIFIER.findall(printed[1])):
            passed = printed
        if passed:
            src.pos += passed.end()
        elif target := _TARGET.match(ahead):
            self._results.add(target[1])
        return passed is not None


def _closing(src: Source) -> Reads[bool]:
    """Take a closing mark. The opening of the next block is left, and ends this one as well."""
    while True:
        marks = _RUN.match(src.buf, src.pos)
        if marks is None:
            if len(src.buf) - src.pos < 3 and not src.final:
                yield
                continue
            return False
        line = src.buf[marks.end() : marks.end() + INFO + 1]
        end = _INFO_END.search(line)
        info = line[: end.start()] if end else line
        if end or src.final or len(line) > INFO or not _may_be_contract(info):
            if len(marks.group()) < 3 or fence_kind(info) is not FenceKind.CONTRACT:
                src.pos = marks.end()
            return True
        yield


def _may_be_contract(begun: str) -> bool:
    plain = _plain(begun)
    return any(info.startswith(plain) for info in CONTRACT_INFO)


@lru_cache(maxsize=64)
def _closing_line(mark: str, width: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]{{0,12}}{re.escape(mark)}{{{min(width, 3)},}}")


def _skip_to_end(src: Source, mark: str, width: int) -> Reads[bool]:
    """Pass over what cannot be read, up to the line that closes the fence; False without one."""
    yield from _lines(src, mark, width)
    if src.pos == len(src.buf):
        return False
    src.pos = _RUN.search(src.buf, src.pos).end()  # type: ignore[union-attr]
    return True


def _lines(src: Source, mark: str, width: int) -> Reads[str]:
    """The text up to the line that closes the fence; its line break and mark are left."""
    closing = _closing_line(mark, width)
    parts: list[str] = []
    while True:
        found = closing.search(src.buf, src.pos)
        over = src.final or found is not None
        if found and found.end() == len(src.buf) and not src.final:
            over = False  # the run of marks may go on
            upto = found.start()
        elif found:
            upto = found.start()
        else:
            upto = len(src.buf) if src.final else max(src.pos, len(src.buf) - 16)
        parts.append(src.buf[src.pos : upto])
        src.pos = upto
        if over:
            return "".join(parts)
        yield


def _read_text(
    src: Source, tools: Tools, mark: str, width: int
) -> Reads[tuple[list[Found], State]]:
    """Content without brackets around it: Python calls, labels, YAML, a name before its JSON."""
    yield from src.need(130)
    ahead = src.buf[src.pos : src.pos + 130]
    label = name_label(ahead)
    if label and ahead[label : label + 1] in ("{", "["):
        src.pos += label
        return [], State.WHOLE
    word = _LABEL.match(ahead)
    if word:
        src.pos += word.end()
        return [], State.WHOLE
    for begin, end in _COMMENTS:
        if ahead.startswith(begin):
            yield from skip_comment(src, end)
            return [], State.WHOLE
    if _STATEMENT.match(ahead):
        return (yield from read_call(src, tools))
    text = yield from _lines(src, mark, width)
    return _in_lines(text, tools, over=src.pos < len(src.buf)), State.WHOLE


def _in_lines(text: str, tools: Tools, *, over: bool) -> list[Found]:
    """Calls in labels, in YAML, or in a name above its arguments. `over`: the fence was closed."""
    whole = Source(text, final=True)
    whole.mark()
    labelled = run(read_labelled(whole, tools))
    if labelled:
        if not over and labelled[-1].text_values:
            labelled[-1].state = State.CUT
        elif over and labelled[-1].state is State.CLOSERS:
            labelled[-1].state = State.WHOLE
        return labelled
    try:
        found = calls_in(read_yaml(text), tools)
        if not over and found:
            found[-1].state = State.CUT  # only its end would tell that the last value is whole
        return found
    except NotYaml:
        name, _, rest = text.strip().partition("\n")
        if tools.find(name.strip()) is None:
            return []
        inside = Source(rest, final=True)
        inside.mark()
        found, _ = run(read_values(inside, tools))
        return found or [Found(name.strip())]
