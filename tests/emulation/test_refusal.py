"""Refusal, missed call, safety refusal, question, normal: judged on labelled replies."""

from __future__ import annotations

import re
import time
import tomllib
from importlib.resources import files
from itertools import pairwise

import pytest

from benchmarks.figures import wilson
from benchmarks.labelled import cases, decidable, decided, tools_of
from chathands.conversation import Message, Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation.outcome import Answer, Basis, ParsedReply, Reason, Retry
from chathands.emulation.phrases import rule, says_nothing
from chathands.emulation.refusal import stance_of
from chathands.emulation.review import review_reply
from tests.emulation.replies import KINDS

CASES = cases()
LEARNT = [c for c in CASES if c.get("set") != "b1-held" and not c.get("misjudged")]
"""Cases the patterns were mended from; a change that loses one has lost a kind."""


def test_there_are_many_more_cases_than_the_patterns_were_written_from():
    assert len({case["id"] for case in CASES}) == len(CASES)
    for language in ("zh", "en"):
        for should in (True, False):
            same = [c for c in CASES if c["lang"] == language and c["should_retry"] is should]
            assert len({case["text"] for case in same}) >= 150
    assert sum(case.get("source") == "recorded" for case in CASES) >= 80


def test_every_labelled_reply_is_judged_as_labelled():
    misses = []
    for case in LEARNT:
        for asked in (False, True):
            if decidable(case, asked=asked):
                outcome = decided(case, asked=asked)
                if outcome.retry is not case["should_retry"]:
                    misses.append(f"{case['id']} asked={asked} {outcome}\n{case['text']}")
        if case["label"] == "safety_refusal" and "user" not in case:
            stance = stance_of(case["text"], tools=tools_of(case))
            if stance.kind not in KINDS["safety_refusal"]:
                misses.append(f"{case['id']} {stance}\n{case['text']}")
    assert not misses, "\n".join(misses)


MISJUDGED = 9
"""Cases that are known to be judged wrongly: one of the last unseen set, kept as it came, and eight
recorded replies whose kind no pattern has. Whoever marks another one has made something worse."""


def test_cases_marked_as_misjudged_are_few_and_really_are():
    marked = [case for case in CASES if case.get("misjudged")]
    assert len(marked) <= MISJUDGED
    for case in marked:
        judged = [
            decided(case, asked=asked).retry is case["should_retry"]
            for asked in (False, True)
            if decidable(case, asked=asked)
        ]
        assert not all(judged), f"{case['id']} is judged right today: take the mark away"


def bounds(asked, rows):
    """Lower bound of what is caught, upper bound of what is falsely caught."""
    judged = [(c["should_retry"], decided(c, asked=asked).retry) for c in rows]
    caught = [retried for should, retried in judged if should]
    false = [retried for should, retried in judged if not should]
    return wilson(sum(caught), len(caught))[0], wilson(sum(false), len(false))[1]


@pytest.mark.parametrize("asked", [False, True])
def test_recall_and_false_alarms_hold_with_their_intervals(asked):
    recall, false = bounds(asked, [c for c in CASES if decidable(c, asked=asked)])
    assert recall >= 0.85
    assert false <= 0.08


@pytest.mark.parametrize("asked", [False, True])
def test_replies_nobody_tuned_for_are_mostly_judged_right(asked):
    held = [c for c in CASES if c.get("set") == "b1-held" and decidable(c, asked=asked)]
    judged = [(c["should_retry"], decided(c, asked=asked).retry) for c in held]
    caught = [retried for should, retried in judged if should]
    false = [retried for should, retried in judged if not should]
    assert sum(caught) / len(caught) >= 0.8
    assert sum(false) / len(false) <= 0.08


@pytest.mark.parametrize("asked", [False, True])
def test_plain_answers_of_real_models_are_left_alone(asked):
    plain = cases("recorded_plain.jsonl")
    assert {case["lang"] for case in plain} == {"zh", "en"}
    retried = [case["id"] for case in plain if decided(case, asked=asked).retry]
    assert len(retried) / len(plain) <= 0.02, retried


def test_the_reason_says_which_of_the_two_it_is():
    tools = [ToolSpec("get_weather", "查天气")]
    assert review_reply(ParsedReply("我没有可用的工具。"), tools) == Retry(
        Reason.REFUSAL, "zh_no_tool"
    )
    assert review_reply(ParsedReply("我来查一下天气。"), tools).reason is Reason.MISSED_CALL
    assert review_reply(ParsedReply("请您自行查询天气。"), tools).reason is Reason.MISSED_CALL


