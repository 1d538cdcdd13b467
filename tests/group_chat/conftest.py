"""The plugin is loaded once, before its test modules import from it."""

from __future__ import annotations

import nonebot
from nonebot.adapters.onebot.v11 import Adapter

from tests.conftest import NONEBOT

nonebot.init(**NONEBOT)
nonebot.get_driver().register_adapter(Adapter)
assert nonebot.load_plugin("plugins.group_chat") is not None
