"""Feishu's custom robots: text, post and interactive messages, the sign, the limits.

Wire facts: open.feishu.cn "custom bot guide". Cards show bold, italics, links, lists and code, but
neither headings nor tables nor quotes. People are called by open_id only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chathands.errors import ToolFailed

from .answers import AnswerBook
from .dingtalk import encoded
from .draft import (
    MAX_PARTS,
    Call,
    Composed,
    Draft,
    Message,
    longest_title,
    numbered,
    refuse_far_too_long,
    remarks_on,
    title_of,
    too_long,
    with_keyword,
)
from .markdown import Line, adapt, plain
from .reading import as_text, traits_of, untagged
from .splitting import json_size, split

if TYPE_CHECKING:
    import httpx

WHOM = "飞书"

BODY_LIMIT = 20_000
"""Bytes of a request body ("20 KB")."""

SIGN_ROOM = 120
"""Bytes of `timestamp` and `sign` in the body."""

WINDOWS = ((100, 65.0), (5, 1.2))
"""100 a minute and 5 a second."""

BOOK = AnswerBook(WHOM, ("code", "StatusCode"), ("msg", "StatusMessage"), "feishu")
"""Older answers have only the second of the two."""

EVERYBODY = "all"

_LINK = re.compile(r"(?<!!)\[(?P<label>[^\[\]\n]{1,500})\]\((?P<url>https?://[^()\s]{1,2000})\)")


def signature(secret: str, timestamp: str) -> str:
    """Base64 of HMAC-SHA256 with the key `timestamp\\nsecret` over nothing: key and message stand
    the other way round than in DingTalk's. `timestamp` is in seconds."""
    key = f"{timestamp}\n{secret}".encode()
    return base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()


def request(
    webhook: str, secret: str, body: Mapping[str, Any], now: float
) -> tuple[httpx.URL, bytes]:
    """The sign stands in the body. Raises httpx.InvalidURL."""
    import httpx

    if secret:
        timestamp = str(int(now))
        body = {"timestamp": timestamp, "sign": signature(secret, timestamp), **body}
    return httpx.URL(webhook), encoded(body)


def compose(draft: Draft) -> Composed:
    """The kind follows from the content. Raises ToolFailed when there is nothing to send or far too
    much."""
    refuse_far_too_long(json_size(draft.content), BODY_LIMIT)
    if not draft.content.strip():
        raise ToolFailed("正文不能是空的，没有发出。请先写好要推送的内容。")
    if strangers := [call.id for call in draft.calls if not _known(call.id)]:
        raise ToolFailed(
            f"飞书的机器人不能按手机号或名字 @ 人（{'、'.join(strangers)}），没有发出。"
            "请管理员在设置里给它的 members 写上这个人的 open_id（ou_ 开头），或者不 @ 再发。"
        )
    traits = traits_of(draft.content)
    if traits.tables or traits.simple or traits.rich:
        return _composed(draft, *_card_lines(draft.content), _Card())
    if traits.links or plain(draft.title):
        lines = tuple(Line(untagged(line.text)) for line in adapt(draft.content).lines)
        return _composed(draft, lines, 0, _Post())
    return _composed(draft, *as_text(draft.content), _Text())


def _known(identity: str) -> bool:
    return identity == EVERYBODY or identity.startswith(("ou_", "on_"))


class _Kind(ABC):
    @abstractmethod
    def body(self, title: str, lines: Sequence[Line], calls: Sequence[Call]) -> dict[str, Any]: ...

    def title(self, draft: Draft) -> str:
        return untagged(plain(draft.title))


class _Text(_Kind):
    def body(self, title: str, lines: Sequence[Line], calls: Sequence[Call]) -> dict[str, Any]:
        said = [*([title] if title else []), *(line.text for line in lines)]
        if calls:
            said.append(
                " ".join(f'<at user_id="{each.id}">{untagged(each.name)}</at>' for each in calls)
            )
        return {"msg_type": "text", "content": {"text": "\n".join(said)}}


class _Post(_Kind):
    def body(self, title: str, lines: Sequence[Line], calls: Sequence[Call]) -> dict[str, Any]:
        content = [list(_runs(line.text)) for line in lines]
        if calls:
            content.append([{"tag": "at", "user_id": each.id} for each in calls])
        return {
            "msg_type": "post",
            "content": {"post": {"zh_cn": {"title": title, "content": content}}},
        }


class _Card(_Kind):
    def title(self, draft: Draft) -> str:
        return untagged(title_of(draft)) if plain(draft.title) else ""

    def body(self, title: str, lines: Sequence[Line], calls: Sequence[Call]) -> dict[str, Any]:
        said = "\n".join(line.text for line in lines)
        if calls:
            said += "\n" + " ".join(f"<at id={each.id}></at>" for each in calls)
        card: dict[str, Any] = {
            "config": {"wide_screen_mode": True},
            "elements": [{"tag": "markdown", "content": said or title}],
        }
        if title:
            card["header"] = {"title": {"tag": "plain_text", "content": title}}
        return {"msg_type": "interactive", "card": card}


def _runs(text: str) -> Iterator[dict[str, str]]:
    end = 0
    for match in _LINK.finditer(text):
        if before := text[end : match.start()]:
            yield {"tag": "text", "text": before}
        yield {"tag": "a", "text": match["label"], "href": match["url"]}
        end = match.end()
    if text[end:] or not end:
        yield {"tag": "text", "text": text[end:]}


def _card_lines(content: str) -> tuple[tuple[Line, ...], int]:
    adapted = adapt(content)
    lines = []
    for line in adapted.lines:
        text = untagged(line.text)
        if heading := re.match(r"^\s{0,3}#{1,6}\s+(.*)$", text):
            text = f"**{heading[1].replace('**', '').strip()}**"
        elif quote := re.match(r"^\s{0,3}>\s?(.*)$", text):
            text = f"┃ {quote[1]}"
        # A picture needs a key of an upload, which custom robots cannot make.
        lines.append(Line(text.replace("![", "["), line.item))
    return tuple(lines), adapted.tables


def _composed(draft: Draft, lines: Sequence[Line], tables: int, kind: _Kind) -> Composed:
    title = kind.title(draft)
    if lines and title and plain(lines[0].text) == title:
        lines = lines[1:]
    if not lines and not title:
        raise ToolFailed("正文不能是空的，没有发出。请先写好要推送的内容。")
    empty = encoded(kind.body(longest_title(title, draft.keywords), (), draft.calls))
    # In a post each line is a list and each link an object of its own.
    gap = '"}],[{"tag":"text","text":"' if isinstance(kind, _Post) else "\n"
    budget = BODY_LIMIT - SIGN_ROOM - len(empty)
    if isinstance(kind, _Post):
        budget -= 60 * sum(len(_LINK.findall(line.text)) for line in lines)
    parts = split(lines, max(budget, BODY_LIMIT // 4), gap=gap)
    if len(parts) > MAX_PARTS:
        raise too_long(len(parts), BODY_LIMIT)
    messages, keyword = [], ""
    for number, part in enumerate(parts, 1):
        calls = draft.calls if number == 1 else ()

        def made(title: str, part: Any = part, calls: Sequence[Call] = calls) -> Message:
            text = "\n".join([*([title] if title else []), *(line.text for line in part)])
            return Message(title, text, kind.body(title, part, calls))

        message, added = with_keyword(numbered(title, number, len(parts)), draft.keywords, made)
        keyword = draft.keywords[0] if added else keyword
        messages.append(message)
    return Composed(
        tuple(messages),
        remarks_on(whom=WHOM, tables=tables, parts=len(parts), keyword=keyword),
    )
