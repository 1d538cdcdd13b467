"""What holds for every reply, each law a function that raises `Broken`."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from chathands.conversation import ToolCall
from chathands.emulation.outcome import ParsedReply
from chathands.emulation.reading import parse_reply
from chathands.emulation.scanner import Scanner
from tests.emulation.replies import TOOLS, read_in_pieces
from tests.fuzz.damage import Careless
from tests.fuzz.material import CORPUS, PLAIN, SCHEMAS, TRICKY, Call, Maker

FINISH = (None, None, "stop", "length")
_MARKUP = ("json action", '"tool"', '"parameters"', "```")


class Broken(AssertionError):
    """A law and the reply that breaks it. `again` tells whether another reply breaks it too."""

    def __init__(self, law: str, reply: Any, detail: str) -> None:
        super().__init__(f"{law}\n  reply  {reply!r}\n  {detail}")
        self.law, self.reply, self.detail = law, reply, detail


def read(reply: str, finish: str | None = None, **options: Any) -> ParsedReply:
    try:
        return parse_reply(reply, TOOLS, finish, **options)
    except Exception as error:
        raise Broken("reading never raises", reply, repr(error)) from error


def calls_in(reading: ParsedReply) -> list[Call]:
    return [(call.name, dict(call.arguments)) for call in reading.calls]


# --- laws of any text


def any_text(reply: str, finish: str | None, rng: Random) -> None:
    """Read whole, in pieces and in single characters, it is the same and it is well-formed."""
    options: dict[str, Any] = {"thinking": rng.choice(("none", "none", "tags", "open"))}
    if rng.random() < 0.05:
        options["cap"] = rng.randint(0, 80)
    reading = read(reply, finish, **options)
    maker = Maker(rng)
    try:
        whole = read_in_pieces([reply], finish, **options)
        cut = [maker.pieces(reply), list(reply)]
        others = [read_in_pieces(pieces, finish, **options) for pieces in cut]
    except Exception as error:
        raise Broken("reading never raises", reply, f"in pieces: {error!r}") from error
    for pieces, other in zip(cut, others, strict=True):
        if other != whole:
            detail = f"pieces {pieces} {options}\n  whole  {whole}\n  pieces {other}"
            raise Broken("pieces make no difference", reply, detail)
    if whole[1] != reading:
        raise Broken("a whole reply is a stream of one piece", reply, f"{whole[1]} and {reading}")
    well_formed(reply, reading)
    events = whole[0]
    if tuple(e for e in events if isinstance(e, ToolCall)) != reading.calls:
        raise Broken("the calls of the events are those of the reading", reply, f"{events}")
    said = "".join(e for e in events if isinstance(e, str))
    if said != reading.text and not _retracted(reply, finish, options):
        raise Broken("the text of the events is that of the reading", reply, f"{events}")


def well_formed(reply: Any, reading: ParsedReply) -> None:
    """Only declared calls that fit their schema, none twice; each broken one has a reason."""
    seen = []
    for call in reading.calls:
        if call.name not in SCHEMAS:
            raise Broken("only declared calls", reply, f"{call}")
        if problem := misfit(SCHEMAS[call.name], call.arguments, closed=False):
            raise Broken("calls fit their schema", reply, f"{call}: {problem}")
        if (call.name, call.arguments) in seen:
            raise Broken("no call twice", reply, f"{reading.calls}")
        seen.append((call.name, call.arguments))
    if len({call.id for call in reading.calls}) != len(reading.calls):
        raise Broken("ids are unique", reply, f"{reading.calls}")


def misfit(schema: Mapping[str, Any], value: Any, *, closed: bool) -> str:
    """Why a value does not fit a schema of the corpus's tools; empty when it does. Written apart
    from the engine's own checker, which is what is being tested."""
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        return f"{value!r} is not of type {kinds}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{value!r} is not one of {schema['enum']}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                return f"{key} is missing"
        for key, inner in value.items():
            if key not in properties and closed:
                return f"{key} is not declared"
            if key in properties and (found := misfit(properties[key], inner, closed=closed)):
                return f"{key}: {found}"
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return next((f for v in value if (f := misfit(schema["items"], v, closed=closed))), "")
    return ""


def _is(kind: str, value: Any) -> bool:
    if kind in ("integer", "number"):
        numeric = isinstance(value, int) or (isinstance(value, float) and kind == "number")
        whole = isinstance(value, float) and value.is_integer()
        return (numeric or whole) and not isinstance(value, bool)
    types = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}
    return isinstance(value, types[kind])


def _retracted(reply: str, finish: str | None, options: dict[str, Any]) -> bool:
    scanner = Scanner(TOOLS, **options)
    scanner.feed(reply)
    scanner.close(finish)
    return scanner.retracted


