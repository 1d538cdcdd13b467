"""Values with mistakes in them, and the values that are right as they stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathands.emulation.dialects.json_values import read_json
from chathands.emulation.lenient_json import read_value
from chathands.emulation.reading_source import Source, run
from chathands.emulation.reading_tokens import Call, Hints, State
from chathands.emulation.reading_tools import Tools
from tests.emulation.replies import TOOLS


class NameHints(Hints):
    def is_name_key(self, key: str) -> bool:
        return key == "tool"


def read(text: str) -> Any:
    reader = read_value(text, NameHints())
    assert reader.state is State.WHOLE, (text, reader.state, reader.detail)
    return reader.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": [2, 3,],}', {"a": 1, "b": [2, 3]}),
        ('{"a": 1,, "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "x" "b": 2}', {"a": "x", "b": 2}),
        ("{'a': 'it's', 'b': True, \"c\": None}", {"a": "it's", "b": True, "c": None}),
        (
            "{a: 1, b-c: two words, d: http://x.y/z}",
            {"a": 1, "b-c": "two words", "d": "http://x.y/z"},
        ),
        ('{"q": a, b and c, "n": 3}', {"q": "a, b and c", "n": 3}),
        ("{“a”：“说“好”了”，“b”：［1、2］}", {"a": "说“好”了", "b": [1, 2]}),
        ('{"a": "留着：，“这些”"，"b"：１}', {"a": "留着：，“这些”", "b": "１"}),
        ('{"a": "line\nbreak\tand tab"}', {"a": "line\nbreak\tand tab"}),
        ('{"a": "say "hi", then "bye"", "b": 1}', {"a": 'say "hi", then "bye"', "b": 1}),
        ('{"a": "{"x": [1, "y"]}", "b": 1}', {"a": '{"x": [1, "y"]}', "b": 1}),
        (r'{"re": "\d+\.\w"}', {"re": r"\d+\.\w"}),
        (r'{"path": "C:\Users\new\t.txt"}', {"path": r"C:\Users\new\t.txt"}),
        (r'{"dir": "D:\data\", "n": 1}', {"dir": "D:\\data\\", "n": 1}),
        (r'{"tex": "\alpha \beta \n x"}', {"tex": "\\alpha \\beta \n x"}),
        (r'{"a": "caf\xe9 \u4f60 \u{1F600} \ud83d\ude00"}', {"a": "café 你 😀 😀"}),
        ('{"a": r"C:\\new"}', {"a": "C:\\new"}),
        ('{"a": """x "y"\nz"""}', {"a": 'x "y"\nz'}),
        ('{"a": `x\ny`, "b": "1" + "2", "c": "3" "4"}', {"a": "x\ny", "b": "12", "c": "34"}),
        (
            '{"a": +1, "b": .5, "c": 5., "d": 1_000, "e": 0x10, "f": 1,000}',
            {"a": 1, "b": 0.5, "c": 5.0, "d": 1000, "e": 16, "f": 1000},
        ),
        ('{"code": 007}', {"code": "007"}),
        ('{ // one\n "a": 1, # two\n /* three */ "b": [1, ...] }', {"a": 1, "b": [1]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": {"b": 1]}', {"a": {"b": 1}}),
        ('{{"a": {{"b": 1}}}}', {"a": {"b": 1}}),
        (r"{\"a\": \"x \\\"y\\\"\", \"b\": 1}", {"a": 'x "y"', "b": 1}),
        ("{&quot;a&quot;: &quot;1 &lt; 2&quot;}", {"a": "1 < 2"}),
        ('{"a"="b", "c"=>"d"}', {"a": "b", "c": "d"}),
        ("('a', (1, 2), ('b'))", ["a", [1, 2], "b"]),
    ],
)
def test_a_mistake_costs_nothing_but_its_repair(text: str, value: Any) -> None:
    assert read(text) == value


def test_a_missing_quote_is_forgiven_only_where_no_value_is_at_stake() -> None:
    assert read('{"tool":"f,"parameters":{"a":1}}') == {"tool": "f", "parameters": {"a": 1}}
    assert read('{"tool:"f","parameters":{"a":1}}') == {"tool": "f", "parameters": {"a": 1}}
    for at_stake in ('{"to":"李雷,"text":"x"}', '{"to":"李雷}', '{"to":"李雷"text":"x"}'):
        text = f'{{"tool":"send_message","parameters":{at_stake}}}'
        assert read_value(text, Tools(TOOLS)).state is not State.WHOLE, at_stake


def test_calls_are_values_too() -> None:
    call = read("m.f(1, 'a', key=[g(x=2)], other: {\"k\": null})")
    assert call == Call("m.f", [1, "a"], {"key": [Call("g", [], {"x": 2})], "other": {"k": None}})


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('{"a": "x', State.CUT),
        ('{"a": "x\\', State.CUT),
        ('{"a": 12', State.CUT),
        ('{"a": tru', State.CUT),
        ('{"a', State.CUT),
        ('{"a":', State.CUT),
        ('{"a": 1,', State.CUT),
        ('{"a": [', State.CUT),
        ('{"a": "say "hi"', State.CUT),
        ('{"a": true', State.CUT),
        ('{"a": [1, "x"', State.CUT),
        ('{"a": [1, "x"] ', State.CLOSERS),
        ('{"a": {"b"]: 1}}', State.BROKEN),
        ('{"a": ...}', State.BROKEN),
        ("[" * 100, State.BROKEN),
        ("plain words", State.EMPTY),
        ("", State.EMPTY),
    ],
)
def test_what_would_have_to_be_made_up_is_not_read(text: str, state: State) -> None:
    assert read_value(text, Hints()).state is state


def test_text_that_looks_like_the_next_member_ends_the_reading_not_the_value() -> None:
    for swallowed in (
        '{"tool":"run_command","parameters":{"command":"ls","timeout"":30,"cwd":"/tmp"}}',
        '{"tool":"get_weather","parameters":{"city":"北京,"days":"3"}}',
        '{"tool":"send_message","parameters":{"to":"x","text":"a "b","nobody knows":"c"}}',
        '{"tool":"send_message","parameters":{"to":"x",""text":"a"}}',
    ):
        assert read_value(swallowed, Tools(TOOLS)).state is not State.WHOLE


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(), json_values) | st.lists(json_values),
    st.booleans(),
    st.sampled_from([None, 1, 2]),
)
def test_valid_json_is_read_as_json_reads_it(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    src = Source(text + " rest", final=True)
    src.mark()
    reading = run(read_json(src, Hints()))
    assert reading.value == value
    assert reading.state is State.WHOLE
    assert not reading.repairs
    assert src.buf[src.pos :] == " rest"


plain_text = st.text(
    st.characters(
        blacklist_categories=["Cs"],
        blacklist_characters="\"'“”‘’„＂＇「」『』«»`\\{}[]()<>,:，：、;；/#&=+*….",
    )
)
keys = st.from_regex(r"[a-z_\u4e00-\u9fff][a-z_0-9\u4e00-\u9fff]{0,20}", fullmatch=True)


@given(
    st.dictionaries(keys, plain_text, min_size=1, max_size=5),
    st.sampled_from(["'", '"', "“”", "＂"]),
)
def test_other_quotes_change_nothing_in_the_text_between_them(
    value: dict[str, str], quotes: str
) -> None:
    first, last = quotes[0], quotes[-1]
    members = (f"{first}{k}{last}: {first}{v}{last}" for k, v in value.items())
    assert read("{" + ", ".join(members) + ",}") == value


@given(st.text(st.sampled_from(list("{}[]()\"'“”,:，：\\ \nab1.-+`/#=<&")), max_size=60))
def test_no_text_is_too_strange(text: str) -> None:
    reader = read_value(text, Hints())
    assert reader.state in State
