"""One decision with its retries: what leaves, what is asked again, what the turn ends in."""

from __future__ import annotations

import json

import pytest

from chathands.conversation import (
    Message,
    Role,
    Status,
    Tag,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from chathands.emulation import (
    Answer,
    CallReady,
    Calls,
    GiveUp,
    NativeCall,
    Reason,
    Retry,
    State,
    Text,
    TextDelta,
    Thinking,
    Turn,
    render_block,
)
from chathands.emulation.outcome import Basis

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NOTE = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["title"],
    "additionalProperties": False,
}
WEATHER = ToolSpec("get_weather", "查询一个城市的天气", CITY, "none")
SEND = ToolSpec("send_note", "发送通知到群", NOTE, "outward")
REMIND = ToolSpec("set_reminder", "设置提醒", NOTE, "local")
CLIENT = ToolSpec("client_tool", "查询天气", NOTE, "unknown")
TOOLS = [WEATHER, SEND, REMIND]
QUESTION = [Message.user("厦门天气怎么样")]
GOOD = render_block("get_weather", {"city": "厦门"})
UNKNOWN = render_block("tell_fortune", {"name": "张三"})
BROKEN = '```json action\n{"tool": "get_weather", "parameters": {"city": }}\n```'


def reply(turn: Turn, text: str, finish_reason: str | None = "stop", **more):
    turn.feed(Text(text))
    return turn.finish(finish_reason, **more)


def play(*replies: str, conversation=QUESTION, tools=TOOLS, **options):
    """Every outcome of a turn that gets these replies."""
    turn = Turn(conversation, tools, fence="f00d", **options)
    outcomes = []
    for text in replies:
        turn.request()
        outcomes.append(reply(turn, text))
        if not isinstance(outcomes[-1], Retry):
            break
    return turn, outcomes


def results(conversation, calls, content="晴", status=Status.OK):
    return [
        *conversation,
        *(Message.tool(ToolResult(c.id, c.name, status, content, 5)) for c in calls),
    ]


# --- what a reply comes to


def test_text_is_the_answer():
    turn, outcomes = play("你好！有什么可以帮忙？", conversation=[Message.user("你好")])
    assert outcomes == [Answer("你好！有什么可以帮忙？")]
    assert turn.transcript == (Message.assistant("你好！有什么可以帮忙？"),)


def test_blocks_are_calls_and_end_the_turn():
    turn, (outcome,) = play(GOOD)
    assert isinstance(outcome, Calls)
    (call,) = outcome.calls
    assert (call.name, call.arguments, call.confidence) == (
        "get_weather",
        {"city": "厦门"},
        "strict",
    )
    assert turn.transcript == (Message.assistant("", [call]),)


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("抱歉，我没有可用的工具来查询天气。", "stop", Reason.REFUSAL),
        ("好的，我来查一下天气。", "stop", Reason.MISSED_CALL),
        ("您可以自行查看天气应用。", "stop", Reason.MISSED_CALL),
        (BROKEN, "stop", Reason.BROKEN_CALL),
        (UNKNOWN, "stop", Reason.UNKNOWN_TOOL),
        (render_block("get_weather", {"town": 5}), "stop", Reason.INVALID_ARGUMENTS),
        ('```json action\n{"tool": "get_weather", "para', "length", Reason.TRUNCATED),
        ("", "stop", Reason.EMPTY),
        ("厦门今天 25℃。", "stop", Reason.UNBACKED_FIGURE),
        ("通知已发送到群。", "stop", Reason.UNBACKED_CLAIM),
    ],
)
def test_each_fault_is_a_retry_with_its_reason(text, finish, reason):
    turn = Turn(QUESTION, TOOLS)
    outcome = reply(turn, text, finish)
    assert isinstance(outcome, Retry)
    assert outcome.reason is reason
    rejected, correction = turn.transcript
    assert (rejected.role, rejected.tag, rejected.text) == (Role.ASSISTANT, Tag.REJECTED, text)
    assert (correction.role, correction.tag) == (Role.USER, Tag.CORRECTION)
    assert "{" not in correction.text.replace("{}", "")


