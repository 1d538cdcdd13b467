"""The brackets a value has open, and what is put into them: an explicit stack instead of recursion.

Tokens come from lenient_json.py; here is what each does to the innermost bracket, and what becomes
of brackets that were closed wrongly, twice or not at all.
"""

from __future__ import annotations

from typing import Any

from chathands.emulation.dialects.words import duplicated
from chathands.emulation.reading_source import Source
from chathands.emulation.reading_tokens import (
    CLOSERS,
    Detail,
    Frame,
    Gap,
    State,
    Want,
    constructed,
)
from chathands.limits import JSON_DEPTH


class Brackets:
    """One value in the making."""

    def __init__(self, src: Source) -> None:
        self.src = src
        self.value: Any = None
        self.state = State.EMPTY
        self.detail: Detail = ("", "")
        self.repairs: dict[str, None] = {}
        self._stack: list[Frame] = []

    def begun(self) -> list[tuple[Any, str | None]]:
        """What the open brackets hold so far, from the outside in, with the key that waits for the
        next one.
        """
        return [(frame.box, frame.key) for frame in self._stack]

    def _push(self, kind: str, box: Any = None) -> None:
        if len(self._stack) >= JSON_DEPTH:
            self._break("deep", None)
            return
        self._stack.append(Frame(kind, ({} if kind == "{" else []) if box is None else box))

    def _open(self, kind: str, frame: Frame) -> None:
        if frame.kind == "{" and frame.want is not Want.VALUE:
            if frame.want is Want.COLON:
                self.repairs["missing_colon"] = None
                frame.want = Want.VALUE
            elif frame.fresh and kind == "{":
                # `{{"a": 1}}`, braces doubled as in a template: one object, two brackets
                self.src.pos += 1
                self._push("{", frame.box)
                self.repairs["doubled_braces"] = None
                return
            elif frame.fresh:
                self._break("brackets", None)
                return
            else:
                # a new object where a key is wanted: the ones before were not closed
                self.repairs["missing_closer"] = None
                while self._stack and self._stack[-1].kind == "{" and self.state is State.EMPTY:
                    self._pop()
                return
        elif frame.want is Want.NEXT:
            self.repairs["commas"] = None
        self.src.pos += 1
        self._push(kind)

    def _close(self, char: str) -> None:
        kinds = CLOSERS[char]
        self.src.pos += 1
        if self._stack[-1].kind not in kinds and self._stack[-1].alias not in kinds:
            if any(frame.kind in kinds for frame in self._stack):
                self.repairs["missing_closer"] = None
                while self._stack[-1].kind not in kinds:
                    self._fill_gap(self._stack[-1])
                    self._pop()
            elif self._stack[-1].want is Want.NEXT:
                self.repairs["wrong_closer"] = None
            else:
                self._break("brackets", self._stack[-1])
                return
        self._fill_gap(self._stack[-1])
        self._pop()

    def _fill_gap(self, frame: Frame) -> None:
        """A key stands there without a value: what follows can still be read."""
        lacks = frame.want in (Want.COLON, Want.VALUE) if frame.kind == "{" else False
        if lacks or (frame.kind == "(" and frame.key is not None):
            self._put(Gap(frame.key or "", frame.want is Want.VALUE))
        elif frame.want in (Want.KEY, Want.VALUE) and not frame.fresh and frame.kind != "t":
            self.repairs["commas"] = None

    def _pop(self) -> None:
        frame = self._stack.pop()
        value = constructed(frame.box) if frame.kind == "(" else frame.box
        if self._stack and self._stack[-1].box is value:  # the inner one of doubled braces
            self._stack[-1].want = Want.NEXT
            self._stack[-1].fresh = False
            return
        if frame.kind == "t" and len(value) == 1 and frame.want is Want.NEXT:
            value = value[0]
        elif frame.kind == "{" and value and all(_is_element(v) for v in value.values()):
            value = list(value)  # `{"a", "b"}` is a set to Python
        self._put(value)

    def _put(self, value: Any) -> None:
        if not self._stack:
            self.value = value
            self.state = State.WHOLE
            return
        frame = self._stack[-1]
        if frame.want is Want.NEXT and frame.kind in "[(t":
            self.repairs["commas"] = None
        if frame.kind == "{" and frame.key is not None:
            if frame.key in frame.box and frame.box[frame.key] != value:
                self.repairs[duplicated(frame.key, frame.box[frame.key], value)] = None
            frame.box[frame.key] = value
        elif frame.kind == "(":
            if frame.key is None:
                frame.box.args.append(value)
            elif frame.key in frame.box.kwargs and frame.box.kwargs[frame.key] != value:
                self._break("two_values", frame)  # as in Python; two calls may have run together
                return
            else:
                frame.box.kwargs[frame.key] = value
            frame.key = None
        else:
            frame.box.append(value)
        frame.want = Want.NEXT
        frame.fresh = False

    def _comma(self, frame: Frame) -> None:
        self.src.pos += 1
        self._fill_gap(frame)
        if frame.want is Want.NEXT:
            frame.want = Want.KEY if frame.kind == "{" else Want.VALUE
        else:
            self.repairs["commas"] = None

    def _colon(self, frame: Frame) -> None:
        char = self.src.buf[self.src.pos]
        self.src.pos += 1
        if frame.kind == "{" and frame.want is Want.COLON:
            frame.want = Want.VALUE
            if char == "=":
                self.repairs["colon"] = None
        elif frame.kind == "{" and frame.want is Want.VALUE:
            self.repairs["colon"] = None
        elif frame.kind == "(" and frame.want is Want.NEXT and _ends_in_text(frame.box):
            frame.key = frame.box.args.pop()
            frame.want = Want.VALUE
        elif (
            frame.kind == "{"
            and frame.want is Want.NEXT
            and isinstance(key := frame.box.get(frame.key), str)
        ):
            # `"parameters": "path": …`: its object has no brace
            self.repairs["missing_opener"] = None
            self._push("{")
            self._stack[-1].key, self._stack[-1].want = key, Want.VALUE
            self._stack[-1].fresh = False
        elif frame.kind in "[t" and len(frame.box) == 1 and isinstance(frame.box[0], str):
            # `["path": "a"]`: an object in the wrong brackets
            self.repairs["missing_opener"] = None
            frame.kind, frame.key, frame.want = "{", frame.box[0], Want.VALUE
            frame.box = {}
        else:
            self._break("unexpected", frame)

    def _break(self, code: str, frame: Frame | None) -> None:
        self.state = State.BROKEN
        self.detail = code, (frame.key or "") if frame else ""

    def _cut(self, code: str, frame: Frame | None) -> None:
        self.state = State.CUT
        self.detail = code, (frame.key or "") if frame else ""

    def _stop(self, *, last: str | None) -> None:
        """The text ends here, with a token that began with `last`; None: it does not end, something
        stands here that is no part of a value (a fence, a tag).
        """
        if not self._stack:
            return
        frame = self._stack[-1]
        waiting = frame.want in (Want.COLON, Want.VALUE) and (frame.kind == "{" or frame.key)
        # a text that stops right behind `"a"` may have meant the quote as part of the value; one
        # that closed some of its brackets, or has a fence or tag behind it, was complete
        if waiting or frame.fresh or (last is not None and last not in CLOSERS):
            self._cut("cut", frame)
            return
        self.repairs["missing_closer"] = None
        while self._stack:
            self._pop()
        self.state = State.CLOSERS


def _is_element(value: Any) -> bool:
    return isinstance(value, Gap) and not value.colon


def _ends_in_text(box: Any) -> bool:
    return bool(box.args) and isinstance(box.args[-1], str)
