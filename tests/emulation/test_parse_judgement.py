"""What becomes of what was read: a call and its confidence, a broken call and its reason, text."""

from __future__ import annotations

import json

import pytest

from chathands.conversation import Message, ToolSpec
from chathands.emulation.outcome import Answer, Reason
from chathands.emulation.reading import parse_reply
from chathands.emulation.review import review_reply
from tests.emulation.replies import TOOLS, block, calls_of, in_pieces_of, read_in_pieces

READ = '{"tool":"read_file","parameters":{"path":"src/app.py"}}'


def only_broken(reply: str, finish_reason: str | None = None) -> tuple[Reason, str | None, bool]:
    reading = parse_reply(reply, TOOLS, finish_reason)
    assert reading.calls == ()
    (broken,) = reading.broken
    assert broken.detail
    return broken.reason, broken.name, broken.in_contract


@pytest.mark.parametrize(
    "reply",
    [
        '<tool_call>{"name": "nope"</tool_call>',
        '<tool_call>\n{"name": "nope", "arguments": {"a": 1}}\n</tool_call>',
        "<tool_call>nope\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        '<function_calls><invoke name="nope"><parameter name="a">1</parameter></invoke>'
        "</function_calls>",
        '<function=nope>{"a": 1}</function>',
        '[TOOL_CALLS][{"name": "nope", "arguments": {}}]',
        '<|python_tag|>{"name": "nope", "parameters": {}}',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>nope<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
    ],
)
def test_tokens_for_calls_are_never_shown_whoever_they_name(reply: str) -> None:
    reading = parse_reply(f"好的。\n{reply}", TOOLS)
    assert (reading.calls, reading.text) == ((), "好的。")
    assert [(b.reason, b.name) for b in reading.broken] == [(Reason.UNKNOWN_TOOL, "nope")]


@pytest.mark.parametrize("reply", ["<tool_call></tool_call>", '<tool_call>{"a": 1}</tool_call>'])
def test_tokens_around_no_call_are_a_broken_one(reply: str) -> None:
    assert only_broken(reply)[0] is Reason.BROKEN_CALL


@pytest.mark.parametrize(
    "reply",
    [
        '格式是 `<tool_call>{"name": "nope"}</tool_call>`。',
        '```xml\n<tool_call>{"name": "nope", "arguments": {}}</tool_call>\n```',
        '例如：\n<tool_call>{"name": "nope", "arguments": {}}</tool_call>',
        "Use the <tool_call> tag to wrap it.",
        "格式是 <tool_call></tool_call>，里面写 JSON。",
        '<tool name="hammer"><price>5</price></tool>',
    ],
)
def test_an_answer_about_such_tokens_stays_as_it_is(reply: str) -> None:
    reading = parse_reply(reply, TOOLS)
    assert (reading.calls, reading.broken, reading.text) == ((), (), reply)


def test_tokens_around_prose_are_taken_off() -> None:
    assert parse_reply("<tool_call>\n今天晴。\n</tool_call>", TOOLS).text == "今天晴。"


ERASE = '{"tool":"erase_disk","parameters":{"path":"/"}}'
ERASE_AS_OPENAI = '{"name": "erase_disk", "arguments": {"path": "/"}}'
ERASE_IN_LINES = json.dumps(json.loads(ERASE), indent=2)


@pytest.mark.parametrize("info", ["json", "", "tool", "tool_call", "tool_code", "JSON", None])
@pytest.mark.parametrize("body", [ERASE, ERASE_AS_OPENAI, ERASE_IN_LINES, f"[{ERASE}]"])
@pytest.mark.parametrize(
    "lead", ["", "\n", "我来处理：\n", "好的，现在执行。\n\n", "Let me do it:\n"]
)
def test_a_reply_that_is_only_a_call_of_nothing_is_not_shown(
    info: str | None, body: str, lead: str
) -> None:
    reply = lead + (body if info is None else block(body, info))
    assert only_broken(reply) == (Reason.UNKNOWN_TOOL, "erase_disk", False)
    assert parse_reply(reply, TOOLS).text == lead.strip()
    assert read_in_pieces(in_pieces_of(1, reply)) == read_in_pieces([reply])


