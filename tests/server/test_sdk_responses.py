"""The Responses API under the real `openai` SDK: sync, async, streams, its helpers, stored ones."""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import openai
import pytest
import pytest_asyncio
from openai.types.responses import Response
from pydantic import BaseModel

from chathands.settings import ApiToken
from chathands.store.responses import Responses
from tests.server.gateway_kit import Gate, call, gate, in_thread
from tests.standins.model_server import Reply

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
SEND = {
    "type": "function",
    "name": "send_mail",
    "parameters": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
        "required": ["to", "text"],
    },
}
TOOLS = [WEATHER, SEND]
QUESTION = "What is the weather in 北京?"
CALL = call("get_weather", city="北京")
BOTH = f"{CALL}\n\n{call('get_weather', city='上海')}"
LONG = "The sky over the city is clear today and it will stay so until the evening. " * 6
CALLED = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "晴，20 度"}
TOKENS = {name: ApiToken(name=name, rate=1000) for name in ("one", "two")}


def store(directory, **limits) -> Responses:
    return Responses(directory, **({"days": 30, "most": 100, "megabytes": 16} | limits))


@pytest_asyncio.fixture(scope="module")
async def server(tmp_path_factory):
    responses = store(tmp_path_factory.mktemp("state"))
    async with gate(tokens=TOKENS, responses=responses) as running:
        yield running
    await responses.aclose()


def sdk(server: Gate, key: str = "one") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=20)


@pytest_asyncio.fixture(scope="module")
async def client(server: Gate):
    async with sdk(server) as client:
        yield client


@pytest_asyncio.fixture(scope="module")
async def other(server: Gate):
    """With another token."""
    async with sdk(server, "two") as client:
        yield client


def given(**fields):
    return {"model": "plain", "input": QUESTION} | fields


async def get(client, *, stream, **fields) -> Response:
    """The response, whichever way it came; of a stream, with its events checked against it."""
    if not stream:
        response = await client.responses.create(**given(**fields))
    else:
        events = [e async for e in await client.responses.create(**given(**fields), stream=True)]
        response = checked(events)
    # The SDK builds its types without checking them.
    Response.model_validate(response.model_dump(by_alias=True))
    assert response.id.startswith("resp_")
    assert (response.object, response.model) == ("response", "plain")
    return response


def checked(events) -> Response:
    """The last event's response, which the events before have to have said already."""
    assert [e.sequence_number for e in events] == list(range(len(events)))
    first, second, *middle, last = events
    assert (first.type, second.type) == ("response.created", "response.in_progress")
    assert first.response.status == "in_progress"
    assert first.response.output == []
    kinds = [e.type.removeprefix("response.") for e in middle]
    for index, item in enumerate(last.response.output):
        own = [e for e in middle if e.output_index == index]
        assert [e.type for e in own] == [e.type for e in middle][: len(own)]
        del middle[: len(own)]  # one item after the other
        added, *rest, done = own
        assert (added.type, done.type) == (
            "response.output_item.added",
            "response.output_item.done",
        )
        assert added.item.id == item.id
        assert added.item.status == "in_progress"
        assert done.item == item
        if item.type == "message":
            part, *deltas, text, end = rest
            assert (part.type, part.part.text) == ("response.content_part.added", "")
            assert {e.type for e in deltas} == {"response.output_text.delta"}
            assert "".join(e.delta for e in deltas) == text.text == item.content[0].text
            assert (text.type, end.type) == (
                "response.output_text.done",
                "response.content_part.done",
            )
            assert {e.item_id for e in rest} == {item.id}
        else:
            *deltas, arguments = rest
            assert added.item.arguments == ""
            assert {e.type for e in deltas} == {"response.function_call_arguments.delta"}
            assert arguments.type == "response.function_call_arguments.done"
            assert "".join(e.delta for e in deltas) == arguments.arguments == item.arguments
    assert middle == []
    assert kinds
    assert last.type == f"response.{last.response.status}"
    return last.response


