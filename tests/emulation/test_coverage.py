"""What calls leave out of what the question lists, and how the rest is asked for and joined."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation import Answer, Calls, Reason, Retry, Text, Turn, render_block
from chathands.emulation.coverage import left_out
from chathands.emulation.outcome import Basis

ORDER = ToolSpec(
    "order_status",
    "查询订单 order status",
    {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
    "none",
)
LIST = ToolSpec(
    "cancel_orders",
    "取消订单 cancel orders",
    {
        "type": "object",
        "properties": {"orders": {"type": "array", "items": {"type": "string"}}},
        "required": ["orders"],
    },
    "none",
)
WEATHER = ToolSpec(
    "weather",
    "查询天气 weather",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "none",
)


def calls(*arguments):
    return [ToolCall(f"c{n}", "t", given) for n, given in enumerate(arguments)]


@pytest.mark.parametrize(
    ("question", "arguments", "missing"),
    [
        ("查一下订单 DD1001、DD1002", [{"order": "DD1001"}], ("DD1002",)),
        ("查一下订单 DD1001、DD1002", [{"order": "DD1001"}, {"order": "DD1002"}], ()),
        ("Convert 250 USD and 900 USD to euros", [{"amount": 250}], ("900",)),
        ("每月 5% 和 3.5% 的利率各付多少", [{"rate": 0.035}, {"rate": 0.05}], ()),
        ("北京和上海明天天气怎么样", [{"city": "北京"}], ("上海",)),
        ("北京、上海和广州明天哪里最热", [{"city": "北京"}, {"city": "上海"}], ("广州",)),
        ("Weather in Lima, Quito and Bogota", [{"city": "Lima"}], ("Quito",)),
        ("Weather in Boston, Massachusetts", [{"city": "Boston"}], ()),
        ("Ratings of “Emma” and of “Walden”", [{"title": "Emma"}], ("Walden",)),
        ("3万和5万各存一年利息多少", [{"amount": 30000}, {"amount": 50000}], ()),
        ("How is 250 going?", [{"text": "nothing of the kind"}], ()),
        ("打开 2024 年的 9月.xlsx，读前 20 行", [{"path": "9月.xlsx", "rows": 20}], ()),
        ("Move 1. the desk 2. the lamp for user_12", [{"user": "user_12"}], ()),
        ("字段有 'amount' 和 'name'，查 'DD1'", [{"id": "DD1"}], ()),
        ("", [{"order": "DD1001"}], ()),
        ("查 A1001 的订单，然后通知 A2002", [{"order": "A1001"}], ()),
        ("读 sales_9.xlsx，存成 report_10.xlsx", [{"path": "sales_9.xlsx"}], ()),
        ("查 A1001 和 A2002 的订单，再通知 B3003", [{"order": "A1001"}], ("A2002",)),
        ("看前 20 行，算出金额超过 50 的", [{"rows": 20}], ()),
        ("查订单 10086，下单金额 12000", [{"order": "10086"}], ()),
        ("查订单 10086、10087，电话 13800138000", [{"order": "10086"}], ("10087",)),
        ("100 美元和 200 欧元各换多少", [{"amount": 100}], ("200",)),
        ("2024-09-15 的会，30 分钟的那个", [{"date": "2024-09-15"}], ()),
        ("查一下张三和他的订单", [{"name": "张三"}], ()),
        ("杭州和今天一样热吗", [{"city": "杭州"}], ()),
        ("北京与会人员有哪些", [{"city": "北京"}], ()),
        ("上海还有货吗", [{"city": "上海"}], ()),
        ("小王和大家说一声", [{"to": "小王"}], ()),
        ("Can Lima and I meet?", [{"city": "Lima"}], ()),
        ("第 2 个和第 3 个", [{"order": "2"}], ()),
    ],
)
def test_what_is_listed_beside_something_carried_is_left_out(question, arguments, missing):
    assert left_out(question, calls(*arguments)) == missing


def test_what_no_call_carries_the_like_of_may_be_for_a_later_step():
    question = "读 9月.xlsx 的前 20 行，然后发给 13800138000"
    assert left_out(question, calls({"path": "9月.xlsx", "rows": 20})) == ()


@given(st.text(max_size=300), st.dictionaries(st.text(max_size=5), st.text(max_size=40)))
def test_it_never_fails_and_names_only_what_the_question_says(question, arguments):
    for name in left_out(question, calls(arguments)):
        assert name in question


def played(question, replies, tools, **options):
    """The last outcome, the reasons of the retries, and the turn."""
    turn = Turn([Message.user(question)], tools, language="zh", **options)
    reasons = []
    for reply in replies:
        turn.request()
        turn.feed(Text(reply))
        outcome = turn.finish("stop")
        if not isinstance(outcome, Retry):
            return outcome, reasons, turn
        reasons.append((outcome.reason, outcome.basis))
    raise AssertionError(f"still asking: {reasons}")


def block(name, **arguments):
    return render_block(name, arguments)


def orders(outcome):
    assert isinstance(outcome, Calls)
    return [call.arguments["order"] for call in outcome.calls]


def test_the_rest_is_asked_for_and_all_calls_run_together():
    replies = [block("order_status", order=f"DD100{n}") for n in (1, 2, 3)]
    outcome, reasons, turn = played("查订单 DD1001、DD1002、DD1003", replies, [ORDER])
    assert orders(outcome) == ["DD1001", "DD1002", "DD1003"]
    assert reasons == [(Reason.INCOMPLETE, Basis.PLAIN)] * 2
    assert [len(message.calls) for message in turn.transcript if message.calls] == [3]
    assert "DD1002 / DD1003" in turn.transcript[1].text
    assert len({call.id for call in outcome.calls}) == 3


def test_a_reply_that_writes_them_all_again_stands_alone():
    all_of_them = "\n".join(block("order_status", order=f"DD100{n}") for n in (1, 2))
    replies = [block("order_status", order="DD1001"), all_of_them]
    outcome, _, _ = played("查订单 DD1001、DD1002", replies, [ORDER])
    assert orders(outcome) == ["DD1001", "DD1002"]


def test_a_short_list_is_written_again_as_a_whole():
    replies = [
        block("cancel_orders", orders=["DD1001"]),
        block("cancel_orders", orders=["DD1001", "DD1002"]),
    ]
    outcome, reasons, _ = played("取消订单 DD1001、DD1002", replies, [LIST])
    assert reasons == [(Reason.INCOMPLETE, Basis.IN_LIST)]
    assert [dict(call.arguments) for call in outcome.calls] == [{"orders": ["DD1001", "DD1002"]}]


@pytest.mark.parametrize(
    "second", [block("order_status", order="DD1001"), "就查这一个。", "", '```json action\n{"to']
)
def test_where_no_more_comes_the_first_calls_run(second):
    replies = [block("order_status", order="DD1001"), second]
    outcome, _, _ = played("查订单 DD1001、DD1002", replies, [ORDER])
    assert orders(outcome) == ["DD1001"]


def test_a_city_beside_a_city_is_asked_for():
    replies = [block("weather", city="北京"), block("weather", city="上海")]
    outcome, _, _ = played("北京和上海哪个更热", replies, [WEATHER])
    assert [call.arguments["city"] for call in outcome.calls] == ["北京", "上海"]


def test_a_text_that_is_sent_may_put_it_in_its_own_words_but_a_group_is_a_group():
    send = ToolSpec("send_note", "发送通知到群", {"type": "object"}, "outward")
    question = "在销售群发一条：标题“例会”，正文“下午 15 点 30 开例会”"
    said = block("send_note", group="销售群", title="例会", content="下午三点半")
    outcome, reasons, _ = played(question, [said], [send])
    assert isinstance(outcome, Calls)
    assert reasons == []
    replies = [block("send_note", group=group, content="放假") for group in ("销售群", "行政群")]
    outcome, _, _ = played("给销售群和行政群各发一条：放假", replies, [send])
    assert [call.arguments["group"] for call in outcome.calls] == ["销售群", "行政群"]


def test_later_decisions_of_a_run_are_not_asked():
    call = ToolCall("a", "order_status", {"order": "DD1001"})
    conversation = [
        Message.user("查订单 DD1001，有问题再查 DD1002"),
        Message.assistant("", [call]),
        Message.tool(ToolResult("a", "order_status", Status.OK, "正常")),
    ]
    turn = Turn(conversation, [ORDER])
    turn.feed(Text(block("order_status", order="DD1001")))
    outcome = turn.finish("stop")
    assert not (isinstance(outcome, Retry) and outcome.reason is Reason.INCOMPLETE)


def test_without_the_review_or_without_corrections_nothing_is_asked():
    question, reply = "查订单 DD1001、DD1002", block("order_status", order="DD1001")
    for options in ({"reviews": frozenset()}, {"max_corrections": 0}, {"choice": "none"}):
        turn = Turn([Message.user(question)], [ORDER], **options)
        turn.feed(Text(reply))
        outcome = turn.finish("stop")
        assert not isinstance(outcome, Retry) or outcome.reason is not Reason.INCOMPLETE
    turn = Turn([Message.user(question)], [ORDER])
    turn.feed(Text(reply))
    assert orders(turn.finish("stop", may_retry=False)) == ["DD1001"]


def test_what_streams_is_not_called_back():
    turn = Turn([Message.user("查订单 DD1001、DD1002")], [ORDER], commit="stream")
    turn.feed(Text(block("order_status", order="DD1001")))
    assert orders(turn.finish("stop")) == ["DD1001"]


def test_asking_for_more_uses_up_no_correction():
    replies = [
        block("order_status", order="DD1001"),
        block("order_status", order="DD1002"),
        block("order_status", order="DD1003"),
        block("order_status", order="DD1004"),
    ]
    question = "查订单 DD1001、DD1002、DD1003、DD1004"
    outcome, reasons, _ = played(question, replies, [ORDER])
    assert len(orders(outcome)) == 4
    assert len(reasons) == 3


def test_a_plain_answer_is_left_alone():
    outcome, reasons, _ = played("“供应链”和“物流”用英语怎么说", ["supply chain"], [ORDER])
    assert isinstance(outcome, Answer)
    assert reasons == []


def test_the_request_for_the_rest_is_one_line_whatever_the_question_holds():
    question = "查订单 DD1001、" + "、".join(f"DD{n}" for n in range(2000, 2060)) + "\n# 新规则"
    turn = Turn([Message.user(question)], [ORDER])
    turn.feed(Text(block("order_status", order="DD1001")))
    assert isinstance(turn.finish("stop"), Retry)
    said = turn.transcript[-1].text
    assert "\n" not in said
    assert len(said) < 400
    assert json.dumps("DD2000") not in said


# --- what is joined, and what is never done twice

NOTE = ToolSpec(
    "send_note",
    "发送通知到群",
    {"type": "object", "properties": {"group": {}, "content": {"type": "string"}}},
    "outward",
)
TO_BOTH = "给销售群和行政群各发一条：明天放假"


def sent(outcome):
    assert isinstance(outcome, Calls)
    return [(call.arguments["group"], call.arguments["content"]) for call in outcome.calls]


@pytest.mark.parametrize("effect", ["outward", "local", "unknown"])
def test_what_has_an_effect_is_not_done_again_in_other_words(effect):
    tool = ToolSpec("send_note", NOTE.description, NOTE.parameters, effect)
    first = block("send_note", group="销售群", content="明天放假")
    both = [
        block("send_note", group="销售群", content="各位，明天休息，行政群已另发"),
        block("send_note", group="行政群", content="各位，明天休息"),
    ]
    for second in ("\n".join(both), both[1], "\n".join(reversed(both))):
        outcome, _, _ = played(TO_BOTH, [first, second], [tool])
        assert sorted(group for group, _ in sent(outcome)) == ["行政群", "销售群"]
    outcome, _, _ = played(TO_BOTH, [first, both[0]], [tool])
    assert [group for group, _ in sent(outcome)] == ["销售群"]


def test_a_longer_list_takes_the_place_of_the_short_one():
    first = block("send_note", group=["销售群"], content="明天放假")
    second = block("send_note", group=["销售群", "行政群"], content="明天休息")
    outcome, _, _ = played(TO_BOTH, [first, second], [NOTE])
    assert sent(outcome) == [(["销售群", "行政群"], "明天休息")]


def test_a_call_that_speaks_of_the_first_one_does_not_take_its_place():
    first = block("send_note", group="销售群", content="明天放假")
    second = block("send_note", group="行政群", content="明天放假，销售群也放假")
    outcome, _, _ = played(TO_BOTH, [first, second], [NOTE])
    assert [group for group, _ in sent(outcome)] == ["销售群", "行政群"]


def test_a_read_that_was_gathered_is_never_lost_to_a_later_one():
    replies = [block("weather", city="北京"), block("weather", city="Shanghai")]
    outcome, _, _ = played("北京和上海哪个更热", replies, [WEATHER])
    assert isinstance(outcome, Calls)
    assert [call.arguments["city"] for call in outcome.calls] == ["北京", "Shanghai"]


def test_text_that_has_left_takes_no_call_with_it():
    reviews = frozenset({Reason.INCOMPLETE, Reason.UNGROUNDED})
    turn = Turn([Message.user("北京和上海哪个更热")], [WEATHER], commit="stream", reviews=reviews)
    turn.feed(Text("北京和上海的天气都在这里，先从北京开始。\n" * 4))
    assert turn.sent
    turn.feed(Text(block("weather", city="北京")))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert [call.arguments["city"] for call in outcome.calls] == ["北京"]


# --- cost

LONG = 100_000
HOSTILE = [
    *("aa, ", "aa,", '"ab" ', "12 ", "1,234,", "9", "AB12 ", "-", "_", "a-", "\n> ", "、", "ß"),
    *("北京和上海、", "aa      ", "‘’", "1e", "一百万"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_question_takes_long(piece):
    question = piece * (LONG // len(piece))
    many = {"l": [f"A{n}" for n in range(3000)]}
    began = time.process_time()
    for arguments in ({"a": "aa", "b": "北京", "c": 12, "d": "AB12"}, {"a": question}, many):
        left_out(question, calls(arguments))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "value",
    [None, True, float("nan"), float("inf"), -(10**5000), "\ud800", b"DD1001", "9" * 5000, [[]]],
    ids=lambda value: type(value).__name__,
)
def test_no_value_is_too_odd(value):
    question = "查订单 DD1001、DD1002，数量 10 和 20，１２ ٣ 1e999 1,2,3"
    assert "DD1002" in left_out(question, calls({"order": "DD1001", "other": value}))


def test_no_nesting_is_too_deep():
    deep: object = "DD1001"
    for _ in range(20_000):
        deep = [deep]
    assert left_out("查订单 DD1001、DD1002", calls({"order": deep})) == ("DD1002",)
