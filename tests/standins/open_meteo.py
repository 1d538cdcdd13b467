"""A stand-in for Open-Meteo: `/v1/search` and `/v1/forecast` on one address.

In a test:      async with OpenMeteo() as meteo: WeatherSettings(base_url=meteo.url)
As a process:   python -m tests.standins.open_meteo --port 0
                prints one JSON line {"url"}; POST /standin/fault with a fault's name queues it for
                the next request, GET /standin/requests lists what was asked.

Values follow from coordinates and date alone (`expected_high` and friends), so a test can tell
which place was really asked for. Shapes: open-meteo.com/en/docs and the geocoder's source.
"""

from __future__ import annotations

import argparse
from collections import deque
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal, Self, cast, get_args

from tests.standins.loopback_http import (
    DROP,
    HANG,
    LoopbackServer,
    Request,
    Response,
    serve_forever,
)

TODAY = date(2026, 11, 30)

Fault = Literal[
    "400", "429", "500", "503", "html", "redirect", "list", "hang", "drop", "cut",
    "nulls", "short", "no_current", "no_daily",
]  # fmt: skip

_CURRENT_UNITS = {
    "temperature_2m": "°C", "relative_humidity_2m": "%", "apparent_temperature": "°C",
    "precipitation": "mm", "weather_code": "wmo code", "wind_speed_10m": "km/h",
    "wind_direction_10m": "°",
}  # fmt: skip
_DAILY_UNITS = {
    "weather_code": "wmo code", "temperature_2m_max": "°C", "temperature_2m_min": "°C",
    "precipitation_sum": "mm", "precipitation_probability_max": "%", "wind_speed_10m_max": "km/h",
}  # fmt: skip
_CODES = (0, 2, 3, 61, 80, 95, 71)


@dataclass(frozen=True, slots=True)
class Known:
    """A place of the geocoder: names by language, and where it is."""

    id: int
    zh: str
    en: str
    latitude: float
    longitude: float
    feature_code: str
    country_code: str
    country: tuple[str, str]
    admin1: tuple[str, str]
    admin2: tuple[str, str] | None = None
    timezone: str = "Asia/Shanghai"
    population: int | None = None


_CN = ("中国", "China")
PLACES = (
    Known(1, "东京", "Tokyo", 35.6895, 139.69171, "PPLC", "JP", ("日本", "Japan"),
          ("东京都", "Tokyo"), None, "Asia/Tokyo", 9733276),
    Known(2, "巴黎", "Paris", 48.85341, 2.3488, "PPLC", "FR", ("法国", "France"),
          ("法兰西岛", "Île-de-France"), None, "Europe/Paris", 2138551),
    Known(3, "帕里斯", "Paris", 33.66094, -95.55551, "PPLA2", "US", ("美国", "United States"),
          ("得克萨斯州", "Texas"), ("拉马尔县", "Lamar"), "America/Chicago", 24782),
    Known(4, "周庄", "Zhouzhuang", 31.11667, 120.85, "PPLA4", "CN", _CN,
          ("江苏", "Jiangsu"), ("苏州市", "Suzhou Shi")),
    Known(5, "周庄", "Zhouzhuang", 31.83, 120.43, "PPLA4", "CN", _CN,
          ("江苏", "Jiangsu"), ("无锡市", "Wuxi Shi")),
    Known(6, "周庄", "Zhouzhuang", 33.1, 119.9, "PPL", "CN", _CN, ("江苏", "Jiangsu")),
    Known(7, "加格达奇", "Jiagedaqi", 50.41667, 124.11667, "PPLA2", "CN", _CN,
          ("黑龙江", "Heilongjiang"), None, "Asia/Shanghai", 155000),
    Known(8, "斯普林菲尔德", "Springfield", 39.80172, -89.64371, "PPLA", "US",
          ("美国", "United States"), ("伊利诺伊州", "Illinois"), None, "America/Chicago", 114394),
    Known(9, "斯普林菲尔德", "Springfield", 37.21533, -93.29824, "PPLA2", "US",
          ("美国", "United States"), ("密苏里州", "Missouri"), None, "America/Chicago", 166810),
    Known(10, "漠河北极村", "Beijicun", 53.4803, 122.3472, "PPL", "CN", _CN,
          ("黑龙江", "Heilongjiang")),
)  # fmt: skip


