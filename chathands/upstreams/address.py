"""An upstream's address and key, as an admin writes them; and what its headers say about time."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import ipaddress
import time

import httpx

from chathands.errors import ConfigError

_CHAT_PATH = "/chat/completions"


def chat_url(base_url: str) -> httpx.URL:
    """Where requests are posted. Raises ConfigError."""
    url = None
    with contextlib.suppress(httpx.InvalidURL):
        url = httpx.URL(base_url.strip())
    if url is None or url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(
            "the model's base_url is no http address",
            sentence="CHATHANDS__MODEL__BASE_URL 不是完整的 http(s) 地址，请改成例如 "
            "https://api.example.com/v1 的样子。",
        )
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith(_CHAT_PATH) else path + _CHAT_PATH)


def checked_key(key: str | None) -> str | None:
    """The key without the blanks that copying adds.

    What no header can carry would otherwise fail at the first request, with the key in the text.
    """
    key = (key or "").strip()
    if any(not "!" <= character <= "~" for character in key):
        raise ConfigError(
            "the model's api_key has characters that no header can carry",
            sentence="CHATHANDS__MODEL__API_KEY 里有空格、换行或非英文字符，请重新复制密钥。",
        )
    return key or None


def basic(url: httpx.URL) -> str | None:
    """The Authorization header for a user and password written into the address."""
    if not url.userinfo:
        return None
    pair = f"{url.username}:{url.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def query_values(url: httpx.URL) -> list[str]:
    """Long enough to be a secret; `api-version=1` is none."""
    return [value for _, value in url.params.multi_items() if len(value) >= 8]


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header (RFC 9110: seconds or a date), None if there are none."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        parsed = email.utils.parsedate_tz(value)
        if parsed is None:
            return None
        seconds = email.utils.mktime_tz(parsed) - time.time()
    return max(0.0, seconds) if seconds == seconds else None
