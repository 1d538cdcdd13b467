"""Asking for the weather, through the executor, against a stand-in for Open-Meteo."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status
from tests.standins.open_meteo import OpenMeteo, expected_high
from tests.tools.live import Live, live

QINGDAO = (36.0671, 120.3826)


@pytest.fixture
async def meteo() -> AsyncIterator[OpenMeteo]:
    async with OpenMeteo() as standin:
        yield standin


@pytest.fixture
async def bench(meteo: OpenMeteo, tmp_path: Path) -> AsyncIterator[Live]:
    async with live(tmp_path, weather={"base_url": meteo.url}) as made:
        yield made


async def ask(bench: Live, city: str, **more: Any) -> Any:
    return await bench.call("get_weather", city=city, **more)


async def test_the_answer_names_the_place_now_the_days_and_the_source(
    bench: Live, meteo: OpenMeteo
) -> None:
    result = await ask(bench, "青岛", days=2)
    assert result.status is Status.OK
    assert result.content == (
        "**山东省 青岛市**\n"
        "现在（当地时间 2026-11-30 09:15）：阴，气温 15.7 °C，体感 14.2 °C，湿度 60%，"
        "降水 0 mm，东北风 12.6 km/h（3 级）\n"
        "- 2026-11-30（周一，今天）：阴，气温 9.7～17.7 °C，降水 0 mm，降水概率 0%，"
        "最大风速 10.5 km/h（2 级）\n"
        "- 2026-12-01（周二，明天）：小雨，气温 10.2～18.2 °C，降水 1.3 mm，降水概率 10%，"
        "最大风速 11.5 km/h（2 级）\n"
        "数据来源：Open-Meteo.com（CC BY-NC 4.0）"
    )
    assert f"{expected_high(*QINGDAO, 0):g} °C" in result.content
    (request,) = meteo.requests
    assert request.query["timezone"] == "Asia/Shanghai"


async def test_three_days_by_default_and_a_week_at_most(bench: Live) -> None:
    assert (await ask(bench, "成都")).content.count("\n- ") == 3
    assert (await ask(bench, "成都", days=7)).content.count("\n- ") == 7
    assert (await ask(bench, "成都", days=8)).status is Status.FAILED


async def test_the_place_that_was_meant_is_the_place_that_is_asked_for(
    bench: Live, meteo: OpenMeteo
) -> None:
    await ask(bench, "辽宁朝阳")
    await ask(bench, "北京朝阳区")
    asked = [(r.query["latitude"], r.query["longitude"]) for r in meteo.requests]
    assert asked == [("41.5738", "120.4509"), ("39.9215", "116.4432")]


async def test_an_ambiguous_name_is_asked_back_with_its_candidates(
    bench: Live, meteo: OpenMeteo
) -> None:
    result = await ask(bench, "中山")
    assert result.status is Status.FAILED
    assert "广东省 中山市、辽宁省 大连市 中山区" in result.content
    assert "问用户" in result.content
    assert meteo.requests == []


async def test_a_whole_province_stands_for_its_capital_and_says_so(bench: Live) -> None:
    content = (await ask(bench, "广东")).content
    assert content.startswith("**广东省 广州市**")
    assert "省会" in content


async def test_a_place_abroad_is_found_by_the_geocoder(bench: Live, meteo: OpenMeteo) -> None:
    result = await ask(bench, "东京市")
    assert result.content.startswith("**日本 东京都 东京**")
    assert meteo.requests[-1].query["timezone"] == "Asia/Tokyo"
    assert (await ask(bench, "Paris")).content.startswith("**France Île-de-France Paris**")


async def test_namesakes_abroad_of_similar_size_are_asked_back(bench: Live) -> None:
    result = await ask(bench, "Springfield")
    assert result.status is Status.FAILED
    assert "Illinois" in result.content
    assert "Missouri" in result.content


async def test_a_town_is_looked_for_inside_the_city_named_before_it(bench: Live) -> None:
    assert (await ask(bench, "昆山周庄")).content.startswith("**江苏 苏州市 周庄**")
    assert (await ask(bench, "周庄")).status is Status.FAILED
    assert "无锡市" in (await ask(bench, "江苏周庄")).content


async def test_a_district_the_table_lacks_is_found_by_the_geocoder(bench: Live) -> None:
    assert "加格达奇" in (await ask(bench, "加格达奇区")).content


async def test_an_unknown_place_is_said_and_its_city_offered(bench: Live) -> None:
    assert "没有找到“某某国某某城”" in (await ask(bench, "某某国某某城")).content
    result = await ask(bench, "黄山风景区")
    assert result.status is Status.FAILED
    assert "安徽省 黄山市" in result.content


async def test_missing_values_are_called_missing(bench: Live, meteo: OpenMeteo) -> None:
    meteo.faults.append("nulls")
    content = (await ask(bench, "青岛", days=2)).content
    lines = content.splitlines()
    assert lines[1] == (
        "现在（当地时间 2026-11-30 09:15）：无数据，气温 无数据，体感 无数据，湿度 无数据，"
        "降水 无数据，风速 无数据"
    )
    assert lines[2] == (
        "- 2026-11-30（周一，今天）：无数据，气温 无数据，降水 无数据，降水概率 无数据，"
        "最大风速 无数据"
    )
    assert "18.2 °C" in lines[3]


async def test_short_and_absent_lists_are_missing_values(bench: Live, meteo: OpenMeteo) -> None:
    meteo.faults.append("short")
    days = [
        line for line in (await ask(bench, "青岛", days=2)).content.splitlines() if "～" in line
    ]
    assert "降水 0 mm" in days[0]
    assert "降水 无数据" in days[1]
    assert all("最大风速 无数据" in day for day in days)


async def test_without_current_values_the_days_still_come(bench: Live, meteo: OpenMeteo) -> None:
    meteo.faults.append("no_current")
    content = (await ask(bench, "青岛", days=1)).content
    assert "现在：无数据" in content
    assert "- 2026-11-30（周一）：" in content


FAULTS = {
    "400": "Parameter 'timezone' is invalid.",
    "429": "请求太多",
    "500": "HTTP 500",
    "503": "HTTP 503",
    "html": "可能是网页",
    "redirect": "跳转",
    "list": "不是天气数据",
    "no_daily": "不是天气数据",
    "drop": "连不上天气服务",
    "cut": "连不上天气服务",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_has_its_sentence(bench: Live, meteo: OpenMeteo, fault: Any) -> None:
    # Twice: aiohttp repeats a GET by itself once when the connection broke without an answer.
    meteo.faults.extend([fault, fault])
    result = await ask(bench, "青岛")
    assert result.status is Status.FAILED
    assert FAULTS[fault] in result.content
    assert "127.0.0.1" not in result.content


async def test_a_fault_of_the_geocoder_has_its_sentence_too(bench: Live, meteo: OpenMeteo) -> None:
    meteo.faults.append("429")
    assert "请求太多" in (await ask(bench, "Springfield")).content


async def test_no_answer_in_time_is_said(meteo: OpenMeteo, tmp_path: Path) -> None:
    meteo.faults.append("hang")
    async with live(tmp_path, weather={"base_url": meteo.url, "timeout": 0.2}) as bench:
        result = await ask(bench, "青岛")
    assert result.status is Status.FAILED
    assert "秒内回答" in result.content


async def test_a_refused_connection_is_not_called_a_timeout(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        async with live(tmp_path, weather={"base_url": base_url}) as bench:
            result = await ask(bench, "青岛")
    assert "连不上天气服务" in result.content
    assert "秒" not in result.content


async def test_a_key_is_sent_and_never_shown(tmp_path: Path) -> None:
    key = "k-7e3f9b2c"
    async with OpenMeteo(api_key=key) as meteo:
        weather = {"base_url": meteo.url + "/v1/", "api_key": key}
        async with live(tmp_path, weather=weather) as bench:
            result = await ask(bench, "青岛")
            assert result.content.endswith("数据来源：Open-Meteo.com")
        async with live(tmp_path, weather={"base_url": meteo.url}) as bench:
            refused = await ask(bench, "青岛")
    assert refused.status is Status.FAILED
    assert key not in result.content + refused.content


async def test_a_geocoder_of_its_own_is_used(tmp_path: Path) -> None:
    async with OpenMeteo() as forecasts, OpenMeteo() as geocoder:
        weather = {"base_url": forecasts.url, "geocoding_url": geocoder.url}
        async with live(tmp_path, weather=weather) as bench:
            assert (await ask(bench, "Tokyo")).status is Status.OK
        assert [r.path for r in geocoder.requests] == ["/v1/search"]
        assert [r.path for r in forecasts.requests] == ["/v1/forecast"]


async def test_a_single_day_says_that_it_is_today_only(bench: Live) -> None:
    assert "只查了今天" in (await ask(bench, "成都", days=1)).content
    assert "只查了今天" not in (await ask(bench, "成都", days=2)).content
