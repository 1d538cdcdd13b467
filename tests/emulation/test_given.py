"""What the public entries say to callers who hand over the wrong thing: one clear sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chathands import Message, ToolSpec, Turn, from_openai, parse_reply, review_reply

TOOLS = [ToolSpec("get_weather", side_effect="none")]
WIRE: Any = [{"role": "user", "content": "杭州天气"}]


@pytest.mark.parametrize(
    "use",
    [
        lambda: Turn(WIRE, TOOLS),
        lambda: review_reply(parse_reply("晴", TOOLS), TOOLS, "auto", WIRE),
    ],
)
def test_messages_as_dicts_are_refused_with_the_way_to_read_them(use):
    with pytest.raises(TypeError, match=r"not dict; chathands\.from_openai"):
        use()
    assert Turn(from_openai(WIRE), TOOLS).request().messages[-1].content == "杭州天气"


@pytest.mark.parametrize("reply", [None, b"x", 5])
def test_a_reply_that_is_no_text_is_refused(reply: Any):
    with pytest.raises(TypeError, match="a reply is text, not"):
        parse_reply(reply, TOOLS)


@pytest.mark.parametrize(
    "use",
    [
        lambda tools: Turn([Message.user("你好")], tools),
        lambda tools: parse_reply("好", tools),
        lambda tools: review_reply(parse_reply("好", []), tools),
    ],
)
def test_a_tool_without_a_name_is_refused(use):
    with pytest.raises(ValueError, match="a tool needs a name"):
        use([{"type": "function", "function": {"description": "x"}}])


@pytest.mark.parametrize(
    "use",
    [
        lambda language: Turn([Message.user("你好")], TOOLS, language=language),
        lambda language: parse_reply("好", TOOLS, language=language),
    ],
)
def test_another_language_is_refused_at_once(use):
    with pytest.raises(ValueError, match="language 'fr' is none of zh, en"):
        use("fr")


@pytest.mark.parametrize(("content", "said"), [(None, "cannot read"), ("{x", "must hold JSON")])
def test_the_benchmark_says_in_a_sentence_what_it_cannot_read(tmp_path, content, said):
    corpus = tmp_path / "corpus.jsonl"
    if content is not None:
        corpus.write_text(content, "utf-8")
    script = Path(__file__).parents[2] / "benchmarks" / "parser.py"
    done = subprocess.run(
        [sys.executable, script, corpus], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
