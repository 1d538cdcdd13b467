"""`chathands.toml`: several upstreams by model name, as values.

default = "qwen"                     # for the bot and `chathands chat`; else the first

[models.qwen]
base_url = "https://api.example.com/v1"
api_key_env = ["QWEN_KEY_1", "QWEN_KEY_2"]   # variables of the environment or .env
model = "qwen-max-latest"            # what the upstream calls it; else the table's name
aliases = ["gpt-4o"]
fallback = ["small"]                 # other entries, in this order

[models."*"]                         # every name that no entry has
base_url = "http://127.0.0.1:11434/v1"
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)

from chathands.env_files import env_files, values_of
from chathands.toml_text import Mistake, line_of, parse, read_text

FILE_NAME = "chathands.toml"
ANY = "*"
"""The entry for every name that no other has."""
LONGEST_NAME = 200
"""Of a model; the longest in use are paths of files on a model server."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Entry(BaseModel):
    """One upstream."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    base_url: str
    api_key_env: Annotated[list[str], BeforeValidator(_listed)] = Field(default_factory=list)
    """Names of variables that hold keys."""
    api_key: Annotated[list[SecretStr], BeforeValidator(_listed)] = Field(default_factory=list)
    """The keys; those of `api_key_env` come behind them once the file is loaded."""
    model: str | None = Field(default=None, min_length=1, max_length=LONGEST_NAME)
    """What the upstream calls it. None: the entry's name, and for `*` the one asked for."""
    aliases: list[str] = Field(default_factory=list)
    mode: Literal["auto", "emulated", "structured", "native"] = "auto"
    thinking: Literal["none", "tags", "open"] | None = None
    """None: as it was measured, else none."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=16)
    context: int = Field(default=8192, ge=1024)
    language: Literal["zh", "en"] = "zh"
    seconds: float | None = Field(default=None, gt=0, le=3600)
    """For a whole reply. None: what the asker grants."""
    first_byte_seconds: float | None = Field(default=None, gt=0, le=3600)
    """Until a reply begins. None: while there is a fallback, half of the time there is."""
    fallback: list[str] = Field(default_factory=list)

    @field_validator("base_url")
    @classmethod
    def _an_http_address(cls, value: str) -> str:
        value = value.strip().rstrip("/")
        if not value.startswith(("http://", "https://")):
            raise ValueError("要以 http:// 或 https:// 开头")
        return value

    @field_validator("api_key")
    @classmethod
    def _not_empty(cls, value: list[SecretStr]) -> list[SecretStr]:
        if not all(key.get_secret_value().strip() for key in value):
            raise ValueError("有一个是空的；不需要密钥就不要写这一行")
        return value

    @property
    def keys(self) -> tuple[str, ...]:
        """Each once, in the order in which they are used."""
        return tuple(dict.fromkeys(key.get_secret_value().strip() for key in self.api_key))


class ModelsFile(BaseModel):
    """What the file says. Entries keep its order."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    default: str | None = None
    models: dict[str, Entry] = Field(min_length=1)

    @property
    def chosen(self) -> str:
        """The entry of whoever names no model."""
        return self.default or next((name for name in self.models if name != ANY), ANY)


def load_models(directory: Path) -> ModelsFile | None:
    """The file beside `.env` in `directory`, with the keys of the variables it names; None when
    there is none.

    Raises ConfigError naming line, table and key; no value of a key is in it.
    """
    path = directory / FILE_NAME
    try:
        text = read_text(path)
        return None if text is None else models_of(text, _variables(directory))
    except Mistake as mistake:
        raise mistake.as_error(path, "改好后再启动。") from None


