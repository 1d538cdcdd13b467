"""What a tool may return besides text: Table, Image, File and typed data; and what is neither.

The person gets pictures and files whole, behind the reply; the model gets a sentence about them.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from chathands.errors import ToolError, ToolOutcomeUnknown
from chathands.toolbox import render
from chathands.toolbox.attachments import MOST_BYTES, file_name
from chathands.toolbox.tables import Table
from chathands.toolbox.threads import run_in_thread

if TYPE_CHECKING:
    from chathands.conversation import SideEffect
    from chathands.toolbox.context import ToolContext

logger = logging.getLogger(__name__)

MAY_RETURN = "str, a pydantic model, Table, Image, File, a list of these, or JSON data"

LOOKED_AT = 50_000
"""Values inside a nested result whose types are looked at; the same number is written out."""

WITHOUT_LIMIT = 4000
"""Characters for a table where no run says how many there may be (a tool called in a test)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """A picture for the person: the content of a PNG, JPEG, GIF, WebP or BMP file.

    `caption` is what the model is told about it, e.g. what the chart shows.
    """

    data: bytes = dataclasses.field(repr=False)
    name: str = ""
    caption: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class File:
    """A file for the person: its content, or the path of one that this person may read.

    A path is looked up as every path of a tool is: the asker's files, the group's, then the shared
    ones. It may have come from a model, so nothing outside them is handed out; what a tool wrote
    elsewhere it reads itself. `caption` is what the model is told about it.
    """

    data: bytes | PurePath | None = dataclasses.field(default=None, repr=False)
    name: str = ""
    caption: str = ""
    path: str | PurePath | None = None


_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")


class Unusable(Exception):
    """A value that no tool may return; says what it is, for the model and for the author. Its
    cause is for the author alone."""


async def delivered(value: Any, ctx: ToolContext | None, tool: str, effect: SideEffect) -> Any:
    """The value as text or plain JSON data for the model; pictures and files are attached.

    Raises ToolOutcomeUnknown when it cannot be used: the function has run to its end, so a side
    effect may have happened. The author finds a line in the log.
    """
    try:
        return await _told(value, ctx)
    except Unusable as fault:
        reason = str(fault)
        why = f" ({type(fault.__cause__).__name__})" if fault.__cause__ else ""
        logger.error("tool %s returned %s%s; a tool may return %s", tool, reason, why, MAY_RETURN)
    except ToolError as fault:  # of the attachments, or of the file roots: for the model to mend
        if effect == "none":
            raise
        reason = fault.sentence.rstrip("。")
        logger.warning("what tool %s returned was not sent: %s", tool, reason)
    if effect == "none":
        raise ToolOutcomeUnknown(
            f"工具 {tool} 给出的结果不能用：{reason}。同样的调用再试也不行，请把这一点告诉用户。"
        )
    raise ToolOutcomeUnknown(
        f"工具 {tool} 已经运行，但它给出的结果不能用：{reason}。"
        "不能确定做成了什么，请人工核对；不会自动重试。"
    )


async def _told(value: Any, ctx: ToolContext | None) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Table):
        return value.for_model(_room(ctx))
    if isinstance(value, Image | File):
        return await _attached(value, ctx)
    parts = islice(value, LOOKED_AT) if type(value) in (list, tuple) else ()
    if any(isinstance(part, Table | Image | File) for part in parts):
        return "\n\n".join([_as_part(await _told(each, ctx)) for each in value])
    if not _needs_writing(value):
        return value  # plain JSON data, which is cut before it is written
    # Somebody else's code writes it (a model's serializers): in a thread it can hang alone.
    return await run_in_thread(partial(_written, value))


def _as_part(told: Any) -> str:
    return told if isinstance(told, str) else render.as_text(told)


def _room(ctx: ToolContext | None) -> int:
    if ctx is None:
        return WITHOUT_LIMIT
    return ctx.result_limit or render.result_limit(ctx.settings.model.context)


# --- pictures and files


async def _attached(given: Image | File, ctx: ToolContext | None) -> str:
    if not isinstance(given.name, str) or not isinstance(given.caption, str):
        raise Unusable(f"{type(given).__name__} 的 name 和 caption 不是文字")
    if isinstance(given, Image):
        data, name, kind = _picture(given), given.name.strip(), "图片"
        made = _image_name(data)
        if not name:
            name = made
        elif PurePath(name).suffix.lower() not in _PICTURES:
            name += PurePath(made).suffix
    else:
        data, name = await _content(given, ctx)
        kind = "文件"
    name = file_name(name)
    if ctx is not None:
        ctx.attach(name, data)
    return given.caption.strip() or f"{kind}「{name}」已经准备好。"


