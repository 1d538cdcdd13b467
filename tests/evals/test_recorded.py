"""Real replies of the local model, read, reviewed and judged again without it.

`chathands eval --only ID,… --compare emulated,naive --record tests/data/eval_recorded.jsonl` makes
the file anew. Where today's code goes another way no reply is there; most cases must have one.
"""

from pathlib import Path

from chathands.errors import UpstreamError
from chathands.evals import CaseResult, load_cases, shipped_cases, summarise
from chathands.evals.metrics import paired
from chathands.evals.recording import Recorded
from chathands.evals.suite import replay_suite
from chathands.evals.variants import variant

FILE = Path(__file__).parents[1] / "data" / "eval_recorded.jsonl"


async def replayed(name: str) -> tuple[list[CaseResult], int]:
    """The results, and how many cases today's code takes another way."""
    recorded = Recorded(FILE)
    results: list[CaseResult] = []
    changed = 0
    for case in load_cases(shipped_cases()):
        try:
            results += await replay_suite([case], recorded, [variant(name)])
        except UpstreamError:
            changed += 1
    return results, changed


async def test_recorded_runs_are_read_and_judged_without_a_model():
    ours, changed = await replayed("emulated")
    naive, none = await replayed("naive")
    assert none == 0
    assert len(ours) >= 4 * changed
    report = summarise([*ours, *naive])
    emulated = report.variants[0].all
    assert emulated["right"].rate >= 0.5
    assert paired(ours, naive, "completion").rate > 0.15
