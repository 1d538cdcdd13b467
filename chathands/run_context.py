"""Which run is going on, for whoever writes a log line about it.

Tasks and threads that a run starts inherit it; other runs and other groups never see it.
"""

from __future__ import annotations

from contextvars import ContextVar

current_run: ContextVar[str] = ContextVar("current_run", default="")
"""The reference number; empty outside of runs."""
