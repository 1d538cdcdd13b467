"""String literals as models write them: which quotes pair, where a string ends, what escapes mean.

The one hard question is whether a quote ends the string or is part of it. It is answered by what
follows (reading_lookahead.py, which knows the brackets that are open), never by guessing a
missing end: a string without one is reported as such.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from chathands.emulation.reading_lookahead import Lookahead
from chathands.emulation.reading_source import Reads, Source
from chathands.emulation.reading_tokens import CLOSING, FAMILY

_STOPS: Final = {
    opening: re.compile("[" + re.escape(closing) + r"\\\n]") for opening, closing in CLOSING.items()
}
_BARE_FENCE: Final = re.compile(r"\n[ \t]{0,12}(?:`{3,40}|~{3,40})[ \t]{0,12}(?:\r?\n|\Z)")
_MAYBE_FENCE: Final = re.compile(r"\n[ \t]{0,12}(?:`{0,40}|~{0,40})[ \t]{0,12}\r?\Z")
_SHUT: Final = re.compile(r"[\]})｝］](?:\s*[\]})｝］])*\s*\Z")
_LIKE_MEMBER: Final = re.compile(r"""["'”’]\s*[,，]\s*\Z""")
_NAME_LIKE: Final = re.compile(r"\s*[\w.\-]{1,64}\s*")
_PATH: Final = re.compile(r"(?:^|[\s'(=])(?:[A-Za-z]:\\|\\\\[\w.$-]+\\)")


@dataclass(slots=True)
class Literal:
    """A string that was read. `text` is None when it never ended."""

    text: str | None
    unquoted: bool = False
    """Its closing quote was missing; what the reader stands at belongs to what follows."""


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
    stops = _STOPS[opening]
    family = FAMILY[opening]
    proper = CLOSING[opening][0]
    body: list[str] = []
    tail = ""
    """The last characters of the body; looking at all of it at every quote would be quadratic."""
    depth = 0
    """Smart quotes opened inside and not closed yet."""
    inner: int | None = None
    """Brackets opened inside, counted once a quote was found inside."""
    whole = True
    """So far one line without an inner quote."""
    while True:
        found = stops.search(src.buf, src.pos)
        if found is None:
            body.append(src.buf[src.pos :])
            tail = (tail + body[-1])[-80:]
            if inner is not None:
                inner += _brackets(body[-1])
            src.pos = len(src.buf)
            if src.final:
                return Literal(None)
            yield
            continue
        at = found.start()
        mark = src.buf[at]
        body.append(src.buf[src.pos : at])
        tail = (tail + body[-1])[-80:]
        if inner is not None:
            inner += _brackets(body[-1])
        src.pos = at
        if mark == "\\":
            if not (yield from src.need(2)):
                src.pos = len(src.buf)
                return Literal(None)
            mark = src.buf[src.pos : src.pos + 2]
            if mark[1] == proper and _PATH.search(tail):
                over = look.string_ends(src.pos + 2, family, inner)
                if over is None:
                    yield
                    continue
                if over:  # `"D:\reports\"`: the backslash is the path's last, not an escape
                    src.pos += 2
                    repairs["escapes"] = None
                    return Literal(unescape("".join(body) + "\\", opening, repairs))
        elif mark == "\n":
            if not src.final and _MAYBE_FENCE.match(src.buf, at):
                yield
                continue
            if whole and _BARE_FENCE.match(src.buf, at) and _SHUT.search(tail):
                return Literal(None)  # `"city":"北京}}` and the fence ends: the quote was forgotten
            whole = False
        else:
            closes_inner = depth > 0 and mark in "”’"
            over = False if closes_inner else look.string_ends(at + 1, family, inner)
            if over is None:
                yield
                continue
            if over:
                src.pos += 1
                text = "".join(body)
                if inner is not None and _LIKE_MEMBER.search(tail):
                    return Literal(None)  # `"a","` inside: where this text ends is anyone's guess
                return Literal(text if raw else unescape(text, opening, repairs))
            if whole:
                text = "".join(body)
                before = _forgotten_quote(text, is_key=is_key, is_name=is_name)
                if before is not None:
                    repairs["missing_quote"] = None
                    return Literal(before, unquoted=True)
                if is_key and mark == proper:
                    return Literal(None)  # no key has a quote in it
            if inner == 0 and _LIKE_MEMBER.search(tail):
                names_key = look.key_word_at(at + 1)
                if names_key is None:
                    yield
                    continue
                if names_key:
                    return Literal(None)  # `…","timeout"":30`: the next member has begun
            whole = False
            depth += (mark in "“‘") - (mark in "”’" and depth > 0)
            if mark == opening or (mark == proper and not closes_inner):
                repairs["inner_quotes"] = None
                inner = _brackets("".join(body)) if inner is None else inner
        body.append(mark)
        tail += mark
        src.pos += len(mark)


_ESCAPED_QUOTE: Final = re.compile(r'\\+["\']')
_ENTITY_QUOTE: Final = re.compile(r"&(?:quot|#34|#x22|apos|#39|#x27);")
_FIXED: Final = {mark: re.compile(mark) for mark in ("'''", '"""', "<escape>")}
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
        if other is None or other not in _SIMPLE:
            repairs["escapes"] = None
            return opening if other == opening else match.group()
        if formula and other in "bfnrt" and _LATEX.match(body, match.start()):
            return match.group()
        if other == "'" and opening != "'":
            repairs["escapes"] = None
        return _SIMPLE[other]

    text = _ESCAPE.sub(replace, body)
    return _join_surrogates(text, repairs)


def _join_surrogates(text: str, repairs: dict[str, None]) -> str:
    """Pairs of `\\ud83d\\ude00` as the one character they stand for."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
