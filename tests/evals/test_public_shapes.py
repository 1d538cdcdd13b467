"""The shapes that rows of public benchmarks come in, and what is done with odd ones."""

import json
from dataclasses import replace

import pytest

from chathands.emulation import parse_reply
from chathands.errors import ConfigError
from chathands.evals.judge import judge
from chathands.evals.public import acebench_cases, bfcl_cases
from tests.evals.test_public import ASKED, FUNCTION, write

TRUTH = [{"area.get": {"base": [1]}}]
F = [{"name": "f", "parameters": {}}]


def bfcl(tmp_path, question, truth=None, name="BFCL_v4_irrelevance.json"):
    row = {"id": "a", "question": question, "function": [FUNCTION]}
    write(tmp_path, name, [row], truth and [{"id": "a", "ground_truth": truth}])
    (case,) = bfcl_cases(tmp_path / name)
    return case


def ace(tmp_path, question, truth, functions=F, name="normal_similar_api", **more):
    row = {"id": f"{name}_0", "question": question, "function": functions} | more
    write(tmp_path, f"data_{name}.json", [row], [{"id": f"{name}_0", "ground_truth": truth}])
    (case,) = acebench_cases(tmp_path / f"data_{name}.json")
    return case


def said(case):
    return [(message.role, message.content) for message in case.conversation]


@pytest.mark.parametrize(
    ("name", "id_", "category"),
    [
        ("BFCL_v4_simple_python.json", "simple_python_0", "simple_python"),
        ("BFCL_v3_simple.json", "simple_0", "simple"),
        ("BFCL_v4_live_parallel_multiple.json", "x", "live_parallel_multiple"),
        ("gorilla_openfunctions_v1_test_simple.json", "x", "simple"),
        ("some.json", "live_multiple_12-3-0", "live_multiple"),
    ],
)
def test_bfcl_categories_by_file_or_id(tmp_path, name, id_, category):
    row = {"id": id_, "question": [ASKED], "function": FUNCTION}
    write(tmp_path, name, [row], [{"id": id_, "ground_truth": TRUTH}])
    (case,) = bfcl_cases(tmp_path / name)
    assert case.category == category
    assert case.wants_call


@pytest.mark.parametrize("question", ["x", ASKED, [ASKED]])
@pytest.mark.parametrize("truth", [TRUTH[0], TRUTH])
def test_bfcl_shapes_of_questions_and_answers(tmp_path, question, truth):
    case = bfcl(tmp_path, question, truth, "BFCL_v4_simple_python.json")
    assert case.request == "x"
    assert [(call.tool, call.arguments) for call in case.expect] == [("area.get", {"base": [1]})]
    assert case.rule == "bfcl"


@pytest.mark.parametrize("name", ["simple_java", "simple_javascript", "java", "javascript"])
def test_java_and_javascript_have_a_rule_of_their_own(tmp_path, name):
    assert bfcl(tmp_path, "x", TRUTH, f"BFCL_v4_{name}.json").rule == "bfcl_code"


def test_java_and_javascript_tools_take_variables_and_expressions(tmp_path):
    properties = {
        "ids": {"type": "ArrayList", "items": {"type": "integer"}, "description": "Ids."},
        "on": {"type": "Boolean"},
        "who": {"type": "String"},
        "store": {"type": "dict", "properties": {"state": {"type": "HashMap"}}},
    }
    function = {"name": "f", "parameters": {"type": "dict", "properties": properties}}
    answer = {"ids": ["myIds"], "on": [True], "who": ["x"], "store": [{"state": ["myState"]}]}
    row = {"id": "a", "question": "x", "function": [function], "ground_truth": [{"f": answer}]}
    write(tmp_path, "BFCL_v4_simple_java.json", [row])
    (case,) = bfcl_cases(tmp_path)
    written = {"ids": "myIds", "on": True, "who": "x", "store": {"state": "myState"}}
    block = json.dumps({"tool": "f", "parameters": written})
    read = parse_reply(f"```json action\n{block}\n```", case.specs)
    assert judge(case, read.calls, "").completed
    assert not judge(case, [replace(read.calls[0], arguments={})], "").completed


