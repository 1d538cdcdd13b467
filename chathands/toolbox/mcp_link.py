"""The connection to one external MCP server: kept by one task, made anew when it breaks.

Everything of the `mcp` package that has to be left where it was entered stays in that task; calls
come from others. A server that is slow, hangs, crashes or lies costs its own tools and no more.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chathands.errors import ChatHandsError, ToolFailed, ToolOutcomeUnknown
from chathands.toolbox.context import ToolContext
from chathands.toolbox.mcp_config import McpServer, working_directory
from chathands.toolbox.mcp_offer import Offer, offer_of, plain
from chathands.toolbox.redact import Redactor
from chathands.toolbox.render import one_line

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as Offered

    from chathands.toolbox.mcp_child import Child

_log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before the next try to connect; twice as long each time."""
STABLE_SECONDS = 60.0
"""A connection that lasted so long was a good one: the next try comes soon again."""
LIST_SECONDS = 10.0
"""For a server that is up to list its tools; one that takes longer hangs."""
MOST_SLOW_LOOKS = 3
"""So often a server that does not answer is given time because another call of it runs: many do one
thing at a time."""
LOOK_SECONDS = 60.0
"""Between two looks at a server over HTTP, which does not say when it goes or changes."""
LOOK_PAUSE = 1.0
"""Between two looks, whatever a server says: one that tells of changes with every list it gives
would else keep the loop busy with new generations for nobody."""
LISTEN_PAUSE = 5.0
"""Before a lost subscription to changes is asked for again."""
MOST_PAGES = 50
"""Of a list of tools; a server may page for ever."""
MOST_LISTED = 1000
"""Tools that are looked at, of which `MOST_TOOLS` are served."""
State = Literal["connecting", "ready", "down", "off"]

_UNSURE = "不能确定有没有完成，请人工核对；不会自动重试。"
_NOT_DONE = frozenset({-32600, -32601, -32602, -32700})
"""JSON-RPC errors that say the request was not carried out: no such method, wrong parameters."""
_CONNECTION = frozenset({-32000, -32001})
"""The `mcp` package's codes for a closed connection and for no answer in time."""


