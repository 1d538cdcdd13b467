"""Debts: a reply that is owed is written down before work starts, and crossed out once it is said.

After a crash every line that is left is somebody who was not answered. A line that says `sending`
may have been paid: it is marked unknown and never paid again.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Awaitable
from dataclasses import asdict, replace
from typing import Any

from nonebot.log import logger

from chathands.errors import StoreError
from chathands.store.outbox import Kind, Outbox, OutboxRow, State
from plugins.group_chat.messages import Fate, Place

EXPIRES_SECONDS = 86400.0
"""Who asked yesterday does not wait for the answer any more, and would not know what it is to."""


class Debt:
    """One reply or message that is owed to a place. Bookkeeping never raises: it is logged."""

    def __init__(self, outbox: Outbox | None, row: OutboxRow) -> None:
        self._outbox = outbox
        self.row = row
        place = row.data["place"]
        self.place = Place(
            str(place["platform"]), str(place["bot_id"]), place["group_id"], str(place["user_id"])
        )
        self._left = row.state is State.SENDING
        self._arrived = False
        self._unsure = False
        self.over = False

    @property
    def quote(self) -> str | None:
        return self.row.data.get("quote") or None

    @property
    def mention(self) -> str | None:
        """Who is called up in front of it."""
        return self.row.data.get("mention") or None

    @property
    def text(self) -> str:
        """What is to be said; empty while it is not known."""
        return str(self.row.data.get("text") or "")

    @property
    def name(self) -> str:
        """How the asker is called."""
        return str(self.row.data.get("name") or self.place.user_id)

    # -- on the way (a `delivery.Payment`)

    async def sending(self) -> None:
        if not self._left:
            self._left = True
            try:
                await self._mark(State.SENDING)
            except asyncio.CancelledError:  # the frame behind it does not leave
                self._left = False
                raise

    async def ended(self, fate: Fate) -> None:
        if fate is Fate.SENT:
            self._arrived = True
        elif fate is Fate.UNKNOWN:
            self._unsure = True
        elif not self._arrived and not self._unsure:  # nothing of it was shown
            self._left = False
            await self._mark(State.OWED)

    async def still_owed(self) -> bool:
        """Whether it stands in the outbox as something that surely was not shown."""
        if self._outbox is None:
            return not self.over
        try:
            return await self._outbox.is_owed(self.row.id)
        except StoreError as error:
            logger.error(f"outbox: {error}")
            return False

    @property
    def untouched(self) -> bool:
        """Whether surely nothing of it was shown."""
        return not self._left

    # -- its ends

    async def settle(self) -> None:
        """It was said, or may have been."""
        if self.over:
            return
        self.over = True
        if self._left and (self._unsure or not self._arrived):
            logger.warning(f"run {self.row.run_id or '-'}: not known whether its reply was shown")
            await self._mark(State.UNKNOWN)
        elif self.row.kind is Kind.MESSAGE and self.row.data.get("keyed"):
            await self._mark(State.SENT)
        else:
            await self.drop()

    async def drop(self) -> None:
        """It is not owed any more."""
        self.over = True
        await self._try(self._outbox and self._outbox.remove(self.row.id))

    async def keep(self, text: str, *, seconds: float = EXPIRES_SECONDS) -> None:
        """Nothing was said; `text` is what to say when it can be."""
        self.row = replace(
            self.row,
            kind=Kind.MESSAGE,
            state=State.OWED,
            expires_at=time.time() + seconds,
            data={**self.row.data, "text": text},
        )
        await self._try(self._outbox and self._outbox.replace(self.row))

    async def change(self, *, quote: str | None = None, run_id: str | None = None) -> None:
        """It is another message's by now, or another run's."""
        data = self.row.data if quote is None else {**self.row.data, "quote": quote}
        self.row = replace(self.row, data=data, run_id=run_id or self.row.run_id)
        await self._try(self._outbox and self._outbox.replace(replace(self.row, state=self._state)))

    @property
    def _state(self) -> State:
        return State.SENDING if self._left else State.OWED

    async def _mark(self, state: State) -> None:
        await self._try(self._outbox and self._outbox.mark(self.row.id, state))

    async def _try(self, work: Awaitable[Any] | None) -> None:
        if work is not None:
            try:
                await work
            except StoreError as error:
                logger.error(f"outbox: {error}")


class Accepted:
    """The debts of this process, and those an earlier one left. Without an outbox they live in
    memory only."""

    def __init__(self, outbox: Outbox | None = None) -> None:
        self._outbox = outbox
        self._session = secrets.token_hex(4)
        self._count = itertools.count()
        """Ids of this process's own debts, so that it does not take them for an earlier one's."""

    async def owe(
        self,
        place: Place,
        quote: str | None,
        *,
        kind: Kind = Kind.QUESTION,
        run_id: str = "",
        name: str = "",
        text: str = "",
        key: str | None = None,
        mention: str | None = None,
        seconds: float = EXPIRES_SECONDS,
    ) -> Debt | None:
        """Write a debt down; None when there is one with this `key` already, or was."""
        now = time.time()
        row = OutboxRow(
            id=key or f"{self._session}-{next(self._count)}",
            kind=kind,
            bot=account_of(place),
            created=now,
            expires_at=now + seconds,
            run_id=run_id,
            data={
                "place": asdict(place),
                "quote": quote,
                "name": name,
                "text": text,
                "keyed": key is not None,
                "mention": mention,
            },
        )
        if self._outbox is not None:
            try:
                if not await self._outbox.put(row):
                    return None
            except StoreError as error:  # an answer that a crash would lose is better than none
                logger.error(f"outbox: {error}")
        return Debt(self._outbox, row)

    async def open(self, bot: str | None = None) -> list[Debt]:
        """Everything owed, oldest first; of one account or of all. What nobody waits for any more
        is dropped."""
        if self._outbox is None:
            return []
        try:
            for row in await self._outbox.expire(time.time()):
                logger.warning(f"run {row.run_id or '-'}: its reply could not be sent for too long")
            rows = await self._outbox.open(bot)
        except StoreError as error:
            logger.error(f"outbox: {error}")
            return []
        return [debt for row in rows if (debt := self._read(row)) is not None]

    async def left_over(self) -> list[Debt]:
        """What an earlier process owed, oldest first."""
        mine = f"{self._session}-"
        return [debt for debt in await self.open() if not debt.row.id.startswith(mine)]

    def _read(self, row: OutboxRow) -> Debt | None:
        try:
            return Debt(self._outbox, row)
        except (AttributeError, KeyError, TypeError) as error:
            logger.error(f"outbox: row {row.id} cannot be read: {error!r}")
            return None


def account_of(place: Place) -> str:
    """The account a debt is paid through."""
    return f"{place.platform}:{place.bot_id}"
