"""A forecast as text for a chat: the place in full, now, one line a day, the source."""

from __future__ import annotations

from datetime import date

from .places import Place
from .provider import Day, Forecast, Now

NOTHING = "无数据"
_WEEKDAYS = "一二三四五六日"
_NEAR = ("今天", "明天", "后天")
_DIRECTIONS = ("北", "东北", "东", "东南", "南", "西南", "西", "西北")
_BEAUFORT = (1, 6, 12, 20, 29, 39, 50, 62, 75, 89, 103, 118)
"""km/h at which force 1 to 12 begins (GB/T 28591, rounded)."""


def render(place: Place, forecast: Forecast) -> str:
    lines = [f"**{place.title}**"]
    if place.note:
        lines.append(f"（{place.note}）")
    today = forecast.now.time[:10] if forecast.now else None
    lines.append(_now(forecast.now))
    lines += [_day(day, today) for day in forecast.days]
    lines.append(f"数据来源：{forecast.source}")
    return "\n".join(lines)


def _now(now: Now | None) -> str:
    if now is None:
        return f"现在：{NOTHING}"
    wind = _wind(now.wind_speed)
    if now.wind_direction is not None and now.wind_speed is not None:
        wind = f"{_DIRECTIONS[round(now.wind_direction / 45) % 8]}风 {wind}"
    else:
        wind = f"风速 {wind}"
    return (
        f"现在（当地时间 {now.time.replace('T', ' ')}）：{now.weather or NOTHING}，"
        f"气温 {_value(now.temperature, ' °C')}，体感 {_value(now.feels_like, ' °C')}，"
        f"湿度 {_value(now.humidity, '%')}，降水 {_value(now.rain, ' mm')}，{wind}"
    )


def _day(day: Day, today: str | None) -> str:
    if day.low is None and day.high is None:
        temperature = NOTHING
    else:
        temperature = f"{_value(day.low)}～{_value(day.high)} °C"
    return (
        f"- {_date(day.date, today)}：{day.weather or NOTHING}，气温 {temperature}，"
        f"降水 {_value(day.rain, ' mm')}，降水概率 {_value(day.rain_chance, '%')}，"
        f"最大风速 {_wind(day.wind_speed)}"
    )


def _date(text: str, today: str | None) -> str:
    """`2026-11-30（周一，今天）`; ISO, because a model compares dates by their letters."""
    try:
        day = date.fromisoformat(text)
        ahead = (day - date.fromisoformat(today)).days if today else -1
    except ValueError:
        return text or NOTHING
    near = f"，{_NEAR[ahead]}" if 0 <= ahead < len(_NEAR) else ""
    return f"{text}（周{_WEEKDAYS[day.weekday()]}{near}）"


def _value(value: float | None, unit: str = "") -> str:
    return NOTHING if value is None else f"{value:g}{unit}"


def _wind(speed: float | None) -> str:
    if speed is None:
        return NOTHING
    force = sum(1 for begins in _BEAUFORT if speed >= begins)
    return f"{speed:g} km/h（{force} 级）"
