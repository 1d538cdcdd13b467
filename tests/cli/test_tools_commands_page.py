"""The commands of the page for tool authors, run one after the other as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.main import get_command

from chathands.cli import app
from tests.cli.tools_cli import project, run

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text("utf-8")


def test_the_commands_of_the_page_work_in_this_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "")
    (block,) = re.findall(r"^```sh\n(chathands tools new.*?)^```", PAGE, re.M | re.S)
    for line in block.strip().split("\n"):
        done = run(tmp_path, *shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.output)
    assert "count_words" in run(tmp_path, "tools", "list").stdout


def test_every_option_the_page_names_is_there():
    from chathands import cli

    if not any(group.name == "tools" for group in app.registered_groups):
        cli._register()
    groups = get_command(app).commands  # type: ignore[attr-defined]
    known = {
        option
        for command in (*groups["tools"].commands.values(), groups["doctor"].commands["tool"])
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    section = PAGE.split("## 命令：")[1].split("\n## ")[0]
    assert set(re.findall(r"--[a-z][a-z-]*", section)) <= known
