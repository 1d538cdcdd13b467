"""Deeds, figures and argument values that come from nowhere; and those that do not."""

from __future__ import annotations

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolExample, ToolResult, ToolSpec
from chathands.emulation.claims import unbacked_claim, ungrounded
from chathands.emulation.figures import figures_of, unbacked_figure
from chathands.emulation.marks import dropped_result
from chathands.emulation.matching import best_read_tool, effects_asked_for, fitting
from chathands.emulation.outcome import Answer, Basis, Calls, ParsedReply, Reason, Retry
from chathands.emulation.review import review_reply

TEXT = {"type": "string"}
READ = ToolSpec(
    "read_table",
    "读取 Excel 表格的前若干行",
    {"type": "object", "properties": {"path": TEXT, "sheet": TEXT, "limit": {"type": "integer"}}},
    "none",
    (ToolExample("看看 员工.xlsx", {"path": "员工.xlsx", "sheet": "在职"}),),
)
WEATHER = ToolSpec(
    "get_weather",
    "查询一个城市的天气",
    {"type": "object", "properties": {"city": TEXT, "days": {"type": "integer"}, "date": TEXT}},
    "none",
)
SEND = ToolSpec(
    "send_note",
    "发送通知到群",
    {
        "type": "object",
        "properties": {"robot": {"enum": ["甲群"]}, "to": TEXT, "title": TEXT, "content": TEXT},
    },
    "outward",
)
TOOLS = (READ, WEATHER, SEND)
TABLE = (
    "| 区域 | 销售额 | 订单数 |\n|---|---|---|\n| 华东 | 182300 | 412 |\n"
    "| 华南 | 96450.50 | 230 |\n| 西南 | 55120 | 131 |\n共 3 行"
)


def run(question, *steps):
    conversation = [Message.user(question)]
    for n, (name, status, content) in enumerate(steps):
        conversation.append(Message.assistant("", [ToolCall(f"c{n}", name, {})]))
        conversation.append(Message.tool(ToolResult(f"c{n}", name, status, content)))
    return conversation


# --- claims

NOTHING = run("把日报发到甲群")
SENT = run("把日报发到甲群", ("send_note", Status.OK, "已推送"))


@pytest.mark.parametrize(
    "text",
    [
        "消息已发送到甲群。",
        "好的，已经帮您把日报推送到群里了。",
        "日报发送成功！",
        "已完成。",
        "I have sent the report to the group.",
        "The message has been sent.",
        "Done.",
    ],
)
def test_a_deed_needs_the_call_that_did_it(text):
    assert unbacked_claim(text, TOOLS, NOTHING)
    assert unbacked_claim(text, TOOLS, SENT) is None


@pytest.mark.parametrize("status", [Status.FAILED, Status.DENIED, Status.UNKNOWN])
def test_a_call_that_did_not_succeed_backs_nothing(status):
    conversation = run("把日报发到甲群", ("send_note", status, "没有"))
    assert unbacked_claim("已发送到甲群。", TOOLS, conversation)


def test_a_deed_of_an_earlier_run_does_not_count():
    conversation = [*SENT, Message.assistant("已发送。"), Message.user("再发一次到甲群")]
    assert unbacked_claim("已再次发送。", TOOLS, conversation)


def test_a_question_about_an_earlier_deed_may_be_answered():
    conversation = [*SENT, Message.assistant("已发送。"), Message.user("刚才的发出去了吗")]
    assert unbacked_claim("已发送到甲群。", TOOLS, conversation) is None


@pytest.mark.parametrize(
    "text",
    [
        "还没有发送，需要我现在发吗？",
        "消息没有发送成功。",
        "确认后我就发送。",
        "要我把它发到群里吗？",
        "日报写好了，内容如下：今天一切正常。",
        "It has not been sent yet.",
        "中位数的计算已经讲完。",
    ],
)
def test_no_deed_is_claimed(text):
    assert unbacked_claim(text, TOOLS, NOTHING) is None


def test_a_state_told_by_a_result_is_no_claim():
    conversation = run("订单怎么样了", ("read_table", Status.OK, "| 订单 | 已取消 |"))
    assert unbacked_claim("订单已取消。", TOOLS, conversation) is None


def test_looking_something_up_needs_a_result():
    assert unbacked_claim("我已经查看了表格，一切正常。", TOOLS, run("看看表格"))
    looked = run("看看表格", ("read_table", Status.OK, TABLE))
    assert unbacked_claim("我已经查看了表格，一切正常。", TOOLS, looked) is None


# --- figures

LOOKED = run("8月销售.xlsx 里哪个区域最好", ("read_table", Status.OK, TABLE))


