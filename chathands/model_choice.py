"""Which upstream of `chathands.toml` the settings mean, and an entry of it as settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr

from chathands.errors import ConfigError
from chathands.models_file import ANY, FILE_NAME, Entry, ModelsFile, load_models
from chathands.settings import ModelSettings, Settings

_SHARED = ("mode", "temperature", "max_tokens", "context", "language")

_OWN_KEYS = {"BASE_URL": "base_url", "API_KEY": "api_key 或 api_key_env", "NAME": "model"}


def take_models(settings: Settings, directory: Path) -> Settings:
    """The settings with the entries of `chathands.toml` in `directory`, if there is one.

    `model` is then the entry that CHATHANDS__MODEL__NAME names, or the file's default, with what
    the environment says besides, which wins; an address there is an upstream of its own.
    Raises ConfigError.
    """
    file = load_models(directory)
    if file is None:
        return settings
    if settings.model.base_url is not None:
        return _with_models(settings, file.models, None)
    name = _entry_named(file, settings.model.name)
    given = settings.model.model_fields_set
    updates = {field: getattr(settings.model, field) for field in _SHARED if field in given}
    if settings.model.api_key is not None:
        updates["api_key"] = [settings.model.api_key]
    entry = file.models[name].model_copy(update=updates)
    entries = {**file.models, name: entry}
    model = as_model(name, entry)
    if model.name is None:
        model = model.model_copy(update={"name": settings.model.name})
    chosen = settings.model_copy(update={"model": model})
    return _with_models(chosen, entries, name)


def as_model(name: str, entry: Entry) -> ModelSettings:
    """The entry as the settings of one upstream; of several keys the first."""
    return ModelSettings(
        base_url=entry.base_url,
        api_key=SecretStr(entry.keys[0]) if entry.keys else None,
        name=entry.model or (None if name == ANY else name),
        **{field: getattr(entry, field) for field in _SHARED},
    )


def settings_for(settings: Settings, name: str) -> Settings:
    """The settings as if the entry `name` were the only upstream. Raises KeyError."""
    alone = settings.model_copy(update={"model": as_model(name, settings.models[name])})
    return _with_models(alone, settings.models, name)


def in_file_words(sentence: str, name: str) -> str:
    """`sentence`, which names keys of `.env`, for somebody who has this entry instead."""
    at = f"{FILE_NAME} 里 [models.{name}] 的 "
    for key, own in _OWN_KEYS.items():
        sentence = sentence.replace(f"CHATHANDS__MODEL__{key}", at + own)
    return sentence


def _with_models(settings: Settings, models: Mapping[str, Entry], chosen: str | None) -> Settings:
    copy = settings.model_copy()
    copy._models, copy._entry = MappingProxyType(dict(models)), chosen
    return copy


def _entry_named(file: ModelsFile, name: str | None) -> str:
    if name is None:
        return file.chosen
    if name in file.models and name != ANY:
        return name
    for other, entry in file.models.items():
        if name in entry.aliases:
            return other
    if ANY in file.models and name != ANY:
        return ANY
    raise ConfigError(
        f"no model {name} in {FILE_NAME}",
        sentence=f"{FILE_NAME} 里没有模型 {name}，有的是 {'、'.join(file.models)}；"
        "请改 CHATHANDS__MODEL__NAME（或 --model），或者在文件里加上它。",
    )
