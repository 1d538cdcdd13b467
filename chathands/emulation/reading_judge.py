"""The gate: which of the things found are calls that may run, which are broken, which are text.

A call needs a declared name and arguments that fit the tool's schema; nothing else makes one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from chathands.conversation import Confidence
from chathands.emulation.dialects.words import ANSWER_KEYS, plain_key
from chathands.emulation.outcome import BrokenCall, Reason
from chathands.emulation.reading_envelope import as_object
from chathands.emulation.reading_found import GUESSED, MISSING, Block, Found
from chathands.emulation.reading_tokens import State
from chathands.emulation.reading_tools import Tools

NOTES: Final = frozenset({"keys", "open_fence"})
"""Remarks on the form that leave a call `strict`."""

_SENTENCES: Final[dict[str, tuple[str, str]]] = {
    "unknown": ("没有名为 {0} 的工具", "there is no tool named {0}"),
    "nameless": ("动作里没有工具名", "the action names no tool"),
    "unreadable": ("动作的格式无法读取：{0}", "the action cannot be read: {0}"),
    "truncated": ("动作没有写完就中断了：{0}", "the action stops before it is complete: {0}"),
    "dropped": ("没有名为 {0} 的参数", "there is no argument named {0}"),
}


@dataclass(slots=True)
class Accepted:
    """A call that may run."""

    name: str
    arguments: dict[str, Any]
    confidence: Confidence
    repairs: tuple[str, ...]


@dataclass(slots=True)
class Verdict:
    """What a block comes to. With nothing in it the block is text."""

    calls: list[Accepted] = field(default_factory=list)
    broken: list[BrokenCall] = field(default_factory=list)
    answer: str | None = None
    """The text of an action that says that no tool is needed."""

    @property
    def is_text(self) -> bool:
        return not (self.calls or self.broken or self.answer is not None)


class Judge:
    """Judges blocks against the declared tools; `language` is that of the sentences in `detail`."""

    def __init__(self, tools: Tools, language: Literal["zh", "en"] = "zh") -> None:
        self._tools = tools
        self._language = language

    def block(self, block: Block, raw: str, *, cut_off: bool) -> Verdict:
        """`raw` is the block as written; `cut_off` says the model was stopped by its length limit."""
        verdict = Verdict()
        if block.plain:
            return verdict
        for found in block.found:
            self._one(found, block, raw, cut_off and not block.closed, verdict)
        known = verdict.calls or verdict.answer is not None
        if not known and not block.contract and not block.marked:
            # outside of every mark a broken form is evidence only if it names a declared tool
            verdict.broken = [b for b in verdict.broken if b.name and self._tools.find(b.name)]
        if not block.found and (block.contract or (block.marked and not block.closed)):
            reason = Reason.BROKEN_CALL if block.closed else Reason.TRUNCATED
            code = "nameless" if block.closed else "truncated"
            verdict.broken.append(self._broken(reason, block, raw, None, code, block.form))
        return verdict

    def _one(self, found: Found, block: Block, raw: str, cut_off: bool, verdict: Verdict) -> None:
        name = found.name
        spec = self._tools.find(name) if name else None
        if name and self._tools.is_no_tool(name) and not found.weak:
            verdict.answer = (verdict.answer or "") + _carried_text(found)
            return
        if found.state is State.CUT or (found.state is State.CLOSERS and cut_off):
            if spec or block.contract or block.marked:
                verdict.broken.append(
                    self._broken(Reason.TRUNCATED, block, raw, name, "truncated", found.detail)
                )
            return
        if found.state is State.BROKEN:
            if spec or block.contract or block.marked:
                verdict.broken.append(
                    self._broken(Reason.BROKEN_CALL, block, raw, name, "unreadable", found.detail)
                )
            return
        if spec is None:
            if block.contract:
                reason = Reason.UNKNOWN_TOOL if name else Reason.BROKEN_CALL
                code = "unknown" if name else "nameless"
                verdict.broken.append(self._broken(reason, block, raw, name, code, f"`{name}`"))
            return
        schema = self._tools.schema(spec)
        arguments = as_object(found, schema)
        if arguments is None:
            verdict.broken.append(
                self._broken(
                    Reason.INVALID_ARGUMENTS, block, raw, spec.name, "unreadable", found.detail
                )
            )
            return
        if _is_specification(arguments, schema.properties):
            return
        checked = schema.check(arguments)
        dropped = [r.partition(":")[2] for r in checked.repairs if r.startswith("dropped:")]
        lost = [path for path in dropped if path in arguments and arguments[path] not in (None, "")]
        if found.weak and (checked.problems or lost):
            if block.contract:
                detail = (
                    f"`{(lost or [checked.problems[0].path])[0]}`"
                    if lost or checked.problems
                    else ""
                )
                sentence = (
                    checked.problems[0].sentence(self._language) if checked.problems else None
                )
                verdict.broken.append(
                    self._broken(
                        Reason.INVALID_ARGUMENTS, block, raw, spec.name, "dropped", detail, sentence
                    )
                )
            return
        if checked.problems:
            sentences = "；" if self._language == "zh" else "; "
            told = sentences.join(p.sentence(self._language) for p in checked.problems[:3])
            verdict.broken.append(
                self._broken(Reason.INVALID_ARGUMENTS, block, raw, spec.name, "", "", told)
            )
            return
        structure = not GUESSED.isdisjoint(found.repairs)
        if lost and ((not checked.arguments and schema.properties) or structure):
            verdict.broken.append(
                self._broken(
                    Reason.INVALID_ARGUMENTS, block, raw, spec.name, "dropped", f"`{lost[0]}`"
                )
            )
            return
        repairs = dict(found.repairs)
        if found.state is State.CLOSERS:
            repairs["missing_closer"] = None
        if name != spec.name:
            repairs["name"] = None
        for repair in checked.repairs:
            if not (found.text_values and repair.startswith("coerced:")):
                repairs[repair] = None
        form = () if block.contract else (f"form:{block.form}",)
        verdict.calls.append(
            Accepted(
                spec.name,
                without_surrogates(checked.arguments),
                _confidence(repairs),
                (*form, *repairs),
            )
        )

    def _broken(
        self,
        reason: Reason,
        block: Block,
        raw: str,
        name: str | None,
        code: str,
        detail: str,
        sentence: str | None = None,
    ) -> BrokenCall:
        if sentence is None:
            sentence = _SENTENCES[code][self._language != "zh"].format(detail)
        spec = self._tools.find(name) if name else None
        return BrokenCall(reason, raw, spec.name if spec else name, sentence, block.contract)


def _confidence(repairs: dict[str, None]) -> Confidence:
    if not GUESSED.isdisjoint(repairs):
        return "recovered"
    return "repaired" if any(tag not in NOTES for tag in repairs) else "strict"


def _is_specification(arguments: dict[str, Any], properties: Any) -> bool:
    """Whether these are no arguments but the tool's own schema, repeated in an explanation."""
    return (
        isinstance(arguments.get("properties"), dict)
        and "type" in arguments
        and not {"properties", "type"} & set(properties)
    )


def _carried_text(found: Found) -> str:
    """The answer that a `finish` action carries, under whichever key."""
    raw = found.arguments
    if isinstance(raw, str):
        return raw.strip()
    if isinstance(raw, dict) and raw is not MISSING:
        for key, value in raw.items():
            if plain_key(key) in ANSWER_KEYS and isinstance(value, str):
                return value.strip()
        texts = [value for value in raw.values() if isinstance(value, str)]
        return texts[0].strip() if len(texts) == 1 else ""
    return ""


def without_surrogates(value: Any) -> Any:
    """The value with half characters replaced: a lone `\\ud83d` cannot be written to any wire."""
    if isinstance(value, str):
        if value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    return value
