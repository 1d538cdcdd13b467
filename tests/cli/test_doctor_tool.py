"""`chathands doctor tool`: which of the three reasons it is, said in one line at the end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from chathands.emulation.writing import WRITERS
from chathands.store import open_store
from tests.cli.tools_cli import project, run, run_beside, settings_of
from tests.standins.model_server import ModelServer

QUESTION = "上海仓的胶带还有多少存货"


def concluded(directory: Path, *arguments: str, **more: Any) -> tuple[int, str]:
    """(exit code, the last line)."""
    result = run(directory, "doctor", "tool", *arguments, **more)
    return result.exit_code, result.stdout.rstrip("\n").split("\n")[-1]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return project(tmp_path)


# --- choice

UNCONFIGURED = '''
from chathands import tool

def ready(settings):
    return False

@tool(side_effect="none", enabled_when=ready)
def cost_of() -> str:
    """查一种货物现在的单价是多少元。"""
    return "1"
'''


def test_a_tool_of_another_name_is_named(here):
    code, said = concluded(here, "stok_of", "--no-model")
    assert code == 1
    assert said == "结论：选择。没有叫 stok_of 的工具，名字相近的有：stock_of、stock_file。"


@pytest.mark.parametrize(
    ("file", "source", "said"),
    [
        ("late.py", "def cost_of(:\n", "late.py:1"),
        ("late.py", "import nothing_like_it\n\ndef cost_of(): ...\n", "nothing_like_it"),
        ("_late.py", "def cost_of():\n    return 1\n", "以下划线开头的文件不加载"),
        ("late.py", "def cost_of():\n    return 1\n", "前面没有 @tool"),
        ("late.py", UNCONFIGURED, "late.py 里有它，但还没有配置"),
    ],
    ids=["syntax", "import", "hidden", "undecorated", "unconfigured"],
)
def test_a_tool_that_is_written_and_not_loaded_is_found(here, file, source, said):
    (here / "tools" / file).write_text(source, "utf-8")
    code, line = concluded(here, "cost_of", "--no-model")
    assert code == 1
    assert line.startswith("结论：选择。")
    assert said in line


@pytest.mark.parametrize(
    ("toml", "arguments", "said"),
    [
        ("enabled = false", [], "停用"),
        ('groups = ["5"]', ["--group", "6"], "不在这个群里"),
        ('who = "admin"', [], "没有权限"),
        ('faces = ["http"]', [], "不能从群聊"),
        ("quota = 0", [], "quota 是 0"),
    ],
    ids=["off", "group", "who", "face", "quota"],
)
def test_rules_that_keep_it_away_are_named(here, toml, arguments, said):
    project(here, "", tools_toml=f"[tools.stock_of]\n{toml}\n")
    code, line = concluded(here, "stock_of", "--no-model", *arguments)
    assert code == 1
    assert line.startswith("结论：选择。")
    assert said in line


def test_rules_that_let_this_person_have_it_are_no_reason(here):
    project(here, "", tools_toml='[tools.stock_of]\nwho = "admin"\ngroups = ["5"]\n')
    assert concluded(here, "stock_of", "--no-model", "--as", "admin")[0] == 0
    project(here, "", tools_toml='[tools.stock_of]\nwho = ["10001"]\n')
    assert concluded(here, "stock_of", "--no-model", "--user", "10001")[0] == 0


async def test_what_an_admin_switched_off_by_command_is_found(here):
    async with await open_store(here / "state") as store:
        await store.places.set("qq:77:g5", "tool", "stock_of", "off")
    result = await run_beside(here, "doctor", "tool", "stock_of", "--no-model", "--group", "5")
    assert result.exit_code == 1
    assert "工具 开 stock_of" in result.stdout.split("\n")[-2]
    other = await run_beside(here, "doctor", "tool", "stock_of", "--no-model", "--group", "6")
    assert other.exit_code == 0


async def test_a_tool_that_failed_again_and_again_may_be_left_alone(here):
    call = {"kind": "call", "at": 1.0, "began": 0.5, "call": {"name": "stock_of", "arguments": {}}}
    steps = [call | {"result": {"status": "failed", "content": "坏了"}} for _ in range(5)]
    async with await open_store(here / "state") as store:
        store.traces.record({"ref": "A1", "started": time.time(), "steps": steps})
    result = await run_beside(here, "doctor", "tool", "stock_of", "--no-model")
    assert result.exit_code == 1
    assert "最近 5 次执行都没有成功" in result.stdout.split("\n")[-2]


# --- description


def test_a_question_in_other_words_is_the_description_s_fault(here):
    code, line = concluded(here, "stock_of", "--no-model", "--ask", "帮我写一首关于月亮的诗")
    assert code == 1
    assert line.startswith("结论：说明。")
    assert "几乎没有共同的词" in line
    assert concluded(here, "stock_of", "--no-model", "--ask", QUESTION)[0] == 0


def test_a_question_that_speaks_of_another_tool_names_it(here):
    asked = "向供应商发出一张订货单"
    code, line = concluded(here, "stock_of", "--no-model", "--ask", asked)
    assert code == 1
    assert "更像在说 order" in line


def test_a_tool_that_the_contract_has_no_room_for_is_found(here):
    one = """
