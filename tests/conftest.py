"""For all tests: NoneBot starts bare, never from the developer's .env, and without its lifespan."""

from __future__ import annotations

import os

import hypothesis
import pytest
from nonebug import NONEBOT_INIT_KWARGS, NONEBOT_START_LIFESPAN

# The same examples in every run: a rare find belongs into a long fuzz run, not into somebody's CI.
# And no clock in it: on a busy machine an example takes as long as it takes.
hypothesis.settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("fixed")


# Hundreds of agents that write no tool file need no watching; tests of it ask for it.
os.environ["CHATHANDS__WATCH_TOOLS"] = "false"

NONEBOT = {
    "_env_file": ("tests/no-such.env",),
    "driver": "~fastapi",
    "log_level": "WARNING",
    "superusers": {"9001"},
    "nickname": {"小手"},
}


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NONEBOT_INIT_KWARGS] = NONEBOT
    config.stash[NONEBOT_START_LIFESPAN] = False
