"""The gateway under the real `anthropic` SDK: sync, async, streams, its helpers and tool runner."""

import asyncio
import json

import anthropic
import httpx
import pytest
import pytest_asyncio
from anthropic import beta_async_tool, beta_tool
from pydantic import BaseModel

from tests.server.gateway_kit import Gate, call, gate, in_thread
from tests.standins.model_server import Reply

WEATHER = {
    "name": "get_weather",
    "description": "Weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
    "cache_control": {"type": "ephemeral"},
}
SEND = {
    "type": "custom",
    "name": "send_mail",
    "input_schema": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
        "required": ["to", "text"],
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
    async with anthropic.AsyncAnthropic(
        base_url=server.url, api_key="any", max_retries=0, timeout=20
    ) as client:
        yield client


def given(**fields):
    return {"model": "plain", "max_tokens": 200, "messages": [QUESTION]} | fields


async def get(client, *, stream, **fields) -> anthropic.types.Message:
    """The reply, whichever way it came."""
    if not stream:
        message = await client.messages.create(**given(**fields))
    else:
        async with client.messages.stream(**given(**fields)) as events:
            message = await events.get_final_message()
    assert message.id.startswith("msg_")
    assert (message.type, message.role, message.model) == ("message", "assistant", "plain")
    return message


def text_of(message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def calls_of(message) -> list:
    return [(b.name, b.input) for b in message.content if b.type == "tool_use"]


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


# --- calls


@both_ways
async def test_text_and_calls_are_blocks(server, client, stream):
    server.plays(f"I look both up.\n\n{BOTH}")
    message = await get(client, stream=stream, tools=TOOLS)
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert text_of(message).strip() == "I look both up."
    assert calls_of(message) == [
        ("get_weather", {"city": "北京"}),
        ("get_weather", {"city": "上海"}),
    ]
    assert len({block.id for block in message.content if block.type == "tool_use"}) == 2
    assert (message.stop_reason, message.stop_sequence) == ("tool_use", None)
    assert message.usage.input_tokens == 10
    assert message.usage.output_tokens > 0


@both_ways
async def test_a_plain_answer(server, client, stream):
    for fields in ({}, {"tools": TOOLS}):
        server.plays(LONG)
        message = await get(client, stream=stream, **fields)
        assert text_of(message).strip() == LONG.strip()
        assert message.stop_reason == "end_turn"


@both_ways
@pytest.mark.parametrize(
    ("choice", "replies", "called"),
    [
        ({"type": "auto"}, [LONG], []),
        ({"type": "none"}, [LONG], []),
        ({"type": "any"}, ["Rather not.", CALL], ["get_weather"]),
        (
            {"type": "tool", "name": "get_weather"},
            [call("send_mail", to="a", text="b"), CALL],
            ["get_weather"],
        ),
        ({"type": "auto", "disable_parallel_tool_use": True}, [BOTH], ["get_weather"]),
        ({"type": "any", "disable_parallel_tool_use": True}, [BOTH], ["get_weather"]),
    ],
    ids=["auto", "none", "any", "tool", "auto single", "any single"],
)
async def test_every_choice_of_tools(server, client, stream, choice, replies, called):
    server.plays(*replies)
    message = await get(client, stream=stream, tools=TOOLS, tool_choice=choice)
    assert [name for name, _ in calls_of(message)] == called
    assert message.stop_reason == ("tool_use" if called else "end_turn")
    assert len(server.asked) == len(replies)


async def test_a_streams_events_stand_in_the_protocols_order(server, client):
    server.plays(f"I look both up.\n\n{BOTH}")
    raw = []
    async with httpx.AsyncClient(base_url=server.url, timeout=20) as plain:
        body = given(tools=TOOLS, stream=True)
        async with plain.stream("POST", "/v1/messages", json=body) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            assert response.headers["request-id"].startswith("req_")
            async for line in response.aiter_lines():
                raw.append(line)
    names = [line.removeprefix("event: ") for line in raw if line.startswith("event: ")]
    datas = [json.loads(line.removeprefix("data: ")) for line in raw if line.startswith("data: ")]
    assert [data["type"] for data in datas] == names
    call_events = ["content_block_start", "content_block_delta", "content_block_delta",
                   "content_block_stop"]  # fmt: skip
    assert names[:3] == ["message_start", "ping", "content_block_start"]
    assert names[-11:] == [
        "content_block_stop", *call_events, *call_events, "message_delta", "message_stop",
    ]  # fmt: skip
    assert set(names[3:-11]) == {"content_block_delta"}
    start = datas[0]["message"]
    assert (start["content"], start["stop_reason"]) == ([], None)
    assert start["usage"]["input_tokens"] > 0
    blocks = [data for data in datas if data["type"] == "content_block_start"]
    assert [block["index"] for block in blocks] == [0, 1, 2]
    assert [block["content_block"].get("input") for block in blocks[1:]] == [{}, {}]
    deltas = [data for data in datas if data["type"] == "content_block_delta"]
    written = [d["delta"]["partial_json"] for d in deltas if "partial_json" in d["delta"]]
    assert written == ["", '{"city": "北京"}', "", '{"city": "上海"}']
    end = datas[-2]
    assert end["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert end["usage"]["input_tokens"] == 10


# --- histories


def answered(*results, calls=("t1", "t2"), content="clear", **more):
    uses = [
        {"type": "tool_use", "id": i, "name": "get_weather", "input": {"city": "北京"},
         "cache_control": {"type": "ephemeral"}}
        for i in calls
    ]  # fmt: skip
    back = [{"type": "tool_result", "tool_use_id": i, "content": content} for i in results]
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assistant = [{"role": "assistant", "content": [thinking, *uses]}] if uses else []
    return {"messages": [QUESTION, *assistant, {"role": "user", "content": back}], **more}


PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
}


@both_ways
@pytest.mark.parametrize(
    "fields",
    [
        answered("t1", "t2", tools=TOOLS),
        answered("t1", "t2"),
        answered("t1", "t2", tools=[]),
        answered("t2", "t1", tools=TOOLS),
        answered("t1", "t1", "t2", tools=TOOLS),
        answered("t1", tools=TOOLS),
        answered("gone", calls=(), tools=TOOLS),
        answered("gone", calls=()),
        answered("t1", calls=("t1",), content=[{"type": "text", "text": "clear"}], tools=TOOLS),
        answered("t1", calls=("t1",), content=[PICTURE], tools=TOOLS),
        answered("t1", calls=("t1",), content=[], tools=TOOLS),
        answered("t1", calls=("t1",), tools=TOOLS, tool_choice={"type": "any"}),
        {"messages": [QUESTION, {"role": "assistant", "content": []}, QUESTION]},
        {"messages": [QUESTION, {"role": "assistant", "content": "The best answer is ("}]},
        {"messages": [QUESTION, {"role": "system", "content": "Be brief."}, QUESTION]},
    ],
    ids=[
        "in order", "without tools", "tools empty", "out of order", "twice", "one missing",
        "orphan", "orphan without tools", "blocks", "picture", "empty", "choice is met",
        "empty assistant", "prefill", "system inside",
    ],
)  # fmt: skip
async def test_whatever_a_history_holds_the_model_is_asked(server, client, stream, fields):
    server.plays(LONG)
    message = await get(client, stream=stream, **fields)
    assert text_of(message).strip() == LONG.strip()
    assert message.stop_reason == "end_turn"


async def test_a_failed_result_and_text_beside_results_reach_the_model(server, client):
    server.plays("It did not work.")
    fields = answered("t1", calls=("t1",), tools=TOOLS)
    fields["messages"][-1]["content"][0] |= {"is_error": True, "content": "no such city"}
    fields["messages"][-1]["content"].append({"type": "text", "text": "Go on, please."})
    await get(client, stream=False, **fields)
    sent = json.dumps(server.asked[0].body, ensure_ascii=False)
    assert "no such city" in sent
    assert "failed" in sent
    assert "Go on, please." in sent


async def test_a_request_without_tools_becomes_plain_chat(server, client):
    server.plays("Hello.")
    blocks = [
        {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}},
        {"type": "document", "title": "T",
         "source": {"type": "text", "media_type": "text/plain", "data": "two"}},
    ]  # fmt: skip
    message = await client.messages.create(
        model="plain",
        max_tokens=50,
        system=[{"type": "text", "text": "s1"}, {"type": "text", "text": "s2"}],
        messages=[
            {"role": "user", "content": blocks},
            {"role": "user", "content": "three"},
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"},
                                              {"type": "text", "text": "ok"}]},
            {"role": "user", "content": [{"type": "text", "text": "see"}, PICTURE]},
        ],
        extra_body={"temperature": 0.5, "top_p": 0.9},
        metadata={"user_id": "u"},
        thinking={"type": "enabled", "budget_tokens": 1024},
    )  # fmt: skip
    assert text_of(message) == "Hello."
    sent = server.asked[0].body
    assert sent == {
        "model": "plain", "stream": True, "max_tokens": 50, "temperature": 0.5, "top_p": 0.9,
        "messages": [
            {"role": "system", "content": "s1\ns2"},
            {"role": "user", "content": "one\nT\ntwo\n\nthree"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]},
        ],
    }  # fmt: skip


