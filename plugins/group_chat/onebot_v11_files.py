"""Fetches the bytes of pictures and files that OneBot v11 implementations report.

Where they are, from the sources of the implementations: pictures have a `url` everywhere. Files:
go-cqhttp and Lagrange give a `url`; NapCat gives ids for `get_group_file_url`,
`get_private_file_url` and `get_file`; LLOneBot answers those with a path of its own machine unless
it is told to put base64 in.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from chathands.errors import ToolDenied, ToolError, ToolFailed
from chathands.toolbox.descend import NotBelow, open_below
from chathands.toolbox.outside import download
from plugins.group_chat.messages import Attachment, Place
from plugins.group_chat.onebot_v11_calls import Ask
from plugins.group_chat.onebot_v11_events import as_object

INLINE_BYTES = 8 * 2**20
"""Largest file asked for inside an answer. uvicorn closes a connection that brings a frame of more
than 16 MiB, and base64 is a third longer than the file."""

NOT_FOUND = "QQ 那边没有给出可以下载的地址"
PATH_ONLY = (
    "QQ 那边只给出了它自己机器上的路径，请管理员在那边打开 base64，"
    "或者设置 CHATHANDS__GROUP__FILE_DIRS"
)


class FileFetcher:
    """`origins` may lie inside; from `directories` files are read that are named by path."""

    def __init__(self, origins: Sequence[str], directories: Sequence[Path]) -> None:
        self._origins = tuple(origins)
        self._directories = tuple(directories)

    async def fetch(
        self, ask: Ask, place: Place, file: Attachment, *, limit: int, seconds: float
    ) -> bytes:
        """The bytes. Raises ToolError: of what was tried, the failure that says most."""
        until = asyncio.get_running_loop().time() + seconds
        failures: list[ToolError] = []
        async for where in self._places(ask, place, file):
            left = until - asyncio.get_running_loop().time()
            try:
                content = await self._take(where, limit, max(0.1, left))
            except ToolError as error:
                failures.append(error)
                continue
            if content:
                return content
            failures.append(ToolFailed("文件是空的"))
        if not failures:
            raise ToolFailed(NOT_FOUND)
        raise next((one for one in failures if isinstance(one, ToolFailed)), failures[0])

    async def _places(self, ask: Ask, place: Place, file: Attachment) -> AsyncIterator[str]:
        """Where it may be, cheapest first: as base64, at an address, under a path."""
        paths: list[str] = []
        given = as_object(file.handle)
        for where in _named(given, paths):
            yield where
        async for answer in self._answers(ask, place, file, given):
            if isinstance(inline := answer.get("base64"), str) and inline:
                yield inline if inline.startswith("base64://") else f"base64://{inline}"
            for where in _named(answer, paths):
                yield where
        for path in dict.fromkeys(paths):
            yield f"file://{path}"

    async def _answers(
        self, ask: Ask, place: Place, file: Attachment, given: dict[str, Any]
    ) -> AsyncIterator[dict[str, Any]]:
        file_id = str(given.get("file_id") or "")
        small = (file.size or 0) <= INLINE_BYTES
        if file.kind == "image":
            if small and (name := given.get("file")):
                yield await ask("get_image", file=name)
            return
        if not file_id:
            return
        group_id = given.get("group_id") or place.group_id
        if group_id is not None:
            about = {"busid": given["busid"]} if given.get("busid") else {}
            yield await ask("get_group_file_url", group_id=int(group_id), file_id=file_id, **about)
        else:
            more = {"file_hash": given["file_hash"]} if given.get("file_hash") else {}
            yield await ask(
                "get_private_file_url", user_id=int(place.user_id), file_id=file_id, **more
            )
        if small:
            yield await ask("get_file", file_id=file_id, file=file_id)

    async def _take(self, where: str, limit: int, seconds: float) -> bytes:
        if where.startswith("base64://"):
            return _decoded(where, limit)
        if where.startswith("file://"):
            return await asyncio.to_thread(self._read, _local(where), limit)
        return await download(where, limit=limit, seconds=seconds, trusted=self._origins)

    def _read(self, path: str, limit: int) -> bytes:
        """Only below the directories that were named, on the descriptor that was looked at."""
        for directory in self._directories:
            try:
                below = Path(path).resolve().relative_to(directory.resolve())
                descriptor = open_below(directory, below.parts)
            except (ValueError, OSError, NotBelow):
                continue
            with open(descriptor, "rb") as opened:
                content = opened.read(limit + 1)
            if len(content) > limit:
                raise ToolFailed(f"超过 {limit / 2**20:g} MB 的上限")
            return content
        raise ToolDenied(PATH_ONLY)


def _named(about: dict[str, Any], paths: list[str]) -> list[str]:
    """Addresses and base64 in a segment or an answer; what is a path goes to `paths`."""
    found = []
    for key in ("url", "file", "path"):
        where = about.get(key)
        if not isinstance(where, str) or not where:
            continue
        if where.startswith(("http://", "https://", "base64://")):
            found.append(where)
        elif where.startswith("file://"):
            paths.append(_local(where))
        elif where.startswith("/") or where[1:3] in (":\\", ":/") or key == "path":
            paths.append(where)
    return list(dict.fromkeys(found))


def _local(address: str) -> str:
    """The path of a `file://` address, a Windows drive without the slash before it."""
    path = unquote(urlsplit(address).path) if "%" in address else address.removeprefix("file://")
    return path[1:] if path[:1] == "/" and path[2:3] == ":" else path


def _decoded(inline: str, limit: int) -> bytes:
    body = inline.removeprefix("base64://")
    if len(body) * 3 // 4 > limit + 3:
        raise ToolFailed(f"超过 {limit / 2**20:g} MB 的上限")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed("文件内容不完整", detail=repr(error)) from error