def test_the_correction_of_an_invented_name_offers_the_plain_answer_first():
    turn, _ = play(render_block("get_wether", {"city": "厦门"}))
    text = turn.transcript[-1].text
    assert text.index("直接用普通文字回答") < text.index("get_weather")


def test_a_correction_names_the_field():
    turn, (outcome,) = play(render_block("send_note", {"title": "x", "times": "许多"}))
    assert outcome.reason is Reason.INVALID_ARGUMENTS
    assert "times" in turn.transcript[-1].text


def test_a_refused_reply_may_be_followed_by_the_call():
    turn, outcomes = play("我没有可用的工具。", GOOD)
    assert [type(outcome) for outcome in outcomes] == [Retry, Calls]
    assert [m.tag for m in turn.transcript] == [Tag.REJECTED, Tag.CORRECTION, Tag.PLAIN]


def test_corrections_get_firmer_and_end_after_two():
    turn, outcomes = play("我没有工具可用。", "抱歉，我不能联网。", "我无法查询实时天气。")
    assert [type(outcome) for outcome in outcomes] == [Retry, Retry, GiveUp]
    assert outcomes[-1] == GiveUp(Reason.REFUSAL, "我无法查询实时天气。", outcomes[-1].detail)
    texts = [m.text for m in turn.transcript if m.tag is Tag.CORRECTION]
    assert len(set(texts)) == 2
    assert turn.transcript[-1].tag is Tag.REJECTED


def test_an_identical_reply_ends_the_corrections():
    _, outcomes = play("我没有工具可用。", "我没有工具可用。", GOOD)
    assert [type(outcome) for outcome in outcomes] == [Retry, GiveUp]


def test_without_time_for_a_retry_the_turn_gives_up_and_never_answers_with_a_refusal():
    turn = Turn(QUESTION, TOOLS)
    assert reply(turn, "我没有工具可用。", may_retry=False) == GiveUp(
        Reason.REFUSAL, "我没有工具可用。", "zh_no_tool"
    )


def test_text_beside_an_invented_tool_stands_when_nothing_else_is_wrong():
    turn = Turn([Message.user("你好")], TOOLS)
    assert reply(turn, f"你好，很高兴见到你。\n{UNKNOWN}", may_retry=False) == Answer(
        "你好，很高兴见到你。"
    )


def test_a_turn_that_has_ended_takes_no_more():
    turn, _ = play("你好", conversation=[Message.user("你好")])
    with pytest.raises(RuntimeError):
        turn.finish()


# --- siblings


def test_with_one_good_call_broken_siblings_are_answered_as_failed():
    turn, (outcome,) = play(f"{GOOD}\n{UNKNOWN}")
    assert [call.name for call in outcome.calls] == ["get_weather"]
    assert [broken.reason for broken in outcome.broken] == [Reason.UNKNOWN_TOOL]
    accepted, notice = turn.transcript
    assert accepted.calls == outcome.calls
    assert notice.tag is Tag.NOTICE
    following = Turn(results([*QUESTION, *turn.transcript], outcome.calls), TOOLS, fence="f00d")
    last = following.request().messages[-1].content
    assert "status=failed" in last
    assert "tell_fortune" in last
    assert "结果 #1 get_weather" in last


def test_identical_siblings_collapse():
    _, (outcome,) = play(f"{GOOD}\n{GOOD}")
    assert len(outcome.calls) == 1


# --- choice


def test_a_forced_choice_is_the_last_message():
    turn = Turn(QUESTION, TOOLS, choice="get_weather")
    assert turn.transcript[0].tag is Tag.NOTICE
    last = turn.request().messages[-1]
    assert last.role is Role.USER
    assert last.content.endswith("这一次必须用 get_weather：只写它的动作块。")
    assert turn.state is State.FORCED


