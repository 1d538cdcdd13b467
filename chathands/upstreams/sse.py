"""Server-sent events out of bytes that arrive in any cuts. Pure: no I/O, no meaning.

The format is the WHATWG one (https://html.spec.whatwg.org/multipage/server-sent-events.html); one
thing is added because model servers do it: an event that the stream's end cuts off before its
blank line still counts.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

# Not str.splitlines: that also cuts at U+2028 and U+0085, which stand unescaped in JSON strings.
_LINE_END = re.compile(r"\r\n|\n|\r")


class ServerEvent(NamedTuple):
    data: str
    name: str = ""


class EventDecoder:
    """Feed bytes, get the events they complete; `close()` gives what the end completes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_start = True
        self._after_cr = False
        self._line: list[str] = []
        self._data: list[str] = []
        self._name = ""

    def feed(self, raw: bytes) -> list[ServerEvent]:
        return self._read(self._decoder.decode(raw))

    def close(self) -> list[ServerEvent]:
        events = self._read(self._decoder.decode(b"", final=True))
        rest = "".join(self._line)
        self._line.clear()
        if rest:
            self._field(rest)
        events.extend(self._dispatch())
        return events

    def _read(self, text: str) -> list[ServerEvent]:
        if not text:
            return []
        if self._at_start:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if self._after_cr:
            text = text.removeprefix("\n")  # the second half of a CRLF that a cut divided
        self._after_cr = text.endswith("\r")
        *lines, rest = _LINE_END.split(text)
        events: list[ServerEvent] = []
        for line in lines:
            if self._line:
                line = "".join([*self._line, line])
                self._line.clear()
            if line:
                self._field(line)
            else:
                events.extend(self._dispatch())
        if rest:
            self._line.append(rest)
        return events

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")  # a comment has an empty name
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value

    def _dispatch(self) -> list[ServerEvent]:
        name, self._name = self._name, ""
        if not self._data:
            return []
        event = ServerEvent("\n".join(self._data), name)
        self._data.clear()
        return [event]
