"""Reading the files of public benchmarks, in files of our own in their format."""

import json

import pytest

from chathands.errors import ConfigError
from chathands.evals.public import acebench_cases, bfcl_cases

FUNCTION = {
    "name": "area.get",
    "description": "Area.",
    "parameters": {
        "type": "dict",
        "properties": {"base": {"type": "integer"}},
        "required": ["base"],
    },
}


def write(folder, name, rows, answers=None):
    (folder / name).write_text("\n".join(json.dumps(row) for row in rows) + "\n", "utf-8")
    if answers is not None:
        (folder / "possible_answer").mkdir(exist_ok=True)
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in answers)
        (folder / "possible_answer" / name).write_text(text, "utf-8")


def test_a_bfcl_case(tmp_path):
    question = [
        [{"role": "system", "content": "Today is Monday."}, {"role": "user", "content": "?"}]
    ]
    calls = [{"area.get": {"base": [1]}}, {"area.get": {"base": [2]}}]
    write(
        tmp_path,
        "BFCL_v4_parallel.json",
        [{"id": "parallel_0", "question": question, "function": [FUNCTION, FUNCTION]}],
        [{"id": "parallel_0", "ground_truth": calls}],
    )
    (case,) = bfcl_cases(tmp_path)
    assert case.category == "parallel"
    assert case.head == "Today is Monday."
    assert [call.arguments for call in case.expect] == [{"base": [1]}, {"base": [2]}]
    assert len(case.tools) == 1
    assert case.first_only
    assert case.rule == "bfcl"


def test_without_answers_no_call_is_wanted_or_any_is(tmp_path):
    row = {"id": "x_0", "question": [{"role": "user", "content": "hi"}], "function": FUNCTION}
    write(tmp_path, "BFCL_v4_irrelevance.json", [row])
    write(tmp_path, "BFCL_v4_live_relevance.json", [row | {"id": "x_1"}])
    irrelevance, relevance = bfcl_cases(tmp_path)
    assert not irrelevance.wants_call
    assert relevance.any_call


def test_acebench_turns_heads_and_numbered_calls(tmp_path):
    function = {"name": "寄快递", "arguments": {"type": "object", "properties": {"to": {}}}}
    write(
        tmp_path,
        "data_normal_preference.json",
        [
            {
                "id": "p_0",
                "question": "user: 寄两个快递\nsystem: 寄到哪？\nuser: 上海和北京\n还有别的吗\n",
                "function": [function],
                "time": "今天是星期一。",
                "profile": {"常用": "顺丰"},
            }
        ],
        [{"id": "p_0", "ground_truth": {"寄快递_1": {"to": "上海"}, "寄快递_2": {"to": "北京"}}}],
    )
    (case,) = acebench_cases(tmp_path / "data_normal_preference.json")
    assert [(m.role, m.content) for m in case.conversation] == [
        ("user", "寄两个快递"), ("assistant", "寄到哪？")
    ]  # fmt: skip
    assert case.request == "上海和北京\n还有别的吗"
    assert case.head.startswith("今天是星期一。")
    assert "顺丰" in case.head
    assert [call.tool for call in case.expect] == ["寄快递", "寄快递"]
    assert case.language == "zh"


def test_special_categories_want_no_call_and_lists_are_alternatives(tmp_path):
    function = {"name": "f_1", "parameters": {"type": "object", "properties": {"a": {}}}}
    row = {"id": "s_0", "question": "user: do it", "function": [function]}
    write(
        tmp_path,
        "data_special_incomplete.json",
        [row],
        [{"id": "s_0", "ground_truth": {"f_1": ["a"]}}],
    )
    write(
        tmp_path,
        "data_normal_atom_bool.json",
        [row | {"id": "n_0"}],
        [{"id": "n_0", "ground_truth": [{"f_1": {"a": 1}}, {"f_1": {"a": 2}}]}],
    )
    normal, special = acebench_cases(tmp_path)
    assert not special.wants_call
    assert [len(calls) for calls in normal.accepted] == [1, 1]
    assert normal.expect[0].tool == "f_1"


ASKED = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    "row",
    [
        '{"question": []}',
        "not json",
        json.dumps({"id": "a", "question": [ASKED, ASKED], "function": []}),
        json.dumps({"id": "a", "question": [ASKED], "function": [{"no": "name"}]}),
        json.dumps({"id": "a", "function": [FUNCTION]}),
    ],
)
def test_a_row_that_is_none_is_named(tmp_path, row):
    path = tmp_path / "BFCL_v4_multi_turn_base.json"
    path.write_text(row + "\n", "utf-8")
    with pytest.raises(ConfigError, match=r"multi_turn_base\.json:1"):
        bfcl_cases(path)


def test_a_folder_without_questions_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no cases"):
        acebench_cases(tmp_path)


def test_a_file_that_is_not_there_or_not_utf8_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        bfcl_cases(tmp_path / "nowhere.json")
    (tmp_path / "gbk.json").write_bytes("题目".encode("gb18030"))
    with pytest.raises(ConfigError, match="UTF-8"):
        bfcl_cases(tmp_path / "gbk.json")
