"""Whatever the content is: every part within the platform's size, nothing lost, in no time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.errors import ToolFailed
from tools.push import dingtalk, feishu, wecom
from tools.push.draft import Call, Composed, Draft
from tools.push.reading import traits_of

LETTERS = st.text(
    st.sampled_from('数据a1 *_`|-#>[]()!~\n\t@<:.\\"\r\x00😀/=+') | st.characters(codec="utf-8"),
    max_size=300,
)
PIECES = st.sampled_from(
    ["| 甲 | 乙 |\n|---|---|\n| 1 | 2 |\n", "```py\nx = 1\n```\n", "- 项\n", "**粗**\n", "# 题\n",
     "[链](https://example.com/a)\n", "https://example.com/b\n", "> 引\n"]
)  # fmt: skip
CONTENT = st.builds(
    lambda parts, times: "".join(parts) * times,
    st.lists(LETTERS | PIECES, max_size=6),
    st.sampled_from([1, 1, 3, 40]),
)
CALLS = st.sampled_from(
    [(), (Call("老王", "13800000000"),), (Call("所有人", "all"), Call("小李", "ou_1"))]
)


def composed(platform: Any, draft: Draft) -> Composed | None:
    try:
        return platform.compose(draft)
    except ToolFailed:
        return None


@settings(max_examples=120, deadline=None)
@given(st.text(max_size=60), CONTENT, CALLS, st.sampled_from([(), ("通报",), (" ", "日报")]))
def test_every_message_fits_and_has_the_keyword(title, content, calls, keywords):
    draft = Draft(title, content, keywords, calls)
    for platform in (dingtalk, wecom, feishu):
        if platform is feishu and any(call.id.isdecimal() for call in calls):
            continue
        made = composed(platform, draft)
        if made is None:
            continue
        for message in made.messages:
            _, body = platform.request("https://example.com/x?y=z", "SECa", message.body, 1.7e9)
            sent = json.loads(body)
            kind = sent.get("msgtype") or sent.get("msg_type")
            if platform is wecom:
                limit = wecom.TEXT_LIMIT if kind == "text" else wecom.MARKDOWN_LIMIT
                assert 0 < len(sent[kind]["content"].encode()) <= limit
            else:
                assert len(body) <= 20_000
            if words := [word for word in keywords if word.strip()]:
                said = json.dumps(message.body, ensure_ascii=False)
                assert any(word in said for word in words)


@pytest.mark.parametrize("kind", ["```\n{}\n```", "{}", "| 值 |\n|---|\n{}", "**x**\n{}"])
def test_nothing_of_a_long_content_is_lost_in_wecom(kind):
    lines = [f"| 第{number:04d}行 |" for number in range(700)]
    made = wecom.compose(Draft("报表", kind.format("\n".join(lines))))
    sent = "\n".join(message.text for message in made.messages)
    assert all(f"第{number:04d}行" in sent for number in range(700))
    if kind.startswith("```"):  # each part is a code block of its own
        assert all(message.text.count("```") == 2 for message in made.messages)


@pytest.mark.parametrize(
    "content",
    ["`" * 40000, "[" * 40000, "[a](" * 10000, "a@" * 20000, "- " * 20000, "|" * 40000, "*" * 40000,
     "~" * 40000, "\n" * 40000, " " * 40000, "<" * 40000, "*a" * 20000, "![" * 20000,
     "\n- " * 4000, "-" * 40000, "---\n" * 10000, "[a](https://e.com/" * 2000, "> " * 20000,
     "1. " * 10000],
)  # fmt: skip
def test_hostile_content_takes_no_time(content):
    started = time.perf_counter()
    for platform in (dingtalk, wecom, feishu):
        composed(platform, Draft("", content))
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("价格 3*4*5，a_b_c，x < y", "plain"),
        ("见 https://example.com/a_b", "plain"),
        ("**重要**", "simple"),
        ("- 一\n- 二", "rich"),
        ("a | b\n---|---\n1 | 2", "tables"),
        ("[说明](https://example.com)", "links"),
    ],
)
def test_marks_are_found_and_ordinary_words_are_none(content, what):
    assert getattr(traits_of(content), what)
    assert traits_of(content).plain == (what == "plain")


def test_feishus_sign_has_key_and_message_the_other_way_round():
    # Checked with openssl: dgst -sha256 -hmac over nothing, key "1599360473\nsecret".
    assert feishu.signature("secret", "1599360473") != dingtalk.signature("secret", "1599360473")
    assert (
        feishu.signature("secret", "1599360473") == "q4jswNiMy51J5JuQV566yJat0/lQ/c+22kINzUgKsGU="
    )
