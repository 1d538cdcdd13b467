"""Calls that hold the event loop, in async tools and in what they call directly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from chathands.toolbox.check_sources import Function, Module, Sources

_BLOCKING = (
    "time.sleep", "requests.", "urllib.request.urlopen", "urllib.request.urlretrieve",
    "subprocess.run", "subprocess.call", "subprocess.check_", "subprocess.getoutput",
    "subprocess.getstatusoutput", "os.system", "os.popen", "sqlite3.connect", "smtplib.",
    "socket.create_connection", "httpx.get", "httpx.post", "httpx.put", "httpx.patch",
    "httpx.delete", "httpx.head", "httpx.request", "httpx.stream", "httpx.Client", "pandas.read_",
    "openpyxl.load_workbook", "psycopg2.connect", "pymysql.connect", "ftplib.", "input",
)  # fmt: skip
"""Dotted names, or their beginnings. Reading a small file blocks too, for less than a switch of
threads costs; it is left out."""

_INSTEAD = {
    "time.sleep": "用 await asyncio.sleep(…)",
    "requests.": "用 ctx.http()",
    "httpx.": "用 ctx.http()",
    "urllib.": "用 ctx.http()",
}


def blocking_calls(
    sources: Sources, module: Module, tool: Function
) -> Iterator[tuple[Module, int, str, str]]:
    """(module, line, the call, what to do instead) for each call in the event loop's thread."""
    if not isinstance(tool, ast.AsyncFunctionDef):
        return
    seen: set[int] = {id(tool)}
    waiting: list[tuple[Module, Function]] = [(module, tool)]
    while waiting:
        where, function = waiting.pop(0)
        for call in _calls(function.body):
            dotted = where.dotted(call.func)
            if dotted is not None and _is_blocking(dotted):
                yield where, call.lineno, where.code(call), _instead(dotted)
            meant = sources.meant(where, call.func)
            for target in meant[1] if meant is not None else ():
                if isinstance(target, Function) and id(target) not in seen:
                    seen.add(id(target))
                    waiting.append((meant[0], target))  # type: ignore[index]


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    """Calls made while the body runs: what a function defined in it does happens elsewhere."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Call):
            yield node
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.FunctionDef | ast.Lambda)
        ]


def _is_blocking(dotted: str) -> bool:
    return any(
        dotted == name or (name.endswith((".", "_")) and dotted.startswith(name))
        for name in _BLOCKING
    )


def _instead(dotted: str) -> str:
    for name, advice in _INSTEAD.items():
        if dotted == name or dotted.startswith(name):
            return advice
    return "把函数写成 def，或者用 await asyncio.to_thread(…)"
