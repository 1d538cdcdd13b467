"""The HTTP application of `chathands serve` inside the bot: its agent's tools, store and model."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from nonebot import get_driver
from nonebot.log import logger
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from chathands.settings import Settings, load_settings

if TYPE_CHECKING:
    from chathands.agent import Agent
    from chathands.server.tools_api import ToolsApi
    from chathands.store.responses import Responses
    from chathands.upstreams.router import Router


class HttpFace:
    """Mounted at start; answers 503 until the agent is there, and again when it is closed."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._agent: Agent | None = None
        self._app: ASGIApp | None = None
        self._tools: ToolsApi | None = None
        self._router: Router | None = None
        self._responses: Responses | None = None

    async def mount(self) -> None:
        """A NoneBot startup hook. Does nothing unless it is asked for, and nothing unsafe."""
        settings = load_settings()
        if not settings.api.on_bot_port:
            return
        from fastapi import FastAPI

        driver = get_driver()
        server = getattr(driver, "server_app", None)
        host = driver.config.host
        if not isinstance(server, FastAPI):
            logger.error("HTTP 接口没有开：它要 DRIVER=~fastapi。")
        elif not _is_loopback(str(host)) and not settings.api.tokens:
            logger.error(
                f"HTTP 接口没有开：机器人监听 {host}，别的机器也连得到，要先设置 "
                "CHATHANDS__API__TOKENS（ONEBOT_ACCESS_TOKEN 不能当它用）。"
            )
        else:
            from chathands.open_files import raise_open_files

            raise_open_files()
            self._settings = settings
            # Behind the routes that are there, those of the adapter among them.
            server.mount("", self)
            at = f"http://{host}:{driver.config.port}"
            logger.info(f"HTTP 接口：{at}/v1（网关）、{at}/tools（工具）")
            self._serve()

    async def follow(self, agent: Agent) -> None:
        """The agent is there: serve what it has."""
        self._agent = agent
        self._serve()

    def _serve(self) -> None:
        """Once there are both; which comes first depends on how long the model takes."""
        settings, agent = self._settings, self._agent
        if settings is None or agent is None:
            return
        from chathands.errors import ChatHandsError
        from chathands.server import create_app
        from chathands.server.auth import Auth
        from chathands.server.tools_api import ToolsApi
        from chathands.store.responses import Responses
        from chathands.upstreams.build import router_beside

        auth = Auth(settings.api.tokens)
        self._tools = ToolsApi(agent.toolbox, settings, auth)
        if not isinstance(agent.upstream, ChatHandsError):
            self._router = router_beside(settings, agent.upstream)
        self._responses = Responses.configured(settings)
        self._app = create_app(
            self._router, auth=auth, tools=self._tools, responses=self._responses
        )
        self._tools.start()

    async def close(self) -> None:
        """A NoneBot shutdown hook, which runs before the one that closes the agent."""
        self._app = self._agent = None
        if self._tools is not None:
            await self._tools.aclose()
        if self._router is not None:
            await self._router.aclose()
        if self._responses is not None:
            await self._responses.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            from chathands.server.errors import ApiError, error_response

            starting = ApiError(
                503, "starting", "the bot is starting or stopping", headers={"retry-after": "2"}
            )
            await error_response(Request(scope), starting)(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
