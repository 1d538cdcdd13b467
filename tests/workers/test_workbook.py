"""What a sheet looks like after reading, for the layouts people really send."""

from __future__ import annotations

import datetime as dt
import re
from io import BytesIO
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.datavalidation import DataValidation

from chathands.workers.protocol import Rejected
from chathands.workers.reading import read_table
from tests.workers import books


def read(data: bytes, name: str = "t.xlsx", **asked: Any) -> dict[str, Any]:
    payload = {"name": name, "sheet": None, "columns": [], "limit": 30, "hidden": False} | asked
    return read_table(payload, BytesIO(data))


def noted(result: dict[str, Any]) -> str:
    return "；".join(result["notes"])


def test_a_plain_sheet() -> None:
    result = read(books.orders(40))
    assert result["sheet"] == "订单"
    assert result["header_row"] == 1
    assert result["columns"] == ["下单日期", "单号", "区域", "金额"]
    assert result["total_rows"] == 40
    assert len(result["rows"]) == 30
    assert result["rows"][2] == ["2024-09-01", "00003", "东区", "3.3"]
    assert result["numeric"] == [False, False, False, True]


def test_cells_stay_what_they_are() -> None:
    row = (
        "00123", "110101199003071234", 1e5, 1234567.891, 0.1 + 0.2, "1e5", "NA", "null",
        True, dt.datetime(2024, 9, 3, 14, 30), dt.time(8, 5), dt.timedelta(hours=30),
    )  # fmt: skip
    result = read(books.book({"a": [[f"列{n}" for n in range(len(row))], row]}))
    assert result["rows"] == [
        [
            "00123", "110101199003071234", "100000", "1234567.891", "0.3", "1e5", "NA", "null",
            "TRUE", "2024-09-03 14:30", "08:05:00", "30:00:00",
        ]
    ]  # fmt: skip


def test_title_rows_are_skipped_and_named() -> None:
    rows = [("2024 年销售明细",), ("单位：元",), (), ("区域", "销量", "金额"), ("东", 1, 2.5)]
    result = read(books.book({"a": rows}, merged=["A1:C1"]))
    assert result["header_row"] == 4
    assert result["titles"] == ["2024 年销售明细", "单位：元"]
    assert result["rows"] == [["东", "1", "2.5"]]


def test_a_header_of_two_rows_is_joined() -> None:
    rows = [
        ("部门", "一季度", None, "二季度", None),
        (None, "收入", "支出", "收入", "支出"),
        ("市场", 10, 4, 12, 5),
    ]
    merged = read(books.book({"a": rows}, merged=["A1:A2", "B1:C1", "D1:E1"]))
    loose = read(books.book({"a": rows}))
    names = ["部门", "一季度/收入", "一季度/支出", "二季度/收入", "二季度/支出"]
    assert merged["columns"] == loose["columns"] == names
    assert merged["rows"] == [["市场", "10", "4", "12", "5"]]


def test_a_title_in_two_merged_parts_is_no_header() -> None:
    rows = [
        ("某某公司", None, "2024 年度", None),
        ("姓名", "部门", "基本", "奖金"),
        ("周敏", "市场", 10, 2),
    ]
    result = read(books.book({"a": rows}, merged=["A1:B1", "C1:D1"]))
    assert result["columns"] == ["姓名", "部门", "基本", "奖金"]
    assert result["titles"] == ["某某公司 2024 年度"]


def test_merged_cells_are_filled_and_blanks_are_not() -> None:
    rows = [("区域", "店", "备注"), ("东", "一店", "x"), (None, "二店", None), ("西", "三店", None)]
    result = read(books.book({"a": rows}, merged=["A2:A3"]))
    assert result["rows"] == [["东", "一店", "x"], ["东", "二店", ""], ["西", "三店", ""]]


