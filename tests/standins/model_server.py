"""A stand-in for an OpenAI-compatible model service that can only chat. Real sockets, stdlib only.

In a test:

    async with ModelServer(["你好", Reply("慢", delay=0.1), Reply(status=503)]) as server:
        ... server.url ... server.requests

`script` is a list of replies, one a request, or a function of the request's JSON. As a process:

    python tests/standins/model_server.py --port N --script FILE [--key K] [--record FILE]

where FILE holds rules (see `Rules`). It says `listening on URL` when it is ready; `--record` gets
one JSON line for each request. Like a plain-chat model, it answers 400 to every native tool field,
unless it is made to take them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, Self

NATIVE_FIELDS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
NATIVE_MESSAGE_FIELDS = ("tool_calls", "tool_call_id", "function_call")


@dataclass
class Reply:
    """One reply with its faults. Only what is set differs from a good one."""

    text: str = ""
    finish_reason: str | None = "stop"
    thinking: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    """Sent as it is instead of a reply, e.g. an HTML page; `content_type` goes with it."""
    content_type: str = "application/json"
    events: list[Any] | None = None
    """The events' data instead of the ones made from `text`; what is no string becomes JSON."""
    piece: int = 4
    """Characters of text in one event."""
    bytes_at_once: int | None = None
    """Cut the stream on the wire into so many bytes."""
    delay: float = 0
    """Seconds before each event."""
    drop_after: int | None = None
    """Events after which the connection breaks; 0: right behind the head."""
    hang: Literal["head", "stream"] | None = None
    """Never send the head; or send the events and then never end."""
    down: bool = False
    """Break the connection instead of answering."""
    done: bool = True
    """Send `[DONE]`."""
    usage: bool = True
    ignores_stream: bool = False
    """Answer with one JSON document although a stream was asked for."""
    unframed: bool = False
    """Neither Content-Length nor chunks: the connection's end is the body's end."""


ReplyLike = str | Reply | Mapping[str, Any]
Script = Callable[[dict[str, Any]], ReplyLike]


@dataclass
class Seen:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: Any


class ModelServer:
    """See the module. `key`: the bearer key asked for."""

    def __init__(
        self,
        script: Iterable[ReplyLike] | Script,
        *,
        key: str | None = None,
        port: int = 0,
        record: Path | None = None,
        takes_tools: bool = False,
    ) -> None:
        self.requests: list[Seen] = []
        self.connections = 0
        self.asked = asyncio.Event()
        """A request has come."""
        self.hung_up = asyncio.Event()
        """A client closed its connection while a reply was on its way."""
        self._script = script if callable(script) else _one_by_one(script)
        self._key = key
        self._port = port
        self._record = record
        self._takes_tools = takes_tools
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, limit=1 << 20
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._one(_Connection(reader, writer, self.hung_up)):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _one(self, connection: _Connection) -> bool:
        """Answer one request; gives whether the connection goes on."""
        method, path, headers, raw = await connection.request()
        if method == "GET":
            if path.endswith(("/models", "/health")):
                await connection.json(200, {"object": "list", "data": [{"id": "stand-in"}]})
            else:
                await connection.json(404, _error("no such path"))
            return True
        body: Any = None
        with contextlib.suppress(ValueError):
            body = json.loads(raw)
        self.requests.append(Seen(path, headers, body))
        self.asked.set()
        if self._record is not None:
            line = json.dumps({"path": path, "headers": headers, "body": body}, ensure_ascii=False)
            with self._record.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        if self._key and headers.get("authorization") != f"Bearer {self._key}":
            await connection.json(401, _error(f"wrong key {headers.get('authorization')}"))
        elif not path.split("?")[0].endswith("/chat/completions"):
            await connection.json(404, _error("no such path"))
        elif not self._takes_tools and (fault := _not_plain_chat(body)) is not None:
            await connection.json(400, _error(fault))
        else:
            reply = as_reply(self._script(body))
            await connection.reply(reply, streamed=bool(body.get("stream")))
            if reply.unframed:
                return False
        return headers.get("connection", "").lower() != "close"


