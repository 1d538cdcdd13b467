"""Puts an agent together from the settings, and takes it apart again in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from chathands.agent.agent import Agent
from chathands.agent.loading import OnLoadError, OnMended
from chathands.agent.toolbox import build_toolbox
from chathands.emulation.outcome import ModelRequest
from chathands.errors import ChatHandsError, ConfigError, LocalModelError, UpstreamError
from chathands.settings import Settings
from chathands.store import Store
from chathands.toolbox.audit import BOT
from chathands.toolbox.delivery import Deliver
from chathands.upstreams.base import Upstream

if TYPE_CHECKING:
    from chathands.upstreams.weights import Report

_log = logging.getLogger(__name__)


@runtime_checkable
class Prefills(Protocol):
    """An upstream that can read the beginning of a request ahead of time."""

    async def prefill(self, request: ModelRequest) -> None: ...


@asynccontextmanager
async def build_agent(
    settings: Settings,
    *,
    upstream: Upstream | None = None,
    on_load_error: OnLoadError | None = None,
    on_mended: OnMended | None = None,
    progress: Report | None = None,
    on_store: Callable[[Store], object] | None = None,
    owner: str = BOT,
    deliver: Deliver | None = None,
    reminds: bool = False,
) -> AsyncIterator[Agent]:
    """An agent with everything it needs; closed in the reverse order.

    `upstream` stands in for the one of the settings and is closed too. `on_load_error` is told
    once of each fault in a tool file, now and whenever it changes, `on_mended` of the file whose
    faults are over. `on_store` gets the store once it is
    open, long before a local model that is being fetched, which `progress` watches. `owner` is the
    kind of program it is for (see toolbox/audit.py). `deliver` brings what tools send to other
    chats of its platform; `reminds`: the caller runs `agent.reminding.Reminding`. Without a usable
    model there is an agent all the same, which says so.
    Raises StoreError, and ConfigError for a tools.toml with mistakes in it: running with a policy
    nobody meant would be worse than not running.
    """
    async with AsyncExitStack() as closing:
        toolbox = await closing.enter_async_context(
            build_toolbox(
                settings,
                owner=owner,
                on_load_error=on_load_error,
                on_mended=on_mended,
                on_store=on_store,
                deliver=deliver,
                reminds=reminds,
            )
        )
        model: Upstream | ChatHandsError = upstream or await _model(settings, progress)
        if not isinstance(model, ChatHandsError):
            closing.push_async_callback(model.aclose)
        agent = Agent(model, toolbox, settings)
        closing.push_async_callback(agent.aclose)
        if isinstance(model, Prefills):
            closing.push_async_callback(_ended, _reading_ahead(model, agent.first_request()))
        yield agent


async def _model(settings: Settings, progress: Report | None) -> Upstream | ChatHandsError:
    from chathands.upstreams.build import build_upstream

    try:
        return await build_upstream(settings, progress=progress)
    except (ConfigError, LocalModelError) as error:
        _log.warning("no model: %s", error)
        return error


def _reading_ahead(model: Prefills, request: ModelRequest) -> asyncio.Task[None]:
    """The model on this machine reads the contract in the background.

    Without it the first question would wait half a minute for that.
    """

    async def read() -> None:
        try:
            await model.prefill(request)
        except UpstreamError as error:
            _log.info("reading ahead failed, the first question takes longer: %s", error)

    return asyncio.create_task(read(), name="chathands-prefill")


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
