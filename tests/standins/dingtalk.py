"""A stand-in for DingTalk's custom robots: checks what they check, answers with their bodies.

In a test:      async with DingTalk(secret="SECx", keywords=("日报",)) as dingtalk: dingtalk.webhook
As a process:   python -m tests.standins.dingtalk --port 0 --secret SECx --keywords 日报,周报
                prints one JSON line {"url", "path"}, which joined are the webhook;
                GET /standin/accepted lists the messages in the group,
                POST /standin/fault with a fault's name queues it for the next push.

Bodies and limits: developers.dingtalk.com "custom robot access" and recorded answers.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast, get_args

from tests.standins.loopback_http import (
    DROP,
    HANG,
    LoopbackServer,
    Request,
    Response,
    serve_forever,
)

BODY_LIMIT = 20_000
PER_MINUTE = 20
HOUR_MS = 3_600_000

Fault = Literal[
    "rate", "waf", "ip", "stopped", "busy", "unsafe", "new_code", "long_sign", "long_expired",
    "no_errcode", "hang", "drop", "taken_then_drop", "cut", "500", "502", "html", "redirect",
]  # fmt: skip

_ANSWERS: dict[str, dict[str, Any]] = {
    "rate": {"errcode": 130101, "errmsg": "send too fast, exceed 20 times per minute"},
    "waf": {
        "status": 1111, "wait": 5, "source": "x5", "punish": "deny", "uuid": "0a1b2c3d4e5f",
    },
    "ip": {"errcode": 310000, "errmsg": "ip 203.0.113.9 not in whitelist"},
    "stopped": {"errcode": 400102, "errmsg": "机器人已停用"},
    "busy": {"errcode": -1, "errmsg": "系统繁忙"},
    "unsafe": {"errcode": 430104, "errmsg": "消息内容不安全"},
    "new_code": {"errcode": 987654, "errmsg": "something nobody has seen"},
    "long_sign": {
        "errcode": 310000,
        "errmsg": "description:机器人发送签名不匹配；"
        "solution:请确认签名和生成签名的时间戳必须都放在调用的网址中，请确认机器人的密钥加密和填写正确；"
        "link:请参考本接口对应文档查看签名方法",
    },
    "long_expired": {
        "errcode": 310000,
        "errmsg": "description:机器人发送签名过期；"
        "solution:签名生成时间和发送时间请保持在 timestampms 以内",
    },
    "no_errcode": {"message": "ok"},
}  # fmt: skip


_NEEDS = {
    "text": ("content",),
    "markdown": ("title", "text"),
    "link": ("title", "text", "messageUrl"),
    "actionCard": ("title", "text"),
}


def _shown(body: dict[str, Any]) -> tuple[str, str]:
    """(title, text) of a message of any kind."""
    part = body[body["msgtype"]]
    return part.get("title", ""), part.get("text") or part.get("content", "")


@dataclass(frozen=True, slots=True)
class Taken:
    """A message the robot posted to its group."""

    title: str
    text: str
    body: dict[str, Any]
    size: int


class DingTalk:
    """One robot. `accepted` are the messages in the group, `requests` everything that came."""

    def __init__(
        self,
        *,
        token: str = "5f0c9a41d7e24b6f8a",
        secret: str | None = None,
        keywords: Sequence[str] = (),
        port: int = 0,
        now: Callable[[], float] = time.time,
        per_minute: int = PER_MINUTE,
    ) -> None:
        self.token = token
        self.secret = secret
        self.keywords = tuple(keywords)
        self.accepted: list[Taken] = []
        self.requests: list[Request] = []
        self.faults: deque[Fault] = deque()
        self._per_minute = per_minute
        self._now = now
        self._times: deque[float] = deque()
        self._server = LoopbackServer(self.handle, port)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def webhook(self) -> str:
        return f"{self.url}/robot/send?access_token={self.token}"

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    def handle(self, request: Request) -> Response:
        if request.path.startswith("/standin/"):
            return self._control(request)
        self.requests.append(request)
        if request.path != "/robot/send":
            return Response.html("<h1>404 Not Found</h1>", 404)
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and fault != "taken_then_drop":
            return self._misbehave(fault)
        refusal = self._refusal(request)
        if refusal:
            return Response.of({"errcode": refusal[0], "errmsg": refusal[1]})
        body = json.loads(request.body)
        title, text = _shown(body)
        self.accepted.append(Taken(title, text, body, len(request.body)))
        self._times.append(self._now())
        if fault == "taken_then_drop":
            return DROP
        return Response.of({"errcode": 0, "errmsg": "ok"})

    def _misbehave(self, fault: Fault) -> Response:
        if fault == "hang":
            return HANG
        if fault == "drop":
            return DROP
        if fault == "cut":
            body = json.dumps({"errcode": 0, "errmsg": "ok"}).encode()
            return Response(200, body, cut=True)
        if fault in ("500", "502"):
            return Response.html(f"<h1>{fault}</h1>", int(fault))
        if fault == "html":
            return Response.html("<html><body>请登录网络认证</body></html>")
        if fault == "redirect":
            return Response(302, headers={"Location": f"{self.url}/elsewhere"})
        return Response.of(_ANSWERS[fault])

    def _refusal(self, request: Request) -> tuple[int, str] | None:
        query = request.query
        if request.method != "POST":
            return 43002, "不合法的请求方法，需要 POST"
        if not request.headers.get("content-type", "").startswith("application/json"):
            return 43004, "无效的HTTP HEADER Content-Type"
        if not query.get("access_token"):
            return 40035, "缺少参数 access_token"
        if query["access_token"] != self.token:
            return 300005, "token is not exist"
        if len(request.body) > BODY_LIMIT:
            return 460101, f"body 大小不合法，不能超过 {BODY_LIMIT}bytes"
        try:
            body = json.loads(request.body)
        except ValueError:
            return 40035, "缺少参数 json"
        kind = body.get("msgtype") if isinstance(body, dict) else None
        if kind not in _NEEDS or not isinstance(body.get(kind), dict):
            return 400105, "不支持的消息类型"
        if missing := [name for name in _NEEDS[kind] if not body[kind].get(name)]:
            return 40035, f"缺少参数 {kind}.{missing[0]}"
        return self._security(query, _shown(body)[1]) or self._rate()

    def _security(self, query: dict[str, str], text: str) -> tuple[int, str] | None:
        if self.secret is not None:
            timestamp = query.get("timestamp", "")
            fresh = timestamp.isdecimal() and abs(int(timestamp) - self._now() * 1000) < HOUR_MS
            if not fresh:
                return 310000, "invalid timestamp"
            signed = f"{timestamp}\n{self.secret}".encode()
            digest = hmac.new(self.secret.encode(), signed, hashlib.sha256).digest()
            if query.get("sign") != base64.b64encode(digest).decode():
                return 310000, "sign not match"
        if self.keywords and not any(word in text for word in self.keywords):
            return 310000, "keywords not in content"
        return None

    def _rate(self) -> tuple[int, str] | None:
        now = self._now()
        while self._times and self._times[0] <= now - 60:
            self._times.popleft()
        if len(self._times) >= self._per_minute:
            return 130101, "send too fast, exceed 20 times per minute"
        return None

    def _control(self, request: Request) -> Response:
        if request.path == "/standin/accepted":
            return Response.of([message.body for message in self.accepted])
        if request.path == "/standin/fault":
            name = request.body.decode()
            if name not in get_args(Fault):
                return Response.of({"unknown fault": name}, 400)
            self.faults.append(cast(Fault, name))
            return Response.of({"queued": name})
        return Response.of({"error": "no such control"}, 404)


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for a DingTalk custom robot.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default="5f0c9a41d7e24b6f8a")
    parser.add_argument("--secret")
    parser.add_argument("--keywords", default="", help="separated by commas")
    arguments = parser.parse_args()
    keywords = [word for word in arguments.keywords.split(",") if word]
    robot = DingTalk(token=arguments.token, secret=arguments.secret, keywords=keywords)
    path = f"/robot/send?access_token={arguments.token}"
    serve_forever(robot.handle, arguments.port, path=path)


if __name__ == "__main__":
    main()
