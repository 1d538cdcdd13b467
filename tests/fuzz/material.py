"""Replies nobody has written yet: made of the dialects' fragments, or by spoiling those of the
corpora. Everything comes from one `random.Random`, so that a seed is a reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from tests.emulation.replies import TOOLS, cases

SCHEMAS: dict[str, Mapping[str, Any]] = {
    tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS
}
CORPUS = [c["raw"] for name in ("malformed.jsonl", "forms.jsonl") for c in cases(name)]
RECORDED = [c["output"] for c in cases("recorded_small_model.jsonl")]

FRAGMENTS = (
    *("```", "```json action\n", "```json\n", "\n```\n", "````md\n", "~~~", "｀｀｀", "'''json\n"),
    *("\n", "\n\n", " ", "  ", "`", "\r\n", "\t", "\u2028", "\ufeff", "\u200b", "\x00", "\ud83d"),
    *('{"tool":"read_file","parameters":{"path":"a"}}', '{"tool":"get_time"', '{"name":"x"}'),
    *('"parameters":{', '"arguments":"{', "{", "}", "[", "]", '"', '\\"', "\\", ",", ":", "'"),
    *("：", "，", "“", "”", "‘", "’", "（", "）", "｛", "｝", "(", ")", "=", "&quot;", "&lt;"),
    *("<", ">", "<tool_call>", "</tool_call>", "<function=read_file>", "</function>", "</"),
    *("<parameter=path>", "</parameter>", '<invoke name="get_weather">', "</invoke>", "<![CDATA["),
    *('<parameter name="city">', "<function_calls>", "</function_calls>", "]]>", "<arg_key>"),
    *("<think>", "</think>", "<example>", "</example>", "<|channel>thought", "<channel|>"),
    *("[TOOL_CALLS]", "<|python_tag|>", "<｜tool▁call▁begin｜>", "<｜DSML｜ ", "✿FUNCTION✿: "),
    *("Action: ", "Action Input: ", "Observation: x\n", "Thought: ", "Final Answer: ", "tool: "),
    *("get_time()", "read_file(path='a')", "get_weather\n", "call:get_time", "print(", ">>>"),
    *("to=functions.read_file", "get_time", "查询快递", "functools", "await ", "*", "\\_", "> "),
    *("例如：", "比如", "I can't run ", "不要执行", "好的。", "现在执行：", "结果 #1 read_file"),
    *("a", "1", "-3", "1e9", "0x", "true", "None", "//", "#", "/*", "...", "- ", "| a | b |\n"),
)
PROSE = ("", "好的。", "我来查一下：", "Let me look.", "先看文件，再说。\n", "Sure: ", "第一步\n\n")
"""Lead-ins that say neither that a call is an example nor that it is refused."""

PLAIN = ("北京", "src/app.py", "a b", "第 3 行", "x", "v1.2", "hello, world", "完成")
TRICKY = (
    '他说"好"，走了',
    "a\nb\n",
    "```python\nprint(1)\n```",
    '```json action\n{"tool":"get_time","parameters":{}}\n```',
    '{"tool":"get_time","parameters":{}}',
    "<tool_call>x</tool_call>",
    "“引号”，：（）",
    "C:\\new\\table",
    "it's",
    "",
    " 前后 ",
    "#1 // no /* comment */",
    "</think>",
    "}]}",
    "😀\u2028\u200b",
    '","path":"b',
    "例如：",
)

Call = tuple[str, dict[str, Any]]


class Maker:
    """Makes replies; `truth` is what a careful reader makes of the last `told()`."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def soup(self) -> str:
        """Fragments of all dialects, in any order."""
        return "".join(self.rng.choices(FRAGMENTS, k=self.rng.randint(1, 24)))

    def spoiled(self) -> str:
        """A line of a corpus with a few characters or fragments changed, or two lines in one."""
        rng = self.rng
        text = rng.choice(CORPUS)
        if rng.random() < 0.15:
            text += rng.choice(("", "\n", "\n\n", "好的。")) + rng.choice(CORPUS)
        for _ in range(rng.randint(1, 4)):
            text = rng.choice(_SPOILING)(rng, text)
        return text[:2000]

    def reply(self) -> str:
        return self.spoiled() if self.rng.random() < 0.65 else self.soup()

    def call(self, values: Sequence[str]) -> Call:
        """A call of a declared tool whose arguments fit its schema."""
        name = self.rng.choice(list(SCHEMAS))
        schema = SCHEMAS[name]
        return name, {
            key: self._value(inner, values)
            for key, inner in schema["properties"].items()
            if key in schema["required"] or self.rng.random() < 0.4
        }

    def _value(self, schema: Mapping[str, Any], values: Sequence[str]) -> Any:
        rng = self.rng
        kind = schema.get("type", "string")
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if kind == "object":
            return {k: self._value(v, values) for k, v in schema["properties"].items()}
        if kind == "array":
            return [self._value(schema["items"], values) for _ in range(rng.randint(1, 3))]
        if kind == "integer":
            return rng.choice((0, 3, -7, 120))
        if kind == "number":
            return rng.choice((0.5, 3, 80))
        if kind == "boolean":
            return rng.random() < 0.5
        return rng.choice(values)

    def told(self) -> tuple[str, str, list[Call], str]:
        """(dialect, lead-in, calls, reply): calls written without a fault."""
        rng = self.rng
        dialect = rng.choice(list(DIALECTS))
        values = PLAIN if dialect in _PLAIN_ONLY else PLAIN + TRICKY
        calls: list[Call] = []
        for _ in range(rng.choice((1, 1, 1, 2, 3)) if dialect in _SEVERAL else 1):
            call = self.call(values)
            if call not in calls:
                calls.append(call)
        lead = "" if dialect in _ALONE else rng.choice(PROSE)
        if lead and not lead.endswith("\n"):
            lead += "\n"
        return dialect, lead, calls, lead + DIALECTS[dialect](calls)

    def quoted(self) -> str:
        """A faultless call inside something that says it is not meant."""
        rng = self.rng
        dialect = rng.choice(_QUOTABLE)
        inner = DIALECTS[dialect]([self.call(PLAIN)])
        return rng.choice(_MARKED)(inner) + rng.choice(("", "\n好的。", "\n\nThat is all."))

    def pieces(self, text: str) -> list[str]:
        """The text, cut anywhere."""
        count = min(len(text), self.rng.randint(0, 6))
        edges = [0, *sorted(self.rng.choices(range(len(text) + 1), k=count)), len(text)]
        return [text[a:b] for a, b in pairwise(edges)]


