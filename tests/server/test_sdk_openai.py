"""The gateway under the real `openai` SDK: sync, async, streams, its helpers."""

import asyncio
import json

import openai
import pytest
import pytest_asyncio
from pydantic import BaseModel

from tests.server.gateway_kit import Gate, call, gate, in_thread
from tests.standins.model_server import Reply

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
SEND = {
    "type": "function",
    "function": {
        "name": "send_mail",
        "description": "Sends a mail.",
        "parameters": {
            "type": "object",
            "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
            "required": ["to", "text"],
        },
    },
}
TOOLS = [WEATHER, SEND]
QUESTION = {"role": "user", "content": "What is the weather in 北京?"}
CALL = call("get_weather", city="北京")
BOTH = f"{CALL}\n\n{call('get_weather', city='上海')}"
LONG = "The sky over the city is clear today and it will stay so until the evening. " * 6


@pytest_asyncio.fixture(scope="module")
async def server():
    async with gate() as running:
        yield running


@pytest_asyncio.fixture(scope="module")
async def client(server: Gate):
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="any", max_retries=0, timeout=20
    ) as client:
        yield client


def ask(client, **fields):
    fields = {"model": "plain", "messages": [QUESTION]} | fields
    return client.chat.completions.create(**fields)


class Got(BaseModel):
    """A reply, whichever way it came."""

    text: str = ""
    calls: list[tuple[str, str]] = []
    ids: list[str] = []
    finish_reason: str | None = None
    usage: openai.types.CompletionUsage | None = None


async def get(client, *, stream, **fields) -> Got:
    if not stream:
        reply = await ask(client, **fields)
        assert reply.object == "chat.completion"
        assert reply.id
        assert reply.created
        assert reply.model == "plain"
        (choice,) = reply.choices
        assert choice.message.role == "assistant"
        calls = choice.message.tool_calls or []
        return Got(
            text=choice.message.content or "",
            calls=[(c.function.name, c.function.arguments) for c in calls],
            ids=[c.id for c in calls],
            finish_reason=choice.finish_reason,
            usage=reply.usage,
        )
    got = Got()
    options = {"include_usage": True}
    chunks = [c async for c in await ask(client, stream=True, stream_options=options, **fields)]
    assert len({(c.id, c.created, c.model, c.object) for c in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert not chunks[-1].choices
    got.usage = chunks[-1].usage
    for chunk in chunks[:-1]:
        assert chunk.usage is None
        delta, end = chunk.choices[0].delta, chunk.choices[0].finish_reason
        got.text += delta.content or ""
        for part in delta.tool_calls or ():
            assert part.index == len(got.calls)
            got.ids.append(part.id)
            got.calls.append((part.function.name, part.function.arguments))
        got.finish_reason = end or got.finish_reason
    return got


def arguments(got: Got) -> list[dict]:
    return [json.loads(written) for _, written in got.calls]


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


# --- calls


@both_ways
async def test_a_block_is_a_tool_call(server, client, stream):
    server.plays(CALL)
    got = await get(client, stream=stream, tools=TOOLS)
    assert got.calls == [("get_weather", '{"city": "北京"}')]
    assert (got.text, got.finish_reason) == ("", "tool_calls")
    assert got.usage.prompt_tokens == 10
    assert got.usage.total_tokens == got.usage.prompt_tokens + got.usage.completion_tokens


@both_ways
async def test_text_beside_calls_and_several_calls(server, client, stream):
    server.plays(f"I look both up.\n\n{BOTH}")
    got = await get(client, stream=stream, tools=TOOLS)
    assert got.text.strip() == "I look both up."
    assert arguments(got) == [{"city": "北京"}, {"city": "上海"}]
    assert len(set(got.ids)) == 2


@both_ways
async def test_one_call_leaves_where_only_one_may(server, client, stream):
    server.plays(BOTH)
    got = await get(client, stream=stream, tools=TOOLS, parallel_tool_calls=False)
    assert arguments(got) == [{"city": "北京"}]


@both_ways
@pytest.mark.parametrize(
    ("choice", "replies", "called"),
    [
        ("auto", [LONG], []),
        ("none", [LONG], []),
        ({"type": "none"}, [LONG], []),
        ("required", [CALL], ["get_weather"]),
        ("required", ["I would rather not.", CALL], ["get_weather"]),
        (
            {"type": "function", "function": {"name": "get_weather"}},
            [call("send_mail", to="a", text="b"), CALL],
            ["get_weather"],
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "get_weather"}}],
                },
            },
            [call("send_mail", to="a", text="b"), CALL],
            ["get_weather"],
        ),
    ],
    ids=["auto", "none", "none as object", "required", "required late", "named", "allowed"],
)
async def test_every_choice_of_tools(server, client, stream, choice, replies, called):
    server.plays(*replies)
    got = await get(client, stream=stream, tools=TOOLS, tool_choice=choice)
    assert [name for name, _ in got.calls] == called
    assert got.finish_reason == ("tool_calls" if called else "stop")
    assert got.text == ("" if called else LONG.strip()) or not called
    assert len(server.asked) == len(replies)


