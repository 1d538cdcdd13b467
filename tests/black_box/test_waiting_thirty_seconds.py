"""The one case with the default deadline; last by name, since it goes on beside all the others."""

from __future__ import annotations

import asyncio
import re


async def test_a_hanging_model_is_answered_for_within_the_default_deadline(
    default_deadline: asyncio.Task[tuple[str, float]],
):
    answer, seconds = await default_deadline
    assert 20 < seconds < 32
    assert re.search(r"[0-9A-Z]{4}-[0-9A-Z]{2}", answer)
