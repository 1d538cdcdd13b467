"""The public benchmarks' matching rules, against answers that are known to be right or wrong."""

import pytest

from chathands.conversation import ToolSpec
from chathands.evals.case import ExpectedCall
from chathands.evals.rules import call_fits


def spec(required: list[str], **types: dict) -> ToolSpec:
    return ToolSpec("f", parameters={"type": "dict", "properties": types, "required": required})


SPEC = spec(
    ["base"],
    base={"type": "integer"},
    rate={"type": "float"},
    unit={"type": "string"},
    when={"type": "string"},
    tags={"type": "array", "items": {"type": "string"}},
    sizes={"type": "tuple", "items": {"type": "integer"}},
    deep={"type": "dict"},
    flag={"type": "boolean"},
    items={"type": "array", "items": {"type": "dict"}},
)


def bfcl(answer: dict, given: dict) -> bool:
    return call_fits("f", given, ExpectedCall(tool="f", arguments=answer), SPEC, "bfcl")


@pytest.mark.parametrize(
    ("answer", "given", "right"),
    [
        ({"base": [10]}, {"base": 10}, True),
        ({"base": [10]}, {"base": 11}, False),
        ({"base": [10]}, {"base": 10.0}, False),
        ({"base": [10]}, {"base": "10"}, False),
        ({"base": [1]}, {"base": True}, False),
        ({"base": [10], "unit": ["cm", ""]}, {"base": 10}, True),
        ({"base": [10], "unit": ["cm"]}, {"base": 10}, False),
        ({"base": [10], "unit": ["cm", "centimetre"]}, {"base": 10, "unit": "centimetre"}, True),
        ({"base": [10]}, {"base": 10, "unit": "cm"}, False),
        ({"base": [10], "rate": [5.0]}, {"base": 10, "rate": 5}, True),
        ({"base": [10], "rate": [5.0]}, {"base": 10, "rate": "5"}, False),
        ({"base": [1], "unit": ["New York, NY"]}, {"base": 1, "unit": "new york ny"}, True),
        ({"base": [1], "unit": ["it's"]}, {"base": 1, "unit": 'it"s'}, True),
        ({"base": [1], "unit": ["Paris"]}, {"base": 1, "unit": "Paris, France"}, False),
        (
            {"base": [1], "when": ["2026-11-30", "11/30/2026"]},
            {"base": 1, "when": "2026.11.30"},
            True,
        ),
        ({"base": [1], "tags": [["A b", "c"]]}, {"base": 1, "tags": ["a-b", "C"]}, True),
        ({"base": [1], "tags": [["a", "b"]]}, {"base": 1, "tags": ["b", "a"]}, False),
        ({"base": [1], "sizes": [[3, 4]]}, {"base": 1, "sizes": [3, 4]}, True),
        ({"base": [1], "flag": [True]}, {"base": 1, "flag": "true"}, False),
        ({"base": [1], "deep": [{"x": [1, 2], "y": [""]}]}, {"base": 1, "deep": {"x": 2}}, True),
        ({"base": [1], "deep": [{"x": [1], "y": [3]}]}, {"base": 1, "deep": {"x": 1}}, False),
        ({"base": [1], "deep": [{"x": [1]}]}, {"base": 1, "deep": {"x": 1, "z": 1}}, False),
        ({"base": [1], "items": [[{"n": ["a"]}]]}, {"base": 1, "items": [{"n": "A"}]}, True),
        ({"base": [1], "items": [[{"n": ["a"]}]]}, {"base": 1, "items": []}, False),
        # an answer of another type than declared: a variable's name
        ({"base": ["user_base"]}, {"base": "user_base"}, True),
    ],
)
def test_bfcl(answer, given, right):
    assert bfcl(answer, given) is right


@pytest.mark.parametrize(
    ("answer", "given", "right"),
    [
        ({"base": 10, "unit": "销售部"}, {"base": 10, "unit": "销售部"}, True),
        ({"base": 10, "unit": "销售部"}, {"base": 10, "unit": "公司销售部门"}, True),
        ({"base": 10, "unit": "公司销售部"}, {"base": 10, "unit": "销售部"}, False),
        ({"base": 10}, {"base": 11}, False),
        ({"base": 10}, {"base": 10, "unit": "cm"}, False),
        ({"unit": "cm"}, {"unit": "cm"}, False),
        ({"base": 10, "flag": True}, {"base": 10, "flag": "true"}, True),
        ({"base": 10, "flag": True}, {"base": 10, "flag": False}, False),
        ({"base": 10, "deep": {"a": {"b": "甲"}}}, {"base": 10, "deep": {"a": {"b": "甲 "}}}, True),
        ({"base": 10, "deep": {"a": 1}}, {"base": 10, "deep": {"a": 1, "b": 2}}, False),
        (
            {"base": 10, "items": [{"n": "x"}]},
            {"base": 10, "items": [{"n": "x"}, {"n": "y"}]},
            False,
        ),
        ({"base": 10, "tags": ["a", "b"]}, {"base": 10, "tags": ["a", "b"]}, True),
    ],
)
def test_acebench(answer, given, right):
    expected = ExpectedCall(tool="f", arguments=answer)
    assert call_fits("f", given, expected, SPEC, "acebench") is right


def test_another_tool_is_never_the_expected_one():
    for rule in ("own", "bfcl", "acebench"):
        assert not call_fits("g", {}, ExpectedCall(tool="f"), SPEC, rule)
