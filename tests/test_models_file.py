"""`chathands.toml`: what it says, which entry is meant, and mistakes told by table and key."""

from pathlib import Path

import pytest

from chathands.errors import ConfigError
from chathands.settings import load_settings
from chathands.toolbox import Redactor

GOOD = """
default = "qwen"

[models.qwen]
base_url = "https://qwen.example/v1"
api_key_env = ["QWEN_KEY"]
api_key = "sk-in-line-1"
model = "qwen-max"
aliases = ["gpt-4o"]
fallback = ["small"]
seconds = 30
thinking = "tags"

[models.small]
base_url = "http://127.0.0.1:9/v1"
mode = "native"
context = 4096
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("QWEN_KEY", raising=False)
    (tmp_path / ".env").write_text("QWEN_KEY=sk-from-env-2\n", "utf-8")
    return tmp_path


def loaded(project: Path, text: str = GOOD, **overrides):
    (project / "chathands.toml").write_text(text, "utf-8")
    return load_settings(project, **overrides)


def test_without_the_file_nothing_changes(project: Path):
    settings = load_settings(project)
    assert (dict(settings.models), settings.entry, settings.model.base_url) == ({}, None, None)


def test_the_default_entry_is_the_model_of_the_bot(project: Path):
    settings = loaded(project)
    assert settings.entry == "qwen"
    assert settings.model.name == "qwen-max"
    assert settings.models["qwen"].keys == ("sk-in-line-1", "sk-from-env-2")
    without = loaded(project, GOOD.replace('default = "qwen"', ""))
    assert without.entry == "qwen"


@pytest.mark.parametrize(("name", "entry"), [("small", "small"), ("gpt-4o", "qwen")])
def test_a_name_in_the_environment_picks_an_entry(
    project: Path, name: str, entry: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CHATHANDS__MODEL__NAME", name)
    assert loaded(project).entry == entry


def test_the_environment_wins_over_the_entry(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CHATHANDS__MODEL__CONTEXT", "16000")
    monkeypatch.setenv("CHATHANDS__MODEL__API_KEY", "sk-of-the-environment")
    settings = loaded(project)
    assert settings.model.context == settings.models["qwen"].context == 16000
    assert settings.models["qwen"].keys == ("sk-of-the-environment",)
    monkeypatch.setenv("CHATHANDS__MODEL__BASE_URL", "http://127.0.0.1:7/v1")
    own = loaded(project)
    assert (own.entry, own.model.base_url) == (None, "http://127.0.0.1:7/v1")
    assert set(own.models) == {"qwen", "small"}


def test_an_upstream_on_the_command_line_needs_no_file(project: Path):
    settings = loaded(project, model={"base_url": "http://127.0.0.1:7/v1", "name": "m"})
    assert (settings.entry, dict(settings.models)) == (None, {})
    broken = loaded(project, "x = [", model={"base_url": "http://127.0.0.1:7/v1"})
    assert broken.model.base_url == "http://127.0.0.1:7/v1"


def test_every_key_is_hidden_wherever_text_goes_out(project: Path):
    redactor = Redactor.of(loaded(project))
    assert "sk-" not in redactor.text("sk-in-line-1 and sk-from-env-2")
    assert "sk-" not in repr(loaded(project).models)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("QWEN_KEY", "NO_SUCH", ["第 6 行", "[models.qwen]", "api_key_env", "NO_SUCH"]),
        ("seconds = 30", 'seconds = "30"', ["第 11 行", "seconds", "数字"]),
        ("seconds = 30", "secnds = 30", ["[models.qwen]", "secnds", "不认识", "seconds"]),
        ('base_url = "https://q', 'base_urll = "https://q', ["第 5 行", "base_urll", "不认识"]),
        ('"native"', '"nativ"', ["[models.small]", "mode", "'native'"]),
        ('["small"]', '["smal"]', ["第 10 行", "fallback", "smal", "qwen、small"]),
        ('["small"]', '["qwen"]', ["fallback", "它自己"]),
        ('["gpt-4o"]', '["small"]', ["aliases", "small", "已经是"]),
        ('["gpt-4o"]', '["*"]', ["aliases", "不能作名字"]),
        ('"https://qwen', '"qwen', ["base_url", "http://"]),
        ('"sk-in-line-1"', '""', ["api_key", "空的"]),
        ('"sk-in-line-1"', '"sk-in-line-1', ["不是合法的 TOML", "第 7 行"]),
        ('default = "qwen"', 'default = "qwn"', ["default", "qwn"]),
        ("[models.small]", "[modles.small]", ["modles", "不认识", "models"]),
        ("context = 4096", '[models."a\\u0007"]\nbase_url = "http://a"', ["名字"]),
        ("context = 4096", "context = 12", ["context", "1024"]),
        (GOOD, "", ["models", "没有写"]),
        (GOOD, "[models]", ["models", "一个模型也没有"]),
    ],
)
def test_a_mistake_is_told_by_table_and_key(project: Path, old: str, new: str, words: list[str]):
    with pytest.raises(ConfigError) as caught:
        loaded(project, GOOD.replace(old, new))
    sentence = caught.value.sentence
    assert sentence.startswith("chathands.toml 有误")
    assert [word for word in words if word not in sentence] == []
    assert "sk-" not in sentence + str(caught.value)


def test_a_name_that_is_no_entry_is_told_unless_there_is_one_for_all(project: Path):
    with pytest.raises(ConfigError, match="no model nobody") as caught:
        loaded(project, model={"name": "nobody"})
    assert "qwen、small" in caught.value.sentence
    everything = f'{GOOD}\n[models."*"]\nbase_url = "http://127.0.0.1:8/v1"\n'
    settings = loaded(project, everything, model={"name": "nobody"})
    assert (settings.entry, settings.model.name) == ("*", "nobody")