def test_an_undeclared_name_is_broken_in_the_contract_and_where_a_reply_is_nothing_else() -> None:
    assert only_broken(block(ERASE)) == (Reason.UNKNOWN_TOOL, "erase_disk", True)
    assert only_broken(f"```json\n{ERASE[:-6]}") == (Reason.UNKNOWN_TOOL, "erase_disk", False)
    twice = parse_reply(f"{ERASE}\n\n{ERASE_AS_OPENAI}", TOOLS)
    assert (len(twice.broken), twice.text) == (2, "")
    beside = parse_reply(f"{ERASE}\n{block(READ)}", TOOLS)
    assert (calls_of(beside), len(beside.broken), beside.text) == ([json.loads(READ)], 1, "")


@pytest.mark.parametrize(
    "reply",
    [
        block('{"name": "my-app", "version": "1.0.0", "scripts": {"arguments": "x"}}', "json"),
        '{"name": "my-app", "arguments": ["--fast"]}',
        '{"name": "我的应用 一", "arguments": {}}',
        '{"tool": "hammer", "price": 5}',
        '{"tool": "hammer", "parameters": {"weight": 1}, "price": 5}',
        '{"name": "erase_disk", "parameters": {"type": "object", "properties": {}}}',
        '{"tool": "erase_disk", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "erase_disk", "description": "x", "parameters": {"path": "/"}}',
        '[{"tool": "hammer", "parameters": {}}, {"tool": "saw"}]',
        f"例如：\n{block(ERASE, 'json')}",
        f"可以这样写：\n{ERASE}",
        f"The format is:\n{ERASE}",
        f"我不会执行下面的动作：\n{block(ERASE, 'json')}",
        f"{block(ERASE, 'json')}\n这是格式示例。",
        f"{ERASE}\n\n以上是你要的内容。",
        f"<example>\n{ERASE}\n</example>",
        f"> {ERASE}",
        f"<tool>{ERASE}</tool>",
        f"这份配置保存在仓库里，名字由同事取的。\n{ERASE}",
        f'{ERASE}\n{{"a": 1}}',
        block(f'{{"tool":"nope","parameters":{{}},"steps":[{READ}]}}', "json"),
        f'{{"tool":"nope","parameters":{{"x":"a\n{READ}',
    ],
)
def test_json_that_is_data_shown_or_spoken_of_stays_text(reply: str) -> None:
    reading = parse_reply(reply, TOOLS)
    assert (reading.calls, reading.broken, reading.text) == ((), (), reply)
    assert read_in_pieces(in_pieces_of(1, reply)) == read_in_pieces([reply])


def test_without_tools_every_such_reply_is_text() -> None:
    assert parse_reply(ERASE, []).text == ERASE


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ('{"days": 2}', "`city`"),
        ('{"city": "北京", "days": "soon"}', "`days`"),
        ('{"city": "北京", "unit": "kelvin"}', '"c", "f"'),
        ('["北京"]', "名称"),
        ('{"town": "北京"}', "`city`"),
        ('{"city": {"name": "北京"}}', "`city`"),
    ],
)
def test_arguments_that_do_not_fit_are_named(parameters: str, word: str) -> None:
    reply = block(f'{{"tool":"get_weather","parameters":{parameters}}}')
    assert only_broken(reply) == (Reason.INVALID_ARGUMENTS, "get_weather", True)
    assert word in parse_reply(reply, TOOLS).broken[0].detail


@pytest.mark.parametrize(
    ("parameters", "key"),
    [
        ('{"city":"北京","days" two}', "days"),
        ('{"city" 北京}', "city"),
        ('{"city":"北京","days"}', "days"),
        ('{"days" - ,"city":"北京"}', "days"),
    ],
)
@pytest.mark.parametrize("finish_reason", [None, "stop"])
def test_a_key_without_colon_and_value_is_named_and_nothing_was_cut(
    parameters: str, key: str, finish_reason: str | None
) -> None:
    reply = block(f'{{"tool":"get_weather","parameters":{parameters}}}')
    assert only_broken(reply, finish_reason)[:2] == (Reason.BROKEN_CALL, "get_weather")
    assert f"`{key}`" in parse_reply(reply, TOOLS, finish_reason).broken[0].detail


