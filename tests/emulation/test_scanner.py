"""What leaves while a reply arrives, and when."""

from __future__ import annotations

import json
import statistics

import pytest

from chathands.conversation import ToolCall
from chathands.emulation.outcome import CallReady, TextDelta
from chathands.emulation.reading import parse_reply
from chathands.emulation.scanner import Scanner
from chathands.limits import BATCH_PROSE
from tests.emulation.replies import TOOLS, block, calls_of, cases, in_pieces_of, read_in_pieces

READ = '{"tool":"read_file","parameters":{"path":"src/app.py"}}'
TIME = '{"tool":"get_time","parameters":{}}'


def names(events: list[str | ToolCall]) -> list[str]:
    return [event if isinstance(event, str) else f"<{event.name}>" for event in events]


def test_text_before_a_block_leaves_before_its_first_brace() -> None:
    reply = "好的，我先看一下这个文件。\n\n" + block(READ)
    scanner = Scanner(TOOLS)
    said = ""
    for char in reply[: reply.index("{")]:
        said += "".join(e.text for e in scanner.feed(char) if isinstance(e, TextDelta))
    assert said == "好的，我先看一下这个文件。"


def test_a_call_leaves_when_its_block_is_closed() -> None:
    scanner = Scanner(TOOLS)
    reply = block(READ)
    assert scanner.feed(reply) == []  # more backticks might follow
    (event,) = scanner.feed("\n")
    assert isinstance(event, CallReady)
    assert event.call.arguments == {"path": "src/app.py"}
    rest, reading = scanner.close("stop")
    assert rest == []
    assert reading.calls == (event.call,)


@pytest.mark.parametrize(
    "reply",
    [
        block(READ),
        block(READ.replace('"', "'")),
        block('{"tool":"write_file","parameters":{"path":"a","content":"```sh\nls\n```\n"}}'),
        READ,
        "get_time()",
        f"<tool_call>{READ}</tool_call>",
        "<function=read_file>\n<parameter=path>\nsrc/app.py\n</parameter>\n</function>",
        'Action: read_file\nAction Input: {"path": "src/app.py"}',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_time:0"
        "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        "<think>plan</think>" + block(READ),
        block("tool: get_time"),
        block('{"tool":"no_such_tool","parameters":{}}'),
        block('{"tool":"read_file","parameters":{"path":'),
    ],
)
@pytest.mark.parametrize("lead", ["", "好的，稍等。\n\n", "Let me look:\n"])
def test_nothing_of_a_block_leaks_into_the_text(reply: str, lead: str) -> None:
    events, reading = read_in_pieces(lead + reply)
    assert reading.text == lead.strip()
    assert [event for event in events if isinstance(event, str)] == ([lead.strip()] if lead else [])


PLAIN = [
    *(c["output"] for c in cases("recorded_small_model.jsonl") if '"tool"' not in c["output"]),
    "# 周报\n\n1. **数据**：用 `get_weather` 查过。\n\n"
    "```python\nimport os\nprint(os.name)\n```\n以上。\n",
    "| 城市 | 天气 |\n|---|---|\n| 北京 | 晴 |\n\n注意：明天有雨。",
    '配置：\n```json\n{\n  "name": "my-app",\n  "scripts": {"build": "tsc"}\n}\n```\n完。',
    "a < b, <b>bold</b>, f(x) = [1, 2]: 好的。\nAction is needed.\nTool: hammer\n",
    '```html\n<!doctype html>\n<div class="a">\n  <p>x</p>\n</div>\n```\n好。',
    "```xml\n<config>\n  <a>1</a>\n" + "  <b>2</b>\n" * 20 + "</config>\n```",
    "> 引用一句\n\n- 第一\n- 第二：`code`\n\n    indented\n",
]


@pytest.mark.parametrize("reply", PLAIN)
def test_a_plain_reply_is_hardly_held(reply: str) -> None:
    scanner = Scanner(TOOLS)
    fed = said = 0
    held = []
    for piece in in_pieces_of(3, reply):
        fed += len(piece)
        said += sum(len(e.text) for e in scanner.feed(piece) if isinstance(e, TextDelta))
        held.append(fed - said)
    assert scanner.close()[1].text == reply.strip()
    assert statistics.median(held) <= 24
    assert max(held) <= 64


# --- the batch


def test_short_prose_between_two_blocks_is_dropped() -> None:
    between = "\n再看一下时间：\n"
    events, reading = read_in_pieces(
        ["先读。\n" + block(READ) + between + block(TIME) + "\n完成。"]
    )
    assert names(events) == ["先读。", "<read_file>", "<get_time>"]
    assert reading.text == "先读。"


