"""`from chathands import tool` is what every tool file starts with: it must stay cheap."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pydantic", "httpx", "pandas", "nonebot", "fastapi", "openpyxl", "aiohttp", "sqlite3")

ONE_TOOL = """
from typing import Annotated
from pydantic import Field
from chathands import tool
@tool(side_effect="none")
async def a(x: Annotated[int, Field(description="x")]) -> str:
    "甲"
"""

ONE_MODEL = """
from pydantic import BaseModel
class A(BaseModel):
    x: int
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def seconds(code: str) -> float:
    timed = f"import time; t = time.perf_counter()\n{code}\nprint(time.perf_counter() - t)"
    return min(float(run(timed)) for _ in range(3))


def test_the_decorator_alone_loads_no_library():
    code = "import sys; from chathands import tool, ToolContext\n"
    code += f"print([m for m in {HEAVY} if m in sys.modules])"
    assert run(code).strip() == "[]"


def test_a_tool_file_loads_pydantic_and_nothing_else_heavy():
    code = f"import sys\n{ONE_TOOL}\nprint([m for m in {HEAVY} if m in sys.modules])"
    assert run(code).strip() == "['pydantic']"


def test_importing_the_decorator_costs_no_more_than_pydantic_with_one_model():
    assert seconds("from chathands import tool") <= 1.5 * seconds(ONE_MODEL)


def test_the_decorator_stays_a_function_whatever_is_imported_first():
    code = (
        "import chathands.toolbox.tool; from chathands.toolbox import tool; print(callable(tool))"
    )
    assert run(code).strip() == "True"


def test_every_promised_name_can_be_imported():
    code = "import chathands.toolbox as t; print(all(getattr(t, n) for n in t.__all__))"
    assert run(code).strip() == "True"
