"""Reading a trace: the verdict, the page a person reads, and the replay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chathands.agent.trace import REQUEST_EXTRAS, outcome_to_row, pieces_from_rows
from chathands.agent.turns import TurnSetup
from chathands.emulation.outcome import Reason
from chathands.store import codec

_BLAME = {
    Reason.REFUSAL: "contract",
    Reason.MISSED_CALL: "contract",
    Reason.UNKNOWN_TOOL: "contract",
    Reason.WRONG_TOOL: "contract",
    Reason.EMPTY: "contract",
    Reason.BROKEN_CALL: "parser",
    Reason.INVALID_ARGUMENTS: "parser",
    Reason.TRUNCATED: "upstream",
    Reason.UNGROUNDED: "review",
    Reason.UNCONFIRMED: "review",
    Reason.UNBACKED_CLAIM: "review",
    Reason.UNBACKED_FIGURE: "review",
}
"""Where to look when a run ended in a reason: did the model not take the contract (contract), could
we not read it (parser), or did we not accept what we read (review)?"""


# --- verdict


def verdict_of(trace: Mapping[str, Any]) -> str:
    """One line: `ok`, or contract, parser, review, state, tool or upstream, and why."""
    if trace.get("outcome") == "suspended":
        return "ok: 等待确认"
    last = _last_request(trace)
    cause = trace_cause(trace)
    if trace.get("outcome") in ("answered", "cancelled"):
        return _verdict_of_answered(trace)
    if cause is not None and cause[0] == "state":
        return f"state: {cause[1]}"
    if last is not None and last.get("error") and not _cut_by_deadline(last):
        return f"upstream: {last['error']}"
    if last is not None and (last.get("outcome") or {}).get("kind") in ("give_up", "retry"):
        reason = Reason(last["outcome"]["reason"])
        return f"{_BLAME[reason]}: {reason}"
    return _verdict_of_lost_time(trace)


def trace_cause(trace: Mapping[str, Any]) -> tuple[str, str] | None:
    """The last note that names a layer to blame, as (layer, detail)."""
    for step in reversed(trace.get("steps", ())):
        if step["kind"] == "note" and step["what"] == "state":
            return "state", step["detail"]
    return None


def _verdict_of_answered(trace: Mapping[str, Any]) -> str:
    bad = [
        f"{step['result']['name']} {step['result']['status']}"
        for step in trace["steps"]
        if step["kind"] == "call" and step["result"]["status"] in ("failed", "unknown")
    ]
    if bad and trace.get("outcome") == "answered":
        return f"tool: {'，'.join(bad)}"
    reasons = [
        row["outcome"]["reason"]
        for row in _requests(trace)
        if (row.get("outcome") or {}).get("kind") == "retry"
    ]
    corrected = f"（纠正过：{'，'.join(reasons)}）" if reasons else ""
    return f"ok{corrected}" if trace.get("outcome") == "answered" else f"ok: 已停止{corrected}"


def _verdict_of_lost_time(trace: Mapping[str, Any]) -> str:
    """Nothing failed by itself, so that time ran out: who took it?"""
    model = sum(row.get("ended", row["at"]) - row["at"] for row in _requests(trace))
    tools = sum(
        (step["result"].get("cost_ms") or 0) / 1000
        for step in trace["steps"]
        if step["kind"] == "call"
    )
    if tools > model:
        return f"tool: 工具用了 {tools:.1f} 秒，模型用了 {model:.1f} 秒"
    return f"upstream: 模型用了 {model:.1f} 秒，工具用了 {tools:.1f} 秒"


def _requests(trace: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for step in trace.get("steps", ()):
        if step["kind"] == "turn":
            yield from step["requests"]


def _last_request(trace: Mapping[str, Any]) -> dict[str, Any] | None:
    last = None
    for row in _requests(trace):
        last = row
    return last


DEADLINE_ERROR = "deadline"
"""What `error` of a request says that we cut off ourselves."""


def _cut_by_deadline(row: Mapping[str, Any]) -> bool:
    return row.get("error") == DEADLINE_ERROR


# --- the page


def render_trace(trace: Mapping[str, Any], *, full: bool = False) -> str:
    """The exact requests, replies, events and timings, ending with the verdict line.

    A request repeats the one before it and adds to its end; the repetition is only counted,
    unless `full`. What an earlier process wrote of the run (`Traces.get` adds it) comes first.
    """
    if trace.get("earlier") is not None:
        rest = {key: value for key, value in trace.items() if key != "earlier"}
        return f"{render_trace(trace['earlier'], full=full)}\n\n{render_trace(rest, full=full)}"
    started = datetime.fromtimestamp(trace["started"])
    lines = [
        f"运行 {trace['ref']}　{started:%Y-%m-%d %H:%M:%S}　模型 {trace['model']}",
        f"会话 {trace['place']}",
        f"问题 {trace['question']}",
    ]
    before: list[Mapping[str, Any]] = []
    for step in trace["steps"]:
        lines.append("")
        match step["kind"]:
            case "turn":
                lines += _turn_head(trace, step)
                for number, row in enumerate(step["requests"], 1):
                    messages = [*before[: row["same"]], *row["messages"]]
                    lines += _request_lines(row, number, messages, full)
                    before = messages
                lines += [f"  日志 {_json(entry)}" for entry in step["log"]]
            case "call":
                lines += _call_lines(step)
            case _:
                detail = f"：{step['detail']}" if step["detail"] else ""
                lines.append(f"[{step['at']:.2f}s] {step['what']}{detail}")
    took = f"，共 {trace['took']:.2f} s" if "took" in trace else ""
    lines += ["", f"结束 {trace['outcome']}{took}", trace["reply"], "", f"判定 {trace['verdict']}"]
    return "\n".join(lines)


def _turn_head(trace: Mapping[str, Any], step: Mapping[str, Any]) -> list[str]:
    setup = step["setup"]
    names = [spec["name"] for spec in trace["toolsets"][step["tools"]]]
    facts = [f"工具 {'、'.join(names) or '无'}"]
    if setup["choice"][0] != "auto":
        facts.append(f"选择 {setup['choice'][1] or setup['choice'][0]}")
    if setup["withdraw"]:
        facts.append(f"已收回工具（{setup['withdraw']}）")
    return [f"[{step['at']:.2f}s] 第 {step['round']} 轮　{'；'.join(facts)}"]


def _request_lines(
    row: Mapping[str, Any], number: int, messages: Sequence[Mapping[str, Any]], full: bool
) -> list[str]:
    same = 0 if full else row["same"]
    lines = [f"[{row['at']:.2f}s] 请求 {number}（{len(messages)} 条）"]
    if same:
        lines.append(f"  （前 {same} 条与上一个请求相同）")
    for message in messages[same:]:
        lines.append(f"--- {message['role']}")
        lines.append(message["content"])
    lines += [f"  {name} {_json(row[name])}" for name in REQUEST_EXTRAS if name in row]
    timing = [f"finish={row.get('finish')}"]
    if "first" in row:
        timing.insert(0, f"首字 {row['first'] - row['at']:.2f} s")
    if "ended" in row:
        timing.insert(0, f"共 {row['ended'] - row['at']:.2f} s")
    if "usage" in row:
        prompt, completion, cached = row["usage"]
        timing.append(f"tokens {prompt}+{completion}，缓存 {cached}")
    lines.append(f"[{row.get('ended', row['at']):.2f}s] 回复（{'，'.join(timing)}）")
    lines.append(_reply_text(row["pieces"]))
    if row.get("error"):
        lines.append(f"  错误 {row['error']}")
    if row.get("outcome"):
        lines.append(f"  结果 {_json(row['outcome'])}")
    return lines


def _reply_text(rows: Sequence[Sequence[Any]]) -> str:
    """The reply as it came; thinking and native calls in marks of their own."""
    parts: list[str] = []
    for kind, *head, text, _ in rows:
        known = [str(part) for part in head if part is not None]
        parts.append(text if kind == "text" else f"⟦{' '.join([kind, *known, text])}⟧")
    return "".join(parts) or "（空）"


def _call_lines(step: Mapping[str, Any]) -> list[str]:
    call, result = step["call"], step["result"]
    cost = f" {result['cost_ms']} ms" if "cost_ms" in result else ""
    run = f"[{step['began']:.2f}s] 调用" if "began" in step else f"[{step['at']:.2f}s] 没有运行"
    return [
        f"{run} {call['name']} {_json(call['arguments'])}",
        f"[{step['at']:.2f}s] 结果 {result['status']}{cost}",
        result["content"],
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- replay


@dataclass(frozen=True, slots=True)
class Replay:
    """`equal`: today's code asks the same and decides the same; else what differs, a line each."""

    equal: bool
    differences: tuple[str, ...]


