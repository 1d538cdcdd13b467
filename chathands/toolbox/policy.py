"""Who may use which tool, and when a person must say yes. Defaults, changed by `tools.toml`:

    approval = "always"              # all tools; may only tighten CHATHANDS__APPROVAL

    [defaults]                       # every tool that does not say otherwise
    rate = { user = "20/minute" }

    [tools.send_dingtalk_message]
    enabled = true
    faces = ["bot", "http"]          # bot (groups and private chats), http, mcp, cli
    groups = [123456]                # only there; or not_groups; private = true beside them
    who = "admin"                    # everyone, admin (group admins and owners), superuser, [ids]
    approval = "always"              # never < outward < always
    approve = "asker"                # who may say yes: admin (default), asker, superuser, [ids]
    rate = { user = "5/minute", group = "30/hour", tool = "100/day" }
    quota = 20                       # of one person a day
    timeout = 20                     # seconds
    result_size = 4000               # characters
    concurrency = 2

`outward`: what reaches other people or systems needs a yes. `always`: everything that changes
something; written at one tool it asks for that tool whatever it does. `never`: nobody is asked,
except in a run that has read text from outside.

What an admin says by command comes on top and only tightens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from chathands.conversation import Audience, Confidence, ToolSpec
from chathands.toolbox.context import Caller
from chathands.toolbox.render import nearest_names
from chathands.toolbox.rules import Approver, Face, Rule, Rules, ToolRule

__all__ = ["Approver", "Face", "Policy", "Rule", "Rules", "ToolRule", "face_of", "person_of"]

STRICTNESS: Mapping[str, int] = MappingProxyType({"never": 0, "outward": 1, "always": 2})
_RANK: Mapping[str, int] = MappingProxyType({"everyone": 0, "admin": 1, "superuser": 2})
_WHO = MappingProxyType({"admin": "群管理员、群主和超级用户", "superuser": "超级用户"})
_LISTED = "名单里的人和超级用户"
_FACES: Mapping[str, Face] = MappingProxyType({"http": "http", "mcp": "mcp", "terminal": "cli"})
_FACE_NAMES = MappingProxyType(
    {"bot": "群聊和私聊", "http": " HTTP 接口", "mcp": " MCP", "cli": "终端"}
)
_ASK_ADMIN = "要改请机器人的管理员改 tools.toml 的 {key}"


def face_of(caller: Caller) -> Face:
    """Where the caller comes in. What is no face of our own is a chat platform."""
    return _FACES.get(caller.platform, "bot")


def person_of(caller: Caller) -> str:
    """How a list names this person: a chat's user id alone, `http:NAME` for a token."""
    face = face_of(caller)
    return caller.user_id if face == "bot" else f"{face}:{caller.user_id}"


