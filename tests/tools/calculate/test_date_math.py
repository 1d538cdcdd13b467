from datetime import date

import pytest

from chathands.conversation import Status
from chathands.times import WorkCalendar
from chathands.times.calendar import last_year
from tests.tools.live import live
from tools.calculate.days import CannotDate, about_day, added, between

TODAY = date(2026, 3, 11)
CALENDAR = WorkCalendar()


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("今天", "国庆", ["2026-10-01（周四）", "相差 204 天", "首尾都算是 205 天"]),
        ("2026-05-01", "2026-05-09", ["相差 8 天", "工作日首尾都算是 4 天"]),  # 6, 7, 8 and the 9th
        ("2026年4月3日", "4月7日", ["工作日首尾都算是 2 天，不算第一天是 1 天"]),
        ("4月7日", "4月3日", ["后一个日子在前", "相差 4 天"]),
        ("去年国庆", "今天", ["2025-10-01", "相差 161 天"]),
        ("今天", "2026-03-11", ["是同一天"]),
        ("1999-01-01", "2000-01-01", ["相差 365 天", "从 2004 年起才有"]),
    ],
)
def test_between(start, end, words):
    text = between(start, end, TODAY, CALENDAR)
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("start", "count", "unit", "day"),
    [
        ("今天", 30, "天", "2026-04-10（周五）"),
        ("今天", -1, "周", "2026-03-04（周三）"),
        ("1月31日", 1, "月", "2026-02-28（周六）（那个月没有这一天，取月底）"),
        ("2024-02-29", 1, "年", "2025-02-28（周五）"),
        ("3月2号", 10, "工作日", "2026-03-16（周一）"),
        ("4月30日", 1, "工作日", "2026-05-06（周三）"),
        ("5月8日", 1, "工作日", "2026-05-09（周六）"),  # a make-up day
        ("5月6日", -1, "工作日", "2026-04-30（周四）"),
    ],
)
def test_added(start, count, unit, day):
    assert day in added(start, count, unit, TODAY, CALENDAR)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("2026-10-02", "放假（国庆节）"),
        ("2026-10-10", "要上班（调休）"),
        ("3月14日", "是周末，不上班"),
        ("明天", "离今天还有 1 天，是工作日"),
        ("昨天", "是 1 天以前"),
    ],
)
def test_about_a_day(start, words):
    assert words in about_day(start, TODAY, CALENDAR)


def test_workdays_beyond_the_data_are_refused_with_the_reach_of_the_data():
    with pytest.raises(CannotDate, match=f"到 {last_year()} 年的"):
        added("今天", 2000, "工作日", TODAY, CALENDAR)
    far = between("今天", f"{last_year() + 1}-06-01", TODAY, CALENDAR)
    assert "相差" in far
    assert "还没有数据" in far


@pytest.mark.parametrize("start", ["2月30日", "下周", "明天下午三点", "随便", "", "x" * 999])
def test_no_day_is_said_in_a_sentence(start):
    with pytest.raises(CannotDate):
        about_day(start, TODAY, CALENDAR)


async def test_both_tools_answer_through_the_executor(tmp_path):
    async with live(tmp_path) as bench:
        result = await bench.call("calculate", expression="3.5万*15%")
        assert (result.status, result.content) == (Status.OK, "3.5万*15% = 5250")
        failed = await bench.call("calculate", expression="1/0")
        assert (failed.status, failed.content) == (Status.FAILED, "除数是 0，算不出来。")
        day = await bench.call("date_math", start="2026-10-10")
        assert "要上班（调休）" in day.content
        both = await bench.call("date_math", start="今天", end="国庆", add=3)
        assert both.status is Status.FAILED
        far = await bench.call("date_math", start="今天", add=40000, unit="年")
        assert far.content == "日期太远了，算不了。"
