"""Starts ChatHands in QQ: NoneBot2, the OneBot v11 adapter, and what pyproject.toml loads.

`python bot.py` and `nb run` (which runs this file) do the same. The project's directory becomes
the working directory, so that `.env`, tools/, data/ and state/ are those beside this file wherever
it is started from.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nonebot
from nonebot.adapters.onebot.v11 import Adapter
from nonebot.config import Config
from nonebot.config import SettingsError as NoneBotSettingsError
from nonebot.drivers import ASGIMixin
from nonebot.log import LoguruHandler, default_filter, default_format, logger, logger_id
from pydantic import ValidationError

from chathands.env_files import env_files, faults_in, values_of
from chathands.errors import ConfigError
from chathands.run_context import current_run
from chathands.settings import Settings, load_settings, why_invalid
from chathands.toolbox import Redactor

if TYPE_CHECKING:
    from loguru import Record

SHUTDOWN_SECONDS = 1
"""Without a limit one open connection holds the shutdown for ever."""

_KEYED_SECRET = re.compile(
    r"(?i)(['\"][\w]*(?:token|secret|passw(?:or)?d|api_?key|webhook)[\w]*['\"]:\s*)"
    r"(?:'[^']*'|\"[^\"]*\"|[\w.-]+)"
)


def main() -> None:
    """Run until a signal. A mistake in the configuration ends with one sentence, code 1."""
    os.chdir(Path(__file__).resolve().parent)
    for stream in (sys.stdout, sys.stderr):  # a GBK console must not die of a name in a log line
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        settings = load_settings()
        redactor = Redactor.of(settings)
        _guard_log(lambda line: _KEYED_SECRET.sub(r"\1'***'", redactor.text(line)))
        # Windows' editors put a byte order mark first, which would become part of the first key.
        nonebot.init(_env_file_encoding="utf-8-sig")
        config = nonebot.get_driver().config
        _accept_log_level(config)
        _accept_token_as_written(config)
        for fault in faults_in(Path.cwd()):  # NoneBot ignores such lines without a word
            logger.warning(fault.sentence)
        nonebot.get_driver().register_adapter(Adapter)
        _check_driver()
        _check_port(config)
    except ConfigError as error:
        sys.exit(error.sentence)
    except UnicodeDecodeError:
        sys.exit("配置文件 .env 不是 UTF-8 编码，请用编辑器另存为 UTF-8 后再启动。")
    except ImportError as error:
        if "nonebot.drivers" not in str(error):
            raise
        sys.exit("配置 DRIVER 不对：没有这个驱动，一般写 ~fastapi。请改 .env 后再启动。")
    except NoneBotSettingsError as error:
        key = (re.findall(r'"([^"]+)"', str(error)) or ["?"])[0]
        sys.exit(
            f"配置 {key.upper()} 不是合法的 JSON：要写在一行里，用英文的引号、逗号和括号（列表写成 "
            '["10001"] 的样子）。改好 .env 后再启动。'
        )
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        key = str(fault["loc"][0]).upper() if fault["loc"] else "?"
        sys.exit(f"配置 {key} 不对：{why_invalid(fault)}。请改 .env 后再启动。")
    nonebot.load_from_toml("pyproject.toml")
    if nonebot.get_plugin("group_chat") is None:
        sys.exit("插件 plugins/group_chat 没有加载，原因见上面的日志。")
    nonebot.run(
        ws_ping_interval=settings.group.ping_seconds,
        ws_ping_timeout=settings.group.ping_seconds,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        **_limits_of_connections(settings),
    )


def _limits_of_connections(settings: Settings) -> dict[str, Any]:
    """For uvicorn, when programs use the port too and not only QQ's side."""
    if not settings.api.on_bot_port:
        return {}
    from chathands.server.connection import GuardedProtocol

    return {"http": GuardedProtocol}


def _guard_log(hide: Callable[[str], str]) -> None:
    """Send NoneBot's log through `hide`, and our own records to it.

    At LOG_LEVEL=DEBUG NoneBot prints its whole configuration, and everything in `.env` is in it:
    keys, webhooks, tokens. Only the finished line shows them all, so that is what is looked at.
    """
    out = sys.stdout

    def write(line: str) -> None:
        out.write(hide(line))
        out.flush()

    logger.remove(logger_id)
    logger.add(
        write,
        level=0,
        diagnose=False,  # with it, tracebacks show the values of variables
        filter=_loud_enough,
        format=_with_run,
        colorize=out.isatty() and os.name != "nt",
    )
    ours = logging.getLogger("chathands")
    ours.addHandler(LoguruHandler())
    ours.setLevel(logging.DEBUG)
    ours.propagate = False


def _with_run(record: Record) -> str:
    """NoneBot's format, and the run a line is about, when it does not say so itself."""
    run = current_run.get()
    known = not run or run in record["message"]
    return (default_format if known else f"{default_format} [{run}]") + "\n{exception}"


def _loud_enough(record: Record) -> bool:
    try:
        return default_filter(record)
    except ValueError:  # a level nobody knows; `_accept_log_level` looks at it
        return True


def _accept_log_level(config: Config) -> None:
    """Take `debug` for `DEBUG`, warn of what is logged then; raises ConfigError for no level."""
    level = config.log_level
    if isinstance(level, str):
        level = level.upper()
        try:
            logger.level(level)
        except ValueError:
            raise ConfigError(
                f"LOG_LEVEL={config.log_level}",
                sentence="配置 LOG_LEVEL 不对：只能是 DEBUG、INFO、WARNING、ERROR。"
                "请改 .env 后再启动。",
            ) from None
        logger.configure(extra={"nonebot_log_level": level})
    if level in ("DEBUG", "TRACE") or (isinstance(level, int) and level < logging.INFO):
        logger.warning(
            f"LOG_LEVEL={level}：日志里会有整份配置和群里的消息。"
            "密钥已换成 ***，但请不要把这样的日志发给别人。"
        )


def _accept_token_as_written(config: Config) -> None:
    """NoneBot reads `ONEBOT_ACCESS_TOKEN=123456` as a number, `1e5` as another one, `null` as no
    token at all; the adapter takes text, and QQ's side sends what was written."""
    name = "ONEBOT_ACCESS_TOKEN"
    if isinstance(getattr(config, name.lower(), ""), str):
        return
    given = [{key.upper(): value for key, value in os.environ.items()}]
    given += [values_of(file) for file in reversed(env_files(Path.cwd()))]
    written = next((values[name] for values in given if values.get(name)), None)
    if written is not None:
        setattr(config, name.lower(), written.strip())


def _check_driver() -> None:
    """Raises ConfigError when QQ could never connect: without a server the bot runs and hears
    nothing, unless it dials out itself."""
    driver = nonebot.get_driver()
    adapter = nonebot.get_adapter(Adapter)
    if not isinstance(driver, ASGIMixin) and not adapter.onebot_config.onebot_ws_urls:
        raise ConfigError(
            f"driver {driver.type} is no server",
            sentence="配置 DRIVER 不对：QQ 没有地方可以连进来，一般写 ~fastapi。"
            "请改 .env 后再启动。",
        )


def _check_port(config: Config) -> None:
    """Raises ConfigError when something listens there already: most often the bot itself."""
    family = socket.AF_INET6 if config.host.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(config.host), config.port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {config.host}:{config.port}: {error}",
                sentence=f"{config.host}:{config.port} 用不了（端口被占用，或不是本机的地址），"
                "请看是不是已经开着一个，或者改 .env 里的 HOST、PORT。",
            ) from None


if __name__ == "__main__":
    main()
