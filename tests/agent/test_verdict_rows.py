"""Every row of `verdicts.toml` is reached by a run, and every reason has its line."""

from __future__ import annotations

import inspect
import tomllib
from importlib.resources import files

import pytest

from chathands.agent.verdict import LAYERS, LOOKUP, verdict_of
from chathands.emulation.outcome import Reason
from tests.agent import test_trace_verdicts

NOT_REACHED = {
    "ungrounded": "runs leave this review off; and asked once, the same call would stand",
    "far_fetched": "asked once, the same call would stand",
    "incomplete": "when no more comes, the calls there are run",
}
"""Rows that no run ends in today."""

ROWS = tomllib.loads(files("chathands.agent").joinpath("verdicts.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table, rows in ROWS.items() for name in rows]
)
def test_every_row_is_provoked_by_a_run(table, name):
    row = ROWS[table][name]
    expected = f'"{row["layer"]}: {row["what"]}' if row["layer"] else f": {row['what']}"
    bodies = [
        inspect.getsource(test)
        for test in vars(test_trace_verdicts).values()
        if inspect.iscoroutinefunction(getattr(test, "__wrapped__", test))
        and test.__name__.startswith("test_")
    ]
    assert any(expected in body for body in bodies) is (name not in NOT_REACHED)


@pytest.mark.parametrize("reason", [one for one in Reason if one != LOOKUP])
def test_every_reason_blames_a_layer_in_one_line(reason):
    row = {"at": 0.0, "pieces": [["text", "某话", [2]]], "finish": "stop"}
    row["outcome"] = {"kind": "give_up", "reason": str(reason), "text": "", "detail": "一\n二"}
    step = {"kind": "turn", "at": 0.0, "round": 1, "requests": [row], "log": []}
    said = verdict_of({"ref": "A7F3-09", "outcome": "failed", "steps": [step]})
    layer, _, rest = said.partition(": ")
    assert layer in LAYERS
    assert str(reason) in rest
    assert "\n" not in said
    assert len(said) < 160


@pytest.mark.parametrize("outcome", ["failed", "fallback", "answered", "cancelled", "suspended"])
def test_a_trace_that_holds_next_to_nothing_has_a_verdict(outcome):
    assert verdict_of({"outcome": outcome, "steps": []})
