"""What an admin sees at start, and what a mistake in .env looks like."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.black_box.harness import KEY, TOKEN, BotProcess, ModelBrain, Ring
from tests.sim.onebot_sim import Sim, World


async def test_the_log_says_where_to_connect_and_what_there_is(ring: Ring, dingtalk):
    log = ring.bot.text
    assert f"ws://127.0.0.1:{ring.bot.port}/onebot/v11/ws" in log
    assert "访问令牌（ONEBOT_ACCESS_TOKEN）：已设置" in log
    assert re.search(r"模型：stand-in，方式 auto → emulated", log)
    assert re.search(r"工具：\d+ 个（.*read_excel_data", log)
    for secret in (TOKEN, KEY, dingtalk.token, "SECring0123456789abcdef"):
        assert secret not in log


async def test_an_admin_reads_the_log_of_the_group_in_the_group(ring: Ring, fresh):
    group, member, admin = fresh(), fresh(), fresh()
    ring.world.group(group).member(admin, "老李", role="admin")
    ring.brain.plays("写进日志的一问", "好。")
    await ring.reply(await ring.ask(group, member, "@bot 写进日志的一问"))
    log = await ring.reply(await ring.ask(group, admin, "@bot 日志 20"))
    assert re.search(r"run [0-9A-Z]{4}-[0-9A-Z]{2}: accepted message", log)
    assert "写进日志的一问" not in log


async def run_once(directory: Path, dotenv: str, **env: str) -> tuple[int, str]:
    bot = BotProcess(directory, env, dotenv=dotenv)
    await bot.start()
    try:
        return await bot.ended(), bot.text
    finally:
        await bot.stop()


MISTAKES = {
    "CHATHANDS__MODEL__BASE_URL=api.example.com\n": "CHATHANDS__MODEL__BASE_URL",
    "CHATHANDS__DINGTALK__ROBOTS={oops\n": "CHATHANDS__DINGTALK",
    "SUPERUSERS=[10001]\n": "SUPERUSERS",
    "HOST=localhost\n": "HOST",
    "LOG_LEVEL=verbose\n": "LOG_LEVEL",
    "DRIVER=~fastapy\n": "DRIVER",
    "DRIVER=~none\n": "DRIVER",
    "ONEBOT_ACCESS_TOKEN：abc\n": "ONEBOT_ACCESS_TOKEN",
}


async def test_a_mistake_in_dotenv_is_one_sentence(tmp_path):
    """All at once: each is a process that ends within a second."""
    ends = await asyncio.gather(
        *(run_once(tmp_path / str(n), dotenv) for n, dotenv in enumerate(MISTAKES))
    )
    for (dotenv, named), (code, log) in zip(MISTAKES.items(), ends, strict=True):
        assert code == 1, dotenv
        last = log.strip().splitlines()[-1]
        assert named in last
        assert re.search(r"[\u4e00-\u9fff]", last)
        assert "Traceback" not in log


async def test_debug_logging_hides_the_secrets_and_odd_dotenv_files_work(tmp_path):
    """With a byte order mark in front and a token that looks like a number, as Windows users have
    them; without a model, which is said at start and to whoever asks."""
    webhook = "https://oapi.dingtalk.com/robot/send?access_token=feedfacecafe0123"
    dotenv = (
        "\ufeffLOG_LEVEL=DEBUG\nHOST=0.0.0.0\nONEBOT_ACCESS_TOKEN=123456789\n"
        "CHATHANDS__LOCAL_MODEL=false\nCHATHANDS__MODEL__API_KEY=sk-super-secret-key\n"
        "sk-super-secret-key\n"
        f'CHATHANDS__DINGTALK__ROBOTS={{"群": {{"webhook": "{webhook}", "secret": "SECabc999"}}}}\n'
    )
    bot = BotProcess(tmp_path / "bot", {}, dotenv=dotenv)
    await bot.start()
    try:
        await bot.wait_log("Uvicorn running")
        assert "Loaded Config" in bot.text
        assert "LOG_LEVEL=DEBUG" in bot.text
        assert ".env 第 6 行看不懂" in bot.text
        for secret in ("123456789", "sk-super-secret-key", "feedfacecafe0123", "SECabc999"):
            assert secret not in bot.text
        assert "CHATHANDS__MODEL__BASE_URL" in await bot.wait_log("模型：没有")
        async with Sim(World(), bot.url, token="123456789") as sim:
            ring = Ring(bot, sim, ModelBrain(), None)  # type: ignore[arg-type]
            question = await ring.ask(700, 1, "@bot 你好")
            answer = await ring.reply(question)
            assert "CHATHANDS__MODEL__BASE_URL" in answer
    finally:
        await bot.stop()


async def test_a_tool_that_does_not_load_is_named_with_file_and_line(tmp_path):
    bot = BotProcess(tmp_path / "bot", {"CHATHANDS__MODEL__BASE_URL": "http://127.0.0.1:9/v1"})
    bot.prepare()
    (tmp_path / "bot" / "tools" / "broken.py").write_text("x = 1\nimport nothing_here\n", "utf-8")
    await bot.start()
    try:
        assert "broken.py:2" in await bot.wait_log("broken.py")
        await bot.wait_log("工具：")
        async with Sim(World(), bot.url) as sim:
            ring = Ring(bot, sim, ModelBrain(), None)  # type: ignore[arg-type]
            question = await ring.ask(700, 1, "@bot 你好")
            assert "连不上模型服务" in await ring.reply(question)
    finally:
        await bot.stop()


async def test_a_second_bot_on_the_same_port_ends_with_a_sentence(ring: Ring, tmp_path):
    code, log = await run_once(tmp_path / "bot", "", PORT=str(ring.bot.port))
    assert code == 1
    assert "端口被占用" in log
    assert "Traceback" not in log
