"""What people in a group see: one reply each, turns, limits, 停 and the farewell."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chathands.emulation.outcome import ModelRequest
from chathands.errors import LocalModelError
from chathands.settings import GroupSettings, Settings
from chathands.toolbox import Caller, Redactor, open_audit
from chathands.toolbox.audit import Unfinished
from chathands.upstreams.scripted import HANG, Scripted
from plugins.group_chat.capture import QUOTE_UNREADABLE
from plugins.group_chat.chat import GREETING, NOTHING_TO_STOP
from plugins.group_chat.lifecycle import Engine
from plugins.group_chat.messages import Fate, Quoted
from plugins.group_chat.replies import RESTARTING_EARLY, STOPPED_EARLY
from tests.group_chat.kit import PUSH, Chat, PlayedLine, chatting
from tests.support.virtual_clock import real_time, virtual


def echo(request: ModelRequest) -> str:
    """Says the newest question back, so that a crossed reply shows."""
    asked = re.findall(r"Q[\w-]+", request.messages[-1].content)
    return f"答 {asked[-1]}。"


class Held(Scripted):
    """Echoes, but each question only once `go(question)` was called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(echo, **options)
        self.running: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}
        self._news = asyncio.Event()

    def go(self, *names: str) -> None:
        for name in names:
            self._gates.setdefault(name, asyncio.Event()).set()

    async def begun(self, *names: str) -> None:
        async with asyncio.timeout(60):
            while not set(names) <= set(self.running):
                self._news.clear()
                await self._news.wait()

    def stream(self, request: ModelRequest, *, timeout: float) -> Any:
        stream = super().stream(request, timeout=timeout)
        name = re.findall(r"Q[\w-]+", request.messages[-1].content)[-1]
        self.running.append(name)
        self._news.set()
        gate = self._gates.setdefault(name, asyncio.Event())
        inner = stream.__anext__

        class Gated:
            finish_reason = property(lambda _: stream.finish_reason)
            usage = property(lambda _: stream.usage)
            aclose = staticmethod(stream.aclose)

            def __aiter__(self):
                return self

            async def __anext__(self):
                await gate.wait()
                return await inner()

        return Gated()


@virtual
async def test_a_question_gets_one_reply_that_quotes_it(tmp_path):
    async with chatting(tmp_path, ["你好，我在。"]) as chat:
        await chat.says("你好")
        (reply,) = chat.line.sent
        assert (reply.text, reply.quote, reply.place.group_id) == ("你好，我在。", "m1", "700")


@virtual
async def test_the_quoted_text_reaches_the_model_as_a_quote(tmp_path):
    async with chatting(tmp_path, lambda _: "我看过了。") as chat:
        await chat.says("对吗", quoted=Quoted("9", "九月卖了 120 件", "阿达"))
        await chat.says("", quoted=Quoted("9", "看看这个", "阿达"))
        first, *_, second = (r.messages[-1].content for r in chat.model.requests)
        assert "阿达：九月卖了 120 件" in first
        assert first.index("120 件") != first.index("对吗")
        assert "看看这个" in second


@virtual
async def test_a_mention_without_words_is_greeted_without_the_model(tmp_path):
    async with chatting(tmp_path, []) as chat:
        await chat.says("")
        await chat.says("", quoted=Quoted("9"))
        assert chat.line.texts == [GREETING, QUOTE_UNREADABLE]


@virtual
async def test_one_run_at_a_time_in_a_conversation_and_groups_do_not_wait(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model) as chat:
        tasks = [chat.says("Qa1"), chat.says("Qa2"), chat.says("Qb1", group="701")]
        tasks += [chat.says("Qc1", user="2")]
        await model.begun("Qa1", "Qb1", "Qc1")
        assert "Qa2" not in model.running
        model.go("Qb1", "Qc1", "Qa1", "Qa2")
        await asyncio.gather(*tasks)
        assert model.running[-1] == "Qa2"
        by_quote = {message.quote: message.text for message in chat.line.sent}
        assert by_quote == {"m1": "答 Qa1。", "m2": "答 Qa2。", "m3": "答 Qb1。", "m4": "答 Qc1。"}


@virtual
async def test_by_setting_a_group_shares_one_conversation(tmp_path):
    model = Held()
    group = GroupSettings(session="group")
    async with chatting(tmp_path, [], upstream=model, group=group) as chat:
        tasks = [chat.says("Q1", user="1"), chat.says("Q2", user="2")]
        await model.begun("Q1")
        model.go("Q1", "Q2")
        await asyncio.gather(*tasks)
        assert model.running == ["Q1", "Q2"]
        assert any("Q1" in message.content for message in model.requests[1].messages)


