"""The upstreams that the settings ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chathands.errors import ConfigError
from chathands.model_choice import in_file_words, settings_for
from chathands.models_file import ANY
from chathands.settings import Settings
from chathands.upstreams.base import Upstream
from chathands.upstreams.ways import UNNAMED, mode_line, ways_of
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
    from chathands.upstreams.openai_chat import OpenAIChat
    from chathands.upstreams.router import Member, Router

REMOTE_TEMPERATURE = 0.1
LOCAL_TEMPERATURE = 0.0
MAX_TOKENS = 1024
LOCAL_CONTEXT = 12_288
"""The shipped tools take 4,000 tokens of contract, which may be 35 %: all of them are read once,
ahead, and stay in the server's cache. Listed in part, differently for each question, they would be
read anew for each, 20 s on two free cores. Costs 115 MB more than 8192 (28 KB a token)."""
LOG_NAME = "local_model.log"

_NO_MODEL = (
    "没有可用的模型：请在 .env 里设置 CHATHANDS__MODEL__BASE_URL（以及 __API_KEY、__NAME），"
    '或者运行 pip install "chathands[local]" 来使用本地模型。'
)


async def build_upstream(
    settings: Settings, *, progress: Report | None = None, alone: bool = False
) -> Upstream:
    """The model the settings ask for: an entry of chathands.toml with those that step in for it,
    the one at the configured address, or the local default, fetched, started and ready.

    `progress` hears how far the local model is; `alone`: nobody steps in. Raises ConfigError when
    nothing is configured, LocalModelError when the local model cannot be fetched or started. The
    caller closes it.
    """
    if settings.entry is not None and alone:
        return _member(settings, settings.entry).chat
    if settings.entry is not None:
        from chathands.upstreams.router import Routed

        return Routed(_router(settings, None))
    return await _own_upstream(settings, progress)


async def build_router(settings: Settings, *, progress: Report | None = None) -> Router:
    """All upstreams of the settings, by name. Raises like `build_upstream`."""
    own = None if settings.entry is not None else await _own_upstream(settings, progress)
    return _router(settings, own)


def router_beside(settings: Settings, upstream: Upstream) -> Router:
    """All upstreams of the settings for a program that serves beside the one that has `upstream`,
    which is not made or closed a second time. Raises ConfigError."""
    from chathands.upstreams.router import Routed, Router

    if isinstance(upstream, Routed):
        return upstream.router.lent()
    if settings.models:
        return _router(settings, upstream).lent(own_only=True)
    return Router.only(upstream, ways_of(settings)).lent()


def _router(settings: Settings, own: Upstream | None) -> Router:
    from chathands.upstreams.router import Router

    members = [_member(settings, name) for name in settings.models]
    if own is not None:
        return Router(members, own=own, own_ways=ways_of(settings))
    asked = settings.model.name if settings.entry == ANY else settings.entry
    return Router(members, default=(settings.entry or "", asked or UNNAMED))


def _member(settings: Settings, name: str) -> Member:
    """Raises ConfigError for an address or a key that can never work."""
    from chathands.upstreams.resting import KeyRing
    from chathands.upstreams.router import Member

    entry, alone = settings.models[name], settings_for(settings, name)
    try:
        chat = _chat(alone, entry.keys[1:])
    except ConfigError as error:
        error.sentence = in_file_words(error.sentence, name)
        raise
    return Member(
        name,
        chat,
        ways_of(alone),
        model=alone.model.name,
        aliases=tuple(entry.aliases),
        fallback=tuple(entry.fallback),
        seconds=entry.seconds,
        first_byte=entry.first_byte_seconds,
        keys=KeyRing(chat.keys),
    )


async def _own_upstream(settings: Settings, progress: Report | None) -> Upstream:
    if settings.model.base_url is not None:
        return _chat(settings)
    local = local_model(settings)
    try:
        await local.start(progress)
    except BaseException:
        await local.aclose()
        raise
    return local


def _chat(settings: Settings, more_keys: Sequence[str] = ()) -> OpenAIChat:
    from chathands.upstreams.openai_chat import OpenAIChat

    model = settings.model
    assert model.base_url is not None
    return OpenAIChat(
        model.base_url,
        name=model.name or UNNAMED,
        api_key=model.api_key.get_secret_value() if model.api_key else None,
        more_keys=more_keys,
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
        context=local_context(settings),
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


def local_context(settings: Settings) -> int:
    """Tokens the local model is started with: what the settings say, if they say anything."""
    model = settings.model
    return model.context if "context" in model.model_fields_set else LOCAL_CONTEXT


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
        return f"{weights.name}（{where}，模式 {mode}，上下文 {local_context(settings)}）"
    host = urlsplit(model.base_url).hostname or "?"
    name = settings.entry or model.name or f"{UNNAMED}，没有设置 CHATHANDS__MODEL__NAME"
    return f"{name}（{host}，模式 {mode}，上下文 {model.context}）"
