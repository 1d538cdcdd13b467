"""docs/gateway.md and chathands.toml.example: every block is loaded, every name is real."""

import re
from pathlib import Path

import pytest

from chathands.models_file import Entry, models_of
from chathands.server.metrics import Metrics
from chathands.server.openapi import document
from chathands.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gateway.md").read_text("utf-8")
EXAMPLE = (ROOT / "chathands.toml.example").read_text("utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
KEYS = {"QWEN_KEY_1": "k-1", "QWEN_KEY_2": "k-2", "HOSTED_KEY": "k-3"}


@pytest.mark.parametrize("block", [*BLOCKS, EXAMPLE])
def test_every_block_of_the_page_loads(block):
    assert models_of(block, KEYS).models


def test_the_example_with_all_its_comments_taken_away_shows_every_key():
    everything = re.sub(r"^# (?=\[|api_key_env|base_url)", "", EXAMPLE, flags=re.M)
    read = models_of(everything, KEYS)
    assert set(read.models) == {"qwen", "local", "*"}
    assert read.models["qwen"].keys == ("k-1", "k-2")
    written = set(re.findall(r"^#? ?([a-z_]+) = ", EXAMPLE, re.M))
    assert written - {"default"} == set(Entry.model_fields) - {"api_key"}


def test_the_page_names_the_settings_paths_and_counters_that_there_are():
    for key in re.findall(r"CHATHANDS__([A-Z]+)__([A-Z_]+)", PAGE):
        section = getattr(Settings(_env_file=None), key[0].lower())  # type: ignore[call-arg]
        assert key[1].lower() in type(section).model_fields
    paths = {path.replace("{model}", "{名字}") for path in document([], "0")["paths"]}
    shown = set(re.findall(r"(?<=[`、 ])(?:GET |POST )?`?(/(?:v1|health|metrics)[^`]*)`", PAGE))
    assert shown
    assert shown <= paths
    text = Metrics().text(None).decode()
    named = set(re.findall(r"chathands_gateway_[a-z_]+", PAGE))
    kinds = re.findall(r"^# TYPE (\S+) (\S+)", text, re.M)
    there = {name for name, _ in kinds if not name.endswith("_created")}
    assert named == there
