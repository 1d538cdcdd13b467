"""Open-Meteo: its geocoder and its forecast.

Wire facts: open-meteo.com/en/docs, open-meteo.com/en/docs/geocoding-api, and the source of
open-meteo/geocoding-api (the country filter is applied after the cut to `count`, hence 20).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from chathands.errors import ToolFailed
from chathands.toolbox.http import hide_queries

from .provider import Day, Forecast, Hit, Now

if TYPE_CHECKING:
    import httpx

    from chathands.settings import WeatherSettings

HITS = 20
REASON_CAP = 160
"""Characters of the service's own reason that are passed on."""

_CURRENT = (
    "temperature_2m,relative_humidity_2m,apparent_temperature,precipitation,weather_code,"
    "wind_speed_10m,wind_direction_10m"
)
_DAILY = (
    "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,"
    "precipitation_probability_max,wind_speed_10m_max"
)
_RANKS = {"PPLC": 5, "PPLA": 4, "PPLA2": 3, "PPLA3": 2, "PPLA4": 1, "PPL": 1}
"""GeoNames feature codes of populated places."""

_FREE = "api.open-meteo.com"
_GEOCODING = {
    _FREE: "https://geocoding-api.open-meteo.com",
    "customer-api.open-meteo.com": "https://customer-geocoding-api.open-meteo.com",
}
"""Open-Meteo runs its geocoder on a host of its own, beside the paid forecast host too."""

_SETTING = "CHATHANDS__WEATHER__BASE_URL"


