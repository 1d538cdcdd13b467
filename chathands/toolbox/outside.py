"""Downloads from addresses that members, models and pages name: never from inside the house.

The address is checked where the connection is made and not where it is written, so that a name
that resolves anew, a redirect and a number in a strange notation all meet the same check.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urljoin, urlsplit

from chathands.errors import ToolDenied, ToolFailed

if TYPE_CHECKING:
    import httpcore

REDIRECTS = 3
"""Hops after the first address; file servers need one."""
PORTS = {"http": 80, "https": 443}
"""Public file servers use these; others belong to somebody's own services."""
LONGEST_URL = 4096
"""QQ's signed addresses have about 600 characters."""

INSIDE = "地址指向内部网络，不能访问。"
BAD_ADDRESS = "不是能访问的网址，只能是 http 或 https。"
UNREACHABLE = "对方服务器连不上，或者没有在时限内回应。"
TOO_BIG = "超过 {mb:g} MB 的上限。"

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_6TO4 = ipaddress.ip_network("2002::/16")


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the open internet, also one wrapped in IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        elif found in _6TO4:
            inner = ipaddress.IPv4Address((int(found) >> 80) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    # `is_global` alone calls multicast global (Python 3.11).
    return found.is_global and not found.is_multicast


def origin_of(url: str) -> str:
    """`scheme://host:port` in lower case, the port always there; empty when it is no address."""
    try:
        parts = _parts(url)
    except ToolDenied:
        return ""
    return _origin(parts)


async def download(url: str, *, limit: int, seconds: float, trusted: Iterable[str] = ()) -> bytes:
    """The body behind `url`, at most `limit` bytes, within `seconds` over all hops.

    `trusted` are origins the settings name: they may lie inside. Raises ToolDenied for an address
    that may not be asked and ToolFailed for the rest, each with a sentence for the person.
    """
    allowed = {origin for one in trusted if (origin := origin_of(one))}
    try:
        async with asyncio.timeout(seconds):
            for _ in range(REDIRECTS + 1):
                body, onwards = await _hop(url, limit, seconds, allowed)
                if onwards is None:
                    return body
                url = urljoin(url, onwards)
    except TimeoutError:
        raise ToolFailed(UNREACHABLE, detail="timeout") from None
    raise ToolFailed("对方服务器一再转向别处。", detail="too many redirects")


async def _hop(url: str, limit: int, seconds: float, allowed: set[str]) -> tuple[bytes, str | None]:
    """(body, None), or (nothing, where it says to go)."""
    import httpcore

    parts = _parts(url)
    open_door = _origin(parts) in allowed
    if not open_door and (parts.port or PORTS[parts.scheme]) != PORTS[parts.scheme]:
        raise ToolDenied("这个端口不是网页服务的端口，不能访问。")
    backend = None if open_door else _checked_backend()
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
    whole = parts._replace(fragment="").geturl()
    try:
        async with (
            httpcore.AsyncConnectionPool(network_backend=backend, max_connections=1) as pool,
            pool.stream(
                "GET",
                whole.encode("ascii"),
                headers=[
                    (b"Host", parts.netloc.encode("ascii")),
                    (b"User-Agent", b"chathands"),
                    (b"Accept", b"*/*"),
                    (b"Accept-Encoding", b"identity"),  # what is counted is what is kept
                ],
                extensions={"timeout": timeouts},
            ) as response,
        ):
            if response.status in (301, 302, 303, 307, 308):
                onwards = _header(response, b"location")
                if not onwards:
                    raise ToolFailed(UNREACHABLE, detail="redirect without a location")
                return b"", onwards.decode("latin-1")
            if response.status != 200:
                raise ToolFailed(
                    f"对方服务器没有给出文件（HTTP {response.status}），链接可能已经过期。"
                )
            return await _body(response, limit), None
    except _Inside as error:
        raise ToolDenied(INSIDE, detail=str(error)) from None
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        raise ToolFailed(UNREACHABLE, detail=repr(error)) from error
    except (ValueError, httpcore.UnsupportedProtocol) as error:
        raise ToolDenied(BAD_ADDRESS, detail=repr(error)) from None


async def _body(response: httpcore.Response, limit: int) -> bytes:
    too_big = ToolFailed(TOO_BIG.format(mb=limit / 2**20))
    announced = _header(response, b"content-length")
    if announced.isdigit() and int(announced) > limit:
        raise too_big
    pieces, size = [], 0
    async for piece in response.aiter_stream():
        size += len(piece)
        if size > limit:
            raise too_big
        pieces.append(piece)
    return b"".join(pieces)


def _header(response: httpcore.Response, wanted: bytes) -> bytes:
    return next((value for name, value in response.headers if name.lower() == wanted), b"")


def _parts(url: str) -> SplitResult:
    """Raises ToolDenied for what is no plain http(s) address."""
    url = url.strip()
    if len(url) > LONGEST_URL or not url.isascii() or any(c <= " " for c in url):
        raise ToolDenied(BAD_ADDRESS)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolDenied(BAD_ADDRESS) from None
    if parts.scheme.lower() not in PORTS or not parts.hostname or "@" in parts.netloc or port == 0:
        raise ToolDenied(BAD_ADDRESS)
    return parts._replace(scheme=parts.scheme.lower())


def _origin(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}:{parts.port or PORTS[parts.scheme]}"


class _Inside(Exception):
    """Not one of httpcore's: its pool must not take it for a connection that failed."""


def _checked_backend() -> httpcore.AsyncNetworkBackend:
    import httpcore

    class Checked(httpcore.AsyncNetworkBackend):
        """Connects to public addresses only, and to the very address that was looked at."""

        _plain: Any = httpcore.AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore.AsyncNetworkStream:
            loop = asyncio.get_running_loop()
            try:
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                raise httpcore.ConnectError(str(error)) from error
            addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
            for address in addresses:  # one bad address is enough: a name may give both kinds
                if not is_public(address):
                    raise _Inside(f"{host} is {address}")
            failure: Exception = httpcore.ConnectError(f"{host} has no address")
            for address in addresses:
                try:
                    return await self._plain.connect_tcp(
                        address, port, timeout, local_address, socket_options
                    )
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    failure = error
            raise failure

        async def connect_unix_socket(
            self,
            path: str,
            timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore.AsyncNetworkStream:
            raise _Inside("a unix socket")

        async def sleep(self, seconds: float) -> None:
            await self._plain.sleep(seconds)

    return Checked()
