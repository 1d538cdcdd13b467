"""A yes is bound to one call of one person in one place, and only some may give it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chathands.toolbox import Approval, Caller, PendingCall, Policy, may_decide
from chathands.toolbox.approval import call_hash
from chathands.toolbox.policy import Rules, ToolRule
from tests.toolbox.kit import ADMIN, BOSS, MEMBER, call

OTHER = Caller("1009", "2001", "member", "", "onebot11", "9")
OWNER = Caller("1004", "2001", "owner", "", "onebot11", "9")


def approval(caller: Caller = MEMBER) -> Approval:
    sending = call("send", robot="甲", content="一")
    pending = PendingCall(
        sending, call_hash(caller, "send", sending.arguments), "甲", "正文：一", "要对外发送。"
    )
    return Approval.ask(pending, number=2, run_id="A7F3-09", caller=caller, now=1000.0, seconds=60)


def test_the_hash_is_bound_to_person_place_tool_and_arguments():
    arguments = {"robot": "甲", "content": "一"}
    mine = call_hash(MEMBER, "send", arguments)
    assert mine == call_hash(MEMBER, "send", {"content": "一", "robot": "甲"})
    assert mine == call_hash(replace(MEMBER, name="改名", role="admin"), "send", arguments)
    others = [
        call_hash(replace(MEMBER, user_id="1"), "send", arguments),
        call_hash(replace(MEMBER, group_id="1"), "send", arguments),
        call_hash(replace(MEMBER, group_id=None), "send", arguments),
        call_hash(replace(MEMBER, platform="http"), "send", arguments),
        call_hash(MEMBER, "sent", arguments),
        call_hash(MEMBER, "send", arguments | {"content": "二"}),
        call_hash(MEMBER, "send", {"robot": "甲一", "content": ""}),
    ]
    assert len({mine, *others}) == len(others) + 1


def test_an_approval_carries_what_is_decided_and_when_it_expires():
    asked = approval()
    assert (asked.number, asked.run_id, asked.target, asked.shown, asked.reason) == (
        2,
        "A7F3-09",
        "甲",
        "正文：一",
        "要对外发送。",
    )
    assert not asked.expired(1059.9)
    assert asked.expired(1060)
    assert asked.id != approval().id


@pytest.mark.parametrize("by", [ADMIN, OWNER, BOSS])
def test_admins_owners_and_superusers_of_the_group_may_decide(by: Caller):
    assert may_decide(approval(), by, Policy()) is None


@pytest.mark.parametrize("by", [MEMBER, OTHER])
def test_members_may_not_not_even_the_asker(by: Caller):
    assert "管理员" in str(may_decide(approval(), by, Policy()))


def test_an_asker_who_is_admin_decides_alone():
    assert may_decide(approval(ADMIN), ADMIN, Policy()) is None


def test_admins_of_another_group_or_platform_may_not():
    for by in (
        replace(ADMIN, group_id="2002"),
        replace(ADMIN, group_id=None),
        replace(ADMIN, platform="http"),
    ):
        assert "别处" in str(may_decide(approval(), by, Policy()))


def test_a_superuser_may_decide_from_anywhere():
    assert (
        may_decide(approval(), Caller("1", None, "superuser", platform="terminal"), Policy())
        is None
    )


def rule(approve: Any) -> Policy:
    return Policy(Rules(tools={"send": ToolRule(approve=approve)}))


def test_where_tools_toml_says_so_the_asker_may_decide_and_no_other_member():
    assert may_decide(approval(), MEMBER, rule("asker")) is None
    assert may_decide(approval(), OTHER, rule("asker")) is not None
    assert may_decide(approval(), ADMIN, rule("asker")) is None


def test_where_tools_toml_says_so_only_a_superuser_may():
    assert may_decide(approval(), ADMIN, rule("superuser")) is not None
    assert may_decide(approval(), BOSS, rule("superuser")) is None


def test_in_private_nobody_else_may():
    asked = approval(replace(MEMBER, group_id=None))
    stranger = replace(ADMIN, group_id=None)
    assert may_decide(asked, stranger, Policy()) is not None
    assert may_decide(asked, replace(MEMBER, group_id=None), rule("asker")) is None
    assert may_decide(asked, replace(MEMBER, group_id=None), Policy()) is not None


@pytest.mark.parametrize("group", ["2001", None])
@pytest.mark.parametrize("approve", ["admin", "superuser"])
def test_the_asker_may_always_take_it_back_and_no_other_member(group: str | None, approve: Any):
    asker = replace(MEMBER, group_id=group)
    asked = approval(asker)
    assert may_decide(asked, asker, rule(approve), approve=False) is None
    assert may_decide(asked, asker, rule(approve), approve=True) is not None
    for other in (replace(OTHER, group_id=group), replace(asker, platform="http")):
        assert may_decide(asked, other, rule(approve), approve=False) is not None
