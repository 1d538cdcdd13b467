"""What a captured message is: a decision, a stop, or a question for the agent. No I/O here."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from chathands.settings import GroupSettings
from chathands.toolbox.context import Caller
from plugins.group_chat.messages import Incoming, Place

APPROVE, DENY, STOP = "确认", "取消", "停"
"""The words people are told. They never queue."""

THIS = "请看我引用的这条消息，按里面的内容回答或处理。"
"""A quote and a mention without words mean "this"."""

_DECISION = re.compile(
    rf"(?P<word>{APPROVE}|{DENY})\s*(?:[#＃第]?\s*(?P<number>\d{{1,6}})\s*[号条]?)?[\s。.！!~～]*"
)
_STOP = re.compile(rf"(?:{STOP}|{STOP}止|{STOP}下|{STOP}一下)[\s。.！!~～]*")


@dataclass(frozen=True, slots=True)
class Decision:
    """A yes or a no to a waiting approval; `number` when one was named."""

    approve: bool
    number: int | None = None


def decision_in(text: str) -> Decision | None:
    """The decision a whole message is; a question that merely begins with 确认 is none."""
    found = _DECISION.fullmatch(text.strip())
    if found is None:
        return None
    number = found["number"]
    return Decision(found["word"] == APPROVE, int(number) if number else None)


def is_stop(text: str) -> bool:
    return _STOP.fullmatch(text.strip()) is not None


def question_text(incoming: Incoming) -> str | None:
    """What is asked; None when nothing was said and nothing quoted."""
    if incoming.text:
        return incoming.text
    if incoming.quoted is not None and incoming.quoted.text:
        return THIS
    return None


def quoted_text(incoming: Incoming) -> str | None:
    """The quoted message as the agent gets it: who said it, and what."""
    quoted = incoming.quoted
    if quoted is None:
        return None
    if quoted.text is None:
        return "（引用的消息读取不到）"
    who = "机器人" if quoted.by_bot else (quoted.sender or "某位成员")
    return f"{who}：{quoted.text}" if quoted.text else None


def conversation_id(incoming: Incoming, settings: GroupSettings) -> str:
    """Whose conversation it is: the person's own in this place, or the group's by setting."""
    if settings.session == "group" and incoming.place.group_id is not None:
        place = incoming.place
        return f"{place.platform}:{place.bot_id}:{place.group_id}:*"
    return incoming.caller.conversation_id


def meta_of(incoming: Incoming) -> dict[str, Any]:
    """What a suspended run must keep to answer later, also after a restart. JSON-safe."""
    place = incoming.place
    return {
        "platform": place.platform,
        "bot_id": place.bot_id,
        "group_id": place.group_id,
        "user_id": place.user_id,
        "message_id": incoming.message_id,
    }


def origin_of(meta: Any) -> tuple[Place, str | None] | None:
    """Place and message id from `meta_of`; None when it is not ours (a run from the terminal)."""
    try:
        place = Place(meta["platform"], meta["bot_id"], meta["group_id"], meta["user_id"])
        return place, meta["message_id"] or None
    except (KeyError, TypeError):
        return None


def place_of(caller: Caller) -> Place | None:
    """Where that person asked; None when it was not through a bot (the terminal)."""
    if not caller.bot_id:
        return None
    return Place(caller.platform, caller.bot_id, caller.group_id, caller.user_id)


class Seen:
    """Messages already heard: some implementations report one twice after a reconnect."""

    def __init__(self, size: int = 4096) -> None:
        self._ids: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._size = size

    def first_time(self, bot_id: str, message_id: str) -> bool:
        if not message_id or message_id == "0":
            return True  # no id, nothing to compare
        key = (bot_id, message_id)
        if key in self._ids:
            return False
        self._ids[key] = None
        if len(self._ids) > self._size:
            self._ids.popitem(last=False)
        return True