@both_ways
async def test_the_old_functions_are_answered_in_the_old_form(server, client, stream):
    functions = [WEATHER["function"]]
    server.plays(BOTH)
    if stream:
        parts = [c async for c in await ask(client, functions=functions, stream=True)]
        (function,) = [
            c.choices[0].delta.function_call for c in parts if c.choices[0].delta.function_call
        ]
        end = parts[-1].choices[0].finish_reason
    else:
        choice = (await ask(client, functions=functions, function_call="auto")).choices[0]
        function, end = choice.message.function_call, choice.finish_reason
        assert choice.message.tool_calls is None
    assert (function.name, function.arguments) == ("get_weather", '{"city": "北京"}')
    assert end == "function_call"


async def test_old_function_results_come_to_the_model(server, client):
    server.plays("It is clear in 北京.")
    history = [
        QUESTION,
        {"role": "assistant", "content": None,
         "function_call": {"name": "get_weather", "arguments": '{"city": "北京"}'}},
        {"role": "function", "name": "get_weather", "content": "clear, 7 degrees"},
    ]  # fmt: skip
    reply = await ask(client, messages=history, functions=[WEATHER["function"]])
    assert reply.choices[0].message.content == "It is clear in 北京."
    assert "clear, 7 degrees" in json.dumps(server.asked[0].body, ensure_ascii=False)


# --- histories


def answered(*results, calls=("c1", "c2"), **more):
    wires = [
        {"id": i, "type": "function",
         "function": {"name": "get_weather", "arguments": '{"city": "北京"}'}}
        for i in calls
    ]  # fmt: skip
    assistant = {"role": "assistant", "content": None, "tool_calls": wires} if wires else None
    tools = [{"role": "tool", "tool_call_id": i, "content": "clear"} for i in results]
    return {"messages": [QUESTION, *filter(None, [assistant]), *tools], **more}


