"""Rounds of deciding and running calls, until an answer, an account, or a person's turn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace

from chathands.agent import budget, fallback
from chathands.agent.events import Corrected, RoundStarted, Withdrawn
from chathands.agent.run import NOT_THE_SAME, Ended, Fault, Resumption, Run, account_of
from chathands.agent.scale import TokenScale
from chathands.agent.trace import TurnTrace
from chathands.agent.turns import AUTO, Withdraw
from chathands.agent.verdict import CANCELLED_ERROR, DEADLINE_ERROR, WEAKER_NOTE, WITHDRAWN_NOTE
from chathands.conversation import Message, ToolCall, ToolChoice
from chathands.emulation import Answer, Calls, GiveUp, Retry, Turn
from chathands.emulation.outcome import ModelRequest, Reason, Text
from chathands.errors import UpstreamError, UpstreamTimeout
from chathands.limits import REPLY_CAP
from chathands.settings import Settings
from chathands.toolbox import Batch, Executor
from chathands.upstreams.base import ModelStream, Upstream, Usage
from chathands.upstreams.ways import Way, Ways

_log = logging.getLogger(__name__)

CLOSING_SECONDS = 1.0
"""For ending a request; a connection that will not even close is left to its owner."""

GRACE_SECONDS = 0.25
"""Beyond the upstream's own limit, which should be the one that ends a request."""


class _NotTaken(Exception):
    """The upstream does not take what this way of asking puts into a request."""

    def __init__(self, weaker: Way) -> None:
        super().__init__()
        self.weaker = weaker


class _Reserve(Exception):
    """The reserve began while the model was being asked."""


