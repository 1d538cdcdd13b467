from datetime import date

import pytest

from chathands.times import WorkCalendar, YearUnknown
from chathands.times.calendar import festival, last_year
from chathands.times.numerals import read_numeral


def test_holidays_and_make_up_workdays_are_known():
    calendar = WorkCalendar()
    assert not calendar.is_workday(date(2026, 10, 2))
    assert calendar.is_workday(date(2026, 10, 10))  # a Saturday that is worked
    assert not calendar.is_workday(date(2026, 3, 14))
    assert calendar.holiday(date(2026, 10, 2)) == "国庆节"
    assert calendar.holiday(date(2026, 10, 10)) == ""


def test_a_year_without_data_is_said_and_can_be_added():
    year = last_year() + 1
    calendar = WorkCalendar()
    with pytest.raises(YearUnknown):
        calendar.is_workday(date(year, 6, 1))
    monday = next(d for n in range(1, 8) if (d := date(year, 6, n)).isoweekday() == 1)
    assert calendar.is_workday_or_weekday(monday)
    added = WorkCalendar.of(off=[monday], on=[monday.replace(day=monday.day + 5)])
    assert not added.is_workday(monday)
    assert added.is_workday(monday.replace(day=monday.day + 5))
    assert added.holiday(monday) == "节假日"


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("国庆节", date(2026, 10, 1)),
        ("春节", date(2026, 2, 17)),
        ("除夕", date(2026, 2, 16)),
        ("端午节", date(2026, 6, 19)),
        ("清明节", date(2026, 4, 5)),
        ("腊八", date(2026, 1, 26)),
    ],
)
def test_festivals(name, day):
    assert festival(name, 2026) == day


def test_unknown_festivals_and_years_have_no_day():
    assert festival("丰收节", 2026) is None
    assert festival("春节", 2200) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("十五", 15), ("一百零二", 102), ("二〇二六", 2026), ("廿五", 25), ("两", 2), ("007", 7)]
    + [(bad, None) for bad in ("", "三十五十", "二十零", "一百二", "十十", "x", "1" * 50)],
)
def test_numerals(text, number):
    assert read_numeral(text) == number
