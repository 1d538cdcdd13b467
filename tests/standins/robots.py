"""Stand-ins for WeCom's and Feishu's robots: they check what those check, and answer with their
bodies. DingTalk's has a file of its own.

    async with WeCom() as wecom: wecom.webhook          wecom.accepted: bodies in the group
    async with Feishu(secret="s", keywords=("日报",)) as feishu: feishu.webhook

Bodies and limits: developer.work.weixin.qq.com "group robot", open.feishu.cn "custom bot guide".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from tests.standins.loopback_http import DROP, HANG, LoopbackServer, Request, Response

WAF = {"status": 1111, "wait": 5, "source": "x5", "punish": "deny", "uuid": "0a1b2c3d4e5f"}


class Robot(ABC):
    """What both have: faults below the protocol, and counting."""

    rates: ClassVar[Sequence[tuple[int, float]]] = ()
    faulty: ClassVar[dict[str, Any]] = {}
    """Name of a fault → the body that is answered."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self.accepted: list[dict[str, Any]] = []
        self.requests: list[Request] = []
        self.sizes: list[int] = []
        self.faults: deque[str] = deque()
        self._now = now
        self._times: list[float] = []
        self._server = LoopbackServer(self.handle)

    @property
    def url(self) -> str:
        return self._server.url

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    def handle(self, request: Request) -> Response:
        self.requests.append(request)
        fault = self.faults.popleft() if self.faults else ""
        if fault and fault != "taken_then_drop":
            return self._misbehave(fault)
        answer = self.answer(request)
        return DROP if fault == "taken_then_drop" else Response.of(answer)

    @abstractmethod
    def answer(self, request: Request) -> dict[str, Any]:
        """What the platform says to this request."""

    def take(self, body: dict[str, Any], size: int) -> None:
        self.accepted.append(body)
        self.sizes.append(size)
        self._times.append(self._now())

    def too_fast(self) -> bool:
        now = self._now()
        return any(
            sum(at > now - seconds for at in self._times) >= most for most, seconds in self.rates
        )

    def _misbehave(self, fault: str) -> Response:
        if fault == "hang":
            return HANG
        if fault == "drop":
            return DROP
        if fault == "cut":
            return Response(200, json.dumps({"errcode": 0, "code": 0}).encode(), cut=True)
        if fault in ("500", "502"):
            return Response.html(f"<h1>{fault}</h1>", int(fault))
        if fault == "html":
            return Response.html("<html><body>请登录网络认证</body></html>")
        if fault == "huge":
            return Response.html("x" * 3_000_000)
        if fault == "redirect":
            return Response(302, headers={"Location": f"{self.url}/elsewhere"})
        if fault == "waf":
            return Response.of(WAF)
        if fault == "no_code":
            return Response.of({"message": "ok"})
        if fault == "list":
            return Response.of([0])
        return Response.of(self.faulty[fault])


def _wecom(code: int, words: str) -> dict[str, Any]:
    hint = "hint: [1700000000123456789012345], from ip: 203.0.113.9, more info at "
    link = f"https://open.work.weixin.qq.com/devtool/query?e={code}"
    return {"errcode": code, "errmsg": f"{words}, {hint}{link}"}


