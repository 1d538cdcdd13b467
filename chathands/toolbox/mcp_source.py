"""External MCP servers as a source of tools: those of `[mcp.NAME]` in tools.toml, kept up to date.

Nothing waits for them: their tools are there once they are connected, and gone while they are not.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chathands.conversation import ToolSpec
from chathands.env_files import env_files, values_of
from chathands.errors import ConfigError
from chathands.toolbox.mcp_config import WITHIN, McpServer, servers_of
from chathands.toolbox.mcp_link import FIRST_PAUSE, Link, State
from chathands.toolbox.mcp_offer import Offer
from chathands.toolbox.redact import Redactor

if TYPE_CHECKING:
    from chathands.toolbox.tool import Tool

_log = logging.getLogger(__name__)

SetSource = Callable[[str, "Sequence[tuple[Tool, ToolSpec]] | None"], object]
"""`LoadedTools.set_source`."""

NESTED = "这个 ChatHands 自己就是别的 ChatHands 的工具服务，不再连接别的服务。"
NOT_INSTALLED = "没有安装 mcp，请运行 pip install 'chathands[mcp]'，然后重启。"


@dataclass(frozen=True, slots=True)
class Standing:
    """How it stands with one server, for admins. Sentences are Chinese."""

    name: str
    where: str
    """`stdio` or `http`."""
    state: State
    reason: str = ""
    info: str = ""
    tools: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()


class McpSources:
    """Connects to the servers it is told of with `apply`. Close with `aclose`.

    `set_source` takes the tools of one of them; `on_fault` gets (NAME, sentence) for a table that
    cannot be used, once for each change.
    """

    def __init__(
        self,
        set_source: SetSource,
        *,
        base: Path,
        redactor: Redactor,
        environment: Mapping[str, str] | None = None,
        on_fault: Callable[[str, str], object] | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._set_source = set_source
        self._base = base
        self._redactor = redactor
        self._environment = environment
        self._on_fault = on_fault
        self._first_pause = first_pause
        self._links: dict[str, Link] = {}
        self._faults: dict[str, str] = {}
        self._serving: dict[str, tuple[tuple[Tool, ToolSpec], ...]] = {}
        self._applying = asyncio.Lock()
        self._closed = False

    async def apply(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """Be connected to exactly these servers from now on. Waits for those that leave to have
        ended, and for none to be connected."""
        async with self._applying:
            if self._closed:
                return
            servers, faults = servers_of(tables)
            why_not = NESTED if WITHIN in os.environ else "" if _installed() else NOT_INSTALLED
            if why_not:
                faults |= dict.fromkeys(servers, why_not)
                servers = {}
            self._tell(faults)
            leaving = [
                link
                for name, link in self._links.items()
                if name not in servers
                or link.server.without_tools() != servers[name].without_tools()
            ]
            for link in leaving:
                del self._links[link.name]
            await _all_closed(leaving)
            for link in leaving:
                if link.name not in servers:
                    self._drop(link.name)
            for name, server in servers.items():
                link = self._links.get(name)
                if link is None:
                    self._links[name] = self._begin(name, server)
                elif link.server != server:
                    link.change(server)

    async def settled(self, seconds: float) -> None:
        """Wait until each server has been connected to, or has failed to be, at most so long."""
        waiting = [asyncio.ensure_future(link.settled.wait()) for link in self._links.values()]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for each in late:
                each.cancel()

    def standing(self) -> tuple[Standing, ...]:
        """Every server of the file, by name."""
        found = [
            Standing(
                name,
                "http" if link.server.url else "stdio",
                link.state,
                link.reason,
                link.info,
                tuple(tool.name for tool, _ in link.offer.found) if link.state == "ready" else (),
                link.offer.left_out,
                link.offer.warnings,
            )
            for name, link in self._links.items()
        ]
        found += [Standing(name, "", "off", why) for name, why in self._faults.items()]
        return tuple(sorted(found, key=lambda each: each.name))

    async def aclose(self) -> None:
        """Leave all servers; their processes have ended when this returns. Their tools stay in the
        registry, which is about to go too."""
        self._closed = True
        links, self._links = list(self._links.values()), {}
        await _all_closed(links)

    def _begin(self, name: str, server: McpServer) -> Link:
        environment = self._environment
        if environment is None:
            environment = _environment()

        def offered(offer: Offer | None) -> None:
            self._offer(name, offer)

        link = Link(
            name,
            server,
            base=self._base,
            environment=environment,
            redactor=self._redactor,
            on_offer=offered,
            first_pause=self._first_pause,
        )
        link.start()
        return link

    def _offer(self, name: str, offer: Offer | None) -> None:
        if name not in self._links:
            return  # closing
        found = offer.found if offer is not None else ()
        if found or name in self._serving:
            self._serving[name] = found
            self._set_source(f"mcp:{name}", found)
        for tool, why in (*offer.left_out, *offer.warnings) if offer is not None else ():
            _log.warning("mcp %s: %s: %s", name, tool, why)

    def _drop(self, name: str) -> None:
        if self._serving.pop(name, None) is not None:
            self._set_source(f"mcp:{name}", None)

    def _tell(self, faults: dict[str, str]) -> None:
        known, self._faults = self._faults, faults
        for name, why in faults.items():
            if known.get(name) != why:
                if self._on_fault is None:
                    _log.warning("[mcp.%s]: %s", name, why)
                else:
                    self._on_fault(name, why)


async def _all_closed(links: Sequence[Link]) -> None:
    if links:
        await asyncio.gather(*(link.aclose() for link in links))


def _installed() -> bool:
    from importlib.util import find_spec

    return find_spec("mcp") is not None


def _environment() -> dict[str, str]:
    """Variables that the file may name: of the process, and of `.env`."""
    found: dict[str, str] = {}
    try:
        for file in env_files(Path.cwd()):
            found |= {key: value for key, value in values_of(file).items() if value}
    except ConfigError as error:
        _log.warning("%s", error)
    return {**found, **os.environ}
