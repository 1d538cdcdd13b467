"""Everything tools need, put together from the settings; the agent adds a model to it.

`chathands serve` runs tools without any model, so this knows of none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from chathands.agent.loading import LoadedTools, OnLoadError, OnMended
from chathands.agent.suspension import place_of
from chathands.agent.watching import Watcher
from chathands.errors import StoreError, ToolLoadError
from chathands.settings import Settings
from chathands.store import Store, open_store
from chathands.toolbox import (
    Audit,
    Executor,
    Policy,
    PolicyFile,
    Redactor,
    Registry,
    load_policy,
    open_audit,
)
from chathands.toolbox.audit import BOT
from chathands.toolbox.delivery import Deliver
from chathands.toolbox.http import SharedHttp
from chathands.toolbox.mcp_source import McpSources
from chathands.workers.pool import WorkerPool

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools that are loaded, and what runs them. `build_toolbox` makes and closes one."""

    policy: Policy
    policy_file: PolicyFile
    store: Store
    audit: Audit
    workers: WorkerPool
    http: SharedHttp
    registry: Registry
    executor: Executor
    tools: LoadedTools
    foreign: McpSources
    """External MCP servers; they connect in the background."""
    watcher: Watcher
    """Watches the tools directory, where the settings allow it; others may add files to it."""


@asynccontextmanager
async def build_toolbox(
    settings: Settings,
    *,
    owner: str = BOT,
    on_load_error: OnLoadError | None = None,
    on_mended: OnMended | None = None,
    on_store: Callable[[Store], object] | None = None,
    deliver: Deliver | None = None,
    reminds: bool = False,
) -> AsyncIterator[Toolbox]:
    """A toolbox with its tools loaded; closed in the reverse order.

    `owner` is the kind of program it is for (see toolbox/audit.py). `on_load_error` is told once of
    each fault in a tool file, now and whenever it changes; `on_mended` gets the file whose faults
    are over. `on_store` gets the store once it is open. `deliver` brings what tools send to
    other chats of the bot's platform. `reminds`: somebody will say the store's reminders.
    Raises StoreError, and ConfigError for a tools.toml with mistakes in it: running with a policy
    nobody meant would be worse than not running.
    """
    async with AsyncExitStack() as closing:
        policy = load_policy(settings)
        redactor = Redactor.of(settings)
        store = await open_store(
            settings.state_dir,
            trace_days=settings.store.trace_days,
            trace_mb=settings.store.trace_mb,
            memory_days=settings.store.memory_days,
            redact=redactor.text,
        )
        closing.push_async_callback(store.aclose)
        if on_store is not None:
            on_store(store)
        policy = replace(
            policy,
            switched_off=lambda caller, name: store.places.tool_off(place_of(caller), name),
            narrowed=lambda caller, name: store.places.left_to(place_of(caller), name),
        )
        policy_file = PolicyFile(settings, policy)
        audit = await _open_audit(settings, redactor, owner)
        closing.push_async_callback(asyncio.to_thread, audit.close)
        workers = WorkerPool(settings.worker)
        closing.push_async_callback(workers.aclose)
        http = SharedHttp()
        closing.push_async_callback(http.aclose)
        registry = Registry()
        tools = LoadedTools(registry, settings, on_load_error, on_mended)
        closing.callback(tools.close)
        if reminds:
            forgetting = _Forgetting(store)
            closing.push_async_callback(forgetting.aclose)
            tools.on_removed(forgetting)
        watcher = Watcher()
        closing.push_async_callback(watcher.aclose)
        watcher.add(settings.tools_dir, tools.reload, due=tools.is_due)
        watcher.add(policy_file.path, lambda: policy_file.reload(registry.current.known))
        foreign = McpSources(
            tools.set_source,
            base=policy_file.path.parent,
            redactor=redactor,
            on_fault=_faulty_server(on_load_error) if on_load_error is not None else None,
        )
        closing.push_async_callback(foreign.aclose)
        policy_file.follow(lambda rules: foreign.apply(rules.mcp))
        await tools.reload()
        await foreign.apply(policy.rules.mcp)
        if settings.watch_tools:
            watcher.start()
        for complaint in policy.complaints(registry.current.known):
            _log.warning("%s", complaint)
        yield Toolbox(
            policy=policy,
            policy_file=policy_file,
            store=store,
            audit=audit,
            workers=workers,
            http=http,
            registry=registry,
            executor=Executor(
                settings,
                policy,
                audit,
                workers,
                http.client,
                daily=store.tool_use,
                deliver=deliver,
                reminders=store.reminders if reminds else None,
            ),
            tools=tools,
            foreign=foreign,
            watcher=watcher,
        )


def _faulty_server(on_load_error: OnLoadError) -> Callable[[str, str], object]:
    """Admins hear of a table that cannot be used as they do of a file that does not load."""

    def told(name: str, why: str) -> None:
        on_load_error(ToolLoadError(why, file=f"tools.toml [mcp.{name}]"))

    return told


class _Forgetting:
    """Takes the reminders of tools that left for good along."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, names: frozenset[str]) -> None:
        task = asyncio.create_task(self._forget(names))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget(self, names: frozenset[str]) -> None:
        try:
            count = await self._store.reminders.remove_of_tools(names)
        except StoreError:
            _log.exception("reminders of removed tools stay")
            return
        if count:
            _log.warning("%s reminders went with their tool (%s)", count, ", ".join(sorted(names)))

    async def aclose(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks))


async def _open_audit(settings: Settings, redactor: Redactor, owner: str) -> Audit:
    try:
        return await asyncio.to_thread(
            open_audit,
            settings.state_dir,
            redactor,
            owner=owner,
            keep_days=settings.store.audit_days,
        )
    except OSError as error:
        raise StoreError(
            f"the audit trail cannot be opened: {error}",
            sentence="审计日志打不开，请管理员检查磁盘和 CHATHANDS__STATE_DIR 的权限。",
        ) from error
