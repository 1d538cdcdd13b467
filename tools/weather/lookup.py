"""From what was typed to one place: the table first, then the provider's geocoder.

Several places of similar standing are never chosen between; the person is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chathands.errors import ToolFailed

from .names import is_latin, kilometres, normal, stems, without_chatter
from .places import SAME_PLACE_KM, Place, cities
from .provider import Hit, WeatherProvider

WITHIN_KM = 150
"""A place named after its city (昆山周庄) lies at most this far from it."""

CLEARLY = 10
"""A namesake with this many times the people is the one that is meant: Paris and Paris, Texas."""

SHOWN = 6


async def resolve(query: str, provider: WeatherProvider) -> Place:
    """The place. Raises ToolFailed: not found, or several, with the candidates in the sentence."""
    text = without_chatter(normal(query))
    if len(text) < 2:
        raise ToolFailed("地名太短，请给出完整的城市名，例如“青岛”或“山东青岛”。")
    found = cities().find(query)
    if len(found) == 1:
        return found[0]
    if found:
        raise _which(query, [place.title for place in found])
    within = cities().split(query)
    if within:
        area, rest = within
        inside = _inside(area, _fitting(rest, await provider.search(rest, "zh")))
        if inside:
            return _choose(query, inside)
    for name in _names(query, text):
        hits = _fitting(name, await provider.search(name, "en" if is_latin(name) else "zh"))
        if hits:
            return _choose(query, hits)
    if within:
        city = within[0]
        raise ToolFailed(
            f"没有找到“{query}”。可以改查它所在的{city.title}（city 写“{city.parts[-1]}”）。"
        )
    raise ToolFailed(f"没有找到“{query}”这个地方，请确认城市名，最好带上省份或国家。")


def _names(query: str, text: str) -> Iterable[str]:
    """What to ask a geocoder for: it matches two-letter names only exactly, 东京 but not 东京市."""
    if is_latin(query):
        return (query.strip(),)
    return dict.fromkeys((text, *stems(text)))


def _fitting(name: str, hits: Sequence[Hit]) -> list[Hit]:
    """Those named so. Longer names are matched loosely by geocoders; a wrong place is worse than
    none, so what shares nothing with a Chinese name is dropped."""
    wanted = normal(name)
    exact = [hit for hit in hits if wanted in (normal(hit.name), *stems(normal(hit.name)))]
    if exact or is_latin(name):
        return exact or list(hits)
    return [hit for hit in hits if normal(hit.name) in wanted or wanted in normal(hit.name)]


def _inside(area: Place, hits: Sequence[Hit]) -> list[Hit]:
    """Those in the named province, or the one nearest to the named city."""
    if area.stands_for:
        names = {area.stands_for, *stems(area.stands_for)}
        return [hit for hit in hits if names & {hit.admin1, *stems(hit.admin1)}]

    def away(hit: Hit) -> float:
        return kilometres(hit.latitude, hit.longitude, area.latitude, area.longitude)

    return [hit for hit in sorted(hits, key=away) if away(hit) < WITHIN_KM][:1]


def _choose(query: str, hits: Sequence[Hit]) -> Place:
    """The one of clearly highest standing, if there is one."""
    ordered = sorted(hits, key=lambda hit: (hit.population, hit.rank), reverse=True)
    kept: list[Hit] = []
    for hit in ordered:
        # One place is often listed twice, as the town and as the district around it.
        if not any(_near(hit, other) for other in kept):
            kept.append(hit)
    first, others = kept[0], kept[1:]
    if others and not _clearly(first, others[0]):
        raise _which(query, [_place(hit).title for hit in kept])
    return _place(first)


def _near(hit: Hit, other: Hit) -> bool:
    away = kilometres(hit.latitude, hit.longitude, other.latitude, other.longitude)
    return away < SAME_PLACE_KM


def _clearly(first: Hit, second: Hit) -> bool:
    if first.population:
        return first.population >= CLEARLY * second.population
    return first.rank > second.rank + 1


def _place(hit: Hit) -> Place:
    country = "" if hit.country in ("中国", "China") else hit.country
    return Place(
        (country, hit.admin1, hit.admin2, hit.name), hit.latitude, hit.longitude, hit.timezone
    )


def _which(query: str, titles: Sequence[str]) -> ToolFailed:
    distinct = list(dict.fromkeys(titles))
    listed = "、".join(distinct[:SHOWN])
    more = f"等 {len(distinct)} 处" if len(distinct) > SHOWN else ""
    return ToolFailed(
        f"“{query}”可能是：{listed}{more}。不要自己选，请先问用户是哪一个，再用“省+市+区”的全名查询。"
    )
