"""Every form of a mention, in every place of a message, as every implementation reports it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from nonebot.adapters.onebot.v11 import ActionFailed, Bot

from tests.group_chat.events import BOT, GROUP, Segment, at, group_payload, image, reply, text
from tests.group_chat.hearing_kit import chat as chat
from tests.group_chat.hearing_kit import hear as hear
from tests.sim.onebot_sim import cq

PROFILES = ("napcat", "napcat-cq", "llonebot", "lagrange", "gocq")
QUESTION = "九月卖了多少"

Before = list[Segment]
ORDERS: dict[str, tuple[Before, Before]] = {
    "alone": ([], []),
    "behind a blank": ([text(" ")], []),
    "behind marks nobody sees": ([text("\u200b\u2060\ufeff")], []),
    "behind a picture": ([image()], []),
    "behind two pictures and a blank": ([image(), image(), text("  ")], []),
    "behind a face": ([{"type": "face", "data": {"id": "14"}}], []),
    "behind another mention": ([at(66), text(" ")], []),
    "behind words": ([text("请问")], []),
    "behind a quote": ([reply(77)], []),
    "behind a quote and its mention": ([reply(77), at(5), text(" ")], []),
    "behind a lost quote": ([reply(404)], []),
    "before a picture": ([], [image()]),
    "before another mention": ([], [text(" "), at(66)]),
    "before blanks": ([], [text("\u3000 \u200b")]),
}
"""What stands before the mention and what behind the question."""


def mention_forms(profile: str) -> dict[str, list[Segment]]:
    named = {"name": "@机器人"} if profile in ("llonebot", "lagrange") else {}
    me = at(BOT, **named)
    return {
        "at, question": [me, text(f" {QUESTION}")],
        "question, at": [text(f"{QUESTION} "), me],
        "question around at": [text("九月"), me, text("卖了多少")],
        "twice": [me, me, text(QUESTION)],
        "number": [{"type": "at", "data": {"qq": BOT, **named}}, text(QUESTION)],
    }


def reported(profile: str, message: list[Segment], **override: Any) -> dict[str, Any]:
    """The event as that implementation sends it."""
    payload = group_payload(message, **override)
    sender = payload["sender"]
    match profile:
        case "napcat" | "napcat-cq":
            payload |= {"message_seq": 1, "real_seq": "1", "message_format": "array", "font": 14}
            sender.pop("role")  # its member look-up failed
        case "llonebot":
            payload |= {"message_format": "array", "font": 14, "group_name": "群", "raw": {}}
        case "lagrange":
            payload |= {"anonymous": None, "message_style": {"bubble_id": 0}}
            sender |= {"role": "unknown", "level": 3, "age": 0, "sex": "unknown", "title": ""}
        case "gocq":
            payload |= {"anonymous": None, "message_seq": 9}
            sender |= {"level": "", "age": 0, "area": "", "sex": "unknown", "title": ""}
    if profile == "napcat-cq":
        payload |= {"message": cq(message), "message_format": "string"}
    payload["raw_message"] = cq(message)
    return payload


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An implementation that knows message 77 (member 5) and 78 (the bot's), and all members."""

    async def call_api(self: Bot, api: str, **data: Any) -> Any:
        if api == "get_msg" and data["message_id"] in (77, 78):
            user = {77: 5, 78: BOT}[data["message_id"]]
            return {
                "time": 1,
                "message_type": "group",
                "message_id": data["message_id"],
                "real_id": 1,
                "sender": {"user_id": user, "nickname": "ada"},
                "message": [text("九月卖了 120 件")],
            }
        if api == "get_group_member_info":
            return {"nickname": "乙", "role": "member"}
        raise ActionFailed(status="failed", retcode=1200, message="not found")

    monkeypatch.setattr(Bot, "call_api", call_api)


def mentions() -> Iterator[tuple[str, list[Segment], str]]:
    for profile in PROFILES:
        forms = mention_forms(profile).items()
        for (form, middle), (order, (before, behind)) in product(forms, ORDERS.items()):
            if form in ("twice", "number") and order != "alone":
                continue
            yield f"{profile}: {form}, {order}", [*before, *middle, *behind], profile