def calls_of(response) -> list:
    return [
        (item.name, json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]


def told(server: Gate, number: int = 0) -> str:
    return json.dumps(server.asked[number].body, ensure_ascii=False)


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


# --- calls and text


@both_ways
async def test_a_block_is_a_function_call(server, client, stream):
    server.plays(CALL)
    response = await get(client, stream=stream, tools=TOOLS)
    assert response.status == "completed"
    assert calls_of(response) == [("get_weather", {"city": "北京"})]
    (item,) = response.output
    assert item.call_id
    assert item.id.startswith("fc_")
    assert response.output_text == ""
    assert response.tools[0].name == "get_weather"


@both_ways
async def test_text_beside_calls_and_several_calls(server, client, stream):
    server.plays(f"I look both up.\n\n{BOTH}")
    response = await get(client, stream=stream, tools=TOOLS)
    assert [item.type for item in response.output] == ["message", "function_call", "function_call"]
    assert response.output_text.strip() == "I look both up."
    assert calls_of(response) == [("get_weather", {"city": c}) for c in ("北京", "上海")]
    assert len({item.call_id for item in response.output[1:]}) == 2
    assert len({item.id for item in response.output}) == 3


@both_ways
async def test_one_call_leaves_where_only_one_may(server, client, stream):
    server.plays(BOTH)
    response = await get(client, stream=stream, tools=TOOLS, parallel_tool_calls=False)
    assert calls_of(response) == [("get_weather", {"city": "北京"})]
    assert response.parallel_tool_calls is False


@both_ways
@pytest.mark.parametrize(
    ("choice", "replies", "called"),
    [
        ("auto", ["It is sunny."], []),
        ("none", ["It is sunny."], []),
        ("required", ["It is sunny.", CALL], ["get_weather"]),
        ({"type": "function", "name": "get_weather"}, [CALL], ["get_weather"]),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "get_weather"}],
            },
            [CALL],
            ["get_weather"],
        ),
    ],
    ids=["auto", "none", "required", "named", "allowed"],
)
async def test_every_choice_of_tools(server, client, stream, choice, replies, called):
    server.plays(*replies)
    response = await get(client, stream=stream, tools=TOOLS, tool_choice=choice)
    assert [name for name, _ in calls_of(response)] == called
    dumped = response.tool_choice
    assert (dumped if isinstance(choice, str) else dumped.model_dump(exclude_none=True)) == choice
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        assert "send_mail" not in told(server)


@both_ways
async def test_a_request_without_tools_is_an_answer(server, client, stream):
    server.plays(LONG)
    response = await get(client, stream=stream, instructions="Be brief.", temperature=0.5)
    assert response.output_text == LONG
    assert (response.usage.total_tokens, response.temperature) == (
        response.usage.input_tokens + response.usage.output_tokens,
        0.5,
    )
    sent = server.asked[0].body
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": QUESTION},
    ]
    assert sent["temperature"] == 0.5


@both_ways
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["plain", "tools"])
async def test_a_reply_that_is_cut_is_incomplete(server, client, stream, tools):
    server.plays(*[Reply(LONG, finish_reason="length")] * 3)
    fields = {"tools": tools} if tools else {}
    response = await get(client, stream=stream, max_output_tokens=20, **fields)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output[0].status == "incomplete"
    assert server.asked[0].body["max_tokens"] == 20


