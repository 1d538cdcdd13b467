"""What `chathands doctor push` prints: which setting of a robot is wrong."""

from __future__ import annotations

from importlib import import_module

import typer

from chathands.settings import Settings

_MARKS = {"ok": "对  ", "note": "注意", "fault": "不对"}


async def look(settings: Settings, name: str, *, send: bool) -> bool:
    """Print what is found, and a verdict; whether nothing is wrong. Sends one message if `send`."""
    from chathands.toolbox import Redactor, load_tools
    from chathands.toolbox.http import SharedHttp

    report = load_tools(settings.tools_dir, settings, every=True)
    tool = report.generation.tools.get("push_message")
    if tool is None:
        typer.echo("工具目录里没有 push_message，推送的检查在它那里。")
        return False
    # The check knows the platforms, and they live with the tool; `report` keeps its modules.
    checkup = import_module(f"{tool.module}.checkup")
    http = SharedHttp()
    try:
        found = await checkup.look(settings, name, http.client, send=send)
    finally:
        await http.aclose()
    hide = Redactor.of(settings).sentence
    for each in found:
        about = f"{each.setting}：" if each.setting else ""
        typer.echo(f"{_MARKS[each.mark]} {about}{hide(each.sentence)}")
    wrong = list(dict.fromkeys(each.setting for each in found if each.mark == "fault"))
    if wrong:
        typer.echo(f"结论：要改的是 {'、'.join(wrong)}。")
        return False
    more = "" if send else "没有发送任何消息；加 --send 真的发一条，才知道关键词、加签对不对。"
    typer.echo(f"结论：没有发现写错的。{more}")
    return True