@virtual
async def test_a_full_queue_says_so_once_to_each(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model, group=GroupSettings(queue_length=1)) as chat:
        tasks = [chat.says("Q1"), chat.says("Q2")]
        await model.begun("Q1")
        await chat.says("Q3")
        assert chat.line.sent[0].quote == "m3"
        assert "2 条" in chat.line.sent[0].text
        model.go("Q1", "Q2")
        await asyncio.gather(*tasks)
        assert len(chat.line.sent) == 3


@virtual
async def test_who_waits_too_long_is_told_and_the_line_goes_on(tmp_path):
    model = Held()
    async with chatting(
        tmp_path, [], upstream=model, deadline=100, group=GroupSettings(queue_wait=60)
    ) as chat:
        first, second = chat.says("Q1"), chat.says("Q2")
        await second
        assert "60 秒" in chat.line.texts[0]
        third = chat.says("Q3")
        model.go("Q1", "Q3")
        await asyncio.gather(first, third)
        assert [m.quote for m in chat.line.sent] == ["m2", "m1", "m3"]


@virtual
async def test_the_deadline_starts_when_the_run_leaves_the_queue(tmp_path):
    clock = asyncio.get_running_loop().time
    async with chatting(tmp_path, lambda _: HANG) as chat:
        began = clock()
        await asyncio.gather(chat.says("一"), chat.says("二"))
        assert 55 <= clock() - began <= 64
        assert all(re.search(r"[0-9A-Z]{4}-[0-9A-Z]{2}", text) for text in chat.line.texts)


@virtual
async def test_all_groups_share_a_gate_and_take_turns(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model, group=GroupSettings(concurrency=1)) as chat:
        tasks = [chat.says(f"Qa{n}", user=str(n)) for n in range(3)]
        tasks.append(chat.says("Qb", group="701"))
        model.go("Qa0", "Qa1", "Qa2", "Qb")
        await asyncio.gather(*tasks)
        assert model.running == ["Qa0", "Qa1", "Qb", "Qa2"]


@virtual
async def test_with_a_local_model_there_is_one_run_at_a_time(tmp_path):
    model = Held(local=True)
    async with chatting(tmp_path, [], upstream=model) as chat:
        tasks = [chat.says("Qa"), chat.says("Qb", group="701")]
        await model.begun("Qa")
        assert model.running == ["Qa"]
        model.go("Qa", "Qb")
        await asyncio.gather(*tasks)


@virtual
async def test_limits_answer_once_a_minute_with_a_kind_word(tmp_path):
    group = GroupSettings(per_user_minute=2, per_group_minute=3)
    async with chatting(tmp_path, lambda _: "好。", group=group) as chat:
        for _ in range(5):
            await chat.says("Q")
        assert len(chat.line.sent) == 3
        assert "一分钟" in chat.line.texts[-1]
        await chat.says("Q", user="2")
        await chat.says("Q", user="3")
        assert "这个群" in chat.line.texts[-1]
        await chat.says("Q", user="3", group=None)
        assert chat.line.texts[-1] == "好。"


