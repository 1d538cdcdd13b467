"""An upstream that speaks the OpenAI chat-completions protocol over HTTP.

The connection, deadlines and the one repetition are here; what the bytes mean is in openai_wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

import httpx

from chathands.emulation.outcome import ModelRequest, Piece
from chathands.errors import (
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbage,
    UpstreamTimeout,
)
from chathands.upstreams.address import (
    basic,
    chat_url,
    checked_key,
    is_loopback,
    query_values,
    retry_after,
)
from chathands.upstreams.base import Usage
from chathands.upstreams.http_faults import FAULTS, fault_of
from chathands.upstreams.openai_wire import Form, ReplyBody, error_for_status, request_body

CONNECT_SECONDS = 5.0
"""A host that takes longer to accept a connection is down, and the run needs its time."""
PAUSE_SECONDS = 0.3
"""Before the one repetition: long enough for a worker that is being restarted behind a proxy."""
RETRY_AFTER_CAP = 8.0
"""A Retry-After beyond this is not waited for: people would rather be told that it is busy."""
WORTH_TRYING_SECONDS = 1.0
"""With less than this left no model answers, so nothing is repeated."""
LINGER_SECONDS = 2.0
"""After the finish reason: usage comes within milliseconds, a server that forgets to end never."""
DRAIN_SECONDS = 0.1
"""After `[DONE]`: the body's end is already under way; reading it keeps the connection usable."""
ERROR_BODY_BYTES = 2048
ERROR_BODY_SECONDS = 1.0
HALF_A_KEY = 6
"""Characters: what is shorter at the end of a cut text says nothing (`sk-ab`)."""

_GATEWAY_FAULTS = frozenset({502, 503, 504})
_TOO_MANY = 429


class OpenAIChat:
    """A model behind `POST {base_url}/chat/completions`.

    `base_url` may end in /v1, /v1/ or the whole chat path. `local`: it runs on this machine for
    us alone. `more_keys` are others that a request may ask to be sent with. Raises ConfigError for
    an address or a key that can never work.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        api_key: str | None = None,
        more_keys: Sequence[str] = (),
        temperature: float | None = 0.1,
        max_tokens: int | None = 1024,
        context: int = 8192,
        local: bool = False,
    ) -> None:
        self.name = name
        self.context = context
        self.local = local
        self.temperature = temperature
        self.max_tokens = max_tokens
        url = chat_url(base_url)
        self.keys = tuple(filter(None, map(checked_key, (api_key, *more_keys))))
        # Some write a key into the address, where errors that show the whole request repeat it.
        self._secrets = (*self.keys, *filter(None, (url.password, *query_values(url))))
        self._basic = basic(url)
        # Out of the address: aiohttp refuses credentials there beside an Authorization header.
        self._url = url.copy_with(username=None, password=None)
        self._client: httpx.AsyncClient | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"OpenAIChat({self.where!r}, name={self.name!r})"

    @property
    def where(self) -> str:
        """The address for logs: without user, password and query."""
        return str(self._url.copy_with(query=None, fragment=None))

    def stream(
        self,
        request: ModelRequest,
        *,
        timeout: float,
        max_tokens: int | None = None,
        model: str | None = None,
        key: str | None = None,
        patient: bool = True,
    ) -> ChatStream:
        """One reply, on its way once it is iterated.

        `max_tokens`, `model` and `key` are for this request alone (None: the upstream's own).
        Unless `patient`, a status that asks to come back later is an error at once: whoever asks
        has others to ask.
        """
        body = request_body(
            request,
            model=model or self.name,
            temperature=self.temperature,
            max_tokens=max_tokens or self.max_tokens,
        )
        verbatim: Form | None = None
        if request.body is not None:
            verbatim = "events" if body.get("stream") else "document"
        return ChatStream(self, body, timeout, key=key, patient=patient, verbatim=verbatim)

    async def aclose(self) -> None:
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def send(self, body: dict[str, Any], key: str | None = None) -> httpx.Response:
        """Post `body`; gives the response when its head has come. For ChatStream."""
        if self._closed:
            raise UpstreamFailed("this upstream has been closed", nothing_received=True)
        client = self._client
        if client is None:
            client = self._client = self._new_client()
        # A lone surrogate in what a person pasted must not break the request.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        key = key or (self.keys[0] if self.keys else None)
        authorization = f"Bearer {key}" if key else self._basic
        headers = {"Authorization": authorization} if authorization else None
        request = client.build_request("POST", self._url, content=content, headers=headers)
        return await client.send(request, stream=True)

    def redact(self, text: str) -> str:
        """`text` without the keys, which some services repeat in their error messages."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
            for length in range(min(len(secret), len(text)) - 1, HALF_A_KEY - 1, -1):
                if text.endswith(secret[:length]):  # where a long text was cut off
                    text = f"{text[:-length]}***"
                    break
        return text

    def _new_client(self) -> httpx.AsyncClient:
        from httpx_aiohttp import HttpxAiohttpClient  # 0.2 s, paid by the first request

        headers = {
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",  # a compressed stream arrives in lumps
            "Content-Type": "application/json",
            "User-Agent": "chathands",
        }
        if self.local:
            # llama.cpp's server closes a kept connection just after a stream, without saying so.
            headers["Connection"] = "close"
        if self._url.query:
            # httpx logs whole addresses at INFO, and some services want their key in the query.
            logging.getLogger("httpx").setLevel(logging.WARNING)
        if self._url.scheme == "https":
            tls = httpx.create_ssl_context()
        else:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used; saves loading the CA bundle
        return HttpxAiohttpClient(
            headers=headers,
            verify=tls,
            trust_env=not is_loopback(self._url.host),  # a proxy cannot reach our loopback
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),  # the rest: the stream's deadline
            # 0: no limit. The agent's gate decides how much goes on at once, not a silent queue.
            limits=httpx.Limits(max_connections=0, keepalive_expiry=15),
        )


