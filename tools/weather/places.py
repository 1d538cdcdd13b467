"""Which place a few typed words mean: the table of Chinese places, and how it is searched.

Nothing here asks the network; names the table does not have go to the provider's geocoder
(lookup.py). A wrong place is worse than none: what fits several places is returned as several.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from .names import (
    is_latin,
    kilometres,
    latin_forms,
    normal,
    stems,
    tokens,
    without_chatter,
)

SAME_PLACE_KM = 40
"""Namesakes this near are one place to the weather: 伊宁市 and 伊宁县, 新竹市 and 新竹县."""


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere a forecast can be asked for. `parts` run from the largest to the smallest."""

    parts: tuple[str, ...]
    latitude: float
    longitude: float
    timezone: str = "Asia/Shanghai"
    note: str = ""
    """What a person should know about this choice, as a sentence; mostly empty."""
    stands_for: str = ""
    """The province it was chosen for, when only that was named."""

    @property
    def title(self) -> str:
        """`山东省 青岛市 崂山区`; `日本 东京都 新宿`."""
        return " ".join(dict.fromkeys(part for part in self.parts if part))


@dataclass(frozen=True, slots=True)
class Division:
    """One row of cities.csv."""

    code: str
    name: str
    province: str
    prefecture: str
    latitude: float
    longitude: float
    english: tuple[str, ...]
    remark: Literal["", "approximate", "former"]

    @property
    def is_province(self) -> bool:
        """A province proper: too large for one forecast. Municipalities, 香港, 澳门 are cities."""
        return self.code.endswith("0000") and self.name.endswith(("省", "自治区"))

    @property
    def level(self) -> int:
        """0 province or municipality, 1 prefecture or run by the province, 2 city, 3 the rest."""
        if self.code.endswith("0000"):
            return 0
        if self.code.endswith("00"):
            return 1
        return 2 if self.name.endswith("市") else 3

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *stems(self.name))

    def place(self) -> Place:
        note = ""
        if self.remark == "approximate":
            note = f"没有{self.name}自己的坐标，按{self.prefecture or self.province}的位置。"
        elif self.remark == "former":
            note = f"{self.name}这个区划已经撤并，按它原来的位置。"
        return Place(
            (self.province, self.prefecture, self.name), self.latitude, self.longitude, note=note
        )


class Cities:
    """The table, indexed. Made once; see `cities()`."""

    def __init__(self, divisions: Sequence[Division], defaults: dict[str, str]) -> None:
        self.divisions = divisions
        self._defaults = defaults
        self._by_name: dict[str, list[Division]] = defaultdict(list)
        self._by_latin: dict[str, list[Division]] = defaultdict(list)
        for division in divisions:
            for name in division.names:
                self._by_name[name].append(division)
            for name in division.english:
                self._by_latin[name].append(division)

    def find(self, query: str) -> list[Place]:
        """Places the query may mean: none, the one, or several of equal standing."""
        if is_latin(query):
            for form in latin_forms(query):
                if form in self._by_latin:
                    return self._places(self._narrow(self._by_latin[form], form))
            return []
        parts = tokens(query)
        readings = ["".join(parts)]
        if len(parts) > 1:
            readings.append("".join(reversed(parts)))  # "朝阳（辽宁）"
        readings += [without_chatter(text) for text in readings]
        # A suffix that is not the official one still names the place: 海淀县, 三亚区.
        readings += [short for text in readings for short in stems(text)]
        for text in readings:
            matches = self._match(text)
            if matches:
                return self._places(self._narrow(*matches))
        return []

    def split(self, query: str) -> tuple[Place, str] | None:
        """The longest known place the query begins with, and what follows it (昆山 + 周庄)."""
        text = without_chatter(normal(query))
        for end in range(len(text) - 2, 1, -1):
            found = self.find(text[:end])
            if len(found) == 1:
                return found[0], text[end:]
        return None

    def _match(self, text: str) -> tuple[list[Division], str] | None:
        """Divisions whose own name ends the text, after names of what they lie in; and that name.

        The longest own name wins, so 吉林市 is never read as 吉林 and 市.
        """
        for start in range(len(text) - 1):
            head, tail = text[:start], text[start:]
            found = [
                division
                for division in self._by_name.get(tail, ())
                if not head or _is_above(head, division)
            ]
            if found:
                return found, tail
        return None

    def _narrow(self, found: Iterable[Division], tail: str) -> list[Division]:
        """Those of equal standing among namesakes."""
        left = list(found)
        official = [division for division in left if division.name == tail]
        if official:
            left = official
        if len(left) > 1 and self._defaults.get(tail) in [division.code for division in left]:
            return [division for division in left if division.code == self._defaults[tail]]
        left.sort(key=lambda division: (division.level, division.code))
        kept: list[Division] = []
        for division in left:
            if not any(_holds(larger, division) for larger in kept):
                kept.append(division)
        return kept

    def _places(self, divisions: Sequence[Division]) -> list[Place]:
        return [
            self._capital(division) if division.is_province else division.place()
            for division in divisions
        ]

    def _capital(self, province: Division) -> Place:
        """A province stands for its capital: the table places it there."""
        cities = [
            division
            for division in self.divisions
            if division.province == province.name and division.level == 1
        ]
        capital = min(
            cities,
            key=lambda city: kilometres(
                city.latitude, city.longitude, province.latitude, province.longitude
            ),
        )
        return Place(
            (province.name, capital.name),
            capital.latitude,
            capital.longitude,
            stands_for=province.name,
            note=f"{province.name}范围很大，这里给的是省会（首府）{capital.name}；要看别的城市请写城市名。",
        )


def _is_above(head: str, division: Division) -> bool:
    """Whether the head is exactly the province, the prefecture, or both in this order."""
    provinces = ("", division.province, *stems(division.province))
    prefectures = ("", division.prefecture, *stems(division.prefecture))
    return any(head == one + other for one in provinces for other in prefectures)


def _holds(larger: Division, smaller: Division) -> bool:
    """Whether the smaller lies in its namesake, or so near that the weather is the same."""
    if larger.level == 0:
        return larger.code[:2] == smaller.code[:2] and not larger.is_province
    if larger.level == 1 and larger.code[:4] == smaller.code[:4]:
        return True
    return (
        kilometres(larger.latitude, larger.longitude, smaller.latitude, smaller.longitude)
        < SAME_PLACE_KM
    )


def _rows(file: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@cache
def cities() -> Cities:
    """The table of places, read once (some 20 ms)."""
    divisions = [
        Division(
            row["adcode"],
            row["name"],
            row["province"],
            row["prefecture"],
            float(row["lat"]),
            float(row["lon"]),
            tuple(filter(None, row["english"].split(";"))),
            row["remark"],  # type: ignore[arg-type]
        )
        for row in _rows("cities.csv")
    ]
    return Cities(divisions, {row["name"]: row["adcode"] for row in _rows("defaults.csv")})
