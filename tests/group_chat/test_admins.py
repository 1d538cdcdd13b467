"""What SUPERUSERS are told of tool files: gathered, once, and when somebody can be told."""

from __future__ import annotations

import asyncio

from chathands.errors import ToolLoadError
from plugins.group_chat.admins import HEAD, LINES, Admins
from plugins.group_chat.messages import Place
from tests.support.virtual_clock import run_virtual

BOSS = Place("onebot11", "10000", None, "9001")
OTHER = Place("onebot11", "10000", None, "9002")


class Said:
    def __init__(self) -> None:
        self.people: list[list[Place]] = [[BOSS]]
        self.texts: list[tuple[str, str]] = []
        self.admins = Admins(self._tell, lambda: self.people)

    async def _tell(self, places: object, text: str) -> bool:
        self.texts.append((places[0].user_id, text))  # type: ignore[index]
        return True

    def fails(self, file: str, line: int = 1, why: str = "语法错误") -> None:
        self.admins.failed(ToolLoadError(why, file=file, line=line))


def test_what_happens_at_once_is_one_message_to_each():
    async def story() -> None:
        said = Said()
        said.people.append([OTHER])
        said.fails("a.py")
        said.fails("pack/__init__.py", 3)
        await asyncio.sleep(2)
        assert [who for who, _ in said.texts] == ["9001", "9002"]
        assert said.texts[0][1].splitlines() == [
            HEAD,
            "工具文件 a.py:1 没能加载：语法错误",
            "工具文件 pack/__init__.py:3 没能加载：语法错误",
        ]

    run_virtual(story())


def test_a_fault_that_is_over_before_it_was_told_is_not_told():
    async def story() -> None:
        said = Said()
        said.fails("a.py")
        said.admins.mended("a.py")
        await asyncio.sleep(5)
        assert said.texts == []
        said.fails("a.py")
        await asyncio.sleep(5)
        said.admins.mended("a.py")
        await asyncio.sleep(5)
        assert [text.splitlines()[-1] for _, text in said.texts] == [
            "工具文件 a.py:1 没能加载：语法错误",
            "a.py 恢复正常，已经加载。",
        ]

    run_virtual(story())


def test_without_an_account_it_waits_for_one():
    async def story() -> None:
        said = Said()
        said.people = []
        said.fails("a.py")
        await asyncio.sleep(60)
        said.admins.connected()
        await asyncio.sleep(60)
        assert said.texts == []
        said.people = [[BOSS]]
        said.admins.connected()
        said.admins.connected()
        await asyncio.sleep(2)
        assert len(said.texts) == 1

    run_virtual(story())


def test_many_faults_are_counted_and_long_ones_cut():
    async def story() -> None:
        said = Said()
        for number in range(200):
            said.fails(f"t{number}.py", why="错" * 5000)
        await asyncio.sleep(2)
        ((_, text),) = said.texts
        assert f"还有 {200 - LINES} 条" in text
        assert len(text) < 6000

    run_virtual(story())


def test_when_the_bot_leaves_nothing_more_is_said():
    async def story() -> None:
        said = Said()
        said.fails("a.py")
        said.admins.close()
        await asyncio.sleep(5)
        assert said.texts == []

    run_virtual(story())
