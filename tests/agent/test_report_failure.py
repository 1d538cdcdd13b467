"""A tool that fails again and again: the run ends, and the person is told what did not work."""

from __future__ import annotations

from chathands.agent import Finished
from tests.agent.kit import block, world

LOOK = '''
from typing import Annotated
from pydantic import Field
from chathands import tool
from chathands.errors import ToolFailed


@tool(side_effect="none", target="city")
async def look(city: Annotated[str, Field(description="城市")]) -> str:
    """查询。"""
    raise ToolFailed("气象站没有回应。")
'''


async def test_the_person_is_told_whatever_the_model_writes(tmp_path):
    replies = [
        *(block("look", city=city) for city in ("杭州", "北京", "上海", "广州")),
        "都查好了。",
    ]
    async with world(tmp_path, replies, LOOK) as w:
        finished = await w.ask("查一查杭州、北京、上海、广州的天气")
        assert isinstance(finished, Finished)
        assert "look（上海）没有成功：气象站没有回应。" in finished.text
        assert finished.text.count("没有成功") == 1
