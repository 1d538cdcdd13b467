"""The gateway's part of the OpenAPI page. The bodies are the protocols' own; the page shows what is
read of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_ERROR_OF_OPENAI = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_ERROR_OF_ANTHROPIC = {
    "type": "object",
    "required": ["type", "error"],
    "properties": {
        "type": {"const": "error"},
        "error": {
            "type": "object",
            "required": ["type", "message"],
            "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
        },
    },
}
_EITHER = {"anyOf": [_ERROR_OF_OPENAI, _ERROR_OF_ANTHROPIC]}
_VERSION = {
    "name": "anthropic-version",
    "in": "header",
    "description": "With it the answer has Anthropic's shape.",
    "schema": {"type": "string"},
}

_PAGE = tuple(
    {"name": name, "in": "query", "schema": schema}
    for name, schema in (
        ("order", {"enum": ["asc", "desc"]}),
        ("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
        ("after", {"type": "string"}),
    )
)


def gateway_paths(schemas: dict[str, Any]) -> dict[str, Any]:
    """The paths; what they refer to is added to `schemas`."""
    from chathands.protocols.anthropic_request import MessagesRequest
    from chathands.protocols.openai import ChatRequest
    from chathands.protocols.responses import ResponsesRequest

    chat, messages = _ref(ChatRequest, schemas), _ref(MessagesRequest, schemas)
    responses = _ref(ResponsesRequest, schemas)
    id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "/v1/chat/completions": {"post": _post("A reply, with real tool calls.", chat)},
        "/v1/messages": {"post": _post("The same for Anthropic's SDKs.", messages, _MESSAGES)},
        "/v1/messages/count_tokens": {
            "post": _post("How long a request is.", messages, _MESSAGES, stream=False)
        },
        "/v1/responses": {"post": _post("The same for the Responses API.", responses)},
        "/v1/responses/input_tokens": {
            "post": _post("How long a request is.", responses, stream=False)
        },
        "/v1/responses/{id}": {
            "get": _get("A stored response.", _ERROR_OF_OPENAI, id),
            "delete": _get("Forget it.", _ERROR_OF_OPENAI, id),
        },
        "/v1/responses/{id}/input_items": {
            "get": _get("What it was asked.", _ERROR_OF_OPENAI, id, *_PAGE)
        },
        "/v1/models": {"get": _get("The models of this token.", _EITHER, _VERSION)},
        "/v1/models/{model}": {"get": _get("One model.", _EITHER, _VERSION, name)},
    }


def watching_paths() -> dict[str, Any]:
    """What those who run it look at."""
    ready = _get("Whether a request has a chance.", {"type": "object"})
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "/health": {"get": {**_get("The process answers.", {"type": "object"}), "security": []}},
        "/health/ready": {"get": {**ready, "security": []}},
        "/metrics": {
            "get": {
                "summary": "Counts in Prometheus' text format.",
                "responses": {
                    "200": {"description": "Counts.", "content": text},
                    "default": {"$ref": "#/components/responses/Error"},
                },
            }
        },
    }


_MESSAGES = _ERROR_OF_ANTHROPIC


def _ref(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    template = "#/components/schemas/{model}"
    schema = model.model_json_schema(ref_template=template)
    schemas |= schema.pop("$defs", {})
    schemas[model.__name__] = schema
    return {"$ref": template.format(model=model.__name__)}


def _post(
    what: str,
    body: dict[str, Any],
    error: dict[str, Any] = _ERROR_OF_OPENAI,
    *,
    stream: bool = True,
) -> dict[str, Any]:
    answer = _json(what, {"type": "object"})
    if stream:
        answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    return {
        "summary": what,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": answer, "default": _json("Why not.", error)},
    }


def _get(what: str, error: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": what,
        "parameters": list(parameters),
        "responses": {"200": _json(what, {"type": "object"}), "default": _json("Why not.", error)},
    }


def _json(what: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": what, "content": {"application/json": {"schema": schema}}}
