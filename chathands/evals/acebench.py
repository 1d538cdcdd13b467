"""One row of ACEBench's normal and special files as a case."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chathands.emulation import parse_reply
from chathands.evals.case import Case, CaseTool, ExpectedCall, GivenMessage
from chathands.evals.public_rows import Row, SkippedRow, language_of, offered_tools

_PREFIX = re.compile(r"\Adata_")
_NUMBERED = re.compile(r"_\d+\Z")
_SPEAKER = re.compile(r"^(user|system|assistant)[ \t]*[:：][ \t]?", re.MULTILINE | re.IGNORECASE)
_PROFILE = {"zh": "用户资料：", "en": "About the user: "}


def acebench_case(row: Row) -> Case:
    """The case: the last turn is the request, earlier ones are the conversation.

    The benchmark asks for set phrases in the special categories, where the request lacks something,
    is wrong or fits no tool; no model of a chat is told them, so that what counts here is that no
    call is made. A list as the answer gives alternatives. English rows get ids of their own, since
    the benchmark uses the same for both languages.
    """
    category = row.category(_PREFIX)
    if category.startswith("agent"):
        raise ValueError("agent categories need their own environment")
    question = str(row.fields["question"])
    language = language_of(question)
    tools = offered_tools(row.fields["function"])
    turns = _turns(question)
    if not turns or turns[-1][0] != "user":
        raise SkippedRow("最后一句不是用户说的")
    lists: list[list[ExpectedCall]] = [[]]
    if not category.startswith("special"):
        answer = json.loads(row.answer) if isinstance(row.answer, str) else row.answer
        answers = answer if isinstance(answer, list) else [answer]
        names = [tool.name for tool in tools]
        lists = [_calls(each, names) for each in answers]
        if not all(lists) or not lists:
            raise SkippedRow("答案是空的")  # read as calls it would say that none is wanted
    head = [str(row.fields["time"])] if row.fields.get("time") else []
    if profile := row.fields.get("profile"):
        head.append(f"{_PROFILE[language]}{profile}")
    return Case.model_validate(
        {
            "id": f"acebench/{'' if language == 'zh' else 'en/'}{row.fields['id']}",
            "language": language,
            "category": category,
            "request": turns[-1][1],
            "head": "\n".join(head),
            "conversation": list(_conversation(turns[:-1], tools)),
            "tools": tools,
            "expect": lists[0],
            "alternatives": lists[1:],
            "first_only": True,
            "rule": "acebench",
        }
    )


def _turns(question: str) -> list[tuple[str, str]]:
    """(role, text) pairs; "system" is what ACEBench calls the assistant."""
    marks = list(_SPEAKER.finditer(question))
    opening = question[: marks[0].start() if marks else None].strip()
    turns = [("user", opening)] if opening else []
    for mark, after in zip(marks, [*marks, None][1:], strict=True):
        text = question[mark.end() : after.start() if after else None].strip()
        turns.append(("user" if mark[1].lower() == "user" else "assistant", text))
    return turns


def _conversation(
    turns: Sequence[tuple[str, str]], tools: Sequence[CaseTool]
) -> Iterator[GivenMessage]:
    """Earlier turns. An assistant's turn that is nothing but calls, `[f(a="b")]`, made them; what
    it says next reports what came back, which the file does not tell."""
    specs = [tool.spec for tool in tools]
    said: list[GivenMessage] = []
    for at, (role, text) in enumerate(turns):
        calls = []
        reports = at + 1 < len(turns) and turns[at + 1][0] == "assistant"
        if role == "assistant" and reports and text.startswith("[") and text.endswith("]"):
            read = parse_reply(text, specs)
            if not read.broken and not read.text.strip():
                calls = [(call.name, dict(call.arguments)) for call in read.calls]
        if calls:
            said.append(GivenMessage(role="assistant", calls=calls))
            said += [GivenMessage(role="tool", content=turns[at + 1][1]) for _ in calls]
        elif said and said[-1].role == role:
            joined = f"{said[-1].content}\n{text}"
            said[-1] = said[-1].model_copy(update={"content": joined})
        else:
            said.append(GivenMessage.model_validate({"role": role, "content": text}))
    yield from said


def _calls(answer: Any, offered: Sequence[str]) -> list[ExpectedCall]:
    """`{name: arguments}`. Several calls of one tool are numbered, `name_1`, `name_2`; a number may
    also belong to the name of a tool, and then all that share the rest of it are offered."""
    if not isinstance(answer, Mapping):
        raise ValueError("no answer (possible_answer/ beside the file, same name)")
    strange = {_NUMBERED.sub("", name) for name in answer if name not in offered}
    calls = []
    for name, arguments in answer.items():
        plain = _NUMBERED.sub("", name)
        tool = plain if plain in strange and plain in offered else name
        if tool not in offered:
            raise SkippedRow(f"答案里的 {tool} 不在工具里")
        calls.append(ExpectedCall(tool=tool, arguments=arguments or {}))
    return calls
