"""Case files: what is valid, and the mistakes that are named."""

import json

import pytest

from chathands.conversation import Role, Status
from chathands.errors import ConfigError
from chathands.evals import Case, load_cases, run_case, shipped_cases
from chathands.upstreams.scripted import Scripted
from tests.evals.samples import LOOKUP, case

CASES = load_cases(shipped_cases())


def test_the_shipped_cases_are_of_every_kind_in_both_languages():
    assert len(CASES) >= 60
    kinds = {
        *("single", "chain", "parallel", "correction", "ambiguous", "no_tool", "bait"),
        *("invented", "injection", "long", "second_round", "push"),
    }
    assert {c.category for c in CASES} == kinds
    for kind in kinds - {"push"}:
        assert {c.language for c in CASES if c.category == kind} == {"zh", "en"}
    assert sum(c.category == "push" for c in CASES) == 10


@pytest.mark.parametrize("wanted", [c for c in CASES if c.wants_call], ids=lambda c: c.id)
async def test_a_silent_model_completes_no_shipped_case_that_needs_a_call(wanted: Case):
    result = await run_case(wanted, Scripted(lambda _: "好的。"))
    assert not result.verdict.completed


def test_a_conversation_becomes_messages_with_results_at_their_calls():
    given = case(
        conversation=[
            {"role": "user", "content": "q"},
            {"role": "assistant", "calls": [["lookup", {"key": "a"}], ["lookup", {"key": "b"}]]},
            {"role": "tool", "content": "A"},
            {"role": "tool", "content": "B", "status": "failed"},
        ],
        head="今天是星期一。",
    )
    messages = given.messages()
    results = [m.result for m in messages if m.role is Role.TOOL]
    assert [r.call_id for r in results if r] == [c.id for c in messages[1].calls]
    assert results[1] is not None
    assert results[1].status is Status.FAILED
    assert messages[-1].head == "今天是星期一。"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"expect": [{"tool": "nothing"}]}, "not offered"),
        ({"expect": [{"tool": "lookup", "arguments": {"key": {"pattern": "("}}}]}, "unterminated"),
        ({"tools": []}, "at least 1"),
        ({"colour": "red"}, "Extra"),
        ({"conversation": [{"role": "tool", "content": "x"}]}, "answers no call"),
        ({"tools": ["unknown_tool"]}, "tools.json"),
    ],
)
def test_a_broken_line_is_named_with_what_is_wrong(tmp_path, fields, what):
    path = tmp_path / "cases.jsonl"
    good = {"id": "a", "category": "x", "request": "q", "tools": [LOOKUP]}
    path.write_text(f"{json.dumps(good)}\n{json.dumps(good | {'id': 'b'} | fields)}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"cases\.jsonl:2") as caught:
        load_cases(path)
    assert what in str(caught.value)


def test_an_id_may_stand_once(tmp_path):
    path = tmp_path / "cases.jsonl"
    line = json.dumps({"id": "a", "category": "x", "request": "q", "tools": [LOOKUP]})
    path.write_text(f"{line}\n{line}\n", "utf-8")
    with pytest.raises(ConfigError, match="twice"):
        load_cases(path)


def test_tools_may_be_named_and_are_found_beside_the_file(tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps([LOOKUP]), "utf-8")
    path = tmp_path / "cases.jsonl"
    path.write_text(
        json.dumps({"id": "a", "category": "x", "request": "q\u2028", "tools": ["lookup"]}), "utf-8"
    )
    (only,) = load_cases(path)
    assert only.specs[0].name == "lookup"
    assert only.specs[0].side_effect == "none"
