"""The layer contract holds, and a forbidden import is really seen."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def lint(where: Path) -> subprocess.CompletedProcess[str]:
    script = "from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", script, "--no-cache"],
        cwd=where,
        env={"PYTHONPATH": str(where), "PATH": "", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(
        ROOT / "chathands", tmp_path / "chathands", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contract_is_kept(copy: Path):
    result = lint(copy)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("emulation/review.py", "import asyncio"),
        ("emulation/contract.py", "import chathands.settings"),
        ("schema.py", "import time"),
        ("toolbox/render.py", "import chathands.store"),
        ("agent/fallback.py", "import nonebot"),
        ("conversation.py", "import chathands.schema"),
    ],
)
def test_a_planted_import_fails(copy: Path, file: str, line: str):
    path = copy / "chathands" / file
    text = path.read_text("utf-8")
    marker = "from __future__ import annotations\n"
    assert marker in text
    path.write_text(text.replace(marker, f"{marker}\n{line}\n", 1), "utf-8")
    result = lint(copy)
    assert result.returncode != 0
    assert "BROKEN" in result.stdout