class ChatStream:
    """A ModelStream over one HTTP response. Iterated by one task; closed by any."""

    def __init__(
        self,
        upstream: OpenAIChat,
        body: dict[str, Any],
        timeout: float,
        *,
        key: str | None = None,
        patient: bool = True,
        verbatim: Form | None = None,
    ) -> None:
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self._upstream = upstream
        self._request = body
        self._timeout = timeout
        self._key = key
        self._patient = patient
        self._verbatim: Form | None = verbatim
        self._deadline: float | None = None
        self._scope: asyncio.Timeout | None = None
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._framed = False
        self._reply = ReplyBody(verbatim)
        self._pieces: deque[Piece] = deque()
        self._pause = 0.0
        self._repeated = False
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        while not self._pieces:
            if self._over:
                raise StopAsyncIteration
            await self._step()
        return self._pieces.popleft()

    async def aclose(self) -> None:
        """End the request now, also while another task waits for the next piece."""
        self._over = True
        self._pieces.clear()
        if self._scope is None:
            await self._release()
        elif not self._scope.expired():
            # That task sits in the scope: let it time out, and it will clean up behind itself.
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def _step(self) -> None:
        """One thing that takes time: the request up to its head, or the next bytes."""
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + self._timeout
        self._scope = scope = asyncio.timeout_at(self._deadline)
        try:
            async with scope:
                if self._chunks is None:
                    await self._open()
                else:
                    await self._receive(self._chunks)
        except TimeoutError:  # of the scope: those of the connection are FAULTS
            closed, self._over = self._over, True
            if not (closed or self._reply.complete):
                raise UpstreamTimeout(
                    f"{self._upstream.where}: no whole reply within {self._timeout:.1f} s",
                    nothing_received=not self._reply.started,
                ) from None
        except BaseException:
            self._over = True
            raise
        finally:
            self._scope = None
            if self._over:
                await self._release()

    async def _open(self) -> None:
        if self._pause:
            await asyncio.sleep(self._pause)
        try:
            response = self._response = await self._upstream.send(self._request, self._key)
        except FAULTS as raised:
            await self._handle(raised)
            return
        if not response.is_success:
            await self._read_refusal(response)
            return
        if response.headers.get("content-type", "").startswith("text/html"):
            raise UpstreamGarbage(
                f"{self._upstream.where}: an HTML page instead of a reply", nothing_received=True
            )
        self._framed = "content-length" in response.headers or (
            "chunked" in response.headers.get("transfer-encoding", "").lower()
        )
        self._chunks = response.aiter_bytes()

    async def _receive(self, chunks: AsyncIterator[bytes]) -> None:
        reply = self._reply
        try:
            chunk = await anext(chunks, None)
        except FAULTS as raised:
            await self._handle(raised)
            return
        known = reply.complete, reply.ended
        try:
            if chunk is None:
                self._over = True
                self._pieces.extend(reply.close(framed=self._framed))
            else:
                self._pieces.extend(reply.feed(chunk))
        except UpstreamError as error:
            raise self._without_key(error) from None
        self.finish_reason, self.usage = reply.finish_reason, reply.usage
        if not self._over and known != (reply.complete, reply.ended):
            assert self._deadline is not None
            patience = DRAIN_SECONDS if reply.ended else LINGER_SECONDS
            now = asyncio.get_running_loop().time()
            self._deadline = min(self._deadline, now + patience)

    async def _handle(self, raised: BaseException) -> None:
        """A fault of the connection: prepare the repetition, or raise what it means."""
        if self._reply.complete:
            self._over = True  # how the line ended no longer matters
            return
        fault = fault_of(raised, self._upstream.where, started=self._reply.started)
        if not (fault.repeatable and self._may_repeat(PAUSE_SECONDS)):
            raise fault.error from None
        await self._release()

    async def _read_refusal(self, response: httpx.Response) -> None:
        """A status that is no success: prepare the repetition, or raise what it means."""
        status = response.status_code
        body = b""
        # The status has said it; the text is for the log only and not worth waiting for.
        with contextlib.suppress(*FAULTS):
            async with asyncio.timeout(ERROR_BODY_SECONDS):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) >= ERROR_BODY_BYTES:
                        break
        after = pause = retry_after(response.headers.get("retry-after"))
        if not self._patient:
            pause = None
        elif status in _GATEWAY_FAULTS:
            pause = PAUSE_SECONDS if pause is None else pause
        elif status != _TOO_MANY:
            pause = None
        if pause is not None and self._may_repeat(pause):
            await self._release()
            return
        text = " ".join(body[:ERROR_BODY_BYTES].decode("utf-8", "replace").split())
        error = error_for_status(status, f"{self._upstream.where}: {text}")
        error.retry_after = after
        raise self._without_key(error)

    def _may_repeat(self, pause: float) -> bool:
        """Whether there is a second try after `pause` seconds; books it if so."""
        assert self._deadline is not None
        left = self._deadline - asyncio.get_running_loop().time()
        if self._repeated or pause > RETRY_AFTER_CAP or left < pause + WORTH_TRYING_SECONDS:
            return False
        self._repeated = True
        self._pause = max(pause, PAUSE_SECONDS)
        self._reply = ReplyBody(self._verbatim)
        return True

    async def _release(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            with contextlib.suppress(*FAULTS):  # it is being thrown away
                await response.aclose()

    def _without_key(self, error: UpstreamError) -> UpstreamError:
        error.args = (self._upstream.redact(str(error)),)
        return error
