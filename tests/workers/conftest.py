from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from chathands.settings import WorkerSettings
from chathands.workers.pool import WorkerPool


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(WorkerSettings(memory_mb=512, cpu_seconds=5, wall_seconds=15))
    yield pool
    await pool.aclose()