@pytest.mark.parametrize(
    "input",
    [
        [{"role": "user", "content": QUESTION}, CALLED, RESULT],
        [{"role": "user", "content": QUESTION}, RESULT],
        [RESULT, {"role": "user", "content": QUESTION}, CALLED],
        [{"role": "user", "content": QUESTION}, CALLED, CALLED, RESULT, RESULT],
        [{"role": "user", "content": QUESTION}, CALLED | {"arguments": "{"}, RESULT],
        [
            {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            CALLED,
            RESULT | {"output": [{"type": "input_text", "text": "晴，20 度"}]},
        ],
        [RESULT],
    ],
    ids=["whole", "orphan", "before", "twice", "unreadable", "parts", "alone"],
)
@pytest.mark.parametrize("tools", [None, [], TOOLS], ids=["no tools", "empty", "tools"])
async def test_whatever_a_history_holds_the_model_is_asked(server, client, input, tools):
    server.plays("It is sunny.")
    fields = {"tools": tools} if tools is not None else {}
    response = await get(client, stream=False, input=input, **fields)
    assert response.output_text == "It is sunny."
    if RESULT in input:
        assert "晴，20 度" in told(server)


@both_ways
@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
async def test_json_that_was_asked_for_comes_without_its_fence(server, client, stream, kind):
    wanted = {"type": kind}
    if kind == "json_schema":
        wanted |= {"name": "city", "schema": {"type": "object"}, "strict": True}
    server.plays('```json\n{"a": 1}\n```')
    response = await get(client, stream=stream, text={"format": wanted})
    assert response.output_text == '{"a": 1}'
    sent = server.asked[0].body["response_format"]
    assert sent["type"] == kind
    if kind == "json_schema":
        assert sent["json_schema"] == {k: v for k, v in wanted.items() if k != "type"}


async def test_a_task_of_two_steps_by_the_sdks_own_items(server, client):
    server.plays(CALL, call("send_mail", to="a@b.c", text="晴"), "Done.")
    items = [{"role": "user", "content": "Mail the weather."}]
    for result in ("晴，20 度", "sent"):
        response = await get(client, stream=False, input=items, tools=TOOLS)
        items += response.output
        (called,) = [item for item in response.output if item.type == "function_call"]
        output = {"type": "function_call_output", "call_id": called.call_id, "output": result}
        items.append(output)
    last = await get(client, stream=True, input=items, tools=TOOLS)
    assert last.output_text == "Done."
    assert "晴，20 度" in told(server, 2)


# --- stored responses


async def test_a_chain_of_three_works_across_a_restart(tmp_path):
    @asynccontextmanager
    async def run(*replies):
        responses = store(tmp_path)
        async with gate(tokens=TOKENS, responses=responses) as server, sdk(server) as client:
            server.plays(*replies)
            yield server, client
        await responses.aclose()

    async with run(CALL, "It is sunny.") as (server, client):
        one = await get(client, stream=False, tools=TOOLS, instructions="Speak as a pirate.")
        (called,) = one.output
        result = {"type": "function_call_output", "call_id": called.call_id, "output": "晴，20 度"}
        fields = {"tools": TOOLS, "input": [result]}
        two = await get(client, stream=True, previous_response_id=one.id, **fields)
        assert "晴，20 度" in told(server, 1)
        assert "pirate" in told(server, 0)
        assert "pirate" not in told(server, 1)  # the protocol's rule
    async with run("You asked of 北京.") as (server, client):
        fields = {"input": "Of which city?", "instructions": "Be brief."}
        three = await get(client, stream=False, previous_response_id=two.id, **fields)
        assert three.previous_response_id == two.id
        seen = told(server)
        order = [seen.index(text) for text in (QUESTION, "晴，20 度", "It is sunny.", "Of which")]
        assert order == sorted(order)
        assert seen.index("Be brief.") < order[0]


@both_ways
async def test_what_is_not_stored_or_anothers_cannot_be_gone_on_from(server, client, other, stream):
    server.plays("One.", "Two.")
    loose = await get(client, stream=stream, store=False)
    kept = await get(client, stream=stream)
    for who, id in ((client, loose.id), (other, kept.id), (client, "resp_1")):
        with pytest.raises(openai.BadRequestError) as failed:
            await get(who, stream=stream, previous_response_id=id)
        assert failed.value.code == "previous_response_not_found"
        assert failed.value.param == "previous_response_id"
        for ask in (who.responses.retrieve, who.responses.delete):
            with pytest.raises(openai.NotFoundError):
                await ask(id)
        with pytest.raises(openai.NotFoundError):
            await who.responses.input_items.list(id)
    assert (await client.responses.retrieve(kept.id)).output_text == "Two."
    assert len(server.asked) == 2


async def test_a_stored_response_is_found_listed_and_deleted(server, client):
    server.plays("One.", "Two.")
    items = [{"role": "user", "content": text} for text in ("a", "b", "c")]
    made = await get(client, stream=True, input=items, metadata={"k": "v"})
    assert await client.responses.retrieve(made.id) == made
    page = await client.responses.input_items.list(made.id, limit=2)
    assert [item.content[0].text for item in page.data] == ["c", "b"]
    listed = [item async for item in client.responses.input_items.list(made.id, limit=1)]
    assert [item.content[0].text for item in listed] == ["c", "b", "a"]
    assert len({item.id for item in listed}) == 3
    two = await get(client, stream=False, previous_response_id=made.id)
    await client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(made.id)
    with pytest.raises(openai.BadRequestError, match="not found"):  # its beginning is gone
        await get(client, stream=False, previous_response_id=two.id)


async def test_an_item_that_is_only_named_is_looked_up(server, client, other):
    server.plays("Tomatoes are red.", "Yes.")
    made = await get(client, stream=False)
    items = [{"type": "item_reference", "id": made.output[0].id}, {"role": "user", "content": "?"}]
    await get(client, stream=False, input=items)
    assert "Tomatoes are red." in told(server, 1)
    with pytest.raises(openai.NotFoundError, match="Item with id"):
        await get(other, stream=False, input=items)


async def test_an_answer_is_not_lost_when_it_cannot_be_stored(server, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    async with gate(responses=store(blocked)) as broken, sdk(broken) as client:
        broken.plays("It is sunny.", "It is sunny.")
        for stream in (False, True):
            response = await get(client, stream=stream)
            assert response.output_text == "It is sunny."
            assert response.store is False
        with pytest.raises(openai.InternalServerError) as failed:
            await get(client, stream=False, previous_response_id=response.id)
        assert failed.value.status_code == 503


async def test_without_a_store_nothing_is_stored():
    async with gate() as bare, sdk(bare) as client:
        bare.plays("It is sunny.")
        response = await get(client, stream=False)
        assert response.store is False
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(response.id)
        with pytest.raises(openai.BadRequestError):
            await get(client, stream=False, previous_response_id=response.id)


async def test_input_tokens_are_counted_without_asking_the_model(server, client):
    server.plays()
    few = await client.responses.input_tokens.count(model="plain", input="hi")
    more = await client.responses.input_tokens.count(model="plain", input="hi", tools=TOOLS)
    assert 0 < few.input_tokens < more.input_tokens
    assert server.asked == []


# --- what goes wrong


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": 5}, "input"),
        ({"input": []}, "input"),
        ({"input": [5]}, "input.0"),
        ({"input": [{"role": "user", "content": 5}]}, "input.0.content"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input"),
        ({"input": [{"type": "computer_call"}]}, "input.0.type"),
        ({"input": [{"type": []}]}, "input.0.type"),
        ({"input": [{"role": "user"}]}, "input.0.content"),
        ({"input": [{"role": "king", "content": "?"}]}, "input.0.role"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
         "input.0.content.0.text"),
        ({"input": [RESULT | {"call_id": None}]}, "input.0.call_id"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [WEATHER, {"type": "function"}]}, "tools.1.type"),
        ({"tools": [WEATHER, WEATHER]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"tools": TOOLS, "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "x"}}, "tool_choice"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_a_400_that_names_the_field(
    server, client, stream, fields, param
):
    server.plays()
    with pytest.raises(openai.BadRequestError) as failed:
        await get(client, stream=stream, **fields)
    assert failed.value.param == param
    assert failed.value.type == "invalid_request_error"
    assert server.asked == []


async def test_the_services_own_tools_do_not_matter_where_tools_are_forbidden(server, client):
    server.plays("It is sunny.")
    tools = [*TOOLS, {"type": "web_search"}]
    response = await get(client, stream=False, tools=tools, tool_choice="none")
    assert response.output_text == "It is sunny."


@both_ways
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (400, openai.BadRequestError),
    ],
)
async def test_an_upstreams_failure_is_a_status_also_of_a_stream(
    server, client, stream, status, error
):
    server.plays(*[Reply(status=status, body='{"error": {"message": "SECRET"}}')] * 4)
    with pytest.raises(error) as failed:
        await get(client, stream=stream, tools=TOOLS)
    assert "SECRET" not in str(failed.value)


async def test_a_stream_whose_upstream_breaks_fails_in_the_protocols_way(server, client):
    server.plays(Reply(LONG, drop_after=60))
    events = [e async for e in await client.responses.create(**given(), stream=True)]
    assert [e.sequence_number for e in events] == list(range(len(events)))
    failed = events[-1]
    assert failed.type == "response.failed"
    assert failed.response.status == "failed"
    assert failed.response.error.code == "server_error"
    assert failed.response.output[0].status == "incomplete"
    assert LONG.startswith(failed.response.output[0].content[0].text)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(failed.response.id)


@both_ways
async def test_a_forced_call_that_never_comes_is_an_error(server, client, stream):
    server.plays("No.", "No!", "Never.", "Not at all.")
    with pytest.raises(openai.InternalServerError) as failed:
        await get(client, stream=stream, tools=TOOLS, tool_choice="required")
    assert failed.value.status_code == 502


async def test_a_client_that_leaves_its_stream_ends_the_models_reply(server, client):
    server.plays(Reply(LONG, hang="stream"))
    stream = await client.responses.create(**given(), stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    async with asyncio.timeout(5):
        await server.model.hung_up.wait()


async def test_signs_of_life_come_while_the_model_is_silent(server, monkeypatch):
    monkeypatch.setattr("chathands.server.streaming.SILENCE_SECONDS", 0.05)
    server.plays(Reply("It is sunny.", hang="head"))
    address, headers = f"{server.url}/v1/responses", {"authorization": "Bearer one"}
    async with (
        httpx.AsyncClient() as http,
        http.stream("POST", address, json=given(stream=True), headers=headers) as response,
    ):
        seen = []
        async for line in response.aiter_lines():
            seen.append(line)
            if seen.count(": keep-alive") == 2:
                break
    assert [line for line in seen if line.startswith("event")] == [
        "event: response.created",
        "event: response.in_progress",
    ]


# --- helpers of the SDK


class City(BaseModel):
    name: str
    people: int


class GetWeather(BaseModel):
    city: str


async def test_the_streaming_helper_builds_the_response(server, client):
    server.plays(f"I look.\n\n{BOTH}")
    async with client.responses.stream(**given(tools=TOOLS)) as stream:
        snapshots = [
            e.snapshot async for e in stream if e.type == "response.function_call_arguments.delta"
        ]
        response = await stream.get_final_response()
    assert [json.loads(snapshot)["city"] for snapshot in snapshots] == ["北京", "上海"]
    assert calls_of(response) == [("get_weather", {"city": c}) for c in ("北京", "上海")]


@both_ways
async def test_answers_and_arguments_are_parsed(server, client, stream):
    server.plays('{"name": "北京", "people": 22}', call("GetWeather", city="北京"))
    tool = openai.pydantic_function_tool(GetWeather)["function"] | {"type": "function"}
    asked = [given(text_format=City), given(tools=[tool])]
    if stream:
        found = []
        for fields in asked:
            async with client.responses.stream(**fields) as events:
                found.append(await events.get_final_response())
    else:
        found = [await client.responses.parse(**fields) for fields in asked]
    assert found[0].output_parsed == City(name="北京", people=22)
    assert found[1].output[0].parsed_arguments == {"city": "北京"}


async def test_the_snippet_of_the_page(server, capsys):
    page = (Path(__file__).parents[2] / "docs/gateway.md").read_text("utf-8")
    (code,) = re.findall(r"## Responses.*?```python\n(.*?)```", page, re.DOTALL)
    for shown, here in (
        ("http://127.0.0.1:8081", server.url),
        ('"any"', '"one"'),
        ('"qwen"', '"plain"'),
    ):
        assert shown in code
        code = code.replace(shown, here)
    server.plays("你好，小明。", "小明。")
    await in_thread(lambda: exec(code, {}))
    assert capsys.readouterr().out == "小明。\n"
    assert [m["content"] for m in server.asked[1].body["messages"]] == [
        "一句话。",
        "我叫小明。",
        "你好，小明。",
        "我叫什么？",
    ]


async def test_the_synchronous_client(server):
    server.plays(CALL, "It is sunny.", LONG)

    def work():
        with openai.OpenAI(
            base_url=f"{server.url}/v1", api_key="one", max_retries=0, timeout=20
        ) as client:
            one = client.responses.create(**given(tools=TOOLS))
            (called,) = one.output
            result = {
                "type": "function_call_output",
                "call_id": called.call_id,
                "output": "晴",
            }
            two = client.responses.create(
                model="plain", input=[result], previous_response_id=one.id, tools=TOOLS
            )
            with client.responses.stream(model="plain", input="?") as stream:
                texts = [e.delta for e in stream if e.type == "response.output_text.delta"]
                last = stream.get_final_response()
            return two, texts, last

    two, texts, last = await in_thread(work)
    assert two.output_text == "It is sunny."
    assert "".join(texts) == last.output_text == LONG
    assert len(texts) > 5
