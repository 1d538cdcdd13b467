"""Tool results as a model reads them, and the sentence after them that says how to go on.

Each way a call can end has a wording of its own, and none tells a model that is done to call again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chathands.conversation import Status, ToolCall, ToolResult, ToolSpec
from chathands.emulation.outcome import Language, Mode
from chathands.emulation.prompts import wording
from chathands.emulation.signature import NAME_CAP, one_line

_FAILURES_OF_A_TOOL = 3
"""Failed calls of one tool in a run after which it is not worth another try."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry of a results message.

    `call` and `number` are None for a result nobody asked for; `result` is None for a call that
    never got one. `hopeless` says that trying again has already failed.
    """

    call: ToolCall | None
    number: int | None
    result: ToolResult | None
    hopeless: bool = False

    @property
    def name(self) -> str:
        if self.result is not None and (self.call is None or not self.call.name):
            return self.result.name
        return self.call.name if self.call is not None else ""

    @property
    def status(self) -> Status:
        return Status.UNKNOWN if self.result is None else self.result.status

    @property
    def empty(self) -> bool:
        result = self.result
        return result is not None and result.status is Status.OK and not result.content.strip()


def is_hopeless(call: ToolCall, earlier_failures: Sequence[ToolCall]) -> bool:
    """Whether a failed call need not be tried again, given the earlier ones of the run."""
    same_tool = [failed for failed in earlier_failures if failed.name == call.name]
    repeated = any(failed.arguments == call.arguments for failed in same_tool)
    return repeated or len(same_tool) + 1 >= _FAILURES_OF_A_TOOL


def render_results(entries: Sequence[Shown], *, language: Language, fence: str) -> str:
    """The results, each headed by number and tool, in a fence that its text cannot close."""
    return "\n".join(_render(entry, language, fence) for entry in entries)


def guide(
    entries: Sequence[Shown],
    tools: Mapping[str, ToolSpec],
    *,
    pending: Sequence[str] = (),
    broken_siblings: bool = False,
    decided: bool = False,
    language: Language,
    mode: Mode = "emulated",
) -> str:
    """How to go on after these results; "" when there is nothing to say.

    `pending` names what was asked for and not yet done. `broken_siblings` says that blocks beside
    these calls could not be read and are answered as failed. With `decided` a notice behind the
    results says how to go on: only what holds of the results is said here.
    """
    words = wording(language, mode)["continuation"]
    statuses = {entry.status for entry in entries}
    failed = [entry for entry in entries if entry.status is Status.FAILED]
    fixable = broken_siblings or any(not entry.hopeless for entry in failed)
    hopeless = sorted({one_line(entry.name, NAME_CAP) for entry in failed if entry.hopeless})
    cut = any(entry.result is not None and entry.result.truncated for entry in entries)
    lines = []
    if len(entries) > 1 and statuses == {Status.OK} and not fixable:
        lines.append(words["several"].format(count=len(entries)))
    if any(entry.empty for entry in entries):
        lines.append(words["empty"])
    if cut:
        lines.append(words["truncated"])
    if hopeless:
        lines.append(words["unfixable"].format(name=words["and"].join(hopeless)))
    if Status.DENIED in statuses:
        lines.append(words["denied"])
    if Status.UNKNOWN in statuses:
        lines.append(words["unknown"])
    if decided:
        return "\n".join(lines)
    if cut:
        lines.append(words["narrower"])
    if fixable:
        lines.append(words["fixable"])
    if Status.OK in statuses:
        lines.append(_after_success(entries[-1], tools, pending, fixable, words))
    elif not fixable:
        # "Do not do it again" alone was answered by doing it again, four rounds in a row.
        lines.append(words["tell"])
    return "\n".join(lines)


def _after_success(
    last: Shown,
    tools: Mapping[str, ToolSpec],
    pending: Sequence[str],
    fixable: bool,
    words: Mapping[str, str],
) -> str:
    spec = tools.get(last.name)
    effect = spec is not None and spec.side_effect in ("local", "outward")
    if fixable:
        # "The results are enough" beside "rewrite that block" would be two orders at once.
        return words["kept"]
    if pending:
        return words["pending"].format(names=words["and"].join(pending))
    return words["done_effect" if effect and last.status is Status.OK else "done"]


def _render(entry: Shown, language: Language, fence: str) -> str:
    words = wording(language)["history"]
    result = entry.result
    envelope = f"status={entry.status.value}"
    if result is not None and result.cost_ms is not None:
        envelope += f", cost_ms={result.cost_ms}"
    template = words["result_orphan" if entry.number is None else "result"]
    head = template.format(
        number=entry.number, name=one_line(entry.name, NAME_CAP), envelope=envelope
    )
    if result is None:
        return f"{head}\n{words['missing']}"
    content = neutralise(result.content.strip("\r\n"), fence) or words["nothing"]
    lines = [head, words["open"].format(fence=fence), content, words["close"].format(fence=fence)]
    if result.foreign:
        lines.insert(1, words["foreign"])
    return "\n".join(lines)


def neutralise(content: str, fence: str) -> str:
    """`content` in which nothing can close the fence: neither its token, however written, nor a
    line of the same shape, which a small model does not tell from it."""
    if "-" in content or "\u2014" in content or "\u2500" in content:
        content = _FENCE_LIKE.sub(r"\g<space>· \g<line>", content)
    if not fence:
        return content
    return re.sub(
        re.escape(fence),
        lambda found: f"{found[0][0]}·{found[0][1:]}",
        content,
        flags=re.IGNORECASE,
    )


_FENCE_LIKE = re.compile(
    r"^(?P<space>[ \t]*)(?P<line>[-\u2010-\u2015\u2500\uff0d]{3,}[ \t]*[\w\u200b-\u200d]{2,40}"
    r"[ \t]*[-\u2010-\u2015\u2500\uff0d]{3,}[ \t]*)$",
    re.MULTILINE,
)
"""A word between two rows of dashes, alone on its line."""
