"""The local model over its real child process; only the native runtime in it is a stand-in."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chathands.conversation import Role
from chathands.emulation.outcome import ChatMessage, ModelRequest, Text
from chathands.errors import LocalModelError, UpstreamError, UpstreamFailed, UpstreamTimeout
from chathands.upstreams import local_process
from chathands.upstreams.local import LocalModel, usable_cores
from chathands.upstreams.local_process import ChildConfig, ModelProcess
from chathands.upstreams.weights import Weights

FAKE_RUNTIME = Path(__file__).with_name("fake_runtime")


@pytest.fixture(autouse=True)
def _fake_runtime(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(FAKE_RUNTIME))
    monkeypatch.syspath_prepend(str(FAKE_RUNTIME))  # found, though never imported, in here
    monkeypatch.setattr("chathands.upstreams.openai_chat.PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("chathands.upstreams.local.WORTH_RESTARTING_SECONDS", 1.0)


class Children(list):
    """The child processes that were started, and an event for the first of them."""

    def __init__(self):
        super().__init__()
        self.started = asyncio.Event()

    @property
    def ended(self) -> bool:
        return bool(self) and all(child.poll() is not None for child in self)


@pytest.fixture
async def children(monkeypatch):
    children = Children()
    spawn = local_process._spawn

    def remembering(*arguments):
        children.append(spawn(*arguments))
        children.started.set()
        return children[-1]

    monkeypatch.setattr(local_process, "_spawn", remembering)
    return children


@pytest.fixture
async def make(tmp_path):
    """Local models whose weights already lie in the cache and say `text` to the runtime."""
    made = []

    def make(text: str = "GGUF", **options) -> LocalModel:
        digest = hashlib.sha256(text.encode()).hexdigest()
        cache = tmp_path / "cache"
        cache.mkdir(exist_ok=True)
        (cache / "tiny.gguf").write_text(text)
        weights = Weights("tiny", "tiny.gguf", len(text), digest, "org/tiny", 0.1)
        log_file = tmp_path / "state" / "local_model.log"
        made.append(LocalModel(weights, cache_dir=cache, log_file=log_file, **options))
        return made[-1]

    yield make
    for model in made:
        await model.aclose()


def asking(text: str) -> ModelRequest:
    return ModelRequest((ChatMessage(Role.USER, text),))


async def hear(model: LocalModel, text: str, *, seconds: float = 20) -> str:
    stream = model.stream(asking(text), timeout=seconds)
    try:
        return "".join([piece.text async for piece in stream if isinstance(piece, Text)])
    finally:
        await stream.aclose()


async def start_fails(model: LocalModel) -> LocalModelError:
    with pytest.raises(LocalModelError) as caught:
        await model.start()
    assert not model.ready
    return caught.value


async def watch(model: LocalModel) -> asyncio.StreamReader:
    """A connection to the child: its end is the child's end."""
    assert model._process is not None
    return await watch_address(model._process.address)


async def watch_address(address: str) -> asyncio.StreamReader:
    url = urlsplit(address)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    reader._kept = writer  # type: ignore[attr-defined]
    return reader


async def gone(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(), 10) == b""
    except ConnectionError:
        return True
    finally:
        reader._kept.close()  # type: ignore[attr-defined]


async def test_a_request_is_answered_by_the_child(make):
    heard = []
    model = make()
    await model.start(heard.append)
    assert model.ready
    assert [p.stage for p in heard][-1] == "starting"
    stream = model.stream(asking("你好"), timeout=20)
    assert [piece async for piece in stream] == [Text("你好")]
    assert stream.finish_reason == "stop"


async def test_the_child_gets_loopback_context_threads_and_a_small_cache(make):
    model = make(context=2048, threads=3, max_tokens=50)
    facts = json.loads(await hear(model, "facts"))
    assert facts == {
        "context": 2048,
        "threads": 3,
        "slots": 1,
        "hosts": ["127.0.0.1"],
        "cache_mb": 512,
        "ui": False,
        "max_tokens": 50,
        "temperature": 0.0,
        "stdin_is_pipe": True,
    }


async def test_the_key_of_the_child_is_on_no_command_line(make, children):
    model = make()
    await model.start()
    assert len(model._process.api_key) >= 24
    assert model._process.api_key not in " ".join(children[0].args)


async def test_prefilling_reads_the_request_and_writes_next_to_nothing(make):
    model = make()
    await model.prefill(asking("facts"))
    assert model._log_file.read_text().count("max_tokens=") == 1
    assert "max_tokens=1\n" in model._log_file.read_text()


async def test_what_the_runtime_writes_goes_to_the_log_and_not_to_the_terminal(make, capfd):
    model = make()
    await model.start()
    written = capfd.readouterr()
    assert "loading" not in written.out + written.err
    log = model._log_file.read_text()
    assert "loading the model" in log
    assert "native libraries write" in log


async def test_a_long_log_is_put_aside_at_the_next_start(make, monkeypatch):
    monkeypatch.setattr(local_process, "LOG_BYTES", 100)
    model = make()
    model._log_file.parent.mkdir()
    model._log_file.write_text("x" * 200)
    await model.start()
    assert model._log_file.with_name("local_model.log.1").read_text() == "x" * 200


# --- crashes


