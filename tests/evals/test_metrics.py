"""The judge is tested against known right and wrong answers."""

import pytest

from chathands.conversation import ToolCall
from chathands.errors import ConfigError
from chathands.evals import Case, CaseResult, load_cases, summarise
from chathands.evals.metrics import Share

TOOL = {"type": "function", "function": {"name": "lookup"}}


def case(**fields) -> Case:
    return Case.model_validate(
        {"id": "c", "category": "single", "request": "q", "tools": [TOOL]} | fields
    )


def result(case: Case, *calls: dict, answer: str = "ok") -> CaseResult:
    made = [ToolCall(str(i), "lookup", arguments) for i, arguments in enumerate(calls)]
    return CaseResult(case, calls=made, answer=answer)


@pytest.mark.parametrize(
    ("wanted", "given", "right"),
    [
        ({"a": 5}, {"a": 5}, True),
        ({"a": 5}, {"a": 5.0}, True),
        ({"a": 5}, {"a": "5"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": "Beijing "}, {"a": "beijing"}, True),
        ({"a": {"any_of": ["x", "y"]}}, {"a": "y"}, True),
        ({"a": {"any_of": ["x", "y"]}}, {"a": "z"}, False),
        ({"a": {"contains": "9"}}, {"a": "2024/09.xlsx"}, True),
        ({"a": {"present": False}}, {}, True),
        ({"a": {"present": False}}, {"a": 1}, False),
    ],
)
def test_arguments_are_matched(wanted, given, right):
    expected = case(expect=[{"tool": "lookup", "arguments": wanted}])
    assert result(expected, given).right_arguments is right


def test_a_call_too_many_is_wrong_in_both_layers():
    expected = case(expect=[{"tool": "lookup"}])
    assert not result(expected, {}, {}).right_tools
    assert not result(expected, {}, {}).right_arguments


def test_no_call_wanted_and_none_made_is_right():
    assert result(case()).right_tools
    assert not result(case(), {}).right_tools


def test_completion_needs_the_answer_too():
    expected = case(answer_has=["42"], answer_lacks=["43"])
    assert result(expected, answer="42 件").completed
    assert not result(expected, answer="").completed
    assert not result(expected, answer="42 或 43").completed


def test_the_interval_is_wilsons():
    low, high = Share(9, 10).interval
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982)
    assert Share(0, 0).interval == (0.0, 1.0)


def test_a_report_has_a_row_per_category_and_one_for_all():
    report = summarise([result(case()), result(case(category="chain"), {})])
    assert [name for name, _ in report.rows] == ["chain", "single", "all"]
    assert report.rows[-1][1]["tool choice"] == Share(1, 2)
    assert "| all |" in str(report)


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": "a"}\n', "utf-8")
    with pytest.raises(ConfigError, match=r"cases\.jsonl:1"):
        load_cases(path)
