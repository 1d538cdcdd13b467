"""What the Excel tools say about themselves: everything, and in few words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chathands.schema import compile_schema
from chathands.settings import Settings
from chathands.toolbox import Tool, load_tools

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tool]:
    directory = tmp_path_factory.mktemp("tools")
    shutil.copytree(ROOT / "tools" / "excel", directory / "excel")
    return dict(load_tools(directory, Settings()).generation.tools)


def test_all_are_reads_with_a_description_for_everything(tools: dict[str, Tool]) -> None:
    assert set(tools) == {
        "aggregate_excel_data",
        "compare_excel_files",
        "draw_excel_chart",
        "export_excel_data",
        "list_excel_files",
        "read_excel_data",
        "write_excel_file",
    }
    for each in tools.values():
        spec = each.spec(Settings())
        assert spec.side_effect == "none"
        assert all(p["description"] for p in spec.parameters["properties"].values())
        assert spec.examples


def test_a_single_name_will_do_for_a_list(tools: dict[str, Tool]) -> None:
    schema = compile_schema(tools["aggregate_excel_data"].spec(None).parameters)
    checked = schema.check(
        {
            "file_path": "a.xlsx",
            "function": "sum",
            "columns": "金额",
            "group_by": "区域",
            "top_n": "3",
        }
    )
    assert checked.problems == ()
    assert checked.arguments["group_by"] == ["区域"]
    assert checked.arguments["top_n"] == 3


def test_optional_parameters_say_no_more_than_that(tools: dict[str, Tool]) -> None:
    """A local model reads every token of them at each cold start."""
    for each in tools.values():
        spec = each.spec(None)
        optional = [
            property_
            for name, property_ in spec.parameters["properties"].items()
            if name not in spec.parameters.get("required", ())
        ]
        assert optional or each.name == "write_excel_file"
        assert not any({"default", "anyOf"} & set(property_) for property_ in optional)
        told = spec.description + "".join(
            property_["description"] for property_ in spec.parameters["properties"].values()
        )
        assert len(told) < 400


def test_the_first_example_ranks_by_totals(tools: dict[str, Tool]) -> None:
    """The first one is what the contract shows; small models rank by the largest single row."""
    spec = tools["aggregate_excel_data"].spec(None)
    assert "最多" in spec.examples[0].request
    assert spec.examples[0].arguments["function"] == "sum"
    assert spec.examples[0].arguments["group_by"]
    told = spec.parameters["properties"]["function"]["description"]
    assert "谁最多都用它" in told
    assert "max/min 只是单独一行" in told
