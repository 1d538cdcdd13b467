"""The local model's child process as its parent sees it: start, ready, dead or alive, stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chathands.errors import LocalModelError

START_SECONDS = 180.0
"""2 to 5 s measured from a warm disk cache; a spinning disk reads 1.1 GB in half a minute."""
STOP_SECONDS = 5.0
"""It leaves within 0.3 s of its input's end; a machine that swaps takes longer."""
LOG_BYTES = 2_000_000
"""A log beyond this is put aside at the next start: llama.cpp writes about 1 kB a request."""

_SCRIPT = Path(__file__).with_name("local_child.py")
if sys.platform == "win32":
    _GROUP_FLAGS = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
else:
    _GROUP_FLAGS = 0


@dataclass(frozen=True, slots=True)
class ChildConfig:
    """What the child is started with."""

    model: Path
    name: str
    context: int
    threads: int
    log_file: Path


class ModelProcess:
    """A started child that answers at `address` to those who have `api_key`."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, api_key: str) -> None:
        self._process = process
        self.address = address
        self.api_key = api_key

    @classmethod
    async def start(cls, config: ChildConfig) -> ModelProcess:
        """Start it and wait until it answers. Raises LocalModelError, and nothing is left then."""
        api_key = secrets.token_urlsafe(24)
        try:
            process = _spawn(config, api_key)
        except OSError as error:
            raise LocalModelError(f"the child cannot be started: {error}") from error
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await asyncio.to_thread(_first_line, process)
        except TimeoutError:
            _end(process)
            raise LocalModelError(
                f"not ready after {START_SECONDS:.0f} s",
                sentence="本地模型启动太慢（磁盘或内存可能不够用）。"
                "请换小一点的模型（CHATHANDS__MODEL__NAME=qwen2.5-coder-0.5b-instruct），"
                "或者设置 CHATHANDS__MODEL__BASE_URL。",
            ) from None
        except BaseException:
            _end(process)  # ends the waiting thread as well
            raise
        if "address" not in answer:
            _end(process)
            raise _not_started(config, process.returncode, answer)
        return cls(process, answer["address"], api_key)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    async def died(self, within: float) -> bool:
        """Whether it is dead by then: its sockets close a moment before it can be waited for."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, within)
        return not self.alive

    async def stop(self) -> None:
        """End it: politely by closing its input, then by force."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        await self.died(STOP_SECONDS)
        _end(self._process)


def _spawn(config: ChildConfig, api_key: str) -> subprocess.Popen[bytes]:
    config.log_file.parent.mkdir(parents=True, exist_ok=True)
    if config.log_file.exists() and config.log_file.stat().st_size > LOG_BYTES:
        os.replace(config.log_file, config.log_file.with_name(config.log_file.name + ".1"))
    with config.log_file.open("ab") as log:
        process = subprocess.Popen(
            # By path and -P: neither the working directory nor this one shadows a module.
            [sys.executable, "-P", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            # Out of the terminal's reach: Ctrl-C is for the parent, which has a reply to finish.
            start_new_session=sys.platform != "win32",
            creationflags=_GROUP_FLAGS,
        )
    message = {
        "model": str(config.model),
        "name": config.name,
        "context": config.context,
        "threads": config.threads,
        "api_key": api_key,  # by pipe: arguments can be read by every user of the machine
    }
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # dead already: its missing answer will tell
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
    return process


def _first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The child's one line; empty when it died without."""
    assert process.stdout is not None
    with contextlib.suppress(ValueError):
        return json.loads(process.stdout.readline())
    return {}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _not_started(config: ChildConfig, code: int | None, answer: dict[str, Any]) -> LocalModelError:
    detail = f"exit code {code}, {answer.get('error', 'no answer')}; see {config.log_file}"
    if answer.get("cause") == "import":
        sentence = (
            "本地模型的运行库装得不对，请重新安装："
            'pip install --force-reinstall "chathands[local]"。'
        )
    else:
        sentence = (
            "本地模型没能启动（多半是内存不够，日志在状态目录的 local_model.log）。"
            "请关掉别的程序，或换小一点的模型"
            "（CHATHANDS__MODEL__NAME=qwen2.5-coder-0.5b-instruct），"
            "或者设置 CHATHANDS__MODEL__BASE_URL。"
        )
    return LocalModelError(detail, sentence=sentence)
