"""`tools check`: silent about good tools, and a sentence at the right line for each fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chathands.errors import ConfigError
from chathands.settings import load_settings
from chathands.toolbox.check import check_tools
from chathands.toolbox.check_snapshot import FILE, read_snapshot, write_snapshot
from chathands.toolbox.check_text import words_in
from tests.toolbox.check_kit import GOOD, checked

ROOT = Path(__file__).parents[2]

PLAIN = """
from typing import Annotated
from pydantic import BaseModel, Field
from chathands import ToolContext, tool
"""

BAD = {
    "says_too_little": (
        '''
        @tool(side_effect="none")
        def get_stock(sku: Annotated[str, Field(description="货号")]) -> str:  # HERE
            """查询库存。"""
            return sku
        ''',
        "thin",
        "太单薄",
    ),
    "repeats_its_name": (
        '''
        @tool(side_effect="none")
        def get_stock(sku: Annotated[str, Field(description="货号")]) -> str:  # HERE
            """Get the stock."""
            return sku
        ''',
        "thin",
        "太单薄",
    ),
    "parameter_repeats_its_name": (
        '''
        @tool(side_effect="none")
        def stock_of(
            item_name: Annotated[str, Field(description="Item name (string)")],  # HERE
        ) -> str:
            """查一件货品在各个仓库里还有多少。"""
            return item_name
        ''',
        "thin",
        "只重复了名字",
    ),
    "nested_says_only_its_type": (
        '''
        class Item(BaseModel):
            sku: Annotated[str, Field(description="字符串，必填")]  # HERE

        @tool(side_effect="none")
        def stock_of(items: Annotated[list[Item], Field(description="要查的货品")]) -> str:
            """查几件货品在各个仓库里还有多少。"""
            return str(items)
        ''',
        "thin",
        "items[].sku",
    ),
    "not_written_yet": (
        '''
        @tool(side_effect="none")
        def stock_of(sku: Annotated[str, Field(description="TODO 写清楚怎么填")]) -> str:  # HERE
            """查一件货品在各个仓库里还有多少。"""
            return sku
        ''',
        "thin",
        "没有写完",
    ),
    "no_description_at_all": (
        '''
        class Item(BaseModel):
            sku: str

        @tool(side_effect="none")  # HERE
        def stock_of(items: Annotated[list[Item], Field(description="要查的货品")]) -> str:
            """查几件货品在各个仓库里还有多少。"""
            return str(items)
        ''',
        "load",
        "items[].sku",
    ),
    "names_what_is_not_there": (
        '''
        @tool(side_effect="none")
        def stock_of(sku: Annotated[str, Field(description="货号")]) -> str:
            """查一件货品还有多少。

            只看一个仓库时写 warehouse_id。  HERE
            """
            return sku
        ''',
        "name",
        "warehouse_id",
    ),
    "names_it_in_backticks": (
        '''
        @tool(side_effect="none")
        def stock_of(sku: Annotated[str, Field(description="货号")]) -> str:
            """查一件货品还有多少，`warehouse` 不写就看全部。"""  # HERE
            return sku
        ''',
        "name",
        "warehouse",
    ),
    "misspells_its_own": (
        '''
        @tool(side_effect="none")
        def stock_of(
            file_path: Annotated[str, Field(description="文件")],
            sheet: Annotated[str, Field(description="file_pth 里的哪一张表")] = "",  # HERE
        ) -> str:
            """查一个库存文件里某张表的存货数量。"""
            return file_path + sheet
        ''',
        "name",
        "是不是 file_path",
    ),
    "writes_it_in_another_way": (
        '''
        @tool(side_effect="none")
        def stock_of(file_path: Annotated[str, Field(description="文件")]) -> str:
            """查一个库存文件里的存货数量，filePath 可以不全。"""  # HERE
            return file_path
        ''',
        "name",
        "参数叫 file_path",
    ),
    "tells_how_to_fill_in_what_is_not_there": (
        '''
        @tool(side_effect="none")
        def stock_of(sku: Annotated[str, Field(description="货号")]) -> str:
            """查一件货品在仓库里还有多少，days 写大一些看得更久。"""  # HERE
            return sku
        ''',
        "name",
        "days",
    ),
    "lists_an_argument_that_is_not_there": (
        '''
        @tool(side_effect="none")
        def stock_of(sku: Annotated[str, Field(description="货号")]) -> str:
            """查一件货品在各个仓库里还有多少。

            Args:
                sku: 货号
                city (str): 哪个城市  HERE
            """
            return sku
        ''',
        "name",
        "city",
    ),
    "when_to_use_names_what_is_not_there": (
        '''
        @tool(side_effect="none",
              when_to_use="问存货，参数 region 写大区")  # HERE
        def stock_of(sku: Annotated[str, Field(description="货号")]) -> str:
            """查一件货品在各个仓库里还有多少。"""
            return sku
        ''',
        "name",
        "region",
    ),
    "an_example_with_a_strange_argument": (
        '''
        @tool(side_effect="none", examples=[  # HERE
            ("上海仓的胶带还有吗", {"sku": "胶带", "city": "上海"}),
        ])
        def stock_of(sku: Annotated[str, Field(description="货号")]) -> str:
            """查一件货品在各个仓库里还有多少。"""
            return sku
        ''',
        "load",
        "city",
    ),
    "an_example_that_does_not_fit": (
        '''
        @tool(side_effect="none", examples=[
            ("胶带还有吗", {"sku": "胶带"}),  # HERE
        ])
        def stock_of(
            sku: Annotated[str, Field(pattern="^[A-Z]+-[0-9]+$", description="货号")]
        ) -> str:
            """查一件货品在各个仓库里还有多少。"""
            return sku
        ''',
        "example",
        "sku",
    ),
    "posts": (
        '''
        @tool(side_effect="none")
        async def say(  # HERE
            ctx: ToolContext, text: Annotated[str, Field(description="话")]
        ) -> str:
            """把一句话登到公司主页的公告栏上。"""
            await ctx.http().post("https://intra.local/news", json={"text": text})
            return "登了"
        ''',
        "effect",
        "box.py:11 的 ctx.http().post",
    ),
    "posts_under_another_name": (
        '''
        import requests as r
        send = r.post

        @tool(side_effect="none")
        def announce(text: Annotated[str, Field(description="要说的话")]) -> str:  # HERE
            """把一句话登到公司主页的公告栏上。"""
            send("https://intra.local/news", json={"text": text})
            return "登了"
        ''',
        "effect",
        "经 send",
    ),
    "asks_with_any_method": (
        '''
        import httpx

        @tool(side_effect="none")
        def fetch(
            url: Annotated[str, Field(description="网址")],
            method: Annotated[str, Field(description="HTTP 的方法")] = "GET",
        ) -> str:  # HERE-3
            """用 HTTP 请求一个网址，返回网页的正文。"""
            return httpx.request(method, url).text
        ''',
        "effect",
        "看不出来",
    ),
    "deletes": (
        '''
        import asyncio
        import os

        @tool(side_effect="none")
        async def tidy(name: Annotated[str, Field(description="文件的名字")]) -> str:  # HERE
            """把一个用不着的旧文件从数据目录里清理掉。"""
            await asyncio.to_thread(os.remove, name)
            return "好了"
        ''',
        "effect",
        "os.remove",
    ),
    "writes_a_file": (
        '''
        @tool(side_effect="none")
        def keep(text: Annotated[str, Field(description="要记的话")]) -> str:  # HERE
            """把一句话记到备忘录文件里以后再看。"""
            with open("notes.txt", "a") as file:
                file.write(text)
            return "好了"
        ''',
        "effect",
        "写文件",
    ),
    "inserts": (
        '''
        import sqlite3
        SQL = "INSERT INTO visits VALUES (?)"

        @tool(side_effect="none")
        def visit(name: Annotated[str, Field(description="来访的人")]) -> str:  # HERE
            """登记一位来访的客人，写明是谁。"""
            with sqlite3.connect("x.db") as db:
                db.execute(SQL, [name])
            return "好了"
        ''',
        "effect",
        "INSERT",
    ),
    "mails_though_local": (
        '''
        import smtplib

        @tool(side_effect="local")
        def remind(text: Annotated[str, Field(description="要提醒的事")]) -> str:  # HERE
            """到时候用邮件提醒提问的人一件事。"""
            smtplib.SMTP("localhost").sendmail("a@b.c", ["d@e.f"], text)
            return "好了"
        ''',
        "effect",
        '请改成 "outward"',
    ),
    "runs_a_program": (
        '''
        import subprocess

        @tool(side_effect="none")
        def restart(name: Annotated[str, Field(description="服务的名字")]) -> str:  # HERE
            """重新启动服务器上的一个后台服务。"""
            return str(subprocess.run(["systemctl", "restart", name]))
        ''',
        "effect",
        "运行别的程序",
    ),
    "excused_without_a_reason": (
        '''
        @tool(side_effect="none")
        async def see(  # HERE
            ctx: ToolContext, text: Annotated[str, Field(description="词")]
        ) -> str:
            """在公司的知识库里按词找文章的题目。"""
            await ctx.http().post("https://intra.local/find")  # no-side-effect:
            return text
        ''',
        "effect",
        "没有写原因",
    ),
    "sleeps": (
        '''
        import time

        def settle():
            time.sleep(1)  # HERE

        @tool(side_effect="none")
        async def look(text: Annotated[str, Field(description="要找的词")]) -> str:
            """在公司的知识库里按词找文章的题目。"""
            settle()
            return text
        ''',
        "blocking",
        "asyncio.sleep",
    ),
    "two_names_alike": (
        '''
        @tool(side_effect="none")
        def getStock(sku: Annotated[str, Field(description="货号")]) -> str:
            """查一件货品在各个仓库里还有多少。"""
            return sku

        @tool(side_effect="none")
        def get_stock(sku: Annotated[str, Field(description="货号")]) -> str:  # HERE
            """查一件货品在各个仓库里还有多少。"""
            return sku
        ''',
        "clash",
        "大小写",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found_where_nothing_is_wrong(name, tmp_path):
    found = checked(tmp_path, {f"{name}.py": GOOD[name]})
    assert found.tools
    assert [str(each) for each in found.findings if each.code != "snapshot"] == []


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_found_at_its_line(name, tmp_path):
    import textwrap

    source, code, words = BAD[name]
    text = PLAIN + textwrap.dedent(source)
    found = checked(tmp_path, {"box.py": text})
    about = [each for each in found.findings if each.code == code]
    assert about, [str(each) for each in found.findings]
    at = next(n for n, line in enumerate(text.split("\n"), 1) if "HERE" in line)
    at -= 3 if "HERE-3" in text else 0
    assert [(each.file, each.line) for each in about[:1]] == [("box.py", at)]
    assert any(words in each.sentence for each in about)
    others = {each.code for each in found.findings} - {code, "snapshot"}
    assert others <= {"blocking"}
    assert found.failed() is (code != "blocking")
    assert found.failed(strict=True)


def test_an_effect_is_found_through_helpers_of_the_package(tmp_path):
    found = checked(
        tmp_path,
        {
            "news/__init__.py": PLAIN
            + '''
from .desk import Desk

@tool(side_effect="none")
async def announce(ctx: ToolContext, text: Annotated[str, Field(description="要说的话")]) -> str:
    """把一句话登到公司主页的公告栏上。"""
    return await _announce(ctx, text)

async def _announce(ctx, text):
    return await Desk(ctx.http()).put_up(text)
''',
            "news/desk.py": """
