"""The real local model. Not collected by itself: it needs the runtime and 1.1 GB of weights.

    pytest tests/upstreams/local_ring.py

CHATHANDS__CACHE_DIR and CHATHANDS__MODEL__NAME choose where the weights lie and which they are;
what is not there yet is fetched.
"""

import json

import pytest

from chathands.conversation import Role
from chathands.emulation.outcome import ChatMessage, ModelRequest, Text
from chathands.errors import UpstreamRefused
from chathands.settings import load_settings
from chathands.upstreams.build import local_model

pytestmark = pytest.mark.local_model

RULES = "你是一个助手。" * 60


@pytest.fixture(scope="module")
async def model(tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    model = local_model(load_settings(state, state_dir=state))
    await model.start()
    yield model
    await model.aclose()


def asking(text: str, **options) -> ModelRequest:
    messages = (ChatMessage(Role.SYSTEM, RULES), ChatMessage(Role.USER, text))
    return ModelRequest(messages, **options)


async def hear(model, request):
    stream = model.stream(request, timeout=120)
    text = "".join([piece.text async for piece in stream if isinstance(piece, Text)])
    return text, stream


async def test_it_answers_in_chinese_and_counts_its_tokens(model):
    text, stream = await hear(model, asking("用一句话介绍北京。"))
    assert "北京" in text
    assert stream.finish_reason == "stop"
    assert stream.usage.prompt > 100


async def test_a_prefilled_beginning_is_read_from_the_cache(model):
    await model.prefill(asking("预热"))
    _, stream = await hear(model, asking("你好"))
    assert stream.usage.cached > 0.8 * stream.usage.prompt


async def test_a_stop_word_ends_the_reply(model):
    text, _ = await hear(model, asking("从一数到十，用逗号隔开。", stop=("五", "5")))
    assert "五" not in text


async def test_a_schema_is_kept(model):
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["北京", "上海"]}},
        "required": ["city"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    text, _ = await hear(model, asking("中国的首都？", response_format=form))
    assert json.loads(text)["city"] in ("北京", "上海")


async def test_a_request_longer_than_the_context_is_refused(model):
    with pytest.raises(UpstreamRefused):
        await hear(model, asking("很长" * 20_000))


async def test_a_killed_process_is_replaced(model):
    model._process._process.kill()
    text, _ = await hear(model, asking("你好"))
    assert text
