"""Made-up tool files for `tools check`: what it must stay silent about, and what it must find."""

from __future__ import annotations

import textwrap
from pathlib import Path

from chathands.settings import load_settings
from chathands.toolbox.check import Checked, check_tools

HEAD = """
from __future__ import annotations
from datetime import date
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from chathands import Table, ToolContext, tool
from chathands.errors import ToolFailed
"""
HEAD_LINES = HEAD.count("\n")


def checked(directory: Path, files: dict[str, str]) -> Checked:
    """What is found in these files; without their own imports they get HEAD."""
    tools = directory / "tools"
    for name, text in files.items():
        path = tools / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = textwrap.dedent(text)
        path.write_text(text if "import" in text.split("@tool")[0] else HEAD + text, "utf-8")
    settings = load_settings(directory, tools_dir=tools, state_dir=directory / "state")
    return check_tools(tools, settings)


GOOD = {
    "values_of_an_enum": '''
        @tool(side_effect="none", when_to_use="用户问合计或平均")
        def total_rows(
            ctx: ToolContext,
            function: Annotated[Literal["sum_all", "mean"], Field(description="合计写 sum_all")],
            top_n: Annotated[int, Field(description="只要前几组，和 function 一起用")] = 0,
        ) -> str:
            """统计表格的全部行，可以合计或平均。function 写 `sum_all` 时，`top_n` 可以不写。"""
            return str(top_n)
        ''',
    "fields_of_the_result": '''
        class Order(BaseModel):
            order_id: str
            total_price: float

        @tool(side_effect="none")
        def find_order(
            phone: Annotated[str, Field(description="下单时留的手机号")],
        ) -> Order:
            """按手机号查最近的订单，返回 `order_id` 和 total_price。"""
            return Order(order_id=phone, total_price=1)
        ''',
    "columns_in_the_code": '''
        @tool(side_effect="none")
        def stock_of(sku: Annotated[str, Field(description="货号，如 SKU-204")]) -> Table:
            """查一个货号在各仓库的库存，列有 warehouse_name、on_hand。"""
            return Table(["warehouse_name", "on_hand"], [[sku, 1]])
        ''',
    "paths_and_addresses": '''
        @tool(side_effect="none")
        def read_log(
            name: Annotated[str, Field(description="日志文件，如 logs/app_error.log 或 “my_app”")],
        ) -> str:
            """读服务器日志的最后几十行，见 https://wiki.local/ops_guide/read_log#how_to 。"""
            return name
        ''',
    "another_tool": '''
        @tool(side_effect="none", not_for="看明细，用 list_trains")
        def next_train(city: Annotated[str, Field(description="到哪个城市")]) -> str:
            """查下一班去某地的火车几点开。"""
            return city

        @tool(side_effect="none", deprecated="改用 next_train")
        def list_trains(city: Annotated[str, Field(description="到哪个城市")]) -> str:
            """列出今天去某地的全部火车和票价。"""
            return city
        ''',
    "english": '''
        @tool(side_effect="none")
        def convert_currency(
            amount: Annotated[float, Field(description="Amount of money to convert")],
            to_currency: Annotated[str, Field(description="ISO code such as USD or EUR")],
        ) -> str:
            """Convert an amount of Chinese yuan into a foreign currency at today's rate."""
            return f"{amount} {to_currency}"
        ''',
    "nested": '''
        class Leg(BaseModel):
            from_city: Annotated[str, Field(description="出发城市")]
            to_city: Annotated[str, Field(description="到达城市")]

        @tool(side_effect="none", examples=[
            ("先去杭州再去宁波", {"legs": [{"from_city": "上海", "to_city": "杭州"}]})])
        def plan_route(
            legs: Annotated[list[Leg], Field(description="每一段，from_city 到 to_city")],
        ) -> str:
            """把几段行程排成一条路线，算出总里程和要多久。"""
            return str(len(legs))
        ''',
    "names_of_one_s_own": '''
        @tool(side_effect="none", examples=[("把甲换成乙", {"pairs": {"old_name": "new"}})])
        def rename_words(
            pairs: Annotated[dict[str, str], Field(description='旧到新，如 {"old_name": "新"}')],
        ) -> str:
            """把一段话里的旧词换成新词，返回换好的话。"""
            return str(pairs)
        ''',
    "formats_in_backticks": '''
        @tool(side_effect="none")
        def as_chart(
            kind: Annotated[str, Field(description="图的样子，写 `bar` 或 `line`")],
            fmt: Annotated[str, Field(description="`png`、`svg` 都行，不写是 `png`")] = "png",
        ) -> str:
            """把数字画成柱状图或折线图，给 `json` 或 `csv` 都可以，`null` 当作空。"""
            return kind + fmt
        ''',
    "reads_by_get": '''
        import httpx

        from typing import Annotated
        from pydantic import Field
        from chathands import ToolContext, tool

        @tool(side_effect="none")
        async def read_news(
            ctx: ToolContext, topic: Annotated[str, Field(description="新闻的主题")]
        ) -> str:
            """查一个主题今天的新闻标题和来源。"""
            reply = await ctx.http().get("https://news.local/api", params={"q": topic})
            other = await ctx.http().request("GET", "https://news.local/api")
            return reply.text + other.text
        ''',
    "queue_and_cache": '''
        import queue
        from typing import Annotated
        from pydantic import Field
        from chathands import tool

        _seen = {}

        @tool(side_effect="none")
        def sort_words(words: Annotated[list[str], Field(description="要排的词")]) -> str:
            """把一串词按拼音排好序，去掉重复的。"""
            line = queue.Queue()
            line.put(words)
            cache = _seen.copy()
            cache.update(a=1)
            text = "a".replace("a", "b").rename if False else "x".replace("x", "y")
            return text + open(__file__, encoding="utf-8").read(0)
        ''',
    "reads_a_database": '''
        import sqlite3
        from typing import Annotated
        from pydantic import Field
        from chathands import tool

        SQL = "SELECT count(*), 'insert into' FROM visits WHERE day = ?"

        @tool(side_effect="none")
        def count_visits(day: Annotated[str, Field(description="哪一天，如 2025-09-01")]) -> str:
            """数一数某一天网站有多少人来访。"""
            with sqlite3.connect(":memory:") as db:
                return str(db.execute(SQL, [day]).fetchone())
        ''',
    "search_by_post": '''
        from typing import Annotated
        from pydantic import Field
        from chathands import ToolContext, tool

        @tool(side_effect="none", foreign=True)
        async def search_papers(
            ctx: ToolContext, query: Annotated[str, Field(description="论文的主题词")]
        ) -> str:
            """在论文库里按主题词找论文，给出题目和年份。"""
            # no-side-effect: 这个搜索接口只收 POST
            reply = await ctx.http().post("https://papers.local/search", json={"q": query})
            return reply.text
        ''',
    "writes_but_says_so": '''
        from pathlib import Path
        from typing import Annotated
        from pydantic import Field
        from chathands import ToolContext, tool

        @tool(side_effect="local")
        def keep_note(
            ctx: ToolContext, text: Annotated[str, Field(description="要记下的话")]
        ) -> str:
            """把一句话记到提问者自己的笔记本里。"""
            Path(ctx.settings.state_dir, "note.txt").write_text(text, "utf-8")
            return "记好了"
        ''',
    "sends_and_says_so": '''
        import smtplib
        from typing import Annotated
        from pydantic import Field
        from chathands import tool

        @tool(side_effect="outward", target="to", shows=("body",))
        def send_mail(
            to: Annotated[str, Field(description="收件人的邮箱")],
            body: Annotated[str, Field(description="邮件正文")],
        ) -> str:
            """给一个邮箱发一封普通邮件。"""
            with smtplib.SMTP("localhost") as server:
                server.sendmail("a@b.c", [to], body)
            return "发了"
        ''',
    "documented_arguments": '''
        @tool(side_effect="none")
        def split_bill(
            amount: Annotated[float, Field(description="一共多少钱")],
            people: Annotated[int, Field(ge=1, description="几个人分，people 不写就是 2")] = 2,
        ) -> str:
            """把一笔饭钱平均分给几个人，零头算给最后一个。

            Args:
                amount (float): 一共多少钱
                people: 几个人；
                    例如: 三个人写 3

            Returns:
                每个人: 该付多少
            """
            return str(amount / people)
        ''',
    "software_in_words": '''
        @tool(side_effect="none")
        def howto(
            topic: Annotated[str, Field(description="想学的功能，如 vlookup 或透视表")],
        ) -> str:
            """查办公软件的用法，word 写文档、excel 填表、powerpoint 都有，markdown 写法也有。

            python 写的脚本、docker 填写的配置不在里面；mysql 默认的端口也不在。
            """
            return topic
        ''',
    "names_of_other_things": '''
        # not-parameters: crm_sync

        @tool(side_effect="none", not_for="改密码；这些走 it_portal 网站，或者找 crm_sync")
        def run_query(
            sql: Annotated[str, Field(description="一条语句，如 SELECT a FROM b WHERE c_d > 1")],
        ) -> str:
            """在只读的报表库里查询。表有 user_table、order_items，列名 paid_at 是时间。"""
            return sql
        ''',
    "brands": '''
        @tool(side_effect="none")
        def phone_price(
            model: Annotated[str, Field(description="手机型号，如 iPhone15、macOS 以外的也行")],
        ) -> str:
            """查一款手机在 eBay、GitHub 商店和官网的二手价格。"""
            return model
        ''',
    "sleeps_politely": '''
        import asyncio
        import time
        from typing import Annotated
        from pydantic import Field
        from chathands import tool

        def slow(n):
            time.sleep(n)

        @tool(side_effect="none")
        async def wait_a_bit(
            seconds: Annotated[int, Field(ge=0, le=5, description="等几秒")],
        ) -> str:
            """等上几秒钟再说等完了，用来测时限。"""
            await asyncio.sleep(0)
            await asyncio.to_thread(slow, seconds)
            return "等完了"
        ''',
}
"""Tools with nothing wrong."""
