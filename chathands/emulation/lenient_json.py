"""Reads values as models write them: JSON with mistakes, Python literals, calls like `f(x=1)`.

One pass, one explicit stack, no recursion and no backtracking: the cost is linear in the text, and
deep nesting costs nothing. A decision that needs to see what follows looks a bounded way ahead.
What is put right is named in `repairs`. What would have to be made up, the end of a string, number
or key that was cut, is not: then `state` says so, and there is no value to run.
"""

from __future__ import annotations

import re
from typing import Any, Final

from chathands.emulation.reading_brackets import Brackets
from chathands.emulation.reading_lookahead import Lookahead
from chathands.emulation.reading_source import Reads, Source, run
from chathands.emulation.reading_strings import Literal, read_quoted, read_wrapped
from chathands.emulation.reading_tokens import (
    CLOSERS,
    COLONS,
    COMMAS,
    CONSTRUCTORS,
    FAMILY,
    FULL_WIDTH,
    OPENERS,
    QUOTES,
    SPACE,
    Call,
    Frame,
    Hints,
    State,
    Variable,
    Want,
)
from chathands.emulation.reading_words import (
    JSON_WORDS,
    is_scalar_end,
    is_typed,
    peek_after_blanks,
    peek_word,
    skip_comment,
    skip_dots,
    take_text,
    take_thousands,
    word_value,
)

_NAME: Final = re.compile(r"[^\W\d][\w.\-]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_EXPRESSION: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?:[\[(]| [-+*/%] )")
_COLON_AHEAD: Final = re.compile(r"\s{0,32}[:：=＝]")
_GIVEN: Final = re.compile(r"""（\s{0,8}(?:[）)"'“‘＂＇「『]|\w{1,60}\s{0,8}[=＝])""")
"""A call in full-width parentheses gives a name or quotes to its values; else it is prose, as in
`get_weather（查天气）`."""
_PREFIX: Final = re.compile(r"[rRbBfFuU]{1,2}")
_NO_BEGINNING: Final = frozenset(CLOSERS) | COMMAS | COLONS
_SPECIAL: Final = frozenset("/#.…`<&\\✿*+>")
_TOKENS: Final = ("<escape>", '<|"|>')
"""Tokens of their own that Gemma quotes with."""
_ENTITIES: Final = ("&quot;", "&#34;", "&#39;", "&apos;")


