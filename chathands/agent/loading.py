"""The tools as an agent serves them: of files and other sources, loaded again, and the faults."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType

from chathands.conversation import ToolSpec
from chathands.errors import ToolLoadError
from chathands.settings import Settings
from chathands.toolbox import Generation, Registry, Tool, load_tools

_log = logging.getLogger(__name__)

OnLoadError = Callable[[ToolLoadError], object]


class LoadedTools:
    """Swaps whole generations of a registry. `on_error` is told of each file that does not load."""

    def __init__(
        self, registry: Registry, settings: Settings, on_error: OnLoadError | None
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._on_error = on_error
        self._loading = asyncio.Lock()
        self._files = Generation()
        self._file_errors: tuple[ToolLoadError, ...] = ()
        self._sources: dict[str, tuple[tuple[Tool, ToolSpec], ...]] = {}
        self.errors: tuple[ToolLoadError, ...] = ()
        """Of the last time."""

    async def reload(self) -> tuple[ToolLoadError, ...]:
        """Load every file again, beside what serves, and swap; gives what did not load."""
        async with self._loading:
            previous = replace(self._files, number=self._registry.current.number)
            report = await asyncio.to_thread(
                load_tools, self._settings.tools_dir, self._settings, previous
            )
            self._files = report.generation
            self._file_errors = report.errors
        self._swap()
        return self.errors

    def set_source(self, owner: str, found: Sequence[tuple[Tool, ToolSpec]] | None) -> None:
        """Serve from now on what a source that is no file offers, in place of what it offered.

        `owner` names it, e.g. `mcp:time`. An empty sequence: it has nothing for now. None: there is
        no such source any more. A name that a file has, or an earlier source, stays theirs, which
        is reported like a file that does not load.
        """
        if found is None:
            self._sources.pop(owner, None)
        else:
            self._sources[owner] = tuple(found)
        self._swap()

    def _swap(self) -> None:
        """A new generation of the files and the sources. Files win; no lock is needed, for nothing
        here waits."""
        files = self._files
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
                self._registry.current.number + 1,
                MappingProxyType({name: tools[name] for name in names}),
                MappingProxyType({name: specs[name] for name in names}),
                MappingProxyType({name: owners[name] for name in names}),
                self._files.held,
            )
        )
        self.errors = (*self._file_errors, *clashes)
        for error in self.errors:
            _log.warning("%s", error)
            if self._on_error is not None:
                self._on_error(error)
