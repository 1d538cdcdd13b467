"""The command line: `chathands chat | serve | approvals | eval | trace | tools | doctor` …"""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from chathands.errors import ChatHandsError

app = typer.Typer(
    name="chathands",
    help="让只会聊天的模型长出手。",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="显示详细日志。")] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.ERROR,
        format="%(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    # At INFO httpx writes whole URLs, and a webhook's URL holds its token.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _register() -> None:
    from chathands.cli import approvals, audit, chat, doctor, evaluate, mcp, serve, tools, trace

    chat.register(app)
    serve.register(app)
    approvals.register(app)
    audit.register(app)
    evaluate.register(app)
    trace.register(app)
    tools.register(app)
    doctor.register(app)
    mcp.register(app)


def main() -> None:
    """Entry point: mistakes in settings and files end in one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A Windows console in a legacy code page must not kill the program over one character.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    _register()
    try:
        app()
    except ChatHandsError as error:
        logging.getLogger("chathands").debug("failed", exc_info=error)
        typer.echo(error.sentence, err=True)
        sys.exit(2)
