"""The word behind the user's message where a talk has drifted from acting."""

from __future__ import annotations

import pytest

from chathands.conversation import Message, Notice, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation import Text, Turn
from chathands.emulation.phrases import asks_back, declines
from chathands.emulation.reminders import reminder_for

WEATHER = ToolSpec(
    "query_weather",
    "查询城市的天气预报 weather forecast of a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "none",
)


def talk(first, asked, answer):
    return [Message.user(first), Message.assistant(asked), Message.user(answer)]


@pytest.mark.parametrize(
    ("first", "asked", "answer"),
    [
        ("明天天气怎么样", "请问您想查哪个城市？", "杭州"),
        ("查一下天气", "请提供城市的名称。", "我在成都"),
        ("What will the weather be?", "Which city do you mean?", "Oslo"),
        ("Weather please", "Please tell me the city.", "It is Lima."),
    ],
)
def test_an_answer_to_our_question_can_be_acted_on(first, asked, answer):
    assert reminder_for(talk(first, asked, answer), [WEATHER]) is Notice.ANSWERED


@pytest.mark.parametrize(
    ("first", "asked", "answer"),
    [
        ("明天天气怎么样", "杭州明天晴，18 到 25 度。", "谢谢"),
        ("明天天气怎么样", "请问您想查哪个城市？", "算了，不用了"),
        ("Weather please", "Which city?", "Never mind."),
        ("写一首关于春天的诗", "您想要几行的？", "四行吧"),
        ("天气怎么样", "还有什么需要可以随时告诉我。", "嗯"),
    ],
)
def test_other_talk_is_left_alone(first, asked, answer):
    assert reminder_for(talk(first, asked, answer), [WEATHER]) is not Notice.ANSWERED


def test_no_word_without_tools_a_first_question_or_after_a_result():
    assert reminder_for([Message.user("杭州天气")], [WEATHER]) is None
    assert reminder_for([], [WEATHER]) is None
    conversation = talk("查天气", "哪个城市？", "杭州")
    assert reminder_for(conversation, []) is None
    call = ToolCall("a", "query_weather", {"city": "杭州"})
    conversation += [Message.assistant("", [call])]
    conversation += [Message.tool(ToolResult("a", "query_weather", Status.OK, "晴"))]
    assert reminder_for(conversation, [WEATHER]) is None


@pytest.mark.parametrize("mode", ["emulated", "structured", "native"])
def test_the_word_stands_last_and_stays_within_the_run(mode):
    turn = Turn(talk("查天气", "请问是哪个城市？", "杭州"), [WEATHER], mode=mode)
    first = turn.request()
    assert "杭州" in first.messages[-1].content
    assert "已经回答了上面的提问" in first.messages[-1].content
    turn.feed(Text("我没有工具可用。"))
    turn.finish("stop")
    second = turn.request()
    assert second.messages[: len(first.messages)] == first.messages
    assert sum("已经回答了上面的提问" in m.content for m in second.messages) == 1


def test_a_forced_choice_is_said_instead():
    turn = Turn(talk("查天气", "请问是哪个城市？", "杭州"), [WEATHER], choice="required")
    notices = [message.notice for message in turn.transcript]
    assert notices == [Notice.REQUIRED]


@pytest.mark.parametrize("text", ["", "好的。", "Here you are: 5 pages.", "有需要随时告诉我。"])
def test_what_asks_for_nothing_is_no_question(text):
    assert not asks_back(text)


def test_to_decline_is_to_begin_so():
    assert declines("不用了，谢谢")
    assert declines("No, thanks")
    assert not declines("杭州，不用算周末")
    assert not declines("Norway")
