"""`[mcp.NAME]` in tools.toml: external MCP servers, as values.

[mcp.time]
command = "mcp-server-time"            # a child process speaking over stdio; or url, below
args = ["--local-timezone", "Asia/Shanghai"]
env = { TZ = "Asia/Shanghai" }         # secrets only as "${VARIABLE}"
cwd = "/srv/time"

[mcp.wiki]
url = "https://wiki.example/mcp"       # streamable HTTP
headers = { Authorization = "Bearer ${WIKI_TOKEN}" }
prefix = "wiki_"                       # before each tool's name; this is the default
timeout = 30                           # seconds of one call
enabled = true

[mcp.time.tools.get_current_time]      # the name the server gives it
side_effect = "none"                   # none, local; outward is the default
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from chathands.env_files import PREFIX
from chathands.errors import ConfigError

CALL_SECONDS = 30.0
"""Of one call; foreign tools search and fetch, which takes longer than our own 10 seconds."""

CONNECT_SECONDS = 30.0
"""For a server to start and list its tools. `npx` and `uvx` fetch packages the first time."""

WITHIN = "MCP_WITHIN_CHATHANDS"
"""Set for every child. A ChatHands that is one connects to no servers of its own: named in its own
tools.toml it would start itself without end."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,29}")
_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,29})?")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(
    r"(?i)authori[sz]ation|token|secret|passw|passphrase|pwd|cookie|credential|api[-_]?key|[-_]key$"
    r"|^key$"
)
"""Header or variable names whose value may not stand in the file itself."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ToolOverride(_Table):
    """What the admin says about one tool of a server; the rest is as strict as it can be."""

    enabled: bool = True
    side_effect: Literal["none", "local", "outward"] | None = None
    foreign: bool | None = None
    """False: its results are no text from outside, as of a clock."""
    timeout: float | None = Field(default=None, gt=0, le=3600)
    trust_hints: bool = True
    """False: what the server's own annotations say does not make the tool stricter again."""


class McpServer(_Table):
    """One `[mcp.NAME]` table, complete."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    prefix: str | None = None
    timeout: float = Field(default=CALL_SECONDS, gt=0, le=3600)
    connect_timeout: float = Field(default=CONNECT_SECONDS, gt=0, le=600)
    enabled: bool = True
    tools: dict[str, ToolOverride] = Field(default_factory=dict)

    @field_validator("args", mode="before")
    @classmethod
    def _list_of_words(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("prefix")
    @classmethod
    def _starts_a_name(cls, value: str | None) -> str | None:
        if value is not None and not _PREFIX.fullmatch(value):
            raise ValueError("prefix 要以字母开头，只含字母、数字和下划线，最多 30 个")
        return value

    @field_validator("command", "cwd")
    @classmethod
    def _one_that_can_be_run(cls, value: str | None) -> str | None:
        if value is not None and (not value.strip() or "\0" in value):
            raise ValueError("不能是空的")
        return value

    @field_validator("url")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url 要是完整的 http:// 或 https:// 地址")
        queried = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        if "@" in parts.netloc or any(_SECRET.search(name) for name in queried):
            raise ValueError('url 里不能有密码或密钥，请放到 headers，写成 "${变量名}"')
        return value

    @field_validator("env", "headers")
    @classmethod
    def _secrets_are_elsewhere(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if "\0" in name + value or "\n" in name + value or not name.strip():
                raise ValueError("里有不能用的字符")
            for variable in _VARIABLE.findall(value):
                if variable.upper().startswith(PREFIX):
                    raise ValueError(f"不能把 ChatHands 自己的 {variable} 交给别的程序")
            literal = _VARIABLE.sub("", value).strip()
            scheme = literal.casefold() in ("", "bearer", "basic", "token")
            if _SECRET.search(name) and not scheme:
                raise ValueError(f'的 {name} 像是密钥，不能写在文件里，请写成 "${{变量名}}"')
        return values

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("要写 command（本机程序）或 url（HTTP 地址），两个里的一个")
        if self.url is not None and (self.args or self.env or self.cwd):
            raise ValueError("写了 url 就不能写 args、env、cwd")
        if self.command is not None and self.headers:
            raise ValueError("headers 只用于 url")
        return self

    def variables(self) -> frozenset[str]:
        """Names of the environment variables it asks for."""
        texts = (*self.env.values(), *self.headers.values())
        return frozenset(name for text in texts for name in _VARIABLE.findall(text))

    def filled(self, environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """(env, headers) with the variables put in. Raises ConfigError naming one that is not
        set."""
        missing = sorted(name for name in self.variables() if not environment.get(name))
        if missing:
            names = "、".join(missing)
            raise ConfigError(
                f"environment variables are not set: {', '.join(missing)}",
                sentence=f"环境变量 {names} 没有设置（写在 .env 或环境里）。",
            )

        def fill(values: Mapping[str, str]) -> dict[str, str]:
            return {
                name: _VARIABLE.sub(lambda found: environment[found[1]], value)
                for name, value in values.items()
            }

        return fill(self.env), fill(self.headers)

    def without_tools(self) -> McpServer:
        """What has to be connected to anew when it changes."""
        return self.model_copy(update={"tools": {}, "prefix": None, "timeout": CALL_SECONDS})


def servers_of(
    tables: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, McpServer], dict[str, str]]:
    """(the servers, NAME → one sentence about a table that cannot be used)."""
    servers: dict[str, McpServer] = {}
    faults: dict[str, str] = {}
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            faults[name[:60]] = "名字要以字母开头，只含字母、数字、- 和 _，最多 30 个。"
            continue
        try:
            servers[name] = McpServer.model_validate(dict(table))
        except ValidationError as error:
            faults[name] = "；".join(_explained(error)) + "。"
    return servers, faults


def prefix_of(name: str, server: McpServer) -> str:
    """What stands before the names of its tools."""
    return f"{name.replace('-', '_')}_" if server.prefix is None else server.prefix


def prefixes_of(tables: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """What the names of tools of these servers begin with; without one there is no telling."""
    found = {prefix_of(name, server) for name, server in servers_of(tables)[0].items()}
    return tuple(sorted(found - {""}))


_KEYS: Mapping[str, str] = {
    "command": "一段文字",
    "args": "文字的列表",
    "env": "一张表，值都是文字",
    "cwd": "一个目录",
    "url": "一段文字",
    "headers": "一张表，值都是文字",
    "prefix": "一段文字",
    "timeout": "大于 0 的秒数，最多 3600",
    "connect_timeout": "大于 0 的秒数，最多 600",
    "enabled": "true 或 false",
    "tools": "一张表",
    "side_effect": "none、local 或 outward",
    "foreign": "true 或 false",
    "trust_hints": "true 或 false",
}


def _explained(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False)[:3]:
        where = [str(part) for part in fault["loc"]]
        key = where[-1] if where else ""
        named = ".".join(where)
        if fault["type"] == "extra_forbidden":
            known = ToolOverride if where[:1] == ["tools"] and len(where) > 2 else McpServer
            yield f"{named} 不认识，可以写的是 {'、'.join(known.model_fields)}"
        elif fault["type"] == "value_error":
            said = fault["msg"].partition(", ")[2]
            yield said if not named or said.startswith(named) else f"{named} {said}"
        else:
            known_key = next((part for part in where if part in _KEYS and part != "tools"), key)
            yield f"{named} 不对，应为{_KEYS.get(known_key, '一张表')}"


def working_directory(server: McpServer, base: Path) -> Path:
    """Where a child runs: `cwd`, taken from the directory of tools.toml."""
    return (base / server.cwd).resolve() if server.cwd else base.resolve()
