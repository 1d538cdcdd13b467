"""`doctor model`: three models of different abilities get three different modes, each with why."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
import typer
from typer.testing import CliRunner

from chathands.errors import StoreError
from chathands.evals import load_cases
from chathands.evals.metrics import Share
from chathands.evals.probe import Figures, choose, probe, probe_cases, thinking_style
from chathands.settings import Settings
from chathands.upstreams.openai_chat import OpenAIChat
from chathands.upstreams.ways import FILE, Measured, Way, measured_for, mode_line, store, ways_of
from tests.standins.abilities import Model
from tests.standins.model_server import ModelServer

CASES = load_cases(probe_cases())
FEW = [c for c in CASES if c.category in ("single", "chain", "no_tool") and c.language == "zh"]

PLAIN = {"response_format": 400, "tools": 400}
"""A server that knows neither field."""


@asynccontextmanager
async def model(ability, cases=CASES, **options):
    async with ModelServer(Model(ability, cases, **options), takes_tools=True) as server:
        upstream = OpenAIChat(server.url, name="m", temperature=0)
        try:
            yield upstream, server
        finally:
            await upstream.aclose()


def test_the_cases_cover_what_a_mode_must_do_in_both_languages():
    kinds = "single parallel chain no_tool ambiguous enum after_result long"
    assert {case.category for case in CASES} == set(kinds.split())
    assert {case.language for case in CASES} == {"zh", "en"}
    assert sum(case.category == "no_tool" for case in CASES) == 3
    assert 12 <= len(CASES) <= 16


@pytest.mark.parametrize(
    ("ability", "options", "mode", "why"),
    [
        ("blocks", {"refuses": PLAIN}, "emulated", "只接受普通聊天"),
        ("blocks", {}, "emulated", "没有哪种方式"),
        ("response_format", {}, "structured", "多完成"),
        ("tools", {}, "native", "多完成"),
    ],
)
async def test_each_ability_gets_its_own_mode_and_reason(ability, options, mode, why):
    async with model(ability, **options) as (upstream, _):
        probed = await probe(CASES, upstream)
    assert probed.way.mode == mode
    assert why in probed.reason
    assert "emulated" in probed.reason
    best = next(f for f in probed.figures if f.way.mode == mode)
    assert best.completed == Share(len(CASES), len(CASES))
    assert best.format.rate == 1
    if options:
        assert probed.figures[1].way.enforcement == "prompt"
        assert [bool(f.refused) for f in probed.figures] == [False, False, True]


@pytest.mark.parametrize(
    ("refuses", "enforcement"),
    [
        ({}, "json_schema"),
        ({"json_schema": 422}, "json_object"),
        ({"json_schema": 400, "json_object": 400}, "prompt"),
    ],
)
async def test_the_enforcement_is_found(refuses, enforcement):
    async with model("response_format", FEW, refuses={**refuses, "tools": 400}) as (upstream, _):
        probed = await probe(FEW, upstream)
    structured = probed.figures[1]
    assert structured.way.enforcement == enforcement
    assert not structured.refused
    assert probed.way.mode == ("emulated" if enforcement == "prompt" else "structured")


@pytest.mark.parametrize(
    ("thinks", "style"),
    [("<think>我先想想 {不是调用}</think>", "tags"), ("我先想想</think>\n", "open"), ("", "none")],
)
async def test_the_style_of_thinking_is_found_and_used(thinks, style):
    async with model("blocks", FEW, thinks=thinks) as (upstream, _):
        probed = await probe(FEW, upstream)
    assert probed.way.thinking == style
    assert probed.figures[0].completed == Share(len(FEW), len(FEW))


def test_a_style_that_not_every_reply_shows_is_not_open():
    assert thinking_style(["想</think>好", "好"]) == "none"
    assert thinking_style(["<think>想</think>好", "好"]) == "tags"
    assert thinking_style([]) == "none"


def test_one_case_ahead_is_chance_two_are_not():
    def figures(*completed):
        ways = (Way("emulated"), Way("structured"), Way("native"))
        return [Figures(w, Share(n, 14)) for w, n in zip(ways, completed, strict=True)]

    assert choose(figures(10, 11, 10))[0].mode == "emulated"
    assert "偶然" in choose(figures(10, 11, 10))[1]
    assert choose(figures(10, 12, 10))[0].mode == "structured"
    assert choose(figures(10, 12, 12))[0].mode == "structured"
    assert choose(figures(10, 12, 13))[0].mode == "native"
    assert choose(figures(12, 10, 10))[0].mode == "emulated"


async def test_a_fault_in_emulated_is_no_measurement():
    from chathands.errors import UpstreamError

    async with ModelServer(lambda _: {"status": 401}) as server:
        upstream = OpenAIChat(server.url, name="m")
        with pytest.raises(UpstreamError):
            await probe(FEW, upstream)
        await upstream.aclose()


# --- what is kept


def settings_of(tmp_path, **model):
    return Settings(
        _env_file=None, model={"base_url": "http://u:p@h:1/v1?k=s", "name": "m", **model},
        state_dir=tmp_path / "state",
    )  # fmt: skip


def test_what_was_measured_is_what_auto_takes(tmp_path):
    settings = settings_of(tmp_path)
    assert mode_line(settings) == "auto → emulated（没有测量过）"
    way = Way("structured", "json_object", "tags")
    store(settings.state_dir, Measured("h:1/v1", "m", "2026-11-30", way, "因为", {}))
    store(settings.state_dir, Measured("h:1/v1", "other", "2026-11-30", Way(), "因为", {}))
    assert ways_of(settings).way == way
    assert mode_line(settings) == "auto → structured（json_object）（按 2026-11-30 的测量）"
    assert ways_of(settings_of(tmp_path, name="new")).way == Way()
    assert ways_of(settings_of(tmp_path, mode="native")).way == Way("native", "json_object", "tags")
    store(settings.state_dir, Measured("h:1/v1", "m", "2026-12-01", Way("native"), "因为", {}))
    assert len(json.loads((settings.state_dir / FILE).read_text("utf-8"))) == 2
    assert "u:p" not in (settings.state_dir / FILE).read_text("utf-8")
    assert [file.name for file in settings.state_dir.iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["", "[", "{}", '[1, {"address": "h:1/v1", "name": "m"}]'])
def test_a_file_that_cannot_be_read_counts_as_none(tmp_path, text):
    settings = settings_of(tmp_path)
    settings.state_dir.mkdir()
    (settings.state_dir / FILE).write_text(text, "utf-8")
    assert measured_for(settings) is None
    assert ways_of(settings).way == Way()


def test_a_state_dir_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "state").write_text("a file", "utf-8")
    with pytest.raises(StoreError):
        store(tmp_path / "state", Measured("a", "m", "2026-11-30", Way(), "", {}))


async def test_the_command_prints_a_table_and_keeps_the_choice(tmp_path, monkeypatch):
    import asyncio

    from chathands.cli import doctor

    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    doctor.register(app)
    script = Model("tools", CASES, refuses={"response_format": 400})
    async with ModelServer(script, takes_tools=True) as server:
        args = ["doctor", "model", "--upstream", server.url, "--model", "m"]
        result = await asyncio.to_thread(CliRunner().invoke, app, args)
    assert result.exit_code == 0, result.output
    assert "| native | 14/14 | 9/9 | " in result.output
    assert "| structured（prompt） | " in result.output
    assert "选 native：native 比 emulated 多完成" in result.output
    kept = json.loads((tmp_path / "state" / FILE).read_text("utf-8"))
    assert [(row["name"], row["mode"]) for row in kept] == [("m", "native")]
    assert kept[0]["figures"]["native"]["completed"] == [14, 14]
