"""Putting an agent together, and what it says of itself."""

import asyncio

import pytest

from chathands.agent import Question, build_agent
from chathands.errors import ConfigError, StoreError, UpstreamFailed
from chathands.store import STATE_FILE
from chathands.toolbox import CallStarted, Redactor, open_audit
from chathands.upstreams.scripted import Scripted
from tests.agent.kit import MEMBER, NOTE, NOW, READ, block, system_text, world
from tests.standins.loopback_http import LoopbackServer, Response
from tests.toolbox.kit import HEAD, settings_in, write


async def test_without_a_model_every_question_gets_one_sentence(tmp_path):
    settings = settings_in(tmp_path, local_model=False)
    async with build_agent(settings) as agent:
        finished = await agent.ask(Question("你好", MEMBER, now=NOW))
        facts = agent.describe()
    assert finished.status == "failed"
    assert "CHATHANDS__MODEL__BASE_URL" in finished.text
    assert facts.model == ""
    assert "没有可用的模型" in facts.sentence


async def test_an_agent_tells_what_it_is_made_of(tmp_path):
    async with world(tmp_path, [], READ, NOTE) as w:
        facts = w.agent.describe()
    assert (facts.model, facts.local, facts.mode, facts.seconds) == (
        "scripted",
        False,
        "emulated",
        30,
    )
    assert facts.tools == ("look", "note")
    assert facts.sentence == "模型 scripted，2 个工具：look、note。"


async def test_what_does_not_load_is_told_with_file_and_line_and_the_rest_serves(tmp_path):
    settings = settings_in(tmp_path)
    write(settings.tools_dir, {"good.py": HEAD + READ, "bad.py": "x = 1\nimport nothing_like_it\n"})
    told = []
    async with build_agent(settings, upstream=Scripted([]), on_load_error=told.append) as agent:
        facts = agent.describe()
    assert [(error.file, error.line) for error in told] == [("bad.py", 2)]
    assert facts.tools == ("look",)
    assert "bad.py:2" in facts.sentence


async def test_tools_can_be_loaded_again_while_it_runs(tmp_path):
    async with world(tmp_path, ["好。"], READ) as w:
        write(w.settings.tools_dir, {"more.py": HEAD + NOTE})
        assert await w.agent.reload_tools() == ()
        assert w.agent.describe().tools == ("look", "note")
        write(w.settings.tools_dir, {"more.py": "def broken(:\n"})
        (error,) = await w.agent.reload_tools()
        assert error.file == "more.py"
        assert w.agent.describe().tools == ("look", "note")


async def test_a_run_keeps_the_tools_it_began_with(tmp_path):
    async with world(
        tmp_path, [block("look", what="甲"), block("look", what="乙"), "好。"], READ
    ) as w:
        reloaded = []

        def remove(event):
            if isinstance(event, CallStarted) and not reloaded:
                (w.settings.tools_dir / "box.py").unlink(missing_ok=True)
                reloaded.append(asyncio.ensure_future(w.agent.reload_tools()))

        finished = await w.agent.ask(Question("look", MEMBER, now=NOW), on_event=remove)
        await reloaded[0]
        assert w.agent.describe().tools == ()
        assert finished.text == "好。"
        assert w.effects == ["look 甲", "look 乙"]


async def test_a_policy_with_a_mistake_stops_the_start(tmp_path):
    write(tmp_path, {"tools.toml": '[tools.send]\nwho = "nobody"\n'})
    with pytest.raises(ConfigError):
        async with build_agent(settings_in(tmp_path), upstream=Scripted([])):
            pass


async def test_a_broken_state_stops_the_start_with_a_sentence(tmp_path):
    settings = settings_in(tmp_path)
    (settings.state_dir / STATE_FILE).write_bytes(b"not a database at all, sorry" * 40)
    model = Scripted([])
    with pytest.raises(StoreError) as caught:
        async with build_agent(settings, upstream=model):
            pass
    assert "损坏" in caught.value.sentence


async def test_everything_is_closed_in_the_end(tmp_path):
    async with world(tmp_path, ["好。"], READ) as w:
        await w.ask("你好")
    assert w.model.closed
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert "chathands-traces" not in names
    async with world(tmp_path, [], READ) as again:
        assert (await again.agent.traces.last())["outcome"] == "answered"


async def test_history_that_cannot_be_read_is_said_and_does_not_end_the_agent(tmp_path):
    import sqlite3

    async with world(tmp_path, ["好。"], READ) as w:
        connection = sqlite3.connect(w.settings.state_dir / STATE_FILE)
        connection.execute("DROP TABLE rounds")
        connection.close()
        finished = await w.ask("你好")
        assert finished.status == "failed"
        assert finished.text == f"{StoreError.default_sentence}（编号 {finished.run_id}）"
        assert (await w.agent.traces.last())["verdict"].startswith("state:")


class Reader(Scripted):
    """A model that reads ahead, or would."""

    def __init__(self, replies, *, fault=None):
        super().__init__(replies)
        self.read = []
        self._fault = fault

    async def prefill(self, request):
        self.read.append(request)
        if self._fault is not None:
            raise self._fault
        await asyncio.Event().wait()


@pytest.mark.parametrize("fault", [None, UpstreamFailed("gone")])
async def test_a_model_of_this_machine_reads_the_contract_ahead(tmp_path, fault):
    model = Reader(["好。"], fault=fault)
    async with world(tmp_path, model, READ) as w:
        await w.ask("你好")
        assert system_text(model.read[0]) == system_text(w.requests[0])
    assert "chathands-prefill" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_what_an_earlier_process_did_not_finish_is_there_to_be_told(tmp_path):
    settings = settings_in(tmp_path)
    audit = open_audit(settings.state_dir, Redactor())
    await audit.intent(MEMBER, "A7F3-09", "send", {"robot": "销售群"}, target="销售群")
    audit.close()
    async with build_agent(settings, upstream=Scripted([])) as agent:
        (cut_off,) = agent.unfinished
    assert (cut_off.run_id, cut_off.name, cut_off.target) == ("A7F3-09", "send", "销售群")


FETCH = """
@tool(side_effect="none", timeout=10)
async def fetch(ctx: ToolContext, url: Annotated[str, Field(description="地址")]) -> str:
    \"\"\"读取。\"\"\"
    return (await ctx.http().get(url)).text
"""


async def test_requests_of_tools_pass_the_proxy_by_for_this_machine_and_log_no_query(
    tmp_path, monkeypatch, caplog
):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    caplog.set_level("INFO", logger="httpx")
    async with LoopbackServer(lambda _: Response(body=b"here")) as server:
        address = f"{server.url}/robot/send?access_token=abc123"
        async with world(tmp_path, [block("fetch", url=address), "好。"], FETCH) as w:
            await w.ask("读一下")
            assert "here" in w.last_text()
    assert "/robot/send" in caplog.text
    assert "abc123" not in caplog.text