def replay(trace: Mapping[str, Any]) -> Replay:
    """Feed the stored pieces to Turn, and compare requests and outcomes with the stored ones."""
    differences: list[str] = []
    before: list[Any] = []
    for step in trace["steps"]:
        if step["kind"] != "turn":
            continue
        conversation = trace["conversations"][step["conversation"]][: step["length"]]
        turn = TurnSetup.from_dict(step["setup"]).build(
            codec.messages_from_dicts(conversation),
            [codec.spec_from_dict(row) for row in trace["toolsets"][step["tools"]]],
        )
        for number, row in enumerate(step["requests"], 1):
            where = f"第 {step['round']} 轮请求 {number}"
            stored = [*before[: row["same"]], *row["messages"]]
            before = stored
            sent = [
                {"role": str(message.role), "content": message.content}
                for message in turn.request().messages
            ]
            differences += _message_differences(where, stored, sent)
            if "outcome" not in row:
                break
            for piece in pieces_from_rows(row["pieces"]):
                turn.feed(piece)
            outcome = outcome_to_row(turn.finish(row["finish"], may_retry=row["may_retry"]))
            then, now = _without_ids(row["outcome"]), _without_ids(outcome)
            if then != now:
                differences.append(f"{where}：当时 {_json(then)}，现在 {_json(now)}")
                break
    return Replay(equal=not differences, differences=tuple(differences))


def _without_ids(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has it, and without ids: they derive from arguments, and a secret may have been
    taken out of those."""
    plain = json.loads(json.dumps(outcome))
    for call in plain.get("calls", ()):
        del call["id"]
    return plain


def _message_differences(
    where: str, stored: Sequence[Mapping[str, Any]], sent: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    if len(stored) != len(sent):
        yield f"{where}：当时 {len(stored)} 条消息，现在 {len(sent)} 条"
    for at, (then, now) in enumerate(zip(stored, sent, strict=False)):
        if then["role"] != now["role"] or then["content"] != now["content"]:
            yield f"{where}：第 {at + 1} 条消息不同"
