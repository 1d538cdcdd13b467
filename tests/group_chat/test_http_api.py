"""The HTTP application on the bot's port is only there when it is asked for and safe."""

from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI
from nonebot.log import logger

from chathands.settings import ApiSettings, ApiToken, Settings

TOKENS = {"t": ApiToken(name="ci")}


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch):
    """Mounts with settings, on a driver that listens at `host`; gives its app and the log."""
    from plugins.http_api import face

    async def mount(host: str = "127.0.0.1", app: object = None, **api: object):
        settings = Settings(_env_file=None, api=ApiSettings(**api))  # type: ignore[arg-type, call-arg]
        server = FastAPI() if app is None else app
        config = SimpleNamespace(host=host, port=8080)
        monkeypatch.setattr(face, "load_settings", lambda: settings)
        monkeypatch.setattr(
            face, "get_driver", lambda: SimpleNamespace(server_app=server, config=config)
        )
        lines: list[str] = []
        handler = logger.add(lambda line: lines.append(str(line)), level=0)
        try:
            await face.HttpFace().mount()
        finally:
            logger.remove(handler)
        return server, "".join(lines)

    return mount


def served(app: FastAPI) -> bool:
    return any(type(route).__name__ == "Mount" for route in app.routes)


async def test_it_is_off_unless_asked_for(mounted):
    app, log = await mounted()
    assert not served(app)
    assert log == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::"])
async def test_other_machines_are_not_let_in_without_tokens(mounted, host):
    app, log = await mounted(host, on_bot_port=True)
    assert not served(app)
    assert "CHATHANDS__API__TOKENS" in log
    app, _ = await mounted(host, on_bot_port=True, tokens=TOKENS)
    assert served(app)


async def test_another_driver_is_told_what_it_takes(mounted):
    _, log = await mounted(app=object(), on_bot_port=True)
    assert "DRIVER=~fastapi" in log


async def test_until_the_agent_is_there_programs_are_told_to_come_again(mounted):
    app, _ = await mounted(on_bot_port=True)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        early = await client.get("/v1/models")
    assert early.status_code == 503
    assert early.headers["retry-after"] == "2"
    assert "error" in early.json()
