from __future__ import annotations

import datetime as dt
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.workers.cells import (
    column_letter,
    is_code,
    is_plain_number,
    read_date,
    read_written,
    serial_date,
    show,
    show_number,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (1234567.891, "1234567.891"),
        (1e15, "1000000000000000"),
        (1e20, "100000000000000000000"),
        (0.00001234, "0.00001234"),
        (-2.50, "-2.5"),
        (123456789012345680.0, "123456789012345680"),
    ],
)
def test_numbers_are_shown_without_noise_or_exponent(value: float, shown: str) -> None:
    assert show_number(value) == shown


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_a_shown_number_is_the_number(value: float) -> None:
    assert math.isclose(float(show_number(value)), value, rel_tol=1e-14, abs_tol=1e-19)


@given(st.integers(-(10**12), 10**12), st.integers(0, 6))
def test_decimals_come_back_as_written(digits: int, decimals: int) -> None:
    written = f"{digits / 10**decimals:.{decimals}f}" if decimals else str(digits)
    wanted = written.rstrip("0").rstrip(".") if "." in written else written
    assert show_number(float(written)) == ("0" if wanted in ("-0", "") else wanted)


@pytest.mark.parametrize(
    ("text", "value", "percent"),
    [
        ("1,234.5", 1234.5, False),
        ("￥1,200", 1200, False),
        ("¥ 1200.50 元", 1200.5, False),
        ("-3", -3, False),
        ("(300)", -300, False),
        ("12%", 0.12, True),
        ("１２．３％", 0.123, True),
        ("1.2万", 12000, False),
        ("3亿元", 300000000, False),
        ("$-5.5", -5.5, False),
    ],
)
def test_numbers_written_as_text(text: str, value: float, percent: bool) -> None:
    written = read_written(text)
    assert written is not None
    assert (written.value, written.percent) == (value, percent)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00123",
        "110101199003071234",
        "1,23",
        "12,34,567",
        "1e5",
        "abc",
        "2024-09",
        "(3",
        "3)",
        "12个",
    ],
)
def test_what_is_not_a_number(text: str) -> None:
    assert read_written(text) is None


@given(st.text(max_size=30))
def test_reading_never_crashes(text: str) -> None:
    read_written(text)
    read_date(text)
    show(text)
    assert not (is_code(text) and is_plain_number(text))


@pytest.mark.parametrize(
    "text",
    ["2024-9-3", "2024/09/03", "2024.9.3", "2024年9月3日", "２０２４-09-03", "2024年9月3日 "],
)
def test_dates_written_as_text(text: str) -> None:
    assert read_date(text) == dt.datetime(2024, 9, 3)


@pytest.mark.parametrize("text", ["2024-13-01", "2024-02-30", "9月3日", "2024-09", "20240903", "x"])
def test_what_is_no_whole_date(text: str) -> None:
    assert read_date(text) is None


def test_day_numbers() -> None:
    assert serial_date(45538) == dt.date(2024, 9, 3)
    assert serial_date(45538.75) == dt.datetime(2024, 9, 3, 18)


def test_column_letters() -> None:
    assert [column_letter(n) for n in (0, 25, 26, 701, 702, 16383)] == [
        "A", "Z", "AA", "ZZ", "AAA", "XFD",
    ]  # fmt: skip