async def test_a_crash_before_the_answer_is_answered_by_a_new_child(make):
    model = make()
    await model.start()
    first = model._process.pid
    assert await hear(model, "crash once") == "你好"
    assert model._process.pid != first


async def test_a_request_that_always_crashes_ends_in_a_sentence_and_the_next_one_works(make):
    model = make()
    with pytest.raises(UpstreamFailed) as caught:
        await hear(model, "crash")
    assert "意外退出" in caught.value.sentence
    assert caught.value.nothing_received
    assert await hear(model, "你好") == "你好"


async def test_a_crash_in_the_middle_of_an_answer_is_told_and_the_next_one_works(make):
    model = make()
    with pytest.raises(UpstreamFailed) as caught:
        await hear(model, "crash in the middle")
    assert "意外退出" in caught.value.sentence
    assert not caught.value.nothing_received
    assert await hear(model, "你好") == "你好"


async def test_a_child_that_died_between_two_requests_is_started_again(make):
    model = make()
    await model.start()
    watched = await watch(model)
    model._process._process.kill()
    assert await gone(watched)
    assert await hear(model, "你好") == "你好"


# --- starts that fail


async def test_without_the_runtime_it_says_what_to_install(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    error = await start_fails(make())
    assert 'pip install "chathands[local]"' in error.sentence


async def test_a_broken_runtime_says_to_install_it_again(make, monkeypatch):
    monkeypatch.setenv("FAKE_RUNTIME_IS_BROKEN", "1")
    error = await start_fails(make())
    assert "--force-reinstall" in error.sentence
    assert "libgomp" in str(error)


@pytest.mark.parametrize("text", ["GGUF cannot be loaded", "GGUF dies while loading"])
async def test_a_model_that_does_not_load_is_told_with_what_to_do(make, text, children):
    error = await start_fails(make(text))
    assert "内存" in error.sentence
    assert "qwen2.5-coder-0.5b-instruct" in error.sentence
    assert children.ended


async def test_a_start_that_never_ends_is_given_up(make, monkeypatch, children):
    monkeypatch.setattr(local_process, "START_SECONDS", 0.3)
    error = await start_fails(make("GGUF never loads"))
    assert "启动太慢" in error.sentence
    assert children.ended


async def test_a_request_says_what_a_failed_start_said(make):
    with pytest.raises(UpstreamFailed) as caught:
        await hear(make("GGUF cannot be loaded"), "你好")
    assert "没能启动" in caught.value.sentence


async def test_an_impatient_request_leaves_the_start_going_on(make):
    model = make()
    with pytest.raises(UpstreamTimeout) as caught:
        await hear(model, "你好", seconds=0.001)
    assert "还在启动" in caught.value.sentence
    starting = model._starting
    assert await hear(model, "你好") == "你好"
    assert model._starting is starting


async def test_requests_that_come_together_share_one_start(make):
    model = make()
    assert await asyncio.gather(*(hear(model, "你好") for _ in range(3))) == ["你好"] * 3
    assert model._log_file.read_text().count("loading the model") == 1


# --- ends


async def test_closing_ends_the_child(make, children):
    model = make()
    await model.start()
    await model.aclose()
    assert children.ended
    with pytest.raises(UpstreamError, match="closed"):
        await hear(model, "你好")


async def test_closing_while_it_starts_ends_the_child(make, children):
    model = make("GGUF never loads")
    task = asyncio.create_task(model.start())
    await asyncio.wait_for(children.started.wait(), 10)
    await model.aclose()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children.ended


async def test_closing_a_stream_ends_its_request(make):
    model = make()
    stream = model.stream(asking("你好"), timeout=20)
    assert await anext(stream) == Text("你好")
    await stream.aclose()
    assert [piece async for piece in stream] == []


PARENT = """
import asyncio, sys, pathlib
sys.path.insert(0, ".")
from chathands.upstreams.local_process import ChildConfig, ModelProcess
async def main():
    model = pathlib.Path(sys.argv[1])
    config = ChildConfig(model, "tiny", 2048, 1, model.with_suffix(".log"))
    process = await ModelProcess.start(config)
    print(process.address, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def start_parent(model: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, str(model)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(FAKE_RUNTIME)},
    )


async def test_the_child_ends_when_its_parent_is_killed(tmp_path):
    (tmp_path / "tiny.gguf").write_text("GGUF")
    with start_parent(tmp_path / "tiny.gguf") as parent:
        assert parent.stdout is not None
        address = (await asyncio.to_thread(parent.stdout.readline)).decode().strip()
        watched = await watch_address(address)
        parent.kill()
    assert await gone(watched)


@pytest.mark.parametrize("working_directory", ["json.py", "xllamacpp.py", "threading.py"])
async def test_no_file_of_the_working_directory_gets_into_the_child(
    tmp_path, monkeypatch, working_directory
):
    (tmp_path / working_directory).write_text("raise SystemExit('shadowed')")
    (tmp_path / "tiny.gguf").write_text("GGUF")
    monkeypatch.chdir(tmp_path)
    config = ChildConfig(tmp_path / "tiny.gguf", "tiny", 2048, 1, tmp_path / "log")
    process = await ModelProcess.start(config)
    await process.stop()
    assert not process.alive


def test_the_usable_cores_are_no_more_than_the_machine_has():
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