@tool(side_effect="none")
def other_{n}(sku: Annotated[str, Field(description="上海仓的胶带还有多少存货的货号")]) -> str:
    \"\"\"上海仓的胶带还有多少存货，按货号查一查，再看看还有多少。第 {n} 种。\"\"\"
    return sku
"""
    source = (here / "tools" / "stock.py").read_text("utf-8")
    source += "".join(one.format(n=n) for n in range(40))
    project(here, source)
    shown = run(
        here, "doctor", "tool", "order", "--no-model", "--ask", QUESTION,
        env={"CHATHANDS__MODEL__CONTEXT": "4096"},
    )  # fmt: skip
    assert shown.exit_code == 1
    assert "没有轮到它" in shown.stdout


def test_without_an_example_it_asks_for_a_question(here):
    code, line = concluded(here, "order", "--no-model")
    assert code == 1
    assert "--ask" in line


# --- model


def block(name: str, **arguments: object) -> str:
    return WRITERS["emulated"].calls([(name, arguments)], "")


@pytest.mark.parametrize(
    ("replies", "code", "said"),
    [
        ([block("stock_of", sku="胶带", area="上海")], 0, "结论：没有问题，模型会调用。"),
        (["上海仓还有三十卷胶带。"] * 5, 1, "结论：模型。它"),
        (["抱歉，作为语言模型我无法查询库存。"] * 5, 1, "结论：模型。它"),
        ([block("stock_of", sku="胶带", days="很多")] * 5, 1, "参数写不对"),
    ],
    ids=["calls", "answers", "refuses", "wrong"],
)
async def test_what_the_model_does_is_seen(here, replies, code, said):
    async with ModelServer(list(replies)) as server:
        env = {"CHATHANDS__MODEL__BASE_URL": server.url, "CHATHANDS__MODEL__NAME": "m"}
        result = await run_beside(here, "doctor", "tool", "stock_of", env=env)
        assert server.requests
    line = result.stdout.rstrip("\n").split("\n")[-1]
    assert (result.exit_code, said in line) == (code, True), result.stdout
    assert not (settings_of(here).state_dir / "orders.txt").exists()


async def test_another_tool_that_the_model_prefers_is_named(here):
    async with ModelServer([block("stock_file", sku="胶带")] * 5) as server:
        env = {"CHATHANDS__MODEL__BASE_URL": server.url, "CHATHANDS__MODEL__NAME": "m"}
        result = await run_beside(here, "doctor", "tool", "stock_of", env=env)
    assert result.exit_code == 1
    assert "调用了 stock_file" in result.stdout.rstrip("\n").split("\n")[-1]


async def test_a_model_that_cannot_be_asked_is_said(here):
    env = {"CHATHANDS__MODEL__BASE_URL": "http://127.0.0.1:9/v1", "CHATHANDS__MODEL__NAME": "m"}
    result = await run_beside(here, "doctor", "tool", "stock_of", env=env)
    assert result.exit_code == 1
    assert "问不到模型" in result.stdout
