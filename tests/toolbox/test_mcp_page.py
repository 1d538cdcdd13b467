"""docs/mcp.md: its server runs, its tables are read, its keys are all that there are."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

from typer.testing import CliRunner

from chathands.cli import _register, app
from chathands.toolbox.mcp_config import McpServer, ToolOverride, servers_of

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_tables_of_the_page_are_good():
    tables = blocks("toml")
    assert len(tables) >= 3
    for text in tables:
        servers, faults = servers_of(tomllib.loads(text)["mcp"])
        assert servers
        assert faults == {}


def test_the_page_names_every_key():
    for model in (McpServer, ToolOverride):
        for name in set(model.model_fields) - {"tools"}:
            assert f"`{name}`" in PAGE, name


def test_the_server_of_the_page_is_a_tool_of_ours(tmp_path, monkeypatch):
    (tmp_path / "tools").mkdir()
    (tmp_path / "library.py").write_text(blocks("python")[0], "utf-8")
    toml = blocks("toml")[0]
    broken = '[mcp.gone]\ncommand = "/no/such/program"\n'
    (tmp_path / "tools.toml").write_text(toml + broken, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    _register()
    seen = CliRunner().invoke(app, ["doctor", "mcp"])
    assert "library  已连上" in seen.output
    assert "library_find_book  只读  在图书馆目录里查一本书的索书号。" in seen.output
    assert "gone  没连上：启动不了" in seen.output
    assert seen.exit_code == 1
