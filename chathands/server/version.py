"""Which version of the program answers, for those who ask it what it is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    """As installed; `0` where the package runs without having been."""
    try:
        return version("chathands")
    except PackageNotFoundError:
        return "0"
