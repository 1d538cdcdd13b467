"""Cases driven through decisions and stand-in results; recording and replay."""

import json

import pytest

from chathands.conversation import Status
from chathands.emulation.outcome import NativeCall, Text, Thinking
from chathands.errors import ConfigError, UpstreamError
from chathands.evals import run_case, run_suite
from chathands.evals.recording import Recorded
from chathands.evals.suite import replay_suite
from chathands.evals.variants import VARIANTS, variant
from chathands.upstreams.scripted import Scripted
from tests.evals.samples import LOOKUP, block, case

WANTED = {
    "results": {"lookup": ["甲：42"]},
    "expect": [{"tool": "lookup", "arguments": {"key": "甲"}}],
    "answer_has": ["42"],
}


async def test_a_right_run_is_right_in_every_layer():
    result = await run_case(case(**WANTED), Scripted([block(key="甲"), "甲是 42。"]))
    assert result.first_format
    assert result.later_formats == [True]
    assert result.verdict.completed
    assert (result.rounds, result.retries, len(result.exchanges)) == (2, 0, 2)


async def test_a_refusal_costs_format_and_a_retry_not_the_case():
    replies = ["抱歉，我无法访问任何数据。", block(key="甲"), "甲是 42。"]
    result = await run_case(case(**WANTED), Scripted(replies))
    assert result.first_format is False
    assert result.retries == 1
    assert result.verdict.completed


TWO = {
    "request": "查订单 DD1001、DD1002",
    "expect": [{"tool": "lookup", "arguments": {"key": f"DD100{n}"}} for n in (1, 2)],
    "first_only": True,
}


async def test_a_readable_call_that_is_asked_about_is_of_the_right_form():
    model = Scripted([block(key="DD1001"), block(key="DD1002")])
    result = await run_case(case(**TWO), model)
    assert [exchange.outcome for exchange in result.exchanges] == ["retry:incomplete", "calls"]
    assert result.first_format
    assert result.verdict.completed


@pytest.mark.parametrize("reply", [block(limit=1), block("nothing"), '```json action\n{"tool": '])
async def test_a_call_that_fits_no_tool_or_cannot_be_read_is_not(reply):
    result = await run_case(case(**WANTED), Scripted([reply, block(key="甲"), "42"]))
    assert result.exchanges[0].outcome.startswith("retry:")
    assert result.first_format is False


async def test_after_a_result_too_a_call_to_be_confirmed_is_of_the_right_form():
    note = LOOKUP | {"name": "note", "side_effect": "local"}
    given = case(**WANTED | {"tools": [LOOKUP, note], "may_run": ["note"]})
    loose = block("note", key="甲").replace('"', "'")
    model = Scripted([block(key="甲"), loose, block("note", key="甲"), "甲是 42。"])
    result = await run_case(given, model)
    assert [exchange.outcome for exchange in result.exchanges][1] == "retry:unconfirmed"
    assert result.later_formats == [True, True, True]


async def test_native_read_tolerantly_asks_nothing_again():
    leaked = '{"name": "lookup", "arguments": {"key": "DD1001"}}'
    for reply, calls in ((leaked, 1), ("抱歉，我没有工具可用。", 0), (block("nothing"), 0)):
        model = Scripted([reply])
        result = await run_case(case(**TWO), model, way=variant("native-tolerant"))
        assert len(model.requests) == 1
        assert [tool["function"]["name"] for tool in model.requests[0].tools or ()] == [
            *("lookup", "send")
        ]
        assert len(result.calls) == calls


async def test_a_call_where_none_is_wanted_is_wrong():
    result = await run_case(case(), Scripted([block(key="甲"), "好。"]))
    assert result.first_format is None
    assert not result.verdict.tools


async def test_a_model_that_never_stops_is_ended():
    model = Scripted(lambda request: block(key=str(len(request.messages))))
    result = await run_case(case(results={"lookup": ["x"]}), model)
    assert len(result.calls) <= 5
    assert not result.verdict.completed


async def test_stand_ins_by_argument_by_turn_and_by_status():
    given = case(
        results={
            "lookup": [
                {"when": {"key": "乙"}, "content": "乙：7", "status": "unknown"},
                "!没有",
                "甲：42",
            ]
        }
    )
    replies = [block(key="甲"), block(key="乙"), block(key="甲", limit=2), "完"]
    result = await run_case(given, Scripted(replies))
    results = [m.result for m in result.transcript if m.result]
    assert [(r.status, r.content) for r in results] == [
        (Status.FAILED, "没有"),
        (Status.UNKNOWN, "乙：7"),
        (Status.OK, "甲：42"),
    ]


async def test_only_the_first_decision_is_made_where_only_that_counts():
    model = Scripted([block(key="甲")])
    result = await run_case(case(**WANTED | {"first_only": True}), model)
    assert result.verdict.completed
    assert len(model.requests) == 1


