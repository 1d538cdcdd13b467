"""Phrases as people write them, kept as data: one right answer each, or a question back."""

from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathands.times import Moment, Repeat, Unclear, WorkCalendar, read_time

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 3, 11, 10, tzinfo=SHANGHAI)
CALENDAR = WorkCalendar()


def meaning(phrase, now=NOW, times=1):
    """The answer as the data files write it."""
    found = read_time(phrase, now=now, calendar=CALENDAR)
    if isinstance(found, Unclear):
        return "!" if found.impossible else "?"
    if isinstance(found, Moment):
        return written(found.when)
    return "* " + " | ".join(map(written, islice(coming(found, now), times)))


def coming(repeat: Repeat, moment):
    while True:
        moment = repeat.next_after(moment, CALENDAR)
        yield moment


def written(when):
    return f"{when:%Y-%m-%d %H:%M}" + (f":{when:%S}" if when.second else "")


def cases():
    for name in ("phrases.tsv", "phrases_later.tsv"):
        text = Path(__file__).with_name(name).read_text("utf-8")
        for line in text.splitlines():
            if not line.startswith("#"):
                phrase, expected, *said_at = line.split("\t")
                yield phrase, expected, *said_at


def test_every_phrase_of_the_data_means_what_is_written_beside_it():
    wrong, count = [], 0
    for phrase, expected, *said_at in cases():
        now = datetime.fromisoformat(said_at[0]).replace(tzinfo=SHANGHAI) if said_at else NOW
        got = meaning(phrase, now, expected.count("|") + 1)
        count += 1
        if got != expected:
            wrong.append(f"{phrase}: {got}, not {expected}")
    assert not wrong, "\n".join(wrong)
    assert count > 580


def test_what_is_assumed_is_said():
    found = read_time("月底", now=NOW, calendar=CALENDAR)
    assert isinstance(found, Moment)
    assert "没有说几点" in found.note
    assert "09:00" in found.note


@pytest.mark.parametrize(
    ("phrase", "words"),
    [
        ("上午九点", "3 月 12 日（周四） 09:00"),
        ("八点", "今天晚上 20:00，还是 3 月 12 日（周四）上午 08:00"),
        ("明天三点", "凌晨 03:00 还是 3 月 12 日（周四）下午 15:00"),
        ("下周三点", "星期几，还是说几点"),
        ("2月30日", "2 月没有 30 日"),
        ("25点", "没有「25点」这个时刻"),
        ("每五分钟", "最短 10 分钟"),
        ("过几天", "「过几天」没有说准"),
        ("明天下午", "没有说下午几点"),
    ],
)
def test_questions_name_what_is_open(phrase, words):
    found = read_time(phrase, now=NOW, calendar=CALENDAR)
    assert isinstance(found, Unclear)
    assert words in found.sentence


NEW_YORK = ZoneInfo("America/New_York")


def test_a_time_that_the_clocks_skip_is_asked_about():
    now = datetime(2026, 3, 7, 10, tzinfo=NEW_YORK)
    found = read_time("明天凌晨2:30", now=now, calendar=CALENDAR)
    assert isinstance(found, Unclear)
    assert "拨快时钟" in found.sentence


def test_spans_are_real_time_and_days_are_wall_time_across_a_change_of_clocks():
    now = datetime(2026, 3, 7, 22, tzinfo=NEW_YORK)
    hours = read_time("10小时后", now=now, calendar=CALENDAR)
    days = read_time("一天后", now=now, calendar=CALENDAR)
    assert isinstance(hours, Moment)
    assert isinstance(days, Moment)
    assert hours.when.isoformat() == "2026-03-08T09:00:00-04:00"
    assert days.when.isoformat() == "2026-03-08T22:00:00-04:00"


def test_a_daily_time_stays_at_its_wall_time_and_comes_once_on_days_of_change():
    now = datetime(2026, 3, 6, 10, tzinfo=NEW_YORK)
    spring = read_time("每天2:30am", now=now, calendar=CALENDAR)
    assert isinstance(spring, Repeat)
    assert [f"{t:%d %H:%M}" for t in islice(coming(spring, now), 3)] == [
        "07 02:30",
        "08 03:30",
        "09 02:30",
    ]
    before = datetime(2026, 10, 31, 10, tzinfo=NEW_YORK)
    autumn = read_time("每天1:30am", now=before, calendar=CALENDAR)
    assert isinstance(autumn, Repeat)
    assert [t.isoformat() for t in islice(coming(autumn, before), 2)] == [
        "2026-11-01T01:30:00-04:00",
        "2026-11-02T01:30:00-05:00",
    ]


def test_a_moment_is_aware_and_in_the_zone_of_now():
    found = read_time("2026-03-20T15:30:00+00:00", now=NOW, calendar=CALENDAR)
    assert isinstance(found, Moment)
    assert found.when.isoformat() == "2026-03-20T23:30:00+08:00"


def test_very_long_and_empty_phrases_are_refused():
    for phrase in ("", "  ", "三" * 5000, "明天下午三点" * 100):
        assert isinstance(read_time(phrase, now=NOW, calendar=CALENDAR), Unclear)


PIECES = [
    *"今明后大昨周一二三四五六日天月年号点时分秒半刻个每隔上下早晚午夜前零两十百过差到和、",
    *":-/ 0123456789",
    "小时", "分钟", "星期", "礼拜", "工作日", "最后", "月底", "国庆", "农历", "下午", "凌晨",
    "中午", "之后", "以前", "提醒我", "每周", "每月", "每年", "15:30", "2026-", "am", "\x00", "👍",
]  # fmt: skip


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nothing_written_raises_and_no_moment_is_past(phrase):
    found = read_time(phrase, now=NOW, calendar=CALENDAR)
    if isinstance(found, Moment):
        assert found.when > NOW
    elif isinstance(found, Repeat):
        first = found.next_after(NOW, CALENDAR)
        assert first is not None
        assert NOW < first < NOW + timedelta(days=366 * 9)
        assert Repeat.from_data(found.to_data()).next_after(NOW, CALENDAR) == first
    else:
        assert found.sentence.endswith(("。", "？"))