@pytest.mark.parametrize(
    "text",
    [
        "华东最好，182,300 元，订单 412 笔。",
        "华东 18.23 万元，约 18 万。",
        "华南 96450.5 元，也就是 9.6 万。",
        "合计 333,870.5 元，共 773 单。",
        "华东占 54.6%，比华南多 85,849.5 元。",
        "平均每个区域 111,290.17 元。",
        "华南比西南高 75.0%。",
        "共 3 个区域：1. 华东 2. 华南 3. 西南",
        "以上是 2026 年 8 月的数据，更新于 2026-09-01 10:30。",
        "华东最好（见 8月销售.xlsx 第 2 行）。",
        "如果再卖 50000 元就破纪录了。",
        "１８２３００ 元",
    ],
)
def test_figures_that_come_from_somewhere(text):
    assert unbacked_figure(text, TOOLS, LOOKED) is None


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("华东 19.3 万元。", "19.3 万元"),
        ("西南同比增长 12.5%。", "12.5%"),
        ("合计 400000 元。", "400000 元"),
        ("华东有 5123 个客户。", "5123"),
        ("合计约为400000元左右。", "400000元"),
    ],
)
def test_figures_that_come_from_nowhere(text, figure):
    assert unbacked_figure(text, TOOLS, LOOKED) == figure


def test_a_guess_instead_of_a_look_is_unbacked():
    assert unbacked_figure("厦门今天 25℃，湿度 60%。", TOOLS, run("厦门天气怎样")) == "25℃"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("光速是多少", "约 299792 公里每秒。"),
        ("中位数和平均数有什么区别", "1、2、100 的平均数是 34.3。"),
        ("怎么看天气预报", "拨打 12121 就行。"),
        ("讲个笑话", "从前有 1000 只羊。"),
    ],
)
def test_general_knowledge_is_not_judged(question, text):
    assert unbacked_figure(text, TOOLS, run(question)) is None


def test_a_figure_from_the_question_or_an_earlier_round_is_backed():
    conversation = [*LOOKED, Message.assistant("华东 182300"), Message.user("表格里一半是多少")]
    assert unbacked_figure("华东一共 182300 元", TOOLS, conversation) is None
    assert unbacked_figure("预算 888 元", TOOLS, run("表格预算是 888 吗")) is None


def test_numbers_are_read_as_they_are_meant():
    read = {figure.raw: figure.value for figure in figures_of("1,234.50 元 3.2亿 15% 1.5 million")}
    assert read == {"1,234.50 元": 1234.5, "3.2亿": 3.2e8, "15%": 15.0, "1.5 million": 1.5e6}
    assert figures_of("v2.1.3 Q3 第 3 名 10:30 2026-09-01 sales2024.xlsx `42`") == []


# --- grounding


def call(spec, **arguments):
    return ToolCall("x", spec.name, arguments)


@pytest.mark.parametrize(
    ("question", "spec", "arguments"),
    [
        ("厦门天气", WEATHER, {"city": "厦门", "days": 3}),
        ("厦门天气", WEATHER, {"city": "Xiamen"}),
        ("明天厦门天气", WEATHER, {"city": "厦门", "date": "2026-12-01"}),
        ("9 月 3 日厦门天气", WEATHER, {"city": "厦门", "date": "2026-09-03"}),
        ("看看表格", READ, {"path": "a/b.xlsx", "sheet": "Sheet1", "limit": 50}),
        (
            "发到甲群，通知张三",
            SEND,
            {"robot": "甲群", "to": "张三", "title": "x", "content": "长文"},
        ),
        ("你好", ToolSpec("ping"), {}),
    ],
)
def test_calls_with_grounded_or_exempt_values_pass(question, spec, arguments):
    assert ungrounded(call(spec, **arguments), spec, run(question)) is None


@pytest.mark.parametrize(
    ("question", "spec", "arguments", "field"),
    [
        ("你好", WEATHER, {"city": "北京"}, "city"),
        ("发到甲群", SEND, {"robot": "甲群", "to": "王五"}, "to"),
        ("什么是中位数", READ, {"path": "员工.xlsx", "sheet": "在职"}, "path"),
    ],
)
def test_calls_with_invented_values_do_not(question, spec, arguments, field):
    assert ungrounded(call(spec, **arguments), spec, run(question)) == field


def test_half_is_not_more_than_half():
    arguments = {"city": "厦门", "date": "2031-05-06"}
    assert ungrounded(call(WEATHER, **arguments), WEATHER, run("厦门")) is None


def test_a_value_from_a_result_or_an_earlier_answer_is_grounded():
    conversation = run("按表里的城市查天气", ("read_table", Status.OK, "| 城市 |\n| 漳州 |"))
    assert ungrounded(call(WEATHER, city="漳州"), WEATHER, conversation) is None


# --- matching


def test_topics_bridge_languages_and_negation_is_heard():
    english = ToolSpec("get_weather", "current weather of a city")
    assert fitting("厦门今天下雨吗", [english]) == [english]
    assert fitting("讲个笑话", TOOLS) == []
    assert best_read_tool("厦门天气，发到群里", TOOLS) == WEATHER
    assert effects_asked_for("把表发给大家", TOOLS) == ["send_note"]
    assert effects_asked_for("先不要发给大家", TOOLS) == []
    assert effects_asked_for("发票在哪里", TOOLS) == []


