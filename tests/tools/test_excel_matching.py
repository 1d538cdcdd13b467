"""Which file a vague name means: one for sure, or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.excel.matching import clear_match

NAMES = [
    "sales/2023/09.xlsx",
    "sales/2024/09.xlsx",
    "sales/2024/12.xlsx",
    "hr/考勤_202410.csv",
    "仓库盘点.xlsx",
    "成本.xlsx",
    "chrome导出.xlsx",
]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2024年9月销售", "sales/2024/09.xlsx"),
        ("2024年九月份的销售数据", "sales/2024/09.xlsx"),
        ("12月销售表", "sales/2024/12.xlsx"),
        ("十二月销售汇总.xlsx", "sales/2024/12.xlsx"),
        ("2024/12.xlsx", "sales/2024/12.xlsx"),
        ("12.xls", "sales/2024/12.xlsx"),
        ("sales/2024/9.xlsx", "sales/2024/09.xlsx"),
        ("data/shared/sales/2024/12.xlsx", "sales/2024/12.xlsx"),
        ("shared\\sales\\2024\\12.xlsx", "sales/2024/12.xlsx"),
        ("10月考勤", "hr/考勤_202410.csv"),
        ("盘点", "仓库盘点.xlsx"),
        ("成本表", "成本.xlsx"),
        ("人事的考勤记录", "hr/考勤_202410.csv"),
    ],
)
def test_the_only_file_that_fits(said: str, meant: str) -> None:
    assert clear_match(said, NAMES) == meant


@pytest.mark.parametrize(
    "said",
    [
        "9月销售",  # two years
        "09.xlsx",
        "销售",
        "2024年11月销售",
        "2024年9月考勤",
        "财务/2024/12.xlsx",
        "去年12月销售",
        "数据表",
        "表格.xlsx",
        "人事",  # hr/ is one, chrome is not, but neither is a file called so
        "成绩",
        "",
        "。。。",
    ],
)
def test_several_or_none_is_none(said: str) -> None:
    names = NAMES if said != "人事" else [name for name in NAMES if not name.startswith("hr/")]
    assert clear_match(said, names) is None


@given(st.text(max_size=40))
def test_it_never_crashes_and_gives_only_names_there_are(said: str) -> None:
    assert clear_match(said, NAMES) in (None, *NAMES)
