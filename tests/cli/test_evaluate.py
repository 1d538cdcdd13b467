"""`chathands eval` from the outside: recorded replies, a stand-in model, reports, mistakes."""

import asyncio
import inspect
import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from chathands.cli import evaluate
from chathands.errors import ConfigError
from chathands.evals.metrics import Share
from chathands.evals.variants import VARIANTS
from tests.standins.model_server import ModelServer, Reply

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "eval_recorded.jsonl"


async def cli(*arguments: str) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)  # with one command alone there would be no command word
    evaluate.register(app)
    return await asyncio.to_thread(CliRunner().invoke, app, ["eval", *arguments])


def recorded_variants() -> list[str]:
    rows = [json.loads(line) for line in RECORDED.read_text("utf-8").split("\n") if line.strip()]
    return list(dict.fromkeys(row["variant"] for row in rows))


async def test_recorded_replies_become_tables_and_two_reports(tmp_path):
    out = tmp_path / "out"
    names = recorded_variants()
    assert len(names) > 1, "a recording to compare has more than one variant"
    result = await cli("--replay", str(RECORDED), "--compare", ",".join(names), "--out", str(out))
    assert result.exit_code == 0, repr(result.exception)
    for name in names:
        assert f"| {name} |" in result.stdout
    assert "Paired differences" in result.stdout
    assert "raw reply" in (out / "report.md").read_text("utf-8")
    assert "<svg" in (out / "report.html").read_text("utf-8")


def raise_above(baseline: Path, rate: float) -> None:
    figures = json.loads(baseline.read_text("utf-8"))
    figures["emulated"]["right"] = [round(rate * 1000), 1000]
    baseline.write_text(json.dumps(figures), "utf-8")


def share_in(baseline: Path, layer: str) -> Share:
    return Share(*json.loads(baseline.read_text("utf-8"))["emulated"][layer])


async def test_floors_and_a_baseline_decide_the_exit_code(tmp_path):
    kept = str(tmp_path / "baseline.json")
    saved = await cli("--replay", str(RECORDED), "--save-baseline", kept)
    assert saved.exit_code == 0, repr(saved.exception)
    low, high = share_in(Path(kept), "right").interval
    assert low > 0.02, "nothing recorded is right: the floors below would say nothing"
    assert (await cli("--replay", str(RECORDED), "--baseline", kept)).exit_code == 0
    raise_above(Path(kept), min(1.0, high + 0.01))
    fallen = await cli("--replay", str(RECORDED), "--baseline", kept)
    assert fallen.exit_code == 1
    assert "低于要求：emulated right" in fallen.stderr
    for floor, code in ((low + 0.01, 1), (low - 0.01, 0)):
        result = await cli("--replay", str(RECORDED), "--fail-under", f"right={floor:.3f}")
        assert result.exit_code == code, (floor, result.output)


async def test_help_and_docs_name_every_variant():
    app = typer.Typer()
    evaluate.register(app)
    (command,) = app.registered_commands
    assert command.callback is not None
    parameters = inspect.signature(command.callback, eval_str=True).parameters
    helped = parameters["mode"].annotation.__metadata__[0].help.rstrip("。")
    assert helped.removeprefix("方式：").split("、") == list(VARIANTS)
    docs = (ROOT / "docs" / "cases.md").read_text("utf-8")
    assert [name for name in VARIANTS if f"`{name}`" not in docs] == []


async def test_a_model_is_asked_and_its_replies_recorded(tmp_path):
    row = {
        "id": "irrelevance_0",
        "question": [[{"role": "user", "content": "Who wrote Emma?"}]],
        "function": [{"name": "bmi", "parameters": {"type": "dict", "properties": {}}}],
    }
    questions = tmp_path / "BFCL_v4_irrelevance.json"
    questions.write_text(json.dumps(row) + "\n", "utf-8")
    record = tmp_path / "recorded.jsonl"
    async with ModelServer([Reply("Jane Austen wrote it.")]) as model:
        result = await cli(
            *("--bench", f"bfcl={questions}", "--only", "irrelevance", "--limit", "1"),
            *("--upstream", model.url, "--model", "m", "--record", str(record)),
        )
    assert result.exit_code == 0, result.output
    assert "bfcl/irrelevance_0 emulated" in result.stdout
    assert json.loads(record.read_text("utf-8"))["case"] == "bfcl/irrelevance_0"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--mode", "nonsense"], "没有 nonsense 这种方式"),
        (["--bench", "bfcl"], "看不懂"),
        (["--bench", "bfcl=nowhere.json"], "读不了"),
        (["nowhere.jsonl"], "读不了 nowhere.jsonl"),
        (["--only", "nothing"], "没有这个类别"),
        (["--fail-under", "right"], "看不懂"),
        (["--replay", "nowhere.jsonl"], "读不了"),
        (["--replay", "a", "--record", "b"], "只能用一个"),
    ],
)
async def test_a_mistake_is_one_sentence(arguments, says):
    result = await cli(*arguments)
    assert isinstance(result.exception, ConfigError)
    assert says in result.exception.sentence
