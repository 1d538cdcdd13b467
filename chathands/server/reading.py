"""Reading a request's body within limits: size, type, JSON without tricks, depth."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, NoReturn

from starlette.requests import Request

from chathands.limits import JSON_DEPTH
from chathands.server.errors import ApiError

LINGER_BYTES = 16 * 1024 * 1024
LINGER_SECONDS = 2.0
"""Of a body that is too large, read and thrown away. Clients read the answer only when they have
sent everything, and one that is cut off before reports a broken connection instead of a 413."""


LONGEST_NUMBER = 308
"""Digits of a number that certainly fits a float."""


async def read_capped(request: Request, cap: int) -> bytes:
    """The body, at most `cap` bytes, of which no more than that is kept. Raises ApiError 413."""
    body = bytearray()
    stream = request.stream()
    async for chunk in stream:
        body += chunk
        if len(body) > cap:
            await _linger(stream)
            raise _too_large(cap)
    return bytes(body)


async def _linger(stream: AsyncIterator[bytes]) -> None:
    left = LINGER_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            async for chunk in stream:
                left -= len(chunk)
                if left < 0:
                    return


async def read_object(request: Request, cap: int) -> dict[str, Any]:
    """The JSON object in the body; an empty body is an empty object.

    Raises ApiError: 413, 415 (not JSON by its own account, or compressed), 400.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ApiError(415, "unsupported_encoding", "the body must not be compressed")
    body = await read_capped(request, cap)
    if not body.strip():
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        raise ApiError(
            415, "unsupported_media_type", "send the arguments as content-type: application/json"
        )
    return parse_object(body)


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON object, read strictly: no NaN, no name twice, no number beyond a float, and at most
    64 levels. Raises ApiError 400."""
    try:
        value = json.loads(
            body.decode("utf-8-sig"),
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_no_larger,
            object_pairs_hook=_without_repeats,
        )
    except UnicodeDecodeError:
        raise _bad("the body is not UTF-8") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(
            error, json.JSONDecodeError
        ) else ""  # fmt: skip
        raise _bad(f"the body is not JSON{where}") from None
    if not isinstance(value, dict):
        raise _bad("the body must be a JSON object")
    level: list[Any] = [value]
    for _ in range(JSON_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return value
    raise _too_deep()


def _no_constant(name: str) -> NoReturn:
    raise _bad(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _bad("a number in the body is too large")
    return number


def _no_larger(text: str) -> int:
    """A tool that takes a number would get infinity, which is not what a person was shown."""
    if len(text) > LONGEST_NUMBER:
        _finite(text)
    return int(text)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """What a person approves must be what a tool gets, whichever of two they read."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _bad("an object in the body has a name twice")
    return value


def _bad(message: str) -> ApiError:
    return ApiError(400, "invalid_json", message)


def _too_deep() -> ApiError:
    return ApiError(400, "too_deep", f"the body is nested more than {JSON_DEPTH} levels deep")


def _too_large(cap: int) -> ApiError:
    # What is left of it is not read, so that the connection is of no more use.
    return ApiError(
        413, "too_large", f"the body is larger than {cap} bytes", headers={"connection": "close"}
    )
