"""The figures of the shipped cases in the docs are the ones that the command prints.

A block between the two marks holds rows of the command's first table as they were printed (its head
may be in other words): `chathands eval --replay tests/data/eval_recorded.jsonl`, with `--compare`
for more rows than one.
"""

import re

from chathands.evals.variants import VARIANTS
from tests.cli.test_evaluate import RECORDED, ROOT, cli, recorded_variants

PAGES = ("docs/evaluation.md", "README.md")
"""Both have such a block, or neither."""
ALSO = "README.en.md"
BLOCK = re.compile(r"<!-- eval: shipped -->\n(.*?)<!-- /eval -->", re.DOTALL)
MARK = re.compile(r"<!-- (?:eval: shipped|/eval) -->")


def rows_in(text: str) -> list[str]:
    """The rows of tables that begin with a variant's name."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line.startswith("|") and first_cell(line) in VARIANTS]


def first_cell(line: str) -> str:
    return line.strip("|").partition("|")[0].strip(" `")


def not_printed(page: str, printed: str) -> list[str]:
    """What is wrong with a page: rows of its blocks that were not printed, blocks without ours."""
    known = set(rows_in(printed))
    wrong = []
    for block in BLOCK.findall(page):
        rows = rows_in(block)
        wrong += [row for row in rows if row not in known]
        if "emulated" not in map(first_cell, rows):
            wrong.append("no row of emulated")
    if len(MARK.findall(page)) != 2 * len(BLOCK.findall(page)):
        wrong.append("a mark without its partner")
    return wrong


async def test_figures_in_the_docs_are_what_the_command_prints():
    pages = {name: (ROOT / name).read_text("utf-8") for name in (*PAGES, ALSO)}
    marked = [name for name, text in pages.items() if MARK.search(text)]
    assert set(PAGES) <= set(marked) or not marked, f"only in {marked}"
    if not marked:
        return
    result = await cli("--replay", str(RECORDED), "--compare", ",".join(recorded_variants()))
    assert result.exit_code == 0, repr(result.exception)
    assert [(name, not_printed(pages[name], result.stdout)) for name in marked] == [
        (name, []) for name in marked
    ]


def test_a_figure_that_was_not_printed_is_found():
    row = "| emulated | 9/14 64% [39%-84%] | 4/4 100% [51%-100%] | 9/18 50% [29%-71%] | 9.3 |"
    page = f"x\n<!-- eval: shipped -->\n| 方式 | 全对 |\n|---|---|\n{row}\n<!-- /eval -->\ny"
    assert not_printed(page, f"{row}\n") == []
    (wrong,) = not_printed(page, row.replace("9/14", "8/14"))
    assert "9/14" in wrong
    assert not_printed(page.replace("| emulated", "| other"), row) == ["no row of emulated"]
    assert not_printed(page.replace("<!-- /eval -->", ""), row) == ["a mark without its partner"]
