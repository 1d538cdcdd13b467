"""The model behind benchmarks/gateway.py, in a process of its own: `gateway_upstream.py PORT`.

A raw asyncio server that answers at once, so that it is never what is measured. A request for the
model `slow` is answered in pieces with pauses, as a model writes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

PIECES = 8
"""Of a reply; the first is text that may leave at once, the others are a call."""
SLOW_PIECES = 20
SLOW_PAUSE = 0.1
"""Seconds; together two seconds, which is a short reply of a hosted model."""
FIRST_WORD = "Looking"
"""Of every reply, and in nothing else: when it has reached the client, so has the first token."""

_TEXT = f"{FIRST_WORD} that up for you now.\n\n"
_CALL = (
    '```json action\n{"tool": "search_orders", "parameters": {"customer": "Ada Lovelace", '
    '"status": "open", "limit": 20}}\n```'
)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n"


def pieces(count: int) -> list[str]:
    """The reply, cut."""
    size = -(-len(_CALL) // (count - 1))
    return [_TEXT, *(_CALL[at : at + size] for at in range(0, len(_CALL), size))]


def _event(delta: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    choice.update(more)
    document = {
        "id": "chatcmpl-standin",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "plain",
        "choices": [choice],
    }
    return _chunk(b"data: " + json.dumps(document).encode() + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _events(count: int) -> list[bytes]:
    return [_event({"role": "assistant", "content": ""})] + [
        _event({"content": piece}) for piece in pieces(count)
    ]


_END = _event({}, finish_reason="stop") + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
_STREAM_HEAD = _HEAD % b"text/event-stream" + b"transfer-encoding: chunked\r\n\r\n"
_FAST = _events(PIECES)
_SLOW = _events(SLOW_PIECES)


def _whole() -> bytes:
    message = {"role": "assistant", "content": _TEXT + _CALL}
    document = {
        "id": "chatcmpl-standin",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "plain",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960},
    }
    body = json.dumps(document).encode()
    return _HEAD % b"application/json" + b"content-length: %d\r\n\r\n%s" % (len(body), body)


_DOCUMENT = _whole()


class Upstream(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:  # uvloop's is no asyncio.Transport
        self._transport: asyncio.Transport = transport
        self._seen = bytearray()
        self._writing: asyncio.Task[None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._writing is not None:
            self._writing.cancel()

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, found, rest = bytes(self._seen).partition(b"\r\n\r\n")
        if not found:
            return
        length = 0
        for row in head.lower().split(b"\r\n"):
            if row.startswith(b"content-length:"):
                length = int(row[15:])
        if len(rest) < length:
            return
        self._seen.clear()
        body = json.loads(rest) if rest else {}
        if not body.get("stream"):
            self._transport.write(_DOCUMENT)
        elif body.get("model") == "slow":
            self._writing = asyncio.ensure_future(self._write_slowly())
        else:
            self._transport.write(_STREAM_HEAD)
            for event in _FAST:
                self._transport.write(event)
            self._transport.write(_END)

    async def _write_slowly(self) -> None:
        self._transport.write(_STREAM_HEAD)
        for event in _SLOW:
            self._transport.write(event)
            await asyncio.sleep(SLOW_PAUSE)
        self._transport.write(_END)


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


def run_quickly(work: Any) -> None:
    """On uvloop where it is installed, as uvicorn does."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


if __name__ == "__main__":
    run_quickly(_serve(int(sys.argv[1])))