class OpenMeteo:
    """One question's client; `timeout` gives the seconds a request may take."""

    def __init__(
        self, http: httpx.AsyncClient, settings: WeatherSettings, timeout: Callable[[], float]
    ) -> None:
        hide_queries()  # the key is in them
        self._http = http
        self._timeout = timeout
        self._key = settings.api_key.get_secret_value() if settings.api_key else None
        base = _without_version(settings.base_url)
        if self._key and urlsplit(base).hostname == _FREE:
            base = "https://customer-api.open-meteo.com"  # keys are for the paid host only
        self._base = base
        own = _GEOCODING.get(urlsplit(base).hostname or "", base)
        self._geocoding = _without_version(settings.geocoding_url or own)

    @property
    def source(self) -> str:
        # The free service's data is CC BY-NC; what a key buys is licensed without that clause.
        return "Open-Meteo.com" if self._key else "Open-Meteo.com（CC BY-NC 4.0）"

    async def search(self, name: str, language: Literal["zh", "en"]) -> list[Hit]:
        answer = await self._get(
            f"{self._geocoding}/v1/search",
            {"name": name, "count": HITS, "language": language, "format": "json"},
        )
        results = answer.get("results", [])  # absent when nothing matches
        if not isinstance(results, list):
            raise _not_weather("results is not a list")
        hits = [_hit(result) for result in results if isinstance(result, Mapping)]
        return [hit for hit in hits if hit is not None]

    async def forecast(
        self, latitude: float, longitude: float, *, days: int, timezone: str
    ) -> Forecast:
        answer = await self._get(
            f"{self._base}/v1/forecast",
            {
                "latitude": f"{latitude:.4f}",
                "longitude": f"{longitude:.4f}",
                "timezone": timezone,
                "forecast_days": days,
                "current": _CURRENT,
                "daily": _DAILY,
            },
        )
        daily = answer.get("daily")
        if not isinstance(daily, Mapping) or not isinstance(daily.get("time"), list):
            raise _not_weather("no daily values")
        return Forecast(
            _now(answer.get("current")),
            tuple(_day(daily, index) for index in range(min(days, len(daily["time"])))),
            self.source,
        )

    async def _get(self, address: str, params: dict[str, str | int]) -> dict[str, Any]:
        import httpx

        if self._key:
            params = {**params, "apikey": self._key}
        seconds = self._timeout()
        try:
            response = await self._http.get(
                address, params=params, timeout=seconds, follow_redirects=False
            )
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise ToolFailed(
                f"天气服务没有在 {seconds:.0f} 秒内回答，请稍后再问一次。",
                detail=type(error).__name__,
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Also ConnectTimeout: the aiohttp transport says so for a refused connection.
            raise ToolFailed(
                f"连不上天气服务，请稍后再问；一直这样就请管理员检查网络和 {_SETTING}。",
                detail=type(error).__name__,
            ) from None
        return _read(response)


def _without_version(address: str) -> str:
    return address.strip().rstrip("/").removesuffix("/v1").rstrip("/")


def _read(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of a good answer. Raises ToolFailed with the sentence of a bad one."""
    status = response.status_code
    try:
        answer = response.json()
    except (ValueError, RecursionError):
        answer = None
    if status == 200 and isinstance(answer, dict) and not answer.get("error"):
        return answer
    reason = ""
    if isinstance(answer, dict) and isinstance(answer.get("reason"), str):
        reason = " ".join(answer["reason"].split())[:REASON_CAP]
    detail = f"HTTP {status} {reason}"
    if status == 429:
        raise ToolFailed(
            "天气服务说请求太多了，请过一会儿再问；经常这样就请管理员配付费密钥"
            "（CHATHANDS__WEATHER__API_KEY）。",
            detail=detail,
        )
    if status in (401, 403):
        raise ToolFailed(
            "天气服务拒绝了访问，请管理员检查 CHATHANDS__WEATHER__API_KEY。", detail=detail
        )
    if reason and status < 500:
        raise ToolFailed(f"天气服务不接受这次查询：{reason}", detail=detail)
    if status >= 500:
        raise ToolFailed(f"天气服务出错了（HTTP {status}），请稍后再问。", detail=detail)
    raise _not_weather(detail)


def _not_weather(detail: str) -> ToolFailed:
    return ToolFailed(
        f"天气地址返回的不是天气数据（可能是网页或跳转），请管理员检查 {_SETTING}。", detail=detail
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _hit(result: Mapping[str, Any]) -> Hit | None:
    latitude, longitude = _number(result.get("latitude")), _number(result.get("longitude"))
    name = _text(result.get("name"))
    if latitude is None or longitude is None or not name:
        return None
    return Hit(
        name,
        _text(result.get("country")) or _text(result.get("country_code")),
        _text(result.get("admin1")),
        _text(result.get("admin2")),
        latitude,
        longitude,
        _text(result.get("timezone")) or "auto",
        int(_number(result.get("population")) or 0),
        _RANKS.get(_text(result.get("feature_code")), 0),
    )


def _now(current: Any) -> Now | None:
    if not isinstance(current, Mapping) or not _text(current.get("time")):
        return None
    return Now(
        _text(current["time"]),
        _weather(current.get("weather_code")),
        _number(current.get("temperature_2m")),
        _number(current.get("apparent_temperature")),
        _number(current.get("relative_humidity_2m")),
        _number(current.get("precipitation")),
        _number(current.get("wind_speed_10m")),
        _number(current.get("wind_direction_10m")),
    )


def _day(daily: Mapping[str, Any], index: int) -> Day:
    def value(name: str) -> Any:
        """Lists may be absent, shorter than `time`, or hold null."""
        values = daily.get(name)
        return values[index] if isinstance(values, list) and index < len(values) else None

    return Day(
        _text(value("time")),
        _weather(value("weather_code")),
        _number(value("temperature_2m_max")),
        _number(value("temperature_2m_min")),
        _number(value("precipitation_sum")),
        _number(value("precipitation_probability_max")),
        _number(value("wind_speed_10m_max")),
    )


def _weather(code: Any) -> str | None:
    number = _number(code)
    if number is None:
        return None
    return _codes().get(int(number), f"天气代码 {int(number)}")


@cache
def _codes() -> dict[int, str]:
    with Path(__file__).with_name("wmo_codes.csv").open(encoding="utf-8", newline="") as lines:
        return {int(row["code"]): row["text"] for row in csv.DictReader(lines)}
