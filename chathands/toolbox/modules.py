"""Imports tool files under a name of their own per generation, from source, and drops them again.

Under `sys.modules` every load has a package `chathands_tools_g<generation>_<load>` whose path is
the tools directory, so relative imports work inside packages and between files, and nothing of an
older load can be picked up by mistake.
"""

from __future__ import annotations

import itertools
import sys
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


def _public_modules(package: str, directory: Path) -> Iterator[str]:
    for child in sorted(directory.iterdir()):
        if child.name.startswith(("_", ".")):
            continue
        if child.suffix == ".py":
            yield f"{package}.{child.stem}"
        elif (child / "__init__.py").is_file():
            yield f"{package}.{child.name}"
            yield from _public_modules(f"{package}.{child.name}", child)


def _forget(name: str) -> None:
    for module in [m for m in list(sys.modules) if m == name or m.startswith(f"{name}.")]:
        del sys.modules[module]