@pytest.mark.parametrize(
    "between",
    [
        "\n" + "文" * (BATCH_PROSE + 1) + "\n",
        "\nObservation: 文件内容\n",
        "\n结果 #1 read_file：内容\n",
        "\nTool result: ok\n",
        "\n<tool_response>ok</tool_response>\n",
        "\n```output\nok\n```\n",
        "\n例如：\n",
        "\n<|im_start|>user\n",
    ],
)
def test_anything_more_ends_the_batch(between: str) -> None:
    events, reading = read_in_pieces([block(READ) + between + block(TIME) + "\n北京晴。"])
    assert names(events) == ["<read_file>"]
    assert (reading.text, len(reading.calls), reading.broken) == ("", 1, ())


def test_a_call_behind_an_invented_result_does_not_run() -> None:
    reply = "Observation: 晴\n" + "天气很好。" * 80 + "\n" + block(TIME)
    assert read_in_pieces([reply])[1].calls == ()


def test_a_runaway_list_of_calls_ends() -> None:
    blocks = [block(READ.replace("app", f"app{n}")) for n in range(100)]
    assert len(read_in_pieces(["\n".join(blocks)])[1].calls) == 32
    inside = block("[" + ",".join(READ.replace("app", f"app{n}") for n in range(100)) + "]")
    assert len(read_in_pieces([inside])[1].calls) == 32


# --- quotations


QUOTED = [
    "例如：\n{}",
    "格式如下：\n{}",
    "For example, you would write:\n{}",
    "I can't call functions directly; here is what the call would look like in theory.\n{}",
    "如果你同意，我将执行：\n{}\n可以吗？",
    "If you approve, I will run:\n{}\nShall I proceed?",
    "我不会执行这个危险的操作：\n{}",
    "I refuse to run it.\n{}",
    "刚才我调用了：\n{}",
    "Earlier I ran:\n{}",
    "文件内容如下：\n{}",
    "The user wrote:\n{}",
    "You can use\n{}\nto read a file.",
    "<example>\n{}\n</example>",
    "````markdown\n# 标题\n{}\n````",
    "```markdown\n{}\n```",
    "**示例**\n\n{}",
    "日志内容：\n{}",
    "Instead of running\n{}\nI will just explain.",
    "<!--\n{}\n-->",
]
MEANT = [
    "{}",
    "格式没问题的话，我现在就调用：\n{}",
    "我无法直接看到内容，先读取：\n{}",
    "I can't see the file yet, so I'll read it:\n{}",
    "之前读过 README，现在读源码：\n{}",
    "I don't have real-time data.\n{}",
    "分别读取两个文件：\n{}",
    "The function call is:\n{}",
    "用户说要看源码，我来读取：\n{}",
    "我来读取示例文件：\n{}",
    "我来读取文件内容：\n{}",
    "你可以先看看文档。\n\n{}",
    "刚才的参数写错了，重新调用：\n{}",
    "I have checked the weather. Next, the file:\n{}",
    "Sorry, my previous call had a mistake. Here is the corrected one:\n{}",
]


@pytest.mark.parametrize("frame", QUOTED)
@pytest.mark.parametrize("call", [block(READ), READ, f"<tool_call>{READ}</tool_call>"])
def test_a_call_that_is_shown_is_text(frame: str, call: str) -> None:
    reply = frame.format(call)
    reading = read_in_pieces(in_pieces_of(3, reply))[1]
    assert (reading.calls, reading.broken, reading.text) == ((), (), reply)


@pytest.mark.parametrize("fence", ["````", "~~~", "~~~~"])
def test_a_block_inside_another_fence_is_text(fence: str) -> None:
    reply = f"{fence}\n{block(READ)}\n{fence}"
    reading = read_in_pieces([reply])[1]
    assert (reading.calls, reading.broken, reading.text) == ((), (), reply)


@pytest.mark.parametrize("frame", MEANT)
@pytest.mark.parametrize("call", [block(READ), READ, f"<tool_call>{READ}</tool_call>"])
def test_a_call_that_is_announced_is_meant(frame: str, call: str) -> None:
    assert calls_of(read_in_pieces([frame.format(call)])[1]) == [json.loads(READ)]


@pytest.mark.parametrize(
    "reply",
    [
        f"You can use `{READ}` to read a file.",
        f"> {READ}",
        f"> ```json action\n> {READ}\n> ```",
        f"foo {READ} bar",
        f"{READ} is the format.",
        f'{{"data": {READ}}}',
        f'{{"data": [\n  {READ}\n]}}',
        f"<code>{READ}</code>",
    ],
)
def test_a_call_inside_something_else_is_text(reply: str) -> None:
    reading = read_in_pieces([reply])[1]
    assert (reading.calls, reading.broken, reading.text) == ((), (), reply)


# --- thinking


