"""What any weather service has to give: the protocol and its plain values. No service in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Hit:
    """A place a service's geocoder knows. Names in the language asked for, where it has them."""

    name: str
    country: str
    admin1: str
    admin2: str
    latitude: float
    longitude: float
    timezone: str
    population: int
    rank: int
    """Capital of a country 5, of a province 4, a prefecture 3, a county 2; a town 1; other 0."""


@dataclass(frozen=True, slots=True)
class Now:
    """Current values. None: the service has no value. Units: °C, %, mm, km/h, degrees."""

    time: str
    """ISO, local to the place, to the minute."""
    weather: str | None
    temperature: float | None
    feels_like: float | None
    humidity: float | None
    rain: float | None
    wind_speed: float | None
    wind_direction: float | None


@dataclass(frozen=True, slots=True)
class Day:
    """One day of a forecast, in the units of Now."""

    date: str
    weather: str | None
    high: float | None
    low: float | None
    rain: float | None
    rain_chance: float | None
    wind_speed: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    now: Now | None
    days: tuple[Day, ...]
    source: str
    """Whom to name as the source; licences ask for it."""


class WeatherProvider(Protocol):
    """Both methods raise ToolFailed with one sentence for whatever goes wrong."""

    async def search(self, name: str, language: Literal["zh", "en"]) -> list[Hit]:
        """Places of that name anywhere, best first; empty when there is none."""
        ...

    async def forecast(
        self, latitude: float, longitude: float, *, days: int, timezone: str
    ) -> Forecast: ...
