"""What serves while tool files come, change, break, hang and go."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from chathands.agent.loading import LoadedTools
from chathands.schema import compile_schema
from chathands.settings import Settings
from chathands.toolbox import Generation, Registry, Tool
from tests.support.virtual_clock import run_virtual
from tests.toolbox.kit import settings_in, write


def source(name: str, says: str = "") -> str:
    return f'''
from chathands import tool

@tool(side_effect="none")
async def {name}() -> str:
    """工具 {name}。"""
    return "{says or name}"
'''


class Kit:
    def __init__(self, directory: Path, *, removal_seconds: float = 0, **overrides: Any) -> None:
        self.settings: Settings = settings_in(directory, **overrides)
        self.registry = Registry()
        self.faults: list[str] = []
        self.mended: list[str] = []
        self.removed: list[frozenset[str]] = []
        self.tools = LoadedTools(
            self.registry,
            self.settings,
            lambda error: self.faults.append(error.sentence),
            self.mended.append,
            removal_seconds=removal_seconds,
        )
        self.tools.on_removed(self.removed.append)

    @property
    def names(self) -> list[str]:
        return list(self.registry.current.tools)

    def write(self, **files: str) -> None:
        write(self.settings.tools_dir, {f"{name}.py": text for name, text in files.items()})

    def remove(self, name: str) -> None:
        (self.settings.tools_dir / f"{name}.py").unlink()

    async def load(self, **options: Any) -> list[str]:
        """Load; gives the sentences of what did not."""
        errors = await self.tools.reload(**options)
        await asyncio.sleep(0)  # the timer of removals is due
        await asyncio.sleep(0)
        return [error.sentence for error in errors]

    async def say(self, name: str) -> str:
        context: Any = None
        return await self.registry.current.tools[name].run(context, {})


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


async def test_a_fault_is_told_once_as_long_as_it_lasts_and_its_end_too(kit: Kit):
    kit.write(a=source("a", "旧"), b=source("b"))
    assert await kit.load() == []
    kit.write(a="x = (\n")
    assert await kit.load() == await kit.load() == kit.faults
    assert await kit.say("a") == "旧"
    kit.write(a="\n1 / 0\n")
    await kit.load()
    assert ["a.py:1" in kit.faults[0], "a.py:2" in kit.faults[1]] == [True, True]
    assert kit.mended == []
    kit.write(a=source("a", "新"))
    await kit.load()
    await kit.load()
    assert (len(kit.faults), kit.mended) == (2, ["a.py"])
    assert await kit.say("a") == "新"
    kit.write(a="x = (\n")
    await kit.load()
    assert len(kit.faults) == 3


async def test_a_file_removed_with_its_fault_is_not_called_mended(kit: Kit):
    kit.write(a="x = (\n")
    await kit.load()
    kit.remove("a")
    assert await kit.load() == []
    assert kit.mended == []


async def test_a_removed_file_takes_its_tools_along_and_whoever_planned_with_them_hears(kit: Kit):
    kit.write(a=source("a") + source("a_too"), b=source("b"))
    await kit.load()
    kit.remove("a")
    await kit.load()
    assert (kit.names, kit.removed) == (["b"], [frozenset({"a", "a_too"})])


async def test_a_tool_that_moves_or_is_broken_has_not_left(kit: Kit):
    kit.write(a=source("a"), b=source("b"))
    await kit.load()
    (kit.settings.tools_dir / "a.py").rename(kit.settings.tools_dir / "c.py")
    kit.write(b="x = (\n")
    await kit.load()
    assert (kit.names, kit.removed) == (["a", "b"], [])


def test_a_file_that_is_back_in_time_has_not_left(tmp_path: Path):
    async def story() -> None:
        kit = Kit(tmp_path, removal_seconds=3)
        kit.write(a=source("a"))
        await kit.load()
        kit.remove("a")
        await kit.load()
        await asyncio.sleep(2)
        kit.write(a=source("a"))
        await kit.load()
        await asyncio.sleep(10)
        assert kit.removed == []
        kit.remove("a")
        await kit.load()
        await asyncio.sleep(2)
        assert kit.removed == []
        await asyncio.sleep(2)
        assert kit.removed == [frozenset({"a"})]

    run_virtual(story())


async def test_a_directory_that_is_gone_for_a_moment_takes_nothing_along(kit: Kit):
    kit.write(a=source("a"))
    await kit.load()
    kit.settings.tools_dir.rename(kit.settings.tools_dir.parent / "old")
    (said,) = await kit.load()
    assert "工具目录不存在" in said
    assert str(kit.settings.tools_dir) not in said
    assert (await kit.say("a"), kit.removed) == ("a", [])
    (kit.settings.tools_dir.parent / "old").rename(kit.settings.tools_dir)
    assert await kit.load() == []
    assert kit.mended == ["tools"]


async def test_a_file_that_is_being_filled_keeps_its_tools(kit: Kit):
    kit.write(a=source("a"), new="")
    assert await kit.load() == []
    kit.write(a=" \n")
    (said,) = await kit.load()
    assert "a.py" in said
    assert "空" in said
    assert (await kit.say("a"), kit.removed) == ("a", [])
    assert await kit.load(afresh=True) == []
    assert (kit.names, kit.removed) == ([], [frozenset({"a"})])


async def test_listeners_that_fail_do_not_keep_tools_from_serving(tmp_path: Path, caplog):
    def fail(_: object) -> None:
        raise RuntimeError("a listener's own fault")

    registry = Registry()
    tools = LoadedTools(registry, settings_in(tmp_path), fail, fail, removal_seconds=0)
    tools.on_removed(fail)
    write(tmp_path / "tools", {"a.py": "x = (\n", "b.py": source("b")})
    await tools.reload()
    write(tmp_path / "tools", {"a.py": source("a")})
    (tmp_path / "tools" / "b.py").unlink()
    await tools.reload()
    assert list(registry.current.tools) == ["a"]
    assert "a listener's own fault" in caplog.text


# --- other sources


def offers(kit: Kit, *names: str) -> list[Any]:
    """Tools as a source that is no file gives them."""
    made = []
    for name in names:
        namespace: dict[str, Any] = {"__name__": "elsewhere"}
        exec(compile(source(name, f"{name} 来自别处"), "elsewhere.py", "exec"), namespace)
        a_tool: Tool = namespace[name]
        made.append((a_tool, a_tool.spec(kit.settings)))
    return made


async def test_a_source_that_is_no_file_serves_beside_the_files(kit: Kit):
    kit.write(m=source("m"))
    await kit.load()
    kit.tools.set_source("mcp:time", offers(kit, "z", "a"))
    assert kit.names == ["a", "m", "z"]
    assert kit.registry.current.owners["z"] == "mcp:time"
    await kit.load()
    assert kit.names == ["a", "m", "z"]
    kit.tools.set_source("mcp:time", offers(kit, "b"))
    assert kit.names == ["b", "m"]
    kit.tools.set_source("mcp:time", None)
    assert kit.names == ["m"]
    assert kit.faults == []


async def test_each_swap_is_a_generation_and_a_run_keeps_its_own(kit: Kit):
    kit.write(m=source("m"))
    await kit.load()
    pinned = kit.registry.current
    kit.tools.set_source("mcp:time", offers(kit, "a"))
    assert kit.registry.current.number == pinned.number + 1
    assert list(pinned.tools) == ["m"]


async def test_files_win_a_name_and_an_earlier_source_too_and_it_is_said(kit: Kit):
    kit.tools.set_source("mcp:one", offers(kit, "a", "b"))
    kit.tools.set_source("mcp:two", offers(kit, "b", "c"))
    kit.write(m=source("a", "文件"))
    await kit.load()
    assert await kit.say("a") == "文件"
    assert dict(kit.registry.current.owners) == {"a": "m.py", "b": "mcp:one", "c": "mcp:two"}
    assert ["a 已属于 m.py" in s or "b 已属于 mcp:one" in s for s in kit.faults] == [True, True]
    kit.remove("m")
    await kit.load()
    assert await kit.say("a") == "a 来自别处"
    assert kit.removed == []


async def test_a_source_that_is_away_for_now_keeps_what_is_planned_with_its_tools(kit: Kit):
    kit.tools.set_source("mcp:time", offers(kit, "a"))
    kit.tools.set_source("mcp:time", [])
    await kit.load()
    assert (kit.names, kit.removed) == ([], [])
    kit.tools.set_source("mcp:time", offers(kit, "a"))
    kit.tools.set_source("mcp:time", None)
    await kit.load()
    assert kit.removed == [frozenset({"a"})]


# --- imports that do not return

HANGS = {
    "runs in circles": "x = 1\nwhile True:\n    x += 1\n",
    "sleeps": "import time\n\ntime.sleep(3600)\n",
    "waits in a helper": "from ._slow import word\n",
}


@pytest.mark.parametrize("how", HANGS)
async def test_an_import_that_never_returns_is_named_and_stops_nothing(tmp_path: Path, how: str):
    kit = Kit(tmp_path, tool_import_seconds=0.3)
    slow = "import threading\nword = ''\nthreading.Event().wait()\n"
    kit.write(a=source("a", "旧"), z=source("z"), _slow=slow)
    assert await kit.load() == []
    kit.write(a=HANGS[how] + source("a"), z=source("z", "新"))
    (said,) = await kit.load()
    where = {"runs in circles": "a.py:", "sleeps": "a.py:3", "waits in a helper": "_slow.py:3"}
    assert where[how] in said
    assert "0.3 秒" in said
    assert (await kit.say("a"), await kit.say("z")) == ("旧", "新")
    # It is not begun again before the file that hangs changes, so that others load at once.
    clock = asyncio.get_running_loop().time
    kit.write(z=source("z", "更新"))
    began = clock()
    assert await kit.load() == [said]
    assert clock() - began < 0.3
    assert await kit.say("z") == "更新"
    if how == "waits in a helper":
        kit.write(_slow="word = ''\n")
    else:
        kit.write(a=source("a", "好"))
    assert await kit.load() == []
    assert kit.mended == [said.split()[1].split(":")[0]]


async def test_an_admin_can_have_a_hung_import_tried_again(tmp_path: Path):
    kit = Kit(tmp_path, tool_import_seconds=0.1)
    flag = tmp_path / "flag"
    kit.write(a=f"import os, time\nif not os.path.exists({str(flag)!r}):\n    time.sleep(60)\n")
    assert len(await kit.load()) == 1
    flag.touch()
    assert len(await kit.load()) == 1
    assert await kit.load(afresh=True) == []


async def test_closing_does_not_wait_for_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    begun = threading.Event()
    monkeypatch.setattr(sys, "import_begun", begun, raising=False)
    kit = Kit(tmp_path, tool_import_seconds=600)
    kit.write(a="import sys, time\nsys.import_begun.set()\ntime.sleep(600)\n")
    loading = asyncio.ensure_future(kit.tools.reload())
    assert await asyncio.to_thread(begun.wait, 10)
    kit.tools.close()
    await asyncio.wait_for(loading, 10)


# --- what is old is gone

SHAPES = '''
import functools, logging
from enum import Enum
from typing import Annotated, Literal, Optional
from pydantic import BaseModel, Field
from chathands import tool
from ._help import Base, cached

log = logging.getLogger(__name__)

class Colour(Enum):
    RED = "red"

class Item(Base):
    name: Annotated[str, Field(description="名字")]
    colour: Annotated[Colour, Field(description="颜色")] = Colour.RED
    more: Annotated["list[Item] | None", Field(description="更多")] = None

def loud(function):
    @functools.wraps(function)
    async def inner(*args, **kwargs):
        return await function(*args, **kwargs)
    return inner

@tool(side_effect="none", examples=[("看", {"items": [{"name": "x"}]})])
@loud
async def NAME(
    items: Annotated[list[Item], Field(description="东西")],
    colour: Annotated[Optional[Colour], Field(description="颜色")] = None,
) -> str:
    """看一看。"""
    return cached(len(items))
'''
HELP = """
import functools
from pydantic import BaseModel

