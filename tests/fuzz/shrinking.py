"""Makes a finding small: tries to leave out parts for as long as the same law stays broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from tests.fuzz.laws import FINISH, Broken, any_text, cut_reply
from tests.fuzz.turns import Script, run

_TRIES = 3000


def smallest(broken: Broken, *, tries: int = _TRIES) -> Broken:
    """The same law broken by less, where it can be tried again; else the finding as it is."""
    again = _experiment(broken)
    if again is None or again(broken.reply) is None:
        return broken
    left = tries
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in _smaller(broken.reply):
            left -= 1
            found = again(candidate)
            if found is not None:
                broken, progress = found, True
                break
            if left <= 0:
                break
    return broken


def _experiment(broken: Broken) -> Callable[[Any], Broken | None] | None:
    """Tries a case against the law that was broken. Laws about a known meaning are not tried."""
    law = broken.law

    def outcome_of(check: Callable[[], None]) -> Broken | None:
        try:
            check()
        except Broken as found:
            return found if found.law == law else None
        return None

    def text(reply: str) -> Broken | None:
        for finish in dict.fromkeys(FINISH):
            if law.startswith("a cut"):
                checks = [lambda e=e, f=finish: cut_reply(reply, e, f) for e in range(len(reply))]
            else:
                checks = [lambda s=s, f=finish: any_text(reply, f, Random(s)) for s in range(9)]
            for check in checks:
                if found := outcome_of(check):
                    return found
        return None

    def script(case: Script) -> Broken | None:
        return next(
            (f for s in range(4) if (f := outcome_of(lambda s=s: run(case, Random(s))))), None
        )

    if isinstance(broken.reply, Script):
        return script
    return text if isinstance(broken.reply, str) else None


def _smaller(case: Any) -> Iterator[Any]:
    if isinstance(case, str):
        yield from _without(case)
        return
    for conversation in _without(case.conversation):
        yield replace(case, conversation=conversation)
    for at, message in enumerate(case.conversation):
        less = [replace(message, text="嗯")] if message.text not in ("嗯", "") else []
        less += [replace(message, calls=calls) for calls in _without(message.calls)]
        for one in less:
            parts = (*case.conversation[:at], one, *case.conversation[at + 1 :])
            yield replace(case, conversation=parts)
    for replies in _without(case.replies):
        yield replace(case, replies=replies)
    for at, reply in enumerate(case.replies):
        for less in _without(reply):
            yield replace(case, replies=(*case.replies[:at], less, *case.replies[at + 1 :]))
    for key in case.options:
        if key not in ("choice", "commit"):
            yield replace(case, options={k: v for k, v in case.options.items() if k != key})
    if case.tools and len(case.tools) > 1:
        for tools in _without(case.tools):
            if tools:
                yield replace(case, tools=tools)
    if case.withdraw_at < 9:
        yield replace(case, withdraw_at=9)
    if case.finish != "stop":
        yield replace(case, finish="stop")


def _without(whole: Any) -> Iterator[Any]:
    """The sequence without a part: halves first, single entries last."""
    size = len(whole) // 2
    while size:
        for at in range(0, len(whole), size):
            yield whole[:at] + whole[at + size :]
        size //= 2
    if len(whole) == 1:
        yield whole[:0]


def shown(case: Any) -> str:
    """A case as a person can read it."""
    if not isinstance(case, Script):
        return repr(case)
    lines = [
        f"options {case.options} withdraw_at={case.withdraw_at} finish={case.finish!r}",
        "tools   " + (", ".join(f"{t.name}:{t.side_effect}" for t in case.tools or ()) or "-")
        + (" (None)" if case.tools is None else ""),
    ]  # fmt: skip
    for message in case.conversation:
        calls = [(c.id, c.name, dict(c.arguments)) for c in message.calls]
        result = message.result
        about = f" result {result.call_id!r} {result.name} {result.status}" if result else ""
        about += f" calls {calls}" if calls else ""
        lines.append(f"{message.role} [{message.tag}] {message.text!r}{about}")
    lines += [f"reply   {reply!r}" for reply in case.replies]
    return "\n    ".join(lines)
