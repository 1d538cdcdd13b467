"""What an external MCP server answered, as text for the model and files for the person."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from typing import TYPE_CHECKING, Any

from chathands.conversation import canonical_json
from chathands.errors import ToolFailed
from chathands.toolbox.mcp_offer import inert
from chathands.toolbox.render import OUTPUT_CAP, cut, one_line

if TYPE_CHECKING:
    from mcp.types import CallToolResult

    from chathands.toolbox.context import ToolContext

MOST_BLOCKS = 200
"""Of one answer that are looked at."""

NOTHING = "（工具服务没有返回内容。）"


def answer_of(result: CallToolResult, context: ToolContext, name: str) -> str:
    """The text; pictures, sounds and files go to the person through `context`.

    Raises ToolFailed with what the server says when it says that it failed.
    """
    parts: list[str] = []
    room = OUTPUT_CAP
    for number, block in enumerate(result.content[:MOST_BLOCKS], 1):
        text = _block(block, context, f"{name}-{number}")
        if text and room > 0:
            parts.append(text[:room])
            room -= len(text)
    if (left := len(result.content) - MOST_BLOCKS) > 0:
        parts.append(f"（还有 {left} 段内容没有读。）")
    if not parts and result.structured_content is not None:
        parts.append(canonical_json(result.structured_content)[:OUTPUT_CAP])
    text = inert("\n".join(parts).strip())
    if result.is_error:
        raise ToolFailed(one_line(text, 400) or "工具服务说没有成功。")
    return text or NOTHING


def _block(block: Any, context: ToolContext, name: str) -> str:
    kind = getattr(block, "type", "")
    if kind == "text":
        return block.text
    if kind in ("image", "audio"):
        what = "图片" if kind == "image" else "音频"
        return _attached(block.data, block.mime_type, context, name, what)
    if kind == "resource":
        resource = block.resource
        text = getattr(resource, "text", None)
        if text is not None:
            return text
        last = str(resource.uri).rstrip("/").rpartition("/")[2]
        return _attached(resource.blob, resource.mime_type, context, last or name, "文件")
    if kind == "resource_link":
        return f"资源：{block.name} {block.uri}"
    return f"（一段不认识的内容：{cut(str(kind), 40)}）"


def _attached(data: str, mime: str | None, context: ToolContext, name: str, what: str) -> str:
    """A sentence about it; empty when the person gets it, which the executor says."""
    try:
        content = base64.b64decode(data, validate=True)
        ending = mimetypes.guess_extension((mime or "").partition(";")[0].strip()) or ""
        context.attach(name if "." in name else name + ending, content)
    except (binascii.Error, ValueError):
        return f"（{what}的数据坏了，没有收到。）"
    except ToolFailed as error:
        return f"（有一个{what}没有发出：{error.sentence}）"
    return ""