@pytest.mark.parametrize("rest", ['"days" 2', '"days" ', '"days"', '"days" tw'])
def test_a_text_that_stops_at_such_a_key_was_cut(rest: str) -> None:
    begun = '```json action\n{"tool":"get_weather","parameters":{"city":"北京",'
    assert only_broken(begun + rest, "length")[0] is Reason.TRUNCATED
    assert only_broken(begun + rest)[0] is Reason.TRUNCATED


def test_the_sentences_are_in_the_language_of_the_conversation() -> None:
    reply = block('{"tool":"get_weather","parameters":{}}')
    english = parse_reply(reply, TOOLS, language="en").broken[0].detail
    assert english == "the required argument `city` is missing"
    assert parse_reply(reply, TOOLS).broken[0].detail == "缺少必填参数 `city`"


@pytest.mark.parametrize(
    "reply",
    [
        '```json action\n{"tool":"write_file","parameters":{"path":"a","content":"one two',
        '```json action\n{"tool":"write_file","parameters":{"path":"a","con',
        '```json action\n{"tool":"get_weather","parameters":{"city":"x","days":1',
        '```json action\n{"tool":"get_weather","parameters":{"city":"x",',
        '```json action\n{"tool":"read_fi',
        "```json action\n",
        "<tool_call>\n",
        "<function=write_file>\n<parameter=path>\na",
        'write_file(path="a", content="on',
        'Action: write_file\nAction Input: {"path": "a", "content": "x',
        # a quote may have been meant as part of the value, and more arguments may have followed
        '{"tool":"read_file","parameters":{"path":"src/app.py"',
        'write_file(path="a", content="say "',
        '```json action\n{"tool":"set_alarm","parameters":{"time":"08:00"',
        '```json action\n{"tool":"list_files"',
        '```json action\n{"tool":"set_alarm","parameters":{"time":"08:00"}},"days"',
        "```json action\ntool: write_file\nparameters:\n  path: a\n  content: |\n    on",
        "<tool_call>get_weather\n<arg_key>city</arg_key><arg_value>x</arg_value>\n<arg_k",
    ],
)
@pytest.mark.parametrize("finish_reason", [None, "stop", "length"])
def test_a_reply_cut_inside_an_action_is_truncated(reply: str, finish_reason: str | None) -> None:
    assert only_broken(reply, finish_reason)[0] is Reason.TRUNCATED


@pytest.mark.parametrize(
    "reply",
    [
        '```json action\n{"tool":"read_file","parameters":{"path":"src/app.py"}',
        '{"tool":"read_file","parameters":{"path":"src/app.py"} ',
        '<tool_call>{"name":"read_file","arguments":{"path":"src/app.py"}',
        "<function=read_file><parameter=path>src/app.py</parameter>",
        "<tool_call>read_file\n<arg_key>path</arg_key><arg_value>src/app.py</arg_value>",
        '[read_file(path="src/app.py")',
    ],
)
def test_missing_closers_are_added_unless_the_model_was_cut_off(reply: str) -> None:
    (call,) = parse_reply(reply, TOOLS, "stop").calls
    assert call.confidence == "recovered"
    assert "missing_closer" in call.repairs
    assert only_broken(reply, "length")[0] is Reason.TRUNCATED


def test_a_whole_action_runs_although_the_fence_was_cut_off() -> None:
    reading = parse_reply(f"```json action\n{READ}", TOOLS, "length")
    assert [c.confidence for c in reading.calls] == ["strict"]
    assert reading.finish_reason == "length"


