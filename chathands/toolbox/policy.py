"""Who may use which tool, and when a person must say yes. Defaults, changed by `tools.toml`:

    approval = "always"              # all tools; may only tighten CHATHANDS__APPROVAL

    [tools.send_dingtalk_message]
    enabled = true
    who = "admin"                    # everyone, admin (group admins and owners), superuser
    approval = "always"              # never < outward < always
    approve = "asker"                # who may say yes: admin (default), asker, superuser
    timeout = 20                     # seconds

`outward`: what reaches other people or systems needs a yes. `always`: everything that changes
something; written at one tool it asks for that tool whatever it does. `never`: nobody is asked,
except in a run that has read text from outside.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chathands.conversation import Audience, Confidence, ToolSpec
from chathands.errors import ConfigError
from chathands.toolbox.context import Caller
from chathands.toolbox.render import nearest_names

if TYPE_CHECKING:
    from chathands.settings import Settings

Rule = Literal["never", "outward", "always"]
Approver = Literal["admin", "asker", "superuser"]

_STRICTNESS: Mapping[str, int] = MappingProxyType({"never": 0, "outward": 1, "always": 2})
_RANK: Mapping[str, int] = MappingProxyType({"everyone": 0, "admin": 1, "superuser": 2})
_WHO = MappingProxyType({"admin": "群管理员、群主和超级用户", "superuser": "超级用户"})


class ToolRule(BaseModel):
    """One `[tools.NAME]` table; None leaves the tool's own default."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    enabled: bool = True
    who: Audience | None = None
    approval: Rule | None = None
    approve: Approver = "admin"
    timeout: float | None = Field(default=None, gt=0)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    approval: Rule | None = None
    tools: dict[str, ToolRule] = Field(default_factory=dict)


_DEFAULT = ToolRule()


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides from the caller and the tool alone; nothing a model or member writes reaches it."""

    approval: Rule = "outward"
    rules: Mapping[str, ToolRule] = field(default_factory=dict)
    switched_off: Callable[[Caller, str], bool] = lambda _caller, _name: False
    """Whether an admin has switched a tool off where the caller is, by command."""

    def rule(self, name: str) -> ToolRule:
        return self.rules.get(name, _DEFAULT)

    def audience(self, spec: ToolSpec) -> Audience:
        return self.rule(spec.name).who or spec.audience

    def refusal(self, caller: Caller, spec: ToolSpec) -> str | None:
        """Why this person may not use the tool, one sentence; None when they may."""
        if not self.rule(spec.name).enabled:
            return f"工具 {spec.name} 已被管理员停用。"
        if self.switched_off(caller, spec.name):
            return f"工具 {spec.name} 在这里被管理员关掉了。"
        audience = self.audience(spec)
        if _RANK[caller.audience] < _RANK[audience]:
            return f"没有权限使用 {spec.name}：只有{_WHO[audience]}可以用，请告诉提问的人。"
        return None

    def timeout(self, spec: ToolSpec, default: float) -> float:
        return self.rule(spec.name).timeout or default

    def approval_reason(
        self, spec: ToolSpec, *, read_foreign: bool, confidence: Confidence = "strict"
    ) -> str | None:
        """Why a person must say yes before the call runs, one sentence; None when nobody has to."""
        own = self.rule(spec.name).approval
        rule = max(self.approval, own or self.approval, key=_STRICTNESS.__getitem__)
        outward = spec.side_effect in ("outward", "unknown")
        if rule == "always" and (own == "always" or spec.side_effect != "none"):
            reason = "管理员要求每次执行前都确认"
        elif outward and rule != "never":
            reason = "这个操作会影响群外或其他人"
        elif outward and read_foreign:
            reason = "这次提问读过外部内容，对外的操作要由人确认"
        else:
            return None
        if confidence != "strict":
            reason += "；模型写的调用不完整，经过修复，请仔细核对"
        return reason + "。"

    def complaints(self, names: Iterable[str]) -> tuple[str, ...]:
        """One sentence for each rule about a tool that does not exist: a typo there would leave
        the tool it meant open."""
        known = sorted(names)
        found = []
        for name in self.rules:
            if name not in known:
                near = nearest_names(name, known, 1)
                hint = f"，是不是 {near[0]}？" if near else "。"
                found.append(f"tools.toml 里的 [tools.{name}] 没有对应的工具{hint}")
        return tuple(found)


def load_policy(settings: Settings, path: Path | None = None) -> Policy:
    """The policy of `tools.toml`, by default the one beside the tools directory; it may be absent.

    Raises ConfigError with a sentence naming the table and key.
    """
    path = path or settings.tools_dir.parent / "tools.toml"
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return Policy(settings.approval)
    except (OSError, UnicodeDecodeError) as error:
        what = f"读不出来（{type(error).__name__}），请检查权限和编码（UTF-8）"
        raise _mistake(path, what) from error
    try:
        read = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise _mistake(path, f"不是合法的 TOML：{error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _mistake(path, _explain(first)) from None
    _must_not_loosen(path, "approval", read.approval, settings.approval)
    base: Rule = read.approval or settings.approval
    for name, rule in read.tools.items():
        _must_not_loosen(path, f"[tools.{name}] approval", rule.approval, base)
    return Policy(base, MappingProxyType(read.tools))


def _must_not_loosen(path: Path, where: str, rule: Rule | None, base: Rule) -> None:
    if rule and _STRICTNESS[rule] < _STRICTNESS[base]:
        what = f"{where} = {rule} 比现行的 {base} 宽松；这里只能收紧，放宽请改 CHATHANDS__APPROVAL"
        raise _mistake(path, what)


def _mistake(path: Path, what: str) -> ConfigError:
    return ConfigError(f"{path}: {what}", sentence=f"{path.name} 有误：{what}。改好后再启动。")


_ALLOWED = MappingProxyType(
    {
        "enabled": "true 或 false",
        "who": "everyone、admin 或 superuser",
        "approval": "never、outward 或 always",
        "approve": "admin、asker 或 superuser",
        "timeout": "大于 0 的秒数",
    }
)


def _explain(fault: Mapping[str, Any]) -> str:
    *table, key = (str(part) for part in fault["loc"])
    where = f"[{'.'.join(table)}] 里的 {key}" if table else key
    if fault["type"] == "extra_forbidden":
        known = "、".join(_ALLOWED) if table else "approval、tools"
        return f"{where} 不认识，可以写的是 {known}"
    return f"{where} 不对，应为 {_ALLOWED.get(key, '一张表')}"