class LenientReader(Brackets):
    """Reads one value from a source; `value`, `state`, `detail`, `repairs` hold what came of it."""

    def __init__(self, src: Source, hints: Hints, *, members: dict[str, Any] | None = None) -> None:
        """`members`: go on inside an object that seemed to be over."""
        super().__init__(src)
        self._hints = hints
        self._ahead = Lookahead(src, self._stack, hints)
        if members is not None:
            self._push("{", members)
            self.repairs["reopened"] = None

    def read(self) -> Reads[None]:
        """Read the value at the source's place and leave the source behind it.

        Nothing is read (`EMPTY`) when the text ends or something stands there that begins no value.
        """
        src = self.src
        char = ""
        while self.state is State.EMPTY:
            src.pos = SPACE.match(src.buf, src.pos).end()  # type: ignore[union-attr]
            if src.pos == len(src.buf):
                if src.final:
                    self._stop(last=char)
                    return
                yield
                continue
            char = src.buf[src.pos]
            frame = self._stack[-1] if self._stack else None
            if char in FULL_WIDTH:
                self.repairs["full_width"] = None
            if char in _SPECIAL:
                handled = yield from self._special(char, frame)
                if handled is None:
                    self._stop(last=None)
                    return
                if handled:
                    continue
            if char in QUOTES:
                yield from self._string(char, frame)
            elif frame is None:
                if char in OPENERS:
                    src.pos += 1
                    self._push(OPENERS[char])
                elif char in _NO_BEGINNING or not (yield from self._bare(None)):
                    return
            elif char in CLOSERS:
                self._close(char)
            elif char in COMMAS:
                self._comma(frame)
            elif char in COLONS:
                self._colon(frame)
            elif char in OPENERS:
                self._open(OPENERS[char], frame)
            elif frame.want is Want.KEY:
                yield from self._bare_key(frame)
            else:
                yield from self._bare(frame)

    # --- strings

    def _string(self, opening: str, frame: Frame | None, *, raw: bool = False) -> Reads[None]:
        src = self.src
        if frame is not None and frame.kind == "{" and frame.want is Want.NEXT:
            # two strings in a row: a forgotten comma, or Python's joining of literals
            level = len(self._stack) - 1
            while (key := self._ahead.key_follows(src.pos, level, bare=False)) is None:
                yield
            if key:
                self.repairs["commas"] = None
                frame.want = Want.KEY
        is_key = frame is not None and frame.want is Want.KEY
        if opening in ('"', "'") and not is_key:
            yield from src.need(3)
            if src.buf.startswith(opening * 3, src.pos):
                opening *= 3
        src.pos += len(opening)
        if is_key:
            self._ahead.families.add(FAMILY[opening[0]])
        named = frame is not None and frame.key is not None and self._hints.is_name_key(frame.key)
        if len(opening) == 1:
            read = yield from read_quoted(
                src,
                opening,
                self._ahead,
                self.repairs,
                is_key=is_key,
                is_name=named and not is_key,
                raw=raw,
            )
        else:
            read = yield from read_wrapped(src, opening, self._ahead, self.repairs)
        if opening != '"' and opening not in _TOKENS:
            self.repairs["quotes"] = None
        if read.text and (is_key or named) and "\\_" in read.text:
            self.repairs["markdown"] = None
        self._took(read, frame)

    def _took(self, read: Literal, frame: Frame | None) -> None:
        if read.text is None and read.lost:
            self.state, self.detail = State.BROKEN, ("no_colon", read.lost)
        elif read.text is None:
            self._cut("cut", frame)
        elif frame is None:
            self._put(read.text)
        elif frame.kind == "{" and frame.want is Want.KEY:
            frame.key = read.text.replace("\\_", "_")
            frame.fresh = False
            frame.want = Want.VALUE if read.unquoted else Want.COLON
        elif frame.kind == "{" and frame.want is Want.COLON:
            self.repairs["missing_colon"] = None
            self._put(read.text)
        elif frame.kind == "{" and frame.want is Want.NEXT:
            before = frame.box.get(frame.key)
            if isinstance(before, str):
                self.repairs["joined"] = None
                frame.box[frame.key] = before + read.text
            else:
                self._break("two_values", frame)
        elif frame.kind == "t" and frame.want is Want.NEXT and isinstance(frame.box[-1], str):
            self.repairs["joined"] = None  # `("first " "second")`
            frame.box[-1] += read.text
        else:
            self._put(read.text)
            if read.unquoted:
                frame.want = Want.KEY

    # --- everything without quotes

    def _special(self, char: str, frame: Frame | None) -> Reads[bool | None]:
        """Take a comment, an ellipsis, a string in odd quotes: True. False if the character begins
        an ordinary word; None where the value must stop, at a fence or a tag.
        """
        src = self.src
        want = frame.want if frame else Want.VALUE
        if char in "<✿":
            yield from src.need(8)
            token = next((t for t in _TOKENS if src.buf.startswith(t, src.pos)), None)
            if token is None:
                return None
            yield from self._string(token, frame)
            return True
        yield from src.need({"`": 3, "&": 6, ".": 3}.get(char, 2))
        two = src.buf[src.pos : src.pos + 2]
        if char == "`":
            if src.buf.startswith("```", src.pos):
                return None
            yield from self._string(char, frame)
        elif two in ("/*", "//") or (char == "#" and (want is not Want.VALUE or two == "# ")):
            self.repairs["comments"] = None
            yield from skip_comment(src, "*/" if two == "/*" else "\n")
        elif char == "…" or src.buf.startswith("...", src.pos):
            if want is Want.VALUE and (frame is None or frame.kind in "{("):
                self._break("placeholder", frame)
            self.repairs["ellipsis"] = None
            yield from skip_dots(src)
        elif char == "\\" and two[1:] and two[1] in "ntr":
            self.repairs["escaped"] = None
            src.pos += 2
        elif two in ('\\"', "\\'"):
            self.repairs["escaped"] = None
            yield from self._string(two, frame)
        elif char == "&" and (
            entity := next((e for e in _ENTITIES if src.buf.startswith(e, src.pos)), "")
        ):
            self.repairs["entities"] = None
            yield from self._string(entity, frame)
        elif two == "**" and frame is not None and frame.kind == "(":
            src.pos += 2
        elif (char == "+" and want is Want.NEXT) or (char == ">" and want is Want.VALUE):
            src.pos += 1  # strings joined; the second half of `=>`
        else:
            return False
        return True

    def _bare_key(self, frame: Frame) -> Reads[None]:
        src = self.src
        word = yield from peek_word(src)
        src.pos += len(word)
        if not word:
            self._break("unexpected", frame)
        elif src.pos == len(src.buf) and src.final:
            self._cut("cut", None)
        else:
            quote = src.buf[src.pos]
            if quote in QUOTES and _PREFIX.fullmatch(word):
                yield from src.need(40)
                if not _COLON_AHEAD.match(src.buf, src.pos + 1):  # `u'tool': …`, of Python 2
                    self._ahead.prefixed = True
                    yield from self._string(quote, frame)
                    return
            if quote in QUOTES:  # `tool": …`, the opening quote is missing
                self.repairs["missing_quote"] = None
                src.pos += 1
            self.repairs["bare_keys"] = None
            self._ahead.bare_keys = True
            frame.key = word
            frame.fresh = False
            frame.want = Want.COLON

    def _bare(self, frame: Frame | None) -> Reads[bool]:
        """A word, number or call where a value is wanted, or a word too many where none is.

        False when it is a plain word outside of everything: then there is no value here.
        """
        src = self.src
        word = yield from peek_word(src)
        if frame is not None and frame.want is Want.COLON and is_typed(word) and frame.kind == "{":
            self.repairs["missing_colon"] = None
            frame.want = Want.VALUE
        if frame is not None and frame.want is not Want.VALUE:
            yield from self._stray_word(frame)
            return True
        after = src.buf[src.pos + len(word) : src.pos + len(word) + 1]
        name = word.replace("\\_", "_")
        if name != word:
            self.repairs["markdown"] = None
        is_name = _NAME.fullmatch(name) is not None
        if after == "(" and is_name and frame is not None and frame.kind == "{":
            yield from src.need(len(word) + 2)
            quoted = src.buf[src.pos + len(word) + 1 : src.pos + len(word) + 2] in ('"', "'")
            is_name = quoted or name.rpartition(".")[2] in CONSTRUCTORS
        if after == "（" and is_name and self._hints.is_tool(name):
            yield from src.need(len(word) + 80)
            if _GIVEN.match(src.buf, src.pos + len(word)):
                self.repairs["full_width"] = None
                after = "("
        if after == "(" and is_name:
            src.pos += len(word) + 1
            self._push("(", Call(name))
            return True
        if frame is None:
            return False
        if not after and src.final:
            src.pos += len(word)
            if word in JSON_WORDS:
                self._put(JSON_WORDS[word])
            else:
                self._cut("cut", frame)
            return True
        ahead = yield from peek_after_blanks(src, len(word))
        after = src.buf[src.pos + ahead : src.pos + ahead + 1]
        if after and after in COLONS and is_name and frame.kind == "(" and frame.key is None:
            if after in FULL_WIDTH:
                self.repairs["full_width"] = None
            src.pos += ahead + 1
            frame.key = name
            frame.fresh = False
        elif after and after in QUOTES and _PREFIX.fullmatch(word):
            self.repairs["quotes"] = None
            src.pos += ahead
            yield from self._string(after, frame, raw="r" in word.lower())
        elif word and (yield from self._ends_word(word, after, ahead, frame)):
            src.pos += ahead
            if after == "," and frame.kind == "{":
                word = yield from take_thousands(src, word, self.repairs)
            value = word_value(word, self.repairs)
            is_code = any(open_.kind == "(" for open_ in self._stack) and frame.kind != "{"
            if is_code and isinstance(value, str) and _VARIABLE.fullmatch(value):
                value = Variable(value)
            self._put(value)
        else:
            text = yield from take_text(src, self._stack, self._ahead, self.repairs)
            self.repairs["bare_text"] = None
            if text and frame.kind == "(" and _EXPRESSION.match(text):
                self._put(Variable(text))
            elif text:
                self._put(text)
            elif text is None:
                self._cut("cut", frame)
            else:
                self._break("no_value", frame)
        return True

    def _ends_word(self, word: str, after: str, ahead: int, frame: Frame) -> Reads[bool]:
        """Whether the word is the whole value: `{"query": a, b and c}` has a comma in its text."""
        named = frame.key is not None and self._hints.is_name_key(frame.key)
        apart = bool(word and after) and ahead > len(word)
        if frame.kind == "{" and apart and (named or is_typed(word)):
            # `"days": 3 "unit": "c"`, `tool: read_file parameters: {`: the comma was forgotten
            level = len(self._stack) - 1
            while (key := self._ahead.key_follows(self.src.pos + ahead, level, bare=True)) is None:
                yield
            if key:
                return True
        if frame.kind == "[" and apart and word and is_typed(word):
            return True  # `[1 2 3]`: not one text; what follows decides
        if not is_scalar_end(after):
            return False
        if after not in COMMAS or frame.kind != "{" or is_typed(word):
            return True
        level = len(self._stack) - 1
        while (over := self._ahead.comma_ends(self.src.pos + ahead, level)) is None:
            yield
        return over

    def _stray_word(self, frame: Frame) -> Reads[None]:
        src = self.src
        while (key := self._ahead.key_follows(src.pos, len(self._stack) - 1, bare=True)) is None:
            yield
        if frame.want is Want.NEXT and key:
            self.repairs["commas"] = None
            frame.want = Want.KEY if frame.kind == "{" else Want.VALUE
        elif frame.want is Want.COLON and self._ahead.bare_keys and frame.key is not None:
            word = yield from peek_word(src)
            src.pos += max(1, len(word))
            frame.key += f" {word}"
        else:
            self._break("unexpected", frame)


def read_value(text: str, hints: Hints) -> LenientReader:
    """Read one value from a whole text; what follows it is left in the reader's source."""
    reader = LenientReader(Source(text, final=True), hints)
    run(reader.read())
    return reader
