"""`chathands trace case`: a reply that went wrong becomes a line that the corpus tests read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.agent.trace_case import CaseError, case_of, expected_calls, one_json_line
from chathands.cli import trace as trace_command
from chathands.emulation.outcome import NativeCall, Text, Thinking
from chathands.upstreams.scripted import Reply
from tests.agent.kit import NOTE, READ, SEND, block, world
from tests.cli.trace_cli import cli_trace
from tests.emulation.replies import (
    KINDS,
    accepts,
    calls_of,
    cases,
    reading_of,
    reason_of,
    stance_fits,
)

STOCK = READ.replace("查询。", "查看库存。")
LOOK = block("look", what="库存")
REFUSAL = "抱歉，作为一个语言模型，我无法访问外部工具，没有办法查看库存。"
CUT = '```json action\n{"tool": "look", "parameters": {"what": "库'
NO_NAME = "```json action\nlook at the stock\n```"


async def ran(tmp_path, replies, *sources, ask="看看库存"):
    """The state a run leaves, and its trace."""
    async with world(tmp_path, replies, *(sources or (STOCK,))) as w:
        await w.ask(ask)
        trace = await w.agent.traces.last()
    return w.settings.state_dir, trace


async def written(state: Path, *arguments: str) -> dict:
    """The case that the command prints."""
    result = await cli_trace(state, "case", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


async def refused(state: Path, *arguments: str) -> str:
    result = await cli_trace(state, "case", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    return result.stderr


def passes(case: dict) -> bool:
    """What the test of the parser corpus asks of a case."""
    return accepts(case, calls_of(reading_of(case)))


# --- parser cases


async def test_a_reply_that_was_not_read_becomes_a_parser_case_with_its_own_tools(tmp_path):
    state, trace = await ran(tmp_path, [NO_NAME, LOOK, "库存一切正常。"])
    case = await written(state, trace["ref"])
    assert (case["id"], case["category"]) == (f"{trace['ref']}-1-1".lower(), "broken_call")
    assert case["raw"] == NO_NAME
    assert [tool["name"] for tool in case["tools"]] == ["look"]
    assert (case["expected"], passes(case)) == ([], True)


async def test_with_what_should_have_been_read_the_case_fails_until_it_is_read_so(tmp_path):
    state, _ = await ran(tmp_path, [NO_NAME, LOOK, "库存一切正常。"])
    wanted = '{"tool": "look", "parameters": {"what": "the stock"}}'
    case = await written(state, "--expected", wanted)
    assert case["expected"] == [json.loads(wanted)]
    assert not passes(case)
    assert passes({**case, "raw": block("look", what="the stock")})


async def test_a_call_that_should_not_have_been_one_fails_with_no_call(tmp_path):
    state, _ = await ran(tmp_path, [LOOK, "库存一切正常。"])
    chosen = ("--round", "1", "--reply", "1")
    as_read = await written(state, *chosen)
    assert as_read["expected"] == [{"tool": "look", "parameters": {"what": "库存"}}]
    assert passes(as_read)
    assert not passes(await written(state, *chosen, "--no-call"))


async def test_a_cut_reply_keeps_the_reason_it_ended_for(tmp_path):
    state, _ = await ran(tmp_path, [Reply(CUT, "length"), LOOK, "库存一切正常。"])
    case = await written(state)
    assert case["finish_reason"] == "length"
    assert passes(case)


async def test_native_calls_stand_in_the_case_as_the_blocks_they_were_read_as(tmp_path):
    native = NativeCall(0, "id", "look", '{"what": "库存"}')
    pieces = [Thinking("想想"), Text("好。"), native]
    state, _ = await ran(tmp_path, [pieces, "库存一切正常。"])
    case = await written(state, "--round", "1")
    assert "想想" not in case["raw"]
    assert case["expected"] == [{"tool": "look", "parameters": {"what": "库存"}}]
    assert passes(case)


async def test_replies_are_counted_as_the_page_counts_them(tmp_path):
    replies = [REFUSAL, NO_NAME, LOOK, "库存一切正常。"]
    state, trace = await ran(tmp_path, replies)
    assert case_of(trace).id.endswith("-1-2")
    for number, raw in enumerate(replies[:3], 1):
        case = await written(state, "--round", "1", "--reply", str(number), "--kind", "parser")
        assert case["raw"] == raw
    assert (await written(state, "--round", "2"))["raw"] == replies[3]
    told = await refused(state, "--round", "1", "--reply", "7")
    assert "第 1 轮请求 3" in told


# --- review cases


async def test_a_refusal_becomes_a_labelled_reply(tmp_path):
    state, _ = await ran(tmp_path, [REFUSAL, LOOK, "库存一切正常。"])
    case = await written(state)
    assert (case["label"], case["should_retry"], case["lang"]) == ("refusal", True, "zh")
    assert case["text"] == REFUSAL
    assert stance_fits(case)


async def test_a_label_that_is_not_what_is_judged_today_fails(tmp_path):
    state, _ = await ran(tmp_path, [REFUSAL, LOOK, "库存一切正常。"])
    case = await written(state, "--label", "normal")
    assert case["should_retry"] is False
    assert not stance_fits(case)


async def test_an_answer_can_be_labelled_too(tmp_path):
    state, _ = await ran(tmp_path, [LOOK, "库存一切正常。"])
    case = await written(state, "--label", "normal")
    assert case["text"] == "库存一切正常。"
    assert stance_fits(case)


async def test_a_claim_becomes_a_case_with_its_conversation(tmp_path):
    claims = ["已经发送到销售群了。", "已经发送到销售群了，请查收。"]
    state, _ = await ran(tmp_path, claims, SEND, ask="把周报发到销售群")
    case = await written(state)
    assert case["reason"] == "unbacked_claim" == reason_of(case)
    assert case["conversation"][-1]["text"].endswith("把周报发到销售群")
    assert reason_of(case) != (await written(state, "--reason", "none"))["reason"]
    done = {**case, "raw": "还没有发送。"}
    assert reason_of(done) != "unbacked_claim"


async def test_results_of_the_run_stand_in_the_conversation(tmp_path):
    state, _ = await ran(tmp_path, [block("note", text="买菜"), "记好了。"], NOTE, ask="记一下买菜")
    case = await written(state, "--reason", "none")
    assert [message["role"] for message in case["conversation"]] == ["user", "assistant", "tool"]
    assert reason_of(case) == "none"


# --- the line


async def test_the_line_is_appended_once(tmp_path):
    state, _ = await ran(tmp_path, [NO_NAME, LOOK, "库存一切正常。"])
    file = tmp_path / "forms.jsonl"
    file.write_text('{"id": "first"}', "utf-8")
    result = await cli_trace(state, "case", "--out", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "tests/data/forms.jsonl" in result.stderr
    assert "请改对再提交" in result.stderr
    first, second, end = file.read_text("utf-8").split("\n")
    assert (json.loads(first), end) == ({"id": "first"}, "")
    assert passes(json.loads(second))
    assert "已经有" in await refused(state, "--out", str(file))


async def test_a_reply_that_is_there_under_another_id_is_said_to_be(tmp_path):
    state, _ = await ran(tmp_path, [NO_NAME, LOOK, "库存一切正常。"])
    file = tmp_path / "forms.jsonl"
    file.write_text(f"{one_json_line({'id': 'older', 'raw': NO_NAME})}\n[1]\nno row\n", "utf-8")
    result = await cli_trace(state, "case", "--out", str(file))
    assert result.exit_code == 0
    assert "已经有这段原文：用例 older。" in result.stderr
    assert len(file.read_text("utf-8").splitlines()) == 4


async def test_secrets_do_not_reach_the_line(tmp_path, monkeypatch):
    said = "我无法访问外部工具，sk-abcdefgh12345678 和 geheim123456 都没有用。"
    state, _ = await ran(tmp_path, [said, LOOK, "库存一切正常。"])
    monkeypatch.setenv("CHATHANDS__MODEL__API_KEY", "geheim123456")
    line = json.dumps(await written(state))
    assert "***" in line
    assert "sk-abc" not in line
    assert "geheim" not in line


async def test_a_run_that_went_on_after_a_restart_has_its_first_replies_too(tmp_path):
    push = block("send", robot="销售群", content="周报")
    async with world(tmp_path, [NO_NAME, push], SEND) as w:
        suspended = await w.ask("发周报")
    async with world(tmp_path, ["推送好了。"], SEND) as w:
        await w.decide(suspended, True)
    case = await written(w.settings.state_dir)
    assert case["raw"] == NO_NAME


async def test_what_cannot_be_meant_is_refused_in_a_sentence(tmp_path):
    state, _ = await ran(tmp_path, [NO_NAME, LOOK, "库存一切正常。"])
    for arguments, told in [
        (("--expected", "{"), "不是 JSON"),
        (("--expected", '{"name": "look", "arguments": {}}'), '"parameters"'),
        (("--expected", '{"tool": "gone", "parameters": {}}'), "当时没有工具 gone；有：look"),
        (("--expected", "[]", "--no-call"), "只能写一个"),
        (("--no-call", "--label", "normal"), "只能说一样"),
        (("--no-call", "--kind", "review"), "--kind review"),
        (("--reason", "mood"), "unbacked_claim"),
        (("--label", "mood"), "missed_intent"),
        (("--kind", "mood"), "parser"),
    ]:
        assert told in await refused(state, *arguments), arguments


def test_a_run_in_which_the_model_said_nothing_has_no_case():
    with pytest.raises(CaseError) as caught:
        case_of({"ref": "A7F3-09", "model": "m", "steps": []})
    assert "没有任何回复" in caught.value.sentence


@given(st.text(alphabet=st.characters(codec=None), max_size=20))
def test_any_text_is_one_line_of_utf_8(text):
    line = one_json_line({"raw": text})
    line.encode("utf-8")
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {"raw": text}


def test_one_call_may_be_typed_without_a_list():
    assert expected_calls('{"tool": "x", "parameters": {}}') == [{"tool": "x", "parameters": {}}]
    assert expected_calls("[]") == []


def test_the_command_knows_the_labels_of_the_corpus():
    assert set(trace_command.LABELS) == set(KINDS)


# --- cases that came this way


@pytest.mark.parametrize("case", cases("reviews.jsonl"), ids=lambda case: case["id"])
def test_a_reply_in_its_conversation_is_judged_as_a_careful_person_would(case):
    assert reason_of(case) == case["reason"]
