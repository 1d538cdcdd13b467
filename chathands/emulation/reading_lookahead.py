"""Whether a string ends at a quote, told by what follows it; nothing is taken from the source.

Every look is bounded, so that a text full of quotes costs no more than its length. None means that
the text at hand does not say yet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from chathands.emulation.reading_source import Source
from chathands.emulation.reading_tokens import (
    CLOSERS,
    COLONS,
    COMMAS,
    FAMILY,
    INVISIBLE,
    OPENERS,
    QUOTES,
    Frame,
    Hints,
    Want,
)

_SPACE: Final = re.compile(rf"(?:[\s{INVISIBLE}]|\\[ntr](?=[\s\\\"'{{}}\[\],:])){{0,256}}")
"""A written-out `\\n` is space where the whole text is escaped once too often."""
_MARK: Final = r"""["'“”„«»＂‘’＇「」『』`]|\\["']|&(?:quot|#34|#39|apos);"""
_INSIDE_KEY: Final = r"""(?:[^"'“”„«»＂‘’＇「」『』`\n\\&:：,，{}]|\\_)"""
_KEY: Final = re.compile(rf"({_MARK})({_INSIDE_KEY}{{1,64}})(?:{_MARK})\s{{0,32}}[:：=＝]")
_MARK_BEGUN: Final = r"(?:\\|&[#a-z0-9]{0,4})"
_KEY_BEGUN: Final = re.compile(
    rf"(?:{_MARK_BEGUN}|(?:{_MARK})(?:{_INSIDE_KEY}{{0,64}}"
    rf"(?:{_MARK_BEGUN}|(?:{_MARK})\s{{0,32}})?)?)\Z"
)
_KEY_ALONE: Final = re.compile(rf"(?:{_MARK})({_INSIDE_KEY}{{1,64}})(?:{_MARK})\s{{0,32}}(?=\S)")
_SCALAR: Final = re.compile(
    r"(?:-?\d[\d.]{0,20}|true|false|null|True|False|None)\s{0,8}[,，}｝]", re.ASCII
)
_SCALAR_BEGUN: Final = re.compile(r"(?:-?[\d.]{0,21}|[A-Za-z]{1,5})\s{0,8}\Z", re.ASCII)
_BARE_KEY: Final = re.compile(r"([^\W\d](?:[\w$.\-]|\\_){0,63})\s{0,32}(?:[:：](?!//)|[=＝](?!=))")
_BARE_KEY_BEGUN: Final = re.compile(
    r"[^\W\d](?:[\w$.\-]|\\_){0,63}(?:\\|\s{0,32}(?:[:：]/?|[=＝])?)\Z"
)
_STRING: Final = re.compile(r"""(["'])[^"'\n]{0,400}\1\s{0,32}[,，}\])+]""")
_STRING_BEGUN: Final = re.compile(r"""(["'])[^"'\n]{0,400}(?:\1\s{0,32})?\Z""")
_ITEM_TEXT: Final = r"""(["'])(?:[^"'\\\n]|\\.){0,400}"""
_ITEM: Final = re.compile(
    _ITEM_TEXT + r"""(?:\1[ \t]{0,32}\r?\n\s{0,64}["'\]]|(?<=[\w.])\1[ \t]{1,32}["']\w)"""
)
_ITEM_BEGUN: Final = re.compile(
    _ITEM_TEXT + r"""(?:\\|\1[ \t]{0,32}(?:\r|\r?\n\s{0,64}|["'])?)?\Z"""
)
_VALUE: Final = re.compile(
    r"""[\[{("'“‘\d\-+.\\&]|(?:true|false|null|None|True|False)(?!\w)|[^\W\d](?:[\w.]|\\_){0,80}[(（]"""
)
_VALUE_BEGUN: Final = re.compile(r"[^\W\d](?:[\w.]|\\_){0,80}\\?\Z")
_TAG: Final = re.compile(
    r"</?\s?(?:tool|func|invoke|param|arg|action|escape|\w{1,16}:)|<[|｜]", re.I
)
_KEY_WORD: Final = re.compile(r"""([\w$.\-]{1,64})["'”’]""")
_KEY_WORD_COLON: Final = re.compile(r"""([\w$.\-]{1,64})["'”’]\s{0,32}[:：]""")
_KEY_WORD_BEGUN: Final = re.compile(r"""[\w$.\-]{0,64}(?:["'”’]\s{0,32})?\Z""")
_CODE_END: Final = re.compile(r"`{1,2}(?=[\s,;.。]|\Z)|```")
_COMMENT: Final = re.compile(
    r"(?://|#)[^\n]{0,200}\n\s{0,64}[}\])\"']|/\*[^*]{0,200}\*/\s{0,64}[,}\])]"
)
_NO_MEMBER: Final = QUOTES | frozenset("{}[]()!?。！？;:<>/")
"""What cannot stand behind a quote where a member begins."""
_PREFIXES: Final = frozenset("uUbBrRfF")
_ASCII_QUOTES: Final = ("'", '"')
_MARKS: Final = QUOTES | {"\\", "&"}


class Lookahead:
    """Looks ahead for one reader, whose open brackets are `stack`."""

    __slots__ = ("_hints", "_src", "_stack", "bare_keys", "closings", "families", "prefixed")

    def __init__(self, src: Source, stack: Sequence[Frame], hints: Hints) -> None:
        self._src = src
        self._stack = stack
        self._hints = hints
        self.families: set[str] = set()
        """How the keys of this text are quoted: what imitates a key inside a value often is not."""
        self.closings: set[str] = set()
        """The marks that have closed strings opened by a smart quote."""
        self.bare_keys = False
        """Some keys of this text have no quotes."""
        self.prefixed = False
        """Some have a letter before their quote, as in Python."""

    def key_follows(
        self, at: int, level: int, *, bare: bool, family: str = "", sure: bool = False
    ) -> bool | None:
        """Whether a key and its colon stand at `buf[at]`, quoted as other keys are, or as `family`,
        or else well known.

        `sure`: it must also be a key that belongs at this level of the brackets.
        """
        buf = self._src.buf
        if self.prefixed and buf[at] in _PREFIXES:
            if not self._src.final and len(buf) - at < 3:
                return None
            at += 1 if buf[at + 1 : at + 2] in _ASCII_QUOTES else 0
        begun = not self._src.final and len(buf) - at < 110
        quoted = buf[at] in _MARKS
        if not quoted and not bare:
            return False
        if begun and (_KEY_BEGUN if quoted else _BARE_KEY_BEGUN).match(buf, at):
            return None
        match = (_KEY if quoted else _BARE_KEY).match(buf, at)
        if match is None:
            # `"city": "x", "days" 2`: the colon was forgotten
            alone = _KEY_ALONE.match(buf, at) if quoted and not sure else None
            return alone is not None and self._hints.expects(self._stack, level, alone[1].strip())
        key = match[2 if quoted else 1].strip()
        if quoted and self.families and FAMILY[match[1][0]] not in {*self.families, family}:
            return self._hints.expects(self._stack, level, key)
        return not sure or self._hints.fits(self._stack, level, key)

    def string_ends(self, at: int, family: str, inner: int | None) -> bool | None:
        """Whether a string may end just before `buf[at]`: structure that fits must follow.

        `inner` is None for a string that has no quote inside so far; otherwise how many brackets
        it opens more than it closes. Then every sign of structure is doubtful: the brackets must be
        even, a key must be one that belongs there, and the end of the text says nothing.
        """
        buf = self._src.buf
        spot = self._past_space(at)
        if spot is None:
            return None
        if spot == len(buf):
            return inner is None
        if spot - at >= 256:
            return True
        char = buf[spot]
        level = len(self._stack) - 1
        if level < 0:
            return True
        if self._stack[level].want is Want.KEY:
            if char in COLONS or char in OPENERS or char in ",，}｝":
                return True
            if _SCALAR.match(buf, spot):
                return True  # `"days" 2}`, without its colon
            if not self._src.final and _SCALAR_BEGUN.match(buf, spot):
                return None
            return spot > at and char in QUOTES
        if inner:
            return False
        for _ in range(96):
            if char not in CLOSERS:
                break
            level -= 1
            after = self._past_space(spot + 1)
            if after is None:
                return None
            if after == len(buf):
                return inner is None or level < 0
            lines = "\n" in buf[spot:after]
            spot, char = after, buf[after]
            if level < 0 and (lines or char in COMMAS):
                return True
        else:
            return True
        if char == "`" and level < 0:
            return _CODE_END.match(buf, spot) is not None or self._unknown(spot, 4)
        if char == "`":
            return buf.startswith("```", spot) or self._unknown(spot, 3)
        if level < 0:
            return char not in _MARKS and not char.isalnum()
        kind = self._stack[level].kind
        if char in COMMAS:
            return self.comma_ends(spot, level, family, sure=inner is not None)
        if char in COLONS:
            return kind == "(" and char in ":=＝"
        if char in _MARKS:
            return self._before_quote(at, spot, level, family, sure=inner is not None)
        if char == "<":
            return _TAG.match(buf, spot) is not None or self._unknown(spot, 20)
        if char == "+":
            return buf[spot + 1 : spot + 3].strip()[:1] in QUOTES or self._unknown(spot, 3)
        if char == ".":
            return buf.startswith("...", spot) or self._unknown(spot, 3)
        if char in "/#":
            # a comment, if what stands behind it goes on as structure
            return _COMMENT.match(buf, spot) is not None or self._unknown(spot, 270)
        return char in "…✿" or (kind in "{[" and char in "{｛")

    def member_begins(self, at: int, after_comma: bool) -> bool | None:
        """Whether behind a quote that seemed to be part of a string the next member begins.

        `"a "b","x":`, with a key that is not one of ours; or the quote was the opening one of a key
        that is, or the closing one before it: `"a","text"":`, `"a"text":`.
        """
        buf = self._src.buf
        level = len(self._stack) - 1
        if level < 0 or self._stack[level].kind != "{" or self._stack[level].want is Want.KEY:
            return False
        if at < len(buf) and buf[at] in _NO_MEMBER:
            return False
        word = (_KEY_WORD if after_comma else _KEY_WORD_COLON).match(buf, at)
        if word is not None:
            return self._hints.expects(self._stack, level, word[1])
        if not self._src.final and _KEY_WORD_BEGUN.match(buf, at):
            return None
        if after_comma:
            return False
        spot = self._past_space(at)
        if spot is None or spot == len(buf) or buf[spot] != ",":
            return None if spot is None else False
        spot = self._past_space(spot + 1)
        if spot is None or spot == len(buf):
            return None if spot is None else False
        return self.key_follows(spot, level, bare=False)

    def in_list_gap(self, at: int) -> bool | None:
        """Whether in a list a blank and the next quote stand at `buf[at]`."""
        if not self._stack or self._stack[-1].kind != "[":
            return False
        spot = self._past_space(at)
        if spot is None or spot == at:
            return None if spot is None else False
        return self._src.buf[spot : spot + 1] in _ASCII_QUOTES

    def opens_object(self, at: int) -> bool | None:
        """Whether a colon at `buf[at]` makes the string before it the first key of an object that
        has no brace, `"parameters": "path": "a"}`, or another bracket, `["path": "a"]`.
        """
        frame = self._stack[-1] if self._stack else None
        if frame is None or frame.want is not Want.VALUE:
            return False
        waits = frame.kind == "{" and self._hints.holds_arguments(frame.key or "")
        if not waits and not (frame.kind in "[t" and frame.fresh):
            return False
        spot = self._past_space(at)
        return None if spot is None else self._src.buf[spot : spot + 1] in (":", "：")

    def _past_space(self, at: int) -> int | None:
        """Where the next character stands that is no space; None if it may still be space."""
        buf = self._src.buf
        spot = _SPACE.match(buf, at).end()  # type: ignore[union-attr]
        whole = spot < len(buf) and (buf[spot] != "\\" or len(buf) - spot >= 3)
        return spot if whole or self._src.final else None

    def _unknown(self, spot: int, width: int) -> bool | None:
        """No, unless what is missing of so many characters may still change that."""
        return None if not self._src.final and len(self._src.buf) - spot < width else False

    def comma_ends(
        self, spot: int, level: int, family: str = "", *, sure: bool = False
    ) -> bool | None:
        """Whether the comma at `buf[spot]` ends a member of the frame at this level."""
        buf, final = self._src.buf, self._src.final
        after = self._past_space(spot + 1)
        if after is None:
            return None
        if after == len(buf):
            return not sure
        char = buf[after]
        if char in CLOSERS or char in COMMAS or char in "{｛`…<":
            return not sure
        if char in "/#." and len(buf) - after < 3 and not final:
            return None
        if char in "/#.":
            return not sure
        kind = self._stack[level].kind
        if kind == "{":
            return self.key_follows(after, level, bare=self.bare_keys, family=family, sure=sure)
        if kind == "(":
            key = self.key_follows(after, level, bare=True)
            if key is not False:
                return key
        if not final and len(buf) - after < 82 and _VALUE_BEGUN.match(buf, after):
            return None
        if char in QUOTES and FAMILY[char] == family:
            return True  # the next item, quoted as this one
        return _VALUE.match(buf, after) is not None

    def _before_quote(
        self, at: int, spot: int, level: int, family: str, *, sure: bool
    ) -> bool | None:
        """A string right behind a string: a comma was forgotten, or Python joins the two."""
        if self._stack[level].kind == "{":
            key = self.key_follows(spot, level, bare=False, family=family, sure=sure)
            if key is not False:
                return key
        if spot == at or sure:
            return False
        buf = self._src.buf
        if self._stack[level].kind == "[":
            # an item on each line, or plain words, without commas
            if not self._src.final and len(buf) - spot < 440 and _ITEM_BEGUN.match(buf, spot):
                return None
            if _ITEM.match(buf, spot):
                return True
        if not self._src.final and len(buf) - spot < 440 and _STRING_BEGUN.match(buf, spot):
            return None
        return _STRING.match(buf, spot) is not None