@pytest.mark.parametrize(
    ("reply", "confidence"),
    [
        (block(READ), "strict"),
        (block(READ, "json"), "strict"),
        (f"<tool_call>{READ}</tool_call>", "strict"),
        ("<function=list_files><parameter=recursive>true</parameter></function>", "strict"),
        (block(READ.replace('"', "'")), "repaired"),
        (block(READ.replace("}}", ",}}")), "repaired"),
        (block('{"tool":"get_weather","parameters":{"city":"x","days":"2"}}'), "repaired"),
        (block('{"tool":"Read-File","parameters":{"path":"src/app.py"}}'), "repaired"),
        (block('{"tool":"read_file","parameters":{"path":"src/app.py","mode":"r"}}'), "repaired"),
        (block('{"tool":"read_file","path":"src/app.py"}'), "repaired"),
        (block('{"tool":"send_message","parameters":{"to":"a","text":"x "y" z"}}'), "recovered"),
        (block('{"tool":"read_file","parameters":{"path":"src/app.py"}'), "recovered"),
        ('get_weather("北京")', "recovered"),
        (f"我将执行：{READ}", "recovered"),
    ],
)
def test_confidence_says_how_much_was_put_right(reply: str, confidence: str) -> None:
    (call,) = parse_reply(reply, TOOLS).calls
    assert call.confidence == confidence, call.repairs
    assert call.confidence != "repaired" or call.repairs


def test_a_repaired_text_never_runs_with_arguments_nobody_knows() -> None:
    # the stray quote may have cut a value in two; what is left over is part of it
    reply = block('{"tool":"send_message","parameters":{"to":"a","text":"b "c","d":"e"}}')
    assert parse_reply(reply, TOOLS).calls == ()


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (block('{"tool":"finish","parameters":{"answer":"北京晴。"}}'), "北京晴。"),
        (block('{"tool":"NO_TOOL"}'), ""),
        (
            "好的。\n" + block('{"tool":"none","parameters":{"text":"不需要查。"}}'),
            "好的。\n不需要查。",
        ),
        ('{"action":"Final Answer","action_input":"42"}', "42"),
        # text outside the block is the answer, before and behind it
        (block('{"tool":"NO_TOOL","parameters":{}}') + "\n你好！我是小手。", "你好！我是小手。"),
        (block('{"tool":"NO_TOOL"}') + "\n" + "今天的安排很多。" * 30, "今天的安排很多。" * 30),
        ("你好！\n" + block('{"tool":"none"}') + "\n请说。", "你好！\n\n请说。"),
        ("你好！" + block('{"tool":"none"}'), "你好！"),
        # a reason is no answer, unless there is no other
        (block('{"tool":"none","parameters":{"reason":"只是问候"}}') + "\n你好！", "你好！"),
        (block('{"tool":"none","parameters":{"reason":"北京是首都。"}}'), "北京是首都。"),
    ],
)
def test_no_tool_is_a_decision_and_its_text_the_answer(reply: str, text: str) -> None:
    reading = parse_reply(reply, TOOLS)
    assert (reading.no_tool, reading.text, reading.calls, reading.broken) == (True, text, (), ())


def test_a_call_behind_a_block_without_a_tool_runs_and_ends_the_answer() -> None:
    none = block('{"tool":"NO_TOOL","parameters":{}}')
    reading = parse_reply(f"{none}\n先看看。\n{block(READ)}\n看完了。", TOOLS)
    assert (reading.text, [c.name for c in reading.calls]) == ("先看看。", ["read_file"])
    assert not reading.no_tool
    reading = parse_reply(f"{block(READ)}\n{none}\n看完了。", TOOLS)
    assert (reading.text, [c.name for c in reading.calls]) == ("", ["read_file"])


def test_what_stands_behind_a_block_without_a_tool_is_judged_as_any_text() -> None:
    none = block('{"tool":"NO_TOOL","parameters":{}}')
    question = [Message.user("读一下 src/app.py")]
    pleads = parse_reply(f"{none}\n抱歉，我没有读取文件的工具。", TOOLS)
    assert review_reply(pleads, TOOLS, "auto", question).reason is Reason.REFUSAL
    greets = parse_reply(f"{none}\n你好！我是小手。", TOOLS)
    assert review_reply(greets, TOOLS, "auto", [Message.user("你好")]) == Answer("你好！我是小手。")


