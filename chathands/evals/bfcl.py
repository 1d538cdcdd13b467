"""One row of BFCL's single-turn files as a case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chathands.evals.case import Case, CaseTool, ExpectedCall, GivenMessage
from chathands.evals.public_rows import Row, SkippedRow, language_of, offered_tools
from chathands.schema_values import json_types

_PREFIX = re.compile(r"\A(?:BFCL_v\d+_|gorilla_openfunctions_v1_test_)")


def bfcl_case(row: Row) -> Case:
    """The case. Without an answer none is wanted in `irrelevance`, any call in `relevance`.

    Raises ValueError and the like for a row that is none, SkippedRow for one nothing can judge.
    """
    *before, last = _messages(row.fields["question"])
    if last["role"] != "user":
        raise ValueError("the last message is not the user's")
    category = row.category(_PREFIX)
    tools = offered_tools(row.fields["function"])
    code = "java" in category
    if code:
        tools = [_taking_source_text(tool) for tool in tools]
    free = "relevance" in category
    if row.answer is None and not free:
        raise ValueError("no answer (possible_answer/ beside the file, same name)")
    if not row.answer and not free:
        raise SkippedRow("答案是空的")  # read as calls it would say that none is wanted
    expect = [] if free else list(_calls(row.answer))
    names = {tool.name for tool in tools}
    if missing := [call.tool for call in expect if call.tool not in names]:
        raise SkippedRow(f"答案里的 {missing[0]} 不在工具里")
    return Case.model_validate(
        {
            "id": f"bfcl/{row.fields['id']}",
            "language": language_of(last["content"]),
            "category": category,
            "request": last["content"],
            "head": "\n".join(m["content"] for m in before if m["role"] == "system"),
            "conversation": [
                GivenMessage.model_validate({"role": m["role"], "content": m["content"]})
                for m in before
                if m["role"] != "system"
            ],
            "tools": tools,
            "expect": expect,
            "any_call": free and "irrelevance" not in category,
            "first_only": True,
            "rule": "bfcl_code" if code else "bfcl",
        }
    )


def _messages(question: Any) -> list[dict[str, str]]:
    """The messages: text alone, a list of messages, or a list of turns that has one."""
    if isinstance(question, str):
        return [{"role": "user", "content": question}]
    if question and isinstance(question[0], list):
        if len(question) != 1:
            raise ValueError("more than one turn")
        question = question[0]
    if not question:
        raise ValueError("no question")
    return question


def _calls(answer: Any) -> Iterator[ExpectedCall]:
    """One call per object of a list, or all of one object."""
    for call in answer if isinstance(answer, list) else [answer]:
        for name, arguments in call.items():
            yield ExpectedCall(tool=name, arguments=arguments or {})


def _taking_source_text(tool: CaseTool) -> CaseTool:
    """The tool with room for a variable's name or an expression where a value is declared.

    The Java and JavaScript categories want both; the benchmark itself declares everything as text.
    """
    properties = tool.parameters.get("properties") or {}
    wider = {name: _wider(schema) for name, schema in properties.items()}
    return tool.model_copy(update={"parameters": {**tool.parameters, "properties": wider}})


def _wider(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    wide = dict(schema)
    if inner := schema.get("properties"):
        wide["properties"] = {name: _wider(each) for name, each in inner.items()}
    types = json_types(schema.get("type"))
    if types and not {"string", "boolean"} & set(types):
        wide["type"] = [*types, "string"]
        wide["description"] = (
            f"{schema.get('description') or ''} ({schema['type']}; a variable or an expression is "
            "given as text.)"
        ).strip()
    return wide
