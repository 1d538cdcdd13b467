"""String literals as models write them: which quotes pair, where a string ends, what escapes mean.

The one hard question is whether a quote ends the string or is part of it. It is answered by what
follows (reading_lookahead.py, which knows the brackets that are open), never by guessing a
missing end: a string without one is reported as such.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from chathands.emulation.reading_lookahead import Lookahead
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import CLOSING, FAMILY, SMART

_STOPS: Final = {
    opening: re.compile("[" + re.escape(closing) + r"\\\n]") for opening, closing in CLOSING.items()
}
_BARE_FENCE: Final = re.compile(r"\n[ \t]{0,12}(?:`{3,40}|~{3,40})[ \t]{0,12}(?:\r?\n|\Z)")
_MAYBE_FENCE: Final = re.compile(r"\n[ \t]{0,12}(?:`{0,40}|~{0,40})[ \t]{0,12}\r?\Z")
_SHUT: Final = re.compile(r"[\]})｝］](?:\s*[\]})｝］])*\s*\Z")
_SHUT_BY_TAG: Final = re.compile(r"[\]})｝］]\s*</[\w:|｜▁]{3,40}>\s*\Z")
_LIKE_MEMBER: Final = re.compile(r"""["'”’]\s*[,，]\s*\Z""")
_NAME_LIKE: Final = re.compile(r"\s*[\w.\-]{1,64}\s*")
_PATH: Final = re.compile(r"(?:^|[\s'(=])(?:[A-Za-z]:\\|\\\\[\w.$-]+\\)")


@dataclass(slots=True)
class Literal:
    """A string that was read. `text` is None when it never ended."""

    text: str | None
    unquoted: bool = False
    """Its closing quote was missing; what the reader stands at belongs to what follows."""
    lost: str = ""
    """A key that was whole, but has no colon and no value that could do without."""