# --- ends


@both_ways
@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["plain", "tools"])
async def test_a_stop_sequence_is_named(server, client, stream, fields):
    server.plays(Reply("Thought: clear.\nObservation: invented"))
    stops = ["END", "Observation:"]
    message = await get(client, stream=stream, stop_sequences=stops, **fields)
    assert text_of(message).strip() == "Thought: clear."
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "Observation:")


@both_ways
async def test_a_cut_reply_says_so(server, client, stream):
    for fields in ({}, {"tools": TOOLS}):
        server.plays(*[Reply(LONG, finish_reason="length")] * 3)
        message = await get(client, stream=stream, **fields)
        assert message.stop_reason == "max_tokens"


async def test_an_upstream_that_does_not_count_is_estimated_and_said_so(server, client):
    server.plays(Reply(LONG, usage=False))
    message = await get(client, stream=False, tools=TOOLS)
    assert message.usage.output_tokens == pytest.approx(len(LONG) / 4, rel=0.5)
    assert message.usage.model_extra == {"estimated": True}


@both_ways
@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["plain", "tools"])
@pytest.mark.parametrize(
    ("reply", "error", "kind"),
    [
        (Reply(status=429, text="SECRET"), anthropic.RateLimitError, "rate_limit_error"),
        (Reply(status=401, text="SECRET"), anthropic.InternalServerError, "api_error"),
        (Reply(status=500, text="SECRET"), anthropic.InternalServerError, "api_error"),
        (Reply(status=400, text="SECRET"), anthropic.BadRequestError, "invalid_request_error"),
    ],
    ids=["busy", "key", "broken", "refused"],
)
async def test_an_upstreams_failure_is_a_status_also_of_a_stream(
    server, client, stream, fields, reply, error, kind
):
    server.plays(reply, reply)
    with pytest.raises(error) as caught:
        await get(client, stream=stream, **fields)
    body = caught.value.body
    assert (body["type"], body["error"]["type"]) == ("error", kind)
    assert caught.value.request_id == body["request_id"]
    assert "SECRET" not in str(body)


