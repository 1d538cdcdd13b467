"""OneBot v11's notices, in every implementation's shape, as what they mean for the bot."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
from nonebot.adapters.onebot.v11 import Adapter, Bot, NoticeEvent
from nonebug import App

from plugins.group_chat import onebot_v11_notices
from plugins.group_chat.messages import Place
from plugins.group_chat.notices import Allowed, Joined, Recalled, Removed, Silenced
from plugins.group_chat.onebot_v11_notices import notice_of
from tests.group_chat.events import BOT, GROUP

HERE = ("qq", str(BOT), str(GROUP))
MUTE = {"notice_type": "group_ban", "sub_type": "ban", "user_id": BOT, "duration": 600}
EVERYBODY = {"notice_type": "group_ban", "sub_type": "ban", "user_id": 0, "duration": -1}


async def meant(app: App, said: dict[str, Any], role: str | None = None) -> Any:
    import nonebot

    payload = {"time": 1, "self_id": BOT, "post_type": "notice", "group_id": GROUP, **said}
    payload = {key: value for key, value in payload.items() if value is not ...}
    async with app.test_api() as ctx:
        adapter = nonebot.get_adapter(Adapter)
        bot = ctx.create_bot(base=Bot, adapter=adapter, self_id=str(BOT))
        if role is not None:
            ctx.should_call_api(
                "get_group_member_info",
                {
                    "group_id": GROUP,
                    "user_id": BOT,
                    "no_cache": True,
                    "_timeout": 1.0,
                },
                result={"role": role} if role else None,
            )
        event = adapter.json_to_event(payload)
        assert isinstance(event, NoticeEvent)
        return await notice_of(bot, event)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            {"notice_type": "group_recall", "user_id": 1, "operator_id": 1, "message_id": -77},
            Recalled(str(BOT), "-77"),
        ),
        (
            {"notice_type": "friend_recall", "group_id": ..., "user_id": 1, "message_id": 5},
            Recalled(str(BOT), "5"),
        ),
        (
            {"notice_type": "group_recall", "user_id": "1", "message_id": "5"},  # no operator
            Recalled(str(BOT), "5"),
        ),
        ({"notice_type": "group_recall", "user_id": 1, "operator_id": 1}, None),
        ({"notice_type": "group_recall", "user_id": 1, "message_id": [5]}, None),
        (MUTE, Silenced(*HERE, seconds=600)),
        ({**MUTE, "operator_id": 3}, Silenced(*HERE, seconds=600)),
        ({**MUTE, "duration": "600", "user_id": str(BOT)}, Silenced(*HERE, seconds=600)),
        ({**MUTE, "duration": None}, Silenced(*HERE)),
        ({**MUTE, "sub_type": "lift_ban", "duration": 0}, Allowed(*HERE)),
        ({**MUTE, "sub_type": "", "duration": 0}, Allowed(*HERE)),
        ({**MUTE, "user_id": 1}, None),
        ({**EVERYBODY, "sub_type": "lift_ban", "duration": 0}, Allowed(*HERE, everybody=True)),
        (
            {"notice_type": "group_decrease", "sub_type": "kick_me", "user_id": BOT},
            Removed(*HERE),
        ),
        ({"notice_type": "group_decrease", "sub_type": "leave", "user_id": BOT}, Removed(*HERE)),
        ({"notice_type": "group_decrease", "sub_type": "kick", "user_id": 1}, None),
        ({"notice_type": "group_increase", "sub_type": "invite", "user_id": BOT}, Joined(*HERE)),
        ({"notice_type": "group_increase", "sub_type": "invite", "user_id": 1}, None),
        ({"notice_type": "group_ban", "user_id": BOT, "group_id": ...}, None),
        ({"notice_type": "something new", "user_id": BOT}, None),
    ],
)
async def test_what_a_notice_means(app: App, said, expected):
    assert await meant(app, said) == expected


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("member", Silenced(*HERE, everybody=True)),
        ("", Silenced(*HERE, everybody=True)),  # nobody says: better silent than banned
        ("admin", None),
        ("owner", None),
    ],
)
async def test_a_muted_group_still_hears_its_admins(app: App, role, expected):
    assert await meant(app, EVERYBODY, role) == expected


@pytest.mark.parametrize(
    ("role", "left", "shut", "muted"),
    [
        ("member", 0, 0, 0.0),
        ("member", 0, -1, math.inf),
        ("member", 0, None, 0.0),  # not every implementation says
        ("admin", 0, -1, 0.0),
        ("member", 3600, -1, pytest.approx(3600, abs=600)),
    ],
)
async def test_after_a_refused_send_the_group_is_asked_about_its_mute(
    monkeypatch, role, left, shut, muted
):
    until = time.time() + left if left else 0

    class Member:
        self_id = "10000"

        async def call_api(self, api: str, **_: object) -> dict[str, object]:
            if api == "get_group_info":
                return {} if shut is None else {"group_all_shut": shut}
            return {"role": role, "shut_up_timestamp": until}

    monkeypatch.setattr(onebot_v11_notices, "get_bots", lambda: {"10000": Member()})
    assert await onebot_v11_notices.muted_seconds(Place("qq", "10000", "700", "1")) == muted
