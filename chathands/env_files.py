"""The `.env` files both NoneBot and we read: where they are, what they say, and what in them is
ignored although somebody wrote it."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import Binding, parse_stream

from chathands.errors import ConfigError

PREFIX = "CHATHANDS__"

_NONEBOT = (
    "ONEBOT_ACCESS_TOKEN",
    "SUPERUSERS",
    "NICKNAME",
    "HOST",
    "PORT",
    "DRIVER",
    "LOG_LEVEL",
    "ENVIRONMENT",
    "API_TIMEOUT",
)
_KEY = re.compile(r"\s*(?:export\s+)?['\"]?([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_HOW = "应写成 键=值，等号和引号用英文的，引号成对，注释以 # 开头"


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that does not do what it looks like. `sentence` never holds a value: whatever stands
    in such a line may be a secret."""

    sentence: str
    key: str = ""
    """The setting it was surely meant for, when that setting got nothing from it."""


def env_files(directory: Path) -> tuple[Path, ...]:
    """NoneBot reads `.env` and `.env.{ENVIRONMENT}`; the CLI must see the same."""
    base = directory / ".env"
    named = values_of(base).get("ENVIRONMENT")
    environment = os.environ.get("ENVIRONMENT") or named or "prod"
    return (base, directory / f".env.{environment}")


def values_of(file: Path) -> dict[str, str | None]:
    """Keys (upper case) and values of one `.env` file; empty when there is none.

    Raises ConfigError when the file is not UTF-8 (Notepad's "ANSI" on a Chinese Windows is GBK).
    """
    text = _text_of(file)
    values = dotenv_values(stream=io.StringIO(text), interpolate=False) if text else {}
    return {key.upper(): value for key, value in values.items()}


def faults_in(directory: Path) -> list[Fault]:
    """The lines that are ignored in silence, or are not what they seem. Raises ConfigError."""
    return [fault for file in env_files(directory) for fault in _faults_of(file)]


def _text_of(file: Path) -> str:
    if not file.is_file():
        return ""
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{file.name} is not UTF-8: {error.reason}",
            sentence=f"{file.name} 不是 UTF-8 编码，请用编辑器另存为 UTF-8 后再启动。",
        ) from None


def _faults_of(file: Path) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for binding in parse_stream(io.StringIO(_text_of(file))):
        if not binding.original.string.strip() or (binding.key is None and not binding.error):
            continue
        line = _line_of(binding)
        where = f"{file.name} 第 {line} 行"
        meant = _meant(binding.original.string)
        if binding.error or binding.value is None:
            about = f"（像是 {meant}）" if meant else ""
            yield Fault(f"{where}看不懂{about}，没有生效：{_HOW}。", meant)
            continue
        key = (binding.key or "").upper()
        if key.startswith("CHATHAND") and not key.startswith(PREFIX):
            # CHATHANDS_IMAGE and the like are for other programs that read the same file.
            ours = "__" in key
            why = f"ChatHands 的键以 {PREFIX}（两个下划线）开头"
            yield Fault(f"{where}的 {key} 没有生效：{why}。", key if ours else "")
        elif key in seen:
            yield Fault(f"{file.name} 里 {key} 写了两次（第 {seen[key]}、{line} 行），后一个有效。")
        if binding.value[:1] in "“”‘’" and binding.value:
            yield Fault(f"{where}的 {key} 用了中文引号，它们成了值的一部分，请改成英文引号。")
        seen[key] = line


def _line_of(binding: Binding) -> int:
    """Of the first line that is not blank: a binding begins with the blank lines before it."""
    original = binding.original.string
    return binding.original.line + original[: len(original) - len(original.lstrip())].count("\n")


def _meant(line: str) -> str:
    """The setting a line begins with; empty when it begins with anything else."""
    found = _KEY.match(line)
    key = found[1].upper() if found else ""
    return key if key.startswith("CHATHANDS_") or key in _NONEBOT else ""
