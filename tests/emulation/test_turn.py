"""One decision with its retries: what leaves, what is asked again, what the turn ends in."""

from __future__ import annotations

import json

import pytest

from chathands.conversation import Message, Role, Tag, ToolSpec
from chathands.emulation import (
    Answer,
    Calls,
    GiveUp,
    NativeCall,
    Reason,
    Retry,
    Text,
    TextDelta,
    Thinking,
    Turn,
    project,
    render_block,
)
from chathands.emulation.outcome import Basis
from chathands.limits import THOUGHT_BEFORE_BLOCK
from tests.emulation.turns import BROKEN, GOOD, QUESTION, TOOLS, UNKNOWN, play, reply, results

# --- what a reply comes to


def test_text_is_the_answer():
    turn, outcomes = play("你好！有什么可以帮忙？", conversation=[Message.user("你好")])
    assert outcomes == [Answer("你好！有什么可以帮忙？")]
    assert turn.transcript[-1] == Message.assistant("你好！有什么可以帮忙？")


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
    assert "city" in turn.transcript[-2].text
    assert isinstance(outcomes[1], Calls)
    off = frozenset()
    assert isinstance(play(text, conversation=conversation, reviews=off)[1][0], Calls)


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


@pytest.mark.parametrize("commit", ["finish", "stream"])
@pytest.mark.parametrize(
    "body",
    [
        '{"thought": "先查厦门。再决定要不要带伞。", "tool": "get_weather", "parameters": %s}',
        '{"thought": "先查厦门。", "calls": [{"tool": "get_weather", "parameters": %s}]}',
        '{"tool": "get_weather", "parameters": %s, "思考": "先查厦门。\\n然后回答"}',
    ],
)
def test_the_first_sentence_of_a_thought_in_a_call_stays_in_history_and_is_never_shown(
    commit, body
):
    turn = Turn(QUESTION, TOOLS, commit=commit)
    block = "```json action\n" + body % '{"city": "厦门"}' + "\n```"
    events = turn.feed(Text(block))
    outcome = turn.finish("stop")
    assert (outcome.text, [c.confidence for c in outcome.calls]) == ("", ["strict"])
    assert not any(isinstance(event, TextDelta) for event in [*events, *turn.tail])
    (said,) = turn.transcript
    assert said.text == "先查厦门。"
    assert project([*QUESTION, said], TOOLS, language="zh")[2].content == f"先查厦门。\n{GOOD}"


def test_text_beside_a_call_comes_before_the_thought_in_it_and_a_long_one_is_cut():
    long = '{"thought": "%s", "tool": "get_weather", "parameters": {"city": "厦门"}}' % ("想" * 999)
    turn, _ = play(f"我查一下。\n```json action\n{long}\n```")
    assert turn.transcript[0].text == "我查一下。"
    turn, _ = play(f"```json action\n{long}\n```")
    assert turn.transcript[0].text == "想" * THOUGHT_BEFORE_BLOCK


def test_a_thought_that_is_a_parameter_is_no_remark():
    tool = ToolSpec("think", "想", {"type": "object", "properties": {"thought": {}}}, "none")
    turn, _ = play('```json action\n{"tool": "think", "thought": "一步。"}\n```', tools=[tool])
    assert turn.transcript[-1].text == ""
    assert turn.transcript[-1].calls[0].arguments == {"thought": "一步。"}


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
