"""`chathands chat` as a real process against a stand-in model: what a person sees in a terminal."""

import asyncio
import os
import shutil
import socket
import sys
from pathlib import Path

import httpx
import pytest

from chathands.toolbox import Caller
from chathands.toolbox.audit import open_audit
from chathands.toolbox.redact import Redactor
from tests.standins.dingtalk import DingTalk
from tests.standins.model_server import ModelServer, Reply

ROOT = Path(__file__).parents[2]
RUN = "from chathands.cli import main; main()"
READ = '```json action\n{"tool": "read_excel_data", "parameters": {"file_path": "12月"}}\n```'
PUSH = (
    '```json action\n{"tool": "send_dingtalk_message", '
    '"parameters": {"title": "十二月", "content": "合计见表"}}\n```'
)


@pytest.fixture
def project(tmp_path):
    """A folder as a user has it: tools and sample data, no state yet."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copytree(ROOT / "data" / "shared", tmp_path / "data" / "shared")
    return tmp_path


async def chathands(project: Path, *arguments: str, lines: str = "", **env: str):
    """(exit code, stdout, stderr) of the command, with `lines` on its standard input."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CHATHANDS__")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, *arguments),
        cwd=project,
        env=clean | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "COLUMNS": "200"} | env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(lines.encode())
    return process.returncode, out.decode(), err.decode()


async def test_one_question_is_answered_with_visible_tool_calls(project):
    async with ModelServer([READ, "看过了，都在表里。"]) as model:
        code, out, err = await chathands(project, "chat", "12月的表", "--model-url", model.url)
    assert (code, err) == (0, "")
    assert "read_excel_data" in out
    assert "→ ok" in out
    assert "看过了，都在表里。" in out


async def test_a_piped_yes_approves_and_the_rehearsal_shows_the_push(project):
    async with ModelServer([PUSH, "已经演练了推送。", "不客气。"]) as model:
        lines = "把结果发到钉钉群\n确认\n谢谢\n"
        code, out, _ = await chathands(project, "chat", "--model-url", model.url, lines=lines)
    assert code == 0
    assert "目标：演示群" in out
    assert "原因：" in out[: out.index("已确认")]
    assert out.index("合计见表") < out.index("已确认") < out.index("演练")
    assert "不客气。" in out


async def test_with_no_line_left_the_push_is_denied_and_said_so(project):
    async with ModelServer([PUSH, "没有发送，因为没有确认。"]) as model:
        code, out, _ = await chathands(
            project, "chat", "发到钉钉群", "--model-url", model.url, lines=""
        )
    assert code == 0
    assert "按 取消 处理" in out
    assert "没有发送" in out


async def test_another_question_instead_of_a_yes_denies_and_is_asked_next(project):
    async with ModelServer([PUSH, "没有发送。", "是的。"]) as model:
        lines = "发到钉钉群\n今天是周一吗\n"
        code, out, _ = await chathands(project, "chat", "--model-url", model.url, lines=lines)
    assert code == 0
    assert out.index("按 取消 处理") < out.index("今天是周一吗") < out.index("是的。")


async def test_a_configured_robot_is_really_pushed_to(project):
    async with DingTalk(secret="SECabc") as robot, ModelServer([PUSH, "已推送。"]) as model:
        robots = f'{{"行政群": {{"webhook": "{robot.webhook}", "secret": "SECabc"}}}}'
        code, out, _ = await chathands(
            project,
            *("chat", "发到行政群", "--model-url", model.url),
            lines="确认\n",
            CHATHANDS__DINGTALK__ROBOTS=robots,
        )
        assert code == 0
        assert len(robot.accepted) == 1
    assert "SECabc" not in out
    assert "access_token" not in out


async def test_a_model_that_is_down_is_one_sentence_and_no_traceback(project):
    async with ModelServer([]) as model:
        address = model.url
    code, out, err = await chathands(project, "chat", "在吗", "--model-url", address)
    assert code == 1
    assert "连不上模型服务" in out
    assert "Traceback" not in out + err


