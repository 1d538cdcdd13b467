"""Times as people say them in Chinese, times that repeat, and the Chinese calendar. Pure: no clock,
no loop; nothing heavy is imported before it is needed."""

from chathands.times.calendar import WorkCalendar as WorkCalendar
from chathands.times.calendar import YearUnknown as YearUnknown
from chathands.times.phrases import Moment as Moment
from chathands.times.phrases import Unclear as Unclear
from chathands.times.phrases import read_day as read_day
from chathands.times.phrases import read_time as read_time
from chathands.times.repeats import Repeat as Repeat

__all__ = ["Moment", "Repeat", "Unclear", "WorkCalendar", "YearUnknown", "read_day", "read_time"]
