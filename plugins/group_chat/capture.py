"""What a captured message is: a decision, a stop, or a question for the agent. No I/O here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chathands.bounded import Bounded
from chathands.settings import GroupSettings
from chathands.toolbox.context import Caller
from plugins.group_chat.command_words import command_in
from plugins.group_chat.messages import Attachment, Forwarded, Incoming, Place
from plugins.group_chat.speech import file_size

APPROVE, DENY = "确认", "取消"
"""The words people are told. They never queue."""

THIS = "请看我引用的这条消息，按里面的内容回答或处理。"
"""A quote and a mention without words mean "this"."""
THESE = "请看我发来的内容，按里面的内容回答或处理。"
"""So does a mention without words beside a file."""
QUOTE_UNREADABLE = "引用的那条消息读取不到，请把内容直接发给我。"

SEEN_KEPT = 4096
"""Mentions that are remembered; a minute of sixty busy groups, and older ones are stale anyway."""

_DECISION = re.compile(
    rf"(?P<word>{APPROVE}|{DENY})\s*(?:[#＃第]?\s*(?P<number>\d{{1,6}})\s*[号条]?)?[\s。.！!~～]*"
)


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
    """Whether the whole message is 停, in one of its spellings."""
    command = command_in(text)
    return command is not None and command.name == "stop"


def question_text(incoming: Incoming) -> str | None:
    """What is asked, with the files that came along; None when there is nothing to go by."""
    quoted = incoming.quoted
    text = incoming.text
    if not text:
        if quoted is not None and (quoted.text or quoted.files or quoted.forwarded):
            text = THIS
        elif incoming.files or incoming.forwarded:
            text = THESE
        else:
            return None
    return "\n".join((text, *_file_lines(incoming.files)))


def why_nothing(incoming: Incoming, greeting: str) -> str:
    """What to answer when there was no question: usually `greeting`."""
    if incoming.quoted is not None and incoming.quoted.text is None:
        return QUOTE_UNREADABLE
    return greeting


def quoted_text(incoming: Incoming) -> str | None:
    """What is not the asker's own words: the quoted message (who said it, and what), and the chat
    logs that came along. All of it is data from outside."""
    quoted = incoming.quoted
    parts: list[str] = []
    if quoted is not None and quoted.text is None:
        parts.append("（引用的消息读取不到）")
    elif quoted is not None:
        who = "机器人" if quoted.by_bot else (quoted.sender or "某位成员")
        if quoted.text:
            parts.append(f"{who}：{quoted.text}")
        parts += _file_lines(quoted.files, "其中的")
        for log in quoted.forwarded:
            parts += _log_lines(log)
    for log in incoming.forwarded:
        parts += ["转发的聊天记录：", *_log_lines(log)]
    return "\n".join(parts) or None


def _log_lines(log: Forwarded) -> list[str]:
    return [*([log.text] if log.text else []), *_file_lines(log.files, "其中的")]


def _file_lines(files: Iterable[Attachment], whose: str = "") -> list[str]:
    """A line for each file: the name tools open it by, or why they cannot."""
    lines = []
    for file in files:
        what = "图片" if file.kind == "image" else "文件"
        said = whose or ("我之前发的" if file.sent_at else "我发的")
        named = f" {file.name}" if file.name else ""
        if file.path is not None:
            size = f"，{file_size(file.size)}" if file.size else ""
            lines.append(f"（{said}{what}：{file.path}{size}）")
        elif file.problem:
            lines.append(f"（{said}{what}{named} 没有取到：{file.problem}）")
        elif file.sent_at:
            lines.append(f"（{said}{what}{named}）")
    return lines


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

    def __init__(self, size: int = SEEN_KEPT) -> None:
        self._ids: Bounded[tuple[str, str], None] = Bounded(size)

    def first_time(self, chat: str, message_id: str) -> bool:
        """Whether that message was not heard before in that chat."""
        if not message_id or message_id == "0":
            return True  # no id, nothing to compare
        key = (chat, message_id)
        if key in self._ids:
            return False
        self._ids[key] = None
        return True
