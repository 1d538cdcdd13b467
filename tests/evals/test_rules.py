"""The public benchmarks' matching rules, against answers that are known to be right or wrong."""

import pytest

from chathands.conversation import ToolSpec
from chathands.evals.case import ExpectedCall
from chathands.evals.code_values import read_code
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
    rates={"type": "array", "items": {"type": "float"}},
    grid={"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    thing={"type": "any"},
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
        # an answer of another type than declared: a variable's name, as it stands
        ({"base": ["user_base"]}, {"base": "user_base"}, True),
        ({"base": ["user_base"]}, {"base": "User base"}, False),
        ({"base": ["user_base", 3]}, {"base": 3}, True),
        # null is right only where the answer's first value is null
        ({"base": [1], "unit": ["", None]}, {"base": 1, "unit": None}, True),
        ({"base": [1], "unit": ["cm", None]}, {"base": 1, "unit": None}, False),
        ({"base": [1], "unit": [""]}, {"base": 1, "unit": "cm"}, False),
        ({"base": [1], "unit": [""]}, {"base": 1, "unit": ""}, True),
        # an integer will do for a float, but not inside a list that must be given
        ({"base": [1], "rates": [[1.0, 2.5]]}, {"base": 1, "rates": [1, 2.5]}, False),
        ({"base": [1], "rates": [[1.0, 2.5]]}, {"base": 1, "rates": [1.0, 2.5]}, True),
        ({"base": [1], "rates": [[1, 2]]}, {"base": 1, "rates": [1, 2]}, True),
        ({"base": [1], "rates": [[1.0], ""]}, {"base": 1, "rates": [1]}, True),
        # an empty list is the same as leaving an optional one out
        ({"base": [1], "tags": [["a"], ""]}, {"base": 1, "tags": []}, True),
        ({"base": [1], "tags": [["a"]]}, {"base": 1, "tags": []}, False),
        ({"base": [1], "items": [[{"n": [1]}], ""]}, {"base": 1, "items": []}, True),
        ({"base": [1], "tags": [["a"], ["b"]]}, {"base": 1, "tags": ["b"]}, True),
        ({"base": [1], "tags": [["a"]]}, {"base": 1, "tags": "a"}, False),
        ({"base": [1], "tags": [["a"]]}, {"base": 1, "tags": ["a", "a"]}, False),
        # lists inside a list or an object are compared as they stand
        ({"base": [1], "grid": [[["A"]]]}, {"base": 1, "grid": [["A"]]}, True),
        ({"base": [1], "grid": [[["A"]]]}, {"base": 1, "grid": [["a"]]}, False),
        ({"base": [1], "deep": [{"x": [["A b"]]}]}, {"base": 1, "deep": {"x": ["A b"]}}, True),
        ({"base": [1], "deep": [{"x": [["A b"]]}]}, {"base": 1, "deep": {"x": ["ab"]}}, False),
        ({"base": [1], "deep": [{"x": ["A b"]}]}, {"base": 1, "deep": {"x": "ab"}}, True),
        # an object inside an object, and a bare value in one
        (
            {"base": [1], "deep": [{"x": [{"y": [1, 2], "z": [""]}]}]},
            {"base": 1, "deep": {"x": {"y": 2}}},
            True,
        ),
        (
            {"base": [1], "deep": [{"x": [{"y": [1, 2]}]}]},
            {"base": 1, "deep": {"x": {"y": 3}}},
            False,
        ),
        ({"base": [1], "deep": [{"x": "epoch"}]}, {"base": 1, "deep": {"x": "epoch"}}, True),
        ({"base": [1], "deep": [{"x": "epoch"}]}, {"base": 1, "deep": {"x": "e"}}, False),
        ({"base": [1], "deep": [{"x": "epoch"}]}, {"base": 1, "deep": {}}, False),
        ({"base": [1], "deep": [{"x": [True]}]}, {"base": 1, "deep": {"x": 1}}, False),
        # objects in a list: in order, as many, each with its keys
        (
            {"base": [1], "items": [[{"n": ["a"]}, {"n": ["b"]}]]},
            {"base": 1, "items": [{"n": "b"}, {"n": "a"}]},
            False,
        ),
        ({"base": [1], "items": [[{"n": ["a"]}]]}, {"base": 1, "items": ["a"]}, False),
        # `any` is text for the checker, and otherwise what the answer is
        ({"base": [1], "thing": ["x y"]}, {"base": 1, "thing": "XY"}, True),
        ({"base": [1], "thing": [4]}, {"base": 1, "thing": 4}, True),
        ({"base": [1], "thing": [4]}, {"base": 1, "thing": "4"}, False),
        # a required parameter that the answer lacks is missing all the same
        ({"unit": ["cm"]}, {"unit": "cm"}, False),
        ({"base": 10}, {"base": 10}, True),
    ],
)
def test_bfcl(answer, given, right):
    assert bfcl(answer, given) is right


CODE = spec(
    [],
    count={"type": "long"},
    ratio={"type": "float"},
    on={"type": "Boolean"},
    name={"type": "String"},
    ids={"type": "ArrayList", "items": {"type": "integer"}},
    names={"type": "array", "items": {"type": "String"}},
    params={"type": "HashMap"},
    thing={"type": "any"},
)