class Lost(Exception):
    """The server is not there any more; `reason` is Chinese, for admins."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Link:
    """Connects to one server, as long as it is open. `on_offer` gets what it serves whenever that
    changes, and None when there is nothing for now."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        *,
        base: Path,
        environment: Mapping[str, str],
        redactor: Redactor,
        on_offer: Callable[[Offer | None], object],
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self.name = name
        self.server = server
        self.state: State = "connecting" if server.enabled else "off"
        self.reason = "" if server.enabled else "tools.toml 里停用了（enabled = false）。"
        """Why it is not ready, for admins; no secret and no path in it."""
        self.offer = Offer()
        """The last one."""
        self.info = ""
        """What the server calls itself."""
        self.settled = asyncio.Event()
        """The first try to connect has ended, well or not."""
        self._base = base
        self._environment = environment
        self._redactor = redactor
        self._secrets = Redactor()
        """Knows what was put in for variables."""
        self._on_offer = on_offer
        self._first_pause = first_pause
        self._listed: tuple[Offered, ...] = ()
        self._client: Client | None = None
        self._child: Child | None = None
        self._calls = 0
        self._look = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect, in the background."""
        if self.server.enabled and self._task is None:
            self._task = asyncio.create_task(self._keep(), name=f"mcp-{self.name}")
        elif not self.server.enabled:
            self.settled.set()

    async def aclose(self) -> None:
        """Leave the server; its process has ended when this returns."""
        self._client = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def change(self, server: McpServer) -> None:
        """Serve its tools as `server` says from now on; the connection stays."""
        self.server = server
        if self._client is not None:
            self._serve(self._listed)

    async def call(self, context: ToolContext, tool: str, arguments: Mapping[str, Any]) -> str:
        """The answer of the tool the server calls `tool`.

        Raises ToolFailed when it was not carried out, ToolOutcomeUnknown when it may have been.
        """
        from mcp import MCPError
        from pydantic import ValidationError

        from chathands.toolbox.mcp_content import answer_of

        client = self._client
        if client is None or (self._child is not None and self._child.ended):
            self._look.set()
            raise ToolFailed(
                f"工具服务 {self.name} 现在没有连上，没有执行。"
            ) from ConnectionError()
        self._calls += 1
        try:
            result = await client.call_tool(tool, dict(arguments))
        except asyncio.CancelledError:
            self._look.set()  # out of time: perhaps it hangs
            raise
        except MCPError as error:
            raise self._fault(error.error.code, error.error.message) from error
        except (ValidationError, RuntimeError, OSError, ValueError) as error:
            self._look.set()
            _log.warning("mcp %s: %s: %s", self.name, tool, self._redact(repr(error))[:500])
            raise ToolOutcomeUnknown(f"工具服务 {self.name} 的回答读不出来，{_UNSURE}") from None
        finally:
            self._calls -= 1
        return self._secrets.secrets(answer_of(result, context, tool))

    def _fault(self, code: int, said: str) -> ToolFailed | ToolOutcomeUnknown:
        said = one_line(plain(said), 300)
        if code in _NOT_DONE:
            return ToolFailed(f"工具服务 {self.name} 没有执行：{said or '请求不对'}")
        self._look.set()
        if code in _CONNECTION:
            return ToolOutcomeUnknown(f"工具服务 {self.name} 在执行中断开了，{_UNSURE}")
        _log.warning("mcp %s: error %d: %s", self.name, code, self._redact(said))
        return ToolOutcomeUnknown(f"工具服务 {self.name} 出错（{code}），{_UNSURE}")

    # --- the task

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        pause = self._first_pause
        await asyncio.to_thread(_load)
        while True:
            began = clock()
            try:
                await self._connected()
                reason = "连接断了。"
            except Exception as error:
                reason = self._why(error)
            self._down(reason)
            if clock() - began > STABLE_SECONDS:
                pause = self._first_pause
            # Not all at once, when a machine with several comes back.
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _connected(self) -> None:
        """Connect, serve, and return or raise when the connection is over."""
        from mcp import Client
        from mcp.types import Implementation, ToolListChangedNotification

        async def noticed(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._look.set()

        async with AsyncExitStack() as closing:
            try:
                async with asyncio.timeout(self.server.connect_timeout):
                    client = await closing.enter_async_context(
                        Client(
                            await self._transport(closing),
                            message_handler=noticed,
                            client_info=Implementation(name="chathands", version="1"),
                            cache=None,
                        )
                    )
                    # Its own schemas would be run over its own answers: patterns without a limit.
                    client.session.validate_tool_result = _taken_as_it_is
                    listed = await self._list(client)
            except TimeoutError:
                raise Lost(f"{self.server.connect_timeout:g} 秒内没有连上。") from None
            closing.callback(setattr, self, "_client", None)
            info = client.server_info
            self.info = one_line(plain(f"{info.name} {info.version}"), 80) if info else ""
            self._client = client
            self._serve(listed)
            listening = asyncio.create_task(self._listen(client))
            closing.push_async_callback(_ended, listening)
            await self._stay(client)

    async def _stay(self, client: Client) -> None:
        """Look again when told to, until the server is lost."""
        clock = asyncio.get_running_loop().time
        slow, next_look = 0, 0.0
        gone = self._child.lost if self._child is not None else asyncio.Event()
        period = None if self._child is not None else LOOK_SECONDS
        while True:
            self._look.clear()
            waiting = [asyncio.ensure_future(each.wait()) for each in (gone, self._look)]
            try:
                await asyncio.wait(waiting, timeout=period, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waiting:
                    each.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_look):
                    await gone.wait()
            if gone.is_set() or (self._child is not None and self._child.ended):
                raise Lost("进程退出了。")
            self._look.clear()
            next_look = clock() + LOOK_PAUSE
            try:
                async with asyncio.timeout(LIST_SECONDS):
                    listed = await self._list(client)
            except TimeoutError:
                slow += 1
                if self._calls and slow < MOST_SLOW_LOOKS:
                    self._look.set()
                    continue  # perhaps it does one thing at a time
                raise Lost("没有反应。") from None
            slow = 0
            if listed != self._listed:
                self._serve(listed)

    async def _list(self, client: Client) -> tuple[Offered, ...]:
        listed: list[Offered] = []
        cursor = None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if not cursor or len(listed) >= MOST_LISTED:
                break
        return tuple(listed[:MOST_LISTED])

    async def _listen(self, client: Client) -> None:
        """Servers of the newer protocol say that their list has changed where they are asked to."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._look.set()
            except ListenNotSupportedError:
                return  # an older one; `message_handler` hears of it
            except (SubscriptionLost, MCPError, RuntimeError):
                _log.debug("mcp %s: subscription lost", self.name)
            await asyncio.sleep(LISTEN_PAUSE)
            self._look.set()

    def _serve(self, listed: Sequence[Offered]) -> None:
        self._listed = tuple(listed)
        self.offer = offer_of(self.name, self.server, self._listed, self.call)
        self.state, self.reason = "ready", ""
        self.settled.set()
        self._on_offer(self.offer)

    def _down(self, reason: str) -> None:
        level = logging.WARNING if reason != self.reason else logging.DEBUG
        _log.log(level, "mcp %s: %s", self.name, reason)
        self.state, self.reason = "down", reason
        self._client = self._child = None
        self._on_offer(None)
        self.settled.set()

    def _why(self, error: BaseException) -> str:
        """One sentence for an admin; the whole of it goes to the log."""
        while isinstance(error, BaseExceptionGroup) and error.exceptions:
            error = error.exceptions[0]
        detail = self._redact(repr(error))[:500]
        _log.info("mcp %s: %s", self.name, detail)
        if isinstance(error, Lost):
            reason = error.reason
        elif isinstance(error, ChatHandsError):
            return error.sentence
        elif isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
            reason = "启动不了：没有这个程序或目录，或者没有权限（command、cwd）。"
        elif self.server.url is not None:
            reason = "连不上，或者对方不是 MCP 服务（地址、网络、headers）。"
        else:
            reason = "没有完成握手就断了，可能不是 MCP 服务。"
        said = self._child.tail[-1] if self._child is not None and self._child.tail else ""
        return f"{reason}最后一行输出：{self._redactor.sentence(said)}" if said else reason

    async def _transport(self, closing: AsyncExitStack) -> Any:
        server = self.server
        env, headers = server.filled(self._environment)
        if server.variables():
            given = [word for text in (*env.values(), *headers.values()) for word in text.split()]
            self._secrets = Redactor([*env.values(), *headers.values(), *given])
        if server.command is not None:
            from chathands.toolbox.mcp_child import Child

            self._child = Child(
                self.name,
                [server.command, *server.args],
                env=env,
                cwd=working_directory(server, self._base),
                redact=self._redact,
            )
            return self._child
        from chathands.toolbox.mcp_http import over_http

        return await over_http(str(server.url), headers, closing)

    def _redact(self, text: str) -> str:
        return self._redactor.text(self._secrets.secrets(text))


def _load() -> None:
    """The package takes most of a second to import, which nobody is to wait for."""
    import chathands.toolbox.mcp_child
    import chathands.toolbox.mcp_http  # noqa: F401


async def _taken_as_it_is(name: str, result: object) -> None:
    return None


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
