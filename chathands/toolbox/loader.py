"""Builds a generation from the modules and packages in the tools directory, aside from the old."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from chathands.conversation import ToolSpec
from chathands.errors import ToolLoadError
from chathands.toolbox.imports import Hung, Imports
from chathands.toolbox.modules import ModuleSpace, sources_of
from chathands.toolbox.registry import Generation
from chathands.toolbox.requirements import Unmet, check_requirements, missing_sentence
from chathands.toolbox.tool import Tool

if TYPE_CHECKING:
    from chathands.settings import Settings


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The new generation, and one error for each file (or doubled name) that is not in it."""

    generation: Generation
    errors: tuple[ToolLoadError, ...] = ()
    missing: tuple[Unmet, ...] = ()
    """What files declare and is not there, or too old."""


def load_tools(
    directory: Path,
    settings: Settings,
    previous: Generation | None = None,
    *,
    imports: Imports | None = None,
    patient: bool = False,
    every: bool = False,
) -> LoadReport:
    """Load every tool file; never raises for what is in them, nor for a directory that is gone.

    A file that does not load keeps serving what it gave in `previous`. A name belongs to the file
    that had it before, else to the first by file name. Files starting with `_` are helpers. The
    caller swaps the generation in. `imports` remembers what hung the last time.
    `patient`: a file that is empty now keeps its tools, for editors and copies empty a file before
    they fill it.
    `every`: also tools whose `enabled_when` says no, for lists and checks.
    """
    previous = previous or Generation()
    imports = imports or Imports(settings.tool_import_seconds)
    built = _Build(previous, patient=patient, every=every)
    directory = directory.resolve()
    try:
        entries = list(_entries(directory))
    except OSError as error:
        # It may be about to be replaced; removing every tool would also end what is planned.
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        reason = "工具目录不存在" if gone else f"工具目录读不出来（{type(error).__name__}）"
        built.errors.append(ToolLoadError(reason, file=directory.name))
        for owner in previous.held:
            built.keep(owner)
        return built.report()
    importlib.invalidate_caches()  # something may have been installed since
    # One fresh space for all, so that files may share helpers and never see an older load.
    space = ModuleSpace(directory, previous.number + 1)
    for entry in entries:
        found = built.load(space, entry, settings, imports)
        if isinstance(found, ToolLoadError):
            built.errors.append(found)
            built.keep(_owner(entry))
        else:
            built.add(_owner(entry), found, space)
    return built.report()


_Found = list[tuple[Tool, ToolSpec, bool]]
"""With whether it is configured."""


class _Build:
    """A generation in the making: what each file offers, and who gets each name."""

    def __init__(self, previous: Generation, *, patient: bool, every: bool) -> None:
        self.previous = previous
        self._patient = patient
        self._every = every
        self.errors: list[ToolLoadError] = []
        self._offers: dict[str, dict[str, tuple[Tool, ToolSpec]]] = {}
        self._held: dict[str, Any] = {}
        self._unconfigured: dict[str, str] = {}
        self._missing: dict[Unmet, None] = {}

    def load(
        self, space: ModuleSpace, entry: Path, settings: Settings, imports: Imports
    ) -> _Found | ToolLoadError:
        """What a module or package offers, or why it does not."""
        owner = _owner(entry)
        if not entry.name.removesuffix(".py").isidentifier():
            return ToolLoadError("文件名要是合法的模块名（字母、数字、下划线）", file=owner)
        try:
            sources = sources_of(entry)
            unmet = check_requirements(sources)
        except ToolLoadError as error:
            return _relative(error, space.directory)
        except OSError as error:
            return ToolLoadError(f"读不出来（{type(error).__name__}）", file=owner)
        if unmet:
            self._missing.update(dict.fromkeys(unmet))
            return ToolLoadError(missing_sentence(unmet), file=owner)
        empty = not any(map(bytes.strip, sources.values()))
        if self._patient and empty and owner in self.previous.owners.values():
            return ToolLoadError("文件是空的；要去掉里面的工具，请删除文件或发 重载", file=owner)
        found = imports.run(entry, lambda: _import(space, entry, settings))
        return _hung(found, entry, imports.seconds) if isinstance(found, Hung) else found

    def add(self, owner: str, found: _Found, space: ModuleSpace) -> None:
        self._held[owner] = space
        for tool, spec, configured in found:
            if not (configured or self._every):
                self._unconfigured.setdefault(tool.name, owner)
                continue
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
        for name, its in self.previous.unconfigured.items():
            if its == owner:
                self._unconfigured.setdefault(name, owner)

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
            MappingProxyType({n: o for n, o in self._unconfigured.items() if n not in tools}),
        )
        return LoadReport(generation, tuple(self.errors), tuple(self._missing))


def _entries(directory: Path) -> Iterator[Path]:
    """Modules and packages. Raises OSError when the directory cannot be read."""
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith(("_", ".")):
            continue
        if (entry.suffix == ".py" and entry.is_file()) or (entry / "__init__.py").is_file():
            yield entry


def _owner(entry: Path) -> str:
    return entry.name if entry.suffix == ".py" else f"{entry.name}/"


def _import(space: ModuleSpace, entry: Path, settings: Settings) -> _Found | ToolLoadError:
    try:
        tools = _tools_in(space.load(entry))
        return [(tool, tool.spec(settings), tool.configured(settings)) for tool in tools]
    except ToolLoadError as error:
        return _relative(error, space.directory)
    except BaseException as error:
        # A module may raise anything while it is imported (a Rust extension's panic is not even an
        # Exception); the bot goes on with what it has.
        file, line = _place(error, space.directory, entry)
        detail = f"{type(error).__name__}: {error}".rstrip(": ")
        detail = detail.replace(str(space.directory), space.directory.name)
        if isinstance(error, ModuleNotFoundError):
            missing = (error.name or "").removeprefix(f"{space.name}.")
            detail = f"找不到模块 {missing}；第三方的请先安装，同目录的要用相对导入"
        elif isinstance(error, SyntaxError):
            detail = f"语法错误：{error.msg}"
        return ToolLoadError(detail, file=file, line=line)


def _hung(hung: Hung, entry: Path, seconds: float) -> ToolLoadError:
    file = _owner(entry) if hung.file is None else _shown(str(hung.file), entry.parent)
    reason = f"导入超过 {seconds:g} 秒还没有结束，停在这一行；要费时的事请放进函数里"
    return ToolLoadError(reason, file=file, line=hung.line)


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
