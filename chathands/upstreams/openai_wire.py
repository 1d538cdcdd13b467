"""What a chat-completions request and its reply look like on the wire. Pure: no I/O.

Shapes: https://platform.openai.com/docs/api-reference/chat, and what vLLM, llama.cpp, Ollama,
DeepSeek, Mistral and OpenRouter send beyond or instead of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Literal

from chathands.emulation.outcome import (
    ChatMessage,
    ModelRequest,
    NativeCall,
    Piece,
    Text,
    Thinking,
    Verbatim,
)
from chathands.errors import (
    UpstreamAuthError,
    UpstreamBusy,
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbage,
    UpstreamNotFound,
    UpstreamRefused,
    UpstreamTimeout,
)
from chathands.limits import REPLY_CAP
from chathands.protocols.openai_messages import message_to_openai
from chathands.upstreams.base import Usage
from chathands.upstreams.sse import EventDecoder, ServerEvent

WIRE_CAP = 32 * 1024 * 1024
"""Bytes of one reply. An event costs about 250 bytes a token, so this is 130,000 tokens of text."""

_BOM = b"\xef\xbb\xbf"
_SURROGATE = re.compile("[\ud800-\udfff]")
_OVERLOADED = 529  # not registered; several model services send it
_BY_STATUS: dict[int, type[UpstreamError]] = {
    HTTPStatus.UNAUTHORIZED: UpstreamAuthError,
    HTTPStatus.FORBIDDEN: UpstreamAuthError,
    HTTPStatus.NOT_FOUND: UpstreamNotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: UpstreamNotFound,  # the path is not the chat path
    HTTPStatus.PAYMENT_REQUIRED: UpstreamBusy,  # the account is empty
    HTTPStatus.TOO_MANY_REQUESTS: UpstreamBusy,
    HTTPStatus.REQUEST_TIMEOUT: UpstreamTimeout,
    _OVERLOADED: UpstreamBusy,
}
_MOVED = (
    "模型地址跳转到了别的地址，请管理员把 CHATHANDS__MODEL__BASE_URL "
    "改成最终地址（注意 http 和 https）。"
)


def request_body(
    request: ModelRequest, *, model: str, temperature: float | None, max_tokens: int | None
) -> dict[str, Any]:
    """The JSON object to post. Tool fields appear only when the request has them.

    `stream_options` is never sent: servers that do not know it answer 400. What a client wants
    passed on is passed on, with nothing of the settings.
    """
    if request.body is not None:
        return {**request.body, "model": model}
    body: dict[str, Any] = {
        "model": model,
        "messages": [_wire_message(message) for message in request.messages],
        "stream": True,
    }
    if temperature is not None:
        body["temperature"] = temperature
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    body.update(request.sampling)
    if request.stop:
        body["stop"] = list(request.stop)
    if request.response_format is not None:
        body["response_format"] = request.response_format
    if request.tools is not None:
        body["tools"] = list(request.tools)
    if request.tool_choice is not None:
        body["tool_choice"] = request.tool_choice
    return body


def _wire_message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any]
    source = message.source
    held = source.result or source if source is not None else None
    if source is not None and held is not None and (held.images or held.parts or held.extra):
        wire = message_to_openai(source)
    else:
        wire = {"role": str(message.role), "content": message.content}
    if message.tool_calls:
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = [dict(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def error_for_status(status: int, detail: str, *, nothing_received: bool = True) -> UpstreamError:
    """The error that stands for an HTTP status, by the status alone, never by its text."""
    kind = _BY_STATUS.get(status)
    sentence = None
    if kind is None:
        if status >= 500:
            kind = UpstreamFailed
        elif status >= 400:
            kind = UpstreamRefused
        else:
            kind = UpstreamGarbage
            sentence = _MOVED if 300 <= status < 400 else None
    return kind(
        f"HTTP {status}: {detail}",
        sentence=sentence,
        nothing_received=nothing_received,
        status=status,
    )


Form = Literal["events", "document"]


class ReplyBody:
    """A reply's body, in whatever form it comes: events, or one JSON document.

    The first character decides, not the Content-Type: servers that ignore `stream` or mislabel
    their stream are common. With `verbatim`, pieces are the JSON as it came, where it came in
    that form. Raises UpstreamError from `feed` and `close`.
    """

    def __init__(self, verbatim: Form | None = None) -> None:
        self._verbatim = verbatim
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.started = False
        """A part of an answer came: from here on the request must not be repeated."""
        self.ended = False
        """The reply is over although more bytes may come: `[DONE]`, or too long."""
        self._form: Form | Literal["unknown"] = "unknown"
        self._head = b""
        self._document: list[bytes] = []
        self._events = EventDecoder()
        self._bytes = 0
        self._characters = 0
        self._half = ""

    @property
    def complete(self) -> bool:
        """Nothing of the answer is missing, although the body may go on."""
        return self.ended or self.finish_reason is not None

    def feed(self, raw: bytes) -> list[Piece]:
        if self.ended:
            return []
        self._bytes += len(raw)
        if self._bytes > WIRE_CAP:
            raise UpstreamGarbage(
                f"the reply is larger than {WIRE_CAP} bytes", nothing_received=not self.started
            )
        if self._form == "unknown":
            raw = self._recognise(raw)
        if self._form == "document":
            self._document.append(raw)
            return []
        if self._form == "events":
            return self._read_events(self._events.feed(raw))
        return []

    def close(self, *, framed: bool) -> list[Piece]:
        """The body's end. `framed`: HTTP itself says that nothing is missing.

        Without that, and with neither `[DONE]` nor a finish reason, the stream was cut.
        """
        pieces: list[Piece] = []
        if self._form == "document":
            pieces = self._read_document(b"".join(self._document))
        elif not self.ended:
            pieces = self._read_events(self._events.close())
        if not self.started:
            raise UpstreamGarbage("the reply has no choices", nothing_received=True)
        if self._form == "events" and not (framed or self.complete):
            raise UpstreamFailed("the stream ended without an end", nothing_received=False)
        self.ended = True
        return pieces

    def _recognise(self, raw: bytes) -> bytes:
        """Decide on the form; gives the bytes to go on with, or none while undecided."""
        self._head += raw
        if _BOM.startswith(self._head):  # also when nothing has come
            return b""
        first = self._head.removeprefix(_BOM).lstrip()[:1]
        if not first:
            return b""
        if first == b"<":
            raise UpstreamGarbage("an HTML page instead of a reply", nothing_received=True)
        self._form = "document" if first in (b"{", b"[") else "events"
        raw, self._head = self._head, b""
        return raw

    def _read_events(self, events: list[ServerEvent]) -> list[Piece]:
        pieces: list[Piece] = []
        for event in events:
            for text, document in self._documents(event.data):
                if self.ended:
                    return pieces
                read = self._read(document)
                if self._verbatim == "events" and isinstance(document, dict):
                    read = [Verbatim(text, document)]
                pieces.extend(read)
        return pieces

    def _documents(self, data: str) -> Iterator[tuple[str, Any]]:
        """The JSON values of one event, as text and read: one, or one a line where blank lines were
        left out."""
        if data.strip() == "[DONE]":
            self.ended = True
            return
        try:
            yield data, _parse(data)
            return
        except ValueError:
            if "\n" not in data:
                raise self._garbage("an event is not JSON") from None
        for line in data.split("\n"):
            if line.strip() == "[DONE]":
                self.ended = True
                return
            try:
                document = _parse(line)
            except ValueError:
                raise self._garbage("an event is not JSON") from None
            yield line, document

    def _read_document(self, raw: bytes) -> list[Piece]:
        text = raw.removeprefix(_BOM).decode("utf-8", "replace")
        try:
            document = _parse(text)
        except ValueError:
            raise self._garbage("the reply is not JSON") from None
        if isinstance(document, list) and len(document) == 1:
            document = document[0]  # Gemini's compatible endpoint wraps its errors in a list
            text = json.dumps(document, ensure_ascii=False)
        pieces = self._read(document)
        if self._verbatim == "document" and isinstance(document, dict):
            return [Verbatim(text, document)]
        return pieces

    def _read(self, document: Any) -> list[Piece]:
        if not isinstance(document, Mapping):
            raise self._garbage("a part of the reply is not a JSON object")
        error = document.get("error")
        if error or document.get("object") == "error":  # the second is vLLM's older form
            raise self._stated_error(error if error else document)
        self._read_usage(document)
        choices = document.get("choices")
        if not isinstance(choices, list) or not choices:
            return []  # usage, a content-filter notice, a ping
        choice = choices[0]
        if not isinstance(choice, Mapping):
            raise self._garbage("a choice is not a JSON object")
        if choice.get("index") not in (None, 0):
            return []
        self.started = True
        delta = choice.get("delta") or choice.get("message")
        pieces = list(self._delta(delta)) if isinstance(delta, Mapping) else []
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        if self._characters > REPLY_CAP:
            self.finish_reason = "length"
            self.ended = True
        return pieces

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thinking, str):
            yield from self._counted(Thinking(_healed(thinking)))
        content = delta.get("content") or delta.get("refusal")
        if isinstance(content, str):
            yield from self._text(content)
        elif isinstance(content, list):
            for part in content:
                yield from self._part(part)
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, Mapping):
                yield self._call(call, position)

    def _part(self, part: Any) -> Iterator[Piece]:
        if isinstance(part, str):
            yield from self._text(part)
        if not isinstance(part, Mapping):
            return
        if isinstance(text := part.get("text"), str):
            yield from self._text(text)
        thinking = part.get("thinking")  # Mistral: again a list of text parts
        for inner in thinking if isinstance(thinking, list) else [{"text": thinking}]:
            if isinstance(inner, Mapping) and isinstance(text := inner.get("text"), str):
                yield from self._counted(Thinking(_healed(text)))

    def _text(self, text: str) -> Iterator[Piece]:
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            # An emoji written as two \u escapes, the second of which is in the next event.
            self._half, text = text[-1], text[:-1]
        yield from self._counted(Text(_healed(text)))

    def _counted(self, piece: Text | Thinking) -> Iterator[Piece]:
        self._characters += len(piece.text)
        if piece.text:
            yield piece

    def _call(self, call: Mapping[str, Any], position: int) -> NativeCall:
        function = call.get("function")
        function = function if isinstance(function, Mapping) else {}
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # Ollama sends an object where a string belongs
            arguments = json.dumps(arguments, ensure_ascii=False)
        arguments = _healed(arguments) if isinstance(arguments, str) else ""
        self._characters += len(arguments)
        index, call_id, name = call.get("index"), call.get("id"), function.get("name")
        return NativeCall(
            index=index if isinstance(index, int) else position,
            id=call_id if isinstance(call_id, str) and call_id else None,
            name=name if isinstance(name, str) and name else None,
            arguments=arguments,
        )

    def _read_usage(self, document: Mapping[str, Any]) -> None:
        usage, timings = document.get("usage"), document.get("timings")
        if isinstance(usage, Mapping):
            details = usage.get("prompt_tokens_details")
            cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
            self.usage = Usage(
                prompt=_tokens(usage.get("prompt_tokens")),
                completion=_tokens(usage.get("completion_tokens")),
                cached=_tokens(cached) or _tokens(usage.get("prompt_cache_hit_tokens")),  # DeepSeek
            )
        elif isinstance(timings, Mapping) and self.usage is None:
            cached = _tokens(timings.get("cache_n"))  # llama.cpp, without include_usage
            self.usage = Usage(
                prompt=cached + _tokens(timings.get("prompt_n")),
                completion=_tokens(timings.get("predicted_n")),
                cached=cached,
            )

    def _stated_error(self, error: Any) -> UpstreamError:
        """The error an upstream wrote into its stream. Its number decides, its words are logged."""
        code, message = None, error
        if isinstance(error, Mapping):
            code = error.get("code") or error.get("status")
            message = error.get("message") or error
        if isinstance(code, str) and code.isdecimal():
            code = int(code)
        detail = f"in the stream: {str(message)[:300]}"
        if isinstance(code, int) and 400 <= code < 600:
            return error_for_status(code, detail, nothing_received=not self.started)
        return UpstreamFailed(detail, nothing_received=not self.started)

    def _garbage(self, detail: str) -> UpstreamGarbage:
        return UpstreamGarbage(detail, nothing_received=not self.started)


def _parse(text: str) -> Any:
    """json.loads, with nesting too deep for it told as the ValueError it is to us."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _tokens(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _healed(text: str) -> str:
    """Surrogate halves joined, lone ones replaced: they could not be encoded anywhere later."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