def test_without_tools_nothing_is_a_refusal():
    text = "作为一个语言模型，我不能执行系统命令。"
    assert review_reply(ParsedReply(text), []) == Answer(text)


@pytest.mark.parametrize(
    "text",
    [
        "> 我没有可用的工具",
        "他写道：“抱歉，我没有可用的工具。”",
        "```\n抱歉，我没有可用的工具。\n```",
        "翻译：I have no tools available.",
        "I have no tools → 我没有工具",
    ],
)
def test_what_is_quoted_is_not_said(text):
    assert stance_of(text).kind == "normal"


def test_a_caveat_behind_a_real_answer_is_no_refusal():
    answer = (
        "八月华东的销售额最高，为 182300 元；华南其次，为 96450 元；西南最少，为 55120 元。"
        "三个区域合计 333870 元，华东占了一半以上。订单数的排名和销售额一致。"
    )
    assert stance_of(answer + "另外，我无法获取九月的实时数据。").kind == "normal"
    assert stance_of("我无法获取九月的实时数据。" + answer).kind == "refusal"


def test_after_a_result_an_inability_may_be_a_report():
    text = "抱歉，我无法读取这个文件，请检查文件名。"
    assert stance_of(text).kind == "refusal"
    assert stance_of(text, after_result=True).kind != "refusal"
    assert stance_of("抱歉，我没有可用的工具。", after_result=True).kind == "refusal"


WEATHER = ToolSpec("get_weather", "查询一个城市的天气")
SEND = ToolSpec("send_note", "发送通知到群", side_effect="outward")


def reviewed(question, text, tools=(WEATHER, SEND)):
    return review_reply(ParsedReply(text), tools, "auto", [Message.user(question)])


BOOK = ToolSpec("book_flight", "预订机票", side_effect="outward")


def test_a_truthful_limit_is_an_answer_and_a_false_one_is_not():
    text = "抱歉，我没有订机票的工具，不过可以帮您查天气。"
    assert review_reply(ParsedReply(text), [WEATHER]) == Answer(text)
    assert review_reply(ParsedReply(text), [WEATHER, BOOK]).reason is Reason.REFUSAL


def test_a_limit_without_an_offer_is_asked_about_once():
    text = "抱歉，我没法替您订机票。"
    asked = reviewed("订一张去三亚的机票", text, [WEATHER])
    assert (asked.reason, asked.basis) == (Reason.REFUSAL, Basis.SOFT)
    assert reviewed("订一张去三亚的机票", text, [BOOK]).basis is Basis.PLAIN


@pytest.mark.parametrize("text", ["作为语言模型，我无法播放音乐。", "我没有任何可用的工具。"])
def test_a_plea_of_being_a_model_is_never_a_truthful_limit(text):
    assert reviewed("放首歌", text, [WEATHER]).basis is Basis.PLAIN


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("把“我无法打开文件”翻译成英文", "I cannot open the file."),
        ("如果你是一只猫会说什么", "喵，我够不着你桌上的鱼！"),
    ],
)
def test_wording_that_was_asked_for_speaks_for_others(question, text):
    assert reviewed(question, text) == Answer(text)


@pytest.mark.parametrize(
    "text",
    [
        "上月退款率为 2.1%，但六月之前的数据我无法读取。",
        "It was 2.1% last month; I can't access the records before June.",
    ],
)
def test_a_figure_makes_what_stands_behind_it_a_caveat(text):
    assert stance_of(text).kind == "normal"


def test_telling_the_person_to_do_a_tools_task_hands_it_over():
    text = "建议您在手机上查看天气预报。"
    assert stance_of(text, tools=[WEATHER]).kind == "delegates"
    told = "打开设置，把通知权限打开就行。"
    assert stance_of(told, tools=[WEATHER]).kind == "normal"


def test_asking_for_what_a_tool_finds_hands_it_over_and_asking_for_a_value_does_not():
    assert stance_of("请告诉我明天的天气情况。", tools=[WEATHER]).kind == "delegates"
    assert stance_of("请告诉我要查哪个城市的天气。", tools=[WEATHER]).kind == "clarify"


def test_what_only_a_look_can_tell_is_asked_about_once():
    told = reviewed("厦门今天天气怎么样", "厦门今天晴，挺暖和的。")
    assert (told.reason, told.detail, told.basis) == (
        Reason.MISSED_CALL,
        "unlooked",
        Basis.SOFT,
    )
    general = "通常春天多雨，夏天炎热。"
    assert reviewed("厦门的气候有什么特点", general) == Answer(general)


