"""schemathesis against everything that is on the OpenAPI page, over a socket. A ring of its own:

    pip install schemathesis
    python -m tests.server.schema_ring [--examples N]

It fails on a 500, on a status, type or body the page does not know, on a server that has gone away,
and on a request that is let in without its token.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode

from chathands.agent.toolbox import build_toolbox
from chathands.server import create_app
from chathands.server.auth import Auth
from chathands.server.connection import serve_options
from chathands.server.tools_api import ToolsApi
from chathands.settings import ApiToken
from chathands.store.responses import Responses
from chathands.upstreams.openai_chat import OpenAIChat
from tests.server.kit import settings_in
from tests.standins.model_server import ModelServer

WANTED = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
TOKEN = "ring-token"


class Served(threading.Thread):
    """The server in a loop of its own."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.directory = directory
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.server: uvicorn.Server | None = None
        self.up = threading.Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        tokens = {TOKEN: ApiToken(name="ring", rate=1_000_000, role="admin", may_approve=True)}
        configured = settings_in(self.directory, tokens=tokens, job_after=0.2)
        async with (
            ModelServer(lambda body: "好") as model,
            build_toolbox(configured, owner="server") as toolbox,
        ):
            auth = Auth(configured.api.tokens)
            tools = ToolsApi(toolbox, configured, auth)
            upstream = OpenAIChat(model.url, name="plain")
            responses = Responses.configured(configured)
            app = create_app(upstream, auth=auth, tools=tools, seconds=5, responses=responses)
            options: dict[str, Any] = serve_options() | {"lifespan": "off"}
            self.server = uvicorn.Server(uvicorn.Config(app, log_level="critical", **options))
            self.up.set()
            await self.server.serve([self.listening])
            await tools.aclose()
            await upstream.aclose()
            if responses is not None:
                await responses.aclose()

    def stop(self) -> None:
        assert self.server is not None
        self.server.should_exit = True
        self.join(10)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=60)
    parser.add_argument("--only", default="", help="a part of the operation's name")
    given_options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        served = Served(Path(directory))
        served.start()
        served.up.wait(30)
        try:
            return check(served.address, given_options.examples, given_options.only)
        finally:
            served.stop()


def check(address: str, examples: int, only: str) -> int:
    """How many operations did not hold."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json", headers=headers)
    wanted = [CHECKS.get_one(name) for name in WANTED]
    failed = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if only not in operation.label:
            continue
        fault = None
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            fault = fault or _run(operation, mode, headers, wanted, examples)
        failed += fault is not None
        print(f"{'FAIL' if fault else 'ok  '} {operation.label}", flush=True)  # noqa: T201
        if fault:
            print(f"     {fault}", flush=True)  # noqa: T201
    return failed


def _run(
    operation: Any, mode: GenerationMode, headers: dict[str, str], wanted: list[Any], examples: int
) -> str | None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    def holds(case: Any) -> None:
        response = case.call(headers=headers)
        assert response.status_code != 500, response.text
        case.validate_response(response, checks=wanted, headers=headers)
        if operation.path not in ("/health", "/health/ready"):
            let_in = case.call(headers={"Authorization": "Bearer no"})
            assert let_in.status_code in (401, 404, 405), (let_in.status_code, let_in.url)
            assert let_in.status_code != 404 or "nothing at this path" in let_in.text

    try:
        holds()
    except BaseException as error:  # whatever it is, the ring goes on and says so
        if isinstance(error, KeyboardInterrupt) or "Unsatisfiable" in type(error).__name__:
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
        return f"{mode.name}: {error!r} {getattr(error, 'exceptions', '')}"[:3000]
    return None


if __name__ == "__main__":
    sys.exit(main())
