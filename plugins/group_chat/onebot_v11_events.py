"""OneBot v11's messages: events with odd or missing fields made whole, and what they say.

Shapes are those of NapCat, LLOneBot, Lagrange v1 and go-cqhttp.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from nonebot.adapters.onebot.collator import Collator
from nonebot.adapters.onebot.v11 import (
    Adapter,
    Event,
    GroupMessageEvent,
    Message,
    MessageEvent,
    MessageSegment,
    PrivateMessageEvent,
)
from nonebot.adapters.onebot.v11.event import Sender
from nonebot.compat import type_validate_python
from pydantic import ValidationError, model_validator

from plugins.group_chat.hearing_text import BLANK, clean_name, clean_text, one_line
from plugins.group_chat.messages import Attachment, Forwarded

LONGEST_CARD = 80
"""Characters of a card's own summary ("[分享]…")."""
MULTIMSG = "com.tencent.multimsg"
"""The app of a card that is a forwarded chat log (go-cqhttp, Lagrange, older LLOneBot)."""

LEVELS = 64
"""Objects inside objects that are kept of a segment. A forwarded chat log takes six for each one
inside it and is opened three deep; NapCat puts them all in, and at some hundred the adapter's own
copy would raise, and the message be lost."""

_ADAPTERS_OWN = ("to_me", "reply", "original_message")
"""Fields that the adapter works out itself: what a payload says there is not asked for."""

_PLACEHOLDERS = {
    "image": "[图片]",
    "mface": "[表情]",
    "face": "[表情]",
    "record": "[语音]",
    "video": "[视频]",
    "forward": "[合并转发的聊天记录]",
    "node": "[合并转发的聊天记录]",
    "json": "[卡片消息]",
    "xml": "[卡片消息]",
    "share": "[链接]",
    "location": "[位置]",
    "music": "[音乐]",
    "poke": "[戳一戳]",
    "dice": "[骰子]",
    "rps": "[猜拳]",
    "markdown": "[Markdown 消息]",
    "contact": "[名片]",
}


def mended(values: Any) -> Any:
    """The payload with what implementations leave out or type differently put right.

    Without it `font` or `raw_message` missing, or `sender.level` as a number, turns the event into
    a bare one that no message matcher ever sees.
    """
    if not isinstance(values, dict):
        return values
    whole = {key: value for key, value in values.items() if key not in _ADAPTERS_OWN}
    for name in ("time", "font", "message_id", "self_id"):
        whole[name] = as_number(values.get(name))
    whole["sub_type"] = str(values.get("sub_type") or "normal")
    raw = values.get("raw_message")
    whole["raw_message"] = raw if isinstance(raw, str) else ""
    message = values.get("message")
    whole["message"] = plain_message(whole["raw_message"] if message is None else message)
    sender = as_object(values.get("sender"))
    for name, field in Sender.model_fields.items():
        if (value := sender.get(name)) is None:
            continue
        wants_number = field.annotation == int | None
        sender[name] = as_number(value) if wants_number else str(value)
    whole["sender"] = sender
    if not as_number(values.get("user_id")) and sender.get("user_id"):
        whole["user_id"] = sender["user_id"]
    if (anonymous := values.get("anonymous")) and not _is_anonymous(anonymous):
        whole["anonymous"] = None
        whole["sub_type"] = "anonymous"  # whoever it is, it is nobody we know
    return whole


class TolerantModels(Collator[Event]):
    """The adapter's table of event models, which a `sub_type` that is no text would make raise."""

    def get_model(self, data: dict[str, Any]) -> list[type[Event]]:
        if not isinstance(data.get("sub_type") or "", str):
            data = {**data, "sub_type": ""}
        return super().get_model(data)


def install_events() -> None:
    """Make the adapter read odd messages too. Call once, at import."""
    Adapter.event_models.__class__ = TolerantModels
    Adapter.add_custom_model(TolerantGroupMessage, TolerantPrivateMessage)


