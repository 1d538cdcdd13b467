"""What docs/tools.md says of the push tools is so."""

from __future__ import annotations

import re
from pathlib import Path

from chathands.settings import Settings, load_settings
from chathands.toolbox import load_tools

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "tools.md").read_text("utf-8")


def test_the_settings_on_the_page_load_and_offer_the_tool(tmp_path):
    part = PAGE[PAGE.index("### 推送怎么配") :]
    (tmp_path / ".env").write_text(re.findall(r"```ini\n(.*?)```", part, re.S)[0], "utf-8")
    settings = load_settings(tmp_path)
    assert [robot.platform for robot in settings.push.robots.values()] == ["wecom", "feishu"]
    specs = load_tools(ROOT / "tools", settings).generation.specs
    assert specs["push_message"].parameters["properties"]["target"]["enum"] == [
        "运维群", "产品群", "财务QQ群", "张总",
    ]  # fmt: skip
    assert "send_dingtalk_message" not in specs


def test_each_push_tool_has_its_row_with_settings_that_exist():
    tools = load_tools(ROOT / "tools", Settings(), every=True).generation
    for name, owner in tools.owners.items():
        if owner == "push/":
            assert f"\n| `{name}` |" in PAGE
    row = next(line for line in PAGE.splitlines() if line.startswith("| `push_message`"))
    for key in re.findall(r"CHATHANDS__PUSH__([A-Z]+)", row):
        assert key.lower() in type(Settings().push).model_fields
