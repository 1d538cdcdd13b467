"""Who asks over HTTP, by bearer token: scopes, role, rate.

Without configured tokens, which only a server on loopback may be, every key is accepted and all
are one caller, `local`, with a member's rights. A web page in a browser on the machine is not.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from starlette.requests import Request

from chathands.server.errors import ApiError, too_often
from chathands.settings import ApiToken
from chathands.toolbox.context import Caller, CallerRole

PLATFORM = "http"
LOCAL = "local"
"""The name of callers where no tokens are configured."""

WINDOW_SECONDS = 60.0
"""`rate` of a token is written per minute."""


@dataclass(frozen=True, slots=True)
class Client:
    """A program that was let in."""

    name: str
    role: CallerRole = "member"
    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    may_approve: bool = False
    rate: int | None = None
    """Requests a minute; None: as many as it likes."""
    caller: Caller = field(init=False)

    def __post_init__(self) -> None:
        caller = Caller(self.name, role=self.role, name=self.name, platform=PLATFORM)
        object.__setattr__(self, "caller", caller)

    def allows(self, tool: str) -> bool:
        """Whether the token is for this tool."""
        return not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


class Auth:
    """Lets programs in. `clock` gives seconds that only go forward."""

    def __init__(
        self,
        tokens: Mapping[str, ApiToken] | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = [
            (
                _digest(token.encode("utf-8", "surrogatepass")),
                Client(
                    known.name,
                    known.role,
                    tools=known.tools,
                    models=known.models,
                    may_approve=known.may_approve,
                    rate=known.rate,
                ),
            )
            for token, known in (tokens or {}).items()
        ]
        self._anyone = None if tokens else Client(LOCAL)
        self._clock = clock
        self._recent: dict[str, deque[float]] = {}

    def client(self, request: Request) -> Client:
        """Who asks. Raises ApiError: 401, or 403 for a web page where no tokens are set."""
        if self._anyone is not None:
            _no_web_page(request)
            return self._anyone
        given = _digest(_given(request))
        # Every token is compared, and hashes are, so that the time tells nothing.
        found = [client for known, client in self._clients if hmac.compare_digest(given, known)]
        if not found:
            raise ApiError(
                401, "unauthorized",
                "unknown token; send it as Authorization: Bearer TOKEN, or as x-api-key",
                headers={"www-authenticate": "Bearer"},
            )  # fmt: skip
        return found[0]

    def count(self, client: Client) -> None:
        """One more request of this token. Raises ApiError 429, which does not count itself."""
        if client.rate is None:
            return
        now, times = self._clock(), self._recent.setdefault(client.name, deque())
        while times and now - times[0] >= WINDOW_SECONDS:
            times.popleft()
        if len(times) >= client.rate:
            seconds = max(1, math.ceil(WINDOW_SECONDS - (now - times[0])))
            raise too_often(f"more than {client.rate} requests a minute with this token", seconds)
        times.append(now)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _given(request: Request) -> bytes:
    """The bytes of the token; empty, which no token is, when there is none or more than one."""
    given = request.headers.getlist("authorization")
    if not given:
        own = request.headers.getlist("x-api-key")  # where Anthropic's clients put it
        return own[0].strip().encode("latin-1") if len(own) == 1 else b""
    if len(given) > 1:
        return b""
    scheme, _, token = given[0].strip().partition(" ")
    return token.strip().encode("latin-1") if scheme.lower() == "bearer" else b""


def _no_web_page(request: Request) -> None:
    """A page in a browser on this machine reaches loopback too, directly (which browsers mark with
    the page's origin) or by a name of its own that it lets resolve to 127.0.0.1."""
    origin = request.headers.get("origin")
    hosts = [request.headers.get("host", "")]
    if origin is not None:
        hosts.append(urlsplit(origin).netloc)
    if not all(_is_near(host) for host in hosts) or origin == "null":
        raise ApiError(
            403, "foreign_origin",
            "without tokens only programs on this machine are served, under a name of it",
        )  # fmt: skip


def _is_near(host: str) -> bool:
    """Whether the host of a request is this machine. A name without a dot is nobody's on the
    internet, so that no page can have it."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if "." not in name and ":" not in name:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.endswith(".localhost")