@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["plain", "tools"])
async def test_a_stream_whose_upstream_breaks_ends_in_an_error(server, client, fields):
    server.plays(Reply(LONG, drop_after=60))
    text = ""
    with pytest.raises(anthropic.APIStatusError) as caught:  # noqa: PT012
        async with client.messages.stream(**given(**fields)) as stream:
            async for piece in stream.text_stream:
                text += piece
    assert text
    assert LONG.startswith(text)
    assert caught.value.body["error"]["type"] == "api_error"


@both_ways
async def test_a_forced_call_that_never_comes_is_an_error(server, client, stream):
    server.plays("No.", "No, really.", "I said no.")
    with pytest.raises(anthropic.InternalServerError) as caught:
        await get(client, stream=stream, tools=TOOLS, tool_choice={"type": "any"})
    assert caught.value.status_code == 502


async def test_a_client_that_leaves_its_stream_ends_the_models_reply(server, client):
    server.plays(Reply(LONG * 50, delay=0.001))
    async with client.messages.stream(**given(tools=TOOLS)) as stream:
        async for _ in stream.text_stream:
            break
    async with asyncio.timeout(5):
        await server.model.hung_up.wait()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]},
         "messages.0.content.0.text"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "tool_use_id"),
        ({"messages": [{"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "b", "input": "c"}]}]}, "input"),
        ({"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf",
                                            "data": "AAAA"}}]}]}, "documents"),
        ({"messages": [{"role": "user", "content": [{"type": "container_upload"}]}]},
         "container_upload"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "bash_20250124"),
        ({"tools": [{"name": "x"}]}, "input_schema"),
        ({"tools": [{"name": "a\nb", "input_schema": {}}]}, "tools.0.name"),
        ({"tools": [WEATHER, WEATHER]}, "unique"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "no"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "tool"}}, "tool_choice"),
        ({"extra_body": {"mcp_servers": [{"type": "url"}]}}, "mcp_servers"),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_a_400_that_says_where(server, client, fields, said):
    server.plays(CALL)
    with pytest.raises(anthropic.BadRequestError, match=said) as caught:
        await get(client, stream=False, **fields)
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert caught.value.request_id.startswith("req_")
    assert not server.asked


