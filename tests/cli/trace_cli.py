"""`chathands trace …` in this process, on the state another part of the test has written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer
from click.testing import Result
from typer.testing import CliRunner

from chathands.cli import trace


async def cli_trace(state_dir: Path, *arguments: str) -> Result:
    """The command's result, with stdout and stderr apart."""
    app = typer.Typer()
    trace.register(app)
    env = {"CHATHANDS__STATE_DIR": str(state_dir), "COLUMNS": "200"}
    invoke = CliRunner(env=env).invoke
    return await asyncio.to_thread(invoke, app, ["trace", *arguments])


async def last_line(state_dir: Path) -> str:
    """The verdict as `chathands trace last` prints it."""
    result = await cli_trace(state_dir, "last")
    assert result.exit_code == 0, result.output
    line = result.stdout.rstrip("\n").split("\n")[-1]
    assert line.startswith("判定 ")
    return line.removeprefix("判定 ")
