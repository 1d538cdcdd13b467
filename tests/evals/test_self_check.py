"""A broken contract, parser or judge is caught by the evaluation itself.

The model is a stand-in that follows the contract to the letter: it knows what each case wants, and
writes it in the form that the request shows, if the request lists the tools and their parameters.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from chathands.emulation import history, scanner
from chathands.emulation.outcome import ModelRequest
from chathands.evals import baseline, load_cases, run_suite, shipped_cases, summarise
from chathands.evals.judge import Verdict, judge
from chathands.evals.known_answers import known_runs, misjudged
from chathands.evals.variants import variant
from chathands.upstreams.scripted import Scripted

CASES = [case for case in load_cases(shipped_cases()) if case.tools_given]
BY_REQUEST = {case.request: case for case in CASES}
FORM = re.compile(r"^(```.*)\n\{\"(\w+)\": .*\"(\w+)\": \{", re.MULTILINE)


def obey(request: ModelRequest) -> str:
    system = request.messages[0].content
    talk = [m.content for m in request.messages if m.role == "user"]
    case = next(case for text, case in BY_REQUEST.items() if any(text in said for said in talk))
    made = sum(m.role == "assistant" for m in request.messages)
    runs = [run for run in known_runs([case]) if run.right]
    calls, answer = runs[0].calls, runs[0].answer
    form = FORM.search(system)
    if made < len(calls) and form is not None:
        call = calls[made]
        told = f"### {call.name}\n" in system and all(f"- {a}" in system for a in call.arguments)
        if told:
            body = {form[2]: call.name, form[3]: dict(call.arguments)}
            return f"{form[1]}\n{json.dumps(body, ensure_ascii=False)}\n```"
    return answer


async def figures():
    return summarise(await run_suite(CASES, Scripted(obey), [variant("emulated")]))


@pytest.fixture(scope="module")
async def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("baseline") / "baseline.json"
    report = await figures()
    baseline.save(report, path)
    assert report.variants[0].all["right"].rate > 0.9
    return path


async def test_nothing_has_fallen_when_nothing_is_broken(kept):
    assert baseline.fallen(await figures(), kept) == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: text.split("### ")[0],
        lambda text: text.replace("```json action", ""),
        lambda text: re.sub(r"^- .*$", "", text, flags=re.MULTILINE),
    ],
    ids=["no tools", "no form", "no parameters"],
)
async def test_a_broken_contract_is_caught(kept, monkeypatch, broken):
    whole = history.render_contract
    monkeypatch.setattr(history, "render_contract", lambda *a, **k: broken(whole(*a, **k)))
    fallen = baseline.fallen(await figures(), kept)
    assert any("right" in line for line in fallen)


async def test_a_broken_parser_is_caught(kept, monkeypatch):
    whole = scanner.Scanner.end

    def deaf(self, finish_reason=None):
        _, parsed = whole(self, finish_reason)
        return [], replace(parsed, calls=())

    monkeypatch.setattr(scanner.Scanner, "end", deaf)
    fallen = baseline.fallen(await figures(), kept)
    assert any("format" in line for line in fallen)
    assert any("right" in line for line in fallen)


def test_the_judge_is_right_about_every_known_run():
    assert misjudged(load_cases(shipped_cases())) == []


@pytest.mark.parametrize(
    "broken",
    [
        lambda *a, **k: Verdict(True, True, True),
        lambda *a, **k: Verdict(False, False, False),
        lambda case, calls, answer: judge(case, calls[:1], answer),
        lambda case, calls, answer: judge(case, calls, answer or "ok"),
    ],
    ids=["yes to all", "no to all", "one call only", "no answer needed"],
)
def test_a_broken_judge_is_caught(broken):
    assert misjudged(load_cases(shipped_cases()), broken)
