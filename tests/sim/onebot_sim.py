#!/usr/bin/env python3
# ruff: noqa: E501, T201, ASYNC109, ASYNC240
"""A small OneBot v11 *implementation* simulator (the peer that real bots get from NapCat & co).

It dials the bot's reverse websocket (or listens for a forward one), sends lifecycle and
heartbeat events, pushes group messages written in a script, answers API calls from an
in-memory world, injects faults, and records every frame with timestamps.  Nothing here
imports NoneBot, so it can serve as an independent black-box harness.

Library use::

    world = World(self_id=10000)
    world.group(700).member(1, "alice", role="admin")
    async with Sim(world, "ws://127.0.0.1:8080/onebot/v11/ws", token="t") as sim:
        mid = await sim.say(700, 1, [at(10000), text(" ping")])
        sent = await sim.wait_delivered(group_id=700, timeout=5)
        assert "pong" in sent.text

Command line::

    onebot_sim.py --url ws://127.0.0.1:8080/onebot/v11/ws --script steps.json --record run.jsonl

Needs only ``websockets >= 15``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

Segment = dict[str, Any]

# --------------------------------------------------------------------------- segments


def text(value: str) -> Segment:
    return {"type": "text", "data": {"text": value}}


def at(qq: int | str, **extra: Any) -> Segment:
    return {"type": "at", "data": {"qq": str(qq), **extra}}


def reply(message_id: int) -> Segment:
    return {"type": "reply", "data": {"id": str(message_id)}}


def image(file: str = "A.png", url: str = "http://127.0.0.1:9/A.png") -> Segment:
    return {"type": "image", "data": {"file": file, "url": url}}


def as_segments(message: Any, self_id: int) -> list[Segment]:
    """Accept the three legal shapes of a OneBot message, plus ``@bot`` inside a plain string."""
    if isinstance(message, dict):
        return [message]
    if isinstance(message, list):
        return message
    out: list[Segment] = []
    for i, part in enumerate(re.split(r"@bot\b", message)):
        if i:
            out.append(at(self_id))
        if part:
            out.append(text(part))
    return out


def cq(segments: Iterable[Segment]) -> str:
    def esc(value: Any, comma: bool = True) -> str:
        s = str(value).replace("&", "&amp;").replace("[", "&#91;").replace("]", "&#93;")
        return s.replace(",", "&#44;") if comma else s

    return "".join(
        esc(s["data"].get("text", ""), comma=False)
        if s["type"] == "text"
        else "[CQ:"
        + ",".join([s["type"], *(f"{k}={esc(v)}" for k, v in s["data"].items() if v is not None)])
        + "]"
        for s in segments
    )


def plain(message: Any) -> str:
    """The text a person would read in the group, mentions shown as @123."""
    if isinstance(message, str):
        return message
    if isinstance(message, dict):
        message = [message]
    out = []
    for s in message:
        if s["type"] == "text":
            out.append(s["data"]["text"])
        elif s["type"] == "at":
            out.append(f"@{s['data']['qq']}")
        elif s["type"] == "node":
            out.append(plain(s["data"].get("content", "")) + "\n")
    return "".join(out)


# --------------------------------------------------------------------------- world


@dataclass
class Group:
    id: int
    name: str = ""
    members: dict[int, dict[str, Any]] = field(default_factory=dict)

    def member(self, user_id: int, nickname: str, *, card: str = "", role: str = "member") -> Group:
        self.members[user_id] = {
            "user_id": user_id,
            "nickname": nickname,
            "card": card,
            "role": role,
        }
        return self


@dataclass
class Delivered:
    """A message that reached the group, whether or not the bot was told so."""

    t: float
    group_id: int | None
    user_id: int | None
    message_id: int
    message: Any
    action: str
    acknowledged: bool = True

    @property
    def text(self) -> str:
        return plain(self.message)

    @property
    def reply_to(self) -> int | None:
        if isinstance(self.message, list):
            for s in self.message:
                if s["type"] == "reply":
                    return int(s["data"]["id"])
        return None


@dataclass
class World:
    self_id: int = 10000
    nickname: str = "bot"
    profile: str = (
        "napcat"  # napcat | llonebot | lagrange | gocq: changes field shapes and error texts
    )
    groups: dict[int, Group] = field(default_factory=dict)
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    delivered: list[Delivered] = field(default_factory=list)
    uploads: list[dict[str, Any]] = field(default_factory=list)
    max_text: int = 4500  # longer texts fail the way a risk-controlled account fails
    _ids: Any = field(default_factory=lambda: itertools.count(1001))

    def group(self, group_id: int, name: str = "") -> Group:
        g = self.groups.setdefault(group_id, Group(group_id, name or f"group-{group_id}"))
        g.members.setdefault(
            self.self_id,
            {"user_id": self.self_id, "nickname": self.nickname, "card": "", "role": "member"},
        )
        return g

    def next_id(self) -> int:
        return next(self._ids)

    # -- events

    def base(self, post_type: str, **fields: Any) -> dict[str, Any]:
        return {"time": int(time.time()), "self_id": self.self_id, "post_type": post_type, **fields}

    def group_message(
        self, group_id: int, user_id: int, segments: list[Segment], /, **override: Any
    ) -> dict[str, Any]:
        who = self.group(group_id).members.get(user_id) or {
            "user_id": user_id,
            "nickname": str(user_id),
        }
        mid = override.pop("message_id", None) or self.next_id()
        sender = {
            k: who.get(k) for k in ("user_id", "nickname", "card", "role") if who.get(k) is not None
        }
        if self.profile in ("lagrange", "gocq"):
            sender |= {"sex": "unknown", "age": 0, "area": "", "level": "1", "title": ""}
        is_self = user_id == self.self_id
        event = self.base(
            # Lagrange reports its own messages as ordinary ones; the others use message_sent.
            "message_sent" if is_self and self.profile != "lagrange" else "message",
            message_type="group",
            sub_type="normal",
            message_id=mid,
            message_seq=mid,
            group_id=group_id,
            user_id=user_id,
            anonymous=None,
            message=segments,
            raw_message=cq(segments),
            font=14 if self.profile in ("napcat", "llonebot") else 0,
            sender=sender,
        )
        if self.profile in ("napcat", "llonebot"):
            del event["anonymous"]
            event |= {
                "message_format": "array",
                "real_id": mid,
                "group_name": self.group(group_id).name,
            }
        event |= override
        for key in [k for k, v in override.items() if v is ...]:  # message_id=... drops a field
            event.pop(key, None)
        self.messages[mid] = dict(event)
        return event

    def group_upload(self, group_id: int, user_id: int, name: str, size: int) -> dict[str, Any]:
        file: dict[str, Any] = {"id": f"/{name}", "name": name, "size": size, "busid": 102}
        if self.profile in ("lagrange", "gocq"):
            file["url"] = f"http://127.0.0.1:9/{name}"
        if self.profile == "lagrange":
            file["busid"] = 0
        return self.base(
            "notice", notice_type="group_upload", group_id=group_id, user_id=user_id, file=file
        )

    # -- API

    def call(self, action: str, p: dict[str, Any]) -> tuple[Any, str | None]:
        """Return ``(data, error)`` for one API call."""
        action = action.removesuffix("_async").removesuffix("_rate_limited").lstrip(".")
        handler: Callable[..., Any] | None = getattr(self, f"api_{action}", None)
        if handler is None:
            return None, "unsupported"
        try:
            return handler(**p), None
        except ApiError as e:
            return None, str(e)
        except (TypeError, KeyError, ValueError) as e:
            return None, f"bad params: {e}"

    def _send(
        self, action: str, message: Any, group_id: int | None, user_id: int | None
    ) -> dict[str, Any]:
        if message in ("", [], None):
            raise ApiError("empty message")
        if len(plain(message)) > self.max_text:
            raise ApiError("message too long")
        if group_id is not None and int(group_id) not in self.groups:
            raise ApiError("group not found")
        mid = self.next_id()
        segs = as_segments(message, self.self_id) if not isinstance(message, list) else message
        self.delivered.append(
            Delivered(
                time.monotonic(),
                group_id and int(group_id),
                user_id and int(user_id),
                mid,
                segs,
                action,
            )
        )
        if group_id is not None:
            self.messages[mid] = self.group_message(
                int(group_id), self.self_id, segs, message_id=mid
            )
        return {"message_id": mid}

    def api_send_msg(
        self, message: Any, message_type: str | None = None, group_id=None, user_id=None, **_: Any
    ):
        if message_type == "private" or (message_type is None and group_id is None):
            return self._send("send_msg", message, None, user_id)
        return self._send("send_msg", message, group_id, user_id)

    def api_send_group_msg(self, group_id, message: Any, **_: Any):
        return self._send("send_group_msg", message, group_id, None)

    def api_send_private_msg(self, user_id, message: Any, **_: Any):
        return self._send("send_private_msg", message, None, user_id)

    def api_send_group_forward_msg(self, group_id, messages: Any, **_: Any):
        for n in messages:
            d = n["data"]
            if (
                "id" not in d
                and self.profile == "lagrange"
                and not (d.get("uin") or d.get("user_id"))
            ):
                raise ApiError("The input string '' was not in a correct format.")
        out = self._send("send_group_forward_msg", messages, group_id, None)
        return out | {
            "forward_id": f"fwd-{out['message_id']}",
            "res_id": f"fwd-{out['message_id']}",
        }

    def api_handle_quick_operation(
        self, context: dict[str, Any], operation: dict[str, Any], **_: Any
    ):
        """The hidden API that aiocqhttp answers with."""
        if operation.get("reply"):
            self._send(
                "quick_reply", operation["reply"], context.get("group_id"), context.get("user_id")
            )

    def api_get_login_info(self, **_: Any):
        return {"user_id": self.self_id, "nickname": self.nickname}

    def api_get_status(self, **_: Any):
        return {"online": True, "good": True}

    def api_get_version_info(self, **_: Any):
        return {"app_name": f"sim.{self.profile}", "app_version": "0", "protocol_version": "v11"}

    def api_get_group_list(self, **_: Any):
        return [self.api_get_group_info(g) for g in self.groups]

    def api_get_group_info(self, group_id, **_: Any):
        g = self.groups.get(int(group_id))
        if g is None:
            raise ApiError("group not found")
        return {
            "group_id": g.id,
            "group_name": g.name,
            "member_count": len(g.members),
            "max_member_count": 500,
        }

    def api_get_group_member_list(self, group_id, **_: Any):
        return [
            self.api_get_group_member_info(group_id, u) for u in self.groups[int(group_id)].members
        ]

    def api_get_group_member_info(self, group_id, user_id, **_: Any):
        m = self.groups.get(int(group_id), Group(0)).members.get(int(user_id))
        if m is None:
            raise ApiError("member not found")
        return {
            "group_id": int(group_id),
            "join_time": 0,
            "last_sent_time": 0,
            "level": "1",
            "title": "",
            **m,
        }

    def api_get_stranger_info(self, user_id, **_: Any):
        return {"user_id": int(user_id), "nickname": str(user_id), "sex": "unknown", "age": 0}

    def api_get_msg(self, message_id, **_: Any):
        m = self.messages.get(int(message_id))
        if m is None:
            raise ApiError("message not found")
        keep = (
            "time",
            "message_type",
            "message_id",
            "sender",
            "message",
            "raw_message",
            "group_id",
            "user_id",
        )
        return {k: m[k] for k in keep if k in m} | {"real_id": int(message_id)}

    def api_delete_msg(self, message_id, **_: Any):
        if self.messages.pop(int(message_id), None) is None:
            raise ApiError("message not found")

    def api_upload_group_file(
        self, group_id, file: str, name: str = "", folder: str = "", **_: Any
    ):
        path = file.removeprefix("file://")
        if file.startswith("base64://"):
            if self.profile in ("gocq", "lagrange"):  # these read a local path only
                raise ApiError("file not found")
        elif not Path(path).is_file():
            raise ApiError("file not found")
        self.uploads.append(
            {"t": time.monotonic(), "group_id": int(group_id), "file": file[:200], "name": name}
        )
        return {"file_id": f"/{name}"} if self.profile in ("napcat", "llonebot") else None

    def api_set_msg_emoji_like(self, message_id, emoji_id, **_: Any):
        return {"result": 0}

    def api_group_poke(self, group_id, user_id, **_: Any):
        return None


class ApiError(Exception):
    pass


# --------------------------------------------------------------------------- faults


@dataclass
class Fault:
    """What to do to the next ``times`` calls whose action matches ``action`` (a glob).

    outcome:
        ok            answer normally (useful with ``delay``)
        fail          refuse: nothing is delivered, ``status: failed`` with ``retcode``
        ambiguous     deliver, then answer *failed* - NapCat's send timeout
        silent        deliver, never answer - the caller runs into its own timeout
        lost          neither deliver nor answer
        odd_status    ``retcode`` non-zero but ``status`` is not "failed" - Lagrange's upload_group_file
        drop          deliver, then cut the connection before answering
        garbage       answer with a broken JSON frame
    """

    action: str = "*"
    outcome: str = "fail"
    times: int = 1
    delay: float = 0.0
    retcode: int | None = None
    message: str | None = None

    def matches(self, action: str) -> bool:
        return self.times != 0 and fnmatch(action, self.action)


NT_TIMEOUT = (
    "Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg "
    'ListenerName:NodeIKernelMsgListener/onMsgInfoListUpdate EventRet:\n{\n    "result": 0,\n    "errMsg": ""\n}\n'
)


def failed(profile: str, echo: Any, retcode: int | None, message: str | None) -> dict[str, Any]:
    unsupported = message == "unsupported"
    if profile in ("napcat", "llonebot"):
        msg = message or NT_TIMEOUT
        code = retcode or (1404 if unsupported else 1200)
        return {
            "status": "failed",
            "retcode": code,
            "data": None,
            "message": msg,
            "wording": msg,
            "echo": echo,
        }
    if profile == "lagrange":
        return {
            "status": "failed",
            "retcode": retcode or (404 if unsupported else 200),
            "data": None,
            "echo": echo,
        }
    body = {
        "data": None,
        "retcode": retcode or (1404 if unsupported else 100),
        "msg": "SEND_MSG_API_ERROR",
    }
    return body | {
        "wording": message or "blocked by server",
        "message": message or "",
        "status": "failed",
        "echo": echo,
    }


# --------------------------------------------------------------------------- simulator


class Sim:
    def __init__(
        self,
        world: World,
        url: str | None = None,
        *,
        listen: int | None = None,
        token: str | None = None,
        heartbeat: float = 5.0,
        reconnect: float | None = 1.0,
        echo_self: bool = False,
        record: Path | str | None = None,
        answer_pings: bool = True,
    ) -> None:
        if (url is None) == (listen is None):
            raise ValueError(
                "give exactly one of url (reverse websocket) and listen (forward websocket)"
            )
        self.world, self.url, self.listen = world, url, listen
        self.token, self.heartbeat, self.reconnect = token, heartbeat, reconnect
        self.echo_self = echo_self
        self.answer_pings = answer_pings
        self.faults: list[Fault] = []
        self.records: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self._t0 = time.monotonic()
        self._file = open(record, "a", encoding="utf-8") if record else None  # noqa: SIM115
        self._ws: Any = None
        self._up = asyncio.Event()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self.refused: list[str] = []

    # -- lifecycle

    async def __aenter__(self) -> Sim:
        self._spawn(self._serve() if self.listen else self._dial())
        await asyncio.wait_for(self._up.wait(), 30)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        if self._ws is not None:
            await self._ws.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._file:
            self._file.close()

    def _spawn(self, coro: Any) -> None:
        task = asyncio.ensure_future(coro)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dial(self) -> None:
        headers = {
            "X-Self-ID": str(self.world.self_id),
            "X-Client-Role": "Universal",
            "User-Agent": "OneBot/11",
        }
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        while not self._stopping:
            try:
                async with connect(
                    self.url,
                    additional_headers=headers,
                    max_size=None,
                    proxy=None,
                    ping_interval=None,
                    user_agent_header=None,
                ) as ws:
                    await self._session(ws)
            except ConnectionClosed:
                pass
            except Exception as e:  # refused, 403, 404 ...
                self.refused.append(repr(e))
                self._log("conn.refused", error=repr(e))
            if self.reconnect is None:
                return
            await asyncio.sleep(self.reconnect)

    async def _serve(self) -> None:
        async def handler(ws: Any) -> None:
            given = ws.request.headers.get("Authorization")
            if self.token is not None and given != f"Bearer {self.token}":
                await ws.close(1008, "bad token")
                return
            await self._session(ws)

        async with serve(handler, "127.0.0.1", self.listen, max_size=None, ping_interval=None):
            self._up.set()
            await asyncio.get_running_loop().create_future()

    async def _session(self, ws: Any) -> None:
        self._ws = ws
        self._log("conn.open")
        beat: asyncio.Task[Any] | None = None
        try:
            await self._push(
                self.world.base("meta_event", meta_event_type="lifecycle", sub_type="connect")
            )
            self._up.set()
            beat = asyncio.ensure_future(self._beat())
            async for frame in ws:
                self._spawn(self._on_frame(ws, frame))
        except ConnectionClosed:
            pass
        finally:
            if beat:
                beat.cancel()
            if self._ws is ws:
                self._ws = None
                self._up.clear()
            self._log("conn.close", code=ws.close_code, reason=ws.close_reason)

    async def _beat(self) -> None:
        while self.heartbeat > 0:
            await asyncio.sleep(self.heartbeat)
            status = {"online": True, "good": True}
            await self._push(
                self.world.base(
                    "meta_event",
                    meta_event_type="heartbeat",
                    status=status,
                    interval=int(self.heartbeat * 1000),
                )
            )

    # -- traffic

    def _log(self, kind: str, **fields: Any) -> dict[str, Any]:
        rec = {
            "t": round(time.monotonic() - self._t0, 4),
            "wall": round(time.time(), 3),
            "kind": kind,
            **fields,
        }
        self.records.append(rec)
        if self._file:
            self._file.write(json.dumps(rec, ensure_ascii=False) + "\n")
            self._file.flush()
        return rec

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _push(self, event: dict[str, Any]) -> None:
        self._log("event.out", event=event)
        await self._ws.send(json.dumps(event, ensure_ascii=False))

    async def _on_frame(self, ws: Any, frame: str | bytes) -> None:
        try:
            req = json.loads(frame)
            action, params, echo = req["action"], req.get("params") or {}, req.get("echo")
        except (ValueError, KeyError, TypeError):
            self._log("api.bad", frame=str(frame)[:500])
            return
        call = self._log("api.in", action=action, params=params, echo=echo)
        self.calls.append(call)

        fault = next((f for f in self.faults if f.matches(action)), None)
        if fault:
            fault.times -= 1
            call["fault"] = fault.outcome
            if fault.delay:
                await asyncio.sleep(fault.delay)
        outcome = fault.outcome if fault else "ok"

        if outcome in ("fail", "lost", "garbage"):
            data, error = None, fault.message if fault else None
        else:
            before = len(self.world.delivered)
            data, error = self.world.call(action, params)
            fresh = self.world.delivered[before:]
            for d in fresh:
                d.acknowledged = outcome in ("ok", "odd_status")
                if self.echo_self and d.group_id:
                    self._spawn(self._push(self.world.messages[d.message_id]))
        await self._notify()

        if outcome in ("silent", "lost"):
            return
        if outcome == "drop":
            await self.drop("abort")
            return
        if outcome == "garbage":
            await ws.send('{"status": "ok", "retcode"')
            return
        if outcome == "odd_status":
            body = {
                "status": "upload failed",
                "retcode": fault.retcode or -1,
                "data": None,
                "echo": echo,
            }
        elif outcome in ("fail", "ambiguous"):
            body = failed(self.world.profile, echo, fault.retcode, fault.message)
        elif error is not None:
            body = failed(self.world.profile, echo, None, error)
        else:
            body = {
                "status": "ok",
                "retcode": 0,
                "data": data,
                "message": "",
                "wording": "",
                "echo": echo,
            }
        self._log("api.out", action=action, echo=echo, body=body)
        try:
            await ws.send(json.dumps(body, ensure_ascii=False))
        except ConnectionClosed:
            self._log("api.undeliverable", action=action, echo=echo)

    # -- what a test drives

    async def say(
        self, group_id: int, user_id: int, message: Any, /, *, wait_up: bool = True, **override: Any
    ) -> int:
        """Push one group message event and return its id."""
        if wait_up:
            await self._up.wait()
        event = self.world.group_message(
            group_id, user_id, as_segments(message, self.world.self_id), **override
        )
        await self._push(event)
        return event.get("message_id", 0)

    async def raw(self, event: dict[str, Any]) -> None:
        await self._push({**self.world.base("message"), **event})

    async def upload(self, group_id: int, user_id: int, name: str, size: int = 1) -> None:
        await self._push(self.world.group_upload(group_id, user_id, name, size))

    def fault(self, action: str = "*", outcome: str = "fail", **kw: Any) -> Fault:
        f = Fault(action, outcome, **kw)
        self.faults.append(f)
        return f

    async def drop(self, how: str = "close", code: int = 1000) -> None:
        """close: clean handshake; abort: TCP reset; freeze: keep the socket, read nothing (half-open)."""
        ws = self._ws
        if ws is None:
            return
        self._log("conn.drop", how=how)
        if how == "abort":
            ws.transport.abort()
        elif how == "freeze":
            ws.transport.pause_reading()
        else:
            await ws.close(code)

    async def wait_for(self, probe: Callable[[], Any], timeout: float = 10.0) -> Any:
        """Wait until ``probe()`` is truthy and return it."""

        async def loop() -> Any:
            async with self._changed:
                while not (found := probe()):
                    await self._changed.wait()
                return found

        return await asyncio.wait_for(loop(), timeout)

    async def wait_delivered(
        self, *, group_id: int | None = None, match: str = "", after: int = 0, timeout: float = 10.0
    ) -> Delivered:
        """First delivered message number ``after`` or later that fits."""

        def probe() -> Delivered | None:
            for d in self.world.delivered[after:]:
                if (group_id is None or d.group_id == group_id) and re.search(match, d.text):
                    return d
            return None

        return await self.wait_for(probe, timeout)

    def called(self, action: str) -> list[dict[str, Any]]:
        return [c for c in self.calls if fnmatch(c["action"], action)]

    # -- scripts

    async def run_script(self, steps: list[dict[str, Any]]) -> list[str]:
        """Run JSON steps; return the failed expectations (empty when all held)."""
        problems: list[str] = []
        mark = 0
        ids: dict[str, int] = {}
        for n, raw_step in enumerate(steps):
            step = dict(raw_step)
            do = step.pop("do")
            try:
                if do == "say":
                    name = step.pop("as", None)
                    msg = step.pop("message")
                    if (to := step.pop("reply_to", None)) is not None:
                        msg = [reply(ids[to]), *as_segments(msg, self.world.self_id)]
                    mark = len(self.world.delivered)
                    mid = await self.say(step.pop("group"), step.pop("user"), msg, **step)
                    if name:
                        ids[name] = mid
                elif do == "member":
                    self.world.group(step["group"]).member(
                        step["user"],
                        step.get("nickname", str(step["user"])),
                        card=step.get("card", ""),
                        role=step.get("role", "member"),
                    )
                elif do == "upload":
                    await self.upload(
                        step["group"], step["user"], step["name"], step.get("size", 1)
                    )
                elif do == "event":
                    await self.raw(step["event"])
                elif do == "fault":
                    self.fault(**step)
                elif do == "clear_faults":
                    self.faults.clear()
                elif do == "drop":
                    await self.drop(**step)
                elif do == "wait_up":
                    await asyncio.wait_for(self._up.wait(), step.get("timeout", 10))
                elif do == "sleep":
                    await asyncio.sleep(step["s"])
                elif do == "expect":
                    await self.wait_delivered(after=mark, **step)
                elif do == "expect_silence":
                    await asyncio.sleep(step["s"])
                    if extra := self.world.delivered[mark:]:
                        problems.append(
                            f"step {n}: expected silence, got {[d.text[:80] for d in extra]}"
                        )
                elif do == "expect_calls":
                    got = len(self.called(step["action"]))
                    if got != step["count"]:
                        problems.append(
                            f"step {n}: {step['action']} called {got} times, expected {step['count']}"
                        )
                else:
                    problems.append(f"step {n}: unknown step {do!r}")
            except TimeoutError:
                problems.append(
                    f"step {n}: {do} {step} timed out; delivered {[d.text[:80] for d in self.world.delivered[mark:]]}"
                )
        return problems

    def summary(self) -> dict[str, Any]:
        kinds: dict[str, int] = {}
        for r in self.records:
            kinds[r["kind"]] = kinds.get(r["kind"], 0) + 1
        actions: dict[str, int] = {}
        for c in self.calls:
            actions[c["action"]] = actions.get(c["action"], 0) + 1
        return {"kinds": kinds, "actions": actions, "delivered": len(self.world.delivered)}


async def _main(args: argparse.Namespace) -> int:
    world = World(self_id=args.self_id, profile=args.profile)
    for spec in args.group:
        gid, _, users = spec.partition(":")
        g = world.group(int(gid))
        for u in filter(None, users.split(",")):
            uid, _, role = u.partition("/")
            g.member(int(uid), f"user{uid}", role=role or "member")
    sim = Sim(
        world,
        None if args.listen else args.url,
        listen=args.listen,
        token=args.token,
        heartbeat=args.heartbeat,
        reconnect=args.reconnect,
        echo_self=args.echo_self,
        record=args.record,
    )
    async with sim:
        if args.script:
            problems = await sim.run_script(
                json.loads(Path(args.script).read_text(encoding="utf-8"))
            )
        else:
            problems = []
            print(
                "connected; type: GROUP USER message (write @bot to mention), or 'drop'",
                file=sys.stderr,
            )
            while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
                if line == "drop":
                    await sim.drop("abort")
                    continue
                gid, uid, msg = line.split(" ", 2)
                mark = len(world.delivered)
                await sim.say(int(gid), int(uid), msg)
                try:
                    print(
                        "bot:", (await sim.wait_delivered(after=mark, timeout=args.patience)).text
                    )
                except TimeoutError:
                    print("bot: (nothing)")
        print(json.dumps(sim.summary(), ensure_ascii=False))
        for p in problems:
            print("PROBLEM", p)
    return 1 if problems else 0


def main() -> None:
    p = argparse.ArgumentParser(description="OneBot v11 implementation simulator")
    p.add_argument("--url", default="ws://127.0.0.1:8080/onebot/v11/ws")
    p.add_argument(
        "--listen", type=int, help="serve a forward websocket on this port instead of dialling"
    )
    p.add_argument("--self-id", type=int, default=10000)
    p.add_argument("--token")
    p.add_argument(
        "--profile", default="napcat", choices=["napcat", "llonebot", "lagrange", "gocq"]
    )
    p.add_argument("--group", action="append", default=[], metavar="GID:UID/role,...")
    p.add_argument("--heartbeat", type=float, default=5.0)
    p.add_argument("--reconnect", type=float, default=1.0)
    p.add_argument(
        "--echo-self", action="store_true", help="report the bot's own messages back to it"
    )
    p.add_argument("--script")
    p.add_argument("--record")
    p.add_argument("--patience", type=float, default=30.0)
    sys.exit(asyncio.run(_main(p.parse_args())))


if __name__ == "__main__":
    main()