def test_years_as_headers_and_rows_without_header() -> None:
    years = read(books.book({"a": [("地区", 2022, 2023), ("东", 1, 2), ("西", 3, 4)]}))
    assert years["columns"] == ["地区", "2022", "2023"]
    bare = read(books.book({"a": [("周敏", 28, 3.5), ("郑凯", 31, 4.5)]}))
    assert bare["header_row"] is None
    assert bare["columns"] == ["A列", "B列", "C列"]
    assert bare["total_rows"] == 2


def test_unnamed_and_repeated_columns_get_names_of_their_own() -> None:
    result = read(
        books.book({"a": [("品名", "金额", "金额", None, "备注"), ("笔", 1, 2, 3, "好")]})
    )
    assert result["columns"] == ["品名", "金额", "金额(2)", "D列", "备注"]


def test_empty_columns_and_rows_around_the_table_are_dropped() -> None:
    made = Workbook()
    sheet = made.worksheets[0]
    for at, row in enumerate((("品名", "数量"), ("笔", 3), (None, None), ("墨", 4)), start=3):
        for column, value in enumerate(row, start=3):
            sheet.cell(at, column, value)
    result = read(books.saved(made))
    assert result["header_row"] == 3
    assert result["columns"] == ["品名", "数量"]
    assert result["rows"] == [["笔", "3"], ["墨", "4"]]
    assert "1 个空行" in noted(result)


def test_a_stray_cell_at_the_end_does_not_count_as_rows() -> None:
    result = read(books.stray_cell())
    assert result["total_rows"] == 2
    assert "1048576" in noted(result)
    assert "到第 3 行" in noted(result)


def test_a_wrong_dimension_does_not_hide_rows() -> None:
    """WPS and others write A1; openpyxl read-only then sees one cell (langgenius/dify#1039)."""

    def shrink(xml: str) -> str:
        return re.sub(r'<dimension ref="[^"]*"', '<dimension ref="A1"', xml)

    wrong = books.edited(books.orders(5), books.SHEET, shrink)
    assert read(wrong)["total_rows"] == 5


def test_a_date_that_lost_its_format_is_a_date_again() -> None:
    result = read(books.book({"a": [("日期", "数量"), (45538, 45538), (45539.5, 2)]}))
    assert result["rows"] == [["2024-09-03", "45538"], ["2024-09-04 12:00", "2"]]
    assert "日期" in noted(result)


def test_formulas_without_result_and_error_cells_are_told() -> None:
    rows = [("品名", "金额"), ("笔", "=1+1"), ("墨", "=B2*2"), ("纸", "#N/A"), ("尺", 5)]
    result = read(books.book({"a": rows}))
    assert result["rows"][0] == ["笔", ""]
    assert "2 个公式没有计算结果（如 B2、B3）" in noted(result)
    assert "1 个错误单元格（如 B4 #N/A）" in noted(result)


def test_formulas_with_a_stored_result_are_just_values() -> None:
    def store(xml: str) -> str:
        return re.sub(r"<f>([^<]*)</f><v\s*/>|<f>([^<]*)</f><v></v>", r"<f>\1\2</f><v>7</v>", xml)

    rows = [("品名", "金额"), ("笔", "=3+4")]
    result = read(books.edited(books.book({"a": rows}), books.SHEET, store))
    assert result["rows"] == [["笔", "7"]]
    assert result["notes"] == []


def test_a_text_formula_with_an_empty_result_is_no_fault() -> None:
    def store(xml: str) -> str:
        return re.sub(
            r'<c r="B2"[^>]*><f>([^<]*)</f>.*?</c>', r'<c r="B2" t="str"><f>\1</f><v></v></c>', xml
        )

    rows = [("品名", "备注"), ("笔", '=IF(1=2,"x","")')]
    assert read(books.edited(books.book({"a": rows}), books.SHEET, store))["notes"] == []


