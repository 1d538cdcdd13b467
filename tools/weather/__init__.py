"""The weather tool. The provider is a setting (`CHATHANDS__WEATHER__…`); places: see SOURCES.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from chathands import ToolContext, tool
from chathands.errors import ToolFailed

from .lookup import resolve
from .open_meteo import OpenMeteo
from .report import render

if TYPE_CHECKING:
    from .provider import WeatherProvider

MAX_DAYS = 7
TODAY_ONLY = "（只查了今天。问的是明天或以后时，days 写大一些再查一次。）"
"""Small models ask for one day when tomorrow is meant, and then answer for tomorrow from today."""

MARGIN_SECONDS = 0.5
"""Kept of the call's time, so that a slow service is told in our words and not cut off."""


@tool(
    side_effect="none",
    timeout=20,
    examples=[
        ("后天青岛适合出海吗", {"city": "青岛", "days": 3}),
        ("成都这会儿热不热", {"city": "成都", "days": 1}),
    ],
)
async def get_weather(
    ctx: ToolContext,
    city: Annotated[
        str,
        Field(
            min_length=1,
            max_length=60,
            description="地名，照用户说的写，有省份就带上，如“青岛”“辽宁朝阳”“上海浦东新区”",
        ),
    ],
    days: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_DAYS,
            description="从今天起看几天：今天写 1，明天写 2，后天写 3，一周写 7",
        ),
    ] = 3,
) -> str:
    """查询一个城市或区县现在的天气和今后最多 7 天的预报（气温、天气、降水、风）。

    何时用：用户问天气、气温、下不下雨、刮不刮风、要不要带伞、冷热穿衣，而且说了地方。
    何时不用：没说地方时先问是哪里，不要猜；历史天气、气候常识、空气质量、7 天以后的天气这里没有。
    结果说地名有好几处时，把候选告诉用户让他选。
    """
    provider = _provider(ctx)
    place = await resolve(city, provider)
    forecast = await provider.forecast(
        place.latitude, place.longitude, days=days, timezone=place.timezone
    )
    report = render(place, forecast)
    return f"{report}\n{TODAY_ONLY}" if days == 1 else report


def _provider(ctx: ToolContext) -> WeatherProvider:
    settings = ctx.settings.weather

    def seconds() -> float:
        left = min(settings.timeout, ctx.remaining() - MARGIN_SECONDS)
        if left <= 0:
            raise ToolFailed("剩下的时间不够再查天气，请重新问一次。")
        return left

    # settings.provider admits only this one so far.
    return OpenMeteo(ctx.http(), settings, seconds)
