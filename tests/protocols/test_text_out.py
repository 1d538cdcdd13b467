"""Stop sequences and bare JSON in text that leaves piece by piece."""

import pytest

from chathands.protocols.text_out import TextOut


def through(text, size, *stops, **options):
    out = TextOut(stops, **options)
    left = "".join(out.feed(text[at : at + size]) for at in range(0, len(text), size))
    return left + out.flush(), out.stopped


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("text", "stops", "left", "stopped"),
    [
        ("abc END def", ["END"], "abc ", "END"),
        ("abc EN", ["END"], "abc EN", None),
        ("EENEND x", ["END"], "EEN", "END"),
        ("a\n\nb", ["\n\n", "b"], "a", "\n\n"),
        ("观察：结果", ["观察："], "", "观察："),
        ("abc", [""], "abc", None),
        ("xab", ["ab", "abc"], "x", "ab"),
        ("nothing", [], "nothing", None),
    ],
)
def test_text_ends_before_a_stop_sequence(text, stops, left, stopped, size):
    assert through(text, size, *stops) == (left, stopped)


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('\n```\n{"a": 1}\n```\n', '{"a": 1}'),
        ("```JSON\n[1, 2]```", "[1, 2]"),
        ('{"a": "```"}', '{"a": "```"}'),
        ('```json\n{"a": "```json\\n1\\n```"}\n```', '{"a": "```json\\n1\\n```"}'),
        ('{"a": 1}\n', '{"a": 1}\n'),
        ("```python\nprint(1)\n```", "```python\nprint(1)\n```"),
        ('Here:\n```json\n{"a": 1}\n```', 'Here:\n```json\n{"a": 1}\n```'),
        ('```json\n{"a": 1}', '{"a": 1}'),
        ("``", "``"),
        ("", ""),
    ],
)
def test_only_the_fence_around_one_json_value_goes(text, left, size):
    assert through(text, size, bare_json=True) == (left, None)


def test_what_cannot_become_a_stop_sequence_leaves_at_once():
    out = TextOut(["END"])
    assert out.feed("abcdef") == "abcdef"
    assert out.feed("gE") == "g"
    assert out.feed("x") == "Ex"
