"""The page on the library runs from top to bottom as it stands."""

import ast
import re
from pathlib import Path

import chathands

PAGE = (Path(__file__).parents[1] / "docs" / "library.md").read_text("utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_snippets_run_in_order_and_hold_what_they_say():
    names: dict[str, object] = {}
    for snippet in SNIPPETS:
        exec(compile(snippet, "docs/library.md", "exec"), names)
    assert len(SNIPPETS) >= 5
    assert all("assert" in snippet for snippet in SNIPPETS[1:])


def test_every_name_it_imports_is_public():
    nodes = [node for snippet in SNIPPETS for node in ast.walk(ast.parse(snippet))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    assert {node.module for node in imports} == {"chathands"}
    names = {alias.name for node in imports for alias in node.names}
    assert names <= set(chathands.__all__)
    assert {"Turn", "parse_reply", "review_reply", "ToolResult", "Status"} <= names
