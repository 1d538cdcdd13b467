"""Our HTTP face: chat completions with real tool calls from an upstream that has none."""

from chathands.server.app import create_app as create_app

__all__ = ["create_app"]
