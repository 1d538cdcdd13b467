"""What a person sees when a setting is wrong, and what is read from where."""

import pytest

from chathands.errors import ConfigError
from chathands.settings import load_settings


@pytest.fixture
def env(tmp_path):
    def write(text: str, name: str = ".env", encoding: str = "utf-8"):
        (tmp_path / name).write_text(text, encoding)
        return tmp_path

    return write


def test_numeric_looking_keys_stay_text(env):
    settings = load_settings(env("CHATHANDS__MODEL__API_KEY=0123\nCHATHANDS__MODEL__NAME=4\n"))
    assert settings.model.api_key is not None
    assert settings.model.api_key.get_secret_value() == "0123"
    assert settings.model.name == "4"


def test_a_file_saved_by_notepad_with_a_bom_is_read(env):
    assert load_settings(env("CHATHANDS__MAX_ROUNDS=3\n", encoding="utf-8-sig")).max_rounds == 3


def test_the_file_of_the_environment_wins_over_the_common_one(env):
    env("ENVIRONMENT=dev\nCHATHANDS__MAX_ROUNDS=3\n")
    assert load_settings(env("CHATHANDS__MAX_ROUNDS=4\n", ".env.dev")).max_rounds == 4


def test_the_process_environment_wins_over_files(env, monkeypatch):
    monkeypatch.setenv("CHATHANDS__MAX_ROUNDS", "2")
    assert load_settings(env("CHATHANDS__MAX_ROUNDS=3\n")).max_rounds == 2


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("CHATHANDS__DEADLINE=soon", "CHATHANDS__DEADLINE"),
        ("CHATHANDS__MODEL__MODE=magic", "CHATHANDS__MODEL__MODE"),
        ("CHATHANDS__MODEL__BASE_URL=api.example.com/v1", "CHATHANDS__MODEL__BASE_URL"),
        ('CHATHANDS__DINGTALK__ROBOTS={"a": {"webhook": "x"}}', "CHATHANDS__DINGTALK__ROBOTS"),
        ('CHATHANDS__DINGTALK__ROBOTS={"a": {', "CHATHANDS__DINGTALK"),
        ("CHATHANDS__MODEL__BASE_ULR=http://x/v1", "CHATHANDS__MODEL__BASE_ULR"),
        ("CHATHANDS__DEADLIN=30", "CHATHANDS__DEADLIN"),
    ],
)
def test_a_mistake_names_the_key(env, line, key):
    with pytest.raises(ConfigError) as caught:
        load_settings(env(line + "\n"))
    assert key in caught.value.sentence


def test_a_mistake_never_shows_a_secret(env):
    line = 'CHATHANDS__DINGTALK__ROBOTS={"a": {"webhook": "hunter2", "secret": "SEChunter3"}}'
    with pytest.raises(ConfigError) as caught:
        load_settings(env(line))
    assert "hunter" not in caught.value.sentence + str(caught.value)


@pytest.mark.parametrize("wrong", ['"rate": 0', '"role": "owner"', '"tool": ["x"]', '"tools": []'])
def test_a_mistake_about_a_token_never_shows_the_token(env, wrong):
    with pytest.raises(ConfigError) as caught:
        load_settings(env(f'CHATHANDS__API__TOKENS={{"hunter2": {{"name": "a", {wrong}}}}}'))
    assert "hunter" not in (caught.value.sentence + str(caught.value)).lower()
    assert "CHATHANDS__API__TOKENS__***__" in caught.value.sentence


def test_state_below_data_is_refused(env):
    with pytest.raises(ConfigError, match="data_dir"):
        load_settings(env("CHATHANDS__STATE_DIR=data/state\n"))


@pytest.mark.parametrize(
    ("push", "words"),
    [
        ({"robots": {"群": {"webhook": "https://example.com/hook"}}}, "platform"),
        ({"robots": {"群": {"webhook": "https://[::1/x", "platform": "wecom"}}}, "不是合法的地址"),
        (
            {
                "robots": {
                    "群": {"webhook": "dry-run", "platform": "wecom", "secret": "hunter2hunter"}
                }
            },
            "没有加签",
        ),
        ({"robots": {" ": {"webhook": "dry-run", "platform": "wecom"}}}, "名字"),
        ({"chats": {"群": {"group": "123456", "user": "123456"}}}, "只写一个"),
        ({"chats": {"群": {"group": "12 34"}}}, "写法不对"),
        (
            {
                "robots": {"群": {"webhook": "dry-run", "platform": "feishu"}},
                "chats": {"群": {"group": "123456"}},
            },
            "同名",
        ),
    ],
)
def test_a_target_that_cannot_be_is_refused_with_its_reason(tmp_path, push, words):
    with pytest.raises(ConfigError) as raised:
        load_settings(tmp_path, push=push)
    assert words in raised.value.sentence
    assert "hunter2" not in raised.value.sentence


def test_the_platform_of_a_robot_follows_from_its_webhook(tmp_path):
    webhook = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=a"
    settings = load_settings(tmp_path, push={"robots": {"群": {"webhook": webhook}}})
    assert settings.push.robots["群"].platform == "wecom"
