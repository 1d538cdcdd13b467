"""What stands before a permitted call: is the tool well, is there room, has it been used enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from chathands.toolbox.breaker import Breakers, Doing
from chathands.toolbox.calls import Ready, Why
from chathands.toolbox.context import Caller
from chathands.toolbox.lanes import CONCURRENCY, Lanes, Stay
from chathands.toolbox.policy import Policy
from chathands.toolbox.rates import (
    DailyUse,
    DailyUseInMemory,
    Full,
    Rates,
    seconds_to_midnight,
)

_UNITS = ((86_400, "天"), (3600, "小时"), (60, "分钟"), (1, "秒"))
_WHOSE = {"user": "每人", "group": "每个群", "tool": "所有人合计"}


@dataclass(frozen=True, slots=True)
class Shut:
    """The call does not run now, and why."""

    why: Why
    sentence: str


class Pass:
    """The call may run. `end` says how it went, once."""

    def __init__(self, stay: Stay, breakers: Breakers, ready: Ready) -> None:
        self.stay = stay
        self._breakers = breakers
        self._ready = ready

    def end(self, doing: Doing) -> None:
        self._breakers.report(self._ready.tool, doing)
        self.stay.leave()


class Gate:
    """`wall` gives wall-clock seconds, for saying when."""

    def __init__(
        self,
        policy: Policy,
        tell: Callable[[str], object],
        *,
        daily: DailyUse | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._policy = policy
        self._wall = wall
        self.breakers = Breakers(tell)
        self.lanes = Lanes()
        self.rates = Rates()
        self.daily: DailyUse = daily or DailyUseInMemory(wall=wall)

    async def shut(self, ready: Ready, caller: Caller) -> Shut | None:
        """Why the call could not run now; None when it could. Takes nothing and waits for nothing:
        for asking before a person is."""
        name = ready.call.name
        rule = self._policy.rule(name)
        if self.lanes.stuck(name, rule.concurrency):
            count = self.lanes.left_behind(name)
            return Shut(
                Why("stuck"),
                f"工具 {name} 有 {count} 次调用卡住了还没有结束，暂时不能用；"
                "它们结束后自动恢复，一直不恢复请管理员重启或修好它。",
            )
        if (seconds := self.breakers.closed_for(ready.tool)) is not None:
            return self._broken(name, seconds)
        if (used_up := self._used_up(name, caller)) is not None:
            return used_up
        full = await self.rates.full(caller, name, rule.rate)
        return None if full is None else self._too_often(name, full)

    async def enter(self, ready: Ready, caller: Caller, seconds: float) -> Pass | Shut:
        """Let the call in, after waiting at most so many seconds for its turn."""
        if (shut := await self.shut(ready, caller)) is not None:
            return shut
        name = ready.call.name
        limit = self._policy.rule(name).concurrency
        stay = await self.lanes.enter(name, limit, seconds)
        if stay is None:
            return Shut(
                Why("busy", 1.0),
                f"工具 {name} 正忙（同时最多 {limit or CONCURRENCY} 次），没有等到空位，"
                "请稍后再试；"
                "上限由机器人的管理员在 tools.toml 的 concurrency 里改。",
            )
        try:
            shut = await self._take(ready, caller)
        except BaseException:
            stay.let_go()
            raise
        if shut is not None:
            stay.let_go()
            return shut
        return Pass(stay, self.breakers, ready)

    async def _take(self, ready: Ready, caller: Caller) -> Shut | None:
        """All of it once more, after the waiting, and counted this time."""
        name = ready.call.name
        rule = self._policy.rule(name)
        if (why := self._policy.refusal(caller, ready.spec)) is not None:
            return Shut(Why("forbidden"), why)
        if (used_up := self._used_up(name, caller)) is not None:
            return used_up
        if (full := await self.rates.spend(caller, name, rule.rate)) is not None:
            return self._too_often(name, full)
        # After what may still refuse: whoever the breaker lets in has to report.
        if (seconds := self.breakers.begin(ready.tool)) is not None:
            return self._broken(name, seconds)
        if rule.quota is not None:
            self.daily.count(_person(caller), name)
        return None

    def _used_up(self, name: str, caller: Caller) -> Shut | None:
        """Superusers set quotas and have none."""
        quota = self._policy.rule(name).quota
        if quota is None or caller.role == "superuser":
            return None
        if self.daily.today(_person(caller), name) < quota:
            return None
        return Shut(
            Why("quota", seconds_to_midnight(self._wall())),
            f"工具 {name} 每人每天最多用 {quota} 次，今天的已经用完，明天零点以后再用；"
            "次数由机器人的管理员在 tools.toml 的 quota 里改。",
        )

    def _too_often(self, name: str, full: Full) -> Shut:
        when = time.strftime("%H:%M:%S", time.localtime(self._wall() + full.seconds + 1))
        return Shut(
            Why("rate", full.seconds),
            f"工具 {name} 用得太频繁：{_WHOSE[full.whose]}{_span(full.window)}"
            f"最多 {full.amount} 次，请 {_wait(full.seconds)}后（{when}）再试；"
            "次数由机器人的管理员在 tools.toml 的 rate 里改。",
        )

    @staticmethod
    def _broken(name: str, seconds: float) -> Shut:
        return Shut(
            Why("breaker", seconds),
            f"工具 {name} 接连出错，暂时停用，约 {_wait(seconds)}后自动再试；"
            "一直这样请管理员看日志。",
        )


def _person(caller: Caller) -> str:
    return f"{caller.platform}:{caller.user_id}"


def _span(seconds: float) -> str:
    """A window, in the largest unit that divides it: 每分钟, 每 2 小时."""
    for unit, name in _UNITS:
        if seconds % unit == 0 and seconds >= unit:
            count = int(seconds // unit)
            return f"每{name}" if count == 1 else f"每 {count} {name}"
    return f"每 {seconds:g} 秒"


def _wait(seconds: float) -> str:
    """Rounded up: who comes back then is let in."""
    whole = int(seconds) + 1
    if whole < 120:
        return f"{whole} 秒"
    minutes = -(-whole // 60)
    return f"{minutes} 分钟" if minutes < 120 else f"{-(-minutes // 60)} 小时"
