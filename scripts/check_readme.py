"""Checks both READMEs: same commands, living links, known settings. Standard library only.

`--print NAME` prints the command below the marker `<!-- command: NAME -->` in README.md, so that
CI runs exactly what a person would type.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READMES = (ROOT / "README.md", ROOT / "README.en.md")
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
KEY = re.compile(r"\bCHATHANDS__[A-Z_]+\b")


def command(text: str, name: str) -> str:
    """The code block that follows the marker; raises SystemExit when there is none."""
    marker = f"<!-- command: {name} -->"
    _, found, rest = text.partition(marker)
    block = BLOCK.search(rest)
    if not found or block is None:
        sys.exit(f"README.md has no command marked {marker}")
    return block.group(1).strip()


def problems() -> list[str]:
    """One sentence for each thing that is wrong."""
    found: list[str] = []
    texts = {path: path.read_text("utf-8") for path in READMES}
    zh, en = (BLOCK.findall(text) for text in texts.values())
    if len(zh) != len(en):
        found.append(f"README.md has {len(zh)} code blocks, README.en.md has {len(en)}")
    for name in ("chat", "chat-windows", "test", "test-windows"):
        commands = {command(text, name) for text in texts.values()}
        if len(commands) != 1:
            found.append(f"the command {name} differs between the two READMEs")
        if any("\n" in line for line in commands):
            found.append(f"the command {name} is more than one line")
    documents = [*READMES, *sorted((ROOT / "docs").glob("*.md"))]
    example = (ROOT / ".env.example").read_text("utf-8")
    for path in documents:
        text = path.read_text("utf-8")
        for target in LINK.findall(text):
            if not (path.parent / target).exists():
                found.append(f"{path.name} links to {target}, which does not exist")
        for key in sorted(set(KEY.findall(text))):
            if key.rstrip("_") not in example:
                found.append(f"{path.name} names {key}, which .env.example does not have")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", dest="name")
    name = parser.parse_args().name
    if name:
        print(command(READMES[0].read_text("utf-8"), name))
        return
    found = problems()
    for problem in found:
        print(problem)
    if found:
        sys.exit(1)
    print("README: ok")


if __name__ == "__main__":
    main()
