"""One push to a DingTalk custom robot: address, sign, request, and whether it went out.

Wire facts: open.dingtalk.com "custom robot access"; measured traps: see the comments.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chathands.errors import ToolFailed, ToolOutcomeUnknown
from chathands.toolbox.http import hide_queries

from .answers import Refused, check

if TYPE_CHECKING:
    import httpx

    from chathands.settings import Robot

CONNECT_SHARE = 0.5
"""Part of a push's time that connecting may take. It has to end before the whole does: only then
is it known that nothing was sent."""


def body_of(title: str, text: str) -> bytes:
    """The request body. Nobody is ever @-ed: the text may come from data."""
    message: dict[str, Any] = {
        "msgtype": "markdown",
        "markdown": {"title": title, "text": text},
        "at": {"isAtAll": False},
    }
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def signature(secret: str, timestamp: str) -> str:
    """Base64 of HMAC-SHA256 over `timestamp\\nsecret`, not yet percent-encoded."""
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class RobotClient:
    """Pushes to one robot. `now` is the wall clock in seconds."""

    def __init__(
        self, http: httpx.AsyncClient, robot: Robot, *, now: Callable[[], float] = time.time
    ) -> None:
        hide_queries()  # of every client, also one this tool was only handed
        self._http = http
        self._robot = robot
        self._now = now

    async def push(self, title: str, text: str, *, seconds: float) -> None:
        """Returns when DingTalk said it took the message.

        Raises Refused or ToolFailed when it certainly did not, ToolOutcomeUnknown when the
        request may have arrived. Nothing is ever sent twice here.
        """
        import aiohttp
        import httpx

        limits = httpx.Timeout(seconds, connect=seconds * CONNECT_SHARE)
        try:
            async with asyncio.timeout(seconds):  # httpx limits single reads, not the whole
                response = await self._http.post(
                    self._address(),
                    content=body_of(title, text),
                    headers={
                        "Content-Type": "application/json; charset=utf-8",
                        # A kept connection may be closed by the other side just when it is used
                        # again, and then nobody knows whether the message went out. (The answer
                        # has to agree, else aiohttp pools it; HTTP servers do.)
                        "Connection": "close",
                    },
                    timeout=limits,
                    follow_redirects=False,
                )
        except TimeoutError:
            raise _unknown(f"钉钉没有在 {seconds:.0f} 秒内答复", "total timeout") from None
        except httpx.InvalidURL:
            raise Refused("webhook 不是合法的地址。请管理员重新复制。") from None
        except (httpx.HTTPError, aiohttp.ClientError) as error:
            # The transport lets some of aiohttp's errors through as they are.
            raise _of_transport(error, seconds) from None
        _check(response)

    def _address(self) -> httpx.URL:
        """Computed for every request: a sign is good for an hour, a grown URL for nothing."""
        import httpx

        address = httpx.URL(self._robot.webhook.get_secret_value())
        secret = self._robot.secret.get_secret_value().strip() if self._robot.secret else ""
        if not secret:
            return address
        timestamp = str(int(self._now() * 1000))
        # httpx percent-encodes here; encoding before as well gives "sign not match".
        return address.copy_merge_params(
            {"timestamp": timestamp, "sign": signature(secret, timestamp)}
        )


def _check(response: httpx.Response) -> None:
    status = response.status_code
    try:
        answer = response.json()
    except (ValueError, RecursionError):
        answer = None
    if status >= 500 and not (isinstance(answer, dict) and answer.get("errcode")):
        # A gateway's 502 or 504 says nothing about what stands behind it.
        raise _unknown(f"钉钉的服务器出错（HTTP {status}）", f"HTTP {status}")
    if 300 <= status < 400:
        raise Refused("webhook 跳转到了别的地址。请管理员重新复制 webhook。")
    check(answer, status)


def _unknown(what: str, detail: str) -> ToolOutcomeUnknown:
    return ToolOutcomeUnknown(
        f"{what}，不能确定消息有没有发出。请先到钉钉群里看一眼；不会自动重发。", detail=detail
    )


def _of_transport(error: Exception, seconds: float) -> ToolFailed | ToolOutcomeUnknown:
    """What an exception of the transport means for the message."""
    import httpx

    name = type(error.__cause__ or error).__name__
    if _nothing_was_sent(error):
        return ToolFailed(
            "连不上钉钉，消息没有发出。请稍后再试；一直这样就请管理员检查网络和 webhook 地址。",
            detail=name,
        )
    if isinstance(error, httpx.ReadTimeout):
        return _unknown(f"钉钉没有在 {seconds:.0f} 秒内答复", name)
    return _unknown("和钉钉的连接中途断了", name)


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