def test_text_does_not_meet_a_forced_choice():
    turn = Turn(QUESTION, TOOLS, choice="required")
    assert reply(turn, "厦门是个好地方。").reason is Reason.MISSED_CALL
    assert reply(turn, "厦门在福建省。").reason is Reason.MISSED_CALL
    assert isinstance(reply(turn, "厦门有海。"), GiveUp)


def test_another_tool_is_the_wrong_tool():
    turn, outcomes = play(GOOD, render_block("send_note", {"title": "x"}), choice="send_note")
    assert outcomes[0] == Retry(Reason.WRONG_TOOL, "", "get_weather")
    assert "send_note" in turn.transcript[2].text
    assert outcomes[1].calls[0].name == "send_note"


def test_the_forced_one_of_several_runs_alone():
    _, (outcome,) = play(
        GOOD + "\n" + render_block("send_note", {"title": "x"}), choice="send_note"
    )
    assert [call.name for call in outcome.calls] == ["send_note"]
    assert [broken.reason for broken in outcome.broken] == [Reason.WRONG_TOOL]


@pytest.mark.parametrize("choice", ["required", "get_weather"])
def test_a_forced_choice_is_relaxed_after_its_result(choice):
    turn, (outcome,) = play(GOOD, choice=choice)
    conversation = results([*QUESTION, *turn.transcript], outcome.calls)
    following = Turn(conversation, TOOLS, choice=choice, fence="f00d")
    assert following.transcript == ()
    assert reply(following, "厦门晴。") == Answer("厦门晴。")


def test_choice_none_takes_text_and_drops_calls():
    _, outcomes = play(
        f"厦门在福建。\n{GOOD}", choice="none", conversation=[Message.user("厦门在哪")]
    )
    assert outcomes == [Answer("厦门在福建。")]
    turn, outcomes = play(GOOD, "厦门在福建。", choice="none")
    assert outcomes == [Retry(Reason.WRONG_TOOL, "", "get_weather"), Answer("厦门在福建。")]
    assert "不能用工具" in turn.transcript[2].text


@pytest.mark.parametrize("withdraw", ["last_round", "deadline"])
def test_withdrawn_tools_leave_an_answer(withdraw):
    first, (outcome,) = play(GOOD)
    conversation = results([*QUESTION, *first.transcript], outcome.calls)
    turn = Turn(conversation, TOOLS, withdraw=withdraw, fence="f00d")
    assert turn.state is State.WITHDRAWN
    assert "不能再用工具" in turn.request().messages[-1].content
    assert reply(turn, "我再查一下明天的。").reason is Reason.MISSED_CALL
    assert reply(turn, "厦门晴。") == Answer("厦门晴。")


def test_an_inability_is_a_fair_answer_once_tools_are_gone():
    turn = Turn(QUESTION, TOOLS, withdraw="deadline")
    text = "时间不够，我没能查询到厦门的天气。"
    assert reply(turn, text) == Answer(text)


def test_a_chosen_tool_must_be_declared():
    with pytest.raises(ValueError, match="'nope'"):
        Turn(QUESTION, TOOLS, choice=ToolChoice("named", "nope"))


@pytest.mark.parametrize("mode", ["structured", "native"])
def test_modes_that_are_not_there_say_so(mode):
    with pytest.raises(ValueError, match="not available yet"):
        Turn(QUESTION, TOOLS, mode=mode)


# --- tools that are not given


def test_no_tools_and_no_history_leave_the_request_untouched():
    turn = Turn([Message.system("s"), Message.user("我没有工具怎么办")], [], choice="required")
    assert [m.content for m in turn.request().messages] == ["s", "我没有工具怎么办"]
    assert reply(turn, "抱歉，我没有工具。") == Answer("抱歉，我没有工具。")


def test_without_a_tool_list_the_tools_of_the_history_go_on_working():
    call = ToolCall("a", "look", {"where": "厦门"})
    conversation = results([Message.user("看看厦门"), Message.assistant("", [call])], [call])
    turn = Turn([*conversation, Message.assistant("晴"), Message.user("看看武汉")], None)
    outcome = reply(turn, render_block("look", {"where": "武汉"}))
    assert outcome.calls[0].arguments == {"where": "武汉"}
    assert outcome.calls[0].confidence == "strict"


