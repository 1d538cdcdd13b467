"""The tool files as syntax trees: where each function is defined and what its names stand for.

Nothing here runs a tool. What is imported from outside the tools directory is a dotted name.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chathands.toolbox.render import one_line
from chathands.toolbox.tool import Tool

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Inside:
    """Something of the tools directory: a module, or `name` in it."""

    path: Path
    name: str | None


@dataclass(slots=True)
class Module:
    path: Path
    text: str
    tree: ast.Module
    comments: dict[int, str]
    """Line → its comment, with the `#`."""
    outside: dict[str, str] = field(default_factory=dict)
    """Name → the dotted name of what it was imported from."""
    inside: dict[str, Inside] = field(default_factory=dict)
    defined: dict[str, list[ast.AST]] = field(default_factory=dict)
    """Name → what stands under it at the top level: functions, classes, values."""
    everything_of: list[Path] = field(default_factory=list)
    """Modules of the tools directory that are imported with `*`."""
    lines: list[bytes] = field(default_factory=list)
    """Encoded, as the tree counts columns in bytes."""
    made: dict[str, list[ast.expr]] = field(default_factory=dict)
    """Variable, wherever it is → what it is made from, in assignments and `with … as`."""

    def code(self, node: ast.AST, most: int = 60) -> str:
        """What stands there, on one line and cut."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0
        lines = self.lines[first - 1 : last]
        if not lines:
            return ""
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        return one_line(b" ".join(lines).decode("utf-8", "replace"), most)

    def dotted(self, node: ast.AST) -> str | None:
        """The dotted name of something from outside (`httpx.post`), or of a builtin (`open`)."""
        if isinstance(node, ast.Name):
            if node.id in self.outside:
                return self.outside[node.id]
            return None if node.id in self.defined or node.id in self.inside else node.id
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        return None


class Sources:
    """Parses each file once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._modules: dict[Path, Module | None] = {}

    def module(self, path: Path) -> Module | None:
        """None for what cannot be read as Python, which loading complains of."""
        path = path.resolve()
        if path not in self._modules:
            self._modules[path] = self._parsed(path)
        return self._modules[path]

    def of(self, tool: Tool) -> tuple[Module, Function] | None:
        """Where a tool is defined; None when its source is not there."""
        path, line = place_of(tool)
        module = self.module(path)
        if module is None:
            return None
        for node in ast.walk(module.tree):
            if isinstance(node, Function) and node.name == tool.name:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                if first <= line <= (node.end_lineno or node.lineno):
                    return module, node
        return None

    def package(self, path: Path) -> Iterator[Module]:
        """All modules that are loaded with the one at `path`."""
        entry = path.resolve()
        while entry.parent != self.directory and entry.parent != entry:
            entry = entry.parent
        for each in [entry] if entry.is_file() else sorted(entry.rglob("*.py")):
            if (module := self.module(each)) is not None:
                yield module

    def meant(self, module: Module, node: ast.AST) -> tuple[Module, list[ast.AST], str] | None:
        """What a name or attribute stands for in the tools directory: (module, nodes, name)."""
        if isinstance(node, ast.Name):
            if node.id in module.defined:
                return module, module.defined[node.id], node.id
            target = module.inside.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            base = module.inside.get(node.value.id)
            if base is None or base.name is not None:
                return None
            target = Inside(base.path, node.attr)
        else:
            return None
        if target is not None:
            return self._handed_on(target)
        if isinstance(node, ast.Name):
            wanted = (Inside(path, node.id) for path in module.everything_of)
            return next(filter(None, map(self._handed_on, wanted)), None)
        return None

    def _handed_on(self, target: Inside | None) -> tuple[Module, list[ast.AST], str] | None:
        for _ in range(8):  # a name may be handed on by an __init__
            if target is None or target.name is None:
                return None
            other = self.module(target.path)
            if other is None:
                return None
            if target.name in other.defined:
                return other, other.defined[target.name], target.name
            target = other.inside.get(target.name)
        return None

    def _parsed(self, path: Path) -> Module | None:
        try:
            with tokenize.open(path) as file:
                text = file.read()
            tree = ast.parse(text)
            comments = {
                token.start[0]: token.string
                for token in tokenize.generate_tokens(io.StringIO(text).readline)
                if token.type == tokenize.COMMENT
            }
        except (OSError, SyntaxError, ValueError, RecursionError, tokenize.TokenError):
            return None
        module = Module(path, text, tree, comments)
        module.lines = [line.encode() for line in text.split("\n")]
        for node in ast.walk(tree):
            for name, value in _made_in(node):
                module.made.setdefault(name, []).append(value)
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    module.outside[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                self._imported(module, node)
        for node in _top_level(tree.body):
            for name in _names(node):
                module.defined.setdefault(name, []).append(node)
        return module

    def _imported(self, module: Module, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            if not node.level:
                module.outside[name] = f"{node.module}.{alias.name}"
                continue
            base = module.path.parent
            for _ in range(node.level - 1):
                base = base.parent
            if node.module:
                base = base.joinpath(*node.module.split("."))
            own = _module_at(base / alias.name) if alias.name != "*" else None
            if alias.name == "*":
                module.everything_of += [found] if (found := _module_at(base)) is not None else []
            elif own is not None:
                module.inside[name] = Inside(own, None)
            elif (there := _module_at(base)) is not None:
                module.inside[name] = Inside(there, alias.name)


def place_of(tool: Tool) -> tuple[Path, int]:
    """The file and the first line of a tool's function."""
    import inspect

    code = inspect.unwrap(tool.function).__code__
    return Path(code.co_filename), code.co_firstlineno


def _module_at(base: Path) -> Path | None:
    for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
        if path.is_file():
            return path.resolve()
    return None


def _made_in(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        yield node.optional_vars.id, node.context_expr


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for name in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                yield from _top_level(handler.body)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
