"""A call's answer as MCP content: text, pictures and sounds as such, other files embedded."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from urllib.parse import quote

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
)

MOST_BYTES = 8_000_000
"""Of all files of one answer: clients hold it as base64, and many refuse messages above 10 MB."""


def blocks_of(
    text: str, told: Sequence[str], files: Sequence[tuple[str, bytes]]
) -> list[ContentBlock]:
    """The text first, then what a person must hear, then the files; one that is too large for all
    is named."""
    blocks: list[ContentBlock] = [TextContent(text=text.encode("utf-8", "replace").decode())]
    blocks += [TextContent(text=sentence) for sentence in told if sentence not in text]
    room = MOST_BYTES
    for name, data in files:
        if len(data) > room:
            blocks.append(TextContent(text=f"file {name} ({len(data)} bytes) is too large to send"))
            continue
        room -= len(data)
        blocks.append(_file(name, data))
    return blocks


def _file(name: str, data: bytes) -> ContentBlock:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    encoded = base64.b64encode(data).decode("ascii")
    if kind.startswith("image/"):
        return ImageContent(data=encoded, mime_type=kind)
    if kind.startswith("audio/"):
        return AudioContent(data=encoded, mime_type=kind)
    return EmbeddedResource(
        resource=BlobResourceContents(
            uri=f"attachment://chathands/{quote(name)}", mime_type=kind, blob=encoded
        )
    )
