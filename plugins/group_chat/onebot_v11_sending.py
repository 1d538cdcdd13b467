"""The sending half of OneBot v11: messages, images, forwards and files out, and what became of
them.

Shapes and failures are those of NapCat, LLOneBot, Lagrange v1 and go-cqhttp, as measured against
nonebot-adapter-onebot 2.4.6 and read in their sources.
"""

from __future__ import annotations

import asyncio
import base64
import re
import tempfile
from pathlib import Path
from typing import Any, Literal

from nonebot import get_bots
from nonebot.adapters import Bot as BaseBot
from nonebot.adapters.onebot.v11 import (
    ActionFailed,
    ApiNotAvailable,
    Message,
    MessageSegment,
    NetworkError,
)
from nonebot.adapters.onebot.v11 import adapter as adapter_module
from nonebot.log import logger

from chathands.bounded import Bounded
from plugins.group_chat.messages import Fate, Outgoing, Place, Sent
from plugins.group_chat.onebot_v11_calls import BROKEN, FAILURES, LOOKUP_SECONDS, NO_ANSWER
from plugins.group_chat.onebot_v11_events import as_object

RECONNECT_CHECK = 0.1
"""Between two looks for a bot that is away: a hook would need NoneBot's lifespan to be running."""
OURS_KEPT = 2048
"""Messages of the bot whose ids are remembered; people quote what is still on the screen."""
UPLOAD_BYTES_PER_SECOND = 256_000
"""What NapCat itself expects when it decides how long to wait for its own upload."""

_READS_PATHS = ("lagrange", "cqhttp", "gocq")
"""Implementations whose file upload takes a path of their own machine and nothing else."""

_NOT_DONE = {404, 1400, 1401, 1403, 1404}
"""Unknown call, bad parameters, no permission: nothing was tried, with or without words."""

_FINAL = re.compile(
    r"\bresult\W{0,4}120\b|禁言|被移除|muted|banned|group not found|not in (the )?group"
)
"""120 is QQ's own number for a muted sender."""

_CHECK = "handle_api_result"
"""The adapter's function that looks at every answer."""

Transfer = Literal["auto", "base64", "path"]


def install_sending() -> None:
    """Make the adapter notice failures that do not call themselves `failed`. Once, at import.

    Lagrange's upload_group_file puts its error text into `status`; the adapter takes everything
    but "failed" for success, and gives the same None for both.
    """
    check = getattr(adapter_module, _CHECK)
    if getattr(check, "strict", False):
        return

    def strict(result: dict[str, Any] | None) -> Any:
        answer = result if isinstance(result, dict) else {}
        odd = answer.get("status") not in ("ok", "async", "failed")
        if odd and answer.get("retcode") not in (0, None):
            said = str(answer.get("status") or "")
            raise ActionFailed(**{"message": said, **answer, "status": "failed"})
        return check(result)

    strict.strict = True  # type: ignore[attr-defined]
    setattr(adapter_module, _CHECK, strict)