class Base(BaseModel):
    pass

@functools.cache
def cached(count):
    return str(count)
"""


def everything_of(generation: Generation, space: str) -> list[weakref.ref[Any]]:
    """The generation, its modules, and the functions and classes in them."""
    found: list[Any] = [generation, *(each.function for each in generation.tools.values())]
    for name, module in sys.modules.copy().items():  # a collected generation takes its own out
        if name.startswith(f"{space}."):
            found += [module, *(v for v in vars(module).values() if is_of(v, name))]
    return [weakref.ref(each) for each in found]


def is_of(value: object, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


async def test_after_two_hundred_reloads_nothing_of_the_old_ones_is_left(tmp_path: Path):
    kit = Kit(tmp_path)
    deep = SHAPES.replace("._help", "..._help")
    files = {
        "_help.py": HELP,
        "a.py": SHAPES.replace("NAME", "show"),
        "pack/__init__.py": "from .inner import deep",
        "pack/inner/__init__.py": "from .deep import show_deep as deep",
        "pack/inner/deep.py": deep.replace("NAME", "show_deep"),
    }
    write(kit.settings.tools_dir, files)
    dead: list[weakref.ref[Any]] = []
    spaces: set[str] = set()
    space = ""
    for number in range(200):
        kit.write(b=f"x = {number}\n" if number % 3 else "x = (\n")  # some fail, and are kept
        errors = [error.file for error in await kit.tools.reload()]
        assert errors == ([] if number % 3 else ["b.py"])
        now = kit.registry.current
        context: Any = None
        for name in ("show", "show_deep"):
            assert await now.tools[name].run(context, {"items": [{"name": "x"}]}) == "1"
            compile_schema(now.specs[name].parameters)
        space = now.tools["show"].module.split(".")[0]
        spaces.add(space)
        if number < 199:
            dead += everything_of(now, space)
        del now
    assert len(dead) > 2000
    alive = len(dead)
    for _ in range(100):  # the loader's thread lets go of its arguments a moment later
        gc.collect()
        if (alive := sum(reference() is not None for reference in dead)) == 0:
            break
        await asyncio.sleep(0.01)
    assert alive == 0
    # Imports that other tests left hanging hold theirs.
    places = {n: str(getattr(m, "__file__", "")) for n, m in sys.modules.copy().items()}
    here = [name for name, file in places.items() if f"{tmp_path}/" in file]
    assert {name.split(".")[0] for name in here} == {space}
    known = {name.split(".")[0] for name in logging.root.manager.loggerDict}
    assert known & spaces == {space}
