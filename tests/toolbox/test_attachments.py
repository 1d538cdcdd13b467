"""Files a tool attaches: kept with the call, bounded, told to the model, gone when it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from chathands.conversation import Status, ToolCall
from chathands.errors import ToolFailed
from chathands.toolbox.attachments import MOST_BYTES, MOST_FILES, Attachments, files_of
from tests.toolbox.kit import bench

CHART = '''
@tool(side_effect="none")
async def chart(
    ctx: ToolContext, what: Annotated[str, Field(description="画什么")]
) -> str:
    """画图。"""
    ctx.attach(f"out/{what}.png", b"PNG")
    if what == "坏":
        raise ToolFailed("画不出来。")
    return "画好了"
'''


async def test_what_a_tool_attaches_waits_in_the_run_and_the_model_is_told(tmp_path: Path):
    with bench(tmp_path, CHART) as toolbox:
        scope = toolbox.scope()
        batch = await toolbox.run(ToolCall("c", "chart", {"what": "销量"}), scope=scope)
    (result,) = batch.results
    assert result.content.startswith("画好了\n（文件「销量.png」")
    assert files_of(scope.done) == (("销量.png", b"PNG"),)


async def test_a_tool_that_failed_attaches_nothing(tmp_path: Path):
    with bench(tmp_path, CHART) as toolbox:
        scope = toolbox.scope()
        batch = await toolbox.run(ToolCall("c", "chart", {"what": "坏"}), scope=scope)
    assert batch.results[0].status is Status.FAILED
    assert "文件" not in batch.results[0].content
    assert files_of(scope.done) == ()


def test_there_are_bounds_over_a_whole_run():
    call = Attachments([])
    for n in range(MOST_FILES - 1):
        call.attach(f"{n}.txt", b"x")
    done = [{"files": call.stored()}]
    later = Attachments(done)
    with pytest.raises(ToolFailed, match="10 MB"):
        later.attach("a", b"x" * MOST_BYTES)
    later.attach("a", b"x")
    with pytest.raises(ToolFailed, match="最多发 4 个"):
        later.attach("b", b"x")


@pytest.mark.parametrize(("name", "data"), [("a", b""), (1, b"x"), ("a", "text"), (None, None)])
def test_what_is_no_file_is_refused_in_words(name, data):
    with pytest.raises(ToolFailed):
        Attachments([]).attach(name, data)


@pytest.mark.parametrize(
    ("name", "kept"), [("../../etc/x", "x"), ("c:\\a\\b.txt", "b.txt"), ("", "文件"), ("/", "文件")]
)
def test_a_name_has_no_path(name: str, kept: str):
    call = Attachments([])
    call.attach(name, b"x")
    assert files_of([{"files": call.stored()}]) == ((kept, b"x"),)


def test_what_cannot_be_read_any_more_is_left_out():
    good = {"name": "a", "data": "eA=="}
    rows = [{"files": [{"name": "a"}, {"name": "b", "data": "?"}, 5, good]}, {}]
    assert files_of(rows) == (("a", b"x"),)
