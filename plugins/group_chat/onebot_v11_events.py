"""OneBot v11's messages: events with odd or missing fields made whole, and what they say.

Shapes are those of NapCat, LLOneBot, Lagrange v1 and go-cqhttp.
"""

from __future__ import annotations

import re
from typing import Any

from nonebot.adapters.onebot.v11 import (
    GroupMessageEvent,
    Message,
    MessageEvent,
    MessageSegment,
    PrivateMessageEvent,
)
from nonebot.adapters.onebot.v11.event import Sender
from pydantic import model_validator

_BLANK = " \t\r\n\u3000\u00a0\u200b\u200c\u200d\u2060\ufeff"
_PLACEHOLDERS = {
    "image": "[图片]",
    "mface": "[表情]",
    "face": "[表情]",
    "record": "[语音]",
    "video": "[视频]",
    "forward": "[合并转发的聊天记录]",
    "json": "[卡片消息]",
    "xml": "[卡片消息]",
}


def mended(values: Any) -> Any:
    """The payload with what implementations leave out or type differently put right.

    Without it `font` or `raw_message` missing, or `sender.level` as a number, turns the event into
    a bare one that no message matcher ever sees.
    """
    if not isinstance(values, dict):
        return values
    whole = dict(values)
    whole["time"] = _number(values.get("time"))
    whole["font"] = _number(values.get("font"))
    whole["message_id"] = _number(values.get("message_id"))
    whole["sub_type"] = str(values.get("sub_type") or "normal")
    raw = values.get("raw_message")
    whole["raw_message"] = raw if isinstance(raw, str) else ""
    message = values.get("message", whole["raw_message"])
    if isinstance(message, dict):
        message = [message]
    if isinstance(message, list):
        message = [
            _segment(str(part["type"]), as_object(part.get("data")))
            for part in message
            if isinstance(part, dict) and part.get("type")
        ]
    whole["message"] = message if isinstance(message, str | list) else ""
    sender = as_object(values.get("sender"))
    for name, field in Sender.model_fields.items():
        if (value := sender.get(name)) is None:
            continue
        wants_number = field.annotation == int | None
        sender[name] = _number(value) if wants_number else str(value)
    whole["sender"] = sender
    if (anonymous := values.get("anonymous")) and not _is_anonymous(anonymous):
        whole["anonymous"] = None
        whole["sub_type"] = "anonymous"  # whoever it is, it is nobody we know
    return whole


def _segment(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    if kind == "text":  # the adapter joins neighbouring texts before anybody sees the event
        data["text"] = str(data.get("text") or "")
    return {"type": kind, "data": data}


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def as_object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _is_anonymous(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= {"id", "name", "flag"}


class TolerantGroupMessage(GroupMessageEvent):
    mend = model_validator(mode="before")(mended)


class TolerantPrivateMessage(PrivateMessageEvent):
    mend = model_validator(mode="before")(mended)


def mentions_bot(segment: MessageSegment, bot_id: int) -> bool:
    return segment.type == "at" and str(as_object(segment.data).get("qq", "")) == str(bot_id)


def quote_id_of(event: MessageEvent) -> str | None:
    for segment in event.original_message:
        if segment.type == "reply":
            return str(segment.data.get("id") or "") or None
    return None


def text_of(message: Message, bot_id: int, names: dict[str, str] | None = None) -> str:
    """The words of a message: mentions by name, what is not text by a placeholder."""
    parts: list[str] = []
    for segment in message:
        data = as_object(segment.data)  # a quoted message comes as get_msg gave it, unmended
        if segment.type == "text":
            parts.append(str(data.get("text") or ""))
        elif mentions_bot(segment, bot_id):
            parts.append("\0")
        elif segment.type == "at":
            qq = str(data.get("qq") or "")
            name = str((names or {}).get(qq) or data.get("name") or qq).lstrip("@")
            parts.append("@全体成员" if qq == "all" else f"@{name} ")
        elif segment.type == "file":
            name = data.get("name") or data.get("file_name") or data.get("file") or ""
            parts.append(f"[文件：{name}]")
        elif segment.type != "reply":
            parts.append(_PLACEHOLDERS.get(segment.type, "[不能显示的消息]"))
    text = re.sub(r" ?\0 ?", " ", "".join(parts))
    return text.replace("\0", "").strip(_BLANK)
