"""Allowed values that only the settings know, put into a schema as `enum` per generation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chathands.settings import Settings

_settings: ContextVar[Settings | None] = ContextVar("settings_of_choices", default=None)


@contextmanager
def choices_from(settings: Settings | None) -> Iterator[None]:
    """While open, schemas are written with the values `settings` give; None leaves them open."""
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)


@dataclass(frozen=True, slots=True)
class Choices:
    """`Annotated[str, Choices(configured_robots), Field(...)]`.

    `values` gets the settings and returns the allowed texts. When it returns none, the parameter
    stays open: the tool is then the one to say what is not configured, which a person can act on,
    while an empty enum would only make every call wrong.
    """

    values: Callable[[Settings], Iterable[str]]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core_schema)
        settings = _settings.get()
        if settings is not None and (allowed := list(dict.fromkeys(self.values(settings)))):
            _allow_only(schema, allowed)
        return schema


def _allow_only(schema: dict[str, Any], allowed: list[str]) -> None:
    """Write the enum where text stands: the schema itself, a list's items, or a branch of anyOf."""
    if schema.get("type") == "string":
        schema["enum"] = allowed
    elif isinstance(schema.get("items"), dict):
        _allow_only(schema["items"], allowed)
    else:
        for branch in schema.get("anyOf", ()):
            _allow_only(branch, allowed)
