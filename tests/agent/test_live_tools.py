"""Tool files that change under runs in flight: real files, the real watcher, fifty runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from chathands.agent import Agent, Finished, Question, build_agent
from chathands.emulation.outcome import Text
from chathands.toolbox import CallFinished
from tests.agent.kit import MEMBER, NOW, block
from tests.toolbox.kit import settings_in, write

RUNS = 50
TOOL = '''
from typing import Annotated
from pydantic import Field
from chathands import tool
from ._words import WORD

@tool(side_effect="none")
async def look(what: Annotated[str, Field(description="看什么")]) -> str:
    """查询。"""
    from ._words import WORD as late  # a function may import when it runs
    assert late == WORD
    return f"{what}：{WORD}"
'''
LATER = "\n".join(
    [
        "from chathands import tool",
        "",
        "@tool(side_effect='none')",
        "async def later() -> str:",
        "    '''后来的。'''",
        "    return '后来'",
    ]
)


class Gated:
    """A model that calls `look` twice and then answers with what it saw; each run waits at the
    gate before its second call and before its answer."""

    name, context, local = "gated", 8192, False

    def __init__(self) -> None:
        self.gates: dict[int, asyncio.Event] = {1: asyncio.Event(), 2: asyncio.Event()}
        self.waiting = {1: 0, 2: 0}
        self._news = asyncio.Condition()

    async def arrived(self, gate: int, count: int) -> None:
        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(lambda: self.waiting[gate] >= count)

    async def at(self, gate: int) -> None:
        async with self._news:
            self.waiting[gate] += 1
            self._news.notify_all()
        await self.gates[gate].wait()

    def stream(self, request: Any, *, timeout: float) -> Any:
        return _Reply(self, request)

    async def aclose(self) -> None:
        pass


class _Reply:
    finish_reason, usage = "stop", None

    def __init__(self, model: Gated, request: Any) -> None:
        self._model = model
        self._round = sum(message.content.count("次：") for message in request.messages)

    async def __aiter__(self) -> AsyncIterator[Any]:
        if self._round:
            await self._model.at(min(self._round, 2))
        yield Text(block("look", what=f"第{self._round + 1}次") if self._round < 2 else "看完了。")

    async def aclose(self) -> None:
        pass


class Live:
    def __init__(self, agent: Agent, model: Gated, directory: Path) -> None:
        self.agent, self.model, self.directory = agent, model, directory
        self.results: list[tuple[int, str, str]] = []
        self.faults: asyncio.Queue[str] = asyncio.Queue()
        self.mended: asyncio.Queue[str] = asyncio.Queue()

    async def ask(self, number: int) -> Finished:
        def note(event: Any) -> None:
            if isinstance(event, CallFinished):
                self.results.append((number, event.result.status, event.result.content))

        question = Question(f"第 {number} 个 look", MEMBER, f"c{number}", now=NOW)
        finished = await self.agent.ask(question, on_event=note)
        assert isinstance(finished, Finished)
        return finished

    def start(self, first: int, count: int) -> list[asyncio.Task[Finished]]:
        return [asyncio.ensure_future(self.ask(n)) for n in range(first, first + count)]


@asynccontextmanager
async def live(tmp_path: Path) -> AsyncIterator[Live]:
    settings = settings_in(tmp_path, watch_tools=True)
    write(settings.tools_dir, {"box.py": TOOL, "_words.py": "WORD = '旧'\n"})
    model = Gated()
    made: list[Live] = []
    async with build_agent(
        settings,
        upstream=model,  # type: ignore[arg-type]
        on_load_error=lambda error: made[0].faults.put_nowait(error.sentence),
        on_mended=lambda file: made[0].mended.put_nowait(file),
    ) as agent:
        made.append(Live(agent, model, settings.tools_dir))
        yield made[0]


async def test_fifty_runs_in_flight_do_not_notice_a_file_that_breaks_and_is_mended(tmp_path: Path):
    async with live(tmp_path) as it, asyncio.timeout(60):
        runs = it.start(0, RUNS)
        await it.model.arrived(1, RUNS)  # all have called once, and are about to call again
        write(it.directory, {"box.py": TOOL.replace("-> str:", "-> str")})
        assert "box.py:8" in await it.faults.get()
        it.model.gates[1].set()
        await it.model.arrived(2, RUNS)  # all have called again, in the old generation
        more = it.start(RUNS, 5)  # and some begin while the file is broken
        await it.model.arrived(2, RUNS + 5)
        write(it.directory, {"_words.py": "WORD = '新'\n", "box.py": TOOL})
        assert await it.mended.get() == "box.py"
        it.model.gates[2].set()
        finished = await asyncio.gather(*runs, *more)
        assert {(one.status, one.text) for one in finished} == {("answered", "看完了。")}
        assert len(it.results) == 2 * (RUNS + 5)
        assert all(status == "ok" for _, status, _ in it.results)
        assert all("：旧" in content for _, _, content in it.results)
        it.results.clear()
        (after,) = it.start(100, 1)
        assert (await after).status == "answered"
        assert all("：新" in content for _, _, content in it.results)
        assert it.faults.empty()


async def test_what_a_file_needed_is_there_and_it_loads_without_being_saved_again(
    tmp_path: Path, monkeypatch
):
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    async with live(tmp_path) as it, asyncio.timeout(20):
        write(it.directory, {"later.py": f"REQUIRES = ['made-up-later']\n{LATER}\n"})
        assert 'pip install "made-up-later"' in await it.faults.get()
        assert it.agent.describe().tools == ("look",)
        info = site / "made_up_later-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up-later\nVersion: 1.0\n")
        assert await it.mended.get() == "later.py"
        assert it.agent.describe().tools == ("later", "look")
