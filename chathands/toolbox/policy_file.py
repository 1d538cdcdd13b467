"""Reads `tools.toml`, at start and whenever it is saved. A file with mistakes changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import ValidationError

from chathands.errors import ConfigError
from chathands.toml_text import Mistake, line_of, parse, read_text
from chathands.toolbox.policy import STRICTNESS, Policy
from chathands.toolbox.rules import ALLOWED, RATE_ALLOWED, Rate, Rule, Rules, RulesFile

if TYPE_CHECKING:
    from chathands.settings import Settings

_log = logging.getLogger(__name__)

FILE_NAME = "tools.toml"
SETTLE_SECONDS = 0.1
"""A file that is being written is read again until it stays the same that long: a half written one
may be correct TOML that lacks the rules at its end."""
SETTLE_TRIES = 20
"""Two seconds; a file that is written on and on is not read, which is said."""

_KEPT = "旧的规则继续有效，改好后保存就会生效。"


def policy_path(settings: Settings) -> Path:
    """Beside the tools directory."""
    return settings.tools_dir.parent / FILE_NAME


def load_policy(settings: Settings, path: Path | None = None) -> Policy:
    """The policy of `tools.toml`, by default the one beside the tools directory; it may be absent.

    Raises ConfigError with a sentence naming the line, table and key.
    """
    path = path or policy_path(settings)
    try:
        text = read_text(path)
        rules = Rules(settings.approval) if text is None else rules_of(text, settings.approval)
    except Mistake as mistake:
        raise mistake.as_error(path, "改好后再启动。") from mistake
    return Policy(rules)


class PolicyFile:
    """Keeps a policy at what the file says.

    `on_error` is told of a file that changes nothing because of a mistake in it, once for each;
    without one it is logged.
    """

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        *,
        path: Path | None = None,
        on_error: Callable[[ConfigError], object] | None = None,
    ) -> None:
        self.policy = policy
        self.path = path or policy_path(settings)
        self.error: ConfigError | None = None
        """What was wrong with it the last time."""
        self._floor: Rule = settings.approval
        self._on_error = on_error or _logged
        self._reading = asyncio.Lock()
        self._there = self.path.exists()
        self._followers: list[Callable[[Rules], Awaitable[object]]] = []

    def follow(self, told: Callable[[Rules], Awaitable[object]]) -> None:
        """Have `told` called with new rules as soon as they hold."""
        self._followers.append(told)

    async def reload(self, names: Iterable[str] = ()) -> ConfigError | None:
        """Read the file again and let its rules hold from now on, for runs that go on too.

        Gives what is wrong with it; then the old rules hold. They also do when it has gone or is
        empty: neither is how somebody lifts all restrictions. With the `names` of the tools there
        are, rules about others are logged.
        """
        async with self._reading:
            try:
                text = await self._settled()
                self._must_not_vanish(text)
                rules = Rules(self._floor) if text is None else rules_of(text, self._floor)
            except Mistake as mistake:
                return self._complain(mistake.as_error(self.path, _KEPT))
            self._there, self.error = text is not None, None
            if rules != self.policy.rules:
                self.policy.rules = rules
                _log.info("%s: new rules hold", FILE_NAME)
                for told in self._followers:
                    await told(rules)
        known = tuple(names)
        for complaint in self.policy.complaints(known) if known else ():
            _log.warning("%s", complaint)
        return None

    async def _settled(self) -> str | None:
        before = await asyncio.to_thread(read_text, self.path)
        for _ in range(SETTLE_TRIES):
            await asyncio.sleep(SETTLE_SECONDS)
            text = await asyncio.to_thread(read_text, self.path)
            if text == before:
                return text
            before = text
        raise Mistake("一直在变化，没有读")

    def _must_not_vanish(self, text: str | None) -> None:
        if text is None and self._there:
            raise Mistake("不见了；如果要取消所有规则，请放一个只写一行 # 注释的文件")
        if text is not None and not text.strip() and self.policy.rules != Rules(self._floor):
            raise Mistake("是空的；如果要取消所有规则，请在里面写一行 # 注释")

    def _complain(self, error: ConfigError) -> ConfigError:
        if self.error is None or str(self.error) != str(error):
            self._on_error(error)
        self.error = error
        return error


def rules_of(text: str, floor: Rule) -> Rules:
    """The rules that the file's text says, which may not ask for less approval than `floor`.

    Raises Mistake.
    """
    try:
        read = RulesFile.model_validate(parse(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = [str(part) for part in first["loc"]]
        raise Mistake(_explain(first["type"], where), line_of(text, where)) from None
    if read.approval and read.defaults.approval:
        line = line_of(text, ["defaults", "approval"])
        raise Mistake("approval 写了两处，[defaults] 里的和最上面的是一回事，请留一处", line)
    top = ["approval"] if read.approval else ["defaults", "approval"]
    said = read.approval or read.defaults.approval
    _must_not_loosen(text, top, said, floor)
    base = said or floor
    for name, rule in read.tools.items():
        _must_not_loosen(text, ["tools", name, "approval"], rule.approval, base)
    return Rules(base, read.defaults, MappingProxyType(read.tools), MappingProxyType(read.mcp))


def _must_not_loosen(text: str, where: list[str], rule: Rule | None, floor: Rule) -> None:
    if rule and STRICTNESS[rule] < STRICTNESS[floor]:
        named = f"[{'.'.join(where[:-1])}] approval" if len(where) > 1 else "approval"
        what = f"{named} = {rule} 比现行的 {floor} 宽松；这里只能收紧，放宽请改 CHATHANDS__APPROVAL"
        raise Mistake(what, line_of(text, where))


def _explain(kind: str, where: Sequence[str]) -> str:
    *table, key = where
    named = f"[{'.'.join(table)}] 里的 {key}" if table else key
    in_rule = table[:1] == ["defaults"] or table[:1] == ["tools"]
    in_rate = table[-1:] == ["rate"]
    if kind == "extra_forbidden":
        known: Iterable[str] = RulesFile.model_fields
        if in_rate:
            known = Rate.model_fields
        elif in_rule:
            known = ALLOWED
        return f"{named} 不认识，可以写的是 {'、'.join(known)}"
    if in_rate:
        return f"{named} 不对，应{RATE_ALLOWED}"
    allowed: Mapping[str, str] = ALLOWED if in_rule or key == "approval" else {}
    return f"{named} 不对，应为 {allowed.get(key, '一张表')}"


def _logged(error: ConfigError) -> None:
    _log.error("%s", error.sentence)
