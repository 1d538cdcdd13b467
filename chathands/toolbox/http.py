"""The HTTP client tools share, for addresses named in settings (robots, weather, search).

Addresses that come from models, members or pages do not go through it: it asks nobody whether an
address is inside the house.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 10.0
"""For tools that set none of their own."""

CONNECTIONS = 64
"""At once, over all tools."""

_HOOK = re.compile(r"/hook/.+")

_OWN = ("127.0.0.1", "localhost", "[::1]")
"""Hosts a proxy of the environment cannot reach for us."""


class SharedHttp:
    """`client()` makes it at the first call: the transport takes 0.2 s to import, TLS roots as
    long again. Close with `aclose()`; a call after that makes a new one."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    def client(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = _new_client()
        return self._client

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def hide_queries() -> None:
    """Keep the queries of addresses, and the ends of webhooks, out of httpx's log, whatever its
    level.

    It logs every request's whole address at INFO, and the token of a robot or the key of a
    weather service is part of that; Feishu's robots have theirs in the path.
    """
    logger = logging.getLogger("httpx")
    if not any(isinstance(each, _WithoutQueries) for each in logger.filters):
        logger.addFilter(_WithoutQueries())


class _WithoutQueries(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        import httpx

        if isinstance(record.args, tuple):
            record.args = tuple(
                arg.copy_with(query=None, path=_HOOK.sub("/hook/***", arg.path))
                if isinstance(arg, httpx.URL)
                else arg
                for arg in record.args
            )
        return True


def _new_client() -> httpx.AsyncClient:
    import httpx
    from httpx_aiohttp import HttpxAiohttpClient

    hide_queries()
    return HttpxAiohttpClient(
        headers={"User-Agent": "chathands", "Accept": "application/json"},
        timeout=TIMEOUT_SECONDS,
        limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=15),
        # A redirect may lead anywhere; no service named in the settings needs one.
        follow_redirects=False,
        mounts={f"all://{host}": None for host in _OWN},
    )
