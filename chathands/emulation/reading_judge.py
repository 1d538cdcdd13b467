"""The gate: which of the things found are calls that may run, which are broken, which are text.

A call needs a declared name and arguments that fit the tool's schema; nothing else makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from chathands.conversation import Confidence, ToolSpec
from chathands.emulation.dialects.strange import called_in
from chathands.emulation.dialects.words import ANSWER_KEYS, REMARKS, plain_key
from chathands.emulation.outcome import BrokenCall, Reason
from chathands.emulation.reading_arguments import as_object
from chathands.emulation.reading_found import GUESSED, MISSING, Block, Found
from chathands.emulation.reading_strings import without_surrogates
from chathands.emulation.reading_tokens import Detail, State
from chathands.emulation.reading_tools import Tools
from chathands.schema import Checked, Schema

NOTES: Final = frozenset({"keys", "extra_closer"})
"""Remarks on the form that leave a call `strict`."""

_SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "unknown": ("没有名为 `{0}` 的工具", "there is no tool named `{0}`"),
    "nameless": ("动作里没有工具名", "the action names no tool"),
    "cut": ("动作没有写完就中断了（{0}）", "the action stops before it is complete ({0})"),
    "no_colon": ("`{0}` 后面没有冒号和值", "no colon and value stand behind `{0}`"),
    "no_value": ("`{0}` 没有值", "`{0}` has no value"),
    "placeholder": ("`{0}` 的值是省略号", "an ellipsis stands where the value of `{0}` belongs"),
    "two_values": ("`{0}` 有两个值", "`{0}` has two values"),
    "two_keys": ("工具名或参数写了两遍，内容不同", "the tool or its arguments stand there twice"),
    "two_tools": ("写了两个工具：`{0}`", "it names two tools: `{0}`"),
    "two_arguments": ("`{0}` 的内容互相矛盾", "`{0}` contradict each other"),
    "unexpected": ("`{0}` 附近有多余的文字", "there is unexpected text near `{0}`"),
    "brackets": ("括号不配对", "the brackets do not match"),
    "deep": ("嵌套过深", "it is nested too deeply"),
    "long_number": ("有过长的数字", "there is a number that is too long"),
    "positional": ("参数要写成名称和值", "arguments must be given by name"),
    "no_object": ("参数不是对象", "the arguments are no object"),
    "nested_call": ("参数里不能再调用 `{0}`", "an argument cannot be the call `{0}(…)`"),
    "extra": ("没有名为 `{0}` 的参数", "there is no argument named `{0}`"),
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
    thought: str = ""
    """The first sentence of a thought written into a call that may run."""
    remark: str = ""
    """What such an action gives as its reason."""

    @property
    def is_text(self) -> bool:
        return not (self.calls or self.broken or self.answer is not None)


class Judge:
    """Judges blocks against the declared tools; `language` is that of the sentences in `detail`."""

    def __init__(self, tools: Tools, language: Literal["zh", "en"] = "zh") -> None:
        self._tools = tools
        self._language: Literal["zh", "en"] = language

    def block(self, block: Block, raw: str, *, cut_off: bool) -> Verdict:
        """`raw` is the block as written; `cut_off` says that the model was stopped by its limit."""
        verdict = Verdict()
        if block.plain:
            return verdict
        for found in block.found:
            answer = self._answer(found)
            if answer is not None:
                said, remark = answer
                verdict.answer = (verdict.answer or "") + said
                verdict.remark = verdict.remark or remark
                continue
            outcome = self._one(found, block, cut_off and not block.closed)
            if isinstance(outcome, Accepted):
                verdict.calls.append(outcome)
                verdict.thought = verdict.thought or found.thought
            elif outcome is not None:
                reason, sentence = outcome
                spec = self._tools.find(found.name) if found.name else None
                name = spec.name if spec else found.name
                verdict.broken.append(BrokenCall(reason, raw, name, sentence, block.contract))
        if not block.found and (
            block.contract or block.sure or (block.marked and not block.closed)
        ):
            cut = not block.closed
            reason = Reason.TRUNCATED if cut else Reason.BROKEN_CALL
            sentence = self._say(("cut", "") if cut else ("nameless", ""))
            verdict.broken.append(BrokenCall(reason, raw, None, sentence, block.contract))
        return verdict

    def stranger(self, block: Block, raw: str) -> BrokenCall | None:
        """What a block of text is if it stands alone: a call of a tool that nobody declared."""
        names = called_in(raw)
        if not names and block.marked and block.form == "fence":
            given = [one for one in block.found if one.state is State.WHOLE and not one.weak]
            names = tuple(one.name or "" for one in given if isinstance(one.arguments, dict))
        known = (self._tools.find(name) or self._tools.is_no_tool(name) for name in names)
        if block.plain or not names or not self._tools.are_there or any(known):
            return None
        sentence = self._say(("unknown", names[0]))
        return BrokenCall(Reason.UNKNOWN_TOOL, raw, names[0], sentence, in_contract=False)

    def _one(
        self, found: Found, block: Block, cut_off: bool
    ) -> Accepted | tuple[Reason, str] | None:
        """A call, or why it is broken; None if nothing says that it was meant as a call."""
        spec = self._tools.find(found.name) if found.name else None
        if found.state is not State.WHOLE and not (found.state is State.CLOSERS and not cut_off):
            if spec is None and not block.contract and not block.marked:
                return None
            broken = found.state is State.BROKEN
            # a key at which the text stops was about to get its colon
            broken = broken and (found.detail[0] != "no_colon" or block.closed)
            detail = found.detail if broken else ("cut", found.detail[1])
            return (Reason.BROKEN_CALL if broken else Reason.TRUNCATED), self._say(detail)
        if spec is None:
            if not block.contract and not block.sure:
                return None
            if not found.name:
                return Reason.BROKEN_CALL, self._say(("nameless", ""))
            return Reason.UNKNOWN_TOOL, self._say(("unknown", found.name))
        if "duplicate_head" in found.repairs:
            return Reason.BROKEN_CALL, self._say(("two_keys", ""))
        schema = self._tools.schema(spec)
        stopped = found.state is State.CLOSERS or (cut_off and found is block.found[-1])
        if stopped and found.arguments is MISSING and schema.properties:
            return Reason.TRUNCATED, self._say(("cut", ""))  # they may have been about to come
        arguments = as_object(found, schema)
        if arguments is None and found.weak and not block.contract:
            return None
        if arguments is None:
            gap = found.detail[0] == "no_value"
            reason = Reason.BROKEN_CALL if gap else Reason.INVALID_ARGUMENTS
            return reason, self._say(found.detail)
        if _is_specification(arguments, schema):
            return None
        checked = schema.check(arguments)
        lost = _lost(checked, arguments)
        if found.weak and (checked.problems or lost) and not block.contract:
            return None
        if checked.problems:
            told = [problem.sentence(self._language) for problem in checked.problems[:3]]
            return Reason.INVALID_ARGUMENTS, ("；" if self._language == "zh" else "; ").join(told)
        # a name nobody knows is dropped as a rule; not where it may be a misread part of a value,
        # nor where nothing would be left: such a call would do something else
        guessed = not GUESSED.isdisjoint(found.repairs)
        if lost and (found.weak or guessed or (schema.properties and not checked.arguments)):
            return Reason.INVALID_ARGUMENTS, self._say(("extra", lost[0]))
        return _accepted(found, spec, block, checked)

    def _answer(self, found: Found) -> tuple[str, str] | None:
        """The text of an action that says that no tool is needed and what it gives as its reason;
        None if it is none."""
        if found.weak or not found.name or not self._tools.is_no_tool(found.name):
            return None
        raw = found.arguments
        if isinstance(raw, str):
            return raw.strip(), ""
        if not isinstance(raw, dict):
            return "", ""
        texts = [(plain_key(k), v.strip()) for k, v in raw.items() if isinstance(v, str)]
        answers = [text for key, text in texts if key in ANSWER_KEYS]
        if answers or len(texts) != 1:
            return (answers[0] if answers else ""), ""
        key, text = texts[0]
        return ("", text) if key in REMARKS else (text, "")

    def _say(self, detail: Detail) -> str:
        code, about = detail
        sentence = _SENTENCES[code or "cut"][self._language != "zh"].format(about)
        return sentence.replace("（）", "").replace(" ()", "")


def _lost(checked: Checked, arguments: dict[str, Any]) -> list[str]:
    """The arguments at the top that were given a value and dropped all the same."""
    dropped = (r.removeprefix("dropped:") for r in checked.repairs if r.startswith("dropped:"))
    return [name for name in dropped if arguments.get(name) not in (None, "")]


def _is_specification(arguments: dict[str, Any], schema: Schema) -> bool:
    """Whether these are no arguments but the tool's own schema, repeated in an explanation."""
    own = {"properties", "type"} & set(schema.properties)
    return isinstance(arguments.get("properties"), dict) and "type" in arguments and not own


def _accepted(found: Found, spec: ToolSpec, block: Block, checked: Checked) -> Accepted:
    repairs = dict(found.repairs)
    if found.state is State.CLOSERS:
        repairs["missing_closer"] = None
    if found.name != spec.name:
        repairs["name"] = None
    for repair in checked.repairs:
        if not (found.text_values and repair.startswith("coerced:")):
            repairs[repair] = None
    if not GUESSED.isdisjoint(repairs):
        confidence: Confidence = "recovered"
    else:
        confidence = "strict" if NOTES.issuperset(repairs) else "repaired"
    form = () if block.contract else (f"form:{block.form}",)
    arguments = without_surrogates(checked.arguments)
    return Accepted(spec.name, arguments, confidence, (*form, *repairs))
