"""Opens forwarded chat logs of OneBot v11: every node shape, nested ones, within limits.

Node shapes, from the sources of the implementations:

- NapCat: `{"messages": [event…]}` with the words under `content` or `message`, or
  `{"message": [node…]}` whose data has `message` filled and `content` empty; a nested log stands
  in a `forward` segment's `content`, or as a `node` among the segments.
- LLOneBot, go-cqhttp: `{"messages": [{"sender": …, "content": …}]}`; go-cqhttp's content may be
  CQ text. A nested log is a `forward` segment with an id.
- Lagrange: `{"message": [{"type": "node", "data": {"user_id", "nickname", "content"}}]}`, the
  nickname often empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nonebot.adapters.onebot.v11 import Message

from plugins.group_chat.hearing_text import clean_name
from plugins.group_chat.messages import Attachment, Forwarded
from plugins.group_chat.onebot_v11_calls import Ask
from plugins.group_chat.onebot_v11_events import (
    as_object,
    attachments_of,
    forward_handle,
    parsed,
    text_of,
)

DEPTH = 3
"""Logs inside logs. QQ itself stops at about that; deeper ones are made to tire readers."""
NODES = 100
"""Messages shown of one log, nested ones included; what QQ lets a person select at once."""
CHARACTERS = 3000
"""Of one log, about 2,000 tokens: a fourth of the smallest context we are run with."""
NODE_CHARACTERS = 800
"""Of one message in it, so that one pasted article does not push the others out."""
CALLS = 8
"""Requests for one log: each nested one may cost another."""
FILES = 5
"""Of one log; more are not fetched for one question either."""

UNREADABLE = "（转发的聊天记录打不开，可能已经过期，请把内容复制出来或截图）"
TOO_DEEP = "（里层的聊天记录没有展开：套得太深）"
INNER_UNREADABLE = "（里层的聊天记录打不开）"
EMPTY = "（转发的聊天记录里没有内容）"


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    content: Any


class ForwardReader:
    """Reads one chat log. `ask` is the bot's API, `bot_id` whose own words are marked."""

    def __init__(self, ask: Ask, bot_id: str) -> None:
        self._ask = ask
        self._bot_id = bot_id
        self._lines: list[str] = []
        self._files: list[Attachment] = []
        self._characters = 0
        self._nodes = 0
        self._left_out = 0
        self._calls = 0
        self._asked: set[str] = set()
        self._late = False

    async def read(self, forwarded: Forwarded, seconds: float) -> Forwarded:
        """It, opened: a line for each message, and a last one for what was left out."""
        opened = False
        try:
            async with asyncio.timeout(seconds):
                opened = await self._open(dict(forwarded.handle), 1)
        except TimeoutError:
            self._late = True
        if not self._lines and not self._left_out:
            text = EMPTY if opened else UNREADABLE
            return replace(forwarded, text=text)
        if self._left_out:
            self._lines.append(f"（后面还有 {self._left_out} 条没有展开）")
        if self._late:
            self._lines.append("（没有在时限内读完，后面的没有展开）")
        return replace(forwarded, text="\n".join(self._lines), files=tuple(self._files[:FILES]))

    async def _open(self, handle: dict[str, Any], depth: int) -> bool:
        """False when there was nothing to be had."""
        content = handle.get("content")
        if not isinstance(content, list) or not content:
            forward_id = str(handle.get("id") or "")
            if not forward_id or forward_id in self._asked or self._calls >= CALLS:
                return False
            self._asked.add(forward_id)
            self._calls += 1
            # go-cqhttp's name for the parameter and the standard's: each takes one of them.
            answer = await self._ask("get_forward_msg", id=forward_id, message_id=forward_id)
            content = answer.get("messages") or answer.get("message")
            if isinstance(content, dict):
                content = [content]
        if not isinstance(content, list):
            return False
        for node in _nodes(content):
            await self._add(node, depth)
        return True

    async def _add(self, node: _Node, depth: int) -> None:
        if self._nodes >= NODES or self._characters >= CHARACTERS:
            self._left_out += 1
            return
        self._nodes += 1
        message, inner = self._split(node.content)
        words = text_of(message, self._bot_id).replace("[合并转发的聊天记录]", "").strip()
        if words or not inner:
            if len(words) > NODE_CHARACTERS:
                words = f"{words[:NODE_CHARACTERS]}…（这条共 {len(words)} 字）"
            words = words.replace("\n", "\n    ")  # or a line could pass for the next speaker
            self._line(f"{node.name}：{words or '（空）'}", depth)
        self._files.extend(attachments_of(message, group_id=None))
        for number, handle in enumerate(inner):
            if self._characters >= CHARACTERS:
                self._left_out += len(inner) - number
                break
            self._line(f"{node.name} 转发的聊天记录：", depth)
            if depth >= DEPTH:
                self._line(TOO_DEEP, depth + 1)
            elif not await self._open(handle, depth + 1):
                self._line(INNER_UNREADABLE, depth + 1)

    def _split(self, content: Any) -> tuple[Message, list[dict[str, Any]]]:
        """What a node says, and the handles of the logs inside it."""
        message = parsed(content)
        inner: list[dict[str, Any]] = []
        plain, nodes = Message(), []
        for segment in message:
            data = as_object(segment.data)
            if segment.type == "node":
                content = data.get("content") or data.get("message")
                if _is_nodes(content):  # NapCat wraps a nested log in a node
                    inner.append({"content": content})
                else:
                    nodes.append({"type": "node", "data": data})
            elif handle := forward_handle(segment.type, data):
                inner.append(handle)
            else:
                plain.append(segment)
        if nodes:
            inner.append({"content": nodes})
        return plain, inner

    def _line(self, text: str, depth: int) -> None:
        indent = "  " * (depth - 1)
        text = "\n".join(indent + line for line in text.splitlines())
        self._characters += len(text)
        self._lines.append(text)


def _is_nodes(content: Any) -> bool:
    return isinstance(content, list) and all(
        as_object(one).get("type") == "node" for one in content
    )


def _nodes(content: list[Any]) -> Iterator[_Node]:
    """Nodes of either shape; what is no object is skipped."""
    for one in content:
        whole = as_object(one)
        inside = as_object(whole.get("data")) if whole.get("type") == "node" else whole
        if not inside:
            continue
        sender = as_object(inside.get("sender"))
        number = str(inside.get("user_id") or inside.get("uin") or sender.get("user_id") or "")
        names = (sender.get("card"), sender.get("nickname"), inside.get("nickname"))
        name = next(
            (shown for given in (*names, inside.get("name")) if (shown := clean_name(given))), ""
        )
        said = inside.get("message") or inside.get("content") or inside.get("raw_message") or ""
        yield _Node(name or number or "某人", said)
