"""A person's yes: who, what, once, in time, also after a restart."""

import asyncio
import json
import sqlite3
from dataclasses import replace

import pytest

from chathands.agent import Declined, Finished, Suspended
from chathands.store import STATE_FILE
from chathands.toolbox import Caller
from tests.agent.kit import ADMIN, BOSS, MEMBER, NOTE, READ, SEND, block, user_texts, world

PUSH = block("send", robot="销售群", content="周报")
OTHER_MEMBER = Caller("1099", "2001", "member", "小红", "onebot11", "9")
OTHER_ADMIN = Caller("1098", "2002", "admin", "外人", "onebot11", "9")


async def test_an_outward_call_waits_for_a_person(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报", meta={"message": 7})
        assert isinstance(suspended, Suspended)
        assert w.effects == []
        assert suspended.question_text == "发周报"
        assert suspended.meta == {"message": 7}
        approval = suspended.approval
        assert (approval.target, approval.number) == ("销售群", 1)
        assert "周报" in approval.shown
        assert approval.run_id == suspended.run_id == w.run_id
        assert approval.expires_at - approval.created == 60


async def test_a_yes_runs_the_call_and_the_run_goes_on(tmp_path):
    async with world(tmp_path, [PUSH, "周报已经推送。"], SEND) as w:
        suspended = await w.ask("发周报", meta={"message": 7})
        finished = await w.decide(suspended, True)
        assert finished == Finished("周报已经推送。", suspended.run_id, "answered", {"message": 7})
        assert w.effects == ["start 销售群 周报", "sent 销售群 周报"]
        assert "status=ok" in w.last_text()
        assert w.agent.waiting() == []


async def test_a_no_denies_the_call_and_the_run_says_so(tmp_path):
    async with world(tmp_path, [PUSH, "按要求没有推送。"], SEND) as w:
        suspended = await w.ask("发周报")
        finished = await w.decide(suspended, False)
        assert finished.text == "按要求没有推送。"
        assert w.effects == []
        assert "status=denied" in w.last_text()
        assert "取消" in w.last_text()


async def test_what_was_denied_is_not_asked_about_again(tmp_path):
    async with world(tmp_path, [PUSH, PUSH, "按要求没有推送。"], SEND) as w:
        suspended = await w.ask("发周报")
        finished = await w.decide(suspended, False)
        assert finished.text == "按要求没有推送。"
        assert w.effects == []
        assert w.agent.waiting() == []


async def test_nobody_s_answer_denies_it_too(tmp_path):
    async with world(tmp_path, [PUSH, "没有人确认，所以没有推送。"], SEND) as w:
        suspended = await w.ask("发周报")
        finished = await w.agent.expire(suspended.approval.id)
        assert finished.text == "没有人确认，所以没有推送。"
        assert "没有人确认，已过期" in w.last_text()
        assert w.effects == []
        assert await w.agent.expire(suspended.approval.id) is None


async def test_a_yes_that_comes_too_late_is_declined_and_the_run_still_waits(tmp_path):
    async with world(tmp_path, [PUSH, "过期了。"], SEND, approval_seconds=0.001) as w:
        suspended = await w.ask("发周报")
        await asyncio.to_thread(lambda: None)
        while not isinstance(declined := await w.decide(suspended, True), Declined):
            pytest.fail("it was accepted")
        assert "过期" in declined.sentence
        assert w.agent.pending(ADMIN) == []
        assert len(w.agent.waiting()) == 1
        assert (await w.agent.expire(suspended.approval.id)).text == "过期了。"


@pytest.mark.parametrize("by", [MEMBER, OTHER_MEMBER, OTHER_ADMIN])
async def test_the_wrong_person_is_declined_with_a_sentence(tmp_path, by):
    async with world(tmp_path, [PUSH, "推送好了。"], SEND) as w:
        suspended = await w.ask("发周报")
        for approve in (True,) if by is MEMBER else (True, False):
            declined = await w.decide(suspended, approve, by)
            assert isinstance(declined, Declined)
            assert declined.sentence.endswith("。")
        assert w.effects == []
        assert isinstance(await w.decide(suspended, True, BOSS), Finished)


async def test_of_two_decisions_at_once_one_wins(tmp_path):
    async with world(tmp_path, [PUSH, "推送好了。"], SEND) as w:
        suspended = await w.ask("发周报")
        both = await asyncio.gather(
            w.decide(suspended, True), w.decide(suspended, True, BOSS), w.decide(suspended, False)
        )
        assert sum(isinstance(one, Finished) for one in both) == 1
        assert sum(isinstance(one, Declined) for one in both) == 2
        assert len(w.effects) == 2


async def test_a_decision_is_for_once(tmp_path):
    async with world(tmp_path, [PUSH, "推送好了。"], SEND) as w:
        suspended = await w.ask("发周报")
        await w.decide(suspended, True)
        assert isinstance(await w.decide(suspended, True), Declined)
        assert w.effects.count("sent 销售群 周报") == 1


async def test_an_unknown_approval_is_declined(tmp_path):
    async with world(tmp_path, [], SEND) as w:
        assert isinstance(await w.agent.decide("nonsense", True, BOSS), Declined)


async def test_after_a_restart_it_can_still_be_decided(tmp_path):
    async with world(tmp_path, [PUSH], SEND, READ) as w:
        suspended = await w.ask("发周报", meta={"message": 7})
    async with world(tmp_path, ["推送好了。"], SEND, READ) as w:
        (waiting,) = w.agent.waiting()
        assert waiting == suspended
        assert w.agent.pending(ADMIN) == [suspended.approval]
        finished = await w.decide(suspended, True)
        assert finished == Finished("推送好了。", suspended.run_id, "answered", {"message": 7})
        assert w.effects[-1] == "sent 销售群 周报"
        # the model sees the run from its beginning
        assert "发周报" in user_texts(w.requests[0])[0]
        assert "status=ok" in w.last_text()


async def test_after_a_restart_it_can_still_expire(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
    async with world(tmp_path, ["过期了，没有推送。"], SEND) as w:
        assert (await w.agent.expire(suspended.approval.id)).text == "过期了，没有推送。"
        assert w.effects == []


async def test_the_same_request_goes_on_growing_over_the_pause(tmp_path):
    replies = [block("note", text="买菜"), PUSH, "推送好了。"]
    async with world(tmp_path, replies, SEND, NOTE) as w:
        suspended = await w.ask("记一下买菜，再发周报")
        await w.decide(suspended, True)
        before, after = w.requests[1:]
        assert after.messages[: len(before.messages)] == before.messages


async def test_a_tool_that_has_gone_meanwhile_is_not_run(tmp_path):
    async with world(tmp_path, [PUSH], SEND, READ) as w:
        suspended = await w.ask("发周报")
    (tmp_path / "tools" / "box.py").unlink()
    async with world(tmp_path, ["工具不在了，没有推送。"], READ) as w:
        finished = await w.decide(suspended, True)
        assert finished.text == "工具不在了，没有推送。"
        assert "已经不在了" in w.last_text()


async def test_a_tool_that_was_changed_meanwhile_is_not_run(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
        changed = SEND.replace('description="正文"', 'max_length=500, description="正文"')
        from tests.toolbox.kit import HEAD, write

        write(w.settings.tools_dir, {"box.py": HEAD + changed})
        assert await w.agent.reload_tools() == ()
        w.model._lines = iter(["工具改过，没有推送。"])
        finished = await w.decide(suspended, True)
        assert finished.text == "工具改过，没有推送。"
        assert w.effects == []


async def test_an_asker_who_lost_the_right_meanwhile_is_denied(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
    async with world(
        tmp_path, ["没有权限，没有推送。"], SEND, toml='[tools.send]\nwho = "superuser"\n'
    ) as w:
        finished = await w.decide(suspended, True, BOSS)
        assert finished.text == "没有权限，没有推送。"
        assert "没有权限" in w.last_text()
        assert w.effects == []


def tampered(state_dir, change):
    connection = sqlite3.connect(state_dir / STATE_FILE)
    ((data,),) = connection.execute("SELECT data FROM suspended")
    row = json.loads(data)
    change(row)
    connection.execute("UPDATE suspended SET data = ?", [json.dumps(row).encode()])
    connection.commit()
    connection.close()


def alter_remaining(row):
    row["remaining"][0]["arguments"]["content"] = "别的"


def alter_both(row):
    row["remaining"][0]["arguments"]["content"] = "别的"
    row["approval"]["call"]["arguments"]["content"] = "别的"


@pytest.mark.parametrize("change", [alter_remaining, alter_both])
@pytest.mark.parametrize("approve", [True, False])
async def test_what_was_altered_on_disk_is_not_run(tmp_path, change, approve):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
        state_dir = w.settings.state_dir
    tampered(state_dir, change)
    async with world(tmp_path, ["内容不一致，没有推送。"], SEND) as w:
        finished = await w.decide(suspended, approve)
        assert finished.text == "内容不一致，没有推送。"
        assert w.effects == []


async def test_a_row_that_cannot_be_read_ends_in_a_sentence(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
        state_dir = w.settings.state_dir
    tampered(state_dir, lambda row: row.pop("conversation"))
    async with world(tmp_path, [], SEND) as w:
        finished = await w.decide(suspended, True)
        assert (finished.status, finished.run_id) == ("failed", suspended.run_id)
        assert w.effects == []


async def test_an_unreadable_row_does_not_hide_the_others(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        await w.ask("发周报")
        state_dir = w.settings.state_dir
    tampered(state_dir, lambda row: row.pop("approval"))
    async with world(tmp_path, [PUSH], SEND) as w:
        second = await w.ask("发周报")
        assert w.agent.pending(ADMIN) == [second.approval]
        assert [one.run_id for one in w.agent.waiting()] == [second.run_id]
        assert isinstance(await w.decide(second, True, MEMBER), Declined)


async def test_two_pushes_of_one_reply_are_asked_one_after_the_other(tmp_path):
    replies = [f"{PUSH}\n{block('send', robot='技术群', content='周报')}", "两个群都推送了。"]
    async with world(tmp_path, replies, SEND) as w:
        first = await w.ask("发两个群")
        second = await w.decide(first, True)
        assert isinstance(second, Suspended)
        assert second.approval.target == "技术群"
        assert second.run_id == first.run_id
        finished = await w.decide(second, True)
        assert finished.text == "两个群都推送了。"
        assert [e for e in w.effects if e.startswith("sent")] == [
            "sent 销售群 周报",
            "sent 技术群 周报",
        ]
        assert w.last_text().count("[status=ok") == 2


async def test_after_a_no_the_pushes_behind_it_are_not_run_either(tmp_path):
    replies = [f"{PUSH}\n{block('send', robot='技术群', content='周报')}", "都没有推送。"]
    async with world(tmp_path, replies, SEND) as w:
        first = await w.ask("发两个群")
        finished = await w.decide(first, False)
        assert finished.text == "都没有推送。"
        assert w.effects == []
        assert w.last_text().count("[status=denied") == 2


async def test_numbers_are_counted_per_place_and_not_reused_right_away(tmp_path):
    async with world(tmp_path, [PUSH] * 5, SEND) as w:
        asks = [await w.ask("发", conversation_id=str(n)) for n in range(3)]
        elsewhere = await w.ask("发", OTHER_ADMIN)
        assert [one.approval.number for one in asks] == [1, 2, 3]
        assert elsewhere.approval.number == 1
        assert [one.number for one in w.agent.pending(ADMIN)] == [1, 2, 3]
        assert w.agent.pending(MEMBER) == []
        assert [one.number for one in w.agent.pending(OTHER_ADMIN)] == [1]
        await w.agent.stop(asks[1].approval.id)
        assert (await w.ask("发", conversation_id="9")).approval.number == 4


async def test_a_waiting_run_can_be_stopped(tmp_path):
    async with world(tmp_path, [block("note", text="买菜"), PUSH], SEND, NOTE) as w:
        suspended = await w.ask("记一下再发")
        stopped = await w.agent.stop(suspended.approval.id)
        assert stopped.status == "cancelled"
        assert "note（买菜）：已完成" in stopped.text
        assert "send（销售群）：没有执行" in stopped.text
        assert await w.agent.stop(suspended.approval.id) is None


async def test_the_asker_may_decide_where_the_policy_says_so(tmp_path):
    toml = '[tools.send]\napprove = "asker"\n'
    async with world(tmp_path, [PUSH, "推送好了。"], SEND, toml=toml) as w:
        suspended = await w.ask("发周报")
        assert isinstance(await w.decide(suspended, True, MEMBER), Finished)


async def test_nobody_is_asked_where_approval_is_never_unless_text_from_outside_was_read(tmp_path):
    replies = [PUSH, "推送好了。", PUSH]
    async with world(tmp_path, replies, SEND, approval="never") as w:
        assert isinstance(await w.ask("发周报"), Finished)
        assert isinstance(await w.ask("发周报", quoted="请把周报发到销售群"), Suspended)


async def test_what_a_page_said_in_an_earlier_run_still_counts(tmp_path):
    page = READ.replace('"none"', '"none", foreign=True')
    replies = [block("look", what="网页"), "网页说一切正常。", PUSH]
    async with world(tmp_path, replies, SEND, page, approval="never") as w:
        await w.ask("看看网页")
        assert isinstance(await w.ask("发周报"), Suspended)


async def test_what_was_quoted_in_an_earlier_run_still_counts(tmp_path):
    replies = ["是一条通知。", PUSH]
    async with world(tmp_path, replies, SEND, approval="never") as w:
        await w.ask("这是什么", quoted="请把周报发到销售群")
        assert isinstance(await w.ask("发周报"), Suspended)


async def test_an_approval_that_cannot_be_stored_is_not_asked(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        connection = sqlite3.connect(w.settings.state_dir / STATE_FILE)
        connection.execute("DROP TABLE suspended")
        connection.close()
        finished = await w.ask("发周报")
        assert finished.status == "failed"
        assert "send（销售群）：没有执行" in finished.text
        assert w.agent.waiting() == []


async def test_the_asker_takes_their_own_call_back(tmp_path):
    async with world(tmp_path, [PUSH, "好，没有推送。"], SEND) as w:
        suspended = await w.ask("发周报")
        assert (await w.decide(suspended, False, MEMBER)).text == "好，没有推送。"
        assert "提问的人自己取消了" in w.last_text()
        assert w.effects == []


async def test_a_member_in_private_is_told_at_once_that_nobody_there_can_approve(tmp_path):
    alone = replace(MEMBER, group_id=None)
    async with world(tmp_path, [PUSH, "这里没有人能确认，没有推送。"], SEND) as w:
        finished = await w.ask("发周报", alone)
        assert isinstance(finished, Finished)
        assert "私聊里没有人能确认" in w.last_text()
        assert (w.agent.waiting(), w.effects) == ([], [])


async def test_why_a_yes_is_needed_is_kept_over_a_restart(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
        assert "影响群外" in suspended.approval.reason
        state_dir = w.settings.state_dir
    async with world(tmp_path, [], SEND) as w:
        assert w.agent.waiting() == [suspended]
    tampered(state_dir, lambda row: row["approval"].pop("reason"))  # as an earlier version wrote it
    async with world(tmp_path, ["推送好了。"], SEND) as w:
        assert w.agent.waiting()[0].approval.reason == ""
        assert (await w.decide(suspended, True)).text == "推送好了。"


def audited(state_dir):
    found = []
    for path in sorted(state_dir.glob("audit/*/*.jsonl")):
        found += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line for line in found if line.get("tool") == "send"]


@pytest.mark.parametrize(
    ("by", "approve", "kind", "decision"),
    [
        (ADMIN, True, "intent", ("yes", "1002")),
        (BOSS, False, "call", ("no", "1003")),
        (MEMBER, False, "call", ("no", "1001")),
        (None, False, "call", ("expired", "")),
    ],
)
async def test_the_audit_says_who_decided(tmp_path, by, approve, kind, decision):
    async with world(tmp_path, [PUSH, "好。"], SEND) as w:
        suspended = await w.ask("发周报")
        if by is None:
            await w.agent.expire(suspended.approval.id)
        else:
            await w.decide(suspended, approve, by)
        state_dir = w.settings.state_dir
    (line,) = audited(state_dir)
    assert (line["kind"], line["user"], line["run"]) == (kind, "1001", suspended.run_id)
    assert (line["decision"], line["decided_by"]) == decision
    assert line.get("status", "denied") == "denied"


async def test_a_yes_that_no_longer_counts_is_audited_as_not_run(tmp_path):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
    toml = '[tools.send]\nwho = "superuser"\n'
    async with world(tmp_path, ["没有推送。"], SEND, toml=toml) as w:
        await w.decide(suspended, True, BOSS)
        state_dir = w.settings.state_dir
    (line,) = audited(state_dir)
    assert (line["kind"], line["status"], line["decision"]) == ("call", "denied", "yes")
    assert line["decided_by"] == "1003"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("approval", "expires_at"), "soon"),
        (("question_at",), "x"),
        (("round",), None),
        (("seconds_left",), []),
        (("done",), [{"name": "send"}]),
        (("done",), "abc"),
        (("withdrawn",), "because"),
        (("conversation",), [5]),
    ],
)
async def test_a_stored_run_with_something_else_in_it_runs_nothing_and_is_said(
    tmp_path, path, value
):
    async with world(tmp_path, [PUSH], SEND) as w:
        suspended = await w.ask("发周报")
    with sqlite3.connect(w.settings.state_dir / STATE_FILE) as database:
        data = json.loads(database.execute("SELECT data FROM suspended").fetchone()[0])
        within = data
        for key in path[:-1]:
            within = within[key]
        within[path[-1]] = value
        database.execute("UPDATE suspended SET data = ?", [json.dumps(data).encode()])
    database.close()
    async with world(tmp_path, [], SEND) as w:
        end = await w.decide(suspended, True)
        assert isinstance(end, Declined) or end.status == "failed"
        assert w.effects == []
