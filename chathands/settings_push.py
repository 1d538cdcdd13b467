"""Settings of what pushes: robots of DingTalk, WeCom and Feishu, and QQ chats, each by a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

DRY_RUN = "dry-run"
"""A robot with this webhook prints what would be pushed instead of pushing."""

RobotPlatform = Literal["dingtalk", "wecom", "feishu"]

HOSTS: Mapping[str, RobotPlatform] = {
    "oapi.dingtalk.com": "dingtalk",
    "qyapi.weixin.qq.com": "wecom",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "feishu",
}
"""Whose robots have their webhooks there."""


def _host(address: str) -> str:
    """In lower case; empty when there is none."""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


class Robot(_Section):
    """A DingTalk custom robot; `webhook` is its whole address, or `dry-run`."""

    webhook: SecretStr
    secret: SecretStr | None = None
    keywords: tuple[str, ...] = ()

    @field_validator("webhook")
    @classmethod
    def _an_address(cls, value: SecretStr) -> SecretStr:
        address = value.get_secret_value().strip()
        if address != DRY_RUN and not address.startswith(("http://", "https://")):
            raise ValueError("webhook 要是完整的 https:// 地址")
        if address != DRY_RUN and not _host(address):
            raise ValueError("webhook 不是合法的地址，请重新复制")
        return SecretStr(address)

    @property
    def dry_run(self) -> bool:
        return self.webhook.get_secret_value() == DRY_RUN


class DingTalkSettings(_Section):
    robots: dict[str, Robot] = Field(default_factory=dict)
    timeout: float = Field(default=10, gt=0)
    """Seconds for one push; the robot answers in well under one."""


class PushRobot(Robot):
    """A robot of any of the three platforms."""

    platform: RobotPlatform | None = None
    """None: the one whose host the webhook has."""
    members: dict[str, str] = Field(default_factory=dict)
    """Who may be called by name: name → mobile number (DingTalk, WeCom) or open_id (Feishu); `all`
    is everybody. Nobody else is ever called in Feishu."""

    @model_validator(mode="after")
    def _of_a_platform(self) -> Self:
        if self.platform is None:
            self.platform = HOSTS.get(_host(self.webhook.get_secret_value()))
        if self.platform is None:
            raise ValueError("要写 platform：dingtalk、wecom 或 feishu（看不出是哪家的 webhook）")
        if self.platform == "wecom" and self.secret is not None:
            raise ValueError("企业微信的机器人没有加签，去掉 secret")
        return self


class PushChat(_Section):
    """A QQ group or person: exactly one of the two numbers."""

    group: str | None = Field(default=None, pattern=r"^\d{5,12}$")
    user: str | None = Field(default=None, pattern=r"^\d{5,12}$")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.group is None) == (self.user is None):
            raise ValueError("group（群号）和 user（QQ 号）要写一个，也只写一个")
        return self


class PushSettings(_Section):
    robots: dict[str, PushRobot] = Field(default_factory=dict)
    chats: dict[str, PushChat] = Field(default_factory=dict)
    timeout: float = Field(default=10, gt=0)
    """Seconds for one message; the robots answer in well under one."""

    @field_validator("robots", "chats", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """The name is all the model knows of a target."""
        if isinstance(value, dict) and any(
            not str(name).strip() or str(name) != str(name).strip() or len(str(name)) > 40
            for name in value
        ):
            raise ValueError("名字不能是空的，两头不能有空格，最多 40 个字")
        return value

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        if twice := sorted(self.robots.keys() & self.chats.keys()):
            raise ValueError(f"机器人和 QQ 聊天不能同名：{'、'.join(twice)}")
        return self
