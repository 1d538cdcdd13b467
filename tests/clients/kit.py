"""The programs of docs/clients.md and their task: two tools one after the other, or a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tests.server.gateway_kit import call
from tests.standins.model_server import Seen

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "clients.md").read_text("utf-8")
GATEWAY = "http://127.0.0.1:8081"
"""Where the page's programs look for the gateway."""

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]+?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```", re.M | re.S
)
PROGRAMS = {
    found["mark"].removeprefix("run: "): found["code"]
    for found in BLOCK.finditer(PAGE)
    if (found["mark"] or "").startswith("run: ")
}
OWN = {
    path.stem.replace("_", "-"): path for path in (Path(__file__).parent / "programs").glob("*.py")
}
"""What the page has no room for: other protocols and streams."""

WEATHER = call("get_weather", city="北京")
NOTE = call("save_note", text="北京：晴，20 度")
SAID = "存好了：北京晴，20 度。"
TASK = (f"我先查天气。\n\n{WEATHER}", NOTE, SAID)
"""What the model behind says to the task, one a request."""

TASK_TO_ITS_LAST_TOOL = (*TASK[:2], call("final_answer", answer=SAID))
"""Where the answer too is a call."""

STREAMED = (f"我看一下。\n\n{WEATHER}",)


def replies(name: str) -> Sequence[str]:
    """What the model behind says to this program."""
    if name in ("openai-stream", "anthropic-stream"):
        return STREAMED
    return TASK_TO_ITS_LAST_TOOL if name.startswith("smolagents") else TASK


def program(name: str, url: str) -> str:
    """The program for the gateway at `url`; nothing else is changed."""
    code = PROGRAMS[name] if name in PROGRAMS else OWN[name].read_text("utf-8")
    assert GATEWAY in code
    return code.replace(GATEWAY, url)


def check(name: str, said: str, asked: Sequence[Seen]) -> None:
    """Raises AssertionError unless the program did its task: `said` is what it printed, `asked`
    what reached the model behind."""
    wanted = replies(name)
    assert len(asked) == len(wanted), f"{len(asked)} requests, {len(wanted)} expected\n{said}"
    if wanted is STREAMED:
        assert [line.rstrip() for line in said.splitlines() if line.strip()] == [
            "我看一下。",
            "get_weather 北京",
        ]
        return
    assert said.strip().splitlines()[-1] == SAID, said
    # What only the client's own functions can have said, once each came to run.
    first, second, third = (json.dumps(seen.body, ensure_ascii=False) for seen in asked)
    assert "晴，20 度" not in first
    assert "北京：晴，20 度" in second
    assert "已保存" not in second
    assert "已保存 9 个字" in third
