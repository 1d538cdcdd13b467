"""What the README promises a reader can do, done."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from chathands.conversation import Status, ToolCall
from chathands.settings import Settings
from chathands.toolbox import load_tools
from tests.toolbox.kit import bench

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def tool_source() -> str:
    found = re.search(r"^```python\n(.*?@tool.*?)^```", README, re.M | re.S)
    assert found is not None
    return found.group(1)


async def test_the_tool_of_the_readme_loads_and_runs(tmp_path: Path):
    with bench(tmp_path, tool_source()) as toolbox:
        batch = await toolbox.run(ToolCall("c", "count_characters", {"text": "四个字哦"}))
    (result,) = batch.results
    assert (result.status, result.content) == (Status.OK, "共 4 个字")


def test_both_readmes_are_in_order():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check_readme.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("question", re.findall(r"^- `(.+)`$", README, re.M))
def test_no_question_of_the_readme_is_in_code_prompts_or_data(question: str):
    for top in ("chathands", "plugins", "tools"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in (".py", ".toml", ".json", ".jsonl", ".txt", ".csv"):
                assert question not in path.read_text("utf-8"), path


def test_the_shipped_tools_all_load():
    report = load_tools(ROOT / "tools", Settings(_env_file=None), every=True)
    assert report.errors == ()
    assert {"read_excel_data", "aggregate_excel_data", "send_dingtalk_message", "get_weather"} <= (
        set(report.generation.specs)
    )
