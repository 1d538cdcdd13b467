"""`chathands tools …` in this process, in a project of its own."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import typer
from click.testing import Result
from typer.testing import CliRunner

from chathands.cli import doctor, tools
from chathands.settings import Settings, load_settings

STOCK = '''
from typing import Annotated, Literal
from datetime import date
from pydantic import BaseModel, Field
from chathands import File, ToolContext, tool
from chathands.errors import ToolFailed


class Period(BaseModel):
    start: Annotated[str, Field(description="从哪天起，如 2025-09-01")]
    days: Annotated[int, Field(ge=1, description="几天")] = 1


@tool(side_effect="none", examples=[("上海仓的胶带还有多少", {"sku": "胶带", "area": "上海"})],
      version=2)
def stock_of(
    sku: Annotated[str, Field(description="货品的名字或货号，照用户说的写")],
    area: Annotated[Literal["上海", "北京"], Field(description="哪个仓库")] = "上海",
    days: Annotated[int, Field(ge=1, le=30, description="看最近几天的")] = 1,
    exact: Annotated[bool, Field(description="名字要一字不差")] = False,
    sizes: Annotated[list[int], Field(description="只看这些尺寸")] = [],
    since: Annotated[date | None, Field(description="从哪天起，如 2025-09-01")] = None,
    period: Annotated[Period | None, Field(description="从哪天起的几天")] = None,
) -> str:
    """查一件货品在仓库里还剩多少存货。"""
    if sku == "没有":
        raise ToolFailed("没有这件货品，请换个名字。")
    return f"{sku!r} {area} {days} {exact} {sizes} {period and (period.start, period.days)}"


@tool(side_effect="none", deprecated="改用 stock_of")
def stock_file(
    sku: Annotated[str, Field(description="货品的名字或货号")], ctx: ToolContext
) -> File:
    """把一件货品的存货写成一个文件发出来。"""
    return File(sku.encode(), "存货.txt", "一行")


@tool(side_effect="outward", target="to", shows=("text",))
def order(
    ctx: ToolContext,
    to: Annotated[str, Field(description="向哪个供应商订货")],
    text: Annotated[str, Field(description="订什么、订多少")],
) -> str:
    """向供应商发出一张订货单，发出后不能撤回。"""
    (ctx.settings.state_dir / "orders.txt").write_text(text, "utf-8")
    return f"已向{to}订货"
'''


def project(directory: Path, source: str = STOCK, **files: str) -> Path:
    (directory / "tools").mkdir(exist_ok=True)
    if source:
        (directory / "tools" / "stock.py").write_text(source, "utf-8")
    for name, text in files.items():
        (directory / name.replace("__", "/").replace("_toml", ".toml")).write_text(
            textwrap.dedent(text), "utf-8"
        )
    return directory


def settings_of(directory: Path, **overrides: Any) -> Settings:
    return load_settings(
        directory,
        data_dir=directory / "data",
        tools_dir=directory / "tools",
        state_dir=directory / "state",
        **overrides,
    )


def run(directory: Path, *arguments: str, env: dict[str, str] | None = None, **more: Any) -> Result:
    """The result of `chathands tools …` or `chathands doctor …`, stdout and stderr apart."""
    app = typer.Typer()
    tools.register(app)
    doctor.register(app)
    given = {
        "CHATHANDS__DATA_DIR": str(directory / "data"),
        "CHATHANDS__TOOLS_DIR": str(directory / "tools"),
        "CHATHANDS__STATE_DIR": str(directory / "state"),
        "COLUMNS": "200",
        **(env or {}),
    }
    return CliRunner(env=given).invoke(app, list(arguments), **more)


async def run_beside(directory: Path, *arguments: str, **more: Any) -> Result:
    """The same from a running loop."""
    return await asyncio.to_thread(run, directory, *arguments, **more)