def expected_high(latitude: float, longitude: float, day: int) -> float:
    return round(35 - abs(latitude) / 2 + longitude % 7 / 2 + day * 0.5, 1)


def expected_code(latitude: float, longitude: float, day: int) -> int:
    return _CODES[(int(abs(latitude) * 10) + int(abs(longitude) * 10) + day) % len(_CODES)]


class OpenMeteo:
    """`requests` are all requests, oldest first. With `api_key`, every request has to carry it."""

    def __init__(self, *, api_key: str | None = None, port: int = 0) -> None:
        self.api_key = api_key
        self.requests: list[Request] = []
        self.faults: deque[Fault] = deque()
        self._server = LoopbackServer(self.handle, port)

    @property
    def url(self) -> str:
        return self._server.url

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    def handle(self, request: Request) -> Response:
        if request.path.startswith("/standin/"):
            return self._control(request)
        self.requests.append(request)
        if self.api_key is not None and request.query.get("apikey") != self.api_key:
            return _error("The supplied API key is invalid.")
        if request.path not in ("/v1/search", "/v1/forecast"):
            return Response.of({"error": True, "reason": "Not Found"}, 404)
        fault = self.faults.popleft() if self.faults else None
        refused = self._misbehave(fault)
        if refused:
            return refused
        if request.path == "/v1/search":
            return _search(request.query)
        return _forecast(request.query, fault)

    def _misbehave(self, fault: Fault | None) -> Response | None:
        match fault:
            case "hang":
                return HANG
            case "drop":
                return DROP
            case "cut":
                return Response(200, b'{"daily": {"time": []}}', cut=True)
            case "400":
                return _error("Parameter 'timezone' is invalid.")
            case "429":
                reason = "Daily API request limit exceeded. Please try again tomorrow."
                return Response.of({"error": True, "reason": reason}, 429)
            case "500" | "503":
                return Response.html(f"<h1>{fault} Service Unavailable</h1>", int(fault))
            case "html":
                return Response.html("<html>请登录网络认证</html>")
            case "redirect":
                return Response(302, headers={"Location": f"{self.url}/elsewhere"})
            case "list":
                return Response.of([])
        return None

    def _control(self, request: Request) -> Response:
        if request.path == "/standin/requests":
            return Response.of([{"path": r.path, "query": r.query} for r in self.requests])
        if request.path == "/standin/fault":
            name = request.body.decode()
            if name not in get_args(Fault):
                return Response.of({"unknown fault": name}, 400)
            self.faults.append(cast(Fault, name))
            return Response.of({"queued": name})
        return Response.of({"error": "no such control"}, 404)


def _error(reason: str) -> Response:
    return Response.of({"error": True, "reason": reason}, 400)


def _search(query: dict[str, str]) -> Response:
    """One character finds nothing, two only exact names, three and more also their beginnings."""
    count = int(query.get("count", "10"))
    if not 1 <= count <= 100:
        return _error("Parameter count must be between 1 and 100.")
    name, chinese = query.get("name", "").strip().casefold(), query.get("language") == "zh"
    found = []
    for place in PLACES:
        own = (place.zh if chinese else place.en).casefold()
        if len(name) >= 2 and (own == name or (len(name) > 2 and own.startswith(name))):
            found.append(_result(place, 0 if chinese else 1))
    answer: dict[str, Any] = {"results": found[:count]} if found else {}
    return Response.of({**answer, "generationtime_ms": 0.5})


