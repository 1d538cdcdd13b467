"""More tools than the contract has room for: the right one is listed, or found."""

from __future__ import annotations

from itertools import pairwise

from chathands.agent import Corrected, replay
from chathands.emulation.sizes import tokens
from chathands.limits import CONTRACT_SHARE
from tests.agent.kit import READ, block, grows, system_text, world
from tests.agent.test_traces import last_trace

MANY = "\n".join(
    f'''
@tool(side_effect="none")
async def file_{n:03}(ctx: ToolContext) -> str:
    """归档第 {n} 类单据：登记、核对、装订、入柜，并给出柜号和日期，供以后查找。"""
    return "柜号 {n}"
'''
    for n in range(120)
)
PARROT = '''
@tool(side_effect="none")
async def visit_parrot(
    ctx: ToolContext, nuts: Annotated[int, Field(description="几颗坚果")]
) -> str:
    """喂大厅里的鹦鹉。"""
    did(ctx, f"parrot {nuts}")
    return "喂过了"
'''


async def test_the_tool_a_question_is_about_is_listed(tmp_path):
    replies = [block("visit_parrot", nuts=3), "鹦鹉喂过了。"]
    async with world(tmp_path, replies, MANY, PARROT) as w:
        finished = await w.ask("给鹦鹉喂 3 颗坚果")
    assert finished.text == "鹦鹉喂过了。"
    assert w.effects == ["parrot 3"]
    contract = system_text(w.requests[0])
    assert "### visit_parrot" in contract
    assert "### find_tools" in contract
    assert 10 < contract.count("\n### ") < 100
    listed = contract[: contract.index("## 你的身份和背景")]
    assert tokens(listed) <= CONTRACT_SHARE * w.model.context
    for before, after in pairwise(w.requests):
        assert grows(before, after)


async def test_a_tool_that_is_not_listed_is_found_and_the_run_goes_on(tmp_path):
    replies = [
        block("find_tools", query="鹦鹉"),
        block("visit_parrot", nuts=3),
        block("file_007"),
        "都办好了。",
    ]
    async with world(tmp_path, replies, MANY, PARROT, READ) as w:
        finished = await w.ask("照顾一下我的老朋友")
        trace = await last_trace(w)
    assert finished.text == "都办好了。"
    assert w.effects == ["parrot 3"]
    assert "### visit_parrot" not in system_text(w.requests[0])
    assert "### visit_parrot" in w.requests[1].messages[-1].content
    for before, after in pairwise(w.requests):
        assert grows(before, after)
    assert not [event for event in w.events if isinstance(event, Corrected)]
    assert replay(trace).equal
