"""One request to a robot, and whether the message went out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chathands.errors import ToolFailed, ToolOutcomeUnknown
from chathands.toolbox.http import hide_queries

from .answers import Refused

if TYPE_CHECKING:
    import httpx

CONNECT_SHARE = 0.5
"""Part of a push's time that connecting may take. It has to end before the whole does: only then
is it known that nothing was sent."""

HEADERS = {
    "Content-Type": "application/json; charset=utf-8",
    # A kept connection may be closed by the other side just when it is used again, and then nobody
    # knows whether the message went out. (The answer has to agree, else aiohttp pools it; HTTP
    # servers do.)
    "Connection": "close",
}

LONGEST_ANSWER = 65_536
"""Bytes; theirs have a few hundred, and a web page in their place need not be read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`value` is None when the body was no JSON."""

    status: int
    value: Any


async def post(
    http: httpx.AsyncClient,
    address: httpx.URL | str,
    body: bytes,
    *,
    whom: str,
    seconds: float,
    headers: Mapping[str, str] = HEADERS,
) -> Answer:
    """The answer of `whom` (a platform's name, for sentences).

    Raises Refused or ToolFailed when the message certainly did not go out, ToolOutcomeUnknown when
    the request may have arrived. Nothing is ever sent twice here.
    """
    import aiohttp
    import httpx

    hide_queries()  # of every client, also one this tool was only handed
    limits = httpx.Timeout(seconds, connect=seconds * CONNECT_SHARE)
    try:
        async with asyncio.timeout(seconds):  # httpx limits single reads, not the whole
            async with http.stream(
                "POST",
                address,
                content=body,
                headers=dict(headers),
                timeout=limits,
                follow_redirects=False,
            ) as response:
                answer = await _read(response)
    except TimeoutError:
        raise unknown(f"{whom}没有在 {seconds:.0f} 秒内答复", "total timeout", whom) from None
    except httpx.InvalidURL:
        raise Refused("webhook 不是合法的地址。请管理员重新复制。") from None
    except (httpx.HTTPError, aiohttp.ClientError) as error:
        # The transport lets some of aiohttp's errors through as they are.
        raise _of_transport(error, seconds, whom) from None
    value = answer.value
    if answer.status >= 500 and not _says_no(value):
        # A gateway's 502 or 504 says nothing about what stands behind it.
        raise unknown(f"{whom}的服务器出错（HTTP {answer.status}）", f"HTTP {answer.status}", whom)
    if 300 <= answer.status < 400:
        raise Refused("webhook 跳转到了别的地址。请管理员重新复制 webhook。")
    return answer


async def _read(response: httpx.Response) -> Answer:
    import json

    data = b""
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > LONGEST_ANSWER:
            return Answer(response.status_code, None)
    try:
        return Answer(response.status_code, json.loads(data))
    except (ValueError, RecursionError):
        return Answer(response.status_code, None)


def _says_no(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("errcode") or value.get("code"))


def unknown(what: str, detail: str, whom: str) -> ToolOutcomeUnknown:
    return ToolOutcomeUnknown(
        f"{what}，不能确定消息有没有发出。请先到{whom}群里看一眼；不会自动重发。", detail=detail
    )


def _of_transport(error: Exception, seconds: float, whom: str) -> ToolFailed | ToolOutcomeUnknown:
    """What an exception of the transport means for the message."""
    import httpx

    name = type(error.__cause__ or error).__name__
    if _nothing_was_sent(error):
        return ToolFailed(
            f"连不上{whom}，消息没有发出。请稍后再试；一直这样就请管理员检查网络和 webhook 地址。",
            detail=name,
        )
    if isinstance(error, httpx.ReadTimeout):
        return unknown(f"{whom}没有在 {seconds:.0f} 秒内答复", name, whom)
    return unknown(f"和{whom}的连接中途断了", name, whom)


def _nothing_was_sent(error: Exception) -> bool:
    """Whether the request never left.

    The httpx-aiohttp transport says ConnectTimeout both for a refused connection and for one that
    broke after the request was written (ServerDisconnectedError), so the cause decides.
    """
    import aiohttp
    import httpx

    cause = error if isinstance(error, aiohttp.ClientError) else error.__cause__
    if isinstance(cause, aiohttp.ClientError):
        return isinstance(
            cause,
            aiohttp.ClientConnectorError
            | aiohttp.ConnectionTimeoutError
            | aiohttp.ClientHttpProxyError
            | aiohttp.InvalidURL,
        )
    return isinstance(
        error,
        httpx.ConnectError
        | httpx.ConnectTimeout
        | httpx.PoolTimeout
        | httpx.ProxyError
        | httpx.UnsupportedProtocol,
    )
