"""Imports tool files under a name of their own per generation, from source, and drops them again.

Under `sys.modules` every load has a package `chathands_tools_g<generation>_<load>` whose path is
the tools directory, so relative imports work inside packages and between files, and nothing of an
older load can be picked up by mistake.
"""

from __future__ import annotations

import itertools
import logging
import sys
import typing
import weakref
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_PREFIX = "chathands_tools_g"
_loads = itertools.count(1)


class _SourceLoader(SourceFileLoader):
    """Compiles what stands in the file now. Cached bytecode is matched by whole seconds and size,
    which an admin's quick second edit of the same length gets past."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder:
    """Finds what is below a load's package; everything else is left to the usual finders."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_PREFIX) or path is None:
            return None
        for directory in path:
            spec = FileFinder(directory, (_SourceLoader, [".py"])).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
        return None


class ModuleSpace:
    """The modules of one load. They leave `sys.modules` when nothing refers to the space any more:
    generations hold it, so functions that import late still find their siblings until then."""

    def __init__(self, directory: Path, generation: int) -> None:
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
        self.directory = directory
        self.name = f"{_PREFIX}{generation}_{next(_loads)}"
        root = ModuleType(self.name)
        root.__path__ = [str(directory)]
        sys.modules[self.name] = root
        weakref.finalize(self, _forget, self.name)

    def load(self, entry: Path) -> list[ModuleType]:
        """Import a module, or a package with all its public modules. Raises what they raise."""
        name = f"{self.name}.{entry.stem if entry.suffix == '.py' else entry.name}"
        loaded = [import_module(name)]
        if entry.is_dir():
            loaded += [import_module(each) for each in _public_modules(name, entry)]
        return loaded


def sources_of(entry: Path) -> dict[Path, bytes]:
    """What stands in a module, or in every module of a package. Raises OSError."""
    if entry.suffix == ".py":
        return {entry: entry.read_bytes()}
    return {path: path.read_bytes() for path in sorted(_files_below(entry, set()))}


def _files_below(directory: Path, seen: set[Path]) -> Iterator[Path]:
    for child in _children(directory, seen):
        if child.is_dir():
            yield from _files_below(child, seen)
        elif child.suffix == ".py" and child.is_file():
            yield child


def _public_modules(package: str, directory: Path, seen: set[Path] | None = None) -> Iterator[str]:
    seen = set() if seen is None else seen
    for child in _children(directory, seen):
        if child.name.startswith("_"):
            continue
        if child.suffix == ".py":
            yield f"{package}.{child.stem}"
        elif (child / "__init__.py").is_file():
            yield f"{package}.{child.name}"
            yield from _public_modules(f"{package}.{child.name}", child, seen)


def _children(directory: Path, seen: set[Path]) -> list[Path]:
    """What stands in a directory, by name; nothing when a link has led to it before."""
    real = directory.resolve()
    if real in seen:
        return []
    seen.add(real)
    return [c for c in sorted(directory.iterdir()) if not c.name.startswith((".", "__pycache__"))]


def _forget(name: str) -> None:
    for module in [m for m in list(sys.modules) if m == name or m.startswith(f"{name}.")]:
        del sys.modules[module]
    known = logging.root.manager.loggerDict  # getLogger(__name__) in a module makes one per load
    for logger in [n for n in list(known) if n == name or n.startswith(f"{name}.")]:
        del known[logger]
    # `typing` keeps the last 128 uses of each form (`Optional[Colour]`) with all they refer to. It
    # has this for Python's own tests; a Python without it keeps those classes a while longer.
    for clear in getattr(typing, "_cleanups", ()):
        clear()
