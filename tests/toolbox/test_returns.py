"""What a tool returns: for the model in words and to size, for the person whole."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import Status
from chathands.toolbox.attachments import files_of
from chathands.toolbox.returns import LOOKED_AT, _needs_writing, delivered
from tests.toolbox.kit import Bench, bench, call

PNG = b"\x89PNG\r\n\x1a\n and so on"

GIVES = '''
import dataclasses
import pathlib
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pydantic import BaseModel
from chathands import File, Image, Table

PNG = b"\\x89PNG\\r\\n\\x1a\\n and so on"

class Unit(Enum):
    METRIC = "metric"

class Order(BaseModel):
    number: str
    on: date
    price: Decimal
    unit: Unit = Unit.METRIC

@dataclasses.dataclass
class Point:
    x: float

class Thing:
    pass

class Blob(BaseModel):
    b: bytes

def rows(count):
    return [(f"{n:05}", n * 1.5, None) for n in range(count)]

def gives(what):
    order = Order(number="00123", on=date(2025, 9, 1), price=Decimal("1.10"))
    return {
        "text": lambda: "好",
        "nothing": lambda: None,
        "number": lambda: 3,
        "model": lambda: order,
        "models": lambda: [order, order],
        "inside": lambda: {"when": datetime(2025, 9, 1, 8), "points": [Point(1.5)]},
        "counter": lambda: Counter("aab"),
        "plain": lambda: {"b": 1, "a": [2]},
        "table": lambda: Table(["编号", "金额", "备注"], rows(3), title="订单", note="含税"),
        "long table": lambda: Table(
            ["编号", "金额", "备注"], rows(20_000), title="订单", note="含税"
        ),
        "image": lambda: Image(PNG, "走势", "九月走势，最高 35 度"),
        "image alone": lambda: Image(PNG),
        "file": lambda: File(b"a,b", "out/明细.csv"),
        "file by path": lambda: File(path="表.txt", caption="原文件"),
        "file by Path": lambda: File(pathlib.Path("表.txt"), "另一个名字.txt"),
        "versioned image": lambda: Image(b"RIFF....WEBP", "走势 v1.2"),
        "both": lambda: ["见图和表", Image(PNG, "a.png"), Table(["甲"], [["1"]]), {"k": 1}],
        # --- wrong
        "bytes": lambda: b"x",
        "object": lambda: Thing(),
        "type": lambda: Order,
        "generator": lambda: (n for n in range(3)),
        "coroutine inside": lambda: {"x": iter([1])},
        "bytes inside": lambda: {"x": [b"y"]},
        "table inside": lambda: {"x": Table(["甲"], [])},
        "no picture": lambda: Image(b"<svg/>", "a.png"),
        "text picture": lambda: Image("a.png"),
        "empty picture": lambda: Image(b""),
        "text file": lambda: File("内容", "a.txt"),
        "empty file": lambda: File(b"", "a.txt"),
        "no file": lambda: File(),
        "two files": lambda: File(b"x", path="表.txt"),
        "outside": lambda: File(path="/etc/passwd"),
        "above": lambda: File(pathlib.Path("../../etc/passwd")),
        "missing": lambda: File(path="没有.txt"),
        "large": lambda: File(b"x" * 10_000_001, "a.bin"),
        "model of bytes": lambda: Blob(b=b"\\xff"),
        "five pictures": lambda: [Image(PNG)] * 5,
        "odd name": lambda: File(b"x", "a/\\x1b名字\\n忽略以上\\u202e.txt"),
        "long name": lambda: File(b"x", "长" * 5000 + ".txt"),
        "caption": lambda: Image(PNG, caption=3),
        "second of two": lambda: [Image(PNG), Image(b"no")],
    }[what]()

@tool(side_effect="none")
async def reads(what: Annotated[str, Field(description="什么")]) -> object:
    """给出。"""
    return gives(what)

@tool(side_effect="none")
def reads_in_thread(ctx: ToolContext, what: Annotated[str, Field(description="什么")]) -> object:
    """给出。"""
    return gives(what)

@tool(side_effect="outward")
async def sends(ctx: ToolContext, what: Annotated[str, Field(description="什么")]) -> object:
    """发送。"""
    did(ctx, what)
    return gives(what)

@tool(side_effect="none", deterministic=False)
async def paints(what: Annotated[str, Field(description="什么")]) -> object:
    """画。"""
    return gives(what)
'''


@pytest.fixture
def box(tmp_path: Path) -> Any:
    with bench(tmp_path, GIVES, approval="never") as it:
        (it.settings.data_dir / "shared").mkdir()
        (it.settings.data_dir / "shared" / "表.txt").write_text("内容", "utf-8")
        yield it


async def given(box: Bench, what: str, tool: str = "reads") -> tuple[Any, Any]:
    """(the result, the files the person gets)."""
    scope = box.scope()
    (result,) = (await box.run(call(tool, what=what), scope=scope)).results
    return result, files_of(scope.done)


@pytest.mark.parametrize("tool", ["reads", "reads_in_thread", "sends"])
@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("text", "好"),
        ("nothing", ""),
        ("number", "3"),
        (
            "model",
            '{"number": "00123", "on": "2025-09-01", "price": "1.10", "unit": "metric"}',
        ),
        ("inside", '{"when": "2025-09-01T08:00:00", "points": [{"x": 1.5}]}'),
        ("counter", '{"a": 2, "b": 1}'),
        ("plain", '{"a": [2], "b": 1}'),
    ],
)
async def test_text_models_and_data_reach_the_model(box: Bench, tool: str, what: str, text: str):
    result, files = await given(box, what, tool)
    assert (result.status, result.content, files) == (Status.OK, text, ())


async def test_a_list_of_models_is_a_list(box: Bench):
    result, _ = await given(box, "models")
    assert [order["number"] for order in json.loads(result.content)] == ["00123", "00123"]


async def test_a_table_reaches_the_model_with_its_size_and_cells_as_they_are(box: Bench):
    result, _ = await given(box, "table")
    assert result.content.split("\n") == [
        "订单（共 3 行 3 列）",
        "| 编号 | 金额 | 备注 |",
        "|---|---|---|",
        "| 00000 | 0 |  |",
        "| 00001 | 1.5 |  |",
        "| 00002 | 3 |  |",
        "含税",
    ]
    assert not result.truncated


async def test_a_long_table_is_cut_between_rows_within_the_limit_and_says_so(box: Bench):
    result, _ = await given(box, "long table")
    lines = result.content.split("\n")
    assert result.truncated
    assert "共 20000 行" in lines[0]
    assert lines[3] == "| 00000 | 0 |  |"
    assert lines[-2:] == ["| 19999 | 29998.5 |  |", "含税"]
    assert "中间省略" not in result.content  # only one of us cuts
    limit = min(box.settings.model.context // 2, 20_000)
    assert limit * 0.9 < len(result.content) <= limit
    left_out = int(lines[0].split("省略了 ")[1].split(" 行")[0])
    assert left_out == 20_000 - (len(lines) - 5)


async def test_a_table_follows_the_size_that_the_policy_sets(tmp_path: Path):
    with bench(tmp_path, GIVES, toml="[tools.reads]\nresult_size = 300") as box:
        result, _ = await given(box, "long table")
    assert len(result.content) <= 300
    assert result.content.endswith("含税")
    assert "中间省略" not in result.content


@pytest.mark.parametrize(
    ("what", "told", "file"),
    [
        ("image", "九月走势，最高 35 度", ("走势.png", PNG)),
        ("versioned image", "走势", ("走势 v1.2.webp", b"RIFF....WEBP")),
        ("file", "明细.csv", ("明细.csv", b"a,b")),
        ("file by path", "原文件", ("表.txt", "内容".encode())),
        ("file by Path", "另一个名字.txt", ("另一个名字.txt", "内容".encode())),
    ],
)
async def test_the_person_gets_the_file_and_the_model_a_sentence(
    box: Bench, what: str, told: str, file: tuple[str, bytes]
):
    result, files = await given(box, what)
    assert result.status is Status.OK
    assert files == (file,)
    assert told in result.content
    assert "不用复述" in result.content
    assert len(result.content) < 120


async def test_a_picture_without_a_name_gets_one_and_a_model_may_have_made_it(box: Bench):
    for tool in ("reads", "paints"):
        result, ((name, data),) = await given(box, "image alone", tool)
        assert result.status is Status.OK
        assert name.endswith(".png")
        assert data == PNG


async def test_several_at_once(box: Bench):
    result, files = await given(box, "both")
    assert [name for name, _ in files] == ["a.png"]
    parts = result.content.split("\n\n")
    assert parts[0] == "见图和表"
    assert "| 甲 |" in parts[2]
    assert '{"k": 1}' in parts[3]


WRONG = [
    ("bytes", "Image"), ("object", "Thing"), ("type", "类型"), ("generator", "generator"),
    ("coroutine inside", "取出来"), ("bytes inside", "bytes"), ("table inside", "Table"),
    ("no picture", "不是 PNG"), ("text picture", "bytes"), ("empty picture", "空的"),
    ("text file", "path="), ("no file", "File"), ("two files", "File"),
    ("caption", "caption"), ("model of bytes", "JSON"), ("second of two", "不是 PNG"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "said"), WRONG)
async def test_what_cannot_be_returned_fails_in_words_and_is_logged(
    box: Bench, what: str, said: str, caplog: pytest.LogCaptureFixture
):
    result, files = await given(box, what)
    assert result.status is Status.FAILED
    assert said in result.content
    assert "reads" in result.content
    assert files == ()
    assert "reads" in caplog.text
    for hidden in ("Traceback", "root:", "/etc", str(box.settings.data_dir)):
        assert hidden not in result.content


@pytest.mark.parametrize(
    ("what", "status", "said"),
    [
        ("outside", Status.DENIED, ""),
        ("above", Status.DENIED, ""),
        ("missing", Status.FAILED, "没有找到文件「没有.txt」。现有的文件有：表.txt。"),
        ("empty file", Status.FAILED, "空的"),
        ("large", Status.FAILED, "10 MB"),
        ("five pictures", Status.FAILED, "最多发 4 个"),
    ],
)
async def test_a_file_that_cannot_be_handed_over_says_why(
    box: Bench, what: str, status: Status, said: str
):
    result, files = await given(box, what)
    assert (result.status, files) == (status, ())
    assert said in result.content
    assert "/etc" not in result.content


async def test_a_files_name_is_one_line_of_bounded_length(box: Bench):
    result, ((name, _),) = await given(box, "odd name")
    assert name == "名字 忽略以上.txt"
    assert f"「{name}」" in result.content
    result, ((name, _),) = await given(box, "long name")
    assert len(name) == 80
    assert len(result.content) < 500


@pytest.mark.parametrize("what", ["bytes", "large", "no picture"])
async def test_after_a_side_effect_it_is_unknown_and_never_run_again(box: Bench, what: str):
    scope = box.scope()
    (result,) = (await box.run(call("sends", what=what), scope=scope)).results
    assert result.status is Status.UNKNOWN
    assert "不会自动重试" in result.content
    (again,) = (await box.run(call("sends", what=what), scope=scope)).results
    assert again.status is Status.UNKNOWN
    assert box.effects == [what]


def test_looking_at_a_value_is_bounded_however_it_holds_itself():
    value: list[Any] = []
    value.extend([value] * LOOKED_AT)
    began = time.perf_counter()
    assert not _needs_writing(value)
    assert time.perf_counter() - began < 1


async def test_a_long_list_of_plain_values_is_not_looked_through_for_pictures():
    value = [0] * 3_000_000
    began = time.perf_counter()
    assert await delivered(value, None, "look", "none") is value
    assert time.perf_counter() - began < 0.2
