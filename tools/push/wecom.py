"""WeCom's group robots: text, markdown, markdown_v2, image and file messages, and the limits.

Wire facts: developer.work.weixin.qq.com "group robot". markdown_v2 has tables, code and lists but
can call nobody; clients below 4.1.36 show it as it is written. Only text calls people by mobile
number. Clients show a single line break.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
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
    too_long,
    with_keyword,
)
from .markdown import Line, plain
from .reading import as_text, kept, traits_of, untagged
from .splitting import byte_size, split

if TYPE_CHECKING:
    import httpx

WHOM = "企业微信"

TEXT_LIMIT = 2048
MARKDOWN_LIMIT = 4096
"""Bytes of the content alone; one more is errcode 40058."""

IMAGE_LIMIT = 2_000_000
FILE_SMALLEST, FILE_LIMIT = 6, 20_000_000
"""Bytes: a file has more than 5."""

WINDOWS = ((20, 65.0),)
"""20 a minute; why a little over: see dingtalk.py."""

BOOK = AnswerBook(WHOM, ("errcode",), ("errmsg",), "wecom")

EVERYBODY = "all"


def request(
    webhook: str, secret: str, body: Mapping[str, Any], now: float
) -> tuple[httpx.URL, bytes]:
    """There is no sign: who has the key may push. Raises httpx.InvalidURL."""
    import httpx

    return httpx.URL(webhook), encoded(body)


def compose(draft: Draft) -> Composed:
    """The kind follows from the content. Raises ToolFailed when there is nothing to send or far too
    much."""
    refuse_far_too_long(byte_size(draft.content), MARKDOWN_LIMIT)
    if not draft.content.strip():
        raise ToolFailed("正文不能是空的，没有发出。请先写好要推送的内容。")
    traits = traits_of(draft.content)
    if draft.calls or traits.plain:
        lines, tables = as_text(draft.content)
        return _parts(draft, list(lines), "text", TEXT_LIMIT, tables)
    kind = "markdown_v2" if traits.tables or traits.rich else "markdown"
    return _parts(draft, list(kept(draft.content.strip("\n"))), kind, MARKDOWN_LIMIT, 0)


def _parts(draft: Draft, lines: list[Line], kind: str, limit: int, tables: int) -> Composed:
    title = untagged(plain(draft.title))
    if lines and title and plain(lines[0].text) == title:
        lines = lines[1:]
    if not (lines or title):
        raise ToolFailed("正文不能是空的，没有发出。请先写好要推送的内容。")
    head = _head(longest_title(title, draft.keywords), kind)
    parts = split(lines, limit - byte_size(head), size=byte_size, gap="\n")
    if len(parts) > MAX_PARTS:
        raise too_long(len(parts), limit)
    messages, keyword = [], ""
    for number, part in enumerate(parts, 1):
        calls = draft.calls if number == 1 else ()

        def made(title: str, part: Any = part, calls: Sequence[Call] = calls) -> Message:
            text = _head(title, kind) + "\n".join(line.text for line in part)
            content: dict[str, Any] = {"content": text}
            if calls:
                content |= _mentioned(calls)
            return Message(title, text, {"msgtype": kind, kind: content})

        message, added = with_keyword(numbered(title, number, len(parts)), draft.keywords, made)
        keyword = draft.keywords[0] if added else keyword
        messages.append(message)
    return Composed(
        tuple(messages),
        remarks_on(whom=WHOM, tables=tables, parts=len(parts), keyword=keyword),
    )


def _head(title: str, kind: str) -> str:
    if not title:
        return ""
    return f"{title}\n" if kind == "text" else f"### {title}\n"


def _mentioned(calls: Sequence[Call]) -> dict[str, list[str]]:
    ids = ["@all" if call.id == EVERYBODY else call.id for call in calls]
    mobiles = [each for each in ids if each.isdecimal() and len(each) == 11]
    others = [each for each in ids if each not in mobiles]
    found = {"mentioned_mobile_list": mobiles, "mentioned_list": others}
    return {key: value for key, value in found.items() if value}


# -- files


def is_picture(data: bytes) -> bool:
    """PNG and JPG go as a picture, up to 2 MB."""
    return len(data) <= IMAGE_LIMIT and data.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"))


def image(name: str, data: bytes) -> Message:
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    body = {
        "msgtype": "image",
        "image": {"base64": base64.b64encode(data).decode("ascii"), "md5": digest},
    }
    return Message(name, f"［图片］{name}", body)


def file(name: str, media_id: str) -> Message:
    return Message(name, f"［文件］{name}", {"msgtype": "file", "file": {"media_id": media_id}})


def upload_address(webhook: str) -> httpx.URL:
    """Where a file is put before it is sent. Raises httpx.InvalidURL."""
    import httpx

    address = httpx.URL(webhook)
    path = address.path.rpartition("/")[0] + "/upload_media"
    return address.copy_with(path=path).copy_merge_params({"type": "file"})


def upload_body(name: str, data: bytes) -> tuple[bytes, str]:
    """(body, its content type). The field is `media`; the name goes as UTF-8, as their own client
    sends it."""
    import secrets

    boundary = f"chathands{secrets.token_hex(12)}"
    safe = name.replace('"', "_").replace("\r", " ").replace("\n", " ").replace("\\", "_")
    head = (
        f"--{boundary}\r\nContent-Disposition: form-data; "
        f'name="media"; filename="{safe}"; filelength={len(data)}\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode("utf-8", "replace")
    tail = f"\r\n--{boundary}--\r\n".encode()
    return head + data + tail, f"multipart/form-data; boundary={boundary}"
