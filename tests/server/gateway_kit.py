"""A gateway on a real socket with a stand-in model behind it, for the tests of one module."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import uvicorn

from chathands.server import create_app
from chathands.upstreams.openai_chat import OpenAIChat
from tests.standins.model_server import ModelServer, Reply, ReplyLike, Seen

T = TypeVar("T")


def call(tool: str, **parameters: Any) -> str:
    """A call as a plain-chat model writes it."""
    body = json.dumps({"tool": tool, "parameters": parameters}, ensure_ascii=False)
    return f"```json action\n{body}\n```"


class Gate:
    """`url` is the gateway's, `model` the stand-in behind it, which plays what `plays` says."""

    def __init__(self, model: ModelServer, url: str) -> None:
        self.model = model
        self.url = url
        self._replies: list[ReplyLike] = []

    def plays(self, *replies: ReplyLike) -> None:
        """These, one a request, from now on."""
        self._replies = list(replies)
        self.model.requests.clear()
        self.model.asked.clear()
        self.model.hung_up.clear()

    def next(self, _: dict[str, Any]) -> ReplyLike:
        return self._replies.pop(0) if self._replies else Reply(status=500, text="no more replies")

    @property
    def asked(self) -> list[Seen]:
        return self.model.requests


async def in_thread(work: Callable[[], T]) -> T:
    """A synchronous client beside the server in this loop."""
    return await asyncio.to_thread(work)


@asynccontextmanager
async def gate(**options: Any) -> AsyncIterator[Gate]:
    holder: list[Gate] = []
    async with ModelServer(lambda body: holder[0].next(body)) as model:
        upstream = OpenAIChat(model.url, name="plain", temperature=0, max_tokens=256)
        app = create_app(upstream, **options)
        config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))  # it accepts before uvicorn is up
        serving = asyncio.create_task(server.serve([listening]))
        holder.append(Gate(model, f"http://127.0.0.1:{listening.getsockname()[1]}"))
        try:
            yield holder[0]
        finally:
            server.should_exit = True
            await serving
            await upstream.aclose()
            listening.close()
