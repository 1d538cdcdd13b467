"""A tool from an empty file to its use in the running bot, broken, mended and removed again."""

from __future__ import annotations

from tests.black_box.harness import Ring, action

SUPERUSER = 9001
DICE = '''\
from typing import Annotated
from pydantic import Field
from chathands import tool

@tool(side_effect="none")
async def roll_dice(sides: Annotated[int, Field(description="面数", ge=2)] = 6) -> str:
    """掷骰子，用户要随机点数时用。"""
    return f"掷出 {sides} 面骰子的最大值 {sides}"
'''


async def test_a_saved_file_is_a_tool_and_a_broken_one_is_told_to_the_superuser(ring: Ring, fresh):
    assert len(DICE.splitlines()) < 15
    file = ring.bot.directory / "tools" / "dice.py"
    group, member = fresh(), fresh()

    async def roll(word: str, sides: int) -> str:
        """What the tool gave, as the model saw it."""
        ring.brain.plays(word, action("roll_dice", sides=sides), f"{word}好了。")
        question = await ring.ask(group, member, f"@bot {word} {sides} 面的骰子 roll_dice")
        assert await ring.reply(question) == f"{word}好了。"
        return ring.brain.contents(word, 1)

    try:
        file.touch()
        file.write_text(DICE, "utf-8")
        await ring.bot.wait_log("tools new: roll_dice")
        assert "掷出 20 面骰子的最大值 20" in await roll("第一次掷", 20)
        # What the model was told of it stands in the contract.
        assert "roll_dice" in ring.brain.asked["第一次掷"][0][0]["content"]

        heard = len(ring.world.delivered)
        file.write_text(DICE.replace("-> str:", "-> str"), "utf-8")
        told = await ring.sim.wait_delivered(match=r"dice\.py:6", after=heard)
        assert (told.user_id, told.group_id) == (SUPERUSER, None)
        assert str(ring.bot.directory) not in told.text
        assert "掷出 12 面骰子的最大值 12" in await roll("第二次掷", 12)

        file.write_text(DICE.replace("最大值", "最大点数"), "utf-8")
        mended = await ring.sim.wait_delivered(match=r"dice\.py 恢复正常", after=heard)
        assert (mended.user_id, mended.group_id) == (SUPERUSER, None)
        assert "掷出 8 面骰子的最大点数 8" in await roll("第三次掷", 8)
    finally:
        file.unlink()
    await ring.bot.wait_log("tools gone: roll_dice")
    ring.brain.plays("没有了", "没有骰子了。")
    await ring.reply(await ring.ask(group, member, "@bot 没有了"))
    assert "roll_dice" not in ring.brain.asked["没有了"][0][0]["content"]