def models_of(text: str, variables: Mapping[str, str]) -> ModelsFile:
    """The entries that `text` says. Raises Mistake."""
    try:
        read = ModelsFile.model_validate(parse(text))
    except ValidationError as error:
        # A misspelt key is also one that is missing; what stands there is the better hint.
        faults = error.errors(include_url=False, include_input=False)
        first = min(faults, key=lambda fault: fault["type"] != "extra_forbidden")
        where = [str(part) for part in first["loc"]]
        raise Mistake(_explain(first, where), line_of(text, where)) from None
    for where, what in _contradictions(read):
        raise Mistake(f"{_named(where)}{what}", line_of(text, where))
    models = {}
    for name, entry in read.models.items():
        keys = list(entry.api_key)
        for variable in entry.api_key_env:
            value = variables.get(variable, "").strip()
            if not value:
                where = ["models", name, "api_key_env"]
                what = f"{_named(where)} 说密钥在变量 {variable} 里，但环境和 .env 里都没有它"
                raise Mistake(what, line_of(text, where))
            keys.append(SecretStr(value))
        models[name] = entry.model_copy(update={"api_key": keys})
    return read.model_copy(update={"models": MappingProxyType(models)})


def _variables(directory: Path) -> dict[str, str]:
    """Variables of the environment, which wins, and of `.env`.

    Those of `.env` are known in upper case, as NoneBot knows them.
    """
    values: dict[str, str] = {}
    for file in env_files(directory):
        values.update({key: value for key, value in values_of(file).items() if value})
    return values | {key: value for key, value in os.environ.items() if value}


def _contradictions(file: ModelsFile) -> Iterator[tuple[list[str], str]]:
    """Where, and what is wrong, for what no single key shows."""
    models = file.models
    known = "、".join(models)
    if file.default is not None and file.default not in models:
        yield ["default"], f" 是 {file.default}，没有这个模型，有的是 {known}"
    owners: dict[str, str] = {}
    for name, entry in models.items():
        if not _is_name(name):
            yield ["models", name], " 名字不能是空的、不能有控制字符、最多 200 个字"
        for alias in entry.aliases:
            where = ["models", name, "aliases"]
            if not _is_name(alias) or alias == ANY:
                yield where, f" 里的 {alias!r} 不能作名字"
            if alias in models or owners.setdefault(alias, name) != name:
                yield where, f" 里的 {alias} 已经是另一个模型的名字"
        for other in entry.fallback:
            where = ["models", name, "fallback"]
            if other == name:
                yield where, " 里有它自己"
            if other not in models:
                yield where, f" 里的 {other} 没有 [models] 表，有的是 {known}"
            elif other == ANY and models[other].model is None:
                yield where, ' 里的 "*" 没有写 model，不能备用'


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name == name.strip() and name.isprintable()


def _named(where: list[str]) -> str:
    *table, key = where
    return f"[{'.'.join(table)}] 里的 {key}" if len(where) > 2 else f"[{'.'.join(where)}]"


_KINDS = {
    "string_type": "要是带引号的文字",
    "int_type": "要是整数",
    "float_type": "要是数字",
    "list_type": '要是列表，例如 ["a", "b"]',
    "dict_type": "要是一张表",
    "model_type": "要是一张表",
    "string_too_short": "不能是空的",
    "string_too_long": f"最多 {LONGEST_NAME} 个字",
    "greater_than": "要大于 {gt}",
    "greater_than_equal": "不能小于 {ge}",
    "less_than_equal": "不能大于 {le}",
    "literal_error": "只能是 {expected}",
    "too_short": "里一个模型也没有",
    "missing": "没有写",
}


def _explain(fault: Mapping[str, Any], where: list[str]) -> str:
    if fault["type"] == "extra_forbidden":
        known = Entry.model_fields if len(where) > 2 else ModelsFile.model_fields
        return f"{_named(where)} 不认识，可以写的是 {'、'.join(known)}"
    at = where[:3]  # an item of a list is named by its list
    known_kind = _KINDS.get(fault["type"])
    if known_kind is None:
        return f"{_named(at)} {str(fault['msg']).removeprefix('Value error, ')}"
    return f"{_named(at)} {known_kind.format_map(fault.get('ctx') or {}).replace(' or ', ' 或 ')}"