# --- counting


@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS, "system": "Be brief."}])
async def test_tokens_are_counted_without_asking_the_model(server, client, fields):
    server.plays()
    text = "The committee met on Tuesday to discuss the proposed changes to the plan. " * 20
    question = {"role": "user", "content": text}
    counted = await client.messages.count_tokens(model="plain", messages=[question], **fields)
    assert not server.asked
    alone = len(text) / 5.4
    assert counted.input_tokens >= alone * 0.85
    if not fields:
        assert counted.input_tokens <= alone * 1.15 + 10


# --- the SDK's own helpers


class Weather(BaseModel):
    city: str
    degrees: int


async def test_the_streaming_helper_tells_of_text_and_input(server, client):
    server.plays(f"I look both up, one after the other.\n\n{BOTH}")
    kinds = []
    async with client.messages.stream(**given(tools=TOOLS)) as stream:
        async for event in stream:
            kinds.append(event.type)
    assert {"text", "input_json", "content_block_stop", "message_stop"} <= set(kinds)


async def test_answers_are_parsed(server, client):
    server.plays('```json\n{"city": "北京", "degrees": 7}\n```')
    message = await client.messages.parse(**given(), output_format=Weather)
    assert message.parsed_output == Weather(city="北京", degrees=7)
    wanted = server.asked[0].body["response_format"]
    assert wanted["json_schema"]["schema"]["properties"].keys() == {"city", "degrees"}


async def test_the_asynchronous_tool_runner(server, client):
    asked = []

    @beta_async_tool
    async def get_weather(city: str) -> str:
        """Weather of a city.

        Args:
            city: its name
        """
        asked.append(city)
        return "clear"

    for stream in (False, True):
        asked.clear()
        server.plays(BOTH, "It is clear in both.")
        runner = client.beta.messages.tool_runner(tools=[get_weather], stream=stream, **given())
        if stream:
            async for part in runner:
                last = await part.get_final_message()
        else:
            last = await runner.until_done()
        assert asked == ["北京", "上海"]
        assert text_of(last) == "It is clear in both."
        # A thread that the server holds is refused, so the whole history came with each turn.
        assert len(server.asked) == 2
        last_asked = json.dumps(server.asked[-1].body, ensure_ascii=False)
        assert given()["messages"][0]["content"] in last_asked
        assert "no known block" not in last_asked


async def test_the_synchronous_client_and_its_tool_runner(server):
    @beta_tool
    def get_weather(city: str) -> str:
        """Weather of a city.

        Args:
            city: its name
        """
        return f"clear in {city}"

    def work():
        with anthropic.Anthropic(
            base_url=server.url, api_key="any", max_retries=0, timeout=20
        ) as client:
            whole = client.messages.create(**given(tools=TOOLS))
            with client.messages.stream(**given()) as stream:
                streamed = "".join(stream.text_stream)
            runner = client.beta.messages.tool_runner(tools=[get_weather], **given())
            return whole, streamed, runner.until_done()

    server.plays(CALL, LONG, CALL, "It is clear.")
    whole, streamed, last = await in_thread(work)
    assert calls_of(whole) == [("get_weather", {"city": "北京"})]
    assert streamed.strip() == LONG.strip()
    assert text_of(last) == "It is clear."
    assert "clear in 北京" in json.dumps(server.asked[-1].body, ensure_ascii=False)


@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}, {}, "x"]
)
@pytest.mark.parametrize("counting", [False, True], ids=["messages", "count_tokens"])
async def test_a_thread_is_refused_in_the_words_that_make_a_client_send_its_history(
    server, client, thread, counting
):
    server.plays("never asked")
    fields = {**given(), "extra_body": {"thread": thread}}
    if counting:
        fields.pop("max_tokens", None)
    with pytest.raises(anthropic.BadRequestError) as refused:
        await (client.messages.count_tokens if counting else client.messages.create)(**fields)
    error = refused.value.body["error"]
    assert error["type"] == "invalid_request_error"
    assert error["details"]["error_code"] == "thread_unsupported_request"
    assert not server.asked
