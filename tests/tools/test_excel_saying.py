"""Which file is meant by what people say: last month's, the newest, last year's March one."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.toolbox.files import FileEntry
from tools.excel.saying import meant_by

NOW = dt.datetime(2025, 1, 15, 10, 0)


def entry(name: str, changed: str) -> FileEntry:
    moment = dt.datetime.fromisoformat(changed).timestamp()
    return FileEntry(name, 1000, moment, "shared")


FILES = sorted(
    [
        entry("sales/2024/12.xlsx", "2025-01-02"),
        entry("sales/2024/11.xlsx", "2024-12-01"),
        entry("sales/2023/12.xlsx", "2024-01-03"),
        entry("2024年3月考勤.xlsx", "2024-04-01"),
        entry("考勤_202412.csv", "2025-01-03"),
        entry("三季度总结.xlsx", "2024-10-08"),
        entry("2024Q4预算.xlsx", "2024-10-20"),
        entry("价目表.xlsx", "2025-01-14"),
        entry("年会名单.xlsx", "2025-01-15"),
    ],
    key=lambda each: -each.modified,
)


def meant(said: str) -> list[str]:
    return [each.name for each in meant_by(said, FILES, NOW)[0]]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("上个月那个报表", ["考勤_202412.csv", "sales/2024/12.xlsx"]),
        ("上个月的销售报表", ["sales/2024/12.xlsx"]),
        ("上月考勤", ["考勤_202412.csv"]),
        ("上上个月的销售", ["sales/2024/11.xlsx"]),
        ("去年三月的考勤", ["2024年3月考勤.xlsx"]),
        ("去年12月的销售", ["sales/2024/12.xlsx"]),
        ("前年的销售", ["sales/2023/12.xlsx"]),
        ("上季度预算", ["2024Q4预算.xlsx"]),
        ("最新的表", ["年会名单.xlsx"]),
        ("最新的考勤", ["考勤_202412.csv"]),
        ("刚才发的那个文件", ["年会名单.xlsx"]),
        ("昨天的表格", ["价目表.xlsx"]),  # by when it was changed
        ("今天更新的", ["年会名单.xlsx"]),
        ("价目", ["价目表.xlsx"]),
        ("上个月的工资", []),
        ("去年的工资表", []),
        ("明细", []),
        ("报表", []),
    ],
)
def test_what_is_said_means_these(said: str, expected: list[str]) -> None:
    assert meant(said) == expected


def test_by_time_is_told_from_by_name() -> None:
    assert meant_by("昨天的表格", FILES, NOW)[1]
    assert not meant_by("上月考勤", FILES, NOW)[1]


def test_january_looks_back_into_the_year_before() -> None:
    files = [entry("1月.xlsx", "2025-01-10"), entry("12月.xlsx", "2024-12-30")]
    assert [e.name for e in meant_by("上个月的", files, NOW)[0]] == ["12月.xlsx"]
    assert [e.name for e in meant_by("这个月的", files, NOW)[0]] == ["1月.xlsx"]


@given(st.text(max_size=30), st.dates(dt.date(2000, 1, 31), dt.date(2100, 1, 1)))
def test_it_never_crashes_and_gives_only_files_there_are(said: str, day: dt.date) -> None:
    found, _ = meant_by(said + "上个月", FILES, dt.datetime.combine(day, dt.time()))
    assert set(found) <= set(FILES)
