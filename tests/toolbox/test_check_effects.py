"""What a tool's source is seen to do, and what it is not taken for."""

from __future__ import annotations

import pytest

from tests.toolbox.check_kit import checked

HEAD = """
from typing import Annotated
from pydantic import Field
from chathands import ToolContext, tool
"""


def tool_with(before: str, body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return (
        HEAD
        + before
        + f'''
@tool(side_effect="none")
async def probe(ctx: ToolContext, text: Annotated[str, Field(description="要处理的那段话")]) -> str:
    """处理一段话，然后说明处理的结果如何。"""
{lines}
    return text
'''
    )


DOES = {
    "client": tool_with(
        "import httpx\n",
        'async with httpx.AsyncClient() as c:\n    await c.post("http://x", json={})',
    ),
    "aiohttp": tool_with(
        "import aiohttp\n",
        'async with aiohttp.ClientSession() as s, s.post("http://x") as r:\n    pass',
    ),
    "session_request": tool_with(
        "import requests\n", 's = requests.Session()\ns.request("POST", "http://x")'
    ),
    "urllib": tool_with(
        "import urllib.request\n",
        'r = urllib.request.Request("http://x", method="DELETE")\nurllib.request.urlopen(r)',
    ),
    "urllib_from": tool_with(
        "from urllib.request import urlopen\n", 'urlopen("http://x", b"data")'
    ),
    "unlink": tool_with("from pathlib import Path\n", "Path(text).unlink()"),
    "rmtree": tool_with("from shutil import rmtree\n", "rmtree(text)"),
    "from_os": tool_with("from os import remove as rm\n", "rm(text)"),
    "fstring sql": tool_with("", 'db = ctx.db\ndb.execute(f"UPDATE {text} SET a=1")'),
    "to_sql": tool_with("", 'ctx.frame.to_sql("a", ctx.db)'),
    "send_req": tool_with(
        "", 'r = ctx.http().build_request("POST", "http://x")\nawait ctx.http().send(r)'
    ),
    "mode kw": tool_with("", 'with open(text, mode="wb") as f:\n    f.write(b"")'),
    "path open": tool_with(
        "from pathlib import Path\n", 'with Path(text).open("w") as f:\n    f.write("a")'
    ),
    "os.open": tool_with("import os\n", "os.open(text, os.O_WRONLY | os.O_CREAT)"),
    "sock": tool_with("import socket\n", 's = socket.create_connection(("x", 1))\ns.sendall(b"a")'),
    "sp": tool_with("import subprocess as sp\n", 'sp.run(["a"])'),
    "async sub": tool_with("import asyncio\n", 'await asyncio.create_subprocess_exec("a")'),
    "lambda": tool_with('import requests\ngo = lambda u: requests.put(u, data="a")\n', "go(text)"),
    "dispatch": tool_with(
        'import requests\ndef _a(u):\n    requests.put(u, data="a")\nWAYS = {"a": _a}\n',
        'WAYS["a"](text)',
    ),
    "inner import": tool_with("", 'import requests\nrequests.patch("http://x")'),
    "getattr": tool_with("import requests\n", 'getattr(requests, "post")("http://x")'),
    "partial": tool_with("import functools, os\n", "functools.partial(os.remove, text)()"),
    "executor": tool_with(
        "import asyncio, os\n",
        "await asyncio.get_running_loop().run_in_executor(None, os.remove, text)",
    ),
    "inherit": tool_with(
        'class B:\n    def a(self, c):\n        c.http().post("http://x")\nclass A(B): ...\n',
        "await A().a(ctx)",
    ),
    "smtp": tool_with("import smtplib\n", 'with smtplib.SMTP("x") as s:\n    s.send_message(text)'),
    "redis": tool_with("", 'ctx.redis.publish("a", text)'),
    "var method": tool_with('import httpx\nMETHOD = "PUT"\n', 'httpx.request(METHOD, "http://x")'),
    "stream": tool_with("", 'async with ctx.http().stream("POST", "http://x") as r:\n    pass'),
    "global client": tool_with(
        "import httpx\n_http = httpx.AsyncClient()\n", 'await _http.delete("http://x")'
    ),
    "ws": tool_with(
        "import websockets\n",
        'async with websockets.connect("ws://x") as ws:\n    await ws.send(text)',
    ),
    "bot": tool_with(
        "import nonebot\n", "await nonebot.get_bot().send_group_msg(group_id=1, message=text)"
    ),
    "to_csv": tool_with("", "ctx.frame.to_csv(text)"),
    "to_thread open": tool_with("import asyncio\n", 'await asyncio.to_thread(open, text, "w")'),
    "webhook": tool_with("", 'await ctx.hook.post(json={"a": text})'),
    "json.dump": tool_with("import json\n", 'with open(text, "w") as f:\n    json.dump({}, f)'),
    "append_rows": tool_with(
        "import sqlite3\n",
        'db = sqlite3.connect("a")\ndb.executemany("insert into a values (?)", [])',
    ),
    "pathrename": tool_with("from pathlib import Path\n", 'Path(text).rename("b")'),
    "commit": tool_with(
        "import sqlite3\n", 'sql = ctx.sql\ndb = sqlite3.connect("a")\ndb.execute(sql)\ndb.commit()'
    ),
}
DOES_NOT = {
    "get client": tool_with(
        "import httpx\n",
        'async with httpx.AsyncClient() as c:\n    await c.get("http://x", params={})',
    ),
    "stream get": tool_with("", 'async with ctx.http().stream("GET", "http://x") as r:\n    pass'),
    "urlopen": tool_with(
        "from urllib.request import urlopen\nimport asyncio\n",
        'await asyncio.to_thread(urlopen, "http://x")',
    ),
    "open r": tool_with(
        "", 'open(text).read()\nopen(text, "rb").read()\nopen(text, encoding="utf-8")'
    ),
    "dict": tool_with("", 'd = {}\nd.update(a=1)\nd.pop("a")\nd.setdefault("delete", 1)'),
    "select": tool_with("", "ctx.db.execute(\"select * from a where x = 'delete'\")"),
    "with select": tool_with("", 'ctx.db.execute("with a as (select 1) select * from a")'),
    "list": tool_with("", "x = []\nx.append(1)\nx.remove(1)\nx.insert(0, 1)"),
    "str": tool_with("", 'text.replace("a", "b")'),
    "df": tool_with(
        "", 'ctx.frame.rename(columns={"a": "b"}).drop(columns=["c"])\nctx.frame.to_csv()'
    ),
    "bytesio": tool_with("import io\n", 'io.BytesIO().write(b"a")'),
    "workers": tool_with("", 'await ctx.workers.run("read_table", {}, timeout=1)'),
    "image": tool_with("import io\n", "ctx.image.save(io.BytesIO())"),
    "attach": tool_with("", 'ctx.attach("a.txt", b"a")\nctx.tell("x")'),
    "local func": tool_with("def post(x):\n    return x\n", "post(text)"),
    "own class": tool_with(
        "class Stack:\n    def put(self, x): ...\n    def delete(self, x): ...\n",
        "s = Stack()\ns.put(1)\ns.delete(2)",
    ),
    "os.path": tool_with(
        "import os\n", 'os.path.exists(text)\nos.listdir(text)\nos.environ.get("a")'
    ),
    "delete var": tool_with("", "cache = {}\ndel cache"),
    "logging": tool_with("import logging\n", 'logging.getLogger(__name__).info("post delete")'),
    "queue": tool_with("import asyncio\n", "q = asyncio.Queue()\nawait q.put(1)"),
    "gen send": tool_with("", "g = (x for x in [1])\n"),
    "set": tool_with("", "s = set()\ns.add(1)\ns.discard(1)"),
    "datetime": tool_with("import datetime\n", "datetime.datetime.now().replace(hour=1)"),
    "shlex": tool_with("import shlex\n", "shlex.quote(text)"),
    "string": tool_with("", 'x = "requests.post(1)"'),
}


@pytest.mark.parametrize("name", DOES)
def test_an_effect_is_seen(name, tmp_path):
    found = checked(tmp_path, {"p.py": DOES[name]})
    assert found.tools == ("probe",)
    (effect,) = [each for each in found.findings if each.code == "effect"]
    assert "p.py:" in effect.sentence


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_only_reads_is_no_effect(name, tmp_path):
    found = checked(tmp_path, {"p.py": DOES_NOT[name]})
    assert found.tools == ("probe",)
    assert [str(each) for each in found.findings if each.code == "effect"] == []
