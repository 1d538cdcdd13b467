"""The upstream that the settings ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chathands.errors import ConfigError
from chathands.settings import Settings
from chathands.upstreams.base import Upstream
from chathands.upstreams.ways import UNNAMED, mode_line
from chathands.upstreams.weights import (
    DEFAULT,
    Report,
    Weights,
    known_weights,
    runtime_installed,
    user_cache_dir,
)

if TYPE_CHECKING:
    from chathands.upstreams.local import LocalModel

REMOTE_TEMPERATURE = 0.1
LOCAL_TEMPERATURE = 0.0
MAX_TOKENS = 1024
LOG_NAME = "local_model.log"

_NO_MODEL = (
    "没有可用的模型：请在 .env 里设置 CHATHANDS__MODEL__BASE_URL（以及 __API_KEY、__NAME），"
    '或者运行 pip install "chathands[local]" 来使用本地模型。'
)


async def build_upstream(settings: Settings, *, progress: Report | None = None) -> Upstream:
    """The model at the configured address, or the local default, fetched, started and ready.

    `progress` hears how far the local model is. Raises ConfigError when nothing is configured,
    LocalModelError when the local model cannot be fetched or started. The caller closes it.
    """
    model = settings.model
    if model.base_url is None:
        local = local_model(settings)
        try:
            await local.start(progress)
        except BaseException:
            await local.aclose()
            raise
        return local
    from chathands.upstreams.openai_chat import OpenAIChat

    return OpenAIChat(
        model.base_url,
        name=model.name or UNNAMED,
        api_key=model.api_key.get_secret_value() if model.api_key else None,
        temperature=REMOTE_TEMPERATURE if model.temperature is None else model.temperature,
        max_tokens=model.max_tokens or MAX_TOKENS,
        context=model.context,
    )


def local_model(settings: Settings) -> LocalModel:
    """The local model of these settings, neither fetched nor started. Raises ConfigError."""
    weights = local_weights(settings)
    from chathands.upstreams.local import LocalModel

    temperature = settings.model.temperature
    return LocalModel(
        weights,
        cache_dir=cache_dir(settings),
        log_file=settings.state_dir / LOG_NAME,
        context=settings.model.context,
        temperature=LOCAL_TEMPERATURE if temperature is None else temperature,
        max_tokens=settings.model.max_tokens or MAX_TOKENS,
    )


def local_weights(settings: Settings) -> Weights:
    """Which local model is meant. Raises ConfigError if none can be used, saying what to set."""
    known = known_weights()
    name = settings.model.name or DEFAULT
    if name not in known:
        raise ConfigError(
            f"model {name} has no base_url and is no local model",
            sentence=f"设置了模型名 {name}，但没有设置 CHATHANDS__MODEL__BASE_URL；"
            f"本地模型只有 {'、'.join(known)}。",
        )
    if not settings.local_model or not runtime_installed():
        raise ConfigError("no model is configured", sentence=_NO_MODEL)
    return known[name]


def cache_dir(settings: Settings) -> Path:
    """Where the local model's file lies."""
    return settings.cache_dir or user_cache_dir()


def describe(settings: Settings) -> str:
    """Model, place and mode in one short line for start banners; starts and fetches nothing."""
    model, mode = settings.model, mode_line(settings)
    if model.base_url is None:
        try:
            weights = local_weights(settings)
        except ConfigError as error:
            return error.sentence
        from chathands.upstreams.local_fetch import present

        here = present(weights, cache_dir(settings)) is not None
        size = f"首次使用要下载 {weights.size / 1e9:.1f} GB"
        where = "本地" if here else f"本地，{size}"
        return f"{weights.name}（{where}，模式 {mode}，上下文 {model.context}）"
    host = urlsplit(model.base_url).hostname or "?"
    name = model.name or f"{UNNAMED}，没有设置 CHATHANDS__MODEL__NAME"
    return f"{name}（{host}，模式 {mode}，上下文 {model.context}）"
