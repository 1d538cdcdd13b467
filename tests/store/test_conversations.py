import asyncio
import sqlite3

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolResult
from chathands.store import STATE_FILE, open_store
from chathands.store.conversations import KEPT_ROUNDS


@pytest.fixture
async def store(tmp_path):
    async with await open_store(tmp_path) as opened:
        yield opened


def a_round(text: str) -> list[Message]:
    call = ToolCall("call_1", "query", {"sheet": "九月"})
    return [
        Message.user(text),
        Message.assistant("查一下", [call]),
        Message.tool(ToolResult("call_1", "query", Status.OK, "12", cost_ms=3)),
        Message.assistant(f"{text}的答复"),
    ]


async def test_a_new_conversation_is_empty(store):
    assert await store.conversations.load("nobody", 6) == []


async def test_the_last_rounds_come_back_whole_and_in_order(store):
    for number in range(4):
        await store.conversations.append("c", a_round(str(number)))
    assert await store.conversations.load("c", 2) == [*a_round("2"), *a_round("3")]


async def test_rounds_can_be_asked_for_apart(store):
    await store.conversations.append("c", a_round("甲"))
    await store.conversations.append("c", a_round("乙"))
    assert await store.conversations.load_rounds("c", 6) == [a_round("甲"), a_round("乙")]


async def test_no_rounds_wanted_means_none(store):
    await store.conversations.append("c", a_round("0"))
    assert await store.conversations.load("c", 0) == []


async def test_conversations_do_not_see_one_another(store):
    await asyncio.gather(
        *(
            store.conversations.append(f"c{number % 5}", [Message.user(f"{number % 5}")])
            for number in range(50)
        )
    )
    for number in range(5):
        loaded = await store.conversations.load(f"c{number}", 20)
        assert [message.text for message in loaded] == [str(number)] * 10


async def test_forgetting_touches_only_one_conversation(store):
    await store.conversations.append("a", a_round("0"))
    await store.conversations.append("b", a_round("0"))
    assert await store.conversations.forget("a") == 1
    assert await store.conversations.load("a", 6) == []
    assert await store.conversations.load("b", 6) == a_round("0")


async def test_the_file_does_not_grow_without_end(store):
    for number in range(KEPT_ROUNDS + 5):
        await store.conversations.append("c", [Message.user(str(number))])
    await store.conversations.append("other", [Message.user("x")])
    loaded = await store.conversations.load("c", 1000)
    assert [message.text for message in loaded] == [str(n) for n in range(5, KEPT_ROUNDS + 5)]


async def test_half_an_emoji_is_kept(store):
    await store.conversations.append("c", [Message.assistant("好\ud83d")])
    assert (await store.conversations.load("c", 1))[0].text == "好\ud83d"


async def test_a_cancelled_append_is_whole_or_absent(store):
    tasks = [asyncio.create_task(store.conversations.append("c", a_round("x"))) for _ in range(5)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for one in await store.conversations.load_rounds("c", 10):
        assert one == a_round("x")


async def test_a_round_that_cannot_be_read_is_left_out(tmp_path, store, caplog):
    await store.conversations.append("c", a_round("甲"))
    with sqlite3.connect(tmp_path / STATE_FILE) as database:
        database.execute("UPDATE rounds SET messages = x'ff'")
    database.close()
    await store.conversations.append("c", a_round("乙"))
    assert await store.conversations.load("c", 6) == a_round("乙")
    assert "left out" in caplog.text
