"""Requests that have nothing to do with the tools, and calls that are made all the same."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.conversation import Message, Notice, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation import Answer, Calls, Reason, Retry, Text, Turn, render_block
from chathands.emulation.far_fetched import far_fetched
from chathands.emulation.related import likeness, unrelated
from chathands.emulation.reminders import reminder_for


def tool(name, description, **parameters):
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    return ToolSpec(name, description, schema, "none")


TAXI = tool(
    "calculate_taxi_fare",
    "Works out the fare of a ride from its distance and waiting minutes.",
    distance={"type": "number", "description": "kilometres"},
    waiting={"type": "number", "description": "minutes"},
)
GROWTH = tool(
    "population_growth",
    "Projects a population from birth and death rates.",
    current={"type": "integer", "description": "heads"},
    birth={"type": "number", "description": "births a year"},
    death={"type": "number", "description": "deaths a year"},
)
WINE = tool(
    "wine_pairing",
    "按菜品推荐搭配的葡萄酒。",
    dish={"type": "string", "description": "菜品"},
    budget={"type": "number", "description": "每瓶预算"},
)


@pytest.mark.parametrize(
    ("request_", "tools"),
    [
        ("How many sides does a hexagon have?", [TAXI]),
        ("Who painted the Mona Lisa?", [TAXI, GROWTH]),
        ("帮我写一句生日祝福", [WINE]),
        ("讲个冷笑话", [WINE]),
    ],
)
def test_a_request_that_shares_no_word_with_any_tool_is_unrelated(request_, tools):
    assert unrelated(request_, tools)


@pytest.mark.parametrize(
    ("request_", "tools"),
    [
        ("What is the taxi fare for 5 km?", [TAXI, GROWTH]),
        ("牛排配什么葡萄酒", [WINE]),
        ("讲个冷笑话", [TAXI]),  # another script: words cannot tell
        ("Tell me a joke", [WINE]),
        ("anything", [ToolSpec("run", "", {"type": "object"}, "none")]),
        ("anything", []),
    ],
)
def test_a_word_in_common_or_no_way_to_tell_is_not(request_, tools):
    assert not unrelated(request_, tools)


def test_a_topic_is_in_common_whatever_the_words():
    weather = tool("forecast_v2", "Daily forecast", city={"type": "string"})
    like = likeness("Shall I take an umbrella?", weather)
    assert like is not None
    assert like.topic


@given(st.text(max_size=200))
def test_any_text_can_be_judged(text):
    assert unrelated(text, [TAXI, WINE]) in (True, False)


def test_the_model_is_told_before_it_decides_and_answers():
    turn = Turn([Message.user("Who painted the Mona Lisa?")], [TAXI], language="en")
    assert [message.notice for message in turn.transcript] == [Notice.UNRELATED]
    assert "needs none of the tools" in turn.request().messages[-1].content
    turn.feed(Text("Leonardo da Vinci."))
    assert isinstance(turn.finish("stop"), Answer)


@pytest.mark.parametrize("options", [{"commit": "stream"}, {"reviews": frozenset()}])
def test_where_the_review_is_off_the_model_is_told_nothing(options):
    turn = Turn([Message.user("Who painted the Mona Lisa?")], [TAXI], language="en", **options)
    assert turn.transcript == ()


def test_one_call_that_makes_sense_speaks_for_those_beside_it():
    question = [Message.user("Project the population growth of 120 deer, 0.2 births, 0.1 deaths")]
    sound = render_block("population_growth", {"current": 120, "birth": 0.2, "death": 0.1})
    made_up = render_block("population_growth", {"current": 77, "birth": 0.9, "death": 0.8})
    turn = Turn(question, [GROWTH], language="en")
    turn.feed(Text(f"{sound}\n{made_up}"))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert len(outcome.calls) == 2


def test_a_model_that_calls_all_the_same_is_taken_at_its_word():
    question = "The ride: 5 and 3?"
    turn = Turn([Message.user(question)], [TAXI], language="en")
    turn.feed(Text(render_block("calculate_taxi_fare", {"distance": 5, "waiting": 3})))
    assert isinstance(turn.finish("stop"), Calls)


@pytest.mark.parametrize(
    "conversation",
    [
        [Message.user("What is the taxi fare?")],
        [Message.user("今天有什么安排")],  # only a look can tell
        [
            Message.user("Taxi fare for 5 km?"),
            Message.assistant("", [ToolCall("a", "calculate_taxi_fare", {"distance": 5})]),
            Message.tool(ToolResult("a", "calculate_taxi_fare", Status.OK, "12")),
            Message.assistant("12 euros."),
            Message.user("And for twice that?"),
        ],
        [
            Message.user("What is the taxi fare?"),
            Message.assistant("It depends."),
            Message.user("On what?"),
        ],
    ],
)
def test_a_talk_about_the_tools_gets_no_such_word(conversation):
    assert reminder_for(conversation, [TAXI]) is not Notice.UNRELATED


# --- calls


def call(spec, **arguments):
    return ToolCall("c", spec.name, arguments)


def test_invented_values_for_a_tool_hardly_spoken_of_are_far_fetched():
    conversation = [Message.user("How to increase the population of deer in a forest?")]
    made_up = call(GROWTH, current=100, birth=0.7, death=0.3)
    assert far_fetched(made_up, [GROWTH], conversation) == "100, 0.7, 0.3"


@pytest.mark.parametrize(
    ("question", "spec", "arguments"),
    [
        ("A population of 120 deer, 20% births, 0.1 deaths", GROWTH, (120, 0.2, 0.1)),
        ("population growth projects births and deaths rates", GROWTH, (100, 0.5, 0.3)),
        ("三百二十块以内，来一盘红烧肉", WINE, ("红烧肉", 320)),
        ("两万块，红烧肉", WINE, ("红烧肉", 20000)),
    ],
)
def test_values_from_somewhere_or_a_tool_that_is_meant_are_not(question, spec, arguments):
    given_ = dict(zip(spec.parameters["properties"], arguments, strict=True))
    assert far_fetched(call(spec, **given_), [spec], [Message.user(question)]) is None


def test_what_the_talk_or_a_result_said_counts():
    conversation = [
        Message.user("鹿群资料"),
        Message.assistant("现有 800 头，出生 0.4，死亡 0.2。"),
        Message.user("deer, please"),
    ]
    assert (
        far_fetched(call(GROWTH, current=800, birth=0.4, death=0.2), [GROWTH], conversation) is None
    )


def test_such_a_call_is_asked_about_once():
    question = [Message.user("How do I keep the population of deer happy?")]
    block = render_block("population_growth", {"current": 100, "birth": 0.7, "death": 0.3})
    turn = Turn(question, [GROWTH], language="en")
    turn.feed(Text(block))
    outcome = turn.finish("stop")
    assert isinstance(outcome, Retry)
    assert outcome.reason is Reason.FAR_FETCHED
    turn.request()
    turn.feed(Text(block))
    assert isinstance(turn.finish("stop"), Calls)


@pytest.mark.parametrize("options", [{"choice": "required"}, {"reviews": frozenset()}])
def test_a_forced_choice_or_no_review_asks_nothing(options):
    question = [Message.user("How do I keep the population of deer happy?")]
    turn = Turn(question, [GROWTH], language="en", **options)
    turn.feed(Text(render_block("population_growth", {"current": 100, "birth": 0.7, "death": 0.3})))
    assert isinstance(turn.finish("stop"), Calls)


# --- short Chinese requests, and values that follow from what was said

OFFICE = [
    tool("query_stock", "查询仓库商品的库存数量", product={"description": "商品"}),
    tool("query_sales", "读取销售汇总表，按月份、区域查询销售额", month={}, region={}),
    tool("get_weather", "查询城市天气", city={"description": "城市"}, date={}),
    tool("query_order", "查询订单状态", order={"description": "订单号"}),
    tool("list_meetings", "查看日程和会议安排", date={"description": "日期"}),
    tool("exchange_rate", "查询货币汇率", base={}, target={}, amount={"type": "number"}),
]


@pytest.mark.parametrize(
    "question",
    [
        *("库存还剩多少", "货还够不够", "华东和华南哪个卖得多", "谁卖得最好", "上海和北京哪个热"),
        *("去趟深圳要穿啥", "DD1001发货没，顺便看下DD1002", "下周忙不忙", "周三下午有空吗"),
        *("2024 年 12 月哪个销售员卖得最多", "9 月和 10 月的销售额", "把华东和其他区域比一下"),
    ],
)
def test_a_short_chinese_request_that_means_a_tool_is_not_sent_away(question):
    assert reminder_for([Message.user(question)], OFFICE) is None


@pytest.mark.parametrize("question", ["讲个冷笑话", "写一副春联", "鲁迅的原名叫啥"])
def test_one_that_means_none_is(question):
    assert reminder_for([Message.user(question)], OFFICE) is Notice.UNRELATED


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("库存还剩多少", "query_stock", {"product": "全部"}),
        ("这个季度的业绩", "query_sales", {"month": "Q3"}),
        ("比去年涨了多少", "query_sales", {"month": 2023}),
        ("上个月卖得怎么样", "query_sales", {"month": "9月"}),
        ("美元现在多少", "exchange_rate", {"base": "USD", "target": "CNY", "amount": 1}),
        ("我几点开会", "list_meetings", {"date": "今天"}),
        ("明天北京和上海哪个热", "get_weather", {"city": "Shanghai", "date": "2024-09-02"}),
    ],
)
def test_values_that_follow_from_what_was_said_are_nobodys_invention(question, name, arguments):
    made = ToolCall("c", name, arguments)
    assert far_fetched(made, OFFICE, [Message.user(question)]) is None


# --- cost

ODD = [None, float("nan"), float("inf"), 10**40, -(10**5000), "\ud800", b"x", [[]], {"a": [{}]}]


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("schema", [[], {"items": True}, {"properties": []}, {"enum": 3}, None])
def test_no_value_and_no_schema_is_too_odd(value, schema):
    spec = ToolSpec("odd", "Works out odd things.", {"type": "object", "properties": {"x": schema}})
    named = far_fetched(call(spec, x=value), [spec], [Message.user("odd １２ ٣ 1e999 1,2,3")])
    assert named is None or named == str(value)[:20]
    assert unrelated("", [spec])


@pytest.mark.parametrize("piece", ["1,", "aa, ", "-", "_", "9", "a.b", "一百万", "我的", "\n> "])
def test_no_request_takes_long(piece):
    question = piece * (100_000 // len(piece))
    conversation = [Message.user(question), Message.assistant("哪个？"), Message.user(question)]
    deep: object = "A1"
    for _ in range(2000):
        deep = [deep]
    began = time.process_time()
    reminder_for(conversation, [TAXI, WINE])
    for value in (deep, [f"A{n}" for n in range(3000)], question):
        far_fetched(call(WINE, dish=value), [WINE], conversation)
    assert time.process_time() - began < 1.5


@pytest.mark.parametrize(
    ("request_", "doubted"), [("12 月一共卖了多少件？", False), ("讲个笑话", True)]
)
def test_columns_of_the_table_that_the_question_names_are_nobody_s_invention(request_, doubted):
    text = {"type": "array", "items": {"type": "string"}}
    properties = {"file_path": {"type": "string"}, "columns": text, "group_by": text}
    table = ToolSpec(
        name="aggregate_excel_data",
        description="对表格的列求和、平均、排名。",
        parameters={"type": "object", "properties": properties},
    )
    arguments = {"file_path": "sales/2024/12.xlsx", "columns": ["数量"], "group_by": ["日期"]}
    call = ToolCall("c1", table.name, arguments)
    assert (far_fetched(call, [table], [Message.user(request_)]) is not None) is doubted
    listed = Message.user(request_, head="（现有的文件：sales/2024/12.xlsx）")
    assert far_fetched(call, [table], [listed]) is None
    elsewhere = Message.user(request_, head="（现有的文件：stock/2024.xlsx）")
    assert (far_fetched(call, [table], [elsewhere]) is not None) is doubted