class _Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hung_up: asyncio.Event
    ) -> None:
        self._reader, self._writer, self._hung_up = reader, writer, hung_up

    async def request(self) -> tuple[str, str, dict[str, str], bytes]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return method, path, headers, body

    async def json(self, status: int, value: Any, more: Mapping[str, str] | None = None) -> None:
        body = json.dumps(value, ensure_ascii=False)
        await self._whole(status, body, {"content-type": "application/json", **(more or {})})

    async def reply(self, reply: Reply, *, streamed: bool) -> None:
        if reply.down:
            raise ConnectionAbortedError
        if reply.hang == "head":
            await self._wait(None)
        if reply.body is not None:
            await self._wait(reply.delay)
            headers = {"content-type": reply.content_type, **reply.headers}
            await self._whole(reply.status, reply.body, headers)
        elif reply.status != 200:
            await self.json(reply.status, _error(reply.text or "fault"), reply.headers)
        elif not streamed or reply.ignores_stream:
            await self._wait(reply.delay)
            await self.json(200, _completion(reply), reply.headers)
        else:
            await self._stream(reply)

    async def _whole(self, status: int, body: str, headers: Mapping[str, str]) -> None:
        raw = body.encode()
        self._head(status, {"content-length": str(len(raw)), **headers})
        self._writer.write(raw)
        await self._writer.drain()

    async def _stream(self, reply: Reply) -> None:
        framing = {"connection": "close"} if reply.unframed else {"transfer-encoding": "chunked"}
        self._head(200, {"content-type": "text/event-stream", **framing, **reply.headers})
        for count, event in enumerate(_events(reply)):
            if reply.drop_after == count:
                await self._writer.drain()
                raise ConnectionAbortedError
            await self._wait(reply.delay)
            raw = f"data: {event}\n\n".encode()
            step = reply.bytes_at_once or len(raw)
            for start in range(0, len(raw), step):
                part = raw[start : start + step]
                self._writer.write(part if reply.unframed else b"%x\r\n%b\r\n" % (len(part), part))
                await self._writer.drain()
                if reply.bytes_at_once:
                    await asyncio.sleep(0)
        if reply.hang == "stream":
            await self._wait(None)
        if not reply.unframed:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "-"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def _wait(self, seconds: float | None) -> None:
        """Let time pass, but notice at once when the client is gone."""
        if seconds == 0:
            return
        gone = asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait({gone}, timeout=seconds)
            if gone.done():
                self._hung_up.set()
                raise ConnectionResetError
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await gone


