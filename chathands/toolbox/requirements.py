"""What a tool file says it needs beside this package, looked up before the file is run.

    REQUIRES = ["sqlglot>=25", "openpyxl"]

The names are those of the package index and the form is that of dependency specifiers
(https://packaging.python.org/specifications/dependency-specifiers/).
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from chathands.errors import ToolLoadError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME = "REQUIRES"


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that is not met: the distribution that it fails for (of an extra, the one it
    brings), and the version of that which is installed, if any."""

    wanted: str
    name: str
    installed: str | None

    def __str__(self) -> str:
        there = f"装的是 {self.installed}" if self.installed else "没有安装"
        return f"{self.wanted}（{there}）"


def check_requirements(files: Mapping[Path, bytes]) -> tuple[Unmet, ...]:
    """What these sources declare and is not there, each once.

    Raises ToolLoadError for a declaration that is none.
    """
    found: dict[str, Unmet] = {}
    for file, source in files.items():
        for text, line in _declared(file, source):
            for unmet in _unmet(_parsed(text, file, line)):
                found.setdefault(unmet.wanted, unmet)
    return tuple(found.values())


def missing_sentence(unmet: Sequence[Unmet]) -> str:
    """What is missing, and the command that brings it."""
    named = "、".join(map(str, unmet))
    wanted = " ".join(f'"{each.wanted}"' for each in unmet)
    return (
        f"缺少依赖：{named}。请运行 python -m pip install {wanted}，装好后会自动加载，也可以发 重载"
    )


def has_changed(unmet: Iterable[Unmet]) -> bool:
    """Whether another version of any of these is installed now than there was."""
    unmet = list(unmet)
    if unmet:
        importlib.invalidate_caches()  # which go by the directory's time, to some milliseconds
    return any(_version(each.name) != each.installed for each in unmet)


def _declared(file: Path, source: bytes) -> Iterator[tuple[str, int]]:
    """Each requirement with its line. What is no Python is left to the import to complain of."""
    if NAME.encode() not in source:
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names: list[ast.expr] = node.targets
        elif isinstance(node, ast.AnnAssign):
            names = [node.target]
        else:
            continue
        if not any(isinstance(name, ast.Name) and name.id == NAME for name in names):
            continue
        if node.value is None:
            continue
        value = node.value
        if not isinstance(value, ast.List | ast.Tuple):
            raise _no_list(file, node.lineno)
        for each in value.elts:
            if not (isinstance(each, ast.Constant) and isinstance(each.value, str)):
                raise _no_list(file, each.lineno)
            yield each.value, each.lineno


def _no_list(file: Path, line: int) -> ToolLoadError:
    return ToolLoadError(
        f'{NAME} 要直接写成文字的列表，例如 {NAME} = ["sqlglot>=25"]', file=str(file), line=line
    )


def _parsed(text: str, file: Path, line: int) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        reason = f"{NAME} 里的 {text[:60]!r} 不是依赖的写法，例如 sqlglot>=25"
        raise ToolLoadError(reason, file=str(file), line=line) from None


def _unmet(requirement: Requirement) -> Iterator[Unmet]:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return
    installed = _version(requirement.name)
    if installed is None or not _fits(requirement, installed):
        yield Unmet(_wanted(requirement), requirement.name, installed)
        return
    for extra in requirement.extras:
        for each in _brought_by(requirement.name, extra):
            if not _is_there(each):
                yield Unmet(_wanted(requirement), each.name, _version(each.name))
                return


def _brought_by(name: str, extra: str) -> Iterator[Requirement]:
    """What an extra of an installed distribution asks for."""
    from packaging.requirements import InvalidRequirement, Requirement

    for text in metadata.requires(name) or ():
        try:
            each = Requirement(text)
        except InvalidRequirement:  # an old distribution; pip took it
            continue
        marker = each.marker
        if marker is not None and "extra" in str(marker) and marker.evaluate({"extra": extra}):
            yield each


def _is_there(requirement: Requirement) -> bool:
    installed = _version(requirement.name)
    return installed is not None and _fits(requirement, installed)


def _fits(requirement: Requirement, installed: str) -> bool:
    from packaging.version import InvalidVersion

    try:
        return requirement.specifier.contains(installed, prereleases=True)
    except InvalidVersion:
        return not requirement.specifier


def _wanted(requirement: Requirement) -> str:
    """Without its marker, whose quotes would end the command's."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
