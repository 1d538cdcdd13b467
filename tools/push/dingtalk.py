"""DingTalk's custom robots: text, markdown, link and actionCard messages, the sign, the limits.

Wire facts: open.dingtalk.com "custom robot access"; measured traps: see the comments.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chathands.errors import ToolFailed

from .answers import AnswerBook
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
from .markdown import Line, adapt, joined, plain
from .reading import buttons_of, lone_address, traits_of
from .splitting import json_size, split

if TYPE_CHECKING:
    import httpx

WHOM = "钉钉"

BODY_LIMIT = 20_000
"""Bytes of a request body; one more is errcode 460101."""

WINDOWS = ((20, 65.0),)
"""20 a minute, then throttled for minutes. A little over a minute: what is counted here leaves a
moment later than it is counted."""

BOOK = AnswerBook(WHOM, ("errcode",), ("errmsg",), "dingtalk")

EVERYBODY = "all"


def signature(secret: str, timestamp: str) -> str:
    """Base64 of HMAC-SHA256 over `timestamp\\nsecret`, not yet percent-encoded."""
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def request(
    webhook: str, secret: str, body: Mapping[str, Any], now: float
) -> tuple[httpx.URL, bytes]:
    """Computed for every request: a sign is good for an hour, a grown URL for nothing. `now` is the
    wall clock in seconds. Raises httpx.InvalidURL."""
    import httpx

    address = httpx.URL(webhook)
    if secret:
        timestamp = str(int(now * 1000))
        # httpx percent-encodes here; encoding before as well gives "sign not match".
        address = address.copy_merge_params(
            {"timestamp": timestamp, "sign": signature(secret, timestamp)}
        )
    return address, encoded(body)


def encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def body_of(title: str, text: str, calls: Sequence[Call] = ()) -> bytes:
    """The request body of a markdown message."""
    return encoded(_markdown(title, text, calls))


def compose(draft: Draft) -> Composed:
    """The kind follows from the content. Raises ToolFailed when there is nothing to send or far too
    much."""
    refuse_far_too_long(json_size(draft.content), BODY_LIMIT)
    if not draft.calls:  # link and actionCard cannot call anybody
        made = _link(draft) or _card(draft)
        if made is not None:
            return made
    if not plain(draft.title) and traits_of(draft.content).plain:
        made = _text(draft)
        if made is not None:
            return made
    return markdown(title_of(draft), draft.content, draft.keywords, draft.calls)


def markdown(
    title: str, content: str, keywords: Sequence[str] = (), calls: Sequence[Call] = ()
) -> Composed:
    """Raises ToolFailed when there is nothing to send or far too much."""
    refuse_far_too_long(json_size(content), BODY_LIMIT)
    title = plain(title)
    adapted = adapt(content)
    lines = list(adapted.lines)
    if lines and plain(lines[0].text) == title:
        lines = lines[1:]  # the title is put above the text anyway
    if not title or not (lines or adapted.lines):
        raise ToolFailed("标题和正文都不能是空的，没有发出。请先写好要推送的内容。")
    if calls:
        lines.insert(0, Line(_called(calls)))
    room = longest_title(title, keywords)
    parts = split(lines, BODY_LIMIT - len(body_of(room, _heading(room), calls)))
    if len(parts) > MAX_PARTS:
        raise too_long(len(parts), BODY_LIMIT)
    messages, keyword = [], ""
    for number, part in enumerate(parts, 1):
        called = calls if number == 1 else ()

        def made(title: str, part: Any = part, called: Sequence[Call] = called) -> Message:
            text = _under(title, part)
            return Message(title, text, _markdown(title, text, called))

        message, added = with_keyword(numbered(title, number, len(parts)), keywords, made)
        keyword = keywords[0] if added else keyword
        messages.append(message)
    remarks = remarks_on(
        whom=WHOM, tables=adapted.tables, parts=len(parts), keyword=keyword, phones=True
    )
    return Composed(tuple(messages), remarks)


def _called(calls: Sequence[Call]) -> str:
    """Only who is named in the text as well is called."""
    return " ".join("@所有人" if call.id == EVERYBODY else f"@{call.id}" for call in calls)


def _at(calls: Sequence[Call]) -> dict[str, Any]:
    """Nobody is @-ed but who was asked for: the text may come from data."""
    at: dict[str, Any] = {"isAtAll": any(call.id == EVERYBODY for call in calls)}
    named = [call.id for call in calls if call.id != EVERYBODY]
    mobiles = [each for each in named if each.isdecimal() and len(each) == 11]
    if mobiles:
        at["atMobiles"] = mobiles
    if users := [each for each in named if each not in mobiles]:
        at["atUserIds"] = users
    return at


def _markdown(title: str, text: str, calls: Sequence[Call]) -> dict[str, Any]:
    return {
        "msgtype": "markdown",
        "markdown": {"title": title, "text": text},
        "at": _at(calls),
    }


def _text(draft: Draft) -> Composed | None:
    lines = list(adapt(draft.content).lines)
    if not lines:
        raise ToolFailed("正文不能是空的，没有发出。请先写好要推送的内容。")
    if draft.calls:
        lines.append(Line(_called(draft.calls)))

    def made(title: str) -> Message:
        text = "\n".join([*([title] if title else []), *(line.text for line in lines)])
        body = {"msgtype": "text", "text": {"content": text}, "at": _at(draft.calls)}
        return Message("", text, body)

    message, added = with_keyword("", draft.keywords, made)
    if len(encoded(message.body)) > BODY_LIMIT:
        return None
    keyword = draft.keywords[0] if added else ""
    return Composed((message,), remarks_on(whom=WHOM, tables=0, parts=1, keyword=keyword))


def _link(draft: Draft) -> Composed | None:
    """Words with one address below them become a card one can tap."""
    words, address = lone_address(draft.content)
    if not address or not traits_of(words).plain or len(words) > 500:
        return None

    def made(title: str) -> Message:
        text = joined(adapt(words).lines).replace("\n\n", "\n")
        words_wanted = [word for word in draft.keywords if word.strip()]
        if words_wanted and not any(word in text for word in words_wanted):
            text = f"{text}（{words_wanted[0]}）"
        link = {"title": title, "text": text, "messageUrl": address, "picUrl": ""}
        return Message(title, f"{text}\n{address}", {"msgtype": "link", "link": link})

    return Composed((made(title_of(draft)),))


def _card(draft: Draft) -> Composed | None:
    """Links that stand alone at the end become buttons."""
    content, buttons = buttons_of(draft.content)
    if not buttons:
        return None
    above = markdown(title_of(draft), content, draft.keywords)
    if len(above.messages) != 1:
        return None
    (whole,) = above.messages
    title, text = whole.title, whole.text
    card: dict[str, Any] = {"title": title, "text": text, "btnOrientation": "0"}
    if len(buttons) == 1:
        card |= {"singleTitle": buttons[0][0], "singleURL": buttons[0][1]}
    else:
        card["btns"] = [{"title": label, "actionURL": url} for label, url in buttons]
    body = {"msgtype": "actionCard", "actionCard": card}
    if len(encoded(body)) > BODY_LIMIT:
        return None
    shown = "\n".join([text, *(f"[{label}]({url})" for label, url in buttons)])
    return Composed((Message(title, shown, body),), above.remarks)


def _heading(title: str) -> str:
    return f"#### {title}"


def _under(title: str, lines: Sequence[Line]) -> str:
    body = joined(lines)
    return f"{_heading(title)}\n\n{body}" if body else _heading(title)