@dataclass(slots=True)
class Policy:
    """Decides from the caller and the tool alone; nothing a model or member writes reaches it.

    Whoever has it sees new rules at once: they are one value, replaced whole.
    """

    rules: Rules = field(default_factory=Rules)
    switched_off: Callable[[Caller, str], bool] = lambda _caller, _name: False
    """Whether an admin has switched a tool off where the caller is, by command."""
    narrowed: Callable[[Caller, str], Sequence[str]] = lambda _caller, _name: ()
    """Whom admins have left the tool to where the caller is, by command; all of them must hold.
    Each is `admin`, `superuser`, or user ids with commas between them."""

    @property
    def approval(self) -> Rule:
        return self.rules.approval

    def rule(self, name: str) -> ToolRule:
        return self.rules.rule(name)

    def audience(self, spec: ToolSpec) -> Audience:
        """The least rank that has the tool; people on a list count as the highest, so that what
        few see stands at the end."""
        ranks: list[Audience] = [w if isinstance(w, str) else "superuser" for w in self._whos(spec)]
        return max(ranks, key=_RANK.__getitem__)

    def refusal(self, caller: Caller, spec: ToolSpec) -> str | None:
        """Why this person may not use the tool, one sentence that says who can change it; None when
        they may."""
        rule = self.rule(spec.name)
        if rule.faces is None and spec.faces:  # what the author says, until the admin does
            rule = rule.model_copy(update={"faces": spec.faces})
        if why := _closed_here(rule, caller):
            what, key = why
            return f"工具 {spec.name} {what}，{_ASK_ADMIN.format(key=key)}。"
        if self.switched_off(caller, spec.name):
            return (
                f"工具 {spec.name} 在这里被管理员关掉了，要用请管理员发“工具 开 {spec.name}”恢复。"
            )
        for who in self._whos(spec):
            if not _among(caller, who):
                change = _ASK_ADMIN.format(key="who")
                return f"没有权限使用 {spec.name}：只有{_called(who)}可以用，{change}。"
        for said in self.narrowed(caller, spec.name):
            who = _said(said)
            if not _among(caller, who):
                return (
                    f"没有权限使用 {spec.name}：管理员在这里只让{_called(who)}用，"
                    f"要改请管理员发“工具 谁 {spec.name} 所有人”。"
                )
        return None

    def timeout(self, spec: ToolSpec, default: float) -> float:
        """Seconds a call may take."""
        return self.rule(spec.name).timeout or default

    def approval_reason(
        self, spec: ToolSpec, *, read_foreign: bool, confidence: Confidence = "strict"
    ) -> str | None:
        """Why a person must say yes before the call runs, one sentence; None when nobody has to."""
        rules = self.rules
        written = rules.tools.get(spec.name)
        own = written.approval if written is not None else None
        rule = max(rules.approval, own or rules.approval, key=STRICTNESS.__getitem__)
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

    def may_approve(self, name: str, by: Caller, *, is_asker: bool) -> bool:
        """Whether the rules of the tool let `by` say yes to a call of it. That they are where it
        was asked is not looked at here."""
        approve = self.rule(name).approve
        if by.role == "superuser":
            return True
        if not isinstance(approve, str):
            return person_of(by) in approve
        if approve == "asker" and is_asker:
            return True
        return approve != "superuser" and by.role in ("admin", "owner")

    def complaints(self, names: Iterable[str]) -> tuple[str, ...]:
        """One sentence for each rule about a tool that does not exist: a typo there would leave
        the tool it meant open."""
        from chathands.toolbox.mcp_config import prefixes_of

        known = sorted(names)
        found = []
        away = prefixes_of(self.rules.mcp)  # whose tools come and go
        for name in self.rules.tools:
            if name not in known and not name.startswith(away):
                near = nearest_names(name, known, 1)
                hint = f"，是不是 {near[0]}？" if near else "。"
                found.append(f"tools.toml 里的 [tools.{name}] 没有对应的工具{hint}")
        return tuple(found)

    def _whos(self, spec: ToolSpec) -> list[Audience | tuple[str, ...]]:
        """All of these must hold. What is written at the tool is the last word; the defaults do not
        open what its author has kept for a few."""
        rules = self.rules
        own = rules.tools.get(spec.name)
        if own is not None and own.who is not None:
            return [own.who]
        return [spec.audience, *([rules.defaults.who] if rules.defaults.who else [])]


def _closed_here(rule: ToolRule, caller: Caller) -> tuple[str, str] | None:
    """Why nobody has the tool where the caller is, and the key that says so."""
    if not rule.enabled:
        return "已被停用", "enabled"
    face = face_of(caller)
    if rule.faces is not None and face not in rule.faces:
        named = "、".join(_FACE_NAMES[each].strip() for each in rule.faces)
        return f"不能从{_FACE_NAMES[face]}使用，只能从{named}使用", "faces"
    if face != "bot":
        # A list of groups keeps the tool to them, unless this face is named beside it.
        only_groups = rule.groups is not None and rule.faces is None
        return (
            (f"只在指定的群里开放，不能从{_FACE_NAMES[face]}使用", "faces") if only_groups else None
        )
    if caller.group_id is None:
        if rule.private is False or (rule.private is None and rule.groups is not None):
            return "不在私聊里开放，请到开放它的群里用", "private"
        return None
    if rule.groups is not None and caller.group_id not in rule.groups:
        return "不在这个群里开放", "groups"
    if rule.not_groups is not None and caller.group_id in rule.not_groups:
        return "不在这个群里开放", "not_groups"
    return None


def _among(caller: Caller, who: Audience | tuple[str, ...]) -> bool:
    if caller.role == "superuser":
        return True
    if isinstance(who, str):
        return _RANK[caller.audience] >= _RANK[who]
    return person_of(caller) in who


def _called(who: Audience | tuple[str, ...]) -> str:
    return _WHO[who] if isinstance(who, str) else _LISTED


def _said(value: str) -> Audience | tuple[str, ...]:
    if value == "admin" or value == "superuser":
        return value
    return tuple(value.split(","))
