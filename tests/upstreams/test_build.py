"""Which upstream the settings give, and what the start banner says of it."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from chathands.errors import ConfigError
from chathands.settings import Settings
from chathands.upstreams import build
from chathands.upstreams.build import build_upstream, cache_dir, describe, local_model
from chathands.upstreams.local import LocalModel
from chathands.upstreams.openai_chat import OpenAIChat
from chathands.upstreams.weights import Weights
from tests.standins.model_server import ModelServer
from tests.upstreams.test_openai_chat import hear

FAKE_RUNTIME = Path(__file__).with_name("fake_runtime")


def settings(**values) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg]


@pytest.fixture
def runtime(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(FAKE_RUNTIME))
    monkeypatch.syspath_prepend(str(FAKE_RUNTIME))


@pytest.fixture
def no_runtime(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)


async def test_a_configured_address_is_asked_with_what_is_configured():
    async with ModelServer(["好"], key="sk-1") as server:
        model = {"base_url": server.url, "api_key": "sk-1", "name": "m", "max_tokens": 99}
        upstream = await build_upstream(settings(model=model))
        assert isinstance(upstream, OpenAIChat)
        await hear(upstream)
        await upstream.aclose()
    body = server.requests[0].body
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m", 99, 0.1)
    assert (upstream.name, upstream.context, upstream.local) == ("m", 8192, False)


async def test_a_temperature_of_zero_is_a_setting_like_any_other():
    async with ModelServer(["好"]) as server:
        model = {"base_url": server.url, "temperature": 0}
        upstream = await build_upstream(settings(model=model))
        await hear(upstream)
        await upstream.aclose()
    assert server.requests[0].body["temperature"] == 0
    assert server.requests[0].body["max_tokens"] == build.MAX_TOKENS


async def test_without_a_model_the_local_one_is_started(runtime, monkeypatch, tmp_path):
    (tmp_path / "tiny.gguf").write_text("GGUF")
    digest = hashlib.sha256(b"GGUF").hexdigest()
    tiny = Weights("tiny", "tiny.gguf", 4, digest, "org/tiny", 0.1)
    monkeypatch.setattr(build, "known_weights", lambda: {build.DEFAULT: tiny})
    upstream = await build_upstream(settings(cache_dir=tmp_path, state_dir=tmp_path / "state"))
    assert isinstance(upstream, LocalModel)
    assert upstream.ready
    assert upstream.local
    assert (await hear(upstream)).text == "你好"
    await upstream.aclose()
    assert (tmp_path / "state" / "local_model.log").exists()


async def test_with_no_model_at_all_one_sentence_says_what_to_set(no_runtime):
    with pytest.raises(ConfigError) as caught:
        await build_upstream(settings())
    assert "CHATHANDS__MODEL__BASE_URL" in caught.value.sentence
    assert "chathands[local]" in caught.value.sentence


async def test_the_local_model_can_be_switched_off(runtime):
    with pytest.raises(ConfigError):
        await build_upstream(settings(local_model=False))


async def test_a_name_without_an_address_that_is_no_local_model_is_told(runtime):
    with pytest.raises(ConfigError) as caught:
        await build_upstream(settings(model={"name": "deepseek-chat"}))
    assert "deepseek-chat" in caught.value.sentence
    assert "CHATHANDS__MODEL__BASE_URL" in caught.value.sentence


def test_the_smaller_local_model_is_chosen_by_its_name(runtime, tmp_path):
    model = local_model(settings(model={"name": "qwen2.5-coder-0.5b-instruct"}))
    assert model.name == "qwen2.5-coder-0.5b-instruct"
    assert cache_dir(settings(cache_dir=tmp_path)) == tmp_path


def test_the_banner_names_model_host_and_mode_and_no_secret():
    model = {"base_url": "https://u:pw@api.example.com/v1?k=q", "api_key": "sk-1", "name": "m"}
    text = describe(settings(model=model))
    assert text == "m（api.example.com，模式 auto → emulated（没有测量过），上下文 8192）"


def test_the_banner_says_when_no_name_is_set():
    text = describe(settings(model={"base_url": "http://127.0.0.1:1/v1"}))
    assert "CHATHANDS__MODEL__NAME" in text


def test_the_banner_of_the_local_model_warns_of_the_download(runtime, tmp_path):
    text = describe(settings(cache_dir=tmp_path))
    assert text.startswith("qwen2.5-coder-1.5b-instruct（本地，首次使用要下载 1.1 GB")


def test_the_banner_without_a_model_is_the_sentence_that_says_what_to_set(no_runtime):
    assert "CHATHANDS__MODEL__BASE_URL" in describe(settings())


def test_the_banner_costs_no_import_of_a_client():
    code = (
        "import sys; sys.path.insert(0, '.');"
        "from chathands.settings import Settings;"
        "from chathands.upstreams.build import describe; describe(Settings(_env_file=None));"
        "sys.exit(bool({'httpx', 'aiohttp', 'xllamacpp'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
