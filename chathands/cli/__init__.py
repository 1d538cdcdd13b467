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


SERVING = frozenset({"serve", "mcp"})
"""Commands that go on for days: what docs/ promises to be in the log (a server that was lost, a
tool that is paused, a rule for a tool that is not there) is a warning, with its time. The others
answer whoever typed them, who needs no log beside the answer."""


@app.callback()
def _root(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="显示详细日志。")] = False,
) -> None:
    serving = context.invoked_subcommand in SERVING
    quiet = logging.WARNING if serving else logging.ERROR
    logging.basicConfig(
        level=logging.INFO if verbose else quiet,
        format=f"{'%(asctime)s ' if serving else ''}%(levelname)s %(name)s %(message)s",
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
