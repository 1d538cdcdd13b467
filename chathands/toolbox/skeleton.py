"""A tool file and its test to start from; both work as they stand. Nothing is ever overwritten."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from chathands.emulation.contract import FIND_TOOLS
from chathands.errors import ChatHandsError
from chathands.schema import plain_name

_TEXTS = Path(__file__).parent / "skeletons"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
LONGEST = 64
"""What the OpenAI and Anthropic protocols take as a tool's name."""


class SkeletonError(ChatHandsError):
    """No files were written; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    tool: Path
    test: Path


def refused_name(name: str, taken: Collection[str] = ()) -> str | None:
    """Why a tool may not be called so, one sentence; None when it may."""
    if not _NAME.fullmatch(name):
        return (
            f"{name[:80]!r} 不能当工具名：要以小写字母开头，只用小写字母、数字和单个下划线，"
            "例如 find_orders。"
        )
    if len(name) > LONGEST:
        return f"工具名最多 {LONGEST} 个字符，{name[:20]}… 有 {len(name)} 个。"
    if keyword.iskeyword(name) or name in dir(builtins):
        return f"{name} 是 Python 自己的名字，请换一个，例如 {name}_of_orders。"
    if name == FIND_TOOLS:
        return f"{name} 留给了“找工具”，请换一个。"
    if name.startswith("test_"):
        return f"{name} 会被当成测试，请换一个。"
    if near := next((each for each in taken if plain_name(each) == plain_name(name)), None):
        return f"已经有工具 {near}，请换一个名字。"
    return None


def write_skeleton(
    name: str, tools_dir: Path, *, outward: bool = False, taken: Collection[str] = ()
) -> Skeleton:
    """Write `NAME.py` into the tools directory and its test into `tests/tools` beside that.

    Raises SkeletonError for a bad name, or a file that is there; then nothing was written.
    """
    if why := refused_name(name, taken):
        raise SkeletonError(f"bad name {name!r}", sentence=why)
    tools_dir = tools_dir.resolve()
    made = Skeleton(
        tools_dir / f"{name}.py", tools_dir.parent / "tests" / "tools" / f"test_{name}.py"
    )
    for path in (made.tool, made.test, tools_dir / name):
        if path.exists() or path.is_symlink():
            sentence = f"{path} 已经有了，没有改动它，也没有写别的文件。换个名字，或者先移走它。"
            raise SkeletonError(f"{path} exists", sentence=sentence)
    kind = "outward" if outward else "read"
    words = {"NAME": name, "TOOLS": tools_dir.name, "ENVIRONMENT": f"{name.upper()}_URL"}
    written: list[Path] = []
    try:
        for path, file in ((made.tool, f"{kind}.txt"), (made.test, f"{kind}_test.txt")):
            text = (_TEXTS / file).read_text("utf-8")
            text = re.sub(r"\b(NAME|TOOLS|ENVIRONMENT)\b", lambda m: words[m[1]], text)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as out:
                written.append(path)
                out.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        sentence = f"写不了 {error.filename}（{error.strerror}），没有留下文件。"
        raise SkeletonError(str(error), sentence=sentence) from error
    return made