@both_ways
@pytest.mark.parametrize(
    "fields",
    [
        answered("c1", "c2", tools=TOOLS),
        answered("c1", "c2"),
        answered("c1", "c2", tools=[]),
        answered("c2", "c1", tools=TOOLS),
        answered("c1", "c1", "c2", tools=TOOLS),
        answered("c1", tools=TOOLS),
        answered("gone", calls=(), tools=TOOLS),
        answered("gone", calls=()),
        answered("c1", "c1", calls=("c1", "c1"), tools=TOOLS),
        answered("c1", calls=("c1",), tools=TOOLS, tool_choice="required"),
        {"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]},
        {"messages": [QUESTION, {"role": "assistant", "content": None, "tool_calls": []}]},
        {"messages": [QUESTION, {"role": "assistant", "content": None}, QUESTION]},
    ],
    ids=[
        "in order", "without tools", "tools empty", "out of order", "twice", "one missing",
        "orphan", "orphan without tools", "same id", "choice is met", "only a result",
        "no calls in list", "empty assistant",
    ],
)  # fmt: skip
async def test_whatever_a_history_holds_the_model_is_asked(server, client, stream, fields):
    server.plays(LONG)
    got = await get(client, stream=stream, **fields)
    assert got.text.strip() == LONG.strip()
    assert got.finish_reason == "stop"


@both_ways
async def test_a_second_request_without_tools_may_call_again(server, client, stream):
    server.plays(call("get_weather", city="上海"))
    got = await get(client, stream=stream, **answered("c1", "c2"))
    assert arguments(got) == [{"city": "上海"}]


async def test_a_whole_task_of_two_steps_by_the_sdks_own_messages(server, client):
    server.plays(CALL, call("send_mail", to="a@b", text="clear"), "Sent: it is clear.")
    messages: list = [{"role": "user", "content": "Mail the weather of 北京 to a@b."}]
    for result in ("clear", "sent"):
        reply = await ask(client, messages=messages, tools=TOOLS)
        message = reply.choices[0].message
        messages.append(message)
        messages += [
            {"role": "tool", "tool_call_id": c.id, "content": result} for c in message.tool_calls
        ]
    last = await ask(client, messages=messages, tools=TOOLS)
    assert last.choices[0].message.content == "Sent: it is clear."


# --- requests without tools


@both_ways
async def test_a_request_without_tools_reaches_the_model_as_it_is(server, client, stream):
    server.plays("Hello.")
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "q", "own": 1}], "name": "n"},
    ]
    fields = {
        "messages": messages, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["x"],
        "max_completion_tokens": 9, "presence_penalty": 0.1, "user": "u", "logit_bias": {"1": 2},
        "extra_body": {"own_field": {"a": [1, 2.0, None]}},
    }  # fmt: skip
    got = await get(client, stream=stream, **fields)
    assert (got.text, got.finish_reason) == ("Hello.", "stop")
    extra = fields.pop("extra_body")
    expected = {"model": "plain", **fields, **extra}
    if stream:
        expected |= {"stream": True, "stream_options": {"include_usage": True}}
    assert server.asked[0].body == expected


async def test_what_an_upstream_adds_to_its_reply_is_kept(server, client):
    message = {"role": "assistant", "content": "好", "reasoning_content": "hm", "annotations": []}
    document = {
        "id": "up-1", "object": "chat.completion", "created": 5, "model": "m-2026",
        "system_fingerprint": "fp", "service_tier": "default",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop",
                     "logprobs": {"content": []}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }  # fmt: skip
    server.plays(Reply(body=json.dumps(document)))
    reply = await client.chat.completions.with_raw_response.create(
        model="plain", messages=[QUESTION], logprobs=True
    )
    assert json.loads(reply.text) == document | {"model": "plain"}


@both_ways
async def test_an_upstream_that_does_not_count_is_estimated_and_said_so(server, client, stream):
    for fields in ({}, {"tools": TOOLS}):
        server.plays(Reply(LONG, usage=False))
        got = await get(client, stream=stream, **fields)
        assert got.usage.completion_tokens == pytest.approx(len(LONG) / 4, rel=0.5)
        assert got.usage.prompt_tokens > 5
        assert got.usage.model_extra == {"estimated": True}


@both_ways
@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
async def test_json_that_was_asked_for_comes_without_its_fence(server, client, stream, kind):
    wanted: dict = {"type": kind}
    if kind == "json_schema":
        wanted["json_schema"] = {"name": "a", "schema": {"type": "object"}}
    server.plays('```json\n{"a": "北京"}\n```')
    got = await get(client, stream=stream, response_format=wanted)
    assert json.loads(got.text) == {"a": "北京"}
    assert server.asked[0].body["response_format"] == wanted
    # Beside tools the model is told, as its JSON mode would forbid calls.
    server.plays('```json\n{"a": "北京"}\n```')
    got = await get(client, stream=stream, response_format=wanted, tools=TOOLS)
    assert json.loads(got.text) == {"a": "北京"}
    assert "response_format" not in server.asked[0].body
    assert "one JSON value" in server.asked[0].body["messages"][0]["content"]


