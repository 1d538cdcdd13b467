"""How models use each tool, read from traces: what they got wrong, with the values they wrote.

Only runs leave traces; what programs call over HTTP and MCP is in the audit trail alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chathands.agent.trace_case import Recorded, recorded_replies
from chathands.conversation import ToolSpec
from chathands.emulation.outcome import Reason
from chathands.emulation.reading import parse_reply
from chathands.schema import compile_schema
from chathands.toolbox.render import cleaned, nearest_names, one_line

VALUES_SHOWN = 10
"""Commonest wrong values of one parameter."""

VALUE_CHARACTERS = 60
"""Of one value: enough to see what is wrong with it; the whole is in its trace."""

_KINDS_KEPT = 1000
"""Different wrong values of one parameter that are counted; a tool that gets free text of every
kind wrong must not fill the memory."""

_ANYTHING: Mapping[str, Any] = {"type": "object"}
"""Read against this, the arguments are what the model wrote."""

_WHY = {
    "coerced": "类型不对，改好了",
    "enum": "不是可选值，改好了",
    "renamed": "参数名不对，改好了",
    "dropped": "没有这个参数，去掉了",
    "nested": "多套或少套了一层，改好了",
}
_NOT_TAKEN = re.compile(r"参数 `?([A-Za-z_][\w.\[\]]*)`? ?(.+?)。")


@dataclass(frozen=True, slots=True)
class WrongValue:
    text: str
    why: str


@dataclass(slots=True)
class ToolUse:
    """What models did with one tool."""

    name: str
    asked: int = 0
    """Calls that models wrote, those turned down among them."""
    invalid: int = 0
    """Of these, with arguments that did not fit and could not be put right."""
    repaired: int = 0
    """Of these, put right before they ran."""
    run: int = 0
    failed: int = 0
    unknown: int = 0
    denied: int = 0
    wrong: dict[str, Counter[WrongValue]] = field(default_factory=dict)
    """By parameter."""
    reasons: Counter[str] = field(default_factory=Counter)
    """First sentences of results that failed."""
    misnamed: Counter[str] = field(default_factory=Counter)
    """Names that models made up and that come nearest to this tool's."""

    def add(self, parameter: str, text: str, why: str) -> None:
        values = self.wrong.setdefault(parameter, Counter())
        value = WrongValue(text, why)
        if value in values or len(values) < _KINDS_KEPT:
            values[value] += 1


@dataclass(slots=True)
class Report:
    runs: int = 0
    tools: dict[str, ToolUse] = field(default_factory=dict)
    invented: Counter[str] = field(default_factory=Counter)
    """Made-up names that come near no tool's."""
    unread: int = 0
    """Traces of another version, or damaged."""


class Reading:
    """Collects traces one by one. `redact` takes secrets out of what is shown."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self.report = Report()
        self._redact = redact

    def add(self, trace: Mapping[str, Any]) -> None:
        """Count one run, as the store gives it."""
        self.report.runs += 1
        try:
            # All of it or nothing: a trace that breaks off would tilt the shares.
            replies = [
                (each, list(_calls(each)), _unknown(each)) for each in recorded_replies(trace)
            ]
            steps = list(_call_steps(trace))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            self.report.unread += 1
            return
        for reply, calls, names in replies:
            for name, arguments in calls:
                self._written(next(s for s in reply.tools if s.name == name), arguments)
            for name in names:
                self._invented(name, [spec.name for spec in reply.tools])
        for step in steps:
            self._ran(step)

    def _use(self, name: str) -> ToolUse:
        return self.report.tools.setdefault(name, ToolUse(name))

    def _written(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        use = self._use(spec.name)
        use.asked += 1
        checked = compile_schema(spec.parameters).check(arguments)
        for problem in checked.problems:
            missing = problem.message == "missing"
            value = "（没有写）" if missing else self._shown(_at(arguments, problem.path))
            use.add(problem.path, value, problem.sentence("zh"))
        if checked.problems:
            use.invalid += 1
            return
        for tag in checked.repairs:
            kind, _, path = tag.partition(":")
            path, _, meant = path.partition(">")
            value = self._shown(_at(arguments, path))
            shown = f"{path}={value}" if meant or kind == "dropped" else value
            use.add(meant or path, shown, _WHY.get(kind, "改好了"))
        use.repaired += bool(checked.repairs)

    def _invented(self, name: str, names: Sequence[str]) -> None:
        name = self._cut(name)
        near = nearest_names(name, names, 1)
        (self._use(near[0]).misnamed if near else self.report.invented)[name] += 1

    def _ran(self, step: Mapping[str, Any]) -> None:
        call, result = step["call"], step["result"]
        name, status = str(call["name"]), str(result["status"])
        if name not in self.report.tools and "began" not in step:
            return  # nobody's tool
        use = self._use(name)
        use.run += "began" in step
        use.failed += status == "failed" and "began" in step
        use.unknown += status == "unknown"
        use.denied += status == "denied"
        if status == "failed":
            said = self._cut(str(result["content"]).strip().split("\n", 1)[0], 120)
            found = _NOT_TAKEN.match(said) if "began" not in step else None
            if found is not None:
                # Dates and patterns, which only the tool itself looks at.
                use.invalid += 1
                use.add(found[1], self._shown(_at(call["arguments"], found[1])), found[0][:-1])
            elif "began" in step:
                use.reasons[said] += 1

    def _shown(self, value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return self._cut(f"“{text}”" if isinstance(value, str) else text)

    def _cut(self, text: str, most: int = VALUE_CHARACTERS) -> str:
        # Redacted before it is cut: half a secret is not recognised.
        return one_line(cleaned(self._redact(text)), most)


def _calls(reply: Recorded) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls of a reply with the arguments as the model wrote them."""
    free = [replace(spec, parameters=_ANYTHING, examples=()) for spec in reply.tools]
    for call in parse_reply(reply.raw, free, reply.row.get("finish")).calls:
        yield call.name, call.arguments