# --- laws of a cut


def cut_reply(reply: str, end: int, finish: str | None) -> None:
    """What a reply cut anywhere asks for, the whole reply asks for with the same values."""
    whole = calls_in(read(reply))
    if not whole:
        return
    cut = reply[:end]
    for name, arguments in calls_in(read(cut, finish)):
        if not any(name == n and is_part(arguments, a) for n, a in whole):
            if finish != "length" and _ends_in_bare_value(cut, arguments):
                continue
            detail = f"cut at  {cut!r}\n  gives  {name} {arguments}\n  whole  {whole}"
            raise Broken("a cut never changes a value", reply, detail)


def is_part(part: Any, whole: Any) -> bool:
    """Whether every value of the one stands, complete, in the other."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        pairs = zip(part, whole, strict=False)
        return len(part) <= len(whole) and all(is_part(a, b) for a, b in pairs)
    return type(part) is type(whole) and part == whole


def _ends_in_bare_value(cut: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the text ends in a value of `key: value` on its own line: nothing but the finish
    reason can tell such a value from a shorter one."""
    line = cut.rstrip().rsplit("\n", 1)[-1]
    value = line.replace("：", ":").rpartition(":")[2].strip()
    return bool(value) and value[0] not in "\"'“‘" and value in map(str, arguments.values())


def cuts_worth_trying(reply: str, rng: Random, count: int) -> list[int]:
    """Ends of a cut reply: any, and more of them just behind a quote, bracket, tag or blank."""
    telling = [at for at, char in enumerate(reply, 1) if char in "\"'”“,，}])>`\n= "]
    near = [rng.choice(telling) for _ in range((count + 1) // 2)] if telling else []
    return [*near, *(rng.randint(0, len(reply)) for _ in range(count - len(near)))]


# --- laws of replies whose meaning is known


def told(rng: Random) -> None:
    """A faultless call of any dialect is read as it is, and nothing of it is shown."""
    dialect, lead, calls, reply = Maker(rng).told()
    reading = read(reply)
    if calls_in(reading) != calls:
        detail = f"wanted {calls}\n  got    {calls_in(reading)}, broken {reading.broken}"
        raise Broken(f"a faultless call is read ({dialect})", reply, detail)
    if reading.text != lead.strip():
        raise Broken(f"nothing of a call is shown ({dialect})", reply, f"text {reading.text!r}")
    for end in cuts_worth_trying(reply, rng, 3):
        cut_reply(reply, end, rng.choice(FINISH))


def damaged(rng: Random) -> None:
    """Bad structure may cost a call, never a value; and nothing of a contract block is shown."""
    maker, careless = Maker(rng), Careless(rng)
    values = PLAIN if careless.quotes in ("smart", "full") else PLAIN + TRICKY
    calls = [maker.call(values) for _ in range(rng.choice((1, 1, 2)))]
    reply = careless.reply(calls)
    reading = read(reply)
    for call in calls_in(reading):
        if call not in calls:
            detail = f"wanted {calls}\n  got    {calls_in(reading)}"
            raise Broken("a damaged call never runs with another value", reply, detail)
    if careless.around == "contract":
        _nothing_shown(reply, reading)
    well_formed(reply, reading)
    (end,) = cuts_worth_trying(reply, rng, 1)
    for name, arguments in calls_in(read(reply[:end], rng.choice(FINISH))):
        if not any(name == n and is_part(arguments, a) for n, a in calls):
            detail = f"wanted {calls}\n  got    {name} {arguments}"
            raise Broken("a cut damaged call never runs with another value", reply[:end], detail)


def _nothing_shown(reply: str, reading: ParsedReply) -> None:
    if leak := next((mark for mark in _MARKUP if mark in reading.text), None):
        raise Broken("nothing of a damaged block is shown", reply, f"{leak} in {reading.text!r}")
    if not reading.calls and not reading.broken:
        raise Broken("a damaged block is a call or broken", reply, f"text {reading.text!r}")


def shown(rng: Random) -> None:
    """A call that is marked as an example, a quotation, a thought or refused is never run."""
    reply = Maker(rng).quoted()
    if calls := calls_in(read(reply, rng.choice(FINISH))):
        raise Broken("what is shown is not run", reply, f"runs {calls}")


def corpus_cut(rng: Random) -> None:
    reply = rng.choice(CORPUS)
    for end in cuts_worth_trying(reply, rng, 4):
        cut_reply(reply, end, rng.choice(FINISH))


def made_up(rng: Random) -> None:
    any_text(Maker(rng).reply(), rng.choice(FINISH), rng)
