"""Upstreams by model name: which entry a name means, and who steps in when it is down.

`Router` finds, `Route` is the Upstream for one name, routed_stream.py asks one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol, Self

from chathands.emulation.outcome import ModelRequest
from chathands.models_file import ANY, LONGEST_NAME
from chathands.upstreams.base import ModelStream, Upstream
from chathands.upstreams.openai_chat import OpenAIChat
from chathands.upstreams.resting import Circuit, KeyRing
from chathands.upstreams.routed_stream import RoutedStream
from chathands.upstreams.ways import Ways


class Watch(Protocol):
    """Told what happens behind a route, for metrics. Names are those of entries."""

    def upstream_error(self, entry: str, kind: str) -> None: ...
    def key_rests(self, entry: str, reason: str) -> None: ...
    def falls_back(self, entry: str, to: str) -> None: ...


@dataclass(slots=True)
class Member:
    """One entry at work."""

    name: str
    chat: OpenAIChat
    ways: Ways
    model: str | None = None
    """What the upstream calls it; None: the name that was asked for."""
    aliases: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    seconds: float | None = None
    first_byte: float | None = None
    circuit: Circuit = field(default_factory=Circuit)
    keys: KeyRing = field(default_factory=lambda: KeyRing(()))

    @property
    def resting(self) -> float:
        """Seconds for which it had better not be asked."""
        return max(self.circuit.resting, self.keys.resting)


@dataclass(frozen=True, slots=True)
class Route:
    """An Upstream under the name a client used. Closing it closes nothing: the router does."""

    name: str
    upstream: Upstream | None
    """Of a router that has only this one."""
    ways: Ways
    members: tuple[Member, ...] = ()
    """The entry, and those that step in."""
    watch: Watch | None = None

    @property
    def context(self) -> int:
        return self.upstream.context if self.upstream else self.members[0].chat.context

    @property
    def local(self) -> bool:
        return self.upstream.local if self.upstream else False

    @property
    def label(self) -> str:
        """The entry's name: of which there are few, whatever clients ask for."""
        return self.members[0].name if self.members else self.name

    def stream(self, request: ModelRequest, *, timeout: float) -> ModelStream:
        if self.upstream is not None:
            return self.upstream.stream(request, timeout=timeout)
        seconds = self.members[0].seconds
        timeout = timeout if seconds is None else min(timeout, seconds)
        return RoutedStream(self.members, self.name, request, timeout, self.watch)

    async def aclose(self) -> None:
        return None


class Router:
    """Finds the route for a model's name.

    `default`: an entry, and the name it is asked by. `own` is an upstream that is no entry: the one
    of the settings, whose name wins and which is the default. Close the router once, at the end.
    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        default: tuple[str, str] = ("", ""),
        own: Upstream | None = None,
        own_ways: Ways | None = None,
    ) -> None:
        self._members = {member.name: member for member in members}
        self._aliases = {alias: m.name for m in members for alias in m.aliases}
        self._default = default
        self._own = own
        self._own_ways = own_ways or Ways()
        self._closes_own = self._closes_members = True
        self.watch: Watch | None = None

    @classmethod
    def only(cls, upstream: Upstream, ways: Ways | None = None) -> Router:
        """One upstream, whatever name is asked for."""
        return cls((), own=upstream, own_ways=ways)

    @property
    def names(self) -> tuple[str, ...]:
        """What a list of models shows."""
        own = (self._own.name,) if self._own else ()
        return tuple(dict.fromkeys((*own, *(name for name in self._members if name != ANY))))

    @property
    def has_own(self) -> bool:
        """Whether there is an upstream that is no entry."""
        return self._own is not None

    @property
    def members(self) -> Mapping[str, Member]:
        return self._members

    @property
    def default(self) -> Route:
        """Of whoever names no model."""
        if self._own is not None:
            return self._own_route(self._own)
        entry, name = self._default
        return self._route(self._members[entry], name)

    def route(self, name: str) -> Route | None:
        """The upstream for the name a client asks for; None when there is none."""
        if self._own is not None and (name == self._own.name or not self._members):
            return self._own_route(self._own)
        member = self._members.get(self._aliases.get(name, name))
        if member is not None and name != ANY:
            return self._route(member, member.name)
        member = self._members.get(ANY)
        if member is None or name == ANY or not 0 < len(name) <= LONGEST_NAME:
            return None
        return self._route(member, name)

    def lent(self, *, own_only: bool = False) -> Self:
        """Another with the same upstreams, which closes none (`own_only`: not that one)."""
        other = copy(self)
        other._closes_own, other._closes_members = False, own_only
        return other

    async def aclose(self) -> None:
        if self._closes_members:
            for member in self._members.values():
                await member.chat.aclose()
        if self._own is not None and self._closes_own:
            await self._own.aclose()

    def _own_route(self, own: Upstream) -> Route:
        return Route(own.name, own, self._own_ways, watch=self.watch)

    def _route(self, member: Member, name: str) -> Route:
        others = tuple(self._members[other] for other in member.fallback)
        return Route(name, None, member.ways, (member, *others), self.watch)


class Routed:
    """The default route as the Upstream of a program that needs no other; it owns the router."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self._route = router.default
        self.name = self._route.name
        self.context = self._route.context
        self.local = self._route.local

    def stream(self, request: ModelRequest, *, timeout: float) -> ModelStream:
        return self._route.stream(request, timeout=timeout)

    async def aclose(self) -> None:
        await self.router.aclose()