async def test_every_mention_is_heard_with_its_words(hear, peer):
    wrong = []
    for case, message, profile in mentions():
        incoming = await hear(reported(profile, message))
        if incoming is None:
            wrong.append(f"{case}: not heard")
            continue
        words = incoming.text.replace(" ", "")
        if QUESTION not in words or str(BOT) in words or "机器人" in words:
            wrong.append(f"{case}: {incoming.text!r}")
        if not incoming.mentioned or incoming.role != "member":
            wrong.append(f"{case}: {incoming}")
        if ("quote" in case) != (incoming.quoted is not None):
            wrong.append(f"{case}: quote {incoming.quoted}")
        if "another mention" in case and "@乙" not in words:
            wrong.append(f"{case}: no name in {words}")
        if len(incoming.files) != sum(segment["type"] == "image" for segment in message):
            wrong.append(f"{case}: files {incoming.files}")
    assert wrong == []


CALLS = ["小手 {q}", "小手，{q}", "小手{q}", "  小手: {q}", "\u200b小手\n{q}", "小手！{q}"]


async def test_a_call_by_name_at_the_start_is_heard_without_the_name(hear, peer):
    behind = ("alone", "behind a picture", "behind a quote", "behind a lost quote")
    for profile, order, call in product(PROFILES, behind, CALLS):
        before, _ = ORDERS[order]
        message = [*before, text(call.format(q=QUESTION))]
        incoming = await hear(reported(profile, message))
        assert incoming is not None, (profile, order, call)
        assert incoming.mentioned
        assert incoming.text.endswith(QUESTION)
        if order != "behind a picture":
            assert incoming.text == QUESTION


async def test_quoting_the_bot_is_heard_in_every_profile(hear, peer):
    for profile, tail in product(PROFILES, ([text("再说一遍")], [at(BOT), text("再说一遍")])):
        incoming = await hear(reported(profile, [reply(78), *tail]))
        assert incoming is not None
        assert incoming.quoted.by_bot
        assert incoming.text == "再说一遍"


NEGATIVES: dict[str, list[Segment]] = {
    "words": [text(QUESTION)],
    "another": [at(66), text(QUESTION)],
    "everybody": [at("all"), text(QUESTION)],
    "everybody as a word": [text(f"@全体成员 {QUESTION}")],
    "typed": [text(f"@机器人 {QUESTION}")],
    "typed name": [text(f"@小手 {QUESTION}")],
    "typed number": [text(f"@{BOT} {QUESTION}")],
    "code typed as text": [text(f"[CQ:at,qq={BOT}] {QUESTION}")],
    "name in the middle": [text(f"问问小手，{QUESTION}")],
    "name behind another mention": [at(66), text(f" 小手，{QUESTION}")],
    "a longer number": [at(f"{BOT}1"), text(QUESTION)],
    "a shorter number": [at(str(BOT)[:-1]), text(QUESTION)],
    "quote of another": [reply(77), text(QUESTION)],
    "quote of another, mentioned": [reply(77), at(5), text(f" {QUESTION}")],
    "a lost quote": [reply(404), text(QUESTION)],
    "a picture": [image()],
    "a lone file": [{"type": "file", "data": {"file": "a.xlsx", "file_id": "/1"}}],
    "nothing": [],
}


async def test_what_is_not_for_the_bot_is_ignored_in_every_profile(hear, peer):
    for profile, (case, message) in product(PROFILES, NEGATIVES.items()):
        assert await hear(reported(profile, message)) is None, (profile, case)


MINE = [at(BOT), text(f" {QUESTION}")]


@pytest.mark.parametrize(
    "event",
    [
        {"user_id": BOT},
        {"user_id": BOT, "post_type": "message_sent"},
        {"user_id": BOT, "post_type": "message_sent", "message_type": "private", "group_id": ...},
        {"user_id": BOT, "message_type": "private", "sub_type": "friend", "group_id": ...},
        {"user_id": 42},
        {"user_id": "42"},
        {"time": int(time.time()) - 61},
        {"time": (int(time.time()) - 3600) * 1000},
        {"sub_type": "anonymous"},
        {"anonymous": {"id": 1, "name": "某", "flag": "x"}},
        {"user_id": 0, "sender": {}},
    ],
    ids=lambda event: "-".join(event),  # no time: each test process has its own
)
async def test_own_bots_old_and_nameless_messages_are_ignored(hear, peer, event):
    for profile in PROFILES:
        payload = {k: v for k, v in (reported(profile, MINE) | event).items() if v is not ...}
        assert await hear(payload) is None, profile