def _unknown(reply: Recorded) -> list[str]:
    parsed = parse_reply(reply.raw, reply.tools, reply.row.get("finish"))
    return [
        broken.name
        for broken in parsed.broken
        if broken.reason is Reason.UNKNOWN_TOOL and broken.name
    ]


def _call_steps(trace: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if trace.get("earlier") is not None:
        yield from _call_steps(trace["earlier"])
    for step in trace["steps"]:
        if step["kind"] == "call":
            yield step


def _at(arguments: Any, path: str) -> Any:
    """The value at `period.start` or `rows[2].name`; None where there is none."""
    value = arguments
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d*)\]", path):
        if name:
            value = value.get(name) if isinstance(value, Mapping) else None
        elif isinstance(value, list | tuple):
            at = int(index or 0)
            value = value[at] if at < len(value) else None
    return value


def report_lines(report: Report, only: str | None = None) -> Iterator[str]:
    """The page, in Chinese."""
    uses = [use for use in report.tools.values() if only in (None, use.name)]
    yield f"{report.runs} 次提问的记录。HTTP、MCP 来的调用不在里面。"
    if report.unread:
        yield f"其中 {report.unread} 次读不出来（别的版本写的）。"
    for use in sorted(uses, key=lambda use: (-use.asked, use.name)):
        yield ""
        yield f"{use.name}  模型写了 {use.asked} 次调用"
        yield (
            f"  参数不合格 {_share(use.invalid, use.asked)}，改好后才能用 "
            f"{_share(use.repaired, use.asked)}"
        )
        outcomes = f"  执行 {use.run} 次，失败 {_share(use.failed, use.run)}"
        outcomes += f"，没让执行 {use.denied} 次" if use.denied else ""
        yield outcomes + (f"，结果不明 {use.unknown} 次" if use.unknown else "")
        for said, count in use.reasons.most_common(3):
            yield f"    失败 ×{count}  {said}"
        for parameter in sorted(use.wrong, key=lambda name: -use.wrong[name].total()):
            values = use.wrong[parameter]
            yield f"  {parameter or '（整体）'}  写错 {values.total()} 次"
            for value, count in values.most_common(VALUES_SHOWN):
                yield f"    ×{count}  {value.text}  {value.why}"
            if len(values) > VALUES_SHOWN:
                yield f"    还有 {len(values) - VALUES_SHOWN} 种"
        if use.misnamed:
            yield f"  名字写成了：{_named(use.misnamed)}"
    if report.invented and only is None:
        yield ""
        yield f"编造的、和哪个工具都不像的名字：{_named(report.invented)}"
    if not uses:
        yield "还没有模型用过这个工具。" if only else "记录里没有用到工具。"


def _share(part: int, whole: int) -> str:
    return f"{part} 次（{part * 100 / whole:.0f}%）" if whole else f"{part} 次"


def _named(names: Counter[str]) -> str:
    return "，".join(f"{name} ×{count}" for name, count in names.most_common(VALUES_SHOWN))
