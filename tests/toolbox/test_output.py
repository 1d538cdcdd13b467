"""What tools give is brought to a size before it is written out, and cannot hang the bot."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from chathands.toolbox.output import CUT, MAX_ITEMS, written
from chathands.toolbox.render import OUTPUT_CAP
from tests.toolbox.kit import bench, call

ODD = """
from pydantic import BaseModel, model_serializer

class Endless(BaseModel):
    @model_serializer
    def write(self) -> str:
        stop.wait(30)
        return "终于"

class Huge(BaseModel):
    @model_serializer
    def write(self) -> str:
        return "字" * 50_000_000

class Lying:
    __class__ = str

class Angry:
    def __str__(self):
        raise KeyError("token=abcdef123456")

stop = threading.Event()

@tool(side_effect="none", timeout=0.2)
async def odd(what: Annotated[str, Field(description="什么")]) -> str:
    \"\"\"给出怪东西。\"\"\"
    return {"endless": Endless, "huge": Huge, "lying": Lying, "angry": Angry}[what]()
"""


async def test_a_long_text_keeps_both_ends_and_its_true_size():
    text, size = await written("头" + "字" * 5_000_000 + "尾")
    assert (text[0], text[-1], size) == ("头", "尾", 5_000_002)
    assert len(text) == OUTPUT_CAP


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def wide() -> Any:
    """A million paths to the same few lists."""
    value: Any = ["字" * 1000] * 100
    for _ in range(6):
        value = [value] * 100
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"rows": [{"n": n, "text": "字" * 100} for n in range(200_000)]},
        [0] * 3_000_000,
        {str(n): n for n in range(1_000_000)},
        {"字" * 3_000_000: 1},
        ["字" * 30_000_000] * 3,
        wide(),
        {n: n for n in range(200_000)},
    ],
    ids=["rows", "numbers", "keys", "long key", "long texts", "wide", "numbered"],
)
async def test_a_huge_value_is_cut_before_it_is_written(value: Any):
    began = time.perf_counter()
    text, _ = await written(value)
    assert CUT in text
    assert len(text) <= OUTPUT_CAP + MAX_ITEMS * 10
    assert time.perf_counter() - began < 2


async def test_small_values_are_whole():
    value = {"甲": [1, 2.5, None, True, "文"], "乙": {"丙": ()}}
    text, size = await written(value)
    assert text == '{"乙": {"丙": []}, "甲": [1, 2.5, null, true, "文"]}'
    assert size == len(text)


@pytest.mark.parametrize("levels", [10_000, 100_000])
async def test_what_is_nested_without_end_is_an_error_and_no_crash(levels: int):
    with pytest.raises(ValueError, match="nested"):
        await written(deep(levels))
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nested"):
        await written(circle)


async def test_a_value_that_never_ends_being_written_ends_with_the_tools_time(tmp_path: Path):
    with bench(tmp_path, ODD) as box:
        running = asyncio.ensure_future(box.run(call("odd", what="endless")))
        ticks = 0
        while not running.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert ticks > 10  # the loop went on
        result = running.result().results[0]
        assert result.status == "failed"
        assert box.executor.gate.lanes.left_behind("odd") == 1
        function = box.generation.tools["odd"].function
        function.__globals__["stop"].set()
        for thread in threading.enumerate():
            if thread.name == "sync-tool":
                await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)
        assert box.executor.gate.lanes.left_behind("odd") == 0


@pytest.mark.parametrize("what", ["lying", "angry"])
async def test_a_value_that_cannot_be_written_is_the_tools_fault(tmp_path: Path, what: str):
    with bench(tmp_path, ODD) as box:
        result = (await box.run(call("odd", what=what))).results[0]
        assert result.status == "failed"
        assert "abcdef" not in result.content


async def test_a_models_huge_text_is_cut(tmp_path: Path):
    with bench(tmp_path, ODD, toml="[tools.odd]\ntimeout = 10") as box:
        result = (await box.run(call("odd", what="huge"))).results[0]
        assert result.truncated
        assert "全文共 50000002 个字符" in result.content
        assert len(result.content) < 5000


async def test_the_files_size_for_results_holds(tmp_path: Path):
    source = """
@tool(side_effect="none")
async def long() -> str:
    \"\"\"长。\"\"\"
    return "字" * 3000
"""
    with bench(tmp_path, source, toml="[tools.long]\nresult_size = 200") as box:
        result = (await box.run(call("long"))).results[0]
        assert result.truncated
        assert len(result.content) < 300
        assert "全文共 3000 个字符" in result.content