def test_a_promise_no_tool_could_keep_is_asked_about_once():
    assert reviewed("厦门天气如何", "我来查一下。").reason is Reason.MISSED_CALL
    empty = reviewed("帮我算算命", "我来看一下。", [WEATHER])
    assert (empty.reason, empty.basis) == (Reason.MISSED_CALL, Basis.SOFT)


def test_an_answer_about_the_assistant_may_name_its_tools():
    text = "我可以用 get_weather 查天气。"
    assert reviewed("你会做什么？", text) == Answer(text)


@pytest.mark.parametrize(
    ("question", "text", "why"),
    [
        ("厦门天气如何", "好的，收到。", "idle"),
        ("把放假通知发到群里", "把放假通知发到群里。", "idle"),
        ("把放假通知发到群里", "各位同事：十月一日放假。", "effect_missing"),
        ("看一下厦门的天气", "要查看天气，您可以使用以下命令：\n```\ncurl x\n```", "lesson"),
    ],
)
def test_a_reply_that_leaves_the_deed_undone_is_asked_about(question, text, why):
    assert reviewed(question, text) == Retry(
        Reason.MISSED_CALL, why, "send_note" if "通知" in question else "get_weather", Basis.SOFT
    )


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("怎么把通知发到群里？", "打开群，粘贴，再点发送。"),
        ("谢谢", "好的。"),
        ("不要发到群里，只写一份放假通知", "各位同事：十月一日放假。"),
    ],
)
def test_soft_evidence_needs_a_plain_request(question, text):
    assert reviewed(question, text) == Answer(text)


def test_leaving_a_step_out_is_fair_when_something_failed():
    conversation = [
        Message.user("查厦门天气，发到群里"),
        Message.assistant("", [ToolCall("a", "get_weather", {"city": "厦门"})]),
        Message.tool(ToolResult("a", "get_weather", Status.FAILED, "服务没有响应")),
    ]
    text = "天气没有查到，所以没有发。"
    assert review_reply(ParsedReply(text), [WEATHER, SEND], "auto", conversation) == Answer(text)


@pytest.mark.parametrize("text", ["好的，我明白了。", "Sure, got it!", "收到，谢谢。"])
def test_a_nod_is_recognised(text):
    assert says_nothing(text)


@pytest.mark.parametrize("text", ["", "好的，厦门晴。", "OK Computer is an album"])
def test_more_than_a_nod_is_not_a_nod(text):
    assert not says_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "要" * 20_000 + "x",
        "我" * 200_000,
        "无法" * 90_000,
        "i can't " * 50_000,
        "好的" * 20_000 + "x",
    ],
)
def test_hostile_text_is_judged_quickly(text):
    started = time.process_time()
    stance_of(text)
    says_nothing(text)
    # The processor's time, so that other load does not count: a pattern that tries every
    # combination takes hours here, a sound one some milliseconds.
    assert time.process_time() - started < 20


EVIDENCE = files("chathands.emulation.prompts").joinpath("stance.toml").read_text("utf-8")


def test_every_pattern_can_be_put_together():
    tables = tomllib.loads(EVIDENCE)
    names = [*tables["parts"], *tables["rules"]]
    assert len(set(names)) == len(names) > 100
    for name in names:
        assert "{" not in re.sub(r"\{\d*,?\d*\}", "", rule(name).pattern), name


def test_evidence_stays_readable():
    lines = EVIDENCE.split("\n")
    assert max(map(len, lines)) <= 420
    for above, line in pairwise(lines):
        if line.endswith("= ["):
            assert above.startswith("#"), f"what is {line} for?"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("请您自己运行这条命令，再把输出粘贴给我。", "give_back"),
        ("天气请查看官方网站。", "elsewhere"),
    ],
)
def test_handing_over_is_a_kind_of_its_own_and_asked_again_like_a_promise(text, rule):
    stance = stance_of(text, tools=[WEATHER])
    assert (stance.kind, rule in stance.evidence) == ("delegates", True)
    said = ParsedReply(text)
    outcome = review_reply(said, [WEATHER], "auto", [Message.user("北京天气怎么样？")])
    assert outcome.reason is Reason.MISSED_CALL
    # withdrawn tools: pointing elsewhere is a fair answer then
    assert review_reply(said, [WEATHER], "none", [Message.user("北京天气怎么样？")]) == Answer(text)