class _Quoted:
    """One string between single marks, read from behind its opening one."""

    def __init__(
        self, src: Source, opening: str, look: Lookahead, repairs: dict[str, None]
    ) -> None:
        self._src = src
        self._opening = opening
        self._proper = CLOSING[opening][0]
        self._look = look
        self._repairs = repairs
        self._body: list[str] = []
        self._tail = ""
        """The last characters of the body; looking at all of it at every quote is quadratic."""
        self._smart = 0
        """Smart quotes opened inside and not closed yet."""
        self._inner: int | None = None
        """Brackets opened inside and not closed yet; None before a quote was found inside."""
        self._whole = True
        """So far one line without a quote inside."""

    def read(self, *, is_key: bool, is_name: bool, raw: bool) -> Reads[Literal]:
        src = self._src
        stops = _STOPS[self._opening]
        while True:
            found = stops.search(src.buf, src.pos)
            self._take(found.start() if found else len(src.buf))
            if found is None:
                if src.final:
                    return Literal(None)
                yield
                continue
            mark = found.group()
            if mark == "\\":
                over = yield from self._backslash()
            elif mark == "\n":
                over = yield from self._line_break()
            else:
                over = yield from self._quote(mark, is_key=is_key, is_name=is_name)
            if over is not None:
                if over.text is not None and not over.unquoted and not raw:
                    over.text = unescape(over.text, self._opening, self._repairs)
                return over

    def _take(self, upto: int) -> None:
        """Take the text up to this index of the buffer."""
        part = self._src.buf[self._src.pos : upto]
        self._src.pos = upto
        self._body.append(part)
        self._tail = (self._tail + part)[-80:]
        if self._inner is not None:
            self._inner += _brackets(part)

    def _backslash(self) -> Reads[Literal | None]:
        src = self._src
        if not (yield from src.need(2)):
            return Literal(None)
        if src.buf[src.pos + 1] == self._proper and _PATH.search(self._tail):
            # `"D:\reports\"`: the backslash may be the path's last character, not an escape
            while (over := self._ends(2)) is None:
                yield
            if over:
                src.pos += 2
                return Literal("".join(self._body) + "\\")
        self._take(src.pos + 2)
        return None

    def _line_break(self) -> Reads[Literal | None]:
        src = self._src
        while not src.final and _MAYBE_FENCE.match(src.buf, src.pos):
            yield
        if self._whole and (
            (_BARE_FENCE.match(src.buf, src.pos) and _SHUT.search(self._tail))
            or _SHUT_BY_TAG.search(self._tail)
        ):
            return Literal(None)  # `"city":"北京}}` and the block ends: the quote was forgotten
        self._whole = False
        self._take(src.pos + 1)
        return None

    def _quote(self, mark: str, *, is_key: bool, is_name: bool) -> Reads[Literal | None]:
        """The end of the string, or a quote inside it; None if the string goes on."""
        src = self._src
        if self._whole and not is_key and not is_name and _NAME_LIKE.fullmatch(self._tail):
            while (opens := self._look.opens_object(src.pos + 1)) is None:
                yield
            if opens:
                src.pos += 1
                return Literal("".join(self._body))
        smart = self._opening in SMART
        if smart and mark not in SMART and self._look.closings == {self._proper}:
            self._take(src.pos + 1)  # in a text of “…” a plain quote is part of a value
            return None
        closes_inner = self._smart > 0 and mark in "”’"
        while (over := False if closes_inner else self._ends(1)) is None:
            yield
        if over:
            src.pos += 1
            if smart:
                self._look.closings.add(mark)
            # `…","` before the end: where this text really ends is anyone's guess
            unsure = self._inner is not None and _LIKE_MEMBER.search(self._tail)
            return Literal(None if unsure else "".join(self._body))
        if self._whole:
            before = _forgotten_quote("".join(self._body), is_key=is_key, is_name=is_name)
            if before is not None:
                self._repairs["missing_quote"] = None
                return Literal(before, unquoted=True)
            if is_key and mark == self._proper:
                return Literal(None, lost="".join(self._body))  # no key has a quote in it
        while (gap := self._look.in_list_gap(src.pos + 1)) is None:
            yield
        if gap:
            return Literal(None)  # `["a" "b"]`, or quotes inside one item: who knows
        if not self._inner:
            after_comma = self._tail.rstrip()[-1:] in (",", "，")
            while (next_one := self._look.member_begins(src.pos + 1, after_comma)) is None:
                yield
            if next_one:
                return Literal(None)  # `…,"timeout"":30`: the next member has begun, or may have
        self._whole = False
        self._smart += (mark in "“‘") - (mark in "”’" and self._smart > 0)
        if mark == self._opening or (mark == self._proper and not closes_inner):
            self._repairs["inner_quotes"] = None
            if self._inner is None:
                self._inner = _brackets("".join(self._body))
        self._take(src.pos + 1)
        return None

    def _ends(self, width: int) -> bool | None:
        return self._look.string_ends(self._src.pos + width, FAMILY[self._opening], self._inner)


def read_quoted(
    src: Source,
    opening: str,
    look: Lookahead,
    repairs: dict[str, None],
    *,
    is_key: bool = False,
    is_name: bool = False,
    raw: bool = False,
) -> Reads[Literal]:
    """Read a string whose opening quote was just read; `raw` keeps its backslashes.

    `is_name` marks the value of a key like `tool`, where a missing closing quote is no danger: the
    name is checked against the declared ones.
    """
    reader = _Quoted(src, opening, look, repairs)
    return reader.read(is_key=is_key, is_name=is_name, raw=raw)


_ESCAPED_QUOTE: Final = re.compile(r'\\+["\']')
_ENTITY_QUOTE: Final = re.compile(r"&(?:quot|#34|#x22|apos|#39|#x27);")
_FIXED: Final = {mark: re.compile(re.escape(mark)) for mark in ("'''", '"""', "<escape>", '<|"|>')}
_ENTITIES: Final = {
    "quot": '"', "#34": '"', "apos": "'", "#39": "'", "lt": "<", "gt": ">", "amp": "&",
}  # fmt: skip
_ENTITY: Final = re.compile(r"&(quot|#34|apos|#39|lt|gt|amp);")