def test_a_declared_tool_of_such_a_name_is_called() -> None:
    tools = [{"name": "finish", "parameters": {"type": "object", "properties": {}}}]
    reading = parse_reply(block('{"tool":"finish","parameters":{}}'), tools)
    assert [c.name for c in reading.calls] == ["finish"]
    assert not reading.no_tool


def test_one_bad_sibling_never_drops_the_good_ones() -> None:
    bad = '{"tool":"write_file","parameters":{}}'
    for reply in (
        block(f"{bad}\n{READ}"),
        block(f"[{bad}, {READ}]"),
        block(bad) + "\n" + block(READ),
        block('{"tool":"get_weather","parameters":{"city":"北京}}') + "\n\n" + block(READ),
        block('[{"tool":"get_weather","parameters":{"city":}}, ' + READ + "]"),
        '<tool_call>{"name":"get_weather","arguments":{"city":"北京}}</tool_call>\n'
        f"<tool_call>{READ}</tool_call>",
        block(READ) + "\n```json action\n" + '{"tool":"write_file","parameters":{"path":"a',
    ):
        reading = parse_reply(reply, TOOLS)
        assert calls_of(reading) == [json.loads(READ)], reply
        assert len(reading.broken) == 1


def test_identical_siblings_collapse_and_others_do_not() -> None:
    other = READ.replace("app", "lib")
    reading = parse_reply(block(READ) + block(other) + block(READ.replace(":", ": ")), TOOLS)
    assert calls_of(reading) == [json.loads(READ), json.loads(other)]


def test_call_ids_depend_on_position_order_name_and_arguments_only() -> None:
    reply = block(READ)
    (call,) = parse_reply(reply, TOOLS).calls
    assert call.id.startswith("call_")
    assert len(call.id) == 17
    assert parse_reply("好。\n" + reply, TOOLS).calls[0].id == call.id
    assert parse_reply(reply, TOOLS, position=1).calls[0].id != call.id
    assert parse_reply(block(READ.replace("app", "lib")), TOOLS).calls[0].id != call.id


def test_tools_may_be_specs_or_either_shape_of_openai_dict() -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for tool in (
        ToolSpec("math.factorial", parameters=parameters),
        {"type": "function", "function": {"name": "math.factorial", "parameters": parameters}},
        {"name": "math_factorial", "input_schema": parameters},
        {"name": "math_factorial", "inputSchema": parameters},
    ):
        (call,) = parse_reply("[math.factorial(n=5)]", [tool]).calls
        assert call.arguments == {"n": 5}
    assert ToolSpec.from_openai({"name": "a", "inputSchema": parameters}).extra == {}


def test_numbers_that_are_none_and_half_characters_do_not_get_through() -> None:
    for number in ("NaN", "Infinity", "1e999", "-1e999"):
        reply = block(f'{{"tool":"set_alarm","parameters":{{"time":"08:00","volume":{number}}}}}')
        assert only_broken(reply)[0] is Reason.INVALID_ARGUMENTS
    reply = block(r'{"tool":"send_message","parameters":{"to":"a","text":"x\ud83dy"}}')
    assert parse_reply(reply, TOOLS).calls[0].arguments["text"] == "x\ufffdy"


def test_a_tools_own_schema_in_an_explanation_is_no_call() -> None:
    spec = TOOLS[10]["function"]
    assert parse_reply(block(json.dumps(spec), "json"), TOOLS).calls == ()


def test_the_cap_ends_the_reading_and_cuts_an_open_action() -> None:
    text = "字" * 50
    assert parse_reply(text, TOOLS, cap=20).text == "字" * 20
    reading = parse_reply(block(READ), TOOLS, cap=40)
    assert [b.reason for b in reading.broken] == [Reason.TRUNCATED]
    assert len(parse_reply(block('{"tool":"write_file","parameters":{"path":"a","content":"'
                                 + "字" * 300_000 + '"}}'), TOOLS).calls) == 1  # fmt: skip
