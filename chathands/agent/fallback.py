"""Replies that no model writes: why there is no answer, what was done all the same, a reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chathands.conversation import Status
from chathands.emulation.outcome import Reason
from chathands.toolbox.render import one_line

NOTE_CHARACTERS = 120
"""Of a result or a reason, on one line of an account."""

DEADLINE = "时间到了，没来得及写出完整的回答。"
CANCELLED = "已停止。"
EXPIRED = "没有人确认，已过期，没有执行。"
ASKER_SAID_NO = "提问的人自己取消了，没有执行。"
PERSON_SAID_NO = "有权确认的人选择了取消，没有执行。"

_REFERENCE = re.compile(r"（编号 [0-9A-Z-]+(?:，[^（）]*)?）\s*\Z")

_GIVEN_UP = "这次没有得到可用的回答，请换个说法再问一次。"
_GIVEN_UP_BY_REASON = {
    Reason.UNBACKED_CLAIM: "模型说事情已经办好，但没有找到对应的成功操作，所以没有转发它的话。",
    Reason.UNBACKED_FIGURE: "模型给出的数字没有数据来源，所以没有转发，请换个说法再问一次。",
    Reason.TRUNCATED: "回答太长，没有写完，请把问题问得小一些。",
}


def given_up(reason: Reason) -> str:
    """What a person is told when no acceptable reply came; never the refused text."""
    return _GIVEN_UP_BY_REASON.get(reason, _GIVEN_UP)


def plain_reply(sentence: str, run_id: str) -> str:
    """`sentence` with the reference number: nothing was done."""
    return f"{sentence}（编号 {run_id}）"


def with_told(answer: str, done: Iterable[Mapping[str, Any]]) -> str:
    """The model's answer, and what tools said a person must hear, unless it stands there."""
    told = [sentence for entry in done for sentence in entry.get("told", ())]
    missing = [sentence for sentence in dict.fromkeys(told) if sentence not in answer]
    return "\n".join([answer, *missing])


def without_reference(reply: str) -> str:
    """A reply for the next run to read: a model that sees our account copies its form, and would
    put an old reference number under a new answer."""
    return _REFERENCE.sub("", reply).rstrip()


def account(
    sentence: str,
    done: Iterable[Mapping[str, Any]],
    not_done: Sequence[Mapping[str, Any]],
    run_id: str,
) -> str:
    """`sentence`, then every finished call with target and outcome, then what was not done.

    `done` holds entries of `RunScope.done`; of `not_done` only name and target are read. Without
    any of them it is `plain_reply`.
    """
    lines = Counter(f"- {_named(entry)}：{_outcome(entry)}" for entry in done)
    finished = [line if times == 1 else f"{line}（{times} 次）" for line, times in lines.items()]
    open_calls = [f"- {_named(entry)}：没有执行" for entry in not_done]
    if not finished and not open_calls:
        return plain_reply(sentence, run_id)
    return "\n".join(
        [
            sentence,
            "到目前为止：",
            *finished,
            *open_calls,
            f"（编号 {run_id}，管理员可以用它查看记录）",
        ]
    )


def cancelled(
    done: Iterable[Mapping[str, Any]], not_done: Sequence[Mapping[str, Any]], run_id: str
) -> str:
    """What a stopped run has already caused; what it only read is of no interest any more."""
    happened = [entry for entry in done if entry.get("side_effect") != "none"]
    if not happened and not not_done:
        return plain_reply(f"{CANCELLED}没有执行任何操作。", run_id)
    return account(CANCELLED, happened, not_done, run_id)


def _named(entry: Mapping[str, Any]) -> str:
    target = one_line(str(entry.get("target") or ""), 40)
    return f"{entry['name']}（{target}）" if target else str(entry["name"])


def _outcome(entry: Mapping[str, Any]) -> str:
    note = one_line(str(entry.get("content") or ""), NOTE_CHARACTERS)
    reading = entry.get("side_effect") == "none"
    match Status(entry["status"]):
        case Status.OK:
            return f"已查到：{note}" if reading and note else "已完成"
        case Status.FAILED:
            return f"没有成功：{note}" if note else "没有成功"
        case Status.DENIED:
            return f"没有执行：{note}" if note else "没有执行"
        case Status.UNKNOWN:
            return "不确定是否完成，请人工核对；不会自动重试"