class WeCom(Robot):
    rates = ((20, 60),)
    faulty: ClassVar = {
        "rate": _wecom(45009, "api freq out of limit"),
        "busy": {"errcode": -1, "errmsg": "system busy"},
        "stopped": _wecom(93004, "bot disabled"),
        "left": _wecom(93008, "robot not in group"),
        "new_code": _wecom(87654, "something nobody has seen"),
    }

    def __init__(self, *, key: str = "693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa", **more: Any) -> None:
        super().__init__(**more)
        self.key = key
        self.uploads: dict[str, tuple[str, bytes]] = {}

    @property
    def webhook(self) -> str:
        return f"{self.url}/cgi-bin/webhook/send?key={self.key}"

    def answer(self, request: Request) -> dict[str, Any]:
        if request.method != "POST":
            return _wecom(43002, "require POST method")
        if request.query.get("key") != self.key:
            return _wecom(93000, "invalid webhook url")
        if request.path == "/cgi-bin/webhook/upload_media":
            return self._upload(request)
        try:
            body = json.loads(request.body)
        except ValueError:
            return _wecom(47001, "data format error")
        refusal = self._refusal(body)
        if refusal:
            return _wecom(*refusal)
        if self.too_fast():
            return self.faulty["rate"]
        self.take(body, len(request.body))
        return {"errcode": 0, "errmsg": "ok"}

    def _refusal(self, body: dict[str, Any]) -> tuple[int, str] | None:
        kind = body.get("msgtype")
        content = body.get(kind) if isinstance(kind, str) else None
        limits = {"text": 2048, "markdown": 4096, "markdown_v2": 4096}
        if not isinstance(content, dict) or kind not in (*limits, "image", "file"):
            return 40008, "invalid message type"
        if kind in limits:
            text = content.get("content")
            if not text:
                return 44004, "empty content"
            if len(text.encode()) > limits[kind]:
                return 40058, f"{kind}.content exceed max length {limits[kind]}"
        elif kind == "image":
            data = base64.b64decode(content["base64"], validate=True)
            if hashlib.md5(data).hexdigest() != content["md5"]:
                return 301019, "image md5 not match"
            if len(data) > 2_097_152:
                return 40009, "invalid image size"
        elif content.get("media_id") not in self.uploads:
            return 40007, "invalid media_id"
        return None

    def _upload(self, request: Request) -> dict[str, Any]:
        kind = request.headers.get("content-type", "")
        boundary = kind.partition("boundary=")[2].encode()
        if not kind.startswith("multipart/form-data") or not boundary:
            return _wecom(41005, "media data missing")
        head, _, rest = request.body.partition(b"\r\n\r\n")
        data = rest.rpartition(b"\r\n--" + boundary + b"--")[0]
        if b'name="media"' not in head or len(data) <= 5:
            return _wecom(40006, "invalid media size")
        name = head.partition(b'filename="')[2].partition(b'"')[0].decode()
        media = f"3a8asd892asd8asd{len(self.uploads)}"
        self.uploads[media] = (name, data)
        said = {"type": request.query.get("type"), "media_id": media, "created_at": "1380000000"}
        return {"errcode": 0, "errmsg": "ok", **said}


def _feishu(code: int, words: str) -> dict[str, Any]:
    return {"code": code, "msg": words, "data": {}}


class Feishu(Robot):
    rates = ((100, 60), (5, 1))
    faulty: ClassVar = {
        "rate": _feishu(11232, "frequency limited psm[lark.oapi.app_platform_runtime]appID[1500]"),
        "ip": _feishu(19022, "Ip Not Allowed"),
        "new_code": _feishu(87654, "something nobody has seen"),
    }

    def __init__(
        self,
        *,
        hook: str = "1f2e3d4c-aaaa-bbbb-cccc-0123456789ab",
        secret: str | None = None,
        keywords: Sequence[str] = (),
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.hook, self.secret, self.keywords = hook, secret, tuple(keywords)

    @property
    def webhook(self) -> str:
        return f"{self.url}/open-apis/bot/v2/hook/{self.hook}"

    def answer(self, request: Request) -> dict[str, Any]:
        if request.path != f"/open-apis/bot/v2/hook/{self.hook}":
            return _feishu(19001, "param invalid: incoming webhook access token invalid")
        if len(request.body) > 20_000:
            return _feishu(9499, "Bad Request: request body too large")
        try:
            body = json.loads(request.body)
        except ValueError:
            return _feishu(9499, "Bad Request")
        if self.secret is not None and not self._signed(body):
            words = "sign match fail or timestamp is not within one hour from current time"
            return _feishu(19021, words)
        kind = body.get("msg_type")
        content = body.get("card" if kind == "interactive" else "content")
        if kind not in ("text", "post", "interactive") or not isinstance(content, dict):
            return _feishu(19002, "params error, msg_type need")
        said = json.dumps(content, ensure_ascii=False)
        if self.keywords and not any(word in said for word in self.keywords):
            return _feishu(19024, "Key Words Not Found")
        if self.too_fast():
            return self.faulty["rate"]
        self.take(body, len(request.body))
        done = {"StatusCode": 0, "StatusMessage": "success"}
        return {**done, "code": 0, "data": {}, "msg": "success"}

    def _signed(self, body: dict[str, Any]) -> bool:
        timestamp = str(body.get("timestamp", ""))
        if not timestamp.isdecimal() or abs(int(timestamp) - self._now()) > 3600:
            return False
        key = f"{timestamp}\n{self.secret}".encode()
        digest = hmac.new(key, b"", hashlib.sha256).digest()
        return body.get("sign") == base64.b64encode(digest).decode()
