"""The tools directory as an agent serves it: loaded, loaded again, and what did not load."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from chathands.errors import ToolLoadError
from chathands.settings import Settings
from chathands.toolbox import Registry, load_tools

_log = logging.getLogger(__name__)


class LoadedTools:
    """Swaps whole generations of a registry. `on_error` is told of each file that does not load."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        on_error: Callable[[ToolLoadError], object] | None,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._on_error = on_error
        self._loading = asyncio.Lock()
        self.errors: tuple[ToolLoadError, ...] = ()
        """Of the last time."""

    async def reload(self) -> tuple[ToolLoadError, ...]:
        """Load everything again, beside what serves, and swap; gives what did not load."""
        async with self._loading:
            report = await asyncio.to_thread(
                load_tools, self._settings.tools_dir, self._settings, self._registry.current
            )
            self._registry.swap(report.generation)
            self.errors = report.errors
        for error in report.errors:
            _log.warning("%s", error)
            if self._on_error is not None:
                self._on_error(error)
        return report.errors
