"""Downloads from addresses somebody else names: inside is refused wherever it shows up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chathands.errors import ToolDenied, ToolFailed
from chathands.toolbox import outside
from chathands.toolbox.outside import download, is_public


class Server:
    """Answers each path with fixed bytes and keeps what was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.origin = ""

    def page(self, path: str, body: bytes, status: str = "200 OK", **headers: str) -> str:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.pages[path] = "\r\n".join([*lines, "", ""]).encode() + body
        return self.origin + path

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a client that is refused hangs up at once
        finally:
            writer.close()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split()[1].decode()
        self.asked.append(path)
        if path == "/silent":
            await reader.read()
        writer.write(self.pages.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
        await writer.drain()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    async with await asyncio.start_server(one.serve, "127.0.0.1", 0) as listening:
        one.origin = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield one


async def test_a_trusted_origin_is_read_whole(server: Server):
    url = server.page("/a", b"x" * 5000)
    assert await download(url, limit=5000, seconds=2, trusted=[server.origin]) == b"x" * 5000


async def test_an_untrusted_port_is_not_even_asked(server: Server):
    with pytest.raises(ToolDenied):
        await download(server.page("/a", b"x"), limit=10, seconds=2)
    assert server.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://0/",
        "http://127.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://10.0.0.8/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.100.100.200/",
        "http://[fd00::1]/",
        "http://224.0.0.1/",
        "https://192.168.1.1/",
        "http://qq.com@127.0.0.1/",
        "http://user:word@example.com/",
        "http://example.com:6379/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "ftp://example.com/",
        "//127.0.0.1/",
        "127.0.0.1",
        "",
        "http://",
        "http://ex ample.com/",
        "http://例子.com/",
        "http://127.0.0.1/\r\nX: y",
        "http://example.com/" + "a" * 5000,
    ],
)
async def test_addresses_inside_and_odd_ones_are_denied(url):
    with pytest.raises(ToolDenied) as denied:
        await download(url, limit=10, seconds=2)
    assert "127.0" not in denied.value.sentence


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
        ("64:ff9b::808:808", True),
        ("198.18.0.1", False),
        ("0.0.0.0", False),
        ("fe80::1%eth0", False),
        ("ff02::1", False),
        ("no address", False),
    ],
)
def test_what_is_public(address, public):
    assert is_public(address) is public


async def test_a_redirect_is_looked_at_like_the_first_address(server: Server, monkeypatch):
    away = server.page("/away", b"", "302 Found", Location="http://169.254.169.254/")
    with pytest.raises(ToolDenied):
        await download(away, limit=10, seconds=2, trusted=[server.origin])
    server.page("/end", b"here")
    near = server.page("/near", b"", "301 Moved", location="/end")
    assert await download(near, limit=10, seconds=2, trusted=[server.origin]) == b"here"
    loop = server.page("/loop", b"", "302 Found", Location="/loop")
    with pytest.raises(ToolFailed):
        await download(loop, limit=10, seconds=2, trusted=[server.origin])
    assert server.asked.count("/loop") == outside.REDIRECTS + 1


async def test_what_was_looked_at_is_what_is_connected_to(server: Server, monkeypatch):
    """A name is resolved once: the connection goes to that address, not to a second answer."""
    port = int(server.origin.rsplit(":", 1)[1])
    answers = [[(2, 1, 6, "", ("127.0.0.1", port))], [(2, 1, 6, "", ("10.9.9.9", port))]]

    async def resolve(host, port, **_):
        return answers.pop(0)

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    monkeypatch.setattr(outside, "is_public", lambda address: address == "127.0.0.1")
    monkeypatch.setitem(outside.PORTS, "http", port)
    server.page("/a", b"public")
    assert await download(f"http://files.example:{port}/a", limit=10, seconds=2) == b"public"
    assert len(answers) == 1


async def test_size_is_limited_whether_announced_or_not(server: Server):
    url = server.page("/big", b"x" * 2000)
    with pytest.raises(ToolFailed, match="上限"):
        await download(url, limit=1999, seconds=2, trusted=[server.origin])
    server.pages["/sly"] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 2000
    with pytest.raises(ToolFailed, match="上限"):
        await download(server.origin + "/sly", limit=1999, seconds=2, trusted=[server.origin])


async def test_refusals_and_silence_are_one_sentence(server: Server):
    trusted = [server.origin]
    for path in ("/none", "/silent", "/junk"):
        server.pages["/junk"] = b"junk\r\n\r\n"
        with pytest.raises(ToolFailed) as failed:
            await download(server.origin + path, limit=10, seconds=0.2, trusted=trusted)
        assert "127.0.0.1" not in failed.value.sentence
