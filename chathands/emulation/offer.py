"""What of a large toolbox the contract shows, and the pseudo tool that finds the rest.

All tools stay declared for the reading; only what is listed is bounded. The list depends on the
run's question and on what was said before it, never on the round, so that requests keep their
prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from chathands.conversation import Conversation, Message, Notice, Role, Tag, ToolCall, ToolSpec
from chathands.emulation.contract import (
    FIND_TOOLS,
    Unlisted,
    find_tools,
    in_order,
    render_contract,
    render_tool,
)
from chathands.emulation.outcome import Language, Mode
from chathands.emulation.prompts import wording
from chathands.emulation.shortlist import scores
from chathands.emulation.signature import one_line
from chathands.emulation.sizes import tokens
from chathands.emulation.state import run_start
from chathands.emulation.writing import WRITERS
from chathands.limits import THOUGHT_BEFORE_BLOCK

MAX_LOOKUPS = 2
"""Lookups a turn answers: one with the wrong words and one with better ones."""

_FOUND = 6
"""Tools one lookup shows: about what a small model still chooses from well."""

_NAMED_SHARE = 0.12
"""Of the contract's budget, for the bare names of tools it does not list: a name is a few tokens,
and a model that has read it can ask for it, or call it and be told its parameters."""

_FOUND_SHARE = 0.4
"""Of the contract's budget, for what one lookup shows."""

_TOOLS_FIRST = 5
"""Tools below which a list gives up the worked examples, which take the room of about eight."""

_EARLIER = 0.5
"""How much the question before counts against this one ("and now to him as well"); the one before
that half of it."""

_EARLIER_QUESTIONS = 2