def test_an_empty_tool_list_after_tool_history_means_none():
    call = ToolCall("a", "look", {"where": "厦门"})
    conversation = results([Message.user("看看厦门"), Message.assistant("", [call])], [call])
    assert isinstance(reply(Turn(conversation, []), "厦门晴。"), Answer)


# --- confirmation and grounding

SINGLE_QUOTES = "```json action\n{'tool': 'set_reminder', 'parameters': {'title': '喝水'}}\n```"


def test_a_repaired_call_to_a_local_tool_is_confirmed_once():
    conversation = [Message.user("提醒我喝水")]
    turn, outcomes = play(SINGLE_QUOTES, SINGLE_QUOTES, conversation=conversation)
    assert outcomes[0] == Retry(Reason.UNCONFIRMED, "", "set_reminder")
    assert render_block("set_reminder", {"title": "喝水"}) in turn.transcript[1].text
    assert outcomes[1].calls[0].arguments == {"title": "喝水"}


def test_a_clean_repetition_confirms_too_and_another_call_does_not():
    conversation = [Message.user("提醒我喝水")]
    clean = render_block("set_reminder", {"title": "喝水"})
    assert isinstance(play(SINGLE_QUOTES, clean, conversation=conversation)[1][1], Calls)
    other = SINGLE_QUOTES.replace("喝水", "睡觉")
    assert isinstance(play(SINGLE_QUOTES, other, conversation=conversation)[1][1], GiveUp)


def test_a_repaired_call_without_effect_or_outward_is_not_confirmed():
    for name in ("get_weather", "send_note"):
        key = "city" if name == "get_weather" else "title"
        text = f"```json action\n{{'tool': '{name}', 'parameters': {{'{key}': '厦门'}}}}\n```"
        assert isinstance(play(text)[1][0], Calls)


def test_an_ungrounded_call_is_asked_about_once_and_then_stands():
    text = render_block("get_weather", {"city": "北京"})
    on = frozenset({Reason.UNGROUNDED})
    conversation = [Message.user("你好")]
    turn, outcomes = play(text, text, conversation=conversation, reviews=on)
    assert outcomes[0] == Retry(Reason.UNGROUNDED, "city", "get_weather")
    assert "city" in turn.transcript[1].text
    assert isinstance(outcomes[1], Calls)
    assert isinstance(play(text, conversation=conversation)[1][0], Calls)


def test_an_unbacked_figure_is_asked_about_once_and_then_not_sent():
    _, outcomes = play("厦门今天 25℃。", "厦门今天 26℃。")
    assert outcomes[0] == Retry(Reason.UNBACKED_FIGURE, "25℃", "get_weather")
    assert isinstance(outcomes[1], GiveUp)


def test_soft_evidence_is_asked_about_once_and_then_left_to_the_model():
    conversation = [Message.user("把放假通知发到群里")]
    _, outcomes = play("各位：明天放假。", "各位同事：明天放假。", conversation=conversation)
    assert outcomes == [
        Retry(Reason.MISSED_CALL, "effect_missing", "send_note", Basis.SOFT),
        Answer("各位同事：明天放假。"),
    ]
    turn, _ = play("各位：明天放假。", conversation=conversation)
    assert "原样再写一遍" in turn.transcript[1].text
    assert play("各位：明天放假。", "各位：明天放假。", conversation=conversation)[1][1] == Answer(
        "各位：明天放假。"
    )


# --- thinking and native calls


def test_thinking_is_neither_answer_nor_call():
    turn = Turn(QUESTION, TOOLS)
    turn.feed(Thinking(GOOD))
    turn.feed(Thinking("厦门晴"))
    assert turn.finish("stop") == Retry(Reason.EMPTY)