def test_the_first_visible_sheet_with_data_is_read() -> None:
    made = Workbook()
    made.worksheets[0].title = "空的"
    made.create_chartsheet("图表", 0)
    hidden = made.create_sheet("工资", 0)
    hidden.append(("姓名", "月薪"))
    hidden.sheet_state = "hidden"
    data = made.create_sheet("数据")
    data.append(("品名", "数量"))
    data.append(("笔", 3))
    result = read(books.saved(made))
    assert result["sheet"] == "数据"
    assert result["others"] == ["空的"]


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_hidden_sheets_are_for_admins(state: str) -> None:
    sheets = {"公开": [("a", "b"), (1, 2)], "工资": [("姓名", "月薪"), ("周敏", 9000)]}
    data = books.book(sheets, states={"工资": state})
    assert read(data)["others"] == []
    with pytest.raises(Rejected, match="只有管理员"):
        read(data, sheet="工资")
    with pytest.raises(Rejected) as unknown:
        read(data, sheet="别的")
    assert "工资" not in unknown.value.sentence
    assert read(data, sheet="工资", hidden=True)["rows"] == [["周敏", "9000"]]
    assert read(data, hidden=True)["others"] == ["工资（隐藏）"]


def test_a_sheet_that_does_not_exist_names_those_that_do() -> None:
    data = books.book({"一月": [("a",), (1,)], "二月": [("a",), (2,)]})
    with pytest.raises(Rejected, match="没有工作表「三月」。这个文件里有：一月、二月"):
        read(data, sheet="三月")
    assert read(data, sheet=" 二 月")["rows"] == [["2"]]
    assert read(data, sheet="二")["sheet"] == "二月"


def test_columns_are_picked_by_name_and_missing_ones_listed() -> None:
    data = books.book({"a": [("品名", "金额(元)", "数量"), ("笔", 2, 3)]})
    result = read(data, columns=["数量", "金额"])
    assert result["shown"] == ["数量", "金额(元)"]
    assert result["rows"] == [["3", "2"]]
    with pytest.raises(Rejected, match="没有列「单价」。这张表的列有：品名、金额\\(元\\)、数量"):
        read(data, columns=["单价"])


def test_columns_of_another_sheet_are_found_there() -> None:
    data = books.book(
        {"汇总": [("区域", "金额"), ("东", 1)], "明细": [("产品", "金额"), ("笔", 1)]}
    )
    assert read(data, columns=["产品"])["sheet"] == "明细"
    with pytest.raises(Rejected, match=r"没有列「产品」.*其他工作表：明细"):
        read(data, columns=["产品"], sheet="汇总")


def test_long_cells_are_cut_with_their_length() -> None:
    cell = read(books.book({"a": [("项目", "备注"), ("甲", "很" * 500)]}))["rows"][0][1]
    assert cell.endswith("…（共 500 字）")
    assert len(cell) < 250


def test_wide_sheets_show_their_first_columns_and_name_all() -> None:
    result = read(books.book({"a": [[f"项{n}" for n in range(40)], list(range(40))]}))
    assert len(result["columns"]) == 40
    assert result["shown"] == [f"项{n}" for n in range(20)]


def test_a_sheet_of_styles_only_is_empty() -> None:
    made = Workbook()
    sheet = made.worksheets[0]
    sheet.add_data_validation(DataValidation(type="list", formula1='"a,b"'))
    for row in range(1, 200):
        sheet.cell(row, 1).number_format = "0.00"
    with pytest.raises(Rejected, match="没有数据"):
        read(books.saved(made))


def test_old_xls_under_its_own_name_and_under_a_wrong_one() -> None:
    data = (books.FILES / "legacy.xls").read_bytes()
    for name in ("legacy.xls", "legacy.xlsx"):
        result = read(data, name)
        assert result["sheet"] == "旧表"
        assert result["rows"][0] == ["00123", "周敏", "2019-03-04", "1200.5"]


def test_ods() -> None:
    result = read(books.ods([("品名", "数量"), ("笔", 3), ("墨", 4.5)]), "t.ods")
    assert (result["sheet"], result["rows"]) == ("表一", [["笔", "3"], ["墨", "4.5"]])
