"""Reading a trace: the page a person reads, and the replay. The verdict is in verdict.py."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chathands.agent.trace import REQUEST_EXTRAS, message_row, outcome_to_row, pieces_from_rows
from chathands.agent.turns import TurnSetup
from chathands.store import codec


class RequestNumbers:
    """Numbers requests from 1 in each round; a round may take more than one turn."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def next(self, round_number: int) -> int:
        self._counts[round_number] += 1
        return self._counts[round_number]


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
    numbers = RequestNumbers()
    for step in trace["steps"]:
        lines.append("")
        match step["kind"]:
            case "turn":
                lines += _turn_head(trace, step)
                log = iter(step["log"])
                for row in step["requests"]:
                    number = numbers.next(step["round"])
                    messages = [*before[: row["same"]], *row["messages"]]
                    lines += _request_lines(row, number, messages, full)
                    if row.get("outcome") and (entry := next(log, None)) is not None:
                        lines.append(f"  日志 {_json(entry)}")
                    before = messages
                lines += [f"  日志 {_json(entry)}" for entry in log]
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
    numbers = RequestNumbers()
    for step in trace["steps"]:
        if step["kind"] != "turn":
            continue
        conversation = trace["conversations"][step["conversation"]][: step["length"]]
        turn = TurnSetup.from_dict(step["setup"]).build(
            codec.messages_from_dicts(conversation),
            [codec.spec_from_dict(row) for row in trace["toolsets"][step["tools"]]],
        )
        for row in step["requests"]:
            where = f"第 {step['round']} 轮请求 {numbers.next(step['round'])}"
            stored = [*before[: row["same"]], *row["messages"]]
            before = stored
            sent = [message_row(message) for message in turn.request().messages]
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
        if _json(dict(then)) != _json(now):
            yield f"{where}：第 {at + 1} 条消息不同"
