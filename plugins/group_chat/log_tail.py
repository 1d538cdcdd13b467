"""The last log lines in memory, for admins who cannot get at the machine: redacted, by run."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nonebot.log import logger

from chathands.run_context import current_run

if TYPE_CHECKING:
    from loguru import Message, Record

KEPT_LINES = 400
"""Some hours of a busy bot; 100 kB."""
LINE_CHARACTERS = 200

_OURS = ("chathands", "group_chat", "plugins", "__main__")
"""NoneBot gives a plugin's lines the plugin's name (`_log_patcher` in its __init__.py)."""
_WARNING = 30
_REF = re.compile(r"(?<![\w-])[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{2}(?![\w-])")
_EXCEPTION = re.compile(
    r"\b(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Failed|NotAvailable|Timeout)\b"
    r"(?:\(.*\))?"
)
_ADDRESS = re.compile(r"\b(?:https?|wss?)://[^\s\"'，。）)]+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `run` is the run it is about, if it is about one."""

    time: str
    level: str
    text: str
    run: str


class LogTail:
    """Keeps the lines of this program and the warnings of others.

    NoneBot's own lines carry what people write, so those below WARNING are never kept.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._lines: deque[Line] = deque(maxlen=KEPT_LINES)

    def install(self) -> int:
        """Listen to the log from now on; gives the handler's number, for `logger.remove`."""
        return logger.add(
            self._keep, level="INFO", format="{message}", filter=_wanted, catch=True, diagnose=False
        )

    def last(self, count: int, *, runs: Collection[str] | None = None) -> list[Line]:
        """The last `count` lines, oldest first; with `runs`, only those about one of these."""
        lines = [line for line in self._lines if runs is None or line.run in runs]
        return lines[-count:] if count > 0 else []

    def _keep(self, message: Message) -> None:
        record = message.record
        first = record["message"].strip().split("\n", 1)[0]
        found = _REF.search(first)
        run = current_run.get() or (found.group() if found else "")
        text = self._redact(first)
        text = text if len(text) <= LINE_CHARACTERS else f"{text[:LINE_CHARACTERS]}…"
        when = record["time"].strftime("%m-%d %H:%M:%S")
        self._lines.append(Line(when, record["level"].name, text, run))


def for_a_group(text: str) -> str:
    """A line without the names of exceptions, what they say, and addresses."""
    return _ADDRESS.sub("（地址）", _EXCEPTION.sub("（错误）", text))


def _wanted(record: Record) -> bool:
    return (record["name"] or "").startswith(_OURS) or record["level"].no >= _WARNING