def _image_name(data: bytes) -> str:
    from chathands.toolbox.received import image_name

    return image_name(data)


def _picture(given: Image) -> bytes:
    if not isinstance(given.data, bytes | bytearray | memoryview):
        raise Unusable(f"Image 的内容是 {_type_of(given.data)}，要 bytes")
    data = bytes(given.data)
    if not data:
        raise Unusable("Image 是空的")
    if _image_name(data).endswith(".img"):
        raise Unusable("Image 的内容不是 PNG、JPEG、GIF、WebP 或 BMP 图片")
    return data


async def _content(given: File, ctx: ToolContext | None) -> tuple[bytes, str]:
    """What the file holds, and its name."""
    path = given.data if isinstance(given.data, PurePath) else given.path
    if (given.data is None) == (given.path is None):
        raise Unusable("File 要有内容（bytes）或者 path，只要一个")
    if path is None:
        if not isinstance(given.data, bytes | bytearray | memoryview):
            raise Unusable(f"File 的内容是 {_type_of(given.data)}，要 bytes（路径写成 path=）")
        return bytes(given.data), given.name.strip() or "文件"
    if not isinstance(path, str | PurePath):
        raise Unusable(f"File 的 path 是 {_type_of(path)}，要文字")
    if ctx is None:
        raise Unusable("File 的 path 只有在提问里才知道是谁的文件")
    files, wanted = ctx.files, path.as_posix() if isinstance(path, PurePath) else path

    def read() -> bytes:
        with files.open(wanted) as opened:
            return opened.read(MOST_BYTES + 1)

    name = given.name.strip() or wanted.replace("\\", "/").rpartition("/")[2]
    return await run_in_thread(read), name


# --- typed data

_PLAIN = (str, bool, int, float, type(None))
_WRITABLE = (Enum, date, time, timedelta, Decimal, UUID, PurePath)
"""With a pydantic model or a dataclass around them or without, pydantic writes these as JSON."""


def _needs_writing(value: Any) -> bool:
    """Whether there is more in it than plain JSON data. Raises Unusable for what is no data."""
    waiting, typed = [value], False
    left = LOOKED_AT
    while waiting:
        each = waiting.pop()
        if isinstance(each, _PLAIN):
            continue
        if type(each) is dict:
            typed = typed or not all(isinstance(key, _PLAIN) for key in islice(each, left))
            waiting += islice(each.values(), left)
            left -= min(len(each), left)
        elif type(each) in (list, tuple, set, frozenset):
            waiting += islice(each, left)
            left -= min(len(each), left)
        elif _is_typed(each) or isinstance(each, dict | list | tuple | set | frozenset):
            typed = True  # what is inside a class of its own is only asked in the thread
        else:
            raise Unusable(_advice(each))
    return typed


def _is_typed(value: Any) -> bool:
    if isinstance(value, _WRITABLE):
        return True
    if isinstance(value, type | Table | Image | File):
        return False
    return dataclasses.is_dataclass(value) or hasattr(type(value), "__pydantic_serializer__")


def _written(value: Any) -> str:
    from pydantic_core import to_jsonable_python

    try:
        plain = to_jsonable_python(value, by_alias=True)
    except (ValueError, RecursionError) as error:  # pydantic's own errors are ValueErrors
        raise Unusable(f"{_type_of(value)}，写不成 JSON") from error
    return json.dumps(plain, ensure_ascii=False)


def _advice(value: Any) -> str:
    """What it is, and what it should have been where that is plain."""
    what = _type_of(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{what}，图片和文件要写成 Image(…) 或 File(…)"
    if isinstance(value, Table | Image | File):
        return f"{what} 在别的数据里面，要单独返回或放在列表里"
    if hasattr(value, "__await__") or hasattr(value, "__aiter__") or hasattr(value, "__next__"):
        return f"{what}，里面的内容还没有取出来"
    if type(value).__name__ in ("DataFrame", "Series", "ndarray"):
        return f"{what}，表格要写成 Table(…)"
    return what


def _type_of(value: Any) -> str:
    return f"类型 {type(value).__name__[:60]}"