def _result(place: Known, language: int) -> dict[str, Any]:
    result = {
        "id": place.id,
        "name": (place.zh, place.en)[language],
        "latitude": place.latitude,
        "longitude": place.longitude,
        "elevation": 10.0,
        "feature_code": place.feature_code,
        "country_code": place.country_code,
        "country_id": 1000 + place.id,
        "country": place.country[language],
        "admin1": place.admin1[language],
        "timezone": place.timezone,
    }
    if place.admin2:
        result["admin2"] = place.admin2[language]
    if place.population:
        result["population"] = place.population  # empty fields are absent
    return result


def _forecast(query: dict[str, str], fault: Fault | None) -> Response:
    try:
        latitude, longitude = float(query["latitude"]), float(query["longitude"])
        days = int(query.get("forecast_days", "7"))
    except (KeyError, ValueError):
        return _error("Parameter 'latitude' and 'longitude' must have the same number of elements")
    if not -90 <= latitude <= 90:
        return _error(f"Latitude must be in range of -90 to 90°. Given: {latitude}.")
    if not 0 <= days <= 16:
        return _error(f"Forecast days is invalid. Allowed range 0 to 16. Given {days}.")
    current, daily = query.get("current", "").split(","), query.get("daily", "").split(",")
    for name in (*current, *daily):
        if name and name not in _CURRENT_UNITS and name not in _DAILY_UNITS:
            reason = (
                f"Cannot initialize SurfacePressureAndHeightVariable from invalid String {name}"
            )
            return _error(reason)
    answer: dict[str, Any] = {
        "latitude": round(latitude, 1),
        "longitude": round(longitude, 1),
        "generationtime_ms": 0.1,
        "utc_offset_seconds": 28800,
        "timezone": query.get("timezone", "GMT"),
        "timezone_abbreviation": "GMT+8",
        "elevation": 10.0,
        "current_units": {"time": "iso8601", "interval": "seconds", **_CURRENT_UNITS},
        "current": {"time": f"{TODAY}T09:15", "interval": 900, **_current(latitude, longitude)},
        "daily_units": {"time": "iso8601", **_DAILY_UNITS},
        "daily": _daily(latitude, longitude, days),
    }
    if fault == "nulls":
        for name in _DAILY_UNITS:
            answer["daily"][name][0] = None
        answer["current"] = dict.fromkeys(answer["current"]) | {"time": f"{TODAY}T09:15"}
    elif fault == "short":
        answer["daily"]["precipitation_sum"] = answer["daily"]["precipitation_sum"][:1]
        del answer["daily"]["wind_speed_10m_max"]
    elif fault == "no_current":
        del answer["current"]
    elif fault == "no_daily":
        del answer["daily"]
    return Response.of(answer)


def _current(latitude: float, longitude: float) -> dict[str, Any]:
    high = expected_high(latitude, longitude, 0)
    return {
        "temperature_2m": round(high - 2, 1),
        "relative_humidity_2m": 40 + int(abs(longitude)) % 50,
        "apparent_temperature": round(high - 3.5, 1),
        "precipitation": 0.0,
        "weather_code": expected_code(latitude, longitude, 0),
        "wind_speed_10m": 12.6,
        "wind_direction_10m": 45,
    }


def _daily(latitude: float, longitude: float, days: int) -> dict[str, list[Any]]:
    every = range(days)
    return {
        "time": [str(TODAY + timedelta(days=day)) for day in every],
        "weather_code": [expected_code(latitude, longitude, day) for day in every],
        "temperature_2m_max": [expected_high(latitude, longitude, day) for day in every],
        "temperature_2m_min": [expected_high(latitude, longitude, day) - 8 for day in every],
        "precipitation_sum": [round(day * 1.3, 1) for day in every],
        "precipitation_probability_max": [day * 10 for day in every],
        "wind_speed_10m_max": [10.5 + day for day in every],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for Open-Meteo.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key")
    arguments = parser.parse_args()
    serve_forever(OpenMeteo(api_key=arguments.api_key).handle, arguments.port)


if __name__ == "__main__":
    main()