@virtual
async def test_a_crash_of_the_engine_is_one_sentence_and_frees_the_turn(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        real, chat.agent.ask = chat.agent.ask, None  # type: ignore[method-assign]

        async def crash(*_: Any, **__: Any) -> None:
            raise ValueError("/secret/path")

        chat.agent.ask = crash  # type: ignore[method-assign,assignment]
        await chat.says("一")
        chat.agent.ask = real  # type: ignore[method-assign]
        await chat.says("二")
        assert len(chat.line.sent) == 2
        assert "secret" not in chat.line.texts[0]
        assert chat.line.texts[1] == "好。"


@virtual
async def test_an_ambiguous_send_of_the_reply_is_not_repeated(tmp_path):
    async with chatting(tmp_path, ["好。"]) as chat:
        chat.line.fates = [Fate.UNKNOWN]
        await chat.says("一")
        assert chat.line.texts == ["好。"]


@virtual
async def test_stop_ends_the_askers_run_and_the_waiting_one(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model) as chat:
        tasks = [chat.says("Q1"), chat.says("Q2"), chat.says("Qother", user="2")]
        await model.begun("Q1", "Qother")
        await chat.says("停")
        await asyncio.gather(*tasks[:2])
        replies = {message.quote: message.text for message in chat.line.sent}
        assert replies["m1"].startswith("已停止。没有执行任何操作。")
        assert replies["m2"] == STOPPED_EARLY
        assert len(replies) == 2
        model.go("Qother")
        await tasks[2]
        await chat.says("停。")
        assert chat.line.texts[-1] == NOTHING_TO_STOP


@virtual
async def test_a_question_after_stop_is_answered(tmp_path):
    async with chatting(tmp_path, [HANG, "好。"]) as chat:
        first = chat.says("一")
        await asyncio.sleep(1)
        await chat.says("停")
        await first
        await chat.says("二")
        assert chat.line.texts[-1] == "好。"


@virtual
async def test_the_farewell_answers_everybody_who_waits(tmp_path):
    model = Held()
    async with chatting(tmp_path, [], upstream=model) as chat:
        tasks = [chat.says("Q1"), chat.says("Q2"), chat.says("Q3", group="701")]
        await model.begun("Q1", "Q3")
        await chat.say_goodbye()
        await asyncio.gather(*tasks)
        replies = {message.quote: message.text for message in chat.line.sent}
        assert len(replies) == len(chat.line.sent) == 3
        assert all("重启" in text for text in replies.values())
        assert "没有开始" in replies["m2"]
        assert "没有执行任何操作" in replies["m1"]
        await chat.says("还在吗")  # the connections are closing: it is written down
        assert len(chat.line.sent) == 3
    async with chatting(tmp_path, []) as chat:
        assert await chat.line.so_many(1) == [RESTARTING_EARLY]
        assert chat.line.sent[0].quote == "m4"


@virtual
async def test_the_farewell_says_what_already_happened(tmp_path):
    async with chatting(tmp_path, [PUSH, HANG], approval="never") as chat:
        task = chat.says("推送")
        await asyncio.sleep(5)  # of the virtual clock: the push is done, the model hangs
        assert chat.pushed
        await chat.say_goodbye()
        await task
        (text,) = chat.line.texts
        assert "push（销售群）：已完成" in text
        assert "重启" in text


@virtual
async def test_without_a_model_mentions_are_answered_with_what_to_set(tmp_path):
    async with chatting(tmp_path, None, local_model=False) as chat:
        await chat.says("你好")
        assert "CHATHANDS__MODEL__BASE_URL" in chat.line.texts[0]


@virtual
async def test_while_the_model_is_being_fetched_mentions_are_told_so(tmp_path):
    fetched = asyncio.Event()

    @asynccontextmanager
    async def build():
        await fetched.wait()
        raise LocalModelError("no network", sentence="本地模型下载不了。")
        yield

    engine = Engine(build)
    chat = Chat(Settings(state_dir=tmp_path), PlayedLine(), engine)

    async def ready(_: object) -> None: ...

    await engine.start(ready)
    engine.progress("正在下载本地模型 10/1117 MB")
    await chat.says("你好")
    assert "10/1117 MB" in chat.line.texts[0]
    fetched.set()
    await asyncio.sleep(1)  # of the virtual clock
    await chat.says("你好")
    assert chat.line.texts[1] == "本地模型下载不了。"
    await engine.stop()


@virtual
async def test_an_engine_that_crashes_at_start_is_said_without_its_error(tmp_path):
    @asynccontextmanager
    async def build():
        raise ValueError("/secret/path")
        yield

    engine = Engine(build)
    chat = Chat(Settings(state_dir=tmp_path), PlayedLine(), engine)

    async def ready(_: object) -> None: ...

    await engine.start(ready)
    await chat.says("你好")
    assert "日志" in chat.line.texts[0]
    assert "secret" not in chat.line.texts[0]
    await engine.stop()


@virtual
async def test_who_asked_for_what_a_crash_cut_off_is_told_at_the_next_start(tmp_path):
    async with chatting(tmp_path, []) as chat:
        asker = chat.message("x").caller
        terminal = Caller("terminal", None, "superuser")
        chat.agent.unfinished = tuple(
            Unfinished("A7F3-09", "push", "销售群", caller, 0.0) for caller in (asker, terminal)
        )
        chat.restore(chat.agent)
        (text,) = await chat.line.so_many(1)
        assert all(part in text for part in ("user1", "push（销售群）", "不确定", "A7F3-09"))
        assert chat.line.sent[0].place.group_id == "700"


@pytest.mark.parametrize(("name", "said"), [("小明", "小明："), ("", "1：")])
@virtual
async def test_who_is_told_of_what_a_crash_cut_off_is_called_by_name(tmp_path, name, said):
    asker = Caller("1", "700", "member", name, "qq", "10000")
    with real_time():
        audit = open_audit(tmp_path / "state", Redactor())
        await audit.intent(asker, "A7F3-09", "push", {"robot": "销售群"}, target="销售群")
        audit.close()
    async with chatting(tmp_path, []) as chat:
        (text,) = await chat.line.so_many(1)
        assert text.startswith(f"{said}我上次退出时正在执行 push（销售群）")
