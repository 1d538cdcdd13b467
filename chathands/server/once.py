"""Idempotency-Key: the same request is carried out once, and its answer is given again.

Follows draft-ietf-httpapi-idempotency-key-header: a key for another request is 422. The same
request while the first still runs waits for it; after a restart the answer comes from the store.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request

from chathands.conversation import canonical_json
from chathands.server.errors import ApiError
from chathands.server.jobs import Reply, reply_of
from chathands.store import IdempotencyKeys
from chathands.store.idempotency import TooManyKeys

HEADER = "idempotency-key"
REPLAYED = "idempotent-replayed"

BODY_CAP = 1_000_000
"""Bytes of an answer that are kept; only files make one larger, and they are left out then."""

_KEY = re.compile(r'"?([\x21\x23-\x7e]{1,255})"?')
"""Visible ASCII, perhaps in the quotes of a structured field; UUIDs in practice."""

_UNKNOWN = {
    "status": "unknown",
    "content": "the first request with this key was interrupted; whether it took effect is not"
    " known, and it is not repeated",
}


def key_of(request: Request) -> str | None:
    """The key of a request. Raises ApiError 400 when it is none, or more than one."""
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    found = _KEY.fullmatch(given[0].strip()) if len(given) == 1 else None
    if found is None:
        raise ApiError(
            400, "invalid_idempotency_key",
            "send one Idempotency-Key of 1 to 255 visible ASCII characters",
        )  # fmt: skip
    return found[1]


def request_hash(tool: str, arguments: Mapping[str, Any]) -> str:
    """What makes two requests the same; the order of names does not."""
    data = canonical_json([tool, arguments]).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


class NotDone(Exception):
    """Nothing was carried out: the key stays free. Carries the answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class Once:
    """Keys of all callers; `work` gives the answer, or raises NotDone with it."""

    def __init__(self, keys: IdempotencyKeys) -> None:
        self._keys = keys
        self._owner = secrets.token_hex(8)
        self._running: dict[tuple[str, str], asyncio.Future[Reply]] = {}

    async def do(
        self, caller: str, key: str, request: str, work: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """Raises ApiError (409, 422, 429) and StoreError; CancelledError when cancelled, which
        makes the outcome unknown for those who repeat."""
        try:
            before = await self._keys.begin(caller, key, request, self._owner)
        except TooManyKeys:
            raise ApiError(
                429, "too_many_keys", "too many idempotency keys within a day",
                headers={"retry-after": "3600"},
            ) from None  # fmt: skip
        if before is None:
            return await self._first(caller, key, work)
        if before.request != request:
            raise ApiError(
                422, "idempotency_key_reused",
                "this Idempotency-Key was used for another tool or other arguments",
            )  # fmt: skip
        if before.code is not None:
            return Reply(before.code, json.loads(before.body), {REPLAYED: "true"})
        running = self._running.get((caller, key))
        if running is not None:
            reply = await asyncio.shield(running)
            return Reply(reply.status, reply.body, {**reply.headers, REPLAYED: "true"})
        raise ApiError(
            409, "outcome_unknown",
            "the first request with this key runs in another process, or was interrupted with it;"
            " it is not repeated",
        )  # fmt: skip

    async def _first(self, caller: str, key: str, work: Callable[[], Awaitable[Reply]]) -> Reply:
        running = asyncio.get_running_loop().create_future()
        self._running[caller, key] = running
        reply = Reply(502, dict(_UNKNOWN))
        done = True
        try:
            reply = await work()
        except NotDone as end:
            reply, done = end.reply, False
        except asyncio.CancelledError:
            raise
        except Exception as error:
            reply = reply_of(error)
            raise
        finally:
            try:
                if done:
                    await self._keys.finish(caller, key, reply.status, _kept(reply.body))
                else:
                    await self._keys.forget(caller, key)
            finally:
                del self._running[caller, key]
                running.set_result(reply)
        return reply


def _kept(body: Mapping[str, Any]) -> bytes:
    data = canonical_json(body).encode("utf-8", "backslashreplace")
    if len(data) <= BODY_CAP:
        return data
    files = [{k: v for k, v in file.items() if k != "data"} for file in body.get("files", ())]
    return canonical_json({**body, "files": files}).encode("utf-8", "backslashreplace")