@pytest.mark.parametrize(
    ("answer", "given", "right"),
    [
        ({"count": [30]}, {"count": 30}, True),
        ({"count": [30]}, {"count": "30L"}, True),
        ({"count": [30]}, {"count": "30n"}, True),
        ({"count": [30]}, {"count": "31L"}, False),
        ({"ratio": [0.5]}, {"ratio": "0.5f"}, True),
        ({"ratio": [5.0]}, {"ratio": 5}, True),
        ({"on": [True]}, {"on": True}, True),
        ({"on": [True]}, {"on": "true"}, True),
        ({"on": [True]}, {"on": "false"}, False),
        ({"on": [True]}, {"on": 1}, False),
        ({"name": ["John Doe"]}, {"name": '"John Doe"'}, True),
        ({"name": ["John Doe"]}, {"name": "Jane Doe"}, False),
        ({"ids": [[1, 2]]}, {"ids": [1, 2]}, True),
        ({"ids": [[1, 2]]}, {"ids": "new ArrayList<>(Arrays.asList(1, 2))"}, True),
        ({"ids": [[1, 2]]}, {"ids": "new ArrayList<Integer>() {{ add(1); add(2); }}"}, True),
        ({"ids": [[1, 2]]}, {"ids": "new int[]{1, 2}"}, True),
        ({"ids": [[1, 2]]}, {"ids": "List.of(2, 1)"}, False),
        ({"ids": [[]]}, {"ids": "new ArrayList<>()"}, True),
        ({"names": [["a, b", "c"]]}, {"names": "['a, b', \"c\"]"}, True),
        ({"names": [["a"]]}, {"names": "new Array('a')"}, True),
        ({"names": [["a"]]}, {"names": "myNames"}, False),
        ({"params": [{"limit": [50], "on": [""]}]}, {"params": {"limit": 50}}, True),
        (
            {"params": [{"limit": [50], "to": ["x"]}]},
            {"params": 'new HashMap<String, Object>() {{ put("limit", 50); put("to", "x"); }}'},
            True,
        ),
        ({"params": [{"limit": [50]}]}, {"params": "{limit: 50}"}, True),
        ({"params": [{"limit": [50]}]}, {"params": 'Map.of("limit", 51)'}, False),
        ({"params": [{"tags": [["a"]]}]}, {"params": {"tags": ["a"]}}, True),
        ({"params": [{"limit": [50]}]}, {"params": {"limit": 50, "more": 1}}, False),
        ({"thing": ["42"]}, {"thing": 42}, True),
        ({"thing": ["null"]}, {"thing": None}, True),
        ({"thing": ["System.out"]}, {"thing": "System.out"}, True),
        ({"thing": ["System.out"]}, {"thing": ["System.out"]}, False),
        ({"thing": ["a", ""]}, {}, True),
        ({"thing": ["a"]}, {}, False),
        ({"thing": ["a"]}, {"thing": "a", "name": "b"}, False),
    ],
)
def test_bfcl_java_and_javascript(answer, given, right):
    expected = ExpectedCall(tool="f", arguments=answer)
    assert call_fits("f", given, expected, CODE, "bfcl_code") is right


@pytest.mark.parametrize("text", ["[" * 5000, "{a: " * 5000, "new int[]{" * 3000, "((", "'", "[,]"])
def test_source_text_that_is_none_is_text(text):
    read_code(text)
    read_code(text + text[::-1])


