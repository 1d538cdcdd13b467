"""What the next question knows, and who does not know it."""

import asyncio

from chathands.agent import memory
from chathands.conversation import Message, Status, Tag, ToolCall, ToolResult
from chathands.errors import UpstreamFailed
from chathands.toolbox import Caller
from tests.agent.kit import MEMBER, NOTE, READ, block, user_texts, world


def texts(request):
    return [message.content for message in request.messages[1:]]


async def test_the_next_question_sees_question_call_result_and_answer(tmp_path):
    replies = [block("look", what="库存"), "库存正常。", "还是正常。"]
    async with world(tmp_path, replies, READ) as w:
        await w.ask("看看库存")
        await w.ask("现在呢")
    first, call, result, answer, question = texts(w.requests[-1])
    assert first == "看看库存"
    assert call == block("look", what="库存")
    assert "一切正常" in result
    assert answer == "库存正常。"
    assert question.endswith("现在呢")


async def test_nothing_rejected_or_corrected_is_remembered(tmp_path):
    refusal = "抱歉，作为语言模型，我无法使用外部工具。"
    replies = [refusal, block("look", what="库存"), "库存正常。", "好。"]
    async with world(tmp_path, replies, READ) as w:
        await w.ask("看看库存")
        await w.ask("谢谢")
    assert len(texts(w.requests[-1])) == 5
    assert not any("抱歉" in text for text in texts(w.requests[-1]))


async def test_a_run_that_did_nothing_and_failed_is_not_remembered(tmp_path):
    async with world(tmp_path, [UpstreamFailed("500"), "好。"], READ) as w:
        await w.ask("看看库存")
        await w.ask("在吗")
    assert len(texts(w.requests[-1])) == 1


async def test_an_account_is_remembered(tmp_path):
    replies = [block("note", text="买菜"), UpstreamFailed("500"), "记过了。"]
    async with world(tmp_path, replies, NOTE) as w:
        await w.ask("记一下买菜")
        await w.ask("记了吗")
    assert any("note（买菜）：已完成" in text for text in texts(w.requests[-1]))
    assert not any("编号" in text for text in texts(w.requests[-1]))


async def test_an_account_of_mere_reading_is_not_remembered(tmp_path):
    """A model that sees one in its history answers the next question with another."""
    replies = [block("look", what="库存"), UpstreamFailed("500"), "好。"]
    async with world(tmp_path, replies, READ) as w:
        await w.ask("看看库存")
        await w.ask("在吗")
    assert len(texts(w.requests[-1])) == 1


async def test_only_so_many_rounds_are_seen_again(tmp_path):
    answers = [f"第{n}个回答。" for n in range(5)]
    async with world(tmp_path, answers, store={"history_rounds": 2, "summary": False}) as w:
        for n in range(5):
            await w.ask(f"第{n}个问题")
    assert [text for text in texts(w.requests[-1]) if text in answers] == answers[2:4]


async def test_other_people_and_places_have_conversations_of_their_own(tmp_path):
    others = [
        Caller("1", "2001", platform="onebot11", bot_id="9"),
        Caller("1001", "2002", platform="onebot11", bot_id="9"),
        Caller("1001", None, platform="onebot11", bot_id="9"),
        Caller("1001", "2001", platform="terminal", bot_id="9"),
        Caller("1001", "2001", platform="onebot11", bot_id="8"),
    ]
    async with world(tmp_path, ["好。"] * 7) as w:
        await w.ask("秘密是 42", MEMBER)
        for other in others:
            await w.ask("秘密是什么", other)
            assert len(user_texts(w.requests[-1])) == 1
        await w.ask("秘密是什么", MEMBER)
        assert len(user_texts(w.requests[-1])) == 2


async def test_a_named_conversation_can_be_shared(tmp_path):
    async with world(tmp_path, ["好。"] * 2) as w:
        await w.ask("第一个", MEMBER, conversation_id="group")
        await w.ask("第二个", Caller("1"), conversation_id="group")
    assert len(user_texts(w.requests[-1])) == 2


async def test_forgetting_a_conversation(tmp_path):
    async with world(tmp_path, ["好。"] * 2) as w:
        await w.ask("第一个")
        assert await w.agent.forget(MEMBER.conversation_id) == 1
        await w.ask("第二个")
    assert len(user_texts(w.requests[-1])) == 1


async def test_runs_side_by_side_do_not_mix(tmp_path):
    def reply(request):
        mine = request.messages[-1].content
        if "结果" in mine:
            number = mine.split("样品")[1][:2]
            return f"样品{number}一切正常。"
        return block("look", what=f"样品{mine[-2:]}")

    async with world(tmp_path, reply, READ) as w:
        callers = [Caller(str(n), "2001") for n in range(10, 30)]
        finished = await asyncio.gather(*(w.ask(f"look {c.user_id}", c) for c in callers))
        for caller, one in zip(callers, finished, strict=True):
            assert one.text == f"样品{caller.user_id}一切正常。"
        for caller in callers:
            (kept,) = await w.agent._store.conversations.load_rounds(caller.conversation_id, 5)
            assert kept[0].text == f"look {caller.user_id}"
            assert kept[-1].text == f"样品{caller.user_id}一切正常。"
    assert len({one.run_id for one in finished}) == 20


async def test_one_conversation_answers_one_question_after_the_other(tmp_path):
    going = 0

    def reply(request):
        nonlocal going
        going += 1
        assert going <= 4
        return f"第{len(user_texts(request))}个。"

    async with world(tmp_path, reply) as w:
        await asyncio.gather(*(w.ask("问") for _ in range(4)))
        kept = await w.agent._store.conversations.load(MEMBER.conversation_id, 9)
    assert [m.text for m in kept if m.text.startswith("第")] == [
        "第1个。",
        "第2个。",
        "第3个。",
        "第4个。",
    ]


# --- memory itself


def call(number: int, **arguments) -> ToolCall:
    return ToolCall(f"call_{number}", "look", arguments)


def result(number: int, content: str) -> Message:
    return Message.tool(ToolResult(f"call_{number}", "look", Status.OK, content))


def test_a_call_without_its_result_is_not_remembered():
    run = [Message.assistant("查", [call(1), call(2)]), result(1, "好")]
    kept = memory.remember("问", run, "答")
    assert kept == [
        Message.user("问"),
        Message.assistant("查", [call(1)]),
        result(1, "好"),
        Message.assistant("答"),
    ]


def test_only_plain_messages_are_remembered():
    run = [
        Message.assistant("不行", tag=Tag.REJECTED),
        Message.user("再试", tag=Tag.CORRECTION),
        Message.user("最后一轮", tag=Tag.NOTICE),
        Message.assistant("答"),
    ]
    assert memory.remember("问", run, "答") == [Message.user("问"), Message.assistant("答")]


def test_results_further_back_shrink_to_a_line():
    def one():
        return memory.remember(
            "问", [Message.assistant("", [call(1)]), result(1, "行\n" * 5000)], "答"
        )

    messages = memory.recall([one(), one(), one()])
    sizes = [len(m.result.content) for m in messages if m.result is not None]
    assert sizes[0] == sizes[1] < 200
    assert 200 < sizes[2] < 1300
    assert all(m.result.truncated for m in messages if m.result is not None)


def test_ids_do_not_repeat_over_rounds():
    one = memory.remember("问", [Message.assistant("", [call(1)]), result(1, "好")], "答")
    messages = memory.recall([one, one])
    ids = [c.id for m in messages for c in m.calls]
    answered = [m.result.call_id for m in messages if m.result is not None]
    assert len(set(ids)) == 2
    assert ids == answered
