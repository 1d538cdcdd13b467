"""Arguments against their schema: what is put right, what is refused, and what it says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.schema import Checked, compile_schema, plain_name
from chathands.schema_words import in_json_words


def check(
    properties: dict[str, Any], arguments: dict[str, Any], *required: str, **more: Any
) -> Checked:
    schema = {"type": "object", "properties": properties, "required": list(required), **more}
    return compile_schema(schema).check(arguments)


def one(part: dict[str, Any], value: Any, **more: Any) -> tuple[Any, list[str], list[str]]:
    checked = check({"x": part}, {"x": value}, **more)
    return (
        checked.arguments.get("x"),
        [problem.message for problem in checked.problems],
        list(checked.repairs),
    )


STRINGS = {"type": "array", "items": {"type": "string"}}
POINT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("part", "given", "becomes"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, " -5.0 ", -5),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, 1, True),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, True, "true"),
        ({"type": "string"}, ["a"], "a"),
        (STRINGS, "a", ["a"]),
        (STRINGS, '["a", "b"]', ["a", "b"]),
        (STRINGS, [1, "b"], ["1", "b"]),
        (POINT, '{"n": 1}', {"n": 1}),
        (POINT, {"n": "1"}, {"n": 1}),
        ({"type": "array", "items": POINT}, {"n": 1}, [{"n": 1}]),
        ({"type": ["integer", "null"]}, "null", None),
        ({"enum": ["c", "f"]}, " C ", "c"),
        ({"enum": ["next week", "today"]}, "next_week", "next week"),
        ({"enum": [1, 2]}, 1, 1),
        ({"const": "on"}, "On", "on"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"oneOf": [{"type": "integer"}, STRINGS]}, "a", ["a"]),
    ],
)
def test_what_has_one_meaning_only_is_put_right(
    part: dict[str, Any], given: Any, becomes: Any
) -> None:
    value, problems, repairs = one(part, given)
    assert value == becomes
    assert type(value) is type(becomes)
    assert problems == []
    assert bool(repairs) == (given != becomes or type(given) is not type(becomes))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"type": "string"}, "5"),
        ({"type": "string"}, ""),
        ({"type": "integer"}, 5),
        ({"type": "number"}, 5),
        ({"type": ["string", "null"]}, None),
        ({"type": "string", "nullable": True}, None),
        ({"type": "string", "enum": ["a"], "nullable": True}, None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5"),
        ({}, {"any": ["thing"]}),
        ({"type": "object"}, {"free": "form"}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}),
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!"),
    ],
)
def test_what_fits_is_left_alone(part: dict[str, Any], value: Any) -> None:
    assert one(part, value) == (value, [], [])


@pytest.mark.parametrize(
    ("word", "value", "becomes"),
    [
        ("dict", {"a": 1}, {"a": 1}),
        ("HashMap", '{"a": 1}', {"a": 1}),
        ("float", 4, 4),
        ("Double", "1.5", 1.5),
        ("number-like", 2, 2),
        ("tuple", [1, 2], [1, 2]),
        ("ArrayList", [1], [1]),
        ("list[str]", ["a"], ["a"]),
        ("String", 5, "5"),
        ("char", "a", "a"),
        ("Integer", "5", 5),
        ("long", 5.0, 5),
        ("bool", "true", True),
        ("str | None", None, None),
        ("int or string", "a", "a"),
    ],
)
def test_type_words_of_other_languages_mean_the_json_types(
    word: str, value: Any, becomes: Any
) -> None:
    assert one({"type": word}, value)[:2] == (becomes, [])
    assert one({"type": word.upper()}, value)[:2] == (becomes, [])


@pytest.mark.parametrize("word", ["any", "Optional[int]", "blob", "", None, 7, {"a": 1}, ["x"]])
@pytest.mark.parametrize("value", ["a", 5, 1.5, True, [1], {"a": 1}])
def test_a_type_nobody_knows_takes_any_value(word: Any, value: Any) -> None:
    assert one({"type": word}, value) == (value, [], [])


def test_known_type_words_still_refuse_what_does_not_fit() -> None:
    assert one({"type": "float"}, "warm")[1] == ["type"]
    assert one({"type": "dict"}, [1, 2])[1] == ["type"]


def test_what_tool_authors_get_slightly_wrong_is_read_as_meant() -> None:
    levels = {"type": "array", "enum": ["low", "high"]}
    assert one(levels, ["low"]) == (["low"], [], [])
    assert one(levels, ["middle"])[1] == ["enum"]
    assert one({"type": "string", "enum": []}, "a") == ("a", [], [])
    assert one({"type": "number", "exclusiveMinimum": True, "minimum": 0}, 0.5)[1] == []
    assert check({"x": "integer"}, {"x": "5"}).arguments == {"x": 5}  # type: ignore[dict-item]


def test_an_object_with_none_of_the_declared_keys_is_kept_whole() -> None:
    members = {"type": "object", "properties": {"member_id": {"type": "string"}}}
    assert one(members, {"M1": ["a"], "M2": []}) == ({"M1": ["a"], "M2": []}, [], [])


def test_a_word_for_nothing_is_nothing_where_no_text_is_wanted() -> None:
    assert one({"type": "integer"}, "null")[0] is None
    assert one({"type": "string"}, "None")[0] == "None"
    assert one({"enum": ["none", "10m"]}, "None")[0] == "none"


@pytest.mark.parametrize("value", [[float("inf")], {"a": [float("nan")]}])
def test_no_value_that_json_cannot_say_gets_through_in_a_container(value: Any) -> None:
    for part in ({}, {"type": "number"}, {"type": "array"}, {"type": "object"}):
        assert one(part, value)[1], part
    assert one({"type": "number", "multipleOf": 1}, [float("nan")])[1]


def test_an_integral_float_is_an_integer() -> None:
    value, problems, repairs = one({"type": "integer"}, 3.0)
    assert (value, type(value), problems, repairs) == (3, int, [], [])


@pytest.mark.parametrize(
    ("part", "value", "code"),
    [
        ({"type": "integer"}, "five", "type"),
        ({"type": "integer"}, 1.5, "type"),
        ({"type": "integer"}, {"n": 1}, "type"),
        ({"type": "string"}, {"a": 1}, "type"),
        ({"type": "string"}, ["a", "b"], "type"),
        ({"type": "boolean"}, "yes", "type"),
        ({"type": "boolean"}, 2, "type"),
        (STRINGS, [{"a": 1}], "type"),
        (POINT, {}, "missing"),
        (POINT, '{"n": ', "type"),
        ({"enum": ["c", "f"]}, "kelvin", "enum"),
        ({"enum": [1]}, True, "enum"),
        ({"type": "integer", "minimum": 1}, 0, "minimum"),
        ({"type": "integer", "maximum": 1}, 2, "maximum"),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "above"),
        ({"type": "number", "exclusiveMaximum": 1}, 1.0, "below"),
        ({"type": "integer", "multipleOf": 5}, 7, "multiple"),
        ({"type": "string", "minLength": 2}, "a", "short"),
        ({"type": "string", "maxLength": 2}, "abc", "long"),
        ({"type": "array", "minItems": 1}, [], "few"),
        ({"type": "array", "maxItems": 1}, [1, 2], "many"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "repeated"),
        ({"type": "number"}, float("nan"), "infinite"),
        ({"type": "number"}, float("inf"), "infinite"),
    ],
)
def test_what_does_not_fit_is_a_problem_that_names_the_argument(
    part: dict[str, Any], value: Any, code: str
) -> None:
    checked = check({"x": part}, {"x": value}, "x")
    assert [problem.message for problem in checked.problems] == [code]
    (problem,) = checked.problems
    assert problem.path.startswith("x")
    for language in ("zh", "en"):
        sentence = problem.sentence(language)  # type: ignore[arg-type]
        assert "`x" in sentence
        assert "{" not in sentence


def test_sentences_say_what_would_fit() -> None:
    checked = check(
        {"n": {"type": "integer"}, "u": {"enum": ["c", "f"]}}, {"n": [], "u": "k"}, "city"
    )
    assert [p.sentence() for p in checked.problems] == [
        "参数 `n` 应为整数",
        '参数 `u` 只能取："c", "f"',
        "缺少必填参数 `city`",
    ]
    assert checked.problems[0].sentence("en") == "the argument `n` must be integer"


def test_near_names_are_renamed_and_others_dropped_and_both_are_said() -> None:
    properties = {"file_path": {"type": "string"}, "tags": STRINGS, "单号": {"type": "string"}}
    arguments = {"filePath": "a", "tag": ["b"], "快递单号": "SF1", "encoding": "utf8"}
    checked = check(properties, arguments, "file_path", "单号")
    assert checked.arguments == {"file_path": "a", "tags": ["b"], "单号": "SF1"}
    assert set(checked.repairs) == {
        "renamed:filePath>file_path",
        "renamed:tag>tags",
        "renamed:快递单号>单号",
        "dropped:encoding",
    }
    assert not checked.problems


@pytest.mark.parametrize(
    ("properties", "arguments"),
    [
        ({"path": {}}, {"source_path": "a", "dest_path": "b"}),
        ({"text1": {}, "text2": {}}, {"text3": "a"}),
        ({"start_at": {}}, {"startat": 1, "start-at": 2}),
        ({"to": {}}, {"too": 1}),
        ({"command": {}}, {'command":"ls","timeout': 30}),
    ],
)
def test_a_name_that_could_be_several_or_is_another_is_not_renamed(
    properties: dict[str, Any], arguments: dict[str, Any]
) -> None:
    checked = check(properties, arguments, *properties)
    assert len([r for r in checked.repairs if r.startswith("renamed:")]) <= 1
    assert checked.problems or len(checked.arguments) == 1


def test_unknown_arguments_follow_additional_properties() -> None:
    assert check({"a": {}}, {"a": 1, "b": 2}, additionalProperties=True).arguments == {
        "a": 1,
        "b": 2,
    }
    refused = check({"a": {}}, {"a": 1, "b": 2}, additionalProperties=False)
    assert [(p.path, p.message) for p in refused.problems] == [("b", "unknown")]
    assert check({}, {"b": 2}).arguments == {}
    assert compile_schema({"type": "object"}).check({"b": 2}).arguments == {"b": 2}


def test_nothing_said_for_an_optional_argument_is_no_argument() -> None:
    properties = {"n": {"type": "integer"}, "u": {"enum": ["c"]}, "s": {"type": "string"}}
    checked = check(properties, {"n": "", "u": None, "s": None})
    assert checked.arguments == {}
    assert not checked.problems
    assert check(properties, {"s": None}, "s").problems


def test_defaults_are_not_filled_in() -> None:
    assert check({"n": {"type": "integer", "default": 3}}, {}).arguments == {}


def test_references_merge_and_recurse() -> None:
    schema = compile_schema(
        {
            "type": "object",
            "properties": {
                "tree": {"$ref": "#/$defs/Tree"},
                "all": {"allOf": [POINT, {"$ref": "#/$defs/M"}]},
            },
            "$defs": {
                "Tree": {
                    "type": "object",
                    "properties": {
                        "v": {"type": "integer"},
                        "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                    },
                    "required": ["v"],
                },
                "M": {"properties": {"m": {"type": "string"}}, "required": ["m"]},
            },
        }
    )
    tree = {"v": "1", "kids": [{"v": 2, "kids": []}, {"v": "3"}]}
    checked = schema.check({"tree": tree, "all": {"n": 1, "m": "x"}})
    assert checked.arguments["tree"]["kids"][1] == {"v": 3}
    assert checked.arguments["all"] == {"n": 1, "m": "x"}
    assert not checked.problems
    assert [p.path for p in schema.check({"tree": {"v": 1, "kids": [{}]}, "all": {}}).problems] == [
        "tree.kids[0].v",
        "all.n",
        "all.m",
    ]


def test_circles_and_exponential_branches_come_to_an_end() -> None:
    circle = {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    assert check({"x": {"$ref": "#/$defs/A"}}, {"x": 1}, **circle).arguments == {"x": 1}
    both = {"type": "array", "items": {"$ref": "#/$defs/L"}}
    doubling = {"$defs": {"L": {"anyOf": [both, {**both, "minItems": 1}]}}}
    value: Any = 5
    for _ in range(40):
        value = [value]
    checked = check({"x": {"$ref": "#/$defs/L"}}, {"x": value}, **doubling)
    assert checked.problems


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": None},
        {"type": "object", "properties": {"a": None, "b": True, "c": False}, "required": True},
        {"properties": {"a": {"type": [], "enum": "x", "anyOf": {}, "items": [1]}}},
        {"properties": {"a": {"$ref": "#/nowhere"}, "b": {"$ref": "https://x.y/z"}}},
        {"$ref": "#"},
    ],
)
def test_odd_schemas_are_read_as_far_as_they_go(schema: dict[str, Any]) -> None:
    compile_schema(schema).check({"a": 1, "b": [2]})


def test_a_schema_is_compiled_once() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert compile_schema(schema) is compile_schema(schema)
    assert compile_schema(schema).required == ("a",)
    assert dict(compile_schema(schema).properties) == schema["properties"]
    assert compile_schema(schema).takes("a", "string")
    assert not compile_schema(schema).takes("a", "integer")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
parts = st.sampled_from(
    [{"type": t} for t in ("string", "integer", "number", "boolean", "array", "object", "null")]
    + [STRINGS, POINT, {"enum": ["a", 1, None]}, {"anyOf": [{"type": "integer"}, STRINGS]}, {}]
)


@given(parts, values)
def test_checking_what_was_checked_changes_nothing(part: dict[str, Any], value: Any) -> None:
    first = check({"x": part}, {"x": value})
    if not first.problems:
        again = check({"x": part}, first.arguments)
        assert (again.arguments, again.problems, again.repairs) == (first.arguments, (), ())


def test_plain_names_forget_dress_only() -> None:
    assert plain_name("Get_User-Name") == plain_name("ｇｅｔ user.name") == "getusername"
    assert plain_name("查询_快递") == "查询快递"


def test_a_schema_nested_without_end_and_a_flood_of_names_come_to_an_end() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = {"type": "object", "properties": {"a": schema}}
    assert compile_schema(schema).check({"a": {"a": {}}}).problems == ()
    flood = {f"cit{i}": 1 for i in range(5000)}
    checked = check({"city": {"type": "string"}}, {"city": "x", **flood}, "city")
    assert checked.arguments == {"city": "x"}


WRAPPED = {
    "type": "object",
    "properties": {
        "schedule": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"vehicle": {"type": "string"}, "tasks": {"type": "array"}},
                "required": ["vehicle"],
            },
        },
        "note": {"type": "string"},
        "place": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    "required": ["schedule"],
}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"vehicle": "W", "tasks": ["oil"]}, {"schedule": [{"vehicle": "W", "tasks": ["oil"]}]}),
        ({"vehicle": "W", "note": "n"}, {"schedule": [{"vehicle": "W"}], "note": "n"}),
        ({"input": {"schedule": [{"vehicle": "W"}]}}, {"schedule": [{"vehicle": "W"}]}),
        ({"schedule": [{"vehicle": "W"}], "city": "X"},
         {"schedule": [{"vehicle": "W"}], "place": {"city": "X"}}),
    ],
)  # fmt: skip
def test_names_at_the_wrong_level_are_put_where_they_are_declared(given, wanted) -> None:
    checked = compile_schema(WRAPPED).check(given)
    assert checked.arguments == wanted
    assert not checked.problems
    assert any(repair.startswith("nested:") for repair in checked.repairs)


@pytest.mark.parametrize(
    "given",
    [
        {"vehicle": "W", "colour": "red"},
        {"vehicle": "W", "city": "X"},
        {"schedule": [{"vehicle": "W"}], "vehicle": "V"},
        {"input": {"schedule": [{"vehicle": "W"}], "colour": "red"}},
    ],
)
def test_names_that_belong_to_no_one_place_are_not_moved(given) -> None:
    checked = compile_schema(WRAPPED).check(given)
    assert not any(repair.startswith("nested:") for repair in checked.repairs)


def test_a_schema_in_json_words() -> None:
    written = {
        "type": "dict",
        "properties": {
            "rate": {"type": "float"},
            "tags": {"type": "tuple", "items": {"type": "String"}},
            "what": {"type": "any", "description": "d"},
            "city": "string",
            "deep": {"anyOf": [{"type": "HashMap", "additionalProperties": {"type": "int"}}]},
            "maybe": {"type": ["str", "null"]},
        },
        "required": ["rate"],
    }
    assert in_json_words(written) == {
        "type": "object",
        "properties": {
            "rate": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "what": {"description": "d"},
            "city": {"type": "string"},
            "deep": {"anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}]},
            "maybe": {"type": ["string", "null"]},
        },
        "required": ["rate"],
    }


def test_a_schema_in_json_words_already_stays_as_it_is() -> None:
    assert in_json_words(WRAPPED) == WRAPPED