@pytest.mark.parametrize(
    ("reply", "thought", "text", "called"),
    [
        ("<think>计划</think>\n好的。", "计划", "好的。", []),
        (f"<think>\n{block(TIME)}\n</think>\n{block(READ)}", block(TIME), "", ["read_file"]),
        ("<thinking>没写完……" + block(READ), "没写完……" + block(READ), "", []),
        (f"[THINK]x[/THINK]{block(READ)}", "x", "", ["read_file"]),
        ("好的。\n<think>再想</think>\n完。", "再想", "好的。\n\n完。", []),
        ("use <think> tags", "", "use <think> tags", []),
    ],
)
def test_thinking_is_set_apart(reply: str, thought: str, text: str, called: list[str]) -> None:
    for size in (1, 4, 1000):
        scanner = Scanner(TOOLS)
        for piece in in_pieces_of(size, reply):
            scanner.feed(piece)
        reading = scanner.close()[1]
        assert (reading.thought, reading.text) == (thought, text)
        assert [call.name for call in reading.calls] == called
        assert scanner.thought == thought


def test_a_reply_may_begin_inside_its_thinking() -> None:
    reply = f"计划 {block(TIME)}\n</think>\n好的。"
    reading = read_in_pieces(in_pieces_of(3, reply), thinking="open")[1]
    assert (reading.text, reading.calls) == ("好的。", ())
    assert reading.thought.startswith("计划")


def test_a_lone_end_of_thinking_takes_back_the_opening_and_nothing_later() -> None:
    scanner = Scanner(TOOLS)
    scanner.feed("我先想想……\n</think>\n")
    assert scanner.retracted
    scanner.feed("好的。")
    assert scanner.close()[1].text == "好的。"
    long = "这是一段已经说出去的回答，" * 8
    reading = read_in_pieces([long + "</think>好的。"])[1]
    assert reading.text == long + "</think>好的。"


# --- the object itself


def test_closing_twice_gives_the_same_reading_and_feeding_after_that_is_an_error() -> None:
    scanner = Scanner(TOOLS)
    scanner.feed("好")
    assert scanner.close("stop")[1] == scanner.close()[1]
    with pytest.raises(ValueError, match="closed"):
        scanner.feed("的")


def test_white_space_around_the_text_never_leaves() -> None:
    events, reading = read_in_pieces(["\ufeff \n", "  好", "\n\n", "的 ", "\n"])
    assert events == ["好\n\n的"]
    assert reading.text == "好\n\n的"


def test_a_character_cut_in_half_between_pieces_leaves_whole() -> None:
    halves = ["好\ud83d", "\ude00。"]
    assert read_in_pieces(halves) == read_in_pieces(["好😀。"])
    assert read_in_pieces(["好\ud83d"])[1].text == "好\ufffd"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Thought: I should greet them.\nHello!", "Hello!"),
        ("**Thought:** I know now.\n\nFinal Answer: 晴。\n请带伞。", "晴。\n请带伞。"),
        ("思考：用户在问候，不需要工具。\n你好！", "你好！"),
        ("思考：很简单\n思考：真的\n最终答案：四。", "四。"),
        ("Thought: ok\n<tool_call>\n", ""),
        ("好的。\n<tool_response>\n晴 25\n</tool_response>\n杭州晴。", "好的。\n\n杭州晴。"),
        ("<tool_response>{}</tool_response>", ""),
        ("<|tool_response|>晴<|/tool_response|>杭州晴。", "杭州晴。"),
        ("<｜tool▁outputs▁begin｜>晴<｜tool▁outputs▁end｜>杭州晴。", "杭州晴。"),
        # spoken of, or something else of this name
        ("思考：人生的意义是什么", "思考：人生的意义是什么"),
        ("思考：\n1. 为什么下雨？", "思考：\n1. 为什么下雨？"),
        ("Thought: the oldest question.\nIt has no end.", None),
        ("Thoughtful: yes.\nNo.", None),
        ("第一段。\n思考：用户要什么？\n第二段。", None),
        ("格式如下：<tool_response>内容</tool_response>", None),
        ("结果放在 `<tool_response>` 里。", None),
    ],
)
def test_thoughts_and_made_up_results_are_not_shown(reply: str, text: str | None) -> None:
    events, reading = read_in_pieces([reply])
    assert reading.text == (reply if text is None else text)
    assert "".join(e for e in events if isinstance(e, str)) == reading.text
    assert read_in_pieces(in_pieces_of(1, reply)) == (events, reading)


def test_a_thought_before_an_action_is_kept_apart() -> None:
    reply = 'Thought: 先查。\nAction: get_weather\nAction Input: {"city": "杭州"}'
    reading = parse_reply(reply, TOOLS)
    assert [call.name for call in reading.calls] == ["get_weather"]
    assert (reading.text, reading.thought) == ("", "先查。")