@both_ways
async def test_an_upstream_that_answers_in_the_other_form_is_understood(server, client, stream):
    if stream:
        server.plays(Reply("好的。", ignores_stream=True))
    else:
        chunk = {"choices": [{"index": 0, "delta": {"content": "好的。"}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        server.plays(Reply(body=body, content_type="text/event-stream"))
    got = await get(client, stream=stream)
    assert (got.text, got.finish_reason) == ("好的。", "stop")


# --- the rest of a request


@both_ways
async def test_text_ends_at_a_stop_sequence(server, client, stream):
    server.plays("Thought: clear.\nObservation: invented")
    got = await get(client, stream=stream, tools=TOOLS, stop=["Observation:", "```"])
    assert got.text.strip() == "Thought: clear."
    assert got.finish_reason == "stop"
    assert server.asked[0].body["stop"] == ["Observation:"]  # the other one would cut the calls


@both_ways
async def test_sampling_reaches_the_model_beside_tools(server, client, stream):
    server.plays(CALL)
    fields = {"temperature": 0.3, "top_p": 0.8, "seed": 3, "max_completion_tokens": 77}
    await get(client, stream=stream, tools=TOOLS, **fields)
    body = server.asked[0].body
    assert {k: body.get(k) for k in ("temperature", "top_p", "seed", "max_tokens")} == {
        "temperature": 0.3, "top_p": 0.8, "seed": 3, "max_tokens": 77,
    }  # fmt: skip


async def test_more_tokens_than_the_context_holds_are_not_asked_for(server, client):
    server.plays(CALL)
    await ask(client, tools=TOOLS, max_tokens=32_000)
    assert 1024 <= server.asked[0].body["max_tokens"] < 8192


@both_ways
async def test_a_cut_reply_says_so(server, client, stream):
    for fields in ({}, {"tools": TOOLS}):
        server.plays(*[Reply(LONG, finish_reason="length")] * 3)
        got = await get(client, stream=stream, **fields)
        assert got.finish_reason == "length"
        assert got.text.startswith("The sky")


async def test_pictures_reach_the_model_or_are_named_to_it(server, client):
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
    ]
    messages = [{"role": "user", "content": parts}]
    server.plays("A dot.", "A dot.")
    await ask(client, messages=messages)
    assert server.asked[0].body["messages"] == messages
    await ask(client, messages=messages, tools=TOOLS)
    assert "image/png" in server.asked[1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"n": 0}, "n"),
        ({"tools": TOOLS, "logprobs": True}, "logprobs"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0.type"),
        ({"tools": [{"type": "function", "function": {"name": "a\nb"}}]}, "tools.0.function.name"),
        ({"tools": [*TOOLS, WEATHER]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}},
         "tool_choice"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"stop": 5}, "stop"),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_a_400_that_names_the_field(server, client, fields, param):
    server.plays(CALL)
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(client, **fields)
    assert caught.value.type == "invalid_request_error"
    assert (caught.value.param or "").startswith(param)
    assert not server.asked


# --- ends that are no replies


@both_ways
@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["plain", "tools"])
@pytest.mark.parametrize(
    ("reply", "error", "status"),
    [
        (Reply(status=429, text="SECRET"), openai.RateLimitError, 429),
        (Reply(status=401, text="SECRET"), openai.InternalServerError, 502),
        (Reply(status=500, text="SECRET"), openai.InternalServerError, 502),
        (Reply(status=400, text="SECRET"), openai.BadRequestError, 400),
        (Reply(body="<html>SECRET", content_type="text/html"), openai.InternalServerError, 502),
        (Reply(down=True), openai.InternalServerError, 502),
    ],
    ids=["busy", "key", "broken", "refused", "html", "down"],
)
async def test_an_upstreams_failure_is_a_status_also_of_a_stream(
    server, client, stream, fields, reply, error, status
):
    server.plays(reply, reply)
    with pytest.raises(error) as caught:
        await get(client, stream=stream, **fields)
    assert caught.value.status_code == status
    assert "SECRET" not in str(caught.value.body)