def test_a_conversation_before_the_request(tmp_path):
    question = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "现在呢"},
    ]
    case = bfcl(tmp_path, [question])
    assert said(case) == [("user", "hi"), ("assistant", "hello")]
    assert (case.request, case.head, case.language) == ("现在呢", "Be brief.", "zh")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What does 你好 mean in plain English?", "en"),
        ("查一下 Apple 的股价", "zh"),
        ("Was kostet das?", "en"),
    ],
)
def test_the_language_is_the_one_spoken_not_quoted(tmp_path, text, language):
    assert bfcl(tmp_path, text).language == language


def test_a_call_category_without_answers_is_an_error_not_a_case_without_calls(tmp_path):
    with pytest.raises(ConfigError, match=r"multiple\.json:1: no answer"):
        bfcl(tmp_path, "x", name="BFCL_v4_multiple.json")
    row = {"id": "a", "question": "user: x", "function": F}
    write(tmp_path, "data_normal_atom_enum.json", [row])
    with pytest.raises(ConfigError, match=r"enum\.json:1: no answer"):
        acebench_cases(tmp_path)


def test_an_empty_answer_of_a_call_category_is_no_case_without_calls(tmp_path):
    rows = [{"id": name, "question": "user: x", "function": [FUNCTION]} for name in "abc"]
    notes: list[str] = []
    full = {"id": "c", "ground_truth": {"area.get": {"base": [1]}}}
    for name, read in (
        ("BFCL_v4_multiple.json", bfcl_cases),
        ("data_normal_atom_enum.json", acebench_cases),
    ):
        empty = [{"id": "a", "ground_truth": []}, {"id": "b", "ground_truth": {}}]
        write(tmp_path, name, rows, [*empty, full])
        (case,) = read(tmp_path / name, notes.append)
        assert case.wants_call
    assert ["2 题" in note and "答案是空的" in note for note in notes] == [True, True]


def test_what_cannot_be_judged_is_passed_over_and_counted(tmp_path):
    row = {"id": "a", "question": [ASKED], "function": [FUNCTION]}
    rows = [row, row | {"id": "b", "function": []}, row, row | {"id": "c"}]
    truth = [
        {"id": "a", "ground_truth": TRUTH},
        {"id": "b", "ground_truth": TRUTH},
        {"id": "c", "ground_truth": [{"area.of": {"base": [1]}}]},
    ]
    write(tmp_path, "BFCL_v4_multiple.json", rows, truth)
    write(tmp_path, "BFCL_v4_multi_turn_base.json", [{"id": "m", "question": [ASKED, ASKED]}])
    notes: list[str] = []
    assert [case.id for case in bfcl_cases(tmp_path, notes.append)] == ["bfcl/a"]
    assert len(notes) == 2
    assert "BFCL_v4_multi_turn_base.json" in notes[0]
    assert "3 题" in notes[1]
    assert "第 2 行" in notes[1]


@pytest.mark.parametrize(
    ("reader", "name"),
    [(bfcl_cases, "BFCL_v4_memory.json"), (acebench_cases, "data_agent_multi_turn.json")],
)
def test_a_file_of_an_unsupported_category_says_so(tmp_path, reader, name):
    write(tmp_path, name, [{"id": "a_0", "question": "user: x"}])
    with pytest.raises(ConfigError) as caught:
        reader(tmp_path / name)
    assert "不支持" in caught.value.sentence
    with pytest.raises(ConfigError, match="no cases"):
        reader(tmp_path)