class OneBotSending:
    """Sends through every OneBot v11 bot that is connected."""

    def __init__(self) -> None:
        self.transfer: Transfer = "auto"
        """How files are handed over; `auto` goes by the implementation."""
        self._ours: Bounded[str, None] = Bounded(OURS_KEPT)
        """Ids of messages we sent: a quote of one is meant for us even when get_msg fails."""
        self._peers: dict[str, str] = {}
        """Bot id → name of the implementation it is connected to, lower case."""

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        """Send one message; see `messages.Line`. What is text leaves in text segments only."""
        bot = get_bots().get(message.place.bot_id)
        if bot is None:
            return Sent(Fate.DOWN, detail="not connected")
        if message.kind == "file":
            return await self._send_file(bot, message, seconds)
        api, content = _content(message)
        try:
            answer = await bot.call_api(
                api, **_target(message.place, api), **content, _timeout=seconds
            )
        except FAILURES as error:
            sent = _failure(bot, error)
            if sent.fate is Fate.UNKNOWN and await self._unquotable(bot, error, message.quote):
                return Sent(Fate.REFUSED, detail=sent.detail)
            return sent
        message_id = str(as_object(answer).get("message_id") or "") or None
        if message_id is not None:
            self._ours[f"{message.place.bot_id}:{message_id}"] = None
        return Sent(Fate.SENT, message_id)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        """Wait until that bot is connected; False when it is not within `seconds`."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while bot_id not in get_bots():
            if clock() >= until:
                return False
            await asyncio.sleep(RECONNECT_CHECK)
        return True

    def is_ours(self, bot_id: str, message_id: str) -> bool:
        """Whether the bot sent that message, as far as is remembered."""
        return f"{bot_id}:{message_id}" in self._ours

    async def _unquotable(self, bot: BaseBot, error: Exception, quote: str | None) -> bool:
        """Whether a bare failure surely comes from a quote that the other side cannot find.

        Lagrange answers every exception with 200 and no words. Building a reply to a message it
        does not know is one, and happens before anything is sent; that it does not know it, it
        says of get_msg too.
        """
        if not quote or not isinstance(error, ActionFailed) or error.info.get("retcode") != 200:
            return False
        try:
            await bot.call_api("get_msg", message_id=int(quote), _timeout=LOOKUP_SECONDS)
        except ActionFailed:
            return True
        except NO_ANSWER:
            return False
        return False

    # -- files

    async def _send_file(self, bot: BaseBot, message: Outgoing, seconds: float) -> Sent:
        assert message.file is not None
        name, data = message.file
        seconds += len(data) / UPLOAD_BYTES_PER_SECOND
        sent = Sent(Fate.REFUSED, detail="no way to hand a file over")
        for way in await self._ways(bot):
            upload = self._by_path if way == "path" else self._by_base64
            sent = await upload(bot, message.place, name, data, seconds)
            if sent.fate is not Fate.REFUSED or sent.final:
                break
            logger.info(f"file refused by {way}: {sent.detail}")
            self._peers.pop(bot.self_id, None)  # perhaps another implementation by now
        return sent

    async def _ways(self, bot: BaseBot) -> tuple[Literal["base64", "path"], ...]:
        """NapCat and LLOneBot take base64, Lagrange and go-cqhttp a path. Where it is not known:
        base64 first, which does not need both on one machine."""
        if self.transfer != "auto":
            return (self.transfer,)
        peer = await self._peer(bot)
        if any(name in peer for name in _READS_PATHS):
            return ("path",)
        return ("base64",) if peer else ("base64", "path")

    async def _peer(self, bot: BaseBot) -> str:
        if bot.self_id not in self._peers:
            try:
                answer = await bot.call_api("get_version_info", _timeout=LOOKUP_SECONDS)
            except FAILURES as error:
                logger.info(f"get_version_info failed: {error!r}")
                return ""  # asked again for the next file
            self._peers[bot.self_id] = str(as_object(answer).get("app_name") or "").lower()
        return self._peers[bot.self_id]

    async def _by_base64(
        self, bot: BaseBot, place: Place, name: str, data: bytes, seconds: float
    ) -> Sent:
        return await _upload(bot, place, name, _base64(data), seconds)

    async def _by_path(
        self, bot: BaseBot, place: Place, name: str, data: bytes, seconds: float
    ) -> Sent:
        """Through a file that is there until the other side has answered."""
        try:
            with tempfile.TemporaryDirectory(prefix="chathands-") as directory:
                path = Path(directory, "file")
                await asyncio.to_thread(path.write_bytes, data)
                return await _upload(bot, place, name, str(path), seconds)
        except OSError as error:  # of the disk: the upload's own are values by now
            return Sent(Fate.REFUSED, detail=repr(error))


async def _upload(bot: BaseBot, place: Place, name: str, file: str, seconds: float) -> Sent:
    api = "upload_private_file" if place.private else "upload_group_file"
    try:
        await bot.call_api(api, **_target(place, api), file=file, name=name, _timeout=seconds)
    except FAILURES as error:
        return _failure(bot, error)
    return Sent(Fate.SENT)


def _content(message: Outgoing) -> tuple[str, dict[str, Any]]:
    """The call that sends it, and its content."""
    if message.kind == "forward":
        kind = "private" if message.place.private else "group"
        nodes = [_node(node, message.place.bot_id) for node in message.nodes]
        return f"send_{kind}_forward_msg", {"messages": nodes}
    content = Message()
    if message.quote and message.quote != "0":
        content.append(MessageSegment.reply(int(message.quote)))
    if message.mention and message.mention.isdecimal() and not message.place.private:
        content.append(MessageSegment.at(int(message.mention)))  # a number: never "all"
        content.append(MessageSegment.text(" "))
    # Never Message(text) and never a bare string: both would turn [CQ:...] in it into segments.
    if message.text:
        content.append(MessageSegment.text(message.text))
    if message.kind == "image":
        content.append(_image(message.image))
    return "send_msg", {"message": content}


def _target(place: Place, api: str) -> dict[str, Any]:
    """Whom a call is for; only send_msg has to be told of what type the chat is."""
    target: dict[str, Any] = (
        {"user_id": int(place.user_id)}
        if place.group_id is None
        else {"group_id": int(place.group_id)}
    )
    if api == "send_msg":
        target = {"message_type": "private" if place.private else "group", **target}
    return target


def _node(node: str | bytes, bot_id: str) -> dict[str, Any]:
    """One entry of a forward: `user_id` and `nickname` of the spec, and go-cqhttp's `uin` and
    `name`, without which older Lagrange fails. One segment a node: NapCat loses more (#568)."""
    segment = MessageSegment.text(node) if isinstance(node, str) else _image(node)
    who = {"user_id": bot_id, "nickname": "回答", "uin": bot_id, "name": "回答"}
    content = [{"type": segment.type, "data": segment.data}]
    return {"type": "node", "data": {**who, "content": content}}


def _image(data: bytes) -> MessageSegment:
    return MessageSegment("image", {"file": _base64(data)})


def _base64(data: bytes) -> str:
    return "base64://" + base64.b64encode(data).decode("ascii")


def _failure(bot: BaseBot, error: Exception) -> Sent:
    detail = repr(error)
    return Sent(_fate(bot, error), detail=detail, final=_FINAL.search(detail) is not None)


def _fate(bot: BaseBot, error: Exception) -> Fate:
    """What became of a send that raised. When in doubt: unknown, and so never repeated."""
    if isinstance(error, (ApiNotAvailable, *BROKEN)):
        return Fate.DOWN
    if isinstance(error, NetworkError):
        # With an HTTP client driver loaded, a socket that is down shows as a failed HTTP request
        # to the address "None".
        connections = getattr(bot.adapter, "connections", {})
        roots = getattr(getattr(bot.adapter, "onebot_config", None), "onebot_api_roots", {})
        down = bot.self_id not in connections and bot.self_id not in roots
        return Fate.DOWN if down and "timeout" not in str(error.msg).lower() else Fate.UNKNOWN
    info = error.info if isinstance(error, ActionFailed) else {}
    if info.get("retcode") in _NOT_DONE:
        return Fate.REFUSED
    said = " ".join(str(info.get(key) or "") for key in ("message", "wording", "msg")).strip()
    # NapCat's 1200 "Timeout: NTEvent ... sendMsg" was delivered in most reports; Lagrange answers
    # every exception with a bare 200.
    return Fate.UNKNOWN if not said or "timeout" in said.lower() else Fate.REFUSED
