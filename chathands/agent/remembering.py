"""The memory of conversations between runs: what the next question sees, and what stands for the
rest. What a round is and how it ages is in memory.py; what a summary is, in summary.py."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from chathands.agent import memory, summary
from chathands.agent.budget import message_tokens
from chathands.agent.prompts import summary_round
from chathands.agent.scale import TokenScale
from chathands.bounded import Bounded
from chathands.conversation import Message
from chathands.emulation.outcome import Language, Text
from chathands.errors import StoreError, UpstreamError
from chathands.limits import HISTORY_SHARE, REPLY_CAP
from chathands.settings import Settings
from chathands.store import Round, Store, Summary
from chathands.upstreams.base import Upstream

_log = logging.getLogger(__name__)

SUMMARY_SECONDS = 20.0
LOCAL_SUMMARY_SECONDS = 60.0
"""For a model to write a summary. Nobody waits for it; on two cores 300 tokens take 15 s and the
reading as long again."""
CONTEXT_WITHOUT_MODEL = 8192
FORGOTTEN_KEPT = 4096
"""Conversations whose last forgetting is known; a run lasts minutes at most."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Earlier rounds as a new run sees them. `foreign`: text from outside is among them."""

    messages: list[Message]
    foreign: bool


class Memory:
    """Recalls, remembers and forgets. Summaries are written behind; end it with `aclose()`."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        upstream: Upstream | None,
        scale: TokenScale,
    ) -> None:
        self._conversations = store.conversations
        self._upstream = upstream
        self._scale = scale
        self._language: Language = settings.model.language
        self._rounds = settings.store.history_rounds
        self._by_model = settings.store.summary
        context = upstream.context if upstream else CONTEXT_WITHOUT_MODEL
        self._tokens = settings.store.history_tokens or context * HISTORY_SHARE
        self._due: dict[str, None] = {}
        """Conversations that may be over the budget, in their order: one after the other is looked
        at by one task, so that a thousand of them are a thousand names and not tasks."""
        self._shortening: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[str | None] | None = None
        self._forgotten: Bounded[str, float] = Bounded(FORGOTTEN_KEPT)

    @property
    def characters(self) -> int:
        """Of a summary at most."""
        return summary.summary_characters(self._tokens)

    async def recall(self, conversation_id: str) -> Recalled:
        """The last rounds that fit the budget, behind what stands for the others. No model is
        asked: where its summary is still missing, a digest takes the place. Raises StoreError."""
        if self._rounds <= 0:
            return Recalled([], False)
        stored, rounds = await self._conversations.recent(conversation_id)
        shown = self._newest(rounds, self._rounds, self._tokens)
        left_out = rounds[: len(rounds) - len(shown)]
        text = stored.text if stored else ""
        if left_out:
            text = self._digest(text, left_out)
        messages = memory.recall([one.messages for one in shown], self._language)
        if text:
            messages = [*summary_round(text, self._language), *messages]
        foreign = bool(stored and stored.foreign) or _foreign(rounds)
        return Recalled(messages, foreign)

    async def remember(
        self, conversation_id: str, messages: Sequence[Message], *, asked_at: float
    ) -> bool:
        """Add a round, unless the conversation was forgotten after it was asked (wall seconds).

        False when it was. Raises StoreError.
        """
        if self._forgotten.get(conversation_id, 0.0) > asked_at:
            return False
        await self._conversations.append(conversation_id, messages)
        if self._rounds > 0 and await self._may_be_over(conversation_id):
            self._due[conversation_id] = None
            if self._shortening is None or self._shortening.done():
                due = self._shorten_due()
                self._shortening = asyncio.create_task(due, name="chathands-summary")
        return True

    async def forget(self, conversation_id: str) -> int:
        """Drop everything of a conversation; gives the number of rounds. Raises StoreError."""
        self._forgotten[conversation_id] = time.time()
        return await self._conversations.forget(conversation_id)

    def give_way(self) -> None:
        """A person's question comes: the model on this machine is theirs, a digest will do."""
        if self._asking is not None and self._upstream is not None and self._upstream.local:
            self._asking.cancel()

    async def settled(self) -> None:
        """Wait until no summary is being written."""
        if self._shortening is not None:
            await asyncio.wait([self._shortening])

    async def aclose(self) -> None:
        """Drop what is being written: the next run over the budget begins it again."""
        if self._shortening is not None:
            self._shortening.cancel()
            await asyncio.wait([self._shortening])

    # --- summaries

    async def _may_be_over(self, conversation_id: str) -> bool:
        """Whether it is worth a look: no text has more tokens than its JSON has bytes."""
        try:
            rounds, size = await self._conversations.weight(conversation_id)
        except StoreError:  # whoever looks will say so
            return True
        return rounds > self._rounds or size * max(self._scale.ratio, 1) > self._tokens

    async def _shorten_due(self) -> None:
        while self._due:
            conversation_id = next(iter(self._due))
            del self._due[conversation_id]  # what is said from now on asks for another look
            try:
                await self._shorten(conversation_id)
            except StoreError:
                _log.warning("a conversation could not be summarised", exc_info=True)

    async def _shorten(self, conversation_id: str) -> None:
        """Summarise the older rounds once they are too many or too long."""
        stored, rounds = await self._conversations.recent(conversation_id)
        if len(self._newest(rounds, self._rounds, self._tokens)) == len(rounds):
            return
        # Down to half, so that it happens seldom: it costs a request and the cached prefix.
        kept = self._newest(rounds, max(1, self._rounds // 2), self._tokens / 2)
        old = rounds[: len(rounds) - len(kept)]
        earlier = stored.text if stored else ""
        text = await self._asked(earlier, old) or self._digest(earlier, old)
        foreign = bool(stored and stored.foreign) or _foreign(old)
        await self._conversations.summarise(
            conversation_id, Summary(text, old[-1].id, foreign=foreign)
        )
        _log.debug("%d rounds summarised in %d characters", len(old), len(text))

    async def _asked(self, earlier: str, rounds: Sequence[Round]) -> str | None:
        """The model's summary; None when it is not asked, or gives none."""
        if self._upstream is None or not self._by_model:
            return None
        self._asking = asyncio.create_task(self._ask(self._upstream, earlier, rounds))
        try:
            await asyncio.wait({self._asking})
        except asyncio.CancelledError:
            self._asking.cancel()
            raise
        finally:
            asking, self._asking = self._asking, None
        if asking.cancelled():
            return None
        if (error := asking.exception()) is not None:
            _log.error("asking for a summary crashed, going on with a digest", exc_info=error)
            return None
        return asking.result()

    async def _ask(self, upstream: Upstream, earlier: str, rounds: Sequence[Round]) -> str | None:
        said = [one.messages for one in rounds]
        request = summary.asked_for(earlier, said, self._language, characters=self.characters)
        seconds = LOCAL_SUMMARY_SECONDS if upstream.local else SUMMARY_SECONDS
        stream = upstream.stream(request, timeout=seconds)
        text = ""
        try:
            async with asyncio.timeout(seconds):
                async for piece in stream:
                    text += piece.text if isinstance(piece, Text) else ""
                    if len(text) > REPLY_CAP // 8:
                        break
        except (TimeoutError, UpstreamError) as error:
            _log.info("no summary from the model, going on with a digest: %r", error)
            return None
        finally:
            await stream.aclose()
        if stream.usage is not None:
            self._scale.learn(request, stream.usage.prompt)
        return summary.accepted(text, characters=self.characters)

    # --- sizes

    def _newest(self, rounds: Sequence[Round], count: int, tokens: float) -> list[Round]:
        """The last rounds, at most `count` and `tokens`, but always the very last."""
        kept: list[Round] = []
        for age, one in enumerate(reversed(rounds)):
            seen = memory.aged(one.messages, age, self._language)
            tokens -= sum(map(message_tokens, seen)) * self._scale.ratio
            if len(kept) >= count or (kept and tokens < 0):
                break
            kept.insert(0, one)
        return kept

    def _digest(self, earlier: str, rounds: Sequence[Round]) -> str:
        said = [one.messages for one in rounds]
        return summary.digest(earlier, said, self._language, characters=self.characters)


def _foreign(rounds: Sequence[Round]) -> bool:
    return any(
        message.foreign or (message.result is not None and message.result.foreign)
        for one in rounds
        for message in one.messages
    )