@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["plain", "tools"])
async def test_a_stream_whose_upstream_breaks_ends_in_an_error(server, client, fields):
    server.plays(Reply(LONG, drop_after=60))
    text = ""
    with pytest.raises(openai.APIError, match="upstream") as caught:  # noqa: PT012
        async for chunk in await ask(client, stream=True, **fields):
            text += chunk.choices[0].delta.content or ""
    assert text
    assert LONG.startswith(text)
    assert caught.value.type == "upstream_error"


@both_ways
async def test_a_forced_call_that_never_comes_is_an_error(server, client, stream):
    server.plays("No.", "No, really.", "I said no.")
    with pytest.raises(openai.APIStatusError) as caught:
        await get(client, stream=stream, tools=TOOLS, tool_choice="required")
    assert caught.value.status_code == 502


@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["plain", "tools"])
async def test_a_client_that_leaves_its_stream_ends_the_models_reply(server, client, fields):
    server.plays(Reply(LONG * 50, delay=0.001))
    stream = await ask(client, stream=True, **fields)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    await stream.close()
    async with asyncio.timeout(5):
        await server.model.hung_up.wait()


# --- the SDK's own helpers


def test_class_of_arguments() -> None:
    assert openai.pydantic_function_tool(Weather)["function"]["name"] == "Weather"


class Weather(BaseModel):
    """Weather of a city."""

    city: str


class Answer(BaseModel):
    city: str
    degrees: int


async def test_the_streaming_helper_builds_the_message(server, client):
    server.plays(f"I look.\n\n{BOTH}")
    kinds = []
    async with client.chat.completions.stream(
        model="plain", messages=[QUESTION], tools=[WEATHER]
    ) as stream:
        async for event in stream:
            kinds.append(event.type)
        final = await stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert [c.function.parsed_arguments for c in calls] == [{"city": "北京"}, {"city": "上海"}]
    assert kinds.count("tool_calls.function.arguments.done") == 2
    assert "content.delta" in kinds


async def test_parsed_tools_and_answers(server, client):
    server.plays(call("Weather", city="北京"))
    tools = [openai.pydantic_function_tool(Weather)]
    reply = await client.chat.completions.parse(model="plain", messages=[QUESTION], tools=tools)
    function = reply.choices[0].message.tool_calls[0].function
    assert function.parsed_arguments == Weather(city="北京")
    server.plays('```json\n{"city": "北京", "degrees": 7}\n```')
    reply = await client.chat.completions.parse(
        model="plain", messages=[QUESTION], response_format=Answer
    )
    assert reply.choices[0].message.parsed == Answer(city="北京", degrees=7)


async def test_the_synchronous_client(server):
    def work():
        with openai.OpenAI(
            base_url=f"{server.url}/v1", api_key="any", max_retries=0, timeout=20
        ) as client:
            whole = ask(client, tools=TOOLS).choices[0].message.tool_calls
            with client.chat.completions.stream(
                model="plain", messages=[QUESTION], tools=[WEATHER]
            ) as stream:
                streamed = stream.until_done().get_final_completion()
            plain = "".join(c.choices[0].delta.content or "" for c in ask(client, stream=True))
            return whole, streamed.choices[0].message.tool_calls, plain

    server.plays(CALL, CALL, LONG)
    whole, streamed, plain = await in_thread(work)
    assert [c.function.name for c in (*whole, *streamed)] == ["get_weather"] * 2
    assert plain == LONG
