"""Estimated tokens beside those of Qwen2.5's tokenizer, counted once with the local weights."""

import time

import pytest

from chathands.protocols.token_estimate import estimate_tokens, rough_tokens

COUNTED = {
    "zh_prose": (
        "今年入冬以来，北方多地出现了持续的大风降温天气。气象台提醒市民，外出时注意添加衣"
        "物，老人和孩子尽量减少在室外停留的时间。据了解，这一轮冷空气预计将在本周末结束，"
        "届时气温会有所回升，但早晚温差仍然较大。交通部门表示，遇到结冰路面请减速慢行，保"
        "持车距；高速公路如临时封闭，将通过广播和短信及时通知司机。",
        91,
    ),
    "zh_chat": (
        "把 9 月的销售汇总发到钉钉群，标题写“九月销售”，另外顺便看一下上海明天的天气"
        "，如果下雨就提醒大家带伞。表格在共享目录里，文件名大概叫 销售_2025.xls"
        "x，金额那一列要保留两位小数。",
        66,
    ),
    "en_prose": (
        "The committee met on Tuesday to discuss the proposed changes to the city's trans"
        "port plan. Most members agreed that the new bus lanes had shortened journeys, al"
        "though several shopkeepers complained about the loss of parking spaces. A final "
        "decision is expected next month, once the results of the public consultation hav"
        "e been published and independently reviewed.",
        63,
    ),
    "en_chat": (
        "Could you summarise the attached report in three bullet points, and then send it"
        " to the sales channel? If anything looks wrong in the totals, don't send it; tel"
        "l me first. Thanks!",
        40,
    ),
    "code_py": (
        "async def fetch(self, url: str, *, timeout: float = 10.0) -> bytes:\n"
        '    """The body of `url`. Raises FetchError."""\n'
        "    async with self._session.get(url, timeout=timeout) as response:\n"
        "        if response.status >= 400:\n"
        '            raise FetchError(f"{url}: HTTP {response.status}")\n'
        "        chunks: list[bytes] = []\n"
        "        async for chunk in response.content.iter_chunked(65536):\n"
        "            chunks.append(chunk)\n"
        '        return b"".join(chunks)\n',
        113,
    ),
    "code_json": (
        '{"type": "function", "function": {"name": "get_weather", "description": "Current'
        ' weather of a city", "parameters": {"type": "object", "properties": {"city": {"t'
        'ype": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},'
        ' "required": ["city"], "additionalProperties": false}}}',
        80,
    ),
    "code_js": (
        "export function debounce(fn, delay = 250) {\n"
        "  let timer = null;\n"
        "  return (...args) => {\n"
        "    clearTimeout(timer);\n"
        "    timer = setTimeout(() => fn.apply(this, args), delay);\n"
        "  };\n"
        "}\n",
        47,
    ),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_prose_code_and_data_are_estimated_within_15_percent(kind):
    text, counted = COUNTED[kind]
    assert estimate_tokens(text) == pytest.approx(counted, rel=0.15)
    assert rough_tokens(text) == pytest.approx(counted, rel=0.4)


def test_a_long_text_is_estimated_from_samples_of_all_of_it():
    english, chinese = COUNTED["en_prose"], COUNTED["zh_prose"]
    text = english[0] * 1000 + chinese[0] * 2000
    began = time.perf_counter()
    estimate = estimate_tokens(text)
    assert estimate == pytest.approx(english[1] * 1000 + chinese[1] * 2000, rel=0.15)
    assert time.perf_counter() - began < 1


def test_nothing_costs_nothing_and_anything_costs_something():
    assert estimate_tokens("") == 0
    assert estimate_tokens("a" * 100_000) > 1000
    assert estimate_tokens("\ud800 \x00 🙂🙂 здравствуйте こんにちは") > 5
