"""Markdown of every kind models write, as people read it in QQ: readable, and nothing lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.group_chat.rendering import pieces_of
from plugins.group_chat.rendering_tables import Table, width_of
from plugins.group_chat.speech import APPROVAL_HEAD, plain, split


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("- 一\n  - 二\n    1. 三\n\t- 四", "· 一\n  · 二\n    1. 三\n  · 四"),
        ("- [ ] 待办\n- [x] **完成**\n1. [X] 有序", "☐ 待办\n☑ 完成\n1. ☑ 有序"),
        ("标题\n===\n另一个\n---\n正文", "标题\n另一个\n正文"),
        ("上\n\n***\n\n下", "上\n\n————————\n\n下"),
        ('[站](https://a.cn/b_(c) "提示")', "站（https://a.cn/b_(c)）"),
        ("[文档](./docs/a.md)", "文档（./docs/a.md）"),
        ("见 <https://a.cn/x_y_z>。", "见 https://a.cn/x_y_z。"),
        ("[甲][1] 与 [乙][]\n\n[1]: https://a.cn\n[乙]: <https://b.cn>",
         "甲（https://a.cn） 与 乙（https://b.cn）"),
        ("数组 [1][2] 与 [x]: y", "数组 [1][2] 与 [x]: y"),
        ("脚注[^1]\n[^1]: 说明", "脚注[1]\n[1]: 说明"),
        ("![图](https://a.cn/x.png) ![](https://a.cn/y.png)",
         "图片：图（https://a.cn/x.png） 图片：https://a.cn/y.png"),
        ("原价 ~~99~~ 现价 59", "原价 99（已划去） 现价 59"),
        ("> 引 **甲**\n> > 内层\n> ```\n> x  = **y**\n> ```", "│ 引 甲\n│ │ 内层\n│ x  = **y**"),
        ("a < b > c，List<int> 和 <T>", "a < b > c，List<int> 和 <T>"),
        ("<b>粗</b>一<br>二&nbsp;三 &lt;T&gt; &amp;", "粗一\n二 三 <T> &"),
        ("<ul><li>甲</li><li>乙</li></ul>", "· 甲\n· 乙"),
        ('<a href="https://a.cn/x">站</a> <img src="https://a.cn/i.png" alt="图">',
         "站（https://a.cn/x） 图片：图（https://a.cn/i.png）"),
        ("<details><summary>看</summary>里面</details>", "看\n里面"),
        (r"面积 $S=\pi r^2$，\(a \le b\)", "面积 S=π r²，a ≤ b"),
        (r"$$\frac{a+b}{2} \times \sqrt{x_1}$$", "(a+b)/2 × √x₁"),
        ("\\[\nE = mc^2\n\\]", "E = mc²"),
        (r"\[ \text{利润} = 100\% \]", "利润 = 100%"),
        ("一共 $5 和 $6", "一共 $5 和 $6"),
        (r"路径 C:\_tmp\*x 与 `a*b*c`", r"路径 C:\_tmp\*x 与 a*b*c"),
        ("*斜* 和 _斜 体_，***都***", "斜 和 斜 体，都"),
        ("这是*重点*内容，__重点 内容__", "这是重点内容，重点 内容"),
        ('"*.py,*.txt" 3*4*5 __init__ a_b_c', '"*.py,*.txt" 3*4*5 __init__ a_b_c'),
        (r"\*不斜\* \#1 \_x\_", "*不斜* #1 _x_"),
        ("**[站](https://a.cn)**：`**x**`", "站（https://a.cn）：**x**"),
        ("[`代码`](https://a.cn)", "代码（https://a.cn）"),
        ("| a |\n|---|\n\n正文", "a\n\n正文"),
    ],
)  # fmt: skip
def test_marks_become_readable(markdown: str, shown: str):
    assert plain(markdown) == shown


def test_code_in_fences_is_kept_to_the_letter():
    code = (
        "\tif x:\n\n\n\n    **y** = `z` | <b>$a$</b> \\n\n| a | b |\n|---|---|\n> # [x](http://y)"
    )
    for fence in ("```", "~~~", "````python", "   ```js"):
        close = fence.strip().rstrip("pythonjs")
        inner = code if "js" not in fence else code.replace("\n", "\n   ").replace("\t", "   \t", 1)
        assert plain(f"前\n\n{fence}\n{inner}\n{close}\n后") == f"前\n\n{code}\n后"
    assert plain(f"```\n{code}") == code  # never closed


def test_a_table_in_html_is_a_table():
    head, row = "<tr><th>名</th><th>值</th></tr>", "<tr><td>甲</td><td><b>1</b></td></tr>"
    text = f"前<table>\n{head}\n{row}</table>后"
    assert pieces_of(text) == [
        "前",
        Table(("名", "值"), (("甲", "1"),), ("left", "right")),
        "后",
    ]


def test_a_row_with_too_many_cells_loses_none():
    (table,) = pieces_of("| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |\n| x |")
    assert isinstance(table, Table)
    assert table.rows == (("1", "2", "3", "4"), ("x", "", "", ""))
    assert plain("| a | b |\n|---|---|\n| 1 | 2 | 3 |") == "a：\n· 1：b 2，3"


def test_columns_line_up_by_the_width_people_see():
    (table,) = pieces_of(
        "| 名 | n | 备注 |\n|---|---:|:-:|\n| 华东区 | 5 | ok |\n| x | 1200 | 好 |"
    )
    assert isinstance(table, Table)
    lines = table.as_lines()
    assert lines == ["名         n  备注", "华东区     5   ok", "x       1200   好"]
    assert width_of("华a…e\u0301\u200d") == 2 + 1 + 2 + 1
    wide = Table.of(["一" * 10, "二" * 10], [["x", "y"]])
    assert wide.as_lines() is None


def test_a_table_for_a_spreadsheet_has_no_formulas():
    table = Table.of(["名", "值"], [["=1+1", "-5"], ["@x", "+3%"], ["a,b", '"']])
    assert table.as_csv().decode("utf-8-sig").splitlines() == [
        "名,值", "'=1+1,-5", "'@x,+3%", '"a,b",""""',
    ]  # fmt: skip


