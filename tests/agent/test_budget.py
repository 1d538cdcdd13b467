"""A request that does not fit is made to fit once, and the question is never what leaves."""

from chathands.agent import budget
from chathands.conversation import Message, Status, ToolCall, ToolResult
from chathands.emulation import sizes
from chathands.emulation.outcome import ModelRequest
from tests.agent.kit import READ, block, world

BIG = READ.replace("一切正常", "一切正常" * 900)


def a_round(number: int, size: int) -> list[Message]:
    call = ToolCall(f"c{number}", "look", {"what": str(number)})
    return [
        Message.user(f"问{number}"),
        Message.assistant("", [call]),
        Message.tool(ToolResult(call.id, "look", Status.OK, "长" * size)),
        Message.assistant(f"答{number}"),
    ]


def test_old_rounds_leave_whole_and_oldest_first():
    history = [m for n in range(4) for m in a_round(n, 500)]
    conversation = [Message.system("系统"), *history, Message.user("现在")]
    shrunk, at = budget.shrink(conversation, len(history) + 1, 900)
    assert shrunk[0].text == "系统"
    assert [m.text for m in shrunk if m.text.startswith("问")] == ["问2", "问3"]
    assert shrunk[at].text == "现在"


def test_then_older_results_of_the_run_shrink_and_the_newest_is_cut_last():
    run = [Message.user("现在"), *a_round(1, 3000)[1:3], *a_round(2, 3000)[1:3]]
    shrunk, at = budget.shrink(run, 0, 2700)
    assert at == 0
    first, second = [m.result.content for m in shrunk if m.result is not None]
    assert len(first) < 200
    assert len(second) == 3000
    _, second = [m.result.content for m in budget.shrink(run, 0, 4500)[0] if m.result is not None]
    assert 800 < len(second) < 1700


def test_nothing_to_shrink_is_left_as_it_is():
    conversation = [Message.user("长" * 9000)]
    assert budget.shrink(conversation, 0, 5000) == (conversation, 0)


def test_chinese_counts_more_than_ascii():
    assert sizes.tokens("中文") == 2
    assert sizes.tokens("a" * 10) == 3


def estimate(request: ModelRequest) -> float:
    return sizes.request_tokens(request.messages)


async def test_a_run_that_reads_more_than_fits_still_ends_in_an_answer(tmp_path):
    replies = [*(block("look", what=f"第{n}") for n in range(4)), "都正常。"]
    async with world(tmp_path, replies, BIG) as w:
        finished = await w.ask("看看四样")
    assert finished.text == "都正常。"
    assert max(map(estimate, w.requests)) <= budget.prompt_limit(8192, None)
    assert all("看看四样" in r.messages[1].content for r in w.requests)


async def test_a_long_history_leaves_room_for_the_question(tmp_path):
    answers = [f"{n}" + "很长的回答" * 400 for n in range(8)]
    async with world(tmp_path, answers, store={"summary": False}) as w:
        for n in range(8):
            await w.ask(f"问题{n}")
    assert max(map(estimate, w.requests)) <= budget.prompt_limit(8192, None)
    assert w.last_text().endswith("问题7")