STYLED = {
    "naive": '好的 {"tool": "lookup", "arguments": {"key": "甲"}} 就这样',
    "json-only": '{"name": "lookup", "arguments": {"key": "甲"}}',
    "trigger-xml": "<Function_Q7D2_Start/>\n<function_calls><function_call><tool>lookup</tool>"
    '<args_json><![CDATA[{"key": "甲"}]]></args_json></function_call></function_calls>',
}


@pytest.mark.parametrize("name", STYLED)
async def test_a_style_reads_its_own_form_and_shows_results_in_plain_roles(name):
    model = Scripted([STYLED[name], "甲是 42。"])
    result = await run_case(case(**WANTED), model, way=variant(name))
    assert result.verdict.completed
    roles = [message.role for message in model.requests[1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert "甲：42" in model.requests[1].messages[-1].content
    assert STYLED[name].split(">")[0] in model.requests[1].messages[2].content or name == "naive"


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("naive", "{'tool': 'lookup'}"),
        ("json-only", 'Sure: {"name": "lookup", "arguments": {"key": "甲"}}'),
        ("trigger-xml", "<function_calls><function_call><tool>lookup</tool></function_call>"),
    ],
)
async def test_a_style_reads_nothing_but_its_form(name, reply):
    result = await run_case(case(**WANTED), Scripted([reply]), way=variant(name))
    assert not result.calls


async def test_the_same_prompt_read_by_the_parser():
    reply = 'Sure: {"name": "lookup", "arguments": {"key": "甲"}}'
    model = Scripted([reply, "42"])
    result = await run_case(case(**WANTED), model, way=variant("json-only-tolerant"))
    assert result.verdict.completed


def test_an_unknown_variant_is_named():
    with pytest.raises(ConfigError, match="nonsense"):
        variant("nonsense")
    assert "emulated" in VARIANTS


async def test_a_recording_is_played_back_to_the_same_figures(tmp_path):
    path = tmp_path / "recorded.jsonl"
    cases = [case(**WANTED), case(id="d", request="你好")]
    model = Scripted([block(key="甲"), "甲是 42。", "你好！"])
    lived = await run_suite(cases, model, [variant("emulated")], record=path)
    recorded = Recorded(path)
    played = await replay_suite(cases, recorded, [variant("emulated")])
    assert [r.verdict for r in played] == [r.verdict for r in lived]
    assert [r.transcript for r in played] == [r.transcript for r in lived]


async def test_a_stopped_recording_goes_on_where_it_was(tmp_path):
    path = tmp_path / "recorded.jsonl"
    first, second = case(**WANTED), case(id="d", **WANTED)
    await run_suite([first], Scripted([block(key="甲"), "42"]), [variant("emulated")], record=path)
    model = Scripted([block(key="甲"), "42"])
    results = await run_suite([first, second], model, [variant("emulated")], record=path)
    assert len(model.requests) == 2
    assert [r.case.id for r in results] == ["c", "d"]
    assert len(path.read_text("utf-8").splitlines()) == 2


async def test_variants_are_interleaved_on_the_same_cases():
    model = Scripted(lambda _: "42")
    ways = [variant("emulated"), variant("naive")]
    results = await run_suite([case(), case(id="d")], model, ways, repeats=2)
    assert [(r.case.id, r.variant, r.repeat) for r in results[:5]] == [
        ("c", "emulated", 0),
        ("c", "naive", 0),
        ("d", "emulated", 0),
        ("d", "naive", 0),
        ("c", "emulated", 1),
    ]


async def test_thinking_and_native_pieces_are_recorded_too(tmp_path):
    path = tmp_path / "recorded.jsonl"
    pieces = [
        Thinking("hm"),
        Thinking("m"),
        Text("a"),
        Text("b"),
        NativeCall(0, "id", "lookup", "{}"),
    ]
    model = Scripted([pieces])
    await run_suite([case(first_only=True, any_call=True)], model, [variant("naive")], record=path)
    row = json.loads(path.read_text("utf-8"))
    recorded = Recorded(path)
    recorded.use(("c", "naive", 0))
    again = [piece async for piece in recorded.stream(None, timeout=1)]  # type: ignore[arg-type]
    assert again == [Thinking("hmm"), Text("ab"), NativeCall(0, "id", "lookup", "{}")]
    assert row["replies"][0]["finish"]


async def test_a_recording_that_no_longer_fits_says_so(tmp_path):
    path = tmp_path / "recorded.jsonl"
    row = {"case": "c", "variant": "emulated", "repeat": 0, "replies": []}
    path.write_text(json.dumps(row) + "\n", "utf-8")
    with pytest.raises(UpstreamError, match="no recorded reply"):
        await replay_suite([case()], Recorded(path), [variant("emulated")])
    path.write_text("{}\n", "utf-8")
    with pytest.raises(ConfigError, match="not a recorded case"):
        Recorded(path)
