"""What `tools.toml` says, as values: a rule for each tool. Decisions are `policy`'s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from chathands.conversation import Audience, Face

Rule = Literal["never", "outward", "always"]
Approver = Literal["admin", "asker", "superuser"]
"""Where a call comes in: a chat, the tool server, MCP, the terminal."""

MAX_RATE = 10_000
"""Calls in one window. Each is remembered for as long as the window is."""

MAX_WINDOW = 86_400
"""Seconds of a window: a day. Counts of a day are better a `quota`, which survives a restart."""

MAX_LISTED = 1000
"""People or groups in one list; more is a group's or a role's job."""


def _ids(value: Any) -> tuple[str, ...]:
    """QQ numbers are written with and without quotes."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_LISTED:
        raise ValueError("not a list with something in it")
    found = []
    for each in value:
        if isinstance(each, bool) or not isinstance(each, int | str):
            raise ValueError("neither a number nor a string")
        text = str(each).strip()
        if not 0 < len(text) <= 100:
            raise ValueError("no id")
        found.append(text)
    return tuple(dict.fromkeys(found))


def _who(value: Any) -> Any:
    return value if value in get_args(Audience) else _ids(value)


def _approvers(value: Any) -> Any:
    return value if value in get_args(Approver) else _ids(value)


def _window(value: Any) -> str:
    """`5/minute`, several with `;` between them. Not kept parsed: that costs an import."""
    import limits

    if not isinstance(value, str):
        raise ValueError("not a string")
    for item in limits.parse_many(value):
        if not 0 < item.amount <= MAX_RATE or item.get_expiry() > MAX_WINDOW:
            raise ValueError("out of range")
    return value


def _faces(value: Any) -> tuple[str, ...]:
    faces = _ids(value)
    if unknown := set(faces) - set(get_args(Face)):
        raise ValueError(f"unknown faces {sorted(unknown)}")
    return faces


Ids = Annotated[tuple[str, ...], PlainValidator(_ids)]
Who = Annotated[Audience | tuple[str, ...], PlainValidator(_who)]
Approve = Annotated[Approver | tuple[str, ...], PlainValidator(_approvers)]
Window = Annotated[str, BeforeValidator(_window)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Rate(_Table):
    """How often a tool may run; a moving window each."""

    user: Window | None = None
    """One person, wherever they ask."""
    group: Window | None = None
    tool: Window | None = None
    """All together."""


class ToolRule(_Table):
    """One `[tools.NAME]` table, or `[defaults]`; None leaves what is the default without it."""

    enabled: bool = True
    faces: Annotated[tuple[Face, ...], PlainValidator(_faces)] | None = None
    groups: Ids | None = None
    not_groups: Ids | None = None
    private: bool | None = None
    who: Who | None = None
    approval: Rule | None = None
    approve: Approve = "admin"
    rate: Rate = Field(default_factory=Rate)
    quota: int | None = Field(default=None, ge=0)
    """Calls of one person a day."""
    timeout: float | None = Field(default=None, gt=0, le=3600)
    result_size: int | None = Field(default=None, ge=100)
    """Characters."""
    concurrency: int | None = Field(default=None, ge=1, le=1000)

    def over(self, defaults: ToolRule) -> ToolRule:
        """This rule where it says something, `defaults` where it does not."""
        written = {name: getattr(self, name) for name in self.model_fields_set}
        return defaults.model_copy(update=written)


class RulesFile(_Table):
    """The whole of `tools.toml`."""

    approval: Rule | None = None
    defaults: ToolRule = Field(default_factory=ToolRule)
    tools: dict[str, ToolRule] = Field(default_factory=dict)
    mcp: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """`[mcp.NAME]`: tool servers elsewhere; looked at by who connects to them."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One reading of the file, complete: what is decided with at one moment."""

    approval: Rule = "outward"
    defaults: ToolRule = field(default_factory=ToolRule)
    tools: Mapping[str, ToolRule] = field(default_factory=lambda: MappingProxyType({}))
    """By name, each as it is written."""
    mcp: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))

    def rule(self, name: str) -> ToolRule:
        """What holds for the tool, defaults included."""
        own = self.tools.get(name)
        return self.defaults if own is None else own.over(self.defaults)


ALLOWED: Mapping[str, str] = MappingProxyType(
    {
        "enabled": "true 或 false",
        "faces": '["bot", "http", "mcp", "cli"] 里的一个或几个',
        "groups": "群号的列表，至少一个",
        "not_groups": "群号的列表，至少一个",
        "private": "true 或 false",
        "who": "everyone、admin 或 superuser，或者 QQ 号的列表",
        "approval": "never、outward 或 always",
        "approve": "admin、asker 或 superuser，或者 QQ 号的列表",
        "rate": '一张表，例如 { user = "5/minute", group = "30/hour", tool = "100/day" }',
        "quota": "每人每天的次数，不小于 0 的整数",
        "timeout": "大于 0 的秒数，最多 3600",
        "result_size": "字数，不小于 100 的整数",
        "concurrency": "1 到 1000 的整数",
    }
)
"""What may be written for each key, for whoever wrote something else."""

RATE_ALLOWED = f'写成 "5/minute"（second、minute、hour、day，次数 1 到 {MAX_RATE}，最长一天）'