def plain_message(message: Any) -> str | list[dict[str, Any]]:
    """A message in one of the two shapes the adapter reads: CQ text, or a list of segments."""
    if isinstance(message, dict):
        message = [message]
    if isinstance(message, list):
        return [
            _segment(str(part["type"]), as_object(part.get("data")))
            for part in message
            if isinstance(part, dict) and part.get("type")
        ]
    return message if isinstance(message, str) else ""


def parsed(message: Any) -> Message:
    """A message of any shape an implementation gives; an empty one for junk."""
    try:
        return type_validate_python(Message, plain_message(message))
    except (ValidationError, ValueError, TypeError, KeyError):
        return Message()


def _segment(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    if kind == "text":  # the adapter joins neighbouring texts before anybody sees the event
        data["text"] = str(data.get("text") or "")
    return {"type": kind, "data": _shallow(data, LEVELS)}


def _shallow(value: Any, levels: int) -> Any:
    """It, without what stands deeper than so many levels."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return None
    if isinstance(value, dict):
        return {key: _shallow(one, levels - 1) for key, one in value.items()}
    return [_shallow(one, levels - 1) for one in value]


def as_number(value: Any) -> int:
    """A whole number however it is typed; 0 for what is none, or has no end."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return int(number) if isfinite(number) else 0


def as_object(value: Any) -> dict[str, Any]:
    """A copy of the object; an empty one for what is none."""
    return dict(value) if isinstance(value, dict) else {}


def _is_anonymous(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= {"id", "name", "flag"}


class TolerantGroupMessage(GroupMessageEvent):
    mend = model_validator(mode="before")(mended)


class TolerantPrivateMessage(PrivateMessageEvent):
    mend = model_validator(mode="before")(mended)


def seconds_of(value: Any) -> float | None:
    """A time as wall-clock seconds; some give milliseconds, some nothing."""
    number = as_number(value)
    if number <= 0:
        return None
    return number / 1000 if number > 10**11 else float(number)


# --- what a message says


def mentions_bot(segment: MessageSegment, bot_id: int | str) -> bool:
    qq = as_object(segment.data).get("qq")
    return segment.type == "at" and qq is not None and str(qq).strip() == str(bot_id)


def quote_id_of(event: MessageEvent) -> str | None:
    for segment in event.original_message:
        if segment.type == "reply":
            return str(as_object(segment.data).get("id") or "").strip() or None
    return None


def first_words(message: Message, bot_id: int | str) -> str:
    """The text a message starts with: behind a quote, pictures and the bot's own mention, but not
    behind somebody else's, which turns to that person."""
    for segment in message:
        if segment.type == "text":
            words = str(as_object(segment.data).get("text") or "").strip(BLANK)
            if words:
                return words
        elif segment.type == "at" and not mentions_bot(segment, bot_id):
            return ""
    return ""


def without_answered(message: Message, quoted_sender: str) -> Message:
    """The message without the mention clients put behind a quote by themselves."""
    left, after_quote = Message(), False
    for segment in message:
        is_at = segment.type == "at"
        if after_quote and is_at and str(as_object(segment.data).get("qq")) == quoted_sender:
            after_quote = False
            continue
        after_quote = segment.type == "reply"
        left.append(segment)
    return left


def text_of(message: Message, bot_id: int | str, names: dict[str, str] | None = None) -> str:
    """The words of a message: mentions by name, what is not text by a placeholder."""
    parts: list[str] = []
    for segment in message:
        data = as_object(segment.data)  # a quoted message comes as get_msg gave it, unmended
        if segment.type == "text":
            parts.append(str(data.get("text") or "").replace("\0", ""))
        elif mentions_bot(segment, bot_id):
            parts.append("\0")
        elif segment.type == "at":
            qq = str(data.get("qq") or "").strip()
            told = clean_name(str(data.get("name") or "").lstrip("@"))
            name = (names or {}).get(qq) or told or qq
            parts.append("@全体成员 " if qq == "all" else f"@{name} ")
        elif segment.type == "file":
            parts.append(f"[文件：{_file_name(data) or '没有名字'}]")
        elif segment.type != "reply":
            parts.append(_placeholder(segment.type, data))
    text = re.sub(r" ?\0 ?", " ", "".join(parts))
    return clean_text(text.replace("\0", ""))


def _placeholder(kind: str, data: dict[str, Any]) -> str:
    if kind == "json":
        card = _card(data)
        if card.get("app") == MULTIMSG:
            return _PLACEHOLDERS["forward"]
        prompt = one_line(str(card.get("prompt") or ""), LONGEST_CARD)
        return f"[卡片消息：{prompt}]" if prompt else _PLACEHOLDERS["json"]
    return _PLACEHOLDERS.get(kind, "[不能显示的消息]")


def _card(data: dict[str, Any]) -> dict[str, Any]:
    raw = data.get("data")
    if isinstance(raw, str) and len(raw) < 100_000:
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return {}
    return as_object(raw)


# --- what a message carries


def attachments_of(message: Message, *, group_id: int | str | None) -> tuple[Attachment, ...]:
    """Its pictures and files. Stickers are none: they are how people smile."""
    return tuple(_attachments(message, group_id))


def _attachments(message: Message, group_id: int | str | None) -> Iterator[Attachment]:
    for segment in message:
        data = as_object(segment.data)
        if segment.type == "file":
            yield attachment(data, group_id=group_id)
        elif segment.type == "image":
            kind = str(data.get("sub_type") or data.get("subType") or "0")
            if not data.get("emoji_id") and kind != "1":
                keys = ("url", "file", "file_id", "path")
                handle = {key: data[key] for key in keys if data.get(key)}
                yield Attachment("image", "", _size(data), handle)


def attachment(data: dict[str, Any], *, group_id: int | str | None) -> Attachment:
    """A file from a segment's data or an upload notice's `file`."""
    keys = ("url", "file", "path", "busid", "file_hash")
    handle = {key: data[key] for key in keys if data.get(key)}
    handle["file_id"] = data.get("file_id") or data.get("id") or ""
    if group_id is not None:
        handle["group_id"] = str(group_id)
    return Attachment("file", _file_name(data), _size(data), handle)


def _file_name(data: dict[str, Any]) -> str:
    """`name` in notices and on Lagrange's relatives, `file_name` on Lagrange, `file` elsewhere."""
    for key in ("name", "file_name", "file"):
        name = clean_name(data.get(key), "")
        if name and not name.startswith(("base64:", "http:", "https:", "file:")):
            return _whole_name(str(data[key]))
    return ""


def _whole_name(name: str) -> str:
    """On one line, and with its ending however long it is."""
    name = one_line(re.split(r"[/\\]", name)[-1], 1000)
    return name if len(name) <= 80 else f"{name[:60]}…{name[-15:]}"


def _size(data: dict[str, Any]) -> int | None:
    size = as_number(data.get("file_size") or data.get("size"))
    return size if size > 0 else None


def forwarded_in(message: Message) -> tuple[Forwarded, ...]:
    """The chat logs a message is or holds: `forward` segments, cards of that kind, bare nodes."""
    return tuple(
        Forwarded(handle)
        for segment in message
        if (handle := forward_handle(segment.type, as_object(segment.data)))
    )


def forward_handle(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """What opens a forwarded chat log: its id, or what NapCat has already put in; else empty."""
    if kind == "forward":
        wanted = {"id": data.get("id") or data.get("resid"), "content": data.get("content")}
        return {key: value for key, value in wanted.items() if value} or {"id": ""}
    if kind == "node" and (content := data.get("content") or data.get("message")):
        return {"content": content if isinstance(content, list) else [content]}
    if kind == "json" and (card := _card(data)).get("app") == MULTIMSG:
        detail = as_object(as_object(card.get("meta")).get("detail"))
        return {"id": str(detail.get("resid") or "")}
    return {}
