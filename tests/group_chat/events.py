"""Messages as OneBot implementations report them."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

BOT = 10000
GROUP = 700

_ids = count(1)

Segment = dict[str, Any]


def text(value: str) -> Segment:
    return {"type": "text", "data": {"text": value}}


def at(qq: int | str, **extra: Any) -> Segment:
    return {"type": "at", "data": {"qq": str(qq), **extra}}


def reply(message_id: int | str) -> Segment:
    return {"type": "reply", "data": {"id": str(message_id)}}


def image() -> Segment:
    return {"type": "image", "data": {"file": "A.png", "url": "http://127.0.0.1:9/A.png"}}


def group_payload(
    message: Any,
    *,
    user_id: int = 1,
    group_id: int = GROUP,
    role: str | None = "member",
    **override: Any,
) -> dict[str, Any]:
    """A group message event; a field given as `...` is left out."""
    if isinstance(message, str):
        message = [at(BOT), text(f" {message}")]
    sender = {"user_id": user_id, "nickname": f"user{user_id}", "card": ""}
    if role is not None:
        sender["role"] = role
    payload = {
        "time": int(time.time()),
        "self_id": BOT,
        "post_type": "message",
        "message_type": "group",
        "sub_type": "normal",
        "message_id": next(_ids),
        "group_id": group_id,
        "user_id": user_id,
        "message": message,
        "raw_message": "raw",
        "font": 0,
        "sender": sender,
    } | override
    return {key: value for key, value in payload.items() if value is not ...}


def private_payload(message: Any, *, user_id: int = 1, **override: Any) -> dict[str, Any]:
    if isinstance(message, str):
        message = [text(message)]
    return group_payload(
        message,
        user_id=user_id,
        **{"message_type": "private", "sub_type": "friend", "group_id": ..., **override},
    )
