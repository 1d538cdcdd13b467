import asyncio
import sqlite3

import pytest

from chathands.conversation import Message, Status, ToolCall, ToolResult
from chathands.store import STATE_FILE, Summary, open_store
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


async def recent_texts(store, conversation: str = "c") -> list[str]:
    _, rounds = await store.conversations.recent(conversation)
    return [one.messages[0].text for one in rounds]


async def test_a_summary_stands_for_the_rounds_up_to_it(store):
    for text in "甲乙丙":
        await store.conversations.append("c", a_round(text))
    _, rounds = await store.conversations.recent("c")
    await store.conversations.summarise("c", Summary("甲和乙", rounds[1].id, foreign=True))
    summary, left = await store.conversations.recent("c")
    assert (summary.text, summary.foreign) == ("甲和乙", True)
    assert [one.messages[0].text for one in left] == ["丙"]
    await store.conversations.summarise("c", Summary("全部", left[0].id))
    summary, left = await store.conversations.recent("c")
    assert (summary.text, summary.foreign, left) == ("全部", False, [])
    assert await store.conversations.recent("other") == (None, [])


async def test_a_summary_that_comes_after_the_forgetting_is_not_kept(store):
    await store.conversations.append("c", a_round("甲"))
    _, (one,) = await store.conversations.recent("c")
    await store.conversations.forget("c")
    await store.conversations.summarise("c", Summary("甲", one.id))
    assert await store.conversations.recent("c") == (None, [])


async def test_what_is_forgotten_is_in_no_file_any_more(tmp_path):
    async with await open_store(tmp_path) as store:
        for number in range(20):
            await store.conversations.append("c", a_round(f"TOPSECRET{number}" * 40))
        _, rounds = await store.conversations.recent("c")
        await store.conversations.summarise("c", Summary("TOPSECRET", rounds[3].id))
        await store.conversations.append("d", a_round("KEPT"))
        await store.conversations.forget("c")
        for file in tmp_path.iterdir():
            assert b"TOPSECRET" not in file.read_bytes()
        assert await recent_texts(store, "d") == ["KEPT"]


async def test_what_has_expired_is_neither_read_nor_kept(tmp_path):
    async with await open_store(tmp_path) as store:
        for text in "甲乙丙":
            await store.conversations.append("c", a_round(text))
        _, rounds = await store.conversations.recent("c")
    with sqlite3.connect(tmp_path / STATE_FILE) as database:
        database.execute("UPDATE rounds SET at = at - 864000 WHERE id < ?", [rounds[2].id])
    database.close()
    async with await open_store(tmp_path) as store:
        await store.conversations.summarise("c", Summary("甲和乙", rounds[1].id))
    async with await open_store(tmp_path, memory_days=9) as store:
        assert await store.conversations.recent("c") == (None, [rounds[2]])
        assert await store.conversations.load("c", 6) == a_round("丙")
    async with await open_store(tmp_path) as store:
        assert await recent_texts(store) == ["丙"]