class Rules:
    """Replies chosen by what is asked. `document` is a list of rules, or {"rules": [...],
    "otherwise": reply}; the first rule that fits answers. A rule is

    - `when`: a regex, searched in the last user message (`"in": "any"`: in all user messages;
      `"in": "system"`: in the system message). Without it the rule always fits.
    - `nth`: only the so-many-th request that `when` fits (from 1).
    - `reply`, or any field of `Reply`. `{n}` in it becomes the number of the fitting request.
    - `behaviour`: `refuse_once`, `broken_json_once`, `invented_tool` (the first time, then
      `reply`; these look in all user messages, as the correction is the last one), `endless_calls`
      (`reply` for ever), `down`, `hang`, `slow`.
    """

    REFUSAL = "抱歉，作为一个语言模型，我没有可用的工具，无法访问外部系统。"
    INVENTED = '```json action\n{"tool": "teleport_everyone", "parameters": {"to": "月球"}}\n```'
    _FIELDS = frozenset(f.name for f in dataclasses.fields(Reply))

    def __init__(self, document: Any) -> None:
        self.rules = list(document["rules"] if isinstance(document, Mapping) else document)
        self.otherwise = document.get("otherwise") if isinstance(document, Mapping) else None
        self.fitted = [0] * len(self.rules)

    def __call__(self, body: dict[str, Any]) -> ReplyLike:
        fitting = [i for i, rule in enumerate(self.rules) if self._fits(rule, body)]
        for index in fitting:
            self.fitted[index] += 1
        for index in fitting:
            rule, count = self.rules[index], self.fitted[index]
            if rule.get("nth") in (None, count):
                return self._answer(rule, count)
        if self.otherwise is not None:
            return self.otherwise
        return Reply(status=500, text="no rule fits the request")

    def _fits(self, rule: Mapping[str, Any], body: dict[str, Any]) -> bool:
        once = rule.get("behaviour", "") in ("refuse_once", "broken_json_once", "invented_tool")
        where = rule.get("in", "any" if once else "last")
        role = "system" if where == "system" else "user"
        texts = [str(m.get("content")) for m in body["messages"] if m.get("role") == role]
        texts = texts[-1:] if where == "last" else texts
        return re.search(rule.get("when", ""), "\n".join(texts)) is not None

    def _answer(self, rule: Mapping[str, Any], count: int) -> Reply:
        fields = {key: value for key, value in rule.items() if key in self._FIELDS}
        text = str(rule.get("reply", rule.get("text", ""))).replace("{n}", str(count))
        reply = Reply(**{**fields, "text": text})
        behaviour = rule.get("behaviour")
        if behaviour == "refuse_once" and count == 1:
            reply.text = self.REFUSAL
        elif behaviour == "broken_json_once" and count == 1:
            reply.text = text[: text.rindex('"')] + "\n```"  # a string without its end
        elif behaviour == "invented_tool" and (count == 1 or not text):
            reply.text = self.INVENTED
        elif behaviour == "down":
            reply.down = True
        elif behaviour == "hang":
            reply.hang = "head"
        elif behaviour == "slow":
            reply.delay = reply.delay or 0.2
        return reply


def as_reply(reply: ReplyLike) -> Reply:
    if isinstance(reply, Reply):
        return reply
    return Reply(reply) if isinstance(reply, str) else Reply(**reply)


def _one_by_one(replies: Iterable[ReplyLike]) -> Script:
    rest = iter(replies)
    return lambda _: next(rest, Reply(status=500, text="the script has no more replies"))


def _not_plain_chat(body: Any) -> str | None:
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        return "messages must be a list"
    for name in NATIVE_FIELDS:
        if name in body:
            return f"{name} is not supported by this model"
    for message in body["messages"]:
        if message.get("role") not in ("system", "user", "assistant"):
            return f"role {message.get('role')} is not supported by this model"
        for name in NATIVE_MESSAGE_FIELDS:
            if name in message:
                return f"{name} is not supported by this model"
    return None


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "stand_in_error", "code": None}}


def _completion(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    return {"object": "chat.completion", "choices": [choice], **_usage(reply)}


def _usage(reply: Reply) -> dict[str, Any]:
    if not reply.usage:
        return {}
    return {"usage": {"prompt_tokens": 10, "completion_tokens": max(1, len(reply.text) // 2)}}


def _events(reply: Reply) -> Iterable[str]:
    if reply.events is not None:
        for event in reply.events:
            yield event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        return

    def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        whole = {"object": "chat.completion.chunk", "choices": [choice], **more}
        return json.dumps(whole, ensure_ascii=False)

    yield chunk({"role": "assistant", "content": ""})
    for name, text in (("reasoning_content", reply.thinking), ("content", reply.text)):
        for start in range(0, len(text), reply.piece):
            yield chunk({name: text[start : start + reply.piece]})
    if reply.finish_reason is not None:
        yield chunk({}, reply.finish_reason, **_usage(reply))
    if reply.done:
        yield "[DONE]"


async def _main() -> None:
    parser = argparse.ArgumentParser(description="stand-in model service")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--key")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    rules = Rules(json.loads(options.script.read_text("utf-8")))
    async with ModelServer(
        rules, key=options.key, port=options.port, record=options.record
    ) as server:
        sys.stdout.write(f"listening on {server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