class Runner:
    """Drives runs. Holds nothing of any of them."""

    def __init__(
        self,
        upstream: Upstream,
        executor: Executor,
        settings: Settings,
        ways: Ways,
        *,
        scale: TokenScale,
        summary_characters: int,
    ) -> None:
        self._upstream = upstream
        self._ways = ways
        self._executor = executor
        self._max_rounds = settings.max_rounds
        self._prompt_limit = budget.prompt_limit(upstream.context, settings.model.max_tokens)
        self._scale = scale
        self._summary_characters = summary_characters

    async def drive(self, run: Run) -> Ended | Batch:
        """Go on until the run ends; a Batch with `pending` when a person has to decide first."""
        while True:
            run.emit(RoundStarted(run.run_id, run.round))
            outcome = await self._decide(run)
            match outcome:
                case Answer(text):
                    return Ended(
                        "answered", fallback.with_told(text, run.scope.done), remember=True
                    )
                case GiveUp(reason):
                    return account_of(run, fallback.given_up(reason))
                case Fault(sentence):
                    return account_of(run, sentence)
            waiting = await self._run_calls(run, outcome.calls)
            if waiting is not None:
                return waiting
            run.round += 1

    async def resume(self, run: Run, resumption: Resumption) -> Ended | Batch:
        """Go on where a person was asked."""
        if resumption.denial is not None:
            self._deny(run, resumption, resumption.denial)
        else:
            waiting = await self._run_calls(run, resumption.remaining, granted=resumption)
            if waiting is not None:
                assert waiting.pending is not None
                if waiting.pending.call.id != resumption.remaining[0].id:
                    return waiting
                # The executor does not see the yes as one to this very call.
                self._deny(run, replace(resumption, remaining=waiting.remaining), NOT_THE_SAME)
        run.round += 1
        return await self.drive(run)

    async def _run_calls(
        self,
        run: Run,
        calls: Sequence[ToolCall],
        *,
        granted: Resumption | None = None,
    ) -> Batch | None:
        """Run the calls and add their results; the Batch when a person must decide on one.

        `granted` names the one call that a person has said yes to, and who did.
        """
        run.open_calls = list(calls)
        batch = await self._executor.run_batch(
            calls,
            run.scope,
            granted=frozenset({granted.call_hash} if granted else ()),
            granted_by=granted.decision.by if granted else "",
            on_event=run.watch_call,
        )
        run.conversation.extend(Message.tool(result) for result in batch.results)
        run.open_calls = list(batch.remaining)
        if batch.pending is not None:
            return batch
        if batch.closes_run:
            self._withdraw(run, "last_round")
        return None

    def _deny(self, run: Run, resumption: Resumption, why: str) -> None:
        """Answer a call that does not run after a person was asked, and those behind it."""
        run.open_calls = list(resumption.remaining)
        batch = self._executor.deny(
            resumption.remaining, run.scope, why, resumption.decision, on_event=run.watch_call
        )
        run.conversation.extend(Message.tool(result) for result in batch.results)
        run.open_calls = []

    def _withdraw(self, run: Run, why: Withdraw) -> None:
        if run.withdrawn is None:
            run.withdrawn = why
            run.trace.note(WITHDRAWN_NOTE, why)
            run.emit(Withdrawn(run.run_id, why))

    async def _decide(self, run: Run) -> Answer | Calls | GiveUp | Fault:
        """One decision of the model, in up to three turns.

        When the reserve begins meanwhile, it is asked once more, without tools; its first try,
        though perhaps half written, is dropped. When it insists on figures from nowhere, it is
        asked once more with the tool that reads them as its only choice.
        """
        if run.round >= self._max_rounds:
            self._withdraw(run, "last_round")
        given_up: GiveUp | None = None
        while True:
            if run.deadline.closes_soon:
                self._withdraw(run, "deadline")
            turn, request = self._turn(run)
            log = run.trace.turn(run.round, run.turn_setup, run.conversation, run.tools)
            repeat = False
            try:
                outcome, reader = await self._ask(run, turn, request, log)
            except _Reserve:
                self._withdraw(run, "deadline")
                continue
            except _NotTaken as refused:
                run.trace.note(WEAKER_NOTE, f"{run.setup.way} → {refused.weaker}")
                run.setup, repeat = run.setup.asked(refused.weaker), True
                continue
            except UpstreamError as error:
                _log.warning("run %s: %s: %s", run.run_id, type(error).__name__, error)
                return Fault(error.sentence)
            finally:
                run.conversation.extend(turn.transcript)
                if not repeat:
                    run.choice = AUTO
            if not isinstance(outcome, GiveUp):
                return outcome
            if given_up is not None or reader is None or run.withdrawn is not None:
                return given_up or outcome
            given_up, run.choice = outcome, ToolChoice("named", reader)

    def _turn(self, run: Run) -> tuple[Turn, ModelRequest]:
        """The next turn and its first request, which fits the model's context."""
        turn = run.turn_setup.build(run.conversation, run.tools)
        request = turn.request()
        excess = self._scale.tokens(request) - self._prompt_limit
        if excess <= 0:
            return turn, request
        # Down to half, so that it happens once: each time costs the whole prompt cache.
        spare = self._prompt_limit / 2
        run.conversation, run.question_at = budget.shrink(
            run.conversation,
            run.question_at,
            (excess + spare) / self._scale.ratio,
            language=run.setup.language,
            characters=self._summary_characters,
            spare=spare / self._scale.ratio,
        )
        run.trace.note("缩短对话", f"超出 {excess:.0f} tokens")
        turn = run.turn_setup.build(run.conversation, run.tools)
        return turn, turn.request()

    async def _ask(
        self, run: Run, turn: Turn, request: ModelRequest, log: TurnTrace
    ) -> tuple[Answer | Calls | GiveUp, str | None]:
        """Ask until there is an outcome; with it the tool that reads what was made up, if that is
        why the turn gave up. Raises _Reserve and UpstreamError."""
        closing = run.withdrawn is not None or not run.tools
        reader: str | None = None
        while True:
            log.asked(request)
            finish_reason = await self._listen(run, turn, request, log, closing)
            may_retry = run.deadline.allows_retry(in_reserve=closing)
            outcome = turn.finish(finish_reason, may_retry=may_retry)
            log.decided(outcome, turn.log, may_retry)
            if isinstance(outcome, GiveUp) and not may_retry and not closing:
                raise _Reserve
            if not isinstance(outcome, Retry):
                invented = isinstance(outcome, GiveUp) and outcome.reason is Reason.UNBACKED_FIGURE
                return outcome, reader if invented else None
            if outcome.reason is Reason.UNBACKED_FIGURE:
                reader = outcome.name
            if outcome.reason is not Reason.SELECTION:  # looking for a tool is no fault
                run.emit(Corrected(run.run_id, outcome.reason))
            request = turn.request()

    async def _listen(
        self,
        run: Run,
        turn: Turn,
        request: ModelRequest,
        log: TurnTrace,
        closing: bool,
    ) -> str | None:
        """Feed one reply to the turn and give its finish reason."""
        seconds = run.deadline.remaining() if closing else run.deadline.working()
        if seconds <= 0:
            log.ended(error=DEADLINE_ERROR)
            raise UpstreamTimeout("no time left", sentence=fallback.DEADLINE)
        stream = self._upstream.stream(request, timeout=seconds)
        finish_reason: str | None = None
        usage: Usage | None = None
        try:
            # The upstream keeps the time itself; this is for one that does not.
            async with asyncio.timeout(seconds + GRACE_SECONDS):
                whole = await _feed_all(stream, turn, log)
            finish_reason, usage = stream.finish_reason if whole else "length", stream.usage
        except (TimeoutError, UpstreamTimeout) as error:
            log.ended(error=DEADLINE_ERROR)
            if closing:
                raise UpstreamTimeout(str(error), sentence=fallback.DEADLINE) from error
            if not run.deadline.in_reserve:  # an upstream with a shorter limit of its own
                raise UpstreamTimeout(str(error)) from error
            raise _Reserve from error
        except UpstreamError as error:
            log.ended(error=f"{type(error).__name__}: {error}")
            weaker = self._ways.after(error, request, run.setup.way)
            if weaker is not None:
                raise _NotTaken(weaker) from error
            raise
        except asyncio.CancelledError:
            log.ended(error=CANCELLED_ERROR)
            raise
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await stream.aclose()
        log.ended(finish_reason=finish_reason, usage=usage)
        if usage is not None:
            self._scale.learn(request, usage.prompt)
        self._ways.accepted(run.setup.way)
        return finish_reason


async def _feed_all(stream: ModelStream, turn: Turn, log: TurnTrace) -> bool:
    """Feed every piece; False when the reply was cut because it would not end."""
    size = 0
    async for piece in stream:
        log.piece(piece)
        turn.feed(piece)
        size += len(piece.text) if isinstance(piece, Text) else 0
        if size > REPLY_CAP:
            return False
    return True
