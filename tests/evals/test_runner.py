"""A case is driven through turns and stand-in results; the judge sees what the model really did."""

import json

import pytest

from chathands.evals import Case, load_cases, run_case
from chathands.evals.case import shipped_cases
from chathands.upstreams.scripted import Scripted

TOOL = {
    "type": "function",
    "function": {
        "name": "lookup",
        "parameters": {
            "type": "object",
            "properties": {"key": {"type": "string"}},
            "required": ["key"],
        },
    },
}


def block(**arguments) -> str:
    call = {"tool": "lookup", "parameters": arguments}
    return f"```json action\n{json.dumps(call, ensure_ascii=False)}\n```"


def case(**fields) -> Case:
    given = {"id": "c", "category": "single", "request": "查甲", "tools": [TOOL]}
    return Case.model_validate(given | fields)


async def test_a_right_run_is_right_in_every_layer():
    wanted = case(
        results={"lookup": ["甲：42"]},
        expect=[{"tool": "lookup", "arguments": {"key": "甲"}}],
        answer_has=["42"],
    )
    result = await run_case(wanted, Scripted([block(key="甲"), "甲是 42。"]))
    assert result.first_is_format
    assert result.right_tools
    assert result.right_arguments
    assert result.completed
    assert result.requests == 2


async def test_a_stand_in_failure_reaches_the_model_and_can_be_corrected():
    wanted = case(
        results={"lookup": ["!没有甲，有乙", "乙：7"]},
        expect=[{"tool": "lookup"}, {"tool": "lookup", "arguments": {"key": "乙"}}],
        answer_has=["7"],
    )
    model = Scripted([block(key="甲"), block(key="乙"), "是 7。"])
    result = await run_case(wanted, model)
    assert result.completed
    assert "没有甲，有乙" in model.requests[1].messages[-1].content


async def test_a_call_where_none_is_wanted_is_wrong():
    result = await run_case(case(), Scripted([block(key="甲"), "好。"]))
    assert not result.first_is_format
    assert not result.right_tools
    assert not result.completed


async def test_a_model_that_never_stops_is_ended():
    model = Scripted(lambda request: block(key=str(len(request.messages))))
    result = await run_case(case(results={"lookup": ["x"]}), model)
    assert len(result.calls) <= 5
    assert not result.completed


def test_the_shipped_cases_are_valid_and_of_every_kind():
    cases = load_cases(shipped_cases())
    assert len({each.id for each in cases}) == len(cases) >= 14
    assert {"single", "parallel", "chain", "none", "injection"} <= {c.category for c in cases}
    assert {each.language for each in cases} == {"zh", "en"}


@pytest.mark.parametrize("wanted", load_cases(shipped_cases()), ids=lambda c: c.id)
async def test_a_silent_model_completes_no_shipped_case_that_needs_a_call(wanted: Case):
    if wanted.expect:
        result = await run_case(wanted, Scripted(lambda _: "好的。"))
        assert not result.completed