class Offer:
    """The tools of one turn: all that are declared, those the contract lists, and lookups.

    `budget` is in estimated tokens, for the contract without the persona; None or enough for
    everything lists everything, and then there is nothing to look up.
    """

    def __init__(
        self,
        specs: Sequence[ToolSpec],
        conversation: Conversation,
        budget: int | None,
        language: Language,
        mode: Mode = "emulated",
    ) -> None:
        self._specs = tuple(specs)
        self._language: Language = language
        self._mode: Mode = mode
        self._budget = budget or 0
        self._words = wording(language, mode)["lookup"]
        taken = any(spec.name == FIND_TOOLS for spec in specs)
        chosen = None if budget is None else offered_tools(specs, conversation, budget, language)
        self.listed, unlisted = chosen or (None, None)
        """What the contract lists; None is everything."""
        self.unlisted = None if taken else unlisted
        """What can be looked up, if anything."""
        self._finds = self.unlisted is not None
        self._told = _told_in(conversation[run_start(conversation) + 1 :])
        self._left = MAX_LOOKUPS

    @property
    def readable(self) -> tuple[ToolSpec, ...]:
        """What a reply may call: the declared tools, and the pseudo tool where it is offered."""
        pseudo = find_tools(self._language, self.unlisted or Unlisted(0), self._mode)
        return (*self._specs, pseudo) if self._finds else self._specs

    @property
    def shown(self) -> tuple[ToolSpec, ...]:
        """The declared tools that the contract lists."""
        return self._specs if self.listed is None else self.listed

    @property
    def may_look_up(self) -> bool:
        return self._left > 0

    def lookups_in(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls of the pseudo tool among these."""
        return tuple(call for call in calls if call.name == FIND_TOOLS) if self._finds else ()

    @staticmethod
    def query_of(lookups: Sequence[ToolCall]) -> str:
        return "\n".join(str(call.arguments.get("query", "")) for call in lookups)

    def unseen(self, names: Iterable[str]) -> list[ToolSpec]:
        """The declared tools of these names that the model has not been shown yet; from now on it
        has: whoever asks shows them."""
        if self.listed is None:
            return []
        wanted = set(names) - self._known
        specs = [spec for spec in in_order(self._specs) if spec.name in wanted]
        self._told |= {spec.name for spec in specs}
        return specs

    def with_listing(self, message: Message, name: str | None) -> Message:
        """A remark about a tool, with its listing if the model has not been shown it."""
        specs = self.unseen([name]) if name else []
        if not specs:
            return message
        text = f"{message.text}\n\n{self._listing(specs)}"
        return replace(message, text=text, told=_names(specs))

    def beside(self, calls: Sequence[ToolCall], lookups: Sequence[ToolCall]) -> list[Message]:
        """Our remarks behind accepted calls: the listings of those that were called unseen, so that
        a later round knows them, and what lookups of the same reply found."""
        remarks = []
        if specs := self.unseen(call.name for call in calls):
            remarks.append(_remark(f"{self._words['used']}\n\n{self._listing(specs)}", specs))
        if calls and lookups and self.may_look_up:
            remarks.append(self.answer(lookups))
        return remarks

    def exchange(self, text: str, lookups: Sequence[ToolCall]) -> tuple[Message, Message]:
        """A reply that only looks up, as history keeps it, and our answer to it."""
        thought = text.strip()[:THOUGHT_BEFORE_BLOCK]
        calls = [(call.name, call.arguments) for call in lookups]
        said = WRITERS[self._mode].calls(calls, thought)
        return Message.assistant(said, tag=Tag.NOTICE), self.answer(lookups)

    def answer(self, lookups: Sequence[ToolCall]) -> Message:
        """What was found, in the contract's form of a tool; counts as one lookup."""
        self._left -= 1
        words = self._words
        points = scores(self._specs, ((self.query_of(lookups), 1.0),))
        order = sorted(range(len(points)), key=lambda at: -points[at])
        best = [self._specs[at] for at in order if points[at] > 0][:_FOUND]
        known = self._known
        fresh: list[ToolSpec] = []
        room = self._budget * _FOUND_SHARE
        for spec in best:
            if spec.name in known:
                continue
            room -= tokens(render_tool(spec, self._language))
            if room < 0 and fresh:
                break
            fresh.append(spec)
        self._told |= {spec.name for spec in fresh}
        parts = []
        if fresh:
            parts.append(f"{words['found']}\n\n{self._listing(fresh)}\n")
        else:
            parts.append(words["nothing"])
        if there := [one_line(spec.name, 200) for spec in best if spec.name in known]:
            names = wording(self._language)["continuation"]["and"].join(there)
            parts.append(words["known"].format(names=names))
        parts.append(words["now"] if self._left else words["last"])
        return _remark("\n".join(parts), fresh)

    @property
    def _known(self) -> set[str]:
        return {spec.name for spec in self.shown} | self._told

    def _listing(self, specs: Sequence[ToolSpec]) -> str:
        return "\n\n".join(render_tool(spec, self._language) for spec in specs)


def offered_tools(
    specs: Sequence[ToolSpec], conversation: Conversation, budget: int, language: Language
) -> tuple[tuple[ToolSpec, ...], Unlisted] | None:
    """The tools to list, best first, and what is left, so that the contract stays within `budget`;
    None: all fit.

    Tools used before come first, the latest before all; then those that fit the run's question.
    What this run has used counts only where the conversation does not already show its listing,
    which a lookup in this run does. At least one tool is listed; where few are, their number comes
    before worked examples.
    """

    def size(chosen: Sequence[ToolSpec], unlisted: Unlisted | None) -> float:
        return tokens(render_contract(chosen, language=language, unlisted=unlisted))

    if size(specs, None) <= budget:
        return None
    ordered = _by_use_and_fit(specs, conversation)
    listing = _listing_of(ordered, budget, language, size, examples=True)
    if len(listing[0]) < _TOOLS_FIRST:
        listing = _listing_of(ordered, budget, language, size, examples=False)
    return listing


def _listing_of(
    ordered: Sequence[ToolSpec],
    budget: int,
    language: Language,
    size: Callable[[Sequence[ToolSpec], Unlisted], float],
    *,
    examples: bool,
) -> tuple[tuple[ToolSpec, ...], Unlisted]:
    left = budget * (1 - _NAMED_SHARE) - size((), Unlisted(len(ordered), examples=examples))
    chosen: list[ToolSpec] = []
    for spec in ordered:
        cost = tokens(render_tool(spec, language)) + 1
        if cost <= left or not chosen:
            chosen.append(spec)
            left -= cost
    while True:
        rest = [spec.name for spec in ordered if spec not in chosen]
        unlisted = Unlisted(len(rest), _named(rest, budget * _NAMED_SHARE), examples)
        # Worked examples come from what is listed, so the sum is only known now.
        if len(chosen) == 1 or size(chosen, unlisted) <= budget:
            return tuple(chosen), unlisted
        chosen.pop()


def _named(names: Sequence[str], room: float) -> tuple[str, ...]:
    """The first names that fit into so many tokens."""
    named: list[str] = []
    for name in names:
        room -= tokens(one_line(name, 200)) + 1
        if room < 0:
            break
        named.append(name)
    return tuple(named)


def _by_use_and_fit(specs: Sequence[ToolSpec], conversation: Conversation) -> list[ToolSpec]:
    start = run_start(conversation)
    told = _told_in(conversation[start + 1 :])
    used: dict[str, None] = {}
    for at in range(len(conversation) - 1, -1, -1):
        for call in reversed(conversation[at].calls):
            if at < start or call.name not in told:
                used.setdefault(call.name)
    asked = [
        message.text
        for message in conversation[: start + 1]
        if message.role is Role.USER and message.tag is Tag.PLAIN
    ]
    texts = [
        (text, _EARLIER**age) for age, text in enumerate(reversed(asked[-1 - _EARLIER_QUESTIONS :]))
    ]
    specs = in_order(specs)
    points = scores(specs, texts)
    # A client's own tool for finding tools is worth more than its words.
    places = {name: place for place, name in enumerate({FIND_TOOLS: None, **used})}
    order = sorted(
        range(len(specs)), key=lambda at: (places.get(specs[at].name, len(places)), -points[at])
    )
    return [specs[at] for at in order]


def _told_in(messages: Sequence[Message]) -> set[str]:
    """Names of tools whose listing stands in one of our remarks."""
    return {name for message in messages for name in message.told}


def _remark(text: str, specs: Sequence[ToolSpec]) -> Message:
    return Message(Role.USER, text, tag=Tag.NOTICE, notice=Notice.LISTING, told=_names(specs))


def _names(specs: Sequence[ToolSpec]) -> tuple[str, ...]:
    return tuple(spec.name for spec in specs)
