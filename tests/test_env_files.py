"""Lines of .env that do nothing, or not what they seem, are said; what stands in them is not."""

import pytest

from chathands.env_files import faults_in
from chathands.errors import ConfigError
from chathands.settings import load_settings

SECRET = "sk-abcdef123456"

IGNORED = {
    f"CHATHANDS__MODEL__API_KEY＝{SECRET}": "CHATHANDS__MODEL__API_KEY",
    f"CHATHANDS__MODEL__API_KEY: {SECRET}": "CHATHANDS__MODEL__API_KEY",
    f"CHATHANDS__MODEL__API_KEY='{SECRET}": "CHATHANDS__MODEL__API_KEY",
    f"export CHATHANDS__MODEL__API_KEY {SECRET}": "CHATHANDS__MODEL__API_KEY",
    f"ONEBOT_ACCESS_TOKEN {SECRET}": "ONEBOT_ACCESS_TOKEN",
    "SUPERUSERS": "SUPERUSERS",
    f"CHATHANDS_MODEL__API_KEY={SECRET}": "CHATHANDS_MODEL__API_KEY",
    f"CHATHAND__MODEL__API_KEY={SECRET}": "CHATHAND__MODEL__API_KEY",
}


@pytest.mark.parametrize("line", IGNORED)
def test_a_setting_that_would_be_ignored_ends_the_start_with_its_line(tmp_path, line):
    (tmp_path / ".env").write_text(f"# 注释\n\nPORT=8080\n\n{line}\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path)
    assert IGNORED[line] in caught.value.sentence
    assert ".env 第 5 行" in caught.value.sentence
    assert SECRET not in caught.value.sentence + str(caught.value)


def test_other_lines_are_only_said(tmp_path):
    lines = [
        f"{SECRET}",
        "随便写的一行",
        "FOO=1",
        "FOO=2",
        f"BAR=“{SECRET}”",
        "=空",
        "EMPTY=",
        "export GOOD='a b' # 注释",
        "CHATHANDS_IMAGE=x",
    ]
    (tmp_path / ".env").write_text("\ufeff" + "\r\n".join(lines), "utf-8")
    load_settings(tmp_path)
    said = [fault.sentence for fault in faults_in(tmp_path)]
    told = [line for line in range(1, 10) if any(f"第 {line} 行" in one for one in said)]
    assert told == [1, 2, 5, 6, 9]
    assert any("FOO 写了两次（第 3、4 行）" in one for one in said)
    assert any("BAR 用了中文引号" in one for one in said)
    assert not any(SECRET in one for one in said)


def test_the_file_of_the_environment_is_looked_at_too(tmp_path):
    (tmp_path / ".env").write_text("ENVIRONMENT=dev\n", "utf-8")
    (tmp_path / ".env.dev").write_text("PORT 8080\n", "utf-8")
    with pytest.raises(ConfigError, match="PORT"):
        load_settings(tmp_path)


def test_a_good_file_has_nothing_to_say(tmp_path):
    robots = '{\n "群": {"webhook": "dry-run"}\n}'
    example = f"# a\nHOST=127.0.0.1\n\nCHATHANDS__DINGTALK__ROBOTS='{robots}'\n"
    (tmp_path / ".env").write_text(example, "utf-8")
    assert faults_in(tmp_path) == []
    assert load_settings(tmp_path).dingtalk.robots["群"].dry_run


@pytest.mark.parametrize("text", ["", "\n\n", "=", "'", '"""', "\x00", "A=" + "x" * 100_000, "é=1"])
def test_odd_files_do_not_break_it(tmp_path, text):
    (tmp_path / ".env").write_text(text, "utf-8")
    faults_in(tmp_path)