# --- in the review


def reviewed(text, conversation, **more):
    return review_reply(ParsedReply(text), TOOLS, "auto", conversation, **more)


def test_the_review_turns_them_into_retries():
    assert reviewed("日报已发送到甲群。", NOTHING).reason is Reason.UNBACKED_CLAIM
    assert reviewed("华东 999999 元", LOOKED) == Retry(
        Reason.UNBACKED_FIGURE, "999999 元", "read_table"
    )


def test_they_can_be_left_out_and_need_a_conversation():
    text = "华东 999999 元"
    assert reviewed(text, LOOKED, reviews=frozenset()) == Answer(text)
    assert review_reply(ParsedReply(text), TOOLS) == Answer(text)


def test_an_invented_figure_does_not_go_out_in_a_call_either():
    conversation = run("把销售表汇总发到甲群", ("read_table", Status.OK, TABLE))
    invented = call(SEND, robot="甲群", title="汇总", content="合计约为400000元")
    outcome = review_reply(ParsedReply("", (invented,)), TOOLS, "auto", conversation)
    assert outcome == Retry(Reason.UNBACKED_FIGURE, "400000元", "send_note", Basis.IN_CALL)
    right = call(SEND, robot="甲群", title="汇总", content="合计 333,870.5 元")
    assert review_reply(ParsedReply("", (right,)), TOOLS, "auto", conversation).calls == (right,)
    assert review_reply(ParsedReply("", (invented,)), TOOLS, "auto", NOTHING).calls == (invented,)


def test_an_ungrounded_call_beside_a_grounded_one_is_answered_as_failed():
    good, bad = call(WEATHER, city="厦门"), ToolCall("y", "get_weather", {"city": "北京"})
    outcome = review_reply(ParsedReply("", (good, bad)), TOOLS, "auto", run("厦门天气"))
    assert outcome.calls == (good,)
    assert [(b.reason, b.name, b.detail) for b in outcome.broken] == [
        (Reason.UNGROUNDED, "get_weather", "city")
    ]
    alone = review_reply(ParsedReply("", (bad,)), TOOLS, "auto", run("厦门天气"))
    assert alone == Retry(Reason.UNGROUNDED, "city", "get_weather")


# --- something sent that nobody asked to be sent


def _after_failure(question: str, *before: Message) -> list[Message]:
    call = ToolCall("c1", "read_sheet", {"file_path": "a.xlsx"})
    failed = ToolResult("c1", "read_sheet", Status.FAILED, "没有找到文件「a.xlsx」。")
    return [
        *before,
        Message.user(question),
        Message.assistant("", [call]),
        Message.tool(failed),
    ]


_SHEET = ToolSpec("read_sheet", "读取表格", side_effect="none")
_SEND = ToolSpec("send_message", "把消息推送到群里", side_effect="outward")


@pytest.mark.parametrize(
    ("question", "confirm"),
    [
        ("九月谁卖得最多？", True),
        ("How much did we sell in May?", True),
        ("把九月的表发到群里", False),
        ("九月的表同步到销售群", False),
        ("Push the May totals to the group", False),
    ],
)
def test_after_a_failure_only_what_was_asked_for_is_sent(question, confirm):
    call = ToolCall("c2", "send_message", {"content": "没有找到文件。"})
    reply = ParsedReply("", (call,))
    outcome = review_reply(reply, [_SHEET, _SEND], "auto", _after_failure(question))
    asked_again = isinstance(outcome, Retry) and outcome.reason is Reason.UNCONFIRMED
    assert asked_again is confirm


def test_an_open_request_to_send_covers_the_answer_to_our_question():
    before = (Message.user("把销量发出去"), Message.assistant("发到哪个群？"))
    call = ToolCall("c2", "send_message", {"content": "销量"})
    conversation = _after_failure("销售群", *before)
    outcome = review_reply(ParsedReply("", (call,)), [_SHEET, _SEND], "auto", conversation)
    assert isinstance(outcome, Calls)


def test_without_a_failure_nothing_is_asked_twice():
    call = ToolCall("c2", "send_message", {"content": "销量"})
    conversation = [Message.user("销量弄好")]
    outcome = review_reply(ParsedReply("", (call,)), [_SHEET, _SEND], "auto", conversation)
    assert isinstance(outcome, Calls)


def test_the_mark_of_a_cleared_result_is_never_sent_on():
    mark = dropped_result("zh")
    call = ToolCall("c2", "send_message", {"content": f"九月汇总：{mark}"})
    conversation = [Message.user("把九月汇总发到群里")]
    outcome = review_reply(ParsedReply("", (call,)), [_SHEET, _SEND], "auto", conversation)
    assert isinstance(outcome, Retry)
    assert outcome.reason is Reason.INVALID_ARGUMENTS