@pytest.mark.parametrize(
    ("answer", "given", "right"),
    [
        ({"base": 10, "unit": "销售部"}, {"base": 10, "unit": "销售部"}, True),
        ({"base": 10, "unit": "销售部"}, {"base": 10, "unit": "公司销售部门"}, True),
        ({"base": 10, "unit": "公司销售部"}, {"base": 10, "unit": "销售部"}, False),
        ({"base": 10, "unit": "New York"}, {"base": 10, "unit": "new_york, NY"}, True),
        ({"base": 10, "unit": "先看，再回"}, {"base": 10, "unit": "先看,再回。"}, True),
        ({"base": 10, "unit": "a(b)"}, {"base": 10, "unit": "ab"}, False),
        # optional ones that the answer has may be left out
        ({"base": 10, "unit": "cm"}, {"base": 10}, True),
        ({"base": 10}, {"base": 11}, False),
        ({"base": 10}, {"base": 10.0}, True),
        ({"base": 10}, {"base": "10"}, False),
        ({"base": 10}, {"base": 10, "unit": "cm"}, False),
        ({"base": 10}, {"base": 10, "other": "cm"}, False),
        ({"unit": "cm"}, {"unit": "cm"}, False),
        ({"base": 10}, {}, False),
        ({}, {"base": 10}, False),
        ({"base": 10, "flag": True}, {"base": 10, "flag": "true"}, True),
        ({"base": 10, "flag": True}, {"base": 10, "flag": False}, False),
        ({"base": 10, "flag": True}, {"base": 10, "flag": "false"}, False),
        ({"base": 10, "flag": True}, {"base": 10, "flag": 1}, False),
        # the answer's type counts where it is not the declared one
        ({"base": 10, "unit": 5}, {"base": 10, "unit": "5"}, True),
        ({"base": 10, "unit": 5}, {"base": 10, "unit": 5}, True),
        ({"base": 10, "unit": "5"}, {"base": 10, "unit": 5}, False),
        ({"base": "10"}, {"base": 10}, True),
        ({"base": "10"}, {"base": "10"}, True),
        ({"base": 10, "unit": "true"}, {"base": 10, "unit": "true"}, True),
        ({"base": 10, "unit": True}, {"base": 10, "unit": "true"}, True),
        ({"base": 10, "unit": ["a", "b"]}, {"base": 10, "unit": "a, b"}, True),
        ({"base": 10, "unit": ["a", "b"]}, {"base": 10, "unit": "c"}, False),
        # objects: just the expected keys; text, also of numbers
        ({"base": 10, "deep": {"a": {"b": "甲"}}}, {"base": 10, "deep": {"a": {"b": "甲 "}}}, True),
        ({"base": 10, "deep": {"a": "甲"}}, {"base": 10, "deep": {"a": "甲方"}}, True),
        ({"base": 10, "deep": {"a": 1}}, {"base": 10, "deep": {"a": 1, "b": 2}}, False),
        ({"base": 10, "deep": {"a": 1, "b": 2}}, {"base": 10, "deep": {"a": 1}}, False),
        ({"base": 10, "deep": {"a": 5}}, {"base": 10, "deep": {"a": "5"}}, True),
        ({"base": 10, "deep": {"a": 5}}, {"base": 10, "deep": {"a": 25}}, False),
        ({"base": 10, "deep": {"a": 5}}, {"base": 10, "deep": {"a": "25"}}, False),
        ({"base": 10, "deep": {"a": "5"}}, {"base": 10, "deep": {"a": 5}}, True),
        ({"base": 10, "deep": {"a": True}}, {"base": 10, "deep": {"a": "true"}}, True),
        ({"base": 10, "deep": {"a": {}}}, {"base": 10, "deep": {"a": {}}}, True),
        ({"base": 10, "deep": {"a": 1}}, {"base": 10, "deep": "a"}, False),
        ({"base": 10, "deep": {"a": ["x y"]}}, {"base": 10, "deep": {"a": ["X-y"]}}, True),
        ({"base": 10, "deep": {"a": ["x"]}}, {"base": 10, "deep": {"a": ["xy"]}}, False),
        ({"base": 10, "deep": {"a": ["x"]}}, {"base": 10, "deep": {"a": "x"}}, False),
        (
            {"base": 10, "deep": {"a": [{"n": "x", "m": 2}]}},
            {"base": 10, "deep": {"a": [{"m": 2, "n": "x"}]}},
            True,
        ),
        (
            {"base": 10, "deep": {"a": [{"n": "x"}]}},
            {"base": 10, "deep": {"a": [{"n": "x2"}]}},
            False,
        ),
        (
            {"base": 10, "items": [{"n": "x"}]},
            {"base": 10, "items": [{"n": "x"}, {"n": "y"}]},
            False,
        ),
        ({"base": 10, "items": [{"n": "x"}]}, {"base": 10, "items": [{"n": "the x"}]}, True),
        ({"base": 10, "items": [{"n": "x"}]}, {"base": 10, "items": ["x"]}, False),
        ({"base": 10, "tags": ["a", "b"]}, {"base": 10, "tags": ["a", "b"]}, True),
        ({"base": 10, "tags": ["a", "b"]}, {"base": 10, "tags": ["b", "a"]}, False),
        ({"base": 10, "tags": ["销售部"]}, {"base": 10, "tags": ["公司销售部门"]}, False),
        ({"base": 10, "tags": ["Dr.Smith"]}, {"base": 10, "tags": ["dr Smith"]}, True),
        ({"base": 10, "tags": []}, {"base": 10, "tags": []}, True),
        ({"base": 10, "tags": ["a"]}, {"base": 10, "tags": "a"}, False),
        ({"base": 10, "grid": [[1, 0], [0, 1]]}, {"base": 10, "grid": [[1, 0], [0, 1]]}, True),
        ({"base": 10, "grid": [[1, 0], [0, 1]]}, {"base": 10, "grid": [[1, 0], [1, 0]]}, False),
    ],
)
def test_acebench(answer, given, right):
    expected = ExpectedCall(tool="f", arguments=answer)
    assert call_fits("f", given, expected, SPEC, "acebench") is right


def test_acebench_a_call_that_needs_no_arguments():
    assert call_fits("f", {}, ExpectedCall(tool="f"), spec([]), "acebench")
    assert not call_fits("f", {}, ExpectedCall(tool="f", arguments={"a": 1}), spec([]), "acebench")


def test_another_tool_is_never_the_expected_one():
    for rule in ("own", "bfcl", "bfcl_code", "acebench"):
        assert not call_fits("g", {}, ExpectedCall(tool="f"), SPEC, rule)
