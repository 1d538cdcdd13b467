"""Builds a generation from the modules and packages in the tools directory, aside from the old."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from chathands.conversation import ToolSpec
from chathands.errors import ToolLoadError
from chathands.toolbox.modules import ModuleSpace
from chathands.toolbox.registry import Generation
from chathands.toolbox.tool import Tool

if TYPE_CHECKING:
    from chathands.settings import Settings


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The new generation, and one error for each file (or doubled name) that is not in it."""

    generation: Generation
    errors: tuple[ToolLoadError, ...] = ()


def load_tools(
    directory: Path, settings: Settings, previous: Generation | None = None
) -> LoadReport:
    """Load every tool file; never raises for what is in them.

    A file that does not load keeps serving what it gave in `previous`. A name belongs to the file
    that had it before, else to the first by file name. Files starting with `_` are helpers. The
    caller swaps the generation in.
    """
    previous = previous or Generation()
    built = _Build(previous)
    if not directory.is_dir():
        built.errors.append(ToolLoadError("工具目录不存在", file=str(directory)))
        return built.report()
    directory = directory.resolve()
    # One fresh space for all, so that files may share helpers and never see an older load.
    space = ModuleSpace(directory, previous.number + 1)
    for entry in _entries(directory):
        found = _load(space, entry, settings)
        if isinstance(found, ToolLoadError):
            built.errors.append(found)
            built.keep(_owner(entry))
        else:
            built.add(_owner(entry), found, space)
    return built.report()


_Found = list[tuple[Tool, ToolSpec]]


class _Build:
    """A generation in the making: what each file offers, and who gets each name."""

    def __init__(self, previous: Generation) -> None:
        self.previous = previous
        self.errors: list[ToolLoadError] = []
        self._offers: dict[str, dict[str, tuple[Tool, ToolSpec]]] = {}
        self._held: dict[str, Any] = {}

    def add(self, owner: str, found: _Found, space: ModuleSpace) -> None:
        self._held[owner] = space
        for tool, spec in found:
            offers = self._offers.setdefault(tool.name, {})
            if owner in offers:
                reason = f"工具名 {tool.name} 在这里出现了两次，只用了第一个"
                self.errors.append(ToolLoadError(reason, file=owner, line=tool.line))
            else:
                offers[owner] = (tool, spec)

    def keep(self, owner: str) -> None:
        """What this file gave before."""
        if owner not in self.previous.held:
            return
        self._held[owner] = self.previous.held[owner]
        for name, its in self.previous.owners.items():
            if its == owner:
                offer = (self.previous.tools[name], self.previous.specs[name])
                self._offers.setdefault(name, {})[owner] = offer

    def report(self) -> LoadReport:
        tools, specs, owners = {}, {}, {}
        for name, offers in sorted(self._offers.items()):
            before = self.previous.owners.get(name)
            owner = before if before in offers else next(iter(offers))
            tools[name], specs[name] = offers[owner]
            owners[name] = owner
            for other, (tool, _) in offers.items():
                if other != owner:
                    reason = f"工具名 {name} 已属于 {owner}，这里的没有加载"
                    self.errors.append(ToolLoadError(reason, file=other, line=tool.line))
        generation = Generation(
            self.previous.number + 1,
            MappingProxyType(tools),
            MappingProxyType(specs),
            MappingProxyType(owners),
            MappingProxyType(self._held),
        )
        return LoadReport(generation, tuple(self.errors))


def _entries(directory: Path) -> Iterator[Path]:
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith(("_", ".")):
            continue
        if (entry.suffix == ".py" and entry.is_file()) or (entry / "__init__.py").is_file():
            yield entry


def _owner(entry: Path) -> str:
    return entry.name if entry.suffix == ".py" else f"{entry.name}/"


def _load(space: ModuleSpace, entry: Path, settings: Settings) -> _Found | ToolLoadError:
    if not entry.name.removesuffix(".py").isidentifier():
        return ToolLoadError("文件名要是合法的模块名（字母、数字、下划线）", file=_owner(entry))
    try:
        modules = space.load(entry)
        return [(tool, tool.spec(settings)) for tool in _tools_in(modules)]
    except ToolLoadError as error:
        return _relative(error, space.directory)
    except KeyboardInterrupt:  # from the keyboard
        raise
    except BaseException as error:
        # A module may raise anything while it is imported (a Rust extension's panic is not even an
        # Exception); the bot goes on with what it has.
        file, line = _place(error, space.directory, entry)
        detail = f"{type(error).__name__}: {error}".rstrip(": ")
        if isinstance(error, ModuleNotFoundError):
            missing = (error.name or "").removeprefix(f"{space.name}.")
            detail = f"找不到模块 {missing}；第三方的请先安装，同目录的要用相对导入"
        elif isinstance(error, SyntaxError):
            detail = f"语法错误：{error.msg}"
        return ToolLoadError(detail, file=file, line=line)


def _tools_in(modules: list[ModuleType]) -> list[Tool]:
    """Tools that these modules define; a tool imported from another file stays that file's."""
    package = modules[0].__name__
    found: dict[int, Tool] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Tool) and f"{value.module}.".startswith(f"{package}."):
                found.setdefault(id(value), value)
    return list(found.values())


def _place(error: BaseException, directory: Path, entry: Path) -> tuple[str, int | None]:
    """The deepest line of the tools directory that the error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return _shown(error.filename, directory), error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(directory):
            return _shown(frame.filename, directory), frame.lineno
    return _owner(entry), None


def _relative(error: ToolLoadError, directory: Path) -> ToolLoadError:
    return ToolLoadError(error.detail, file=_shown(error.file, directory), line=error.line)


def _shown(file: str, directory: Path) -> str:
    """A path as an admin sees it in the tools directory."""
    path = Path(file)
    return path.relative_to(directory).as_posix() if path.is_relative_to(directory) else path.name