async def test_without_any_model_it_says_what_to_set(project):
    env = {"CHATHANDS__LOCAL_MODEL": "false"}
    code, out, err = await chathands(project, "chat", "在吗", **env)
    assert "CHATHANDS__MODEL__BASE_URL" in out + err
    assert "Traceback" not in out + err
    assert code == 1


async def test_a_mistake_in_the_settings_is_one_sentence(project):
    code, out, err = await chathands(project, "chat", "在吗", CHATHANDS__DEADLINE="soon")
    assert code == 2
    assert "CHATHANDS__DEADLINE" in err
    assert "Traceback" not in out + err


async def test_the_last_run_can_be_shown_and_replayed(project):
    async with ModelServer([READ, "看过了。"]) as model:
        await chathands(project, "chat", "12月的表", "--model-url", model.url)
    _, shown, _ = await chathands(project, "trace", "last")
    code, replayed, _ = await chathands(project, "trace", "replay")
    assert "read_excel_data" in shown
    assert shown.rstrip().splitlines()[-1].startswith("判定")
    assert (code, replayed.strip()) == (0, "重放一致")


async def test_tools_are_listed_and_a_broken_file_is_named(project):
    (project / "tools" / "broken.py").write_text("def x(:\n", "utf-8")
    code, out, err = await chathands(project, "tools")
    assert code == 1
    assert "send_dingtalk_message" in out
    assert "broken.py:1" in err


async def test_without_any_trail_the_audit_is_not_called_whole(project):
    code, out, _ = await chathands(project, "audit")
    assert (code, out.strip()) == (0, "还没有审计记录")


async def test_the_audit_is_whole_after_a_push_and_not_after_an_edit(project):
    async with ModelServer([PUSH, "好了。"]) as model:
        await chathands(project, "chat", "发", "--model-url", model.url, lines="确认\n")
    code, out, _ = await chathands(project, "audit")
    assert (code, out.strip()) == (0, "审计记录完整")
    segment = next(p for p in (project / "state" / "audit").rglob("*.jsonl") if p.stat().st_size)
    segment.write_text(segment.read_text("utf-8").replace("合计", "改过"), "utf-8")
    code, _, _ = await chathands(project, "audit")
    assert code == 1


async def test_a_push_that_a_crash_cut_off_is_told_to_whoever_starts_next(project):
    trail = open_audit(project / "state", Redactor())
    await trail.intent(
        Caller("1001", "2001"), "A7F3-09", "send_dingtalk_message", {}, target="销售群"
    )
    trail.close()
    async with ModelServer(["好的。"]) as model:
        _, _, err = await chathands(project, "chat", "你好", "--model-url", model.url)
    assert "send_dingtalk_message（销售群）" in err
    assert "A7F3-09" in err


async def test_a_model_cannot_move_the_cursor(project):
    async with ModelServer(["第一行\x1b[1A\x1b[2K第二行"]) as model:
        _, out, _ = await chathands(project, "chat", "你好", "--model-url", model.url)
    _, shown, _ = await chathands(project, "trace", "last")
    assert "\x1b" not in out + shown
    assert "第二行" in out


async def test_numbers_out_of_range_are_refused_in_one_sentence(project):
    for arguments in (("trace", "list", "9" * 20), ("serve", "--port", "99999")):
        code, _, err = await chathands(project, *arguments)
        assert code == 2
        assert "Traceback" not in err


async def test_a_stopped_gateway_does_not_wait_for_a_model_that_hangs(project):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    async with ModelServer([Reply(hang="head")]) as model:
        arguments = ("serve", "--upstream", model.url, "--port", port)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-u", "-c", RUN, *arguments),
            cwd=project,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        question = {"model": "m", "messages": [{"role": "user", "content": "你好"}]}
        transport = httpx.AsyncHTTPTransport(retries=8)  # it is not listening at once
        async with httpx.AsyncClient(transport=transport, timeout=30) as client:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            asking = asyncio.ensure_future(client.post(url, json=question))
            await model.asked.wait()
            process.terminate()
            async with asyncio.timeout(10):
                await process.wait()
            await asyncio.wait([asking])
            assert asking.exception() is not None or asking.result().status_code >= 500
