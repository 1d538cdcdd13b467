"""What of the log a person sees without asking for it."""

from __future__ import annotations

import logging

import pytest
from typer.testing import CliRunner

from chathands import cli


@pytest.mark.parametrize(
    ("typed", "level"),
    [
        (["serve"], logging.WARNING),
        (["mcp"], logging.WARNING),
        (["tools"], logging.ERROR),
        (["-v", "tools"], logging.INFO),
    ],
)
def test_what_serves_for_days_shows_warnings_and_what_answers_at_once_does_not(
    monkeypatch, typed: list[str], level: int
):
    given: dict[str, object] = {}
    monkeypatch.setattr(logging, "basicConfig", given.update)
    if not cli.app.registered_commands:
        cli._register()
    assert CliRunner().invoke(cli.app, [*typed, "--help"]).exit_code == 0
    assert given["level"] == level
    assert ("asctime" in str(given["format"])) == (level == logging.WARNING)
