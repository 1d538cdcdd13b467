"""Errors of the HTTP faces: one value, three shapes. The tool API's is

    {"error": {"code": "invalid_arguments", "message": "…", …}, …}

and below /v1 it is the shape that OpenAI's clients read, or Anthropic's.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from chathands.protocols.anthropic_reply import error_body as anthropic_error
from chathands.protocols.openai import error_body

GATEWAY_PATH = "/v1"

_OPENAI_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}

_ANTHROPIC_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}

HEADERS: Mapping[str, str] = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Answers hold what tools read for one caller, and are never pages."""


class ApiError(Exception):
    """Ends a request. `about` are further members of the error; `beside` stand beside it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        about: Mapping[str, Any] | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.about = dict(about or {})
        self.beside = dict(beside or {})

    @property
    def body(self) -> dict[str, Any]:
        """In the shape of the tool API."""
        error = {"code": self.code, "message": self.message, **self.about}
        return {"error": error, **self.beside}


def too_often(message: str, seconds: int) -> ApiError:
    """429, with the whole seconds after which it is worth trying again."""
    return ApiError(429, "rate_limited", message, headers={"retry-after": str(seconds)})


def json_response(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Compact JSON; lone surrogates, which models write, are escaped."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return json_bytes(text.encode("utf-8", "backslashreplace"), status, headers)


def json_bytes(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(body, status, {**HEADERS, **(headers or {})}, media_type="application/json")


def in_gateway(request: Request) -> bool:
    path = request.url.path
    return path == GATEWAY_PATH or path.startswith(f"{GATEWAY_PATH}/")


def speaks_anthropic(request: Request) -> bool:
    """Whether the client is one of Anthropic's protocol, whose SDKs send their version always."""
    path = request.url.path
    return (
        path == "/v1/messages"
        or path.startswith("/v1/messages/")
        or (path.startswith("/v1/models") and "anthropic-version" in request.headers)
    )


def error_response(request: Request, error: ApiError) -> Response:
    """In the shape of the face that was asked."""
    body = error.body
    if speaks_anthropic(request):
        kind = _ANTHROPIC_TYPES.get(error.status)
        kind = kind or ("invalid_request_error" if error.status < 500 else "api_error")
        request_id = f"req_{secrets.token_hex(12)}"
        body = anthropic_error(kind, error.message, request_id)
        return json_response(body, error.status, {"request-id": request_id, **error.headers})
    if in_gateway(request):
        kind = _OPENAI_TYPES.get(error.status, "invalid_request_error")
        kind = kind if error.status < 500 else "server_error"
        body = error_body(error.message, kind, code=error.code)
    return json_response(body, error.status, error.headers)
