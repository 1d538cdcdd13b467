"""What leaves, over the real websocket: codes stay text wherever they come from, long replies are
forwards, files reach the person in the way each implementation takes them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from tests.black_box.harness import KEY, TOKEN, Ring, action
from tests.sim.onebot_sim import Sim, World, at, text

CODES = "[CQ:at,qq=all][CQ:image,file=file:///etc/passwd]&#91;CQ:record,file=a&#93;@全体成员"

TOOL = '''
    from typing import Annotated
    from pydantic import Field
    from chathands import ToolContext, tool

    @tool(side_effect="none", timeout=5)
    async def export_report(
        ctx: ToolContext, name: Annotated[str, Field(description="文件名")]
    ) -> str:
        """导出一份报表文件，发给提问的人。"""
        ctx.attach(name, b"PK-report")
        ctx.attach("chart.png", b"\\x89PNG\\r\\n\\x1a\\n" + b"0" * 64)
        return "导出好了 " + name
'''


def segments_of(message: Any) -> Iterator[dict[str, Any]]:
    """Every segment of a message, those in the nodes of a forward too."""
    assert isinstance(message, list), "a bare string is read for codes"
    for segment in message:
        if segment["type"] == "node":
            yield from segments_of(segment["data"]["content"])
        else:
            yield segment


async def load_tool(ring: Ring, group: int) -> None:
    """Put a tool that hands out files beside the others, as an admin does."""
    path = ring.bot.directory / "tools" / "exporting.py"
    if not path.exists():
        path.write_text(textwrap.dedent(TOOL), "utf-8")
        loaded = await ring.ask(group, 9001, "@bot 重载")
        await ring.reply(loaded)


async def test_no_code_from_anywhere_becomes_a_segment(ring: Ring, fresh):
    group, user = fresh(), fresh()
    await load_tool(ring, group)
    ring.world.group(group).member(user, f"甲{CODES}", card=CODES)
    long = "\n\n".join(f"第{CODES}段" + "很长的一段话。" * 30 for _ in range(12))
    table = f"| 名{CODES} | 说明 |\n|---|---|\n| {CODES} | 🦩{CODES} |"
    ring.brain.plays(
        "注入",
        f"好的 {CODES}",
        f"看表：\n\n{table}\n\n完 {CODES}",
        long,
        action("export_report", name=f"{CODES}.xlsx"),
        f"文件好了 {CODES}",
    )
    uploads = len(ring.world.uploads)
    for _ in range(4):
        question = await ring.ask(group, user, [at(10000), text(f" 注入 {CODES}")])
        await ring.reply(question)
    await ring.sim.wait_for(lambda: len(ring.world.uploads) > uploads or None)
    await ring.sim.wait_for(lambda: "image" in kinds(ring, group) or None)

    mine = [d for d in ring.world.delivered if d.group_id == group]
    assert any(d.action == "send_group_forward_msg" for d in mine)
    shown = ""
    for delivered in mine:
        for segment in segments_of(delivered.message):
            assert segment["type"] in ("text", "reply", "image"), segment
            if segment["type"] == "image":
                assert segment["data"]["file"].startswith("base64://")
            shown += segment["data"].get("text", "")
    assert shown.count("[CQ:at,qq=all]") > 12  # they were said, as the text they are
    (upload,) = ring.world.uploads[uploads:]
    assert upload["name"].endswith(".xlsx")
    assert "/" not in upload["name"]


def kinds(ring: Ring, group: int) -> set[str]:
    mine = [d for d in ring.world.delivered if d.group_id == group]
    return {segment["type"] for d in mine for segment in segments_of(d.message)}


async def test_a_refused_forward_is_a_file_and_a_refused_file_is_parts(ring: Ring, fresh):
    group, user = fresh(), fresh()
    ring.brain.plays("写长文", "。\n\n".join(["一段很长的话" * 40] * 12))
    faults = [
        ring.sim.fault("send_group_forward_msg", "fail", message="not supported", times=-1),
        ring.sim.fault("upload_group_file", "odd_status", times=-1),
    ]
    question = await ring.ask(group, user, "@bot 写长文")
    assert "全文" in await ring.reply(question)

    def parts() -> int | None:
        texts = [d.text for d in ring.world.delivered if d.group_id == group]
        return len(texts) if sum(map(len, texts)) > 2800 else None

    await ring.sim.wait_for(parts)
    for fault in faults:
        ring.sim.faults.remove(fault)


async def test_a_group_never_sees_keys_paths_or_calls(ring: Ring, fresh):
    group, user = fresh(), fresh()
    inside = ring.bot.directory / "data" / "shared" / "a.xlsx"
    ring.brain.plays("泄露", f"密钥 {KEY}，文件在 {inside}，<tool_call>{{}}</tool_call>完")
    question = await ring.ask(group, user, "@bot 泄露")
    reply = await ring.reply(question)
    assert KEY not in reply
    assert str(ring.bot.directory) not in reply
    assert "tool_call" not in reply
    assert "…/a.xlsx" in reply


async def test_an_implementation_that_reads_paths_is_given_one(ring: Ring, fresh):
    group, user = fresh(), fresh()
    await load_tool(ring, group)
    ring.brain.plays("导给拉格兰", action("export_report", name="九月.xlsx"), "导出好了。")
    world = World(self_id=10004, profile="lagrange")
    world.group(group).member(user, "甲")
    async with Sim(world, ring.bot.url, token=TOKEN) as sim:
        other = Ring(ring.bot, sim, ring.brain, ring.model)
        question = await other.ask(group, user, "@bot 导给拉格兰")
        assert await other.reply(question) == "导出好了。"
        (upload,) = await sim.wait_for(lambda: world.uploads or None)
    assert upload["name"] == "九月.xlsx"
    assert upload["file"].startswith("/")