@pytest.mark.parametrize(
    ("offered", "answered", "called"),
    [
        (["f"], ["f_1", "f_2"], ["f", "f"]),
        (["f"], ["f_1"], ["f"]),
        (["f", "g"], ["g", "f_1", "f_2"], ["g", "f", "f"]),
        # the number is the tool's own
        (["f_1", "f_2"], ["f_2"], ["f_2"]),
        (["f_1", "f_2"], ["f_1", "f_2"], ["f_1", "f_2"]),
        (["f_1"], ["f_1"], ["f_1"]),
        # the number is the call's, although one tool has such a name
        (["f", "f_1"], ["f_1", "f_2"], ["f", "f"]),
    ],
)
def test_acebench_numbers_belong_to_calls_or_tools(tmp_path, offered, answered, called):
    functions = [{"name": name, "parameters": FUNCTION["parameters"]} for name in offered]
    case = ace(tmp_path, "user: x", {name: {"base": 1} for name in answered}, functions)
    assert [call.tool for call in case.expect] == called


@pytest.mark.parametrize(
    "truth", [{"f": {"a": 1}}, [{"f": {"a": 1}}], '{"f": {"a": 1}}', [{"f": {"a": 1}}, {"f": {}}]]
)
def test_acebench_shapes_of_answers(tmp_path, truth):
    case = ace(tmp_path, "user: x", truth, {"name": "f", "arguments": {}})
    assert case.expect[0].arguments == {"a": 1}


def test_acebench_calls_of_earlier_turns_are_calls(tmp_path):
    question = (
        "user: make it\nsystem: How big?\nuser: 3\n"
        'system: [make(size=3, box={"name": "a, b"})]\nsystem: Done, number 12.\n'
        "user: and now?\n"
    )
    box = {"type": "object", "properties": {"name": {"type": "string"}}}
    make = {"type": "object", "properties": {"size": {"type": "number"}, "box": box}}
    functions = [{"name": "make", "parameters": make}, *F]
    name = "normal_multi_turn_user_adjust"
    case = ace(tmp_path, question, {"f": {}}, functions, name, time="Monday.")
    assert said(case) == [
        ("user", "make it"),
        ("assistant", "How big?"),
        ("user", "3"),
        ("assistant", ""),
        ("tool", "Done, number 12."),
        ("assistant", "Done, number 12."),
    ]
    assert case.conversation[3].calls == [("make", {"size": 3, "box": {"name": "a, b"}})]
    assert (case.request, case.head, case.language) == ("and now?", "Monday.", "en")
    assert len(case.messages()) == 7


@pytest.mark.parametrize("text", ["[see above]", "[f(", "[unknown(a=1)]", "f(a=1) is it"])
def test_acebench_other_text_in_brackets_stays_text(tmp_path, text):
    case = ace(tmp_path, f"user: x\nsystem: {text}\nsystem: ok\nuser: y", {"f": {}})
    assert said(case) == [("user", "x"), ("assistant", f"{text}\nok")]


def test_acebench_ids_differ_between_languages(tmp_path):
    english = ace(tmp_path, "user: do it", {"f": {}})
    chinese = ace(tmp_path, "user: 做一下", {"f": {}}, profile="{'name': '张'}")
    assert english.id != chinese.id
    assert chinese.head == "用户资料：{'name': '张'}"


@pytest.mark.parametrize("name", ["incomplete", "error_param", "irrelevant"])
@pytest.mark.parametrize("truth", [{"f": ["a"]}, {"other": ["a"]}, "It exceeds the function."])
def test_acebench_special_wants_no_call_whatever_its_answer(tmp_path, name, truth):
    case = ace(tmp_path, "user: x", truth, name=f"special_{name}")
    assert not case.wants_call
    assert case.category == f"special_{name}"


def test_acebench_text_without_speakers_is_the_users(tmp_path):
    assert ace(tmp_path, "do it\nnow", {"f": {}}).request == "do it\nnow"
    case = ace(tmp_path, "hello\nsystem: hi\nuser: go", {"f": {}})
    assert said(case) == [("user", "hello"), ("assistant", "hi")]
