"""`chathands eval` from the outside: recorded replies, a stand-in model, reports, mistakes."""

import asyncio
import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from chathands.cli import evaluate
from chathands.errors import ConfigError
from tests.standins.model_server import ModelServer, Reply

RECORDED = Path(__file__).parents[1] / "data" / "eval_recorded.jsonl"


async def cli(*arguments: str) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)  # with one command alone there would be no command word
    evaluate.register(app)
    return await asyncio.to_thread(CliRunner().invoke, app, ["eval", *arguments])


async def test_recorded_replies_become_tables_and_two_reports(tmp_path):
    out = tmp_path / "out"
    result = await cli(
        "--replay", str(RECORDED), "--compare", "emulated,naive", "--out", str(out)
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "| emulated |" in result.stdout
    assert "Paired differences" in result.stdout
    assert "raw reply" in (out / "report.md").read_text("utf-8")
    assert "<svg" in (out / "report.html").read_text("utf-8")


def raise_to_all(baseline: Path) -> None:
    figures = json.loads(baseline.read_text("utf-8"))
    figures["emulated"]["right"] = [100, 100]
    baseline.write_text(json.dumps(figures), "utf-8")


async def test_floors_and_a_baseline_decide_the_exit_code(tmp_path):
    kept = str(tmp_path / "baseline.json")
    assert (await cli("--replay", str(RECORDED), "--save-baseline", kept)).exit_code == 0
    assert (await cli("--replay", str(RECORDED), "--baseline", kept)).exit_code == 0
    raise_to_all(Path(kept))
    fallen = await cli("--replay", str(RECORDED), "--baseline", kept)
    assert fallen.exit_code == 1
    assert "低于要求：emulated right" in fallen.stderr
    assert (await cli("--replay", str(RECORDED), "--fail-under", "right=95%")).exit_code == 1
    assert (await cli("--replay", str(RECORDED), "--fail-under", "right=10%")).exit_code == 0


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