async def test_a_message_reported_again_is_ignored_and_one_with_an_odd_id_is_not(hear, peer):
    for profile in PROFILES:
        again = reported(profile, MINE)
        assert await hear(dict(again)) is not None
        assert await hear(dict(again)) is None
        elsewhere = again | {"group_id": GROUP + 1}  # short ids are hashes, and may meet
        assert await hear(elsewhere) is not None
    for odd in (0, None, "abc", float("inf"), ...):
        for _ in range(2):
            payload = reported("napcat", MINE, message_id=odd)
            assert (await hear(payload)).message_id == ""


def odd_fields() -> dict[str, Any]:
    now = time.time()
    return {
        "self_id as text": {"self_id": str(BOT)},
        "no self_id": {"self_id": ...},
        "time as text": {"time": str(now)},
        "no time": {"time": None},
        "time in the future": {"time": int(now) + 3600},
        "time in milliseconds": {"time": int(now * 1000)},
        "time without end": {"time": float("inf")},
        "user in the sender only": {"user_id": ..., "sender": {"user_id": "1", "role": "member"}},
        "user as text": {"user_id": "1"},
        "group as text": {"group_id": str(GROUP)},
        "no sender": {"sender": ...},
        "sender is a list": {"sender": [1]},
        "sender of wrong types": {"sender": {"card": 5, "nickname": None, "level": [], "role": 1}},
        "font as text": {"font": "serif"},
        "nothing but the message": {
            "font": ...,
            "raw_message": ...,
            "sub_type": ...,
            "sender": ...,
        },
        "unknown fields": {"raw": {"a": [1]}, "message_style": None, "real_seq": "x"},
        "unknown sub type": {"sub_type": "notice"},
    }


async def test_missing_and_odd_fields_cost_nothing(hear, peer):
    for profile, (case, odd) in product(PROFILES, odd_fields().items()):
        payload = {k: v for k, v in (reported(profile, MINE) | odd).items() if v is not ...}
        incoming = await hear(payload)
        assert incoming is not None, (profile, case)
        assert (incoming.text, incoming.place.user_id) == (QUESTION, "1"), (profile, case)


@pytest.mark.parametrize(
    "segment",
    [
        "junk",
        5,
        None,
        [],
        {},
        {"type": 7, "data": {}},
        {"type": "text"},
        {"type": "text", "data": "words"},
        {"type": "text", "data": {"text": "半\ud83d个\x00\u202e"}},
        {"type": "at"},
        {"type": "at", "data": {}},
        {"type": "at", "data": {"qq": None}},
        {"type": "at", "data": {"qq": {"a": 1}}},
        {"type": "reply", "data": {}},
        {"type": "reply", "data": {"id": "x"}},
        {"type": "reply", "data": {"id": "0"}},
        {"type": "image", "data": {"url": 5, "file": None}},
        {"type": "file", "data": {"file": 5, "file_size": "big"}},
        {"type": "json", "data": {"data": "{"}},
        {"type": "json", "data": {"data": 5}},
        {"type": "forward", "data": None},
        {"type": "node", "data": {"content": 5}},
        {"type": "never heard of", "data": {"x": [1]}},
    ],
    ids=str,
)
async def test_an_odd_segment_beside_the_mention_costs_nothing(hear, peer, segment):
    for message in ([segment, *MINE], [*MINE, segment]):
        incoming = await hear(group_payload(message))
        assert incoming is not None
        assert QUESTION in incoming.text
        assert incoming.text.encode()


async def test_half_characters_in_names_reach_neither_store_nor_network(hear, peer):
    sender = {"user_id": 1, "nickname": "半\ud83d", "card": "\udc00\u200b", "role": "member"}
    quoted = [reply(77), at(66, name="\ud83d"), *MINE]
    incoming = await hear(group_payload(quoted, sender=sender))
    assert (incoming.name, incoming.text) == ("半", f"@乙 {QUESTION}")
