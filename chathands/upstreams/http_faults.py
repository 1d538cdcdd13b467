"""What a fault of the HTTP client means: the error of our tree, and whether to try again.

The httpx-aiohttp transport maps almost every aiohttp connection error to httpx.ConnectTimeout
(AIOHTTP_EXC_MAP in its transport.py, 0.2.0), a refused connection and a reset included. So the
type underneath, `__cause__`, is what is looked at. No text of these exceptions is passed on: some
hold the whole address.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import NamedTuple

import aiohttp
import httpx

from chathands.errors import (
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbage,
    UpstreamTimeout,
    UpstreamUnreachable,
)

FAULTS = (httpx.HTTPError, aiohttp.ClientError, OSError)
"""What sending and reading may raise besides asyncio's own. TimeoutError is an OSError."""

_TLS = (
    "和模型服务建立不了加密连接，请管理员检查 CHATHANDS__MODEL__BASE_URL "
    "的 http/https 是否写对、证书是否有效。"
)
_NO_HOST = "找不到模型服务的主机名，请管理员检查 CHATHANDS__MODEL__BASE_URL 和 DNS。"
_PROXY = "连不上网络代理，请管理员检查 HTTP_PROXY / HTTPS_PROXY / NO_PROXY 和代理本身。"


class Fault(NamedTuple):
    error: UpstreamError
    repeatable: bool
    """Sending the same again at once has a chance."""


def fault_of(raised: BaseException, where: str, *, started: bool) -> Fault:
    """Read one of FAULTS. `where` is the address for the log; `started`: answer bytes came."""
    cause = raised
    if isinstance(raised, httpx.TransportError) and raised.__cause__ is not None:
        cause = raised.__cause__
    detail = f"{where}: {type(cause).__name__}{_reason(cause)}"
    fresh = not started

    def unreachable(sentence: str | None = None) -> UpstreamUnreachable:
        return UpstreamUnreachable(detail, sentence=sentence, nothing_received=fresh)

    if isinstance(cause, (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch, ssl.SSLError)):
        return Fault(unreachable(_TLS), repeatable=False)
    if isinstance(cause, (aiohttp.ClientConnectorDNSError, socket.gaierror)):
        return Fault(unreachable(_NO_HOST), repeatable=fresh)
    if isinstance(cause, (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)):
        return Fault(unreachable(_PROXY), repeatable=False)
    if isinstance(cause, aiohttp.ClientConnectorError):
        return Fault(unreachable(), repeatable=fresh)
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        # The kernel has repeated its SYN for seconds; once more would only double the wait.
        return Fault(unreachable(), repeatable=False)
    if isinstance(cause, (TimeoutError, httpx.TimeoutException)):
        return Fault(UpstreamTimeout(detail, nothing_received=fresh), repeatable=False)
    if isinstance(cause, (aiohttp.ClientResponseError, httpx.DecodingError)):
        return Fault(UpstreamGarbage(detail, nothing_received=fresh), repeatable=False)
    return Fault(UpstreamFailed(detail, nothing_received=fresh), repeatable=fresh)


def _reason(cause: BaseException) -> str:
    """The system's own words for it, which name no address."""
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        inner: BaseException = cause.certificate_error
    else:
        inner = getattr(cause, "os_error", cause)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f" ({inner.verify_message})"
    if isinstance(inner, ssl.SSLError):
        return f" ({inner.reason})"
    if isinstance(inner, socket.gaierror):
        return f" ({inner.strerror})"
    number = getattr(inner, "errno", None)
    return f" ({os.strerror(number)})" if isinstance(number, int) and number > 0 else ""
