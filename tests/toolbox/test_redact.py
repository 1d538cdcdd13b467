"""What leaves for logs, audit and people carries no secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chathands.toolbox.redact import Redactor
from tests.toolbox.kit import settings_in

WEBHOOK = "https://oapi.dingtalk.com/robot/send?access_token=0a1b2c3d4e5f"


@pytest.fixture
def redactor(tmp_path: Path) -> Redactor:
    return Redactor.of(
        settings_in(
            tmp_path,
            model={"api_key": "key-of-the-model"},
            dingtalk={"robots": {"销售群": {"webhook": WEBHOOK, "secret": "SECabcdef"}}},
            api={"tokens": {"token-of-a-client": {"name": "ci"}}},
        )
    )


@pytest.mark.parametrize(
    "secret", ["key-of-the-model", WEBHOOK, "SECabcdef", "token-of-a-client", "0a1b2c3d4e5f"]
)
def test_every_secret_of_the_settings_is_known(redactor: Redactor, secret: str):
    for hidden in (redactor.secrets, redactor.text, redactor.sentence):
        assert secret not in hidden(f"前{secret}后")


def test_an_address_with_sign_appended_is_hidden_whole_enough(redactor: Redactor):
    said = redactor.text(f"POST {WEBHOOK}&timestamp=1&sign=abc%3D failed")
    assert "0a1b2c3d4e5f" not in said
    assert "abc%3D" not in said
    assert said.endswith(" failed")


def test_results_lose_known_secrets_only(redactor: Redactor):
    ordinary = "password=见附件 token=3 个，路径 /data/a/b.txt"
    assert redactor.secrets(ordinary) == ordinary


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("打不开 /home/bot/data/x.xlsx", "打不开 …"),
        ("打不开 C:\\bot\\x.xlsx，请检查", "打不开 …，请检查"),
        ("比例 3/4，日期 2025/09/01，和/或", "比例 3/4，日期 2025/09/01，和/或"),
        ("见 https://example.com/a/b", "见 https://example.com/a/b"),
        ("Authorization: Bearer abcdefghijklm", "Authorization: Bearer ***"),
    ],
)
def test_sentences_lose_paths_and_keep_the_rest(redactor: Redactor, said: str, shown: str):
    assert redactor.sentence(said) == shown


def test_the_directories_of_the_settings_are_hidden(redactor: Redactor, tmp_path: Path):
    assert str(tmp_path) not in redactor.sentence(f"{tmp_path}/data 读不了")


def test_short_values_do_not_make_every_text_unreadable():
    assert Redactor(["abc"]).text("abc") == "abc"


@pytest.mark.parametrize("value", ["x", 5, None, True, [1, {"token": "t" * 9}], {"密码": "一二三"}])
def test_arguments_of_any_shape_stay_json(value: Any):
    shown = str(Redactor().arguments({"value": value}))
    assert "t" * 9 not in shown
    assert "一二三" not in shown
