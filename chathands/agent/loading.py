"""The tools as an agent serves them: of files and other sources, loaded again, and the faults."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chathands.conversation import ToolSpec
from chathands.errors import ToolLoadError
from chathands.settings import Settings
from chathands.toolbox import Generation, Registry, Tool, load_tools
from chathands.toolbox.imports import Imports
from chathands.toolbox.requirements import Unmet, has_changed

_log = logging.getLogger(__name__)

OnLoadError = Callable[[ToolLoadError], object]
OnMended = Callable[[str], object]
"""Gets the file (or `mcp:…`) that does not fail any more."""
OnRemoved = Callable[[frozenset[str]], object]

REMOVAL_SECONDS = 3.0
"""After so long a tool that left is gone for good: editors and `git checkout` remove a file and
write it again, and what is planned with its tools must outlive that."""


def mended_sentence(file: str) -> str:
    """What admins are told when the faults of a file are over."""
    return f"{file} 恢复正常，已经加载。"


class LoadedTools:
    """Swaps whole generations of a registry; used from the loop's thread only.

    `on_error` is told of each fault once, as long as it lasts; `on_mended` when it is over.
    """

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        on_error: OnLoadError | None = None,
        on_mended: OnMended | None = None,
        *,
        removal_seconds: float = REMOVAL_SECONDS,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._on_error = on_error
        self._on_mended = on_mended
        self._removal_seconds = removal_seconds
        self._on_removed: list[OnRemoved] = []
        self._leaving: set[asyncio.TimerHandle] = set()
        self._imports = Imports(settings.tool_import_seconds)
        self._loading = asyncio.Lock()
        self._files = Generation()
        self._file_errors: tuple[ToolLoadError, ...] = ()
        self._sources: dict[str, tuple[tuple[Tool, ToolSpec], ...]] = {}
        self.errors: tuple[ToolLoadError, ...] = ()
        """Of the last time."""
        self._missing: tuple[Unmet, ...] = ()

    async def reload(self, *, afresh: bool = False) -> tuple[ToolLoadError, ...]:
        """Load every file again, beside what serves, and swap; gives what did not load.

        `afresh`, for somebody who asks: imports that hung are tried again although their files have
        not changed, and a file that was emptied is taken to be meant so.
        """
        async with self._loading:
            if afresh:
                self._imports.forget()
            report = await asyncio.to_thread(
                load_tools,
                self._settings.tools_dir,
                self._settings,
                replace(self._files, number=self._registry.current.number),
                imports=self._imports,
                patient=not afresh,
            )
            self._files = report.generation
            self._file_errors = report.errors
            self._missing = report.missing
            self._swap()
            return self.errors

    def is_due(self) -> bool:
        """Whether something was installed or removed that a tool file declares to need and that
        was not there, or too old. May be called in a thread."""
        return has_changed(self._missing)

    def set_source(self, owner: str, found: Sequence[tuple[Tool, ToolSpec]] | None) -> None:
        """Serve from now on what a source that is no file offers, in place of what it offered.

        `owner` names it, e.g. `mcp:time`. An empty sequence: it has nothing for now, and what is
        planned with its tools stays. None: there is no such source any more. A name that a file or
        an earlier source has stays theirs, which is reported like a file that does not load.
        """
        if found is None:
            self._sources.pop(owner, None)
        else:
            self._sources[owner] = tuple(found)
        self._swap()

    def on_removed(self, callback: OnRemoved) -> None:
        """Have `callback` told the names of tools that left for good, so that what is planned with
        them can go too. A name that another file took over has not left."""
        self._on_removed.append(callback)

    def close(self) -> None:
        """Wait for no import and tell nobody of anything more."""
        self._imports.close()
        for handle in self._leaving:
            handle.cancel()

    def _swap(self) -> None:
        """A new generation of the files and the sources. Files win; no lock is needed, for nothing
        here waits."""
        files, before = self._files, self._registry.current
        tools, specs, owners = dict(files.tools), dict(files.specs), dict(files.owners)
        clashes = []
        for owner, found in self._sources.items():
            for tool, spec in found:
                if tool.name in owners:
                    reason = f"工具名 {tool.name} 已属于 {owners[tool.name]}，这里的没有加载"
                    clashes.append(ToolLoadError(reason, file=owner))
                    continue
                tools[tool.name], specs[tool.name] = tool, spec
                owners[tool.name] = owner
        names = sorted(tools)
        self._registry.swap(
            Generation(
                before.number + 1,
                MappingProxyType({name: tools[name] for name in names}),
                MappingProxyType({name: specs[name] for name in names}),
                MappingProxyType({name: owners[name] for name in names}),
                files.held,
                MappingProxyType({n: o for n, o in files.unconfigured.items() if n not in tools}),
            )
        )
        for what, these in (
            ("new", owners.keys() - before.owners),
            ("gone", before.owners.keys() - owners),
        ):
            if these and before.number:
                _log.info("tools %s: %s", what, ", ".join(sorted(these)))
        self._report((*self._file_errors, *clashes))
        # A source that is only away for now takes nothing along.
        self._left(n for n in before.owners if n not in owners and not self._is_away(before, n))

    def _is_away(self, before: Generation, name: str) -> bool:
        return before.owners[name] in self._sources

    def _report(self, errors: tuple[ToolLoadError, ...]) -> None:
        known, self.errors = self.errors, errors
        told = {str(error) for error in known}
        for error in errors:
            if str(error) not in told:
                # Who listens says it where admins look; said once more here it would be twice.
                _log.log(logging.INFO if self._on_error else logging.WARNING, "%s", error)
                _tell(self._on_error, error)
        failing = {error.file for error in errors}
        for file in dict.fromkeys(error.file for error in known):
            if file not in failing and self._is_there(file):
                _log.info("%s is in order again", file)
                _tell(self._on_mended, file)

    def _is_there(self, file: str) -> bool:
        """Not a module that was removed with its fault."""
        return Path(file).suffix != ".py" or (self._settings.tools_dir / file).exists()

    def _left(self, names: Iterable[str]) -> None:
        left = frozenset(names)
        if not left or not self._on_removed:
            return

        def gone() -> None:
            self._leaving.discard(handle)
            still = left - self._registry.current.owners.keys()
            if still:
                _log.info("tools that left: %s", ", ".join(sorted(still)))
                for callback in self._on_removed:
                    _tell(callback, still)

        handle = asyncio.get_running_loop().call_later(self._removal_seconds, gone)
        self._leaving.add(handle)


def _tell(callback: Callable[[Any], object] | None, news: object) -> None:
    """What a listener does must not keep a new generation from serving."""
    if callback is None:
        return
    try:
        callback(news)
    except Exception:
        _log.exception("a listener to the loading of tools failed")
