from __future__ import annotations

import codecs
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.workers import csvtext
from chathands.workers.protocol import Rejected
from chathands.workers.reading import read_table

TEXT = '编号,姓名,金额\n00123,周敏,"1,200"\n00124,郑凯,35\n'


def read(data: bytes, name: str = "t.csv", **asked: Any) -> dict[str, Any]:
    payload = {"name": name, "sheet": None, "columns": [], "limit": 30} | asked
    return read_table(payload, BytesIO(data))


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("gbk"),
        TEXT.encode("gb18030"),
        TEXT.encode("utf-16"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace(",", "\t").replace('"1\t200"', '"1,200"').encode(),
        ("sep=;\n" + TEXT.replace(",", ";").replace('"1;200"', '"1,200"')).encode(),
    ],
)
def test_encodings_and_separators_people_send(data: bytes) -> None:
    result = read(data)
    assert result["columns"] == ["编号", "姓名", "金额"]
    assert result["rows"] == [["00123", "周敏", "1,200"], ["00124", "郑凯", "35"]]
    assert result["sheet"] is None


def test_a_short_gbk_file_is_not_taken_for_korean() -> None:
    """charset-normalizer calls this cp949 (measured)."""
    assert csvtext.decode("姓名,部门\n张三,市场".encode("gbk")) == "姓名,部门\n张三,市场"


def test_ragged_rows_and_title_lines() -> None:
    result = read("库存导出\n\n品名,数量,备注\n笔,3\n墨,4,好,多出来的\n".encode())
    assert result["titles"] == ["库存导出"]
    assert result["columns"] == ["品名", "数量", "备注", "D列"]
    assert result["rows"] == [["笔", "3", "", ""], ["墨", "4", "好", "多出来的"]]


def test_a_wider_row_far_below_adds_a_column() -> None:
    lines = ["品名,数量"] + ["笔,1"] * 80 + ["墨,2,注意"]
    assert read("\n".join(lines).encode())["columns"] == ["品名", "数量", "C列"]


def test_codes_written_as_formulas_are_codes() -> None:
    assert read(b'no,name\n"=""00123""",x\n')["rows"] == [["00123", "x"]]


def test_text_named_xlsx_is_read_as_csv_and_said() -> None:
    result = read(TEXT.encode(), "t.xlsx")
    assert result["notes"] == ["文件内容是文本，按 CSV 读取"]


@pytest.mark.parametrize("data", [b"\xff\x00\xfe" * 50, bytes(range(256)), b"a,b\n\x00\x01\n"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(Rejected, match="编码"):
        read(data)


@given(st.binary(max_size=400))
def test_any_bytes_give_a_table_or_a_sentence(data: bytes) -> None:
    try:
        result = read(data)
    except Rejected:
        return
    assert all(len(row) == len(result["shown"]) for row in result["rows"])