def _delete(rng: Random, text: str) -> str:
    at = rng.randint(0, max(len(text) - 1, 0))
    return text[:at] + text[at + rng.choice((1, 1, 1, 2, 8)) :]


def _double(rng: Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + text[max(at - rng.choice((1, 1, 2, 12)), 0) :]


def _swap(rng: Random, text: str) -> str:
    at = rng.randint(0, max(len(text) - 2, 0))
    return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]


def _insert(rng: Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(FRAGMENTS) + text[at:]


def _cut(rng: Random, text: str) -> str:
    return text[: rng.randint(0, len(text))]


def _exchange(rng: Random, text: str) -> str:
    old, new = rng.choice(_EXCHANGES)
    return text.replace(old, new, rng.choice((1, 1, -1)))


_SPOILING: tuple[Callable[[Random, str], str], ...] = (
    *(_delete, _delete, _double, _swap, _insert, _insert, _cut, _exchange),
)
_EXCHANGES = (
    *(('"', "“"), ('"', "'"), ('"', '\\"'), (":", "："), (",", "，"), (",", ""), ("}", "")),
    *(("\n", ""), ("\n", "\r\n"), ("\n", "\u2028"), ("`", "｀"), ("{", "｛"), ("_", "\\_")),
    *(("<", "&lt;"), ("json action", "json"), ("tool", "name"), ("parameters", "arguments")),
)


def _object(call: Call, name: str = "tool", arguments: str = "parameters") -> str:
    return json.dumps({name: call[0], arguments: call[1]}, ensure_ascii=False)


def block(body: str, info: str = "json action") -> str:
    return f"```{info}\n{body}\n```"


def _openai(calls: list[Call]) -> str:
    entries = [
        {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for at, (name, arguments) in enumerate(calls)
    ]
    return json.dumps({"tool_calls": entries}, ensure_ascii=False)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _invoke(calls: list[Call], mark: str = "") -> str:
    body = "".join(
        f'<{mark}invoke name="{name}">\n'
        + "".join(
            f'<{mark}parameter name="{key}">{_written(value)}</{mark}parameter>\n'
            for key, value in arguments.items()
        )
        + f"</{mark}invoke>\n"
        for name, arguments in calls
    )
    return f"<{mark}function_calls>\n{body}</{mark}function_calls>"


def _function(calls: list[Call]) -> str:
    return "\n".join(
        f"<tool_call>\n<function={name}>\n"
        + "".join(
            f"<parameter={key}>\n{_written(value)}\n</parameter>\n"
            for key, value in arguments.items()
        )
        + "</function>\n</tool_call>"
        for name, arguments in calls
    )


def _python(calls: list[Call]) -> str:
    written = (
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for name, arguments in calls
    )
    return f"[{', '.join(written)}]"


DIALECTS: dict[str, Callable[[list[Call]], str]] = {
    "contract": lambda calls: "\n".join(block(_object(c)) for c in calls),
    "contract list": lambda calls: block(f"[{', '.join(_object(c) for c in calls)}]"),
    "contract, one a line": lambda calls: block("\n".join(_object(c) for c in calls)),
    "json fence": lambda calls: "\n".join(block(_object(c), "json") for c in calls),
    "bare": lambda calls: _object(calls[0]),
    "name and arguments": lambda calls: block(_object(calls[0], "name", "arguments")),
    "name as key": lambda calls: block(json.dumps({calls[0][0]: calls[0][1]}, ensure_ascii=False)),
    "tool_call": lambda calls: "\n".join(
        f"<tool_call>\n{_object(c, 'name', 'arguments')}\n</tool_call>" for c in calls
    ),
    "tool_calls": _openai,
    "invoke": _invoke,
    "dsml": lambda calls: _invoke(calls, "｜DSML｜"),
    "function": _function,
    "python": _python,
    "react": lambda calls: (
        f"Action: {calls[0][0]}\nAction Input: {json.dumps(calls[0][1], ensure_ascii=False)}"
    ),
}
_PLAIN_ONLY = {"invoke", "dsml", "function", "python"}
"""Dialects without a way to escape: what stands between two tags is the value."""
_SEVERAL = {
    *("contract", "contract list", "contract, one a line", "json fence", "tool_call"),
    *("tool_calls", "invoke", "dsml", "function", "python"),
}
_ALONE = {"bare", "tool_calls", "python", "react"}
_QUOTABLE = ("contract", "contract list", "json fence", "bare", "tool_call", "invoke", "function")


def _lines_behind(mark: str) -> Callable[[str], str]:
    return lambda inner: "\n".join(mark + line for line in inner.split("\n"))


_MARKED: tuple[Callable[[str], str], ...] = (
    _lines_behind("> "),
    _lines_behind(">"),
    lambda inner: f"````markdown\n{inner}\n````",
    lambda inner: f"~~~~markdown\n{inner}\n~~~~",
    lambda inner: f"<example>\n{inner}\n</example>",
    lambda inner: f"<think>\n{inner}\n</think>\n好的。",
    lambda inner: f"例如，一个调用是这样写的：\n{inner}",
    lambda inner: f"举个例子：\n{inner}",
    lambda inner: f"For example, a call looks like this:\n{inner}",
    lambda inner: f"Here is an example of the format:\n{inner}",
    lambda inner: f"我不会执行下面的调用：\n{inner}",
    lambda inner: f"这个操作太危险，我拒绝运行：\n{inner}",
    lambda inner: f"I will not run this:\n{inner}",
    lambda inner: f"I refuse to execute the following call:\n{inner}",
    lambda inner: f"你刚才发的是：\n{inner}",
    lambda inner: f"You wrote earlier:\n{inner}",
    lambda inner: f"文档里写着：\n{inner}",
)
