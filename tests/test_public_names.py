"""What `chathands` promises to export, and what importing it must not cost."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import chathands

ROOT = Path(__file__).parents[1]


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_exactly_the_promised_names_are_exported():
    assert chathands.__all__ == [
        "Agent",
        "Answer",
        "CallReady",
        "Calls",
        "ChatHandsError",
        "Choices",
        "File",
        "GiveUp",
        "Image",
        "Message",
        "ParsedReply",
        "Reason",
        "Retry",
        "Settings",
        "Status",
        "Table",
        "Text",
        "TextDelta",
        "ToolCall",
        "ToolChoice",
        "ToolContext",
        "ToolResult",
        "ToolSpec",
        "Turn",
        "from_openai",
        "load_settings",
        "parse_reply",
        "review_reply",
        "tool",
    ]


@pytest.mark.parametrize("name", chathands.__all__)
def test_every_name_is_there(name: str):
    assert getattr(chathands, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = chathands.no_such_name


def test_importing_the_package_loads_nothing_heavy():
    loaded = modules_after("import chathands")
    heavy = {"pandas", "openpyxl", "nonebot", "fastapi", "httpx", "pydantic", "aiohttp"}
    assert not loaded & heavy


def test_the_engine_and_the_decorator_stay_light():
    loaded = modules_after("from chathands import Turn, tool")
    assert not loaded & {"pandas", "openpyxl", "nonebot", "fastapi", "httpx", "aiosqlite"}


def test_starting_the_bot_does_not_load_pandas():
    loaded = modules_after(
        "import nonebot; nonebot.init(_env_file=None); import plugins.group_chat"
    )
    assert not loaded & {"pandas", "openpyxl", "xllamacpp"}


def test_no_message_is_built_from_a_variable():
    """`Message(text)` parses CQ codes: members could make the bot @all or post files."""
    found = []
    for path in (ROOT / "plugins").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "Message"
                and any(not isinstance(a, ast.List | ast.ListComp) for a in node.args)
            ):
                found.append(f"{path.name}:{node.lineno}")
    assert found == []
