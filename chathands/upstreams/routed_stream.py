"""One reply from the first of several upstreams that gives one.

| what comes instead of an answer    | then                                                     |
|------------------------------------|----------------------------------------------------------|
| 429, 402                           | the key rests; the next key, then the next upstream      |
| 401, 403                           | the key rests; the next key, then the next upstream      |
| no connection, 5xx, garbage, 404   | the upstream rests; the next one                         |
| nothing in time                    | the upstream rests; the next one                         |
| 400, 413, 422                      | an error: the request is the same elsewhere              |
| anything after the first piece     | an error: what has left cannot be taken back             |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from chathands.emulation.outcome import ModelRequest, Piece
from chathands.errors import (
    UpstreamAuthError,
    UpstreamBusy,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)
from chathands.model_choice import in_file_words
from chathands.upstreams.base import Usage
from chathands.upstreams.openai_chat import RETRY_AFTER_CAP, WORTH_TRYING_SECONDS, ChatStream
from chathands.upstreams.ways import OtherWay

if TYPE_CHECKING:
    from chathands.upstreams.router import Member, Watch

_log = logging.getLogger(__name__)


class RoutedStream:
    """A ModelStream. `name` is what was asked for, sent where an entry has no name of its own."""

    def __init__(
        self,
        members: Sequence[Member],
        name: str,
        request: ModelRequest,
        timeout: float,
        watch: Watch | None,
    ) -> None:
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self._first = members[0]
        # Those that rest come last and not never: a rest is a guess, and they may be all there is.
        self._left = sorted(members, key=lambda member: member.resting > 0)
        self._name = name
        self._request = request
        self._timeout = timeout
        self._watch = watch
        self._deadline = 0.0
        self._stream: ChatStream | None = None
        self._key: str | None = None
        self._tried: set[str] = set()
        self._began = False
        self._closed = asyncio.Event()
        self._waited = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        if not self._deadline:
            self._deadline = asyncio.get_running_loop().time() + self._timeout
        while True:
            if self._closed.is_set():
                raise StopAsyncIteration
            if self._stream is None:
                await self._ask_next()
                continue
            if self._began:
                return await self._go_on(self._stream)
            try:
                async with asyncio.timeout(self._patience()):
                    piece = await anext(self._stream)
            except StopAsyncIteration:
                self._hear(self._stream)
                raise
            except TimeoutError:
                await self._stream.aclose()
                late = f"{self._left[0].name}: no answer began in time"
                await self._failed(UpstreamTimeout(late, nothing_received=True))
            except UpstreamError as error:
                await self._failed(error)
            else:
                self._hear(self._stream)
                self._began = True
                return piece

    async def aclose(self) -> None:
        self._closed.set()
        if self._stream is not None:
            await self._stream.aclose()

    async def _go_on(self, stream: ChatStream) -> Piece:
        try:
            return await anext(stream)
        except UpstreamError as error:
            self._told(self._left[0], error)
            raise
        finally:
            self.finish_reason, self.usage = stream.finish_reason, stream.usage

    async def _ask_next(self) -> None:
        """Have a stream from the next upstream and key. Raises UpstreamError when none is left."""
        member = self._left[0]
        native = self._request.tools is not None
        if native and member is not self._first and member.ways.way.mode != "native":
            raise OtherWay(replace(member.ways.way, detour=member.name))
        key = member.keys.pick(self._tried)
        if key is None and member.keys.keys:
            await self._out_of_keys(member)
            return
        self._key = key
        self._stream = member.chat.stream(
            self._request,
            timeout=max(self._time_left(), 0.001),
            model=member.model or self._name,
            key=key,
            patient=len(self._left) == 1 and len(member.keys.keys) < 2,
        )

    async def _out_of_keys(self, member: Member) -> None:
        """All keys rest: the next upstream, or wait for one if it is not long, or say so."""
        wait = member.keys.resting
        if len(self._left) > 1:
            self._step_on()
        elif (
            not self._waited
            and wait <= RETRY_AFTER_CAP
            and wait + WORTH_TRYING_SECONDS < self._time_left()
        ):
            self._waited = True
            self._tried.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), wait)
        else:
            busy = UpstreamBusy(
                f"{member.name}: all keys rest for {wait:.0f} s", nothing_received=True, status=429
            )
            busy.retry_after = wait
            raise busy

    async def _failed(self, error: UpstreamError) -> None:
        """Nothing came from the current upstream: go on with the next key or upstream, or raise."""
        member, stream, key = self._left[0], self._stream, self._key
        self._stream = self._key = None
        if stream is not None:
            self.finish_reason, self.usage = stream.finish_reason, stream.usage
        self._told(member, error)
        if (
            self._closed.is_set()
            or not error.nothing_received
            or isinstance(error, UpstreamRefused)
        ):
            raise error
        if isinstance(error, UpstreamBusy | UpstreamAuthError) and key is not None:
            self._rest(member, key, error)
            if member.keys.pick(self._tried) is not None and self._worth_trying():
                return
        else:
            member.circuit.failed()
        if len(self._left) == 1 or not self._worth_trying():
            raise error
        self._step_on(error)

    def _rest(self, member: Member, key: str, error: UpstreamError) -> None:
        reason = "limited" if isinstance(error, UpstreamBusy) else "refused"
        self._tried.add(key)
        seconds = member.keys.rest(key, reason, error.retry_after)
        if len(member.keys.keys) > 1 or reason == "refused":
            number = member.keys.position(key)
            _log.warning("%s: key %d is %s and rests %.0f s", member.name, number, reason, seconds)
        if self._watch is not None:
            self._watch.key_rests(member.name, reason)

    def _step_on(self, error: UpstreamError | None = None) -> None:
        gone = self._left.pop(0)
        self._tried.clear()
        after = self._left[0]
        why = type(error).__name__ if error else "its keys rest"
        _log.warning("%s gives no answer (%s), asking %s", gone.name, why, after.name)
        if self._watch is not None:
            self._watch.falls_back(gone.name, after.name)

    def _hear(self, stream: ChatStream) -> None:
        """It answers."""
        member = self._left[0]
        self.finish_reason, self.usage = stream.finish_reason, stream.usage
        member.circuit.answered()
        if self._key is not None:
            member.keys.accepted(self._key)

    def _told(self, member: Member, error: UpstreamError) -> None:
        error.sentence = in_file_words(error.sentence, member.name)
        if self._watch is not None:
            self._watch.upstream_error(member.name, type(error).__name__)

    def _patience(self) -> float | None:
        """Seconds until an answer has to begin; None: as long as there is time."""
        own = self._left[0].first_byte
        if len(self._left) > 1 and own is None:
            return self._time_left() / 2
        return own

    def _time_left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()

    def _worth_trying(self) -> bool:
        return self._time_left() > WORTH_TRYING_SECONDS