def test_a_native_call_is_read_like_a_block():
    turn = Turn(QUESTION, TOOLS)
    turn.feed(NativeCall(0, id="x", name="get_weather", arguments='{"city": '))
    turn.feed(NativeCall(1, name="send_note", arguments='{"title": "厦门", "times": "x"}'))
    turn.feed(NativeCall(0, arguments='"厦门"}'))
    outcome = turn.finish("tool_calls")
    assert [(c.name, c.arguments) for c in outcome.calls] == [("get_weather", {"city": "厦门"})]
    assert outcome.broken[0].reason is Reason.INVALID_ARGUMENTS


def test_a_native_call_without_arguments_is_a_call_without_arguments():
    turn = Turn([Message.user("ping")], [ToolSpec("ping", "ping")])
    turn.feed(NativeCall(0, name="ping"))
    assert turn.finish().calls[0].arguments == {}


# --- our own marks


def test_marks_around_results_do_not_reach_people_or_tools():
    first, (outcome,) = play(GOOD)
    conversation = results([*QUESTION, *first.transcript], outcome.calls)
    copied = (
        "结果 #1 get_weather [status=ok, cost_ms=5]\n----- f00d -----\n厦门晴。\n----- f00d -----"
    )
    assert reply(Turn(conversation, TOOLS, fence="f00d"), copied) == Answer("厦门晴。")
    block = render_block("send_note", {"title": "----- f00d -----\n厦门晴\n----- f00d -----"})
    sent = reply(Turn(conversation, TOOLS, fence="f00d"), block)
    assert sent.calls[0].arguments == {"title": "厦门晴"}
    assert sent.calls[0].confidence == "repaired"


# --- the stream commit rule


def streamed(turn: Turn, *pieces: str):
    events = []
    for piece in pieces:
        events += turn.feed(Text(piece))
    return events


def chars(text: str):
    return list(text)


def said(events) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_under_finish_nothing_leaves_before_the_end():
    turn = Turn(QUESTION, TOOLS)
    assert streamed(turn, *chars(f"厦门很好。今天晴。\n{GOOD}")) == []


def test_under_stream_text_leaves_after_the_first_sentence():
    turn = Turn([Message.user("介绍厦门")], TOOLS, commit="stream")
    assert streamed(turn, *chars("厦门是福建省的一座城市")) == []
    assert said(streamed(turn, "。")) == "厦门是福建省的一座城市。"
    assert said(streamed(turn, "有海", "。")) == "有海。"
    assert turn.finish("stop") == Answer("厦门是福建省的一座城市。有海。")
    assert turn.tail == ()


def test_under_stream_a_nod_is_no_first_sentence():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    assert streamed(turn, *chars("好的。")) == []
    assert streamed(turn, *chars("我来查一下。")) == []
    assert turn.finish("stop").reason is Reason.MISSED_CALL


def test_under_stream_64_characters_are_held_at_most():
    turn = Turn([Message.user("讲讲")], TOOLS, commit="stream")
    assert streamed(turn, "山" * 63) == []
    assert said(streamed(turn, "山" * 5)) == "山" * 68


def test_under_stream_a_refusal_is_held_and_retried_and_the_next_reply_may_speak():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    assert streamed(turn, *chars("抱歉，我没有可用的工具来查询天气。请到网站上看。")) == []
    assert turn.finish("stop").reason is Reason.REFUSAL
    events = streamed(turn, *chars(GOOD + "\n"))
    assert [event.call.name for event in events if isinstance(event, CallReady)] == ["get_weather"]
    assert isinstance(turn.finish("stop"), Calls)


def test_under_stream_a_call_leaves_when_it_is_whole_with_the_text_before_it():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    events = streamed(turn, *chars("先看看\n" + GOOD), "\n")
    assert said(events).strip() == "先看看"
    assert isinstance(events[-1], CallReady)
    outcome = turn.finish("stop")
    assert outcome.calls == (events[-1].call,)
    assert turn.tail == ()


def test_after_a_call_has_left_nothing_is_retried():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, GOOD + "\n", UNKNOWN)
    outcome = turn.finish("stop")
    assert [call.name for call in outcome.calls] == ["get_weather"]


