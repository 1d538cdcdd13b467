"""What the log tells an admin about connecting QQ."""

from __future__ import annotations

from ipaddress import ip_address

import nonebot
import pytest
from nonebot.adapters.onebot.v11 import Adapter

from plugins.group_chat.onebot_v11 import connection_lines


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch):
    def lines(host: str, token: str | None, superusers: set[str]) -> dict[str, str]:
        config = nonebot.get_driver().config
        monkeypatch.setattr(config, "host", ip_address(host))
        monkeypatch.setattr(config, "port", 8099)
        monkeypatch.setattr(config, "superusers", superusers)
        onebot = nonebot.get_adapter(Adapter).onebot_config
        monkeypatch.setattr(onebot, "onebot_access_token", token)
        found: dict[str, str] = {}
        for level, text in connection_lines():
            found[level] = found.get(level, "") + text + "\n"
        return found

    return lines


def test_the_address_is_whole_and_the_token_is_not_shown(lines):
    said = lines("127.0.0.1", "open-sesame-1704", {"1"})
    assert "ws://127.0.0.1:8099/onebot/v11/ws\n" in said["INFO"]
    assert "已设置" in said["INFO"]
    assert "open-sesame-1704" not in said["INFO"]
    assert "WARNING" not in said


def test_a_port_open_to_others_without_a_token_is_warned_of(lines):
    said = lines("0.0.0.0", None, set())
    assert "换成这台的 IP" in said["INFO"]
    assert "没有设置 SUPERUSERS" in said["INFO"]
    assert "ONEBOT_ACCESS_TOKEN" in said["WARNING"]
    assert "WARNING" not in lines("0.0.0.0", "open-sesame-1704", set())
    assert "WARNING" not in lines("127.0.0.1", None, set())


def test_a_token_that_people_may_write_by_chance_is_warned_of(lines):
    """What looks like a secret is hidden in answers: with 123456, a sum of 1234567 is."""
    said = lines("127.0.0.1", "123456", {"1"})["WARNING"]
    assert "太短" in said
    assert "123456" not in said
    assert "WARNING" not in lines("127.0.0.1", "123456789012", {"1"})


def test_an_ipv6_address_is_written_in_brackets(lines):
    assert "ws://[::1]:8099/onebot/v11/ws" in lines("::1", None, set())["INFO"]
