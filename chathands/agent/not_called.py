"""Why a model does not call a tool: it may not have it (choice), the words do not lead to it
(description), or it decides otherwise (model). Looked at in this order, with what was seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from chathands.agent.prompts import persona, question_head
from chathands.agent.turns import TurnSetup
from chathands.conversation import Message, ToolSpec, canonical_json
from chathands.emulation.offer import offered_tools
from chathands.emulation.outcome import Answer, Calls, GiveUp, Language, Outcome, Retry
from chathands.emulation.related import likeness, spoken_of
from chathands.emulation.shortlist import rank
from chathands.emulation.turn import Turn
from chathands.errors import ToolLoadError, UpstreamError
from chathands.limits import CONTRACT_SHARE
from chathands.toolbox.breaker import FAILURES
from chathands.toolbox.check_text import thin
from chathands.toolbox.render import nearest_names, one_line
from chathands.upstreams.ways import Ways

if TYPE_CHECKING:
    from chathands.agent.toolbox import Toolbox
    from chathands.toolbox import Caller
    from chathands.upstreams.base import Upstream

Layer = Literal["choice", "description", "model"]

SHOWN = 160
"""Characters of what a model answered instead."""


@dataclass(slots=True)
class Looked:
    """What one of the three looks saw: remarks in order, and the first that is a reason."""

    layer: Layer
    remarks: list[str] = field(default_factory=list)
    fault: str | None = None

    def say(self, remark: str, *, fault: bool = False) -> None:
        self.remarks.append(remark)
        if fault and self.fault is None:
            self.fault = remark


# --- choice


def look_at_choice(
    name: str,
    toolbox: Toolbox,
    caller: Caller,
    errors: Sequence[ToolLoadError],
    tools_dir: Path,
    recent: Sequence[str],
) -> Looked:
    """Whether the tool is offered to this person at all. `recent`: how its last calls ended,
    newest first."""
    looked = Looked("choice")
    generation, policy = toolbox.registry.current, toolbox.policy
    spec = generation.specs.get(name)
    if spec is None:
        for remark in _why_not_loaded(name, toolbox, errors, tools_dir):
            looked.say(remark, fault=True)
        return looked
    looked.say(f"已加载，来自 {generation.owners[name]}。")
    for error in errors:
        if error.file.partition("/")[0].rstrip("/") == generation.owners[name].rstrip("/"):
            looked.say(f"它的文件现在有错，用的是旧的：{error.sentence}", fault=True)
    refusal = policy.refusal(caller, spec)
    if refusal is not None:
        looked.say(refusal, fault=True)
    else:
        looked.say("这个身份在这里能用它，模型看得到。")
    rule = policy.rule(name)
    if rule.quota == 0:
        looked.say("tools.toml 里它的 quota 是 0，一次也不能用。", fault=True)
    if len(recent) >= FAILURES and set(recent[:FAILURES]) <= {"failed", "unknown"}:
        looked.say(
            f"最近 {FAILURES} 次执行都没有成功：它可能正被停用（30 秒到 10 分钟），原因见日志。",
            fault=True,
        )
    if spec.deprecated is not None:
        looked.say(f"它标了已弃用（{spec.deprecated}），模型会照说明用别的。", fault=True)
    return looked


def _why_not_loaded(
    name: str, toolbox: Toolbox, errors: Sequence[ToolLoadError], tools_dir: Path
) -> Iterable[str]:
    if owner := toolbox.registry.current.unconfigured.get(name):
        yield f"{owner} 里有它，但还没有配置它要用的（enabled_when），所以不给任何人看。"
        return
    defined = re.compile(rf"^\s*(?:async\s+)?def\s+{re.escape(name)}\s*\(", re.M)
    found = [path for path in sorted(tools_dir.rglob("*.py")) if defined.search(_text(path))]
    shown = {path: path.relative_to(tools_dir).as_posix() for path in found}
    for error in errors:
        in_file = any(
            each == error.file or each.startswith(f"{error.file.partition('/')[0]}/")
            for each in shown.values()
        )
        if in_file or re.search(rf"\b{re.escape(name)}\b", error.detail):
            yield error.sentence
            return
    for file in shown.values():
        if any(part.startswith("_") and part != "__init__.py" for part in file.split("/")):
            yield f"它写在 {file} 里，名字以下划线开头的文件不加载。"
        else:
            yield f"{file} 里有这个函数，但它不是工具：前面没有 @tool(…)，或者不在模块的最外层。"
        return
    for standing in toolbox.foreign.standing():
        if standing.state != "ready" and name.startswith(standing.name):
            yield f"外部 MCP 服务 {standing.name} 没有连上：{standing.reason or '还在连'}"
            return
    near = nearest_names(name, sorted(toolbox.registry.current.specs))
    hint = f"，名字相近的有：{'、'.join(near)}" if near else ""
    yield f"没有叫 {name} 的工具{hint}。"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


# --- description


def look_at_description(
    spec: ToolSpec,
    tools: Sequence[ToolSpec],
    questions: Sequence[str],
    *,
    context: int,
    language: Language,
    thin_because: str | None = None,
) -> Looked:
    """Whether the words of the questions lead to the tool, and whether the contract lists it."""
    looked = Looked("description")
    if thin_because:
        looked.say(f"{thin_because}。", fault=True)
    if not spec.examples:
        looked.say("它没有示例（examples）：小模型照着示例学，比说明管用。")
    budget = int(context * CONTRACT_SHARE)
    for question in questions:
        about = f"「{question[:40]}」"
        place = [each.name for each in rank(tools, question)].index(spec.name) + 1
        like = likeness(question, spec)
        other = spoken_of(question, tools)
        if other is not None and other.name != spec.name:
            looked.say(
                f"{about}更像在说 {other.name}：在两边的 when_to_use 和 not_for 里写清分工。",
                fault=True,
            )
        if like is None:
            looked.say(f"{about}和说明不是一种文字，按词比不出来。")
        elif not like.related:
            looked.say(
                f"{about}和它的说明、示例几乎没有共同的词（共 {like.said} 个）：换成用户会说的词，"
                "或者加一条这样的示例。",
                fault=True,
            )
        else:
            looked.say(
                f"{about}和它有 {like.said} 个词对得上，在 {len(tools)} 个工具里排第 {place}。"
            )
        listed = offered_tools(tools, [Message.user(question)], budget, language)
        if listed is not None and spec.name not in {each.name for each in listed[0]}:
            looked.say(
                f"工具太多，给模型的说明只放得下 {len(listed[0])} 个（约 {budget} token），"
                f"{about}没有轮到它，模型要先找才看得到。",
                fault=True,
            )
    return looked


def thin_reason(toolbox: Toolbox, name: str) -> str | None:
    """As `tools check` says it; None for tools that are no files."""
    generation = toolbox.registry.current
    if generation.owners[name].startswith("mcp:"):
        return None
    return thin(generation.tools[name])


# --- model


async def look_at_model(
    spec: ToolSpec,
    tools: Sequence[ToolSpec],
    question: str,
    upstream: Upstream,
    ways: Ways,
    *,
    language: Language,
    seconds: float,
) -> Looked:
    """Ask the model, as a run asks it first, and see what it does. No tool is run."""
    looked = Looked("model")
    setup = TurnSetup(
        language=language,
        fence="",
        persona=persona(language),
        contract_budget=int(upstream.context * CONTRACT_SHARE),
    ).asked(ways.way)
    head = question_head(now=datetime.now(), name="", language=language)
    try:
        turn, outcome = await _ask(setup, question, head, tools, upstream, ways, seconds)
    except UpstreamError as error:
        looked.say(f"问不到模型：{error.sentence}", fault=True)
        return looked
    corrected = [str(entry["reason"]) for entry in turn.log if entry["outcome"] == "Retry"]
    if corrected:
        counts = Counter(corrected)
        looked.say("中途被退回：" + "，".join(f"{why} ×{n}" for why, n in counts.items()) + "。")
    _judge(looked, spec.name, outcome, turn)
    return looked


async def _ask(
    setup: TurnSetup,
    question: str,
    head: str,
    tools: Sequence[ToolSpec],
    upstream: Upstream,
    ways: Ways,
    seconds: float,
) -> tuple[Turn, Outcome]:
    turn = setup.build([Message.user(question, head=head)], tools)
    while True:
        request = turn.request()
        stream = upstream.stream(request, timeout=seconds)
        try:
            async for piece in stream:
                turn.feed(piece)
        except UpstreamError as error:
            weaker = ways.after(error, request, setup.way)
            if weaker is None:
                raise
            setup = setup.asked(weaker)
            turn = setup.build([Message.user(question, head=head)], tools)
            continue
        finally:
            await stream.aclose()
        outcome = turn.finish(stream.finish_reason)
        if not isinstance(outcome, Retry):
            return turn, outcome


def _judge(looked: Looked, name: str, outcome: Outcome, turn: Turn) -> None:
    wrote = [row["detail"] for entry in turn.log for row in entry["broken"] if row["name"] == name]
    match outcome:
        case Calls(calls=calls) if name in {call.name for call in calls}:
            call = next(call for call in calls if call.name == name)
            looked.say(f"它调用了 {name}：{_cut(canonical_json(dict(call.arguments)))}")
        case Calls(calls=calls):
            named = "、".join(dict.fromkeys(call.name for call in calls))
            looked.say(f"它没有调用 {name}，调用了 {named}。", fault=True)
        case _ if wrote:
            looked.say(f"它想调用 {name}，参数写不对：{_cut(wrote[-1])}", fault=True)
        case Answer(text=text):
            stance = turn.log[-1]["stance"]["kind"] if turn.log else "normal"
            how = {"refusal": "推说做不到", "clarify": "反问"}.get(stance, "直接回答")
            looked.say(f"它没有调用任何工具，{how}：{_cut(text)}", fault=True)
        case GiveUp(reason=reason, text=text):
            looked.say(f"它提醒几次也没有写出能用的调用（{reason}）：{_cut(text)}", fault=True)


def _cut(text: str) -> str:
    return one_line(text, SHOWN)


# --- verdict


def verdict(choice: Looked, description: Looked | None, model: Looked | None) -> tuple[bool, str]:
    """(whether the model gets to call it, one line that says where it fails)."""
    if model is None or model.fault is not None or choice.fault is not None:
        if choice.fault is not None:
            return False, f"结论：选择。{choice.fault}"
        if description is not None and description.fault is not None:
            return False, f"结论：说明。{description.fault}"
        if model is not None:
            return False, f"结论：模型。{model.fault}说明和选择都没有问题，可以换模型或方式再试。"
        return True, "结论：选择和说明没有问题；没有问模型。"
    if description is not None and description.fault is not None:
        return True, f"结论：模型会调用；但说明可以改：{description.fault}"
    return True, "结论：没有问题，模型会调用。"
