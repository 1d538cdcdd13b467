"""What people are told when no model writes the reply."""

from chathands.agent import fallback
from chathands.emulation.outcome import Reason


def entry(name, status, *, target="", content="", side_effect="outward"):
    return {
        "name": name,
        "status": status,
        "target": target,
        "content": content,
        "side_effect": side_effect,
    }


def test_two_done_one_failed_one_unknown_are_all_accounted_for():
    text = fallback.account(
        fallback.DEADLINE,
        [
            entry(
                "query_table", "ok", target="销售.xlsx", content="合计\n 1200", side_effect="none"
            ),
            entry("send_dingtalk_message", "ok", target="销售群", content="已发送"),
            entry("send_dingtalk_message", "failed", target="技术群", content="关键词不匹配"),
            entry("send_dingtalk_message", "unknown", target="管理群", content="超时"),
        ],
        [{"name": "set_reminder", "target": "明早"}],
        "A7F3-09",
    )
    assert text == (
        "时间到了，没来得及写出完整的回答。\n"
        "到目前为止：\n"
        "- query_table（销售.xlsx）：已查到：合计 1200\n"
        "- send_dingtalk_message（销售群）：已完成\n"
        "- send_dingtalk_message（技术群）：没有成功：关键词不匹配\n"
        "- send_dingtalk_message（管理群）：不确定是否完成，请人工核对；不会自动重试\n"
        "- set_reminder（明早）：没有执行\n"
        "（编号 A7F3-09，管理员可以用它查看记录）"
    )


def test_a_denied_call_says_why():
    text = fallback.account("停。", [entry("push", "denied", content="没有人确认")], [], "A7F3-09")
    assert "- push：没有执行：没有人确认\n" in text


def test_without_any_call_it_is_one_sentence_with_the_reference():
    assert fallback.account("连不上。", [], [], "A7F3-09") == "连不上。（编号 A7F3-09）"


def test_long_contents_are_cut_to_a_line():
    (line,) = [
        line
        for line in fallback.account(
            "停。", [entry("read", "ok", content="长 \n" * 500, side_effect="none")], [], "A7F3-09"
        ).splitlines()
        if line.startswith("- ")
    ]
    assert len(line) < 160
    assert line.endswith("…")


def test_a_stopped_run_tells_what_it_changed_and_not_what_it_read():
    done = [
        entry("query_table", "ok", side_effect="none", content="1"),
        entry("send", "unknown", target="销售群"),
    ]
    text = fallback.cancelled(done, [], "A7F3-09")
    assert "query_table" not in text
    assert "send（销售群）：不确定" in text


def test_a_stopped_run_that_changed_nothing_says_so():
    done = [entry("query_table", "ok", side_effect="none")]
    assert fallback.cancelled(done, [], "A7F3-09") == "已停止。没有执行任何操作。（编号 A7F3-09）"


def test_every_reason_to_give_up_has_a_sentence():
    for reason in Reason:
        assert fallback.given_up(reason).endswith("。")


def test_what_is_said_of_an_unbacked_claim_is_true_beside_something_that_did_happen():
    done = [entry("note", "ok", target="买菜", side_effect="local")]
    text = fallback.account(fallback.given_up(Reason.UNBACKED_CLAIM), done, [], "A7F3-09")
    assert "note（买菜）：已完成" in text
    assert "没有任何操作" not in text
    assert "没有找到对应的成功操作" in text


def test_the_same_failure_again_and_again_is_one_line():
    down = entry("get_weather", "failed", content="连不上天气服务", side_effect="none")
    sent = entry("send_dingtalk_message", "ok", target="销售群")
    text = fallback.account(fallback.DEADLINE, [down, sent, down, down], [], "A7F3-09")
    assert text.splitlines()[2:4] == [
        "- get_weather：没有成功：连不上天气服务（3 次）",
        "- send_dingtalk_message（销售群）：已完成",
    ]
