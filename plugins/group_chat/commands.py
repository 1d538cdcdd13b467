"""Commands: answered in words, at once, without the model. And who may use the bot where.

Roles come from the event, never from what somebody says; an admin for one group is one there only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from nonebot.log import logger

from chathands.errors import StoreError
from chathands.settings import Settings
from chathands.store import EVERYWHERE
from chathands.toolbox.render import nearest_names
from plugins.group_chat import capture, tool_rules
from plugins.group_chat import command_replies as say
from plugins.group_chat.command_words import ADMINS_ONLY, Command, Name, command_in
from plugins.group_chat.lifecycle import NotReady
from plugins.group_chat.log_tail import LogTail
from plugins.group_chat.messages import Incoming, Place

if TYPE_CHECKING:
    from chathands.agent import Agent
    from chathands.store import Places, Store

RECORDS, LOG_LINES = 10, 20
"""Lines where no number is said."""
MAX_RECORDS, MAX_LOG_LINES = 50, 50
"""More would only fill the group; the machine has the rest."""
RUNS_LOOKED_AT = 200
"""Of a group, for telling which log lines are about it."""
BUSIEST = 5
MONTH_DAYS = 30
STORE_DOWN = "状态数据库现在用不了，这个命令没有执行，请管理员检查磁盘和日志。"


class HasAgent(Protocol):
    def agent(self) -> Agent:
        """Raises NotReady with the sentence for people."""
        ...


class Commands:
    """`answer` deals with a message that is a command; `ranked` comes before it.

    `busy` gives how many questions are being dealt with and how many wait.
    """

    def __init__(self, settings: Settings, engine: HasAgent, log: LogTail | None = None) -> None:
        self._settings = settings
        self._engine = engine
        self._log = log
        self._store: Store | None = None
        self.busy: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self._ways: Mapping[Name, Callable[[Incoming, Command], Awaitable[str]]] = {
            "tools": self._tools,
            "status": self._status,
            "forget": self._forget,
            "usage": self._usage,
            "on": self._on,
            "off": self._off,
            "tool_on": self._switch_tool,
            "tool_off": self._switch_tool,
            "tool_rule": self._tool_rule,
            "tool_who": self._tool_who,
            "quota": self._quota,
            "admins": self._admins,
            "reload": self._reload,
            "records": self._records,
            "log": self._log_lines,
        }

    def open(self, store: Store) -> None:
        """The state is there, perhaps long before the agent: who is off is off already."""
        self._store = store

    def ranked(self, incoming: Incoming) -> Incoming:
        """The message with the rank this group's owner has given its sender."""
        places, place = self._places(), incoming.place
        if (
            incoming.role == "member"
            and not place.private
            and places is not None
            and places.is_admin(place.lane, place.user_id)
        ):
            return replace(incoming, role="admin")
        return incoming

    def silent(self, place: Place) -> bool:
        """Whether the bot is off there: it says nothing, but to an admin's 开."""
        places = self._places()
        if place.private or places is None:
            return False
        return not places.is_on(place.lane, default=self._settings.group.enabled)

    async def answer(self, incoming: Incoming) -> str | None:
        """What a command is answered with; empty: nothing may be said. None: it is no command, and
        the person may ask."""
        command = self._command(incoming)
        if self.silent(incoming.place):
            wakes = command is not None and command.name == "on" and _is_admin(incoming)
            if not wakes:
                return ""
        if command is None or command.name == "stop":
            return self._over_quota(incoming)
        if (refusal := _refusal(incoming, command)) is not None:
            return refusal
        if command.name == "help":
            return say.help_text(
                admin=_is_admin(incoming),
                private=incoming.place.private,
                shared=self._shared(incoming),
            )
        try:
            return await self._ways[command.name](incoming, command)
        except NotReady as reason:
            return reason.sentence
        except StoreError as error:
            logger.error(f"a command failed: {error}")
            return STORE_DOWN

    def _command(self, incoming: Incoming) -> Command | None:
        """An answer to one of the bot's messages is no command: 开 there is what was asked for."""
        if incoming.quoted is not None and not incoming.mentioned:
            return None
        return command_in(incoming.text)

    def _over_quota(self, incoming: Incoming) -> str | None:
        """The sentence for somebody who has used up the day; decisions and 停 cost nothing."""
        store = self._state()
        asks = capture.question_text(incoming) is not None
        free = capture.is_stop(incoming.text) or capture.decision_in(incoming.text) is not None
        if store is None or not asks or free or incoming.role == "superuser":
            return None
        quota = self._quota_of(incoming)
        place = incoming.place
        if not quota or store.usage.today(place.lane, place.user_id).questions < quota:
            return None
        return say.QUOTA_USED.format(quota=quota)

    # --- for everybody

    async def _tools(self, incoming: Incoming, command: Command) -> str:
        agent = self._engine.agent()
        usable = [(spec, agent.asks_first(spec)) for spec in agent.tools_for(incoming.caller)]
        places, place = agent.store.places, incoming.place
        off = [name for name in agent.describe().tools if places.tool_off(place.lane, name)]
        return say.tools_text(usable, off, admin=_is_admin(incoming))

    async def _status(self, incoming: Incoming, command: Command) -> str:
        agent = self._engine.agent()
        return say.status_text(
            agent.describe(),
            usable=len(agent.tools_for(incoming.caller)),
            group=not incoming.place.private,
            shared=self._shared(incoming),
            rounds=self._settings.store.history_rounds,
            days=self._settings.store.memory_days,
            busy=self.busy(),
        )

    async def _forget(self, incoming: Incoming, command: Command) -> str:
        shared = self._shared(incoming)
        if shared and not _is_admin(incoming):
            return say.FORGET_SHARED
        whose = "这个群" if shared else "你"
        conversation = capture.conversation_id(incoming, self._settings.group)
        count = await self._engine.agent().forget(conversation)
        if not count:
            return say.NOTHING_TO_FORGET.format(whose=whose)
        return say.FORGOT.format(whose=whose, count=count)

    async def _usage(self, incoming: Incoming, command: Command) -> str:
        usage, place = self._open_store().usage, incoming.place
        others = usage.today_in(place.lane)[:BUSIEST] if _is_admin(incoming) else []
        return say.usage_text(
            usage.today(place.lane, place.user_id),
            await usage.over(place.lane, place.user_id, MONTH_DAYS),
            self._quota_of(incoming),
            [] if place.private else others,
            private=place.private,
        )

    # --- for admins

    async def _on(self, incoming: Incoming, command: Command) -> str:
        was_off = self.silent(incoming.place)
        await self._open_store().places.set(incoming.place.lane, "switch", "", "on")
        return say.SWITCHED_ON if was_off else say.ALREADY_ON

    async def _off(self, incoming: Incoming, command: Command) -> str:
        await self._open_store().places.set(incoming.place.lane, "switch", "", "off")
        return say.SWITCHED_OFF

    async def _switch_tool(self, incoming: Incoming, command: Command) -> str:
        if command.change == "unclear":
            return say.NAME_A_TOOL
        name, agent = self._tool_named(command), self._engine.agent()
        if name is None:
            return self._no_such_tool(command)
        places, private = agent.store.places, incoming.place.private
        on = command.name == "tool_on"
        where = EVERYWHERE if private else incoming.place.lane
        await places.set(where, "tool", name, None if on else "off")
        if on and not private and places.tool_off(where, name):
            return say.still_off_text(name)
        return say.switched_text(name, on=on, private=private)

    async def _tool_rule(self, incoming: Incoming, command: Command) -> str:
        name = self._tool_named(command)
        if name is None:
            return self._no_such_tool(command)
        facts = self._engine.agent().tool_facts(name, incoming.caller)
        return tool_rules.rule_text(facts, admin=_is_admin(incoming))

    async def _tool_who(self, incoming: Incoming, command: Command) -> str:
        """On top of tools.toml, so it only ever takes away."""
        name, agent = self._tool_named(command), self._engine.agent()
        if name is None:
            return self._no_such_tool(command)
        who = tool_rules.left_to(command.who)
        if who is None:
            return tool_rules.NAME_SOMEBODY
        private = incoming.place.private
        where = EVERYWHERE if private else incoming.place.lane
        await agent.store.places.set(where, "who", name, who or None)
        refusal = agent.tool_facts(name, incoming.caller).refusal
        return tool_rules.changed_text(name, who, private=private, refusal=refusal)

    def _tool_named(self, command: Command) -> str | None:
        """The tool as it is spelt."""
        names = self._engine.agent().describe().tools
        return {name.casefold(): name for name in names}.get(command.argument)

    def _no_such_tool(self, command: Command) -> str:
        names = sorted(self._engine.agent().describe().tools)
        return say.unknown_tool_text(command.argument, nearest_names(command.argument, names, 2))

    async def _quota(self, incoming: Incoming, command: Command) -> str:
        place, user = incoming.place, command.argument
        if not command.change:
            return say.quota_text(self._quota_of(incoming), "")
        if command.number == 0:
            return say.QUOTA_ZERO
        value = "0" if command.change == "unlimited" else str(command.number)
        await self._open_store().places.set(
            place.lane, "quota", user, None if command.change == "default" else value
        )
        return say.quota_text(self._quota_for(place, user), user)

    async def _admins(self, incoming: Incoming, command: Command) -> str:
        places, where, user = self._open_store().places, incoming.place.lane, command.argument
        if not command.change:
            return say.admins_text(places.admins(where))
        if incoming.role not in ("owner", "superuser"):
            return say.ONLY_OWNER
        if not user.isdecimal():
            return say.NAME_A_NUMBER
        added = command.change == "add"
        by = incoming.place.user_id
        await places.set(where, "admin", user, f"by {by}" if added else None)
        return say.admin_changed_text(user, added=added)

    async def _reload(self, incoming: Incoming, command: Command) -> str:
        agent = self._engine.agent()
        before = agent.describe().tools
        errors = await agent.reload_tools()
        said = [error.sentence if incoming.place.private else "" for error in errors]
        text = say.reloaded_text(before, agent.describe().tools, errors, said=said)
        return text if agent.policy_error is None else f"{text}\n{agent.policy_error.sentence}"

    async def _records(self, incoming: Incoming, command: Command) -> str:
        count = _bounded(command.number, RECORDS, MAX_RECORDS)
        lines = await self._open_store().traces.list(count, place=_runs_of(incoming.place))
        return say.records_text(lines, everywhere=incoming.place.private)

    async def _log_lines(self, incoming: Incoming, command: Command) -> str:
        if self._log is None:
            return say.log_text([], group=not incoming.place.private)
        count = _bounded(command.number, LOG_LINES, MAX_LOG_LINES)
        runs = None
        if not incoming.place.private:  # what other groups do is not this one's to read
            traces = self._open_store().traces
            of_group = await traces.list(RUNS_LOOKED_AT, place=_runs_of(incoming.place))
            runs = {line.ref for line in of_group}
        return say.log_text(self._log.last(count, runs=runs), group=not incoming.place.private)

    # --- what is known

    def _shared(self, incoming: Incoming) -> bool:
        return self._settings.group.session == "group" and not incoming.place.private

    def _quota_of(self, incoming: Incoming) -> int:
        return self._quota_for(incoming.place, incoming.place.user_id)

    def _quota_for(self, place: Place, user: str) -> int:
        places = self._places()
        quota = places.quota(place.lane, user) if places is not None else None
        return self._settings.group.per_user_day if quota is None else quota

    def _places(self) -> Places | None:
        store = self._state()
        return store.places if store is not None else None

    def _open_store(self) -> Store:
        """The store; raises NotReady before there is one."""
        return self._state() or self._engine.agent().store

    def _state(self) -> Store | None:
        """The store: given early, else the agent's."""
        if self._store is None:
            try:
                self._store = self._engine.agent().store
            except NotReady:
                return None
        return self._store


def _is_admin(incoming: Incoming) -> bool:
    """For this place: in a private chat nobody's rank in a group counts."""
    if incoming.place.private:
        return incoming.role == "superuser"
    return incoming.role in ("admin", "owner", "superuser")


def _refusal(incoming: Incoming, command: Command) -> str | None:
    """Why this person may not use the command here, one sentence; None when they may."""
    private = incoming.place.private
    sets = command.name in ADMINS_ONLY or (command.name == "quota" and command.change)
    if sets and not _is_admin(incoming):
        return say.ONLY_SUPERUSER if private else say.ONLY_ADMINS
    if private and (command.name in ("on", "off", "admins") or (command.name == "quota" and sets)):
        return say.IN_A_GROUP
    return None


def _bounded(number: int | None, otherwise: int, most: int) -> int:
    return otherwise if number is None else max(1, min(number, most))


def _runs_of(place: Place) -> str:
    """What the conversations of a group begin with; all of them for a superuser in private."""
    return "" if place.private else f"{place.platform}:{place.bot_id}:{place.group_id}:"