from . import wire

class Desk:
    def __init__(self, http):
        self._http = http

    async def put_up(self, text):
        return await wire.ask(self._http, text)
""",
            "news/wire.py": """
async def ask(http, text):
    await http.put("https://intra.local/news", content=text)
""",
        },
    )
    (finding,) = [each for each in found.findings if each.code == "effect"]
    assert "news/wire.py:" in finding.sentence
    assert "_announce → Desk → ask" in finding.sentence


def test_an_effect_is_found_in_a_helper_beside_that_is_imported_whole(tmp_path):
    probe = (
        PLAIN
        + '''
from ._wire import *

@tool(side_effect="none")
def announce(text: Annotated[str, Field(description="要说的话")]) -> str:
    """把一句话登到公司主页的公告栏上。"""
    put_up(text)
    return "登了"
'''
    )
    wire = "import requests\n\ndef put_up(text):\n    requests.post('http://x', data=text)\n"
    found = checked(tmp_path, {"news.py": probe, "_wire.py": wire})
    (finding,) = [each for each in found.findings if each.code == "effect"]
    assert "_wire.py:4" in finding.sentence


def test_two_files_with_one_name_are_a_clash(tmp_path):
    one = GOOD["columns_in_the_code"]
    found = checked(tmp_path, {"a.py": one, "b.py": one})
    (clash,) = [each for each in found.findings if each.code == "clash"]
    assert clash.file == "b.py"
    assert "a.py" in clash.sentence


# --- the snapshot

STOCK = '''
from typing import Annotated, Literal
from pydantic import Field
from chathands import tool

@tool(side_effect="none"{version})
def stock_of(
    sku: Annotated[str, Field(description="{said}")],
    {more}
) -> str:
    """查一件货品在各个仓库里还有多少。"""
    return sku
'''
FIRST = 'area: Annotated[Literal["南", "北"], Field(description="哪一片")] = "南",'


def stock(version: str = "", said: str = "货号", more: str = FIRST) -> str:
    return STOCK.format(version=version, said=said, more=more)


def kept(directory: Path, source: str):
    """What is found, after which the snapshot is written as `--update` writes it."""
    found = checked(directory, {"stock.py": source})
    write_snapshot(directory / "tools" / FILE, found.snapshot)
    return found


def area(kind: str, default: str = '"南"') -> str:
    given = f" = {default}" if default else ""
    return f'area: Annotated[{kind}, Field(description="哪一片")]{given},'


BOTH = 'Literal["南", "北"]'
CHANGES = {
    "value": (area('Literal["南"]'), "少了 北"),
    "required": (area(BOTH, ""), "必填：否 → 是"),
    "renamed": (area(BOTH).replace("area", "zone"), "少了参数 area"),
    "type": (area("Annotated[str, Field(max_length=9)]"), "最长：没有 → 9"),
    "default": (area(BOTH, '"北"'), "默认值：南 → 北"),
    "added": (f'{FIRST} day: Annotated[int, Field(description="哪天")] = 1,', "多了参数 day"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_without_a_version_is_said_exactly(tmp_path, name):
    more, said = CHANGES[name]
    first = kept(tmp_path, stock())
    assert [each.code for each in first.findings] == ["snapshot"]
    assert not first.failed()
    changed = kept(tmp_path, stock(more=more))
    (finding,) = [each for each in changed.findings if each.code == "version"]
    assert said in finding.sentence
    assert finding.line == 7
    assert changed.failed()
    # Updating does not hush it up; a new version does, and then asks for the update.
    assert [e.code for e in kept(tmp_path, stock(more=more)).findings if e.code == "version"]
    bumped = kept(tmp_path, stock(", version=2", more=more))
    assert [each.code for each in bumped.findings] == ["snapshot"]
    assert bumped.failed()
    assert checked(tmp_path, {}).findings == ()


def test_a_better_description_needs_no_version(tmp_path):
    kept(tmp_path, stock())
    assert kept(tmp_path, stock(said="货号，写在标签左上角")).findings == ()


def test_what_is_marked_less_is_a_change(tmp_path):
    outward = stock().replace('"none"', '"outward"')
    kept(tmp_path, outward)
    (finding,) = kept(tmp_path, stock()).findings
    assert "side_effect：outward → none" in finding.sentence


def test_a_version_does_not_go_back(tmp_path):
    kept(tmp_path, stock(", version=3"))
    assert [each.code for each in kept(tmp_path, stock(", version=2")).findings] == ["version"]


def test_a_parameter_that_is_gone_is_found_by_its_plain_name(tmp_path):
    said = stock(said="货号；area 写南或北")
    assert [e.code for e in kept(tmp_path, said).findings] == ["snapshot"]
    changed = kept(tmp_path, stock(", version=2", said="货号；area 写南或北", more=""))
    assert any("area 已经不是它的参数" in each.sentence for each in changed.findings)


def test_a_tool_that_left_is_remembered_while_a_file_does_not_load(tmp_path):
    kept(tmp_path, stock())
    broken = kept(tmp_path, "def f(:\n")
    assert [each.code for each in broken.findings] == ["load"]
    assert "stock_of" in (read_snapshot(tmp_path / "tools" / FILE) or {})
    (tmp_path / "tools" / "stock.py").unlink()
    (left,) = checked(tmp_path, {}).findings
    assert (left.file, left.warning) == (FILE, True)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 9}', '{"format": 1, "tools": {"a": 1}}']
)
def test_a_snapshot_that_is_none_is_said(tmp_path, text):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / FILE).write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        checked(tmp_path, {})
    assert FILE in caught.value.sentence


def test_the_shipped_tools_pass_with_their_snapshot():
    settings = load_settings(ROOT, tools_dir=ROOT / "tools")
    found = check_tools(ROOT / "tools", settings)
    assert [str(each) for each in found.findings] == []
    assert len(found.tools) >= 4
    text = (ROOT / "tools" / FILE).read_text("utf-8")
    assert json.loads(text)["format"] == 1


def test_words_count_alike_in_both_scripts():
    assert words_in("查询库存。") < 4 <= words_in("查一件货品在各个仓库里还有多少。")
    assert words_in("Get the stock.") < 4 <= words_in("Find how many items a warehouse holds.")