def test_after_text_has_left_only_calls_of_the_next_reply_leave():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    first = streamed(turn, "厦门是福建的一座海滨城市。", BROKEN)
    assert said(first) == "厦门是福建的一座海滨城市。"
    assert turn.finish("stop").reason is Reason.BROKEN_CALL
    events = streamed(turn, "这一次对了。\n", GOOD, "\n")
    assert said(events) == ""
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert outcome.text == "厦门是福建的一座海滨城市。"
    assert [m.tag for m in turn.transcript] == [Tag.REJECTED, Tag.CORRECTION, Tag.PLAIN]


def test_after_text_has_left_other_reasons_do_not_retry():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, "厦门是福建的一座海滨城市。", UNKNOWN)
    assert turn.finish("stop") == Answer("厦门是福建的一座海滨城市。")


def test_text_of_a_muted_reply_is_dropped():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, "厦门是福建的一座海滨城市。", BROKEN)
    turn.finish("stop")
    assert streamed(turn, "别的城市也很好。") == []
    assert turn.finish("stop") == Answer("厦门是福建的一座海滨城市。")


def test_under_stream_a_forced_choice_holds_all_text():
    turn = Turn(QUESTION, TOOLS, choice="required", commit="stream")
    assert streamed(turn, "厦门是福建的一座海滨城市。", "有海。") == []
    assert turn.finish("stop").reason is Reason.MISSED_CALL


def test_a_lone_end_of_thinking_in_the_opening_takes_back_what_was_held():
    turn = Turn([Message.user("你好")], TOOLS, commit="stream")
    assert streamed(turn, *chars("他在打招呼</think>你好呀，")) == []
    assert turn.finish("stop") == Answer("你好呀，")
    assert turn.tail == (TextDelta("你好呀，"),)


def test_the_final_answer_may_sit_in_an_action_fence_once_results_are_in():
    first, (outcome,) = play(GOOD)
    conversation = results([*QUESTION, *first.transcript], outcome.calls)
    fenced = "```json action\n厦门晴。\n```"
    assert reply(Turn(conversation, TOOLS), fenced) == Answer("厦门晴。")
    assert reply(Turn(QUESTION, TOOLS), fenced).reason is Reason.BROKEN_CALL


def test_what_is_held_at_the_end_is_in_the_tail():
    turn = Turn([Message.user("你好")], TOOLS, commit="stream")
    assert streamed(turn, "你好") == []
    assert turn.finish("stop") == Answer("你好")
    assert turn.tail == (TextDelta("你好"),)
    assert turn.sent == "你好"


def test_a_recovered_call_of_a_client_tool_is_asked_about_while_nothing_has_left():
    guessed = '```json action\n{"tool": "client_tool", "parameters": {"title": "a "b" c"}}\n```'
    turn = Turn(QUESTION, [CLIENT], commit="stream")
    assert streamed(turn, guessed, "\n") == []
    assert turn.finish("stop") == Retry(Reason.UNCONFIRMED, "", "client_tool")
    assert streamed(turn, guessed, "\n") == []
    outcome = turn.finish("stop")
    assert isinstance(outcome, Calls)
    assert turn.tail == (CallReady(outcome.calls[0]),)


def test_under_stream_optional_reviews_are_off_by_default():
    turn = Turn(QUESTION, TOOLS, commit="stream")
    streamed(turn, "厦门今天 25℃。")
    assert turn.finish("stop") == Answer("厦门今天 25℃。")


# --- the log


def test_the_log_is_json_and_has_one_entry_per_decision():
    turn, _ = play("我没有工具可用。", GOOD)
    json.dumps(turn.log, ensure_ascii=False)
    assert [entry["outcome"] for entry in turn.log] == ["Retry", "Calls"]
    assert turn.log[0]["asked"]["contract_characters"] > 500
    assert turn.log[0]["reason"] == "refusal"
    assert "zh_no_tool" in turn.log[0]["stance"]["evidence"]
    assert turn.log[1]["calls"][0]["confidence"] == "strict"
    assert turn.log[1]["asked"]["state"] == "after_correction"