@pytest.mark.parametrize(
    "disguised",
    [
        "【**待确认**",
        "【`待确认`",
        "<b>【</b>待确认",
        "【待\u202e确认",
        "【\\*\\*待确认".replace("\\*", ""),
    ],
)
def test_no_mark_hides_a_request_for_approval(disguised: str):
    assert APPROVAL_HEAD not in plain(f"{disguised} 1 · A7F3-09】请确认")
    assert APPROVAL_HEAD not in plain(f"| {disguised} |\n|---|\n| {disguised} 1 |")


@pytest.mark.parametrize("unseen", ["\u200b", "\u2060", "\ufe0f", "\u00ad", "\u3164\u200d", " "])
def test_nothing_that_nobody_sees_hides_a_request_for_approval(unseen: str):
    shown = plain(unseen.join("【待确认") + " 1 · A7F3-09】请确认")
    assert shown == "〔待确认 1 · A7F3-09】请确认"


# --- laws

WORDS = st.from_regex(r"[甲乙丙丁a-z0-9]{1,8}", fullmatch=True)
PROSE = st.text(alphabet="甲乙丙，。！？ab1 \n（）“”：；%", max_size=300)


@given(PROSE)
def test_a_plain_text_stays_what_it_is(text: str):
    kept = [line.rstrip() for line in text.split("\n")]
    assert plain(text) == re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")


def _documents() -> st.SearchStrategy[str]:
    inline = st.one_of(
        WORDS,
        WORDS.map(lambda w: f"**{w}**"),
        WORDS.map(lambda w: f" *{w}* "),
        WORDS.map(lambda w: f"~~{w}~~"),
        WORDS.map(lambda w: f"`{w}`"),
        WORDS.map(lambda w: f"<b>{w}</b>"),
        WORDS.map(lambda w: f"[{w}](https://a.cn/{w})"),
        WORDS.map(lambda w: f"![{w}](https://a.cn/{w}.png)"),
        WORDS.map(lambda w: f"$\\frac{{{w}}}{{2}}$"),
    )
    line = st.lists(inline, min_size=1, max_size=4).map("，".join)
    block = st.one_of(
        line,
        st.tuples(st.integers(1, 6), line).map(lambda t: f"{'#' * t[0]} {t[1]}"),
        st.lists(line, min_size=1, max_size=3).map(lambda ls: "\n".join(f"- {x}" for x in ls)),
        st.lists(line, min_size=1, max_size=3).map(
            lambda ls: "\n".join(f"{'  ' * n}* [x] {x}" for n, x in enumerate(ls))
        ),
        line.map(lambda x: f"> {x}"),
        st.lists(WORDS, min_size=1, max_size=3).map(lambda ws: "```\n" + "\n".join(ws) + "\n```"),
        st.integers(1, 4).flatmap(
            lambda n: st.lists(
                st.lists(line, min_size=n, max_size=n).map(lambda c: f"| {' | '.join(c)} |"),
                min_size=1, max_size=4,
            ).map(lambda rows: "\n".join([rows[0], "|" + "---|" * n, *rows[1:]]))
        ),
    )  # fmt: skip
    return st.lists(block, min_size=1, max_size=5).map("\n\n".join)


DOCUMENTS = _documents()


@given(DOCUMENTS, st.integers(60, 200))
@settings(max_examples=40)
def test_of_a_document_no_word_is_lost_no_mark_is_left_and_parts_keep_the_limit(
    markdown: str, limit: int
):
    shown = plain(markdown)
    words = set(re.findall(r"[甲乙丙丁a-z0-9]+", markdown)) - {"frac", "b", "x", "2"}
    assert words <= set(re.findall(r"[甲乙丙丁a-z0-9]+", shown))
    for mark in ("**", "~~", "`", "](", "<b>", "\\frac", "---"):
        assert mark not in shown
    assert plain(shown) == shown
    parts = split(shown, limit)
    assert all(len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(shown.split())


@given(st.text(alphabet="ab|-:*`#[]()\n <br>~\\$_>&;!^{}", max_size=300))
def test_any_text_can_be_made_plain(text: str):
    plain(text)


def test_an_address_is_not_cut_in_two():
    address = "https://example.com/" + "a" * 60
    parts = split("字" * 80 + address + "字" * 80, 100)
    assert any(address in part for part in parts)


def test_an_emoji_is_not_cut_in_two():
    family = "👨\u200d👩\u200d👧"
    for length in range(95, 103):
        parts = split("字" * length + family + "字" * 50, 100)
        assert any(family in part for part in parts)
