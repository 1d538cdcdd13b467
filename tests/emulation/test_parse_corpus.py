"""The corpora: replies as models write them, with the calls a careful reader would make of them."""

from __future__ import annotations

from collections import Counter

import pytest

from chathands.emulation.reading import parse_reply
from tests.emulation.replies import (
    TOOLS,
    accepts,
    block,
    calls_of,
    cases,
    in_pieces_of,
    read_in_pieces,
    reading_of,
)

RECORDED_TOOLS = [
    {
        "name": name,
        "parameters": {"type": "object", "properties": properties, "required": required},
    }
    for name, properties, required in (
        ("get_weather", {"city": {"type": "string"}}, ["city"]),
        (
            "read_excel_data",
            {
                "file_path": {"type": "string"},
                "sheet_name": {"type": "string"},
                "row_limit": {"type": "integer"},
            },
            ["file_path"],
        ),
        (
            "send_dingtalk_message",
            {"title": {"type": "string"}, "content": {"type": "string"}},
            ["title", "content"],
        ),
    )
]


@pytest.mark.parametrize("name", ["malformed.jsonl", "forms.jsonl"])
def test_every_case_of_a_corpus_reads_as_a_careful_person_would(name: str) -> None:
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    misses = []
    for case in cases(name):
        category = case["category"]
        got = calls_of(reading_of(case))
        total[category] += 1
        if accepts(case, got):
            right[category] += 1
        else:
            misses.append(f"{case['id']}\n{case['raw']}\n  want {case['expected']}\n  got  {got}")
    table = [f"{key:18} {right[key]:3} of {total[key]}" for key in sorted(total)]
    assert not misses, "\n".join([*misses, "", *table])


def test_no_negative_case_runs_anything() -> None:
    negatives = [c for name in ("malformed.jsonl", "forms.jsonl") for c in cases(name)]
    negatives = [c for c in negatives if c["expected"] == [] and not c.get("alt_expected")]
    assert len(negatives) > 60
    for case in negatives:
        assert reading_of(case).calls == (), case["id"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_corpus_reads_the_same_in_pieces(size: int) -> None:
    replies = [c["raw"] for name in ("malformed.jsonl", "forms.jsonl") for c in cases(name)]
    replies += [c["output"] for c in cases("recorded_small_model.jsonl")]
    for reply in replies:
        assert read_in_pieces(in_pieces_of(size, reply)) == read_in_pieces([reply]), reply


def test_recorded_replies_of_a_small_model_give_a_call_where_a_block_stands() -> None:
    broken = []
    for case in cases("recorded_small_model.jsonl"):
        reading = parse_reply(case["output"], RECORDED_TOOLS)
        wrote_block = '"tool":' in case["output"].replace(" ", "")
        if not wrote_block:
            assert reading.calls == (), case["output"]
            assert reading.text == case["output"].strip()
        elif not reading.calls:
            broken.append((case["output"], [b.reason for b in reading.broken]))
        assert "```json action" not in reading.text
    # the one that names a tool nobody declared
    assert [[str(r) for r in reasons] for _, reasons in broken] == [["unknown_tool"]], broken


def test_prefixes_of_a_block_never_run_with_part_of_a_value() -> None:
    whole = '{"tool":"write_file","parameters":{"path":"a.md","content":"x, \\"y\\": {z}"}}'
    reply = block(whole)
    wanted = {"path": "a.md", "content": 'x, "y": {z}'}
    for end in range(len(reply)):
        for call in parse_reply(reply[:end], TOOLS).calls:
            assert call.arguments == wanted, reply[:end]
            assert reply[:end].rstrip("`\n").endswith(('}"', "}")), reply[:end]
