"""What a tool file declares to need: looked up before it runs, named with the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from chathands.toolbox import LoadReport, load_tools
from tests.toolbox.kit import settings_in, write

TOOL = '''
from chathands import tool
import made_up_for_this

@tool(side_effect="none")
async def ask() -> str:
    """问一问。"""
    return made_up_for_this.ANSWER
'''


class Index:
    """A directory of installed distributions, on the path of the interpreter."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def install(self, name: str, version: str, requires: str = "", module: str = "") -> None:
        info = self.directory / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
        (info / "METADATA").write_text(metadata)
        if module:
            (self.directory / f"{module}.py").write_text("ANSWER = '有了'\n")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    return Index(directory)


def load(tmp_path: Path, requires: str, body: str = "x = 1\n", **files: str) -> LoadReport:
    settings = settings_in(tmp_path)
    write(settings.tools_dir, {"db.py": f"{requires}\n{body}", **files})
    return load_tools(settings.tools_dir, settings)


async def test_a_missing_one_is_named_with_its_command_and_is_no_crash(
    tmp_path: Path, index: Index
):
    declared = 'REQUIRES = ["made-up-for-this>=2", "pydantic"]'
    (error,) = load(tmp_path, declared, TOOL).errors
    assert error.file == "db.py"
    assert "made-up-for-this>=2（没有安装）" in error.sentence
    assert 'python -m pip install "made-up-for-this>=2"，' in error.sentence
    index.install("made-up-for-this", "2.1", module="made_up_for_this")
    report = load(tmp_path, declared, TOOL)
    assert report.errors == ()
    context: object = None
    assert await report.generation.tools["ask"].run(context, {}) == "有了"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requirement", "installed", "met"),
    [
        ("made-up>=2", "2.0", True),
        ("made_up>=2", "2.0.1", True),
        ("Made.Up>=2", "2", True),
        ("made-up>=2", "1.9", False),
        ("made-up>=2", "3.0rc1", True),
        ("made-up==1.*", "2.0", False),
        ("made-up", "not a version", True),
        ("made-up>=1", "not a version", False),
        ("made-up @ https://example.com/made-up.zip", "1", True),
        ('nothing-like-it>=1; python_version < "3"', "1", True),
        ('made-up>=2; python_version > "3"', "1", False),
    ],
)
def test_versions_names_and_markers_are_those_of_dependency_specifiers(
    tmp_path: Path, index: Index, requirement: str, installed: str, met: bool
):
    index.install("made-up", installed)
    report = load(tmp_path, f"REQUIRES = [{requirement!r}]")
    assert (report.errors == ()) is met
    if not met:
        assert f"装的是 {installed}" in report.errors[0].sentence
        assert [each.name for each in report.missing] == ["made-up"]


@pytest.mark.parametrize("there", [True, False])
def test_an_extra_asks_for_what_it_brings(tmp_path: Path, index: Index, there: bool):
    index.install(
        "made-up", "2", "Provides-Extra: fast\nRequires-Dist: made-fast>=1; extra == 'fast'\n"
    )
    if there:
        index.install("made-fast", "1.0")
    report = load(tmp_path, "REQUIRES = ['made-up[fast]>=2']")
    assert (report.errors == ()) is there
    if not there:
        assert '"made-up[fast]>=2"' in report.errors[0].sentence


def test_several_files_and_a_package_name_theirs_and_the_rest_loads(tmp_path: Path):
    report = load(
        tmp_path,
        "REQUIRES: tuple[str, ...] = ('nothing-one', 'nothing-two>1')",
        **{
            "pack/__init__.py": "",
            "pack/deep/__init__.py": "",
            "pack/deep/_help.py": "REQUIRES = ['nothing-three']\nimport nothing_three\n",
            "good.py": "from chathands import tool\n\n@tool(side_effect='none')\n"
            "async def good() -> str:\n    '''好。'''\n    return ''\n",
        },
    )
    one, other = report.errors
    assert 'install "nothing-one" "nothing-two>1"' in one.sentence
    assert (other.file, "nothing-three" in other.sentence) == ("pack/", True)
    names = [each.name for each in report.missing]
    assert names == ["nothing-one", "nothing-two", "nothing-three"]
    assert list(report.generation.tools) == ["good"]


@pytest.mark.parametrize(
    "declared",
    [
        "\nREQUIRES = 'sqlglot'",
        "\nREQUIRES = [name for name in ()]",
        "\nREQUIRES = ['a', 3]",
        "\nREQUIRES = ['not a requirement; at all']",
        "\nREQUIRES = ['a\"; rm -rf / \"']",
        "\nREQUIRES = ['']",
    ],
)
def test_a_declaration_that_is_none_is_said_with_its_line(tmp_path: Path, declared: str):
    (error,) = load(tmp_path, declared).errors
    assert (error.file, error.line) == ("db.py", 2)
    assert "REQUIRES" in error.sentence


@pytest.mark.parametrize(
    "text", ["# REQUIRES = ['nothing']", "def f():\n    REQUIRES = ['nothing']", "REQUIRES: list"]
)
def test_what_only_looks_like_a_declaration_asks_for_nothing(tmp_path: Path, text: str):
    assert load(tmp_path, text).errors == ()


def test_a_file_that_is_no_python_is_left_to_the_import(tmp_path: Path):
    (error,) = load(tmp_path, "REQUIRES = ['nothing'").errors
    assert "语法错误" in error.sentence
