"""What is heard, and as what: through the adapter's own parsing, down to the neutral message."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from nonebot.adapters.onebot.v11 import ActionFailed, NetworkError

from plugins.group_chat.messages import Quoted
from tests.group_chat.events import (
    BOT,
    GROUP,
    at,
    group_payload,
    image,
    private_payload,
    reply,
    text,
)
from tests.group_chat.hearing_kit import chat as chat
from tests.group_chat.hearing_kit import hear as hear

ME = at(BOT)
ADA = {"group_id": GROUP, "user_id": 5, "card": "阿达", "nickname": "ada", "role": "member"}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ([ME, text(" 你好")], "你好"),
        ([text("你好 "), ME], "你好"),
        ([text("你好 "), ME, text("  ")], "你好"),
        ([text("请 "), ME, text(" 看看")], "请 看看"),
        ([text("请"), ME, text("看看")], "请 看看"),
        ([image(), ME, text(" 这是什么")], "[图片] 这是什么"),
        ([text(" "), ME, text(" 你好")], "你好"),
        ([text("\u200b"), ME, text(" 你好")], "你好"),
        ([text("\u2060\ufeff "), ME, text("\u200b你好\u200b")], "你好"),
        ([ME, ME, text(" 你好")], "你好"),
        ([ME, text("你"), ME, text("好"), ME], "你 好"),
        ([at(5, name="@阿达"), text(" "), ME, text(" 谁最快")], "@阿达   谁最快"),
        ([{"type": "at", "data": {"qq": BOT}}, text("你好")], "你好"),
        ([ME, image()], "[图片]"),
        ([ME], ""),
        ([ME, {"type": "face", "data": {"id": "1"}}], "[表情]"),
        ([ME, {"type": "file", "data": {"file": "a.xlsx"}}], "[文件：a.xlsx]"),
        ([ME, at("all"), text(" 早")], "@全体成员 早"),
        (f"[CQ:at,qq={BOT}] 你好", "你好"),
        (f"请[CQ:image,file=a.png][CQ:at,qq={BOT}]看", "请[图片] 看"),
        ([text("小手，你好")], "你好"),
    ],
)
async def test_a_mention_is_heard_anywhere_in_the_message(hear, message, words):
    payload = group_payload([]) | {"message": message}
    incoming = await hear(payload)
    assert incoming is not None
    assert " ".join(incoming.text.split()) == " ".join(words.split())
    assert incoming.mentioned


@pytest.mark.parametrize(
    "payload",
    [
        group_payload([text("你好")]),
        group_payload([text("@bot 你好")]),
        group_payload([text(f"@{BOT} 你好")]),
        group_payload([at("all"), text(" 你好")]),
        group_payload([at(5), text(" 你好")]),
        group_payload([at(5), text(f"[CQ:at,qq={BOT}]")]),
        group_payload("你好", user_id=BOT),
        group_payload("你好", user_id=BOT, post_type="message_sent"),
        group_payload("你好", sub_type="anonymous"),
        group_payload("你好", anonymous={"id": 1, "name": "某", "flag": "x"}),
        group_payload("你好", anonymous="某"),
        private_payload("你好", user_id=BOT),
    ],
    ids=lambda p: str(p["message"])[:40] + p["sub_type"],
)
async def test_what_is_not_meant_for_the_bot_is_ignored(hear, payload):
    assert await hear(payload) is None


async def test_a_private_message_needs_no_mention(hear):
    incoming = await hear(private_payload("你好"))
    assert (incoming.text, incoming.place.private, incoming.mentioned) == ("你好", True, True)


async def test_a_message_reported_twice_is_heard_once(hear):
    payload = group_payload("你好")
    assert await hear(dict(payload)) is not None
    assert await hear(dict(payload)) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"font": ...},
        {"raw_message": ...},
        {"font": None, "raw_message": None, "sub_type": ...},
        {"sub_type": 0},
        {"sub_type": 3},
        {"sub_type": ["normal"]},
        {"to_me": None, "reply": {}, "original_message": "x"},
        {"to_me": "no", "reply": 5, "original_message": None},
        {"message_id": "77", "time": ...},
        {"sender": {"user_id": 1, "nickname": 7, "level": 3, "role": "member"}},
        {"sender": {"user_id": "1", "age": "?", "role": "member", "title": {"a": 1}}},
        {"message": [at(BOT), {"type": "shake", "data": None}, text("你好"), "junk", {"data": {}}]},
        {"message": at(BOT), "raw_message": "x"},
        {"message": [at(BOT), {"type": "text", "data": {"text": None}}, text("你好")]},
        {"message": [at(BOT), text("你"), {"type": "text", "data": {"text": 5}}, text("好")]},
    ],
    ids=str,
)
async def test_missing_and_odd_fields_do_not_cost_the_mention(hear, odd):
    payload = group_payload("你好") | odd
    incoming = await hear({key: value for key, value in payload.items() if value is not ...})
    assert incoming is not None
    assert incoming.place.user_id == "1"


async def test_a_missing_sender_is_asked_for(hear):
    member = ("get_group_member_info", member_call(1, no_cache=True), {"role": "admin"})
    incoming = await hear(group_payload("你好", sender=...), member)
    assert (incoming.role, incoming.name) == ("admin", "1")


def member_call(user_id: int, **extra: Any) -> dict[str, Any]:
    return {"group_id": GROUP, "user_id": user_id, "_timeout": 1.0, **extra}


def get_msg(message_id: int, seconds: float = 2.0) -> dict[str, Any]:
    return {"message_id": message_id, "_timeout": seconds}


def stored(message_id: int, message: Any, *, user_id: int = 5, **extra: Any) -> dict[str, Any]:
    return {
        "time": 1,
        "message_type": "group",
        "message_id": message_id,
        "real_id": message_id,
        "sender": {"user_id": user_id, "nickname": "ada", "card": "阿达"},
        "message": message,
        **extra,
    }


async def test_the_quoted_text_comes_along(hear):
    answer = stored(77, [text("九月卖了 120 件"), image()])
    incoming = await hear(
        group_payload([reply(77), at(5), text(" "), ME, text(" 对吗")]),
        ("get_msg", get_msg(77), answer),
    )
    quoted = incoming.quoted
    assert (quoted.text, quoted.sender) == ("九月卖了 120 件[图片]", "阿达")
    assert not quoted.by_bot
    assert [file.kind for file in quoted.files] == ["image"]
    assert incoming.text == "对吗"


@pytest.mark.parametrize(
    "failure",
    [ActionFailed(status="failed", retcode=1200), NetworkError("WebSocket call api timeout")],
)
async def test_a_failing_get_msg_does_not_cost_the_mention(hear, failure):
    incoming = await hear(
        group_payload([reply(77), ME, text(" 总结一下")]),
        ("get_msg", get_msg(77), failure),
        ("get_msg", get_msg(77, 1.0), failure),
    )
    assert (incoming.text, incoming.quoted) == ("总结一下", Quoted("77"))


async def test_an_answer_of_get_msg_the_adapter_cannot_read_is_read_here(hear):
    odd = stored(77, "九月[CQ:face,id=1]卖了", real_id=None)
    incoming = await hear(
        group_payload([reply(77), ME, text(" 对吗")]),
        ("get_msg", get_msg(77), odd),
        ("get_msg", get_msg(77, 1.0), odd),
    )
    assert incoming.quoted == Quoted("77", "九月[表情]卖了", "阿达", sender_id="5")


@pytest.mark.parametrize("message", [5, None, True, [{"type": "text", "data": None}]], ids=str)
async def test_junk_from_get_msg_does_not_cost_the_mention(hear, message):
    answer = stored(77, message)
    again = [] if isinstance(message, list) else [("get_msg", get_msg(77, 1.0), answer)]
    incoming = await hear(
        group_payload([reply(77), ME, text(" 总结一下")]), ("get_msg", get_msg(77), answer), *again
    )
    assert incoming.text == "总结一下"
    assert not incoming.quoted.text


async def test_quoting_the_bot_is_meant_for_it_but_is_no_mention(hear):
    answer = stored(78, [text("好的")], user_id=BOT)
    incoming = await hear(
        group_payload([reply(78), text("再说一遍")]), ("get_msg", get_msg(78), answer)
    )
    assert incoming.quoted.by_bot
    assert not incoming.mentioned
    assert incoming.text == "再说一遍"


async def test_quoting_others_without_a_mention_is_ignored(hear):
    answer = stored(77, [text("哈哈")])
    assert (
        await hear(group_payload([reply(77), text("好")]), ("get_msg", get_msg(77), answer)) is None
    )


async def test_mentioned_members_become_names(hear):
    incoming = await hear(
        group_payload([ME, text(" 问问 "), at(5), text("和"), at(6, name="小六"), at(5)]),
        ("get_group_member_info", member_call(5), ADA),
    )
    assert incoming.text == "问问 @阿达 和@小六 @阿达"


async def test_a_member_without_a_name_keeps_the_number(hear):
    failure = ActionFailed(status="failed", retcode=1200)
    incoming = await hear(
        group_payload([ME, at(66), text("呢")]),
        ("get_group_member_info", member_call(66), failure),
    )
    assert incoming.text == "@66 呢"


@pytest.mark.parametrize("role", ["owner", "admin", "member"])
async def test_the_role_is_the_events(hear, role):
    assert (await hear(group_payload("你好", role=role))).role == role


@pytest.mark.parametrize(
    ("said", "answer", "role"),
    [
        (None, {"role": "owner"}, "owner"),
        ("unknown", {"role": "admin"}, "admin"),
        (None, {"role": "unknown"}, "member"),
        (None, ActionFailed(status="failed", retcode=1200), "member"),
        (None, None, "member"),
    ],
)
async def test_a_missing_role_is_asked_for_fresh(hear, said, answer, role):
    call = ("get_group_member_info", member_call(1, no_cache=True), answer)
    assert (await hear(group_payload("你好", role=said), call)).role == role


async def test_a_role_that_was_looked_up_counts_for_this_group_and_a_minute(hear, monkeypatch):
    call = ("get_group_member_info", member_call(1, no_cache=True), {"role": "admin"})
    assert (await hear(group_payload("你好", role=None), call)).role == "admin"
    assert (await hear(group_payload("你好", role=None))).role == "admin"
    assert (await hear(group_payload("你好", role="member"))).role == "member"
    monkeypatch.setattr("plugins.group_chat.onebot_v11.ROLE_SECONDS", -1.0)
    plugin_line = importlib.import_module("plugins.group_chat").line
    plugin_line._roles.clear()
    for role in ("owner", "member"):
        call = ("get_group_member_info", member_call(1, no_cache=True), {"role": role})
        assert (await hear(group_payload("你好", role=None), call)).role == role


async def test_a_superuser_is_one_everywhere(hear):
    assert (await hear(group_payload("你好", user_id=9001))).role == "superuser"
    assert (await hear(private_payload("你好", user_id=9001))).role == "superuser"


async def test_a_private_chat_gives_no_group_rights(hear):
    assert (await hear(private_payload("你好", role="owner"))).role == "member"


@pytest.mark.parametrize("quoted", ["--5", "9" * 5000], ids=["marks", "digits"])
async def test_a_quote_of_a_number_that_is_none_costs_nothing(hear, quoted):
    asked = ("get_msg", {"message_id": quoted, "_timeout": 1.0}, ActionFailed(retcode=1400))
    incoming = await hear(group_payload([reply(quoted), at(BOT), text("你好")]), asked)
    assert (incoming.text, incoming.quoted.text) == ("你好", None)


async def test_a_mention_of_a_number_that_is_none_costs_nothing(hear):
    incoming = await hear(group_payload([at(BOT), at("9" * 5000), text("你好")]))
    assert incoming.text.startswith("@999")


async def test_a_chat_log_of_any_depth_does_not_cost_the_mention(hear):
    content: list[Any] = [text("底")]
    for _ in range(200):
        node = {"type": "node", "data": {"user_id": "5", "content": content}}
        content = [{"type": "forward", "data": {"id": "1", "content": [node]}}]
    incoming = await hear(group_payload([*content, at(BOT), text("你好")]))
    assert (incoming.text, len(incoming.forwarded)) == ("[合并转发的聊天记录] 你好", 1)
