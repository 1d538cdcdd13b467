"""Takes secrets out of what is logged, audited or shown.

Two strengths: `secrets()` knows only values from the settings and can run over any result without
harming it; `text()` also hides what looks like a secret, for logs, errors and audit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from chathands.settings import Settings

HIDDEN = "***"
SHORTEST = 6
"""Characters a value needs to be looked for; hiding every `abc` would make texts unreadable."""

_QUERY_SECRET = re.compile(
    r"(?i)\b(access_token|api_?key|token|key|sign|secret|password|passwd|pwd)=[^&\s\"'）)]+"
)
_LOOKS_SECRET = re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}|\bsk-[\w-]{8,}|\bSEC[0-9a-f]{16,}")
_SECRET_KEY = re.compile(
    r"(?i)pass(word|wd)|^pwd$|secret|(?<!max_)token|api_?key|authorization|cookie|密码|口令|密钥|令牌"
)
_PATH = re.compile(r"(?<![\w/:.])/(?:[\w.+@-]+/)+[\w.+@-]+|\b[A-Za-z]:\\[^\s\"'，。]+")


class Redactor:
    """`values` are the secrets; `directories` are hidden from sentences along with them."""

    def __init__(self, values: Iterable[str] = (), directories: Iterable[Path] = ()) -> None:
        found = {value for value in values if len(value) >= SHORTEST}
        self._values = _either(found)
        self._directories = _either({str(d) for d in directories if len(str(d)) > 1})

    @classmethod
    def of(cls, settings: Settings) -> Redactor:
        """Every SecretStr of the settings and of chathands.toml, API tokens, and the tokens inside
        secret addresses."""
        directories = (settings.data_dir, settings.state_dir, settings.tools_dir)
        secrets = [*_secrets_in(settings), *_secrets_in(settings.models)]
        return cls(secrets, [d.resolve() for d in directories])

    def secrets(self, text: str) -> str:
        return self._values.sub(HIDDEN, text) if self._values else text

    def text(self, text: str) -> str:
        text = self.secrets(text)
        text = _QUERY_SECRET.sub(lambda m: f"{m[1]}={HIDDEN}", text)
        return _LOOKS_SECRET.sub(lambda m: (m[1] or "") + HIDDEN, text)

    def sentence(self, text: str) -> str:
        """For a failure shown to a model or person: no secret, and no path of this machine."""
        text = self.text(text)
        if self._directories:
            text = self._directories.sub("…", text)
        return _PATH.sub("…", text)

    def arguments(self, value: Any, *, key: str = "") -> Any:
        """A JSON value with secrets hidden, also by the names of their keys."""
        if key and _SECRET_KEY.search(key) and value not in (None, "", False, True):
            return HIDDEN
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {str(k): self.arguments(v, key=str(k)) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.arguments(item) for item in value]
        return value


def _either(values: Iterable[str]) -> re.Pattern[str] | None:
    """Longest first, so that a token inside an address does not leave the rest of it standing."""
    ordered = sorted(values, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _secrets_in(value: Any) -> Iterator[str]:
    from pydantic import BaseModel, SecretStr

    from chathands.settings import DRY_RUN

    if isinstance(value, SecretStr):
        secret = value.get_secret_value()
        if secret == DRY_RUN:
            return  # a word, not an address
        yield secret
        if "://" in secret:
            yield from (part for _, part in parse_qsl(urlsplit(secret).query))
            # Some robots have their token as the end of the path.
            yield from (part for part in urlsplit(secret).path.split("/") if len(part) >= 16)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            item = getattr(value, name)
            if name == "tokens" and isinstance(item, Mapping):
                yield from map(str, item)  # API tokens are keys, not values
            yield from _secrets_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _secrets_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item)
