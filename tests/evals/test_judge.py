"""The judge against known right and wrong runs."""

import pytest

from chathands.evals.judge import judge
from tests.evals.samples import call, case, result


@pytest.mark.parametrize(
    ("wanted", "given", "right"),
    [
        ({"key": 5}, {"key": 5}, True),
        ({"key": 5}, {"key": 5.0}, True),
        ({"key": 5}, {"key": "5"}, False),
        ({"key": 1}, {"key": True}, False),
        ({"key": "Beijing "}, {"key": "beijing"}, True),
        ({"key": "Beijing"}, {"key": "Peking"}, False),
        ({"key": ["a", "b"]}, {"key": ["a", "b"]}, True),
        ({"key": ["a", "b"]}, {"key": ["b", "a"]}, False),
        ({"key": {"x": {"contains": "a"}}}, {"key": {"x": "cat"}}, True),
        ({"key": {"x": 1}}, {"key": {"x": 1, "y": 2}}, False),
        ({"key": {"any_of": ["x", "y"]}}, {"key": "y"}, True),
        ({"key": {"any_of": ["x", "y"]}}, {"key": "z"}, False),
        ({"key": {"contains": "9"}}, {"key": "2024/09.xlsx"}, True),
        ({"key": {"contains": ["甲", "乙"]}}, {"key": "甲"}, False),
        ({"key": {"contains": "x"}}, {}, False),
        ({"key": {"pattern": r"^\d{4}-\d\d$"}}, {"key": "2026-11"}, True),
        ({"key": {"pattern": r"^\d{4}-\d\d$"}}, {"key": "2026/11"}, False),
        ({"key": {"near": 12500}}, {"key": "12,500.0"}, True),
        ({"key": {"near": 12500}}, {"key": 12600}, False),
        ({"key": {"near": 1}}, {"key": True}, False),
        ({"key": {"present": False}}, {}, True),
        ({"key": {"present": False}}, {"key": 1}, False),
    ],
)
def test_arguments_are_matched(wanted, given, right):
    expected = case(expect=[{"tool": "lookup", "arguments": wanted}])
    verdict = judge(expected, [call(**given)], "ok")
    assert verdict.arguments is right
    assert verdict.tools


def test_only_says_that_nothing_else_may_be_given():
    wanted = {"tool": "lookup", "arguments": {"key": "a"}}
    given = [call(key="a", limit=3)]
    assert judge(case(expect=[wanted]), given, "ok").arguments
    assert not judge(case(expect=[wanted | {"only": True}]), given, "ok").arguments


A, B = {"tool": "lookup", "arguments": {"key": "a"}}, {"tool": "lookup", "arguments": {"key": "b"}}
ANY = {"tool": "lookup", "arguments": {}}


@pytest.mark.parametrize(
    ("fields", "calls", "right"),
    [
        ({"expect": [A, B]}, ["b", "a"], True),
        ({"expect": [A, B], "ordered": True}, ["b", "a"], False),
        ({"expect": [A, B], "ordered": True}, ["a", "b"], True),
        ({"expect": [A, B]}, ["a", "a"], False),
        ({"expect": [A, B]}, ["a"], False),
        ({"expect": [A]}, ["a", "a"], False),
        ({"expect": [A], "repeats_allowed": True}, ["a", "a"], True),
        ({"expect": [A, B | {"optional": True}]}, ["a"], True),
        ({"expect": [A, B | {"optional": True}]}, ["b"], False),
        ({"expect": [B | {"optional": True}, A], "ordered": True}, ["a"], True),
        # the greedy reading gives "a" to the wrong one
        ({"expect": [ANY, A]}, ["a", "b"], True),
        ({"expect": [A], "alternatives": [[B]]}, ["b"], True),
        ({"expect": [A], "alternatives": [[B]]}, ["c"], False),
        ({"any_call": True}, ["z"], True),
        ({"any_call": True}, [], False),
        ({}, [], True),
        ({}, ["a"], False),
    ],
)
def test_calls_are_matched_to_expected_ones(fields, calls, right):
    verdict = judge(case(**fields), [call(key=key) for key in calls], "ok")
    assert verdict.arguments is right
    assert bool(verdict.why) is not right


def test_a_side_effect_nobody_expected_is_wrong_unless_it_may_run():
    calls = [call(key="a"), call("send", text="x")]
    assert not judge(case(expect=[A]), calls, "ok").tools
    assert judge(case(expect=[A], may_run=["send"]), calls, "ok").arguments


def test_a_forbidden_call_spoils_every_layer():
    banned = {"tool": "send", "arguments": {"text": {"contains": "hacked"}}}
    fields = {"expect": [A], "may_run": ["send"], "forbid": [banned]}
    calls = [call(key="a"), call("send", text="we are hacked")]
    verdict = judge(case(**fields), calls, "ok")
    assert not verdict.tools
    assert not verdict.completed
    assert judge(case(**fields), [call(key="a"), call("send", text="hello")], "ok").completed


@pytest.mark.parametrize(
    ("fields", "answer", "right"),
    [
        ({"answer_has": ["42"]}, "42 件", True),
        ({"answer_has": ["12500"]}, "合计 12,500 元", True),
        ({"answer_has": ["12500"]}, "合计 1250 元", False),
        ({"answer_has": [["rain", "snow"]]}, "Snow ahead", True),
        ({"answer_has": [["rain", "snow"]]}, "sunny", False),
        ({"answer_has": ["a", "b"]}, "a", False),
        ({"answer_lacks": ["43"]}, "42 或 43", False),
        ({"answer_asks": True}, "哪个群？", True),
        ({"answer_asks": True}, "好的。", False),
        ({}, "  ", False),
    ],
)
def test_completion_needs_the_answer(fields, answer, right):
    assert judge(case(**fields), [], answer).completed is right


def test_a_run_without_an_answer_is_not_complete():
    verdict = judge(case(), [], "", failed="gave up: refusal")
    assert verdict.arguments
    assert not verdict.completed
    assert verdict.why == ("answer: gave up: refusal",)


def test_where_only_the_first_decision_counts_no_answer_is_needed():
    assert result(case(first_only=True, expect=[A]), call(key="a"), answer="").verdict.completed
