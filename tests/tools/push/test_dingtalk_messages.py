"""What DingTalk is given to show: its markdown subset, parts in size, keywords, and the limiter."""

from __future__ import annotations

import time

import pytest

from chathands.errors import ToolFailed
from tools.push.dingtalk import BODY_LIMIT, body_of, markdown, signature
from tools.push.markdown import adapt, joined, plain
from tools.push.pace import Pace


def shown(content: str) -> str:
    return joined(adapt(content).lines)


def test_a_table_becomes_a_block_of_list_items_per_row() -> None:
    table = "| 地区 | 销量 |\n|:---|---:|\n| 华东 | 120 |\n| 华北 | |"
    assert shown(f"本月：\n{table}\n完") == (
        "本月：\n\n"
        "**第 1 行**\n\n- **地区**：华东\n- **销量**：120\n\n"
        "**第 2 行**\n\n- **地区**：华北\n- **销量**：—\n\n完"
    )
    assert adapt(table).tables == 1


@pytest.mark.parametrize(
    ("row", "items"),
    [
        ("| 甲 |", ["- **a**：甲", "- **b**：—"]),
        ("| 甲 | 乙 | 丙 |", ["- **a**：甲", "- **b**：乙|丙"]),
        (r"| 甲\|乙 | 丙 |", ["- **a**：甲|乙", "- **b**：丙"]),
    ],
)
def test_uneven_rows_lose_nothing(row: str, items: list[str]) -> None:
    assert shown(f"| a | b |\n|---|---|\n{row}").split("\n") == items


def test_a_single_line_break_is_doubled_and_list_items_stay_together() -> None:
    assert shown("一\n二\n- 甲\n- 乙\n1. 丙\n\n\n三") == "一\n\n二\n\n- 甲\n- 乙\n1. 丙\n\n三"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("用 `pip install` 装", "用 pip install 装"),
        ("```python\nif x:\n    y()\n```", "> if x:\n\n> 　　y()"),
        ("~~旧价~~ 新价", "旧价 新价"),
        ("* 甲\n+ 乙", "- 甲\n- 乙"),
        ("- [ ] 待办\n- [x] 完成", "- ☐ 待办\n- ☑ 完成"),
        ("上\n\n---\n下", "上\n\n下"),
        ("一<br>二", "一\n\n二"),
        ("# 标题\n> 引用 **重** *斜*", "# 标题\n\n> 引用 **重** *斜*"),
    ],
)
def test_what_the_subset_does_not_have_is_rewritten(content: str, expected: str) -> None:
    assert shown(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("@13800000000 请看", "＠13800000000 请看"),
        ("@所有人", "＠所有人"),
        ("联系 li.lei@example.com", "联系 li.lei@example.com"),
        ("a@13800000000", "a＠13800000000"),
        ("[说明](https://example.com/@user)", "[说明](https://example.com/@user)"),
        (
            "[点我](dingtalk://dingtalkclient/page/link)",
            "点我（dingtalk://dingtalkclient/page/link）",
        ),
    ],
)
def test_nobody_is_called_and_no_foreign_scheme_is_linked(content: str, expected: str) -> None:
    assert shown(content) == expected


def test_a_link_in_a_cell_is_shown_as_text() -> None:
    table = "| 客户 |\n|---|\n| [点我](http://example.com/x) @13800000000 |"
    assert shown(table) == "- **客户**：点我（http://example.com/x） ＠13800000000"


def test_the_title_stands_once_above_the_text() -> None:
    composed = markdown("# 周报 **9 月**", "## 周报 9 月\n\n内容", ())
    (message,) = composed.messages
    assert message.title == plain("周报 9 月")
    assert message.text == "#### 周报 9 月\n\n内容"


@pytest.mark.parametrize(("title", "content"), [("", "正文"), ("标题", " \n\n"), ("**", "正文")])
def test_nothing_to_send_is_refused(title: str, content: str) -> None:
    with pytest.raises(ToolFailed, match="不能是空的"):
        markdown(title, content, ())


@pytest.mark.parametrize(
    "content",
    [
        "一行没有换行的话。" * 2000,
        "没有标点也没有换行" * 3000,
        '"\\\t' * 15000,
        "😀" * 12000,
        "\n".join(f"| {n} | {'值' * 40} |" for n in range(300)),
        "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {'值' * 40} |" for n in range(300)),
    ],
)
def test_every_part_fits_and_nothing_is_lost(content: str) -> None:
    composed = markdown("长文", content, ("关键",))
    assert len(composed.messages) > 1
    for message in composed.messages:
        assert len(body_of(message.title, message.text)) <= BODY_LIMIT
        assert "关键" in message.text
    whole = "".join(message.text for message in composed.messages)
    for letter in set(content) - set(" \n|-\t"):
        assert whole.count(letter) >= content.count(letter)


def test_a_part_is_as_full_as_the_limit_allows() -> None:
    composed = markdown("满", "字\n" * 5000, ())
    assert len(body_of(composed.messages[0].title, composed.messages[0].text)) > BODY_LIMIT - 200


@pytest.mark.parametrize(
    "content",
    ["`" * 60000, "[" * 60000, "[a](" * 15000, "a@" * 30000, "- " * 30000, "|" * 60000,
     "-|" + " " * 60000 + "x\n" * 2, "~" * 60000, "a." * 30000 + "@", "<br" * 20000],
)  # fmt: skip
def test_hostile_content_takes_no_time(content: str) -> None:
    started = time.perf_counter()
    adapt(content)
    assert time.perf_counter() - started < 1


def test_the_sign_is_the_documented_one() -> None:
    # Checked with openssl: dgst -sha256 -hmac SECabc over the timestamp, a line feed, the secret.
    assert signature("SECabc", "1700000000000") == "jcUpW0QmtKduN03n4JqQ0PBosVjqnM8gU7fIIvsDmCM="


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


ROBOT = ((20, 65.0),)
FEISHU = ((100, 65.0), (5, 1.2))


def test_twenty_places_are_given_in_a_minute_and_come_back() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert [pace.reserve("a", 1, ROBOT).delays for _ in range(20)] == [(0.0,)] * 20
    wait = pace.reserve("a", 1, ROBOT).wait
    assert 60 < wait < 70
    assert pace.reserve("b", 1, ROBOT).wait == 0
    clock.now += wait
    assert pace.reserve("a", 1, ROBOT).delays == (0.0,)


def test_several_places_are_taken_together_or_not_at_all() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.reserve("a", 15, ROBOT)
    clock.now += 30
    pace.reserve("a", 3, ROBOT)
    assert 30 < pace.reserve("a", 5, ROBOT).wait < 40  # until the fifteen are over
    assert pace.reserve("a", 2, ROBOT).delays == (0.0, 0.0)


def test_a_queue_gives_later_places_in_the_order_of_asking() -> None:
    pace = Pace(Clock())
    first = pace.reserve("a", 7, FEISHU, patience=10).delays
    second = pace.reserve("a", 2, FEISHU, patience=10).delays
    assert first == pytest.approx((0, 0, 0, 0, 0, 1.2, 1.2))
    assert second == pytest.approx((1.2, 1.2))
    assert pace.reserve("a", 2, FEISHU, patience=1).delays == ()


def test_a_closed_robot_takes_nothing_for_a_minute() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.close("a")
    assert pace.reserve("a", 1, ROBOT).wait == 60
    clock.now += 60
    assert pace.reserve("a", 1, ROBOT).wait == 0