def read_wrapped(
    src: Source, opening: str, look: Lookahead, repairs: dict[str, None]
) -> Reads[Literal]:
    """Read a string in quotes of several characters: `\\"…\\"`, `&quot;…&quot;`, triple quotes."""
    family = FAMILY[opening[0]]
    stops = _FIXED.get(opening) or (_ESCAPED_QUOTE if opening[0] == "\\" else _ENTITY_QUOTE)
    body: list[str] = []
    while True:
        found = stops.search(src.buf, src.pos)
        if found is None:
            # the last characters may be the first ones of a closing mark
            upto = len(src.buf) if src.final else max(src.pos, len(src.buf) - 8)
            body.append(src.buf[src.pos : upto])
            src.pos = upto
            if src.final:
                return Literal(None)
            yield
            continue
        over = found.group() == opening and (
            opening in _FIXED or look.string_ends(found.end(), family, None)
        )
        if over is None:
            yield
            continue
        body.append(src.buf[src.pos : found.start()])
        src.pos = found.end()
        if over:
            text = "".join(body)
            if opening[0] == "<":
                return Literal(without_surrogates(text))  # as it is
            if opening[0] == "\\":
                text = unescape(text, opening[1], repairs)
            elif opening[0] == "&":
                text = without_entities(text)
            return Literal(unescape(text, opening[0] if opening in _FIXED else '"', repairs))
        body.append(found.group())


def without_entities(text: str) -> str:
    """`&lt;` and the like as the characters they stand for, once."""
    return _ENTITY.sub(lambda match: _ENTITIES[match.group(1)], text) if "&" in text else text


def _brackets(text: str) -> int:
    """How many brackets the text opens, less those it closes."""
    return text.count("{") + text.count("[") - text.count("}") - text.count("]")


def _forgotten_quote(text: str, *, is_key: bool, is_name: bool) -> str | None:
    """What stood before the `:` of a key or the `,` of a name, where the next string begins."""
    end = ":：" if is_key else ",，" if is_name else ""
    text = text.rstrip()
    if end and text[-1:] and text[-1] in end and _NAME_LIKE.fullmatch(text[:-1]):
        return text[:-1].strip()
    return None


# --- escapes

_ESCAPE: Final = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.)|\Z)",
    re.DOTALL,
)
_INVALID: Final = re.compile(r"""\\(?:u(?![0-9a-fA-F]{4})|[^"\\/bfnrtu'])""", re.DOTALL)
_LATEX: Final = re.compile(
    r"\\(?:b(?:eta|egin|ar|f|ig|inom|mod|oldsymbol|ullet)|f(?:rac|orall|lat)|n(?:abla|eq?|u|ot|leq|i)|"
    r"r(?:ho|ight|m|angle|ceil|floor|ightarrow)|t(?:au|heta|imes|ext|o|an|ilde|riangle))(?![A-Za-z])"
)
_SIMPLE: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'",
}  # fmt: skip
_CONTROL: Final = re.compile(r"[\x00-\x1f]")


def unescape(body: str, opening: str, repairs: dict[str, None]) -> str:
    """What a literal's inside means.

    An escape JSON does not know is the two characters themselves. One such escape also tells that
    the backslashes were not meant as escapes at all: then a Windows path keeps every one of them,
    and a formula keeps its `\\beta`.
    """
    if "\n" in body or _CONTROL.search(body):
        repairs["raw_newline"] = None
    if "\\" not in body:
        return body
    if _PATH.search(body) and "\\\\" not in body.lstrip("\\") and _INVALID.search(body):
        repairs["escapes"] = None
        return body.replace("\\" + opening, opening) if opening in "\"'" else body
    formula = _INVALID.search(body) is not None and not _PATH.search(body)

    def replace(match: re.Match[str]) -> str:
        brace, four, eight, two, other = match.groups()
        code = brace or four or eight or two
        if code:
            number = int(code, 16)
            if not four:
                repairs["escapes"] = None
            return chr(number) if number <= 0x10FFFF else match.group()
        if other == "_" and "markdown" in repairs:
            return "_"  # a name before it was escaped as in Markdown, so this is as well
        if other is None or other not in _SIMPLE:
            repairs["escapes"] = None
            return opening if other == opening else match.group()
        if formula and other in "bfnrt" and _LATEX.match(body, match.start()):
            return match.group()
        if other == "'" and opening != "'":
            repairs["escapes"] = None
        return _SIMPLE[other]

    return without_surrogates(_ESCAPE.sub(replace, body))


def without_surrogates(value: Any) -> Any:
    """The value with every `\\ud83d\\ude00` as the one character it stands for.

    Half of a pair becomes U+FFFD: it cannot be written to any wire or file.
    """
    if isinstance(value, str):
        if not _SURROGATE.search(value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    return value


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
