"""What a tool's code does to the world, read from its source: requests that post, mail, programs,
files that are written, rows that are changed; through helpers of the same package too.

Only what can be seen is said. A look cannot prove that a tool has no effect, so that this finds
marks that were forgotten and nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from chathands.toolbox.check_sources import Function, Module, Sources

Kind = Literal["sends", "changes"]
"""`sends` reaches other people or systems; `changes` may stay on this machine."""

EXCUSE = re.compile(r"#\s*no-side-effect\s*:\s*(?P<reason>.*)")
"""`# no-side-effect: why`, on the line or the one above: an effect that nobody outside has, such as
a search that is asked by POST, or a temporary file."""


@dataclass(frozen=True, slots=True)
class Evidence:
    module: Module
    line: int
    code: str
    what: str
    """In Chinese."""
    kind: Kind
    way: tuple[str, ...]
    """The names that lead there, the tool's own left out."""
    excuse: str | None
    """The reason given in the comment; empty when there is a comment without one."""


_SENDS = "发出去"
_BY_NAME: dict[str, tuple[str, Kind]] = {
    **dict.fromkeys(
        [
            f"{package}.{verb}"
            for package in ("httpx", "requests", "niquests", "requests.api")
            for verb in ("post", "put", "delete", "patch")
        ],
        ("发出改动数据的 HTTP 请求", "sends"),
    ),
    **dict.fromkeys(("smtplib.", "aiosmtplib."), ("发邮件", "sends")),
    **dict.fromkeys(("ftplib.", "paramiko.", "asyncssh."), ("连到别的机器上操作", "sends")),
    **dict.fromkeys(
        [
            *(f"subprocess.{name}" for name in (
                "run", "call", "check_call", "check_output", "Popen", "getoutput",
                "getstatusoutput",
            )),
            *(f"os.{name}" for name in ("system", "popen", "exec", "spawn", "posix_spawn",
                                        "startfile")),
            "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell", "pty.spawn",
        ],
        ("运行别的程序", "changes"),
    ),
    **dict.fromkeys(
        [f"os.{name}" for name in (
            "remove", "unlink", "rename", "renames", "replace", "rmdir", "removedirs", "mkdir",
            "makedirs", "truncate", "chmod", "chown", "link", "symlink", "kill",
        )]
        + [f"shutil.{name}" for name in (
            "rmtree", "move", "copy", "copy2", "copyfile", "copytree", "make_archive",
            "unpack_archive",
        )]
        + ["urllib.request.urlretrieve"],
        ("改动或删除文件、进程", "changes"),
    ),
}  # fmt: skip
"""Dotted name (a trailing dot: everything in it) → what it does."""

_PREFIXED = ("os.exec", "os.spawn", "os.posix_spawn")
_VERBS = {"post", "put", "patch", "delete"}
_READING = {"get", "head", "options"}
_HTTP_LIKE = re.compile(r"http|client|session|request|\bapi\b|\bweb", re.I)
_HTTP_WORDS = {"json", "data", "content", "files", "headers", "params", "timeout", "auth"}
_SENDING = {"sendmail", "send_message", "sendall", "sendto", "publish", "call_api", "storbinary",
            "chat_postMessage", "put_object", "upload_file", "upload_fileobj"}  # fmt: skip
_SENDERS = re.compile(r"sock|\bws\b|websocket|channel|\bbot\b|smtp|mail", re.I)
_WRITING = {"write_text", "write_bytes", "unlink", "rmdir", "mkdir", "touch", "to_sql",
            "executescript"}  # fmt: skip
_EXPORTS = {"to_csv", "to_excel", "to_parquet", "to_json", "to_pickle", "to_feather"}
_PATH_LIKE = re.compile(r"path|file|Path\(", re.I)
_SQL_WRITES = re.compile(
    r"\s*(?:with\b.*?\)\s*)?(insert|update|delete|replace|create|drop|alter|truncate|merge|grant)\b",
    re.I | re.S,
)


def effects_of(sources: Sources, module: Module, tool: Function) -> list[Evidence]:
    """Everything the tool can be seen to do, in the order it is reached."""
    found: list[Evidence] = []
    seen: set[int] = {id(tool)}
    # The decorator is the description; what it names (Choices, examples) is not the tool's work.
    waiting: list[tuple[Module, ast.AST, tuple[str, ...]]] = [
        (module, part, ()) for part in (tool.args, *tool.body)
    ]
    while waiting:
        where, node, way = waiting.pop(0)
        for each in ast.walk(node):
            if told := _effect(where, each):
                line = getattr(each, "lineno", 0)
                end = getattr(each, "end_lineno", line) or line
                excuse = _excuse(where, line, end)
                found.append(Evidence(where, line, where.code(each), *told, way, excuse))
            meant = sources.meant(where, each)
            if meant is not None:
                other, targets, name = meant
                for target in targets:
                    if id(target) not in seen:
                        seen.add(id(target))
                        waiting.append((other, target, (*way, name)))
    return _outermost(found)


def _outermost(found: list[Evidence]) -> list[Evidence]:
    """One for each line: `requests.post(…)` is a call and a name."""
    lines: dict[tuple[str, int], Evidence] = {}
    for each in found:
        key = (str(each.module.path), each.line)
        known = lines.get(key)
        if known is None or (known.kind == "changes" and each.kind == "sends"):
            lines[key] = each
    return list(lines.values())


def _excuse(module: Module, first: int, last: int) -> str | None:
    for line in range(first - 1, last + 1):
        match = EXCUSE.match(module.comments.get(line, ""))
        own_line = line >= first or module.lines[line - 1].lstrip().startswith(b"#")
        if match and own_line:
            return match["reason"].strip()
    return None


def _effect(module: Module, node: ast.AST) -> tuple[str, Kind] | None:
    if isinstance(node, ast.Call):
        return _of_call(module, node)
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        return _of_name(module.dotted(node))
    return None


def _of_name(dotted: str | None) -> tuple[str, Kind] | None:
    """Also where it is only named: `to_thread(os.remove, path)`."""
    if dotted is None:
        return None
    if dotted in _BY_NAME:
        return _BY_NAME[dotted]
    if dotted.startswith(_PREFIXED):
        return _BY_NAME["os.system"]
    head, dot, _ = dotted.partition(".")
    return _BY_NAME.get(f"{head}.") if dot else None


def _of_call(module: Module, call: ast.Call) -> tuple[str, Kind] | None:
    function = call.func
    dotted = module.dotted(function)
    if told := _of_name(dotted):
        return told
    if dotted == "getattr" and len(call.args) > 1:
        base, name = call.args[0], _text(module, call.args[1])
        made = ast.copy_location(ast.Attribute(base, name or "", ast.Load()), call)
        return _of_name(module.dotted(made)) or (name and _of_method(module, made, call)) or None
    if dotted in ("open", "io.open", "os.open", "aiofiles.open") and _writes(module, call, 1):
        return "写文件", "changes"
    if dotted in ("asyncio.to_thread", "anyio.to_thread.run_sync") and call.args:
        named = ast.Call(call.args[0], call.args[1:], call.keywords)
        return _of_call(module, ast.copy_location(named, call))
    if dotted in ("urllib.request.urlopen", "urllib.request.Request"):
        keywords = {each.arg for each in call.keywords}
        method = _text(module, _keyword(call, "method"))
        if len(call.args) > 1 or "data" in keywords or (method or "GET").upper() != "GET":
            return "发出改动数据的 HTTP 请求", "sends"
        return None
    if isinstance(function, ast.Attribute):
        return _of_method(module, function, call)
    if dotted is not None and dotted.endswith((".request", ".stream")):
        return _of_request(module, call)
    return None


def _of_method(module: Module, function: ast.Attribute, call: ast.Call) -> tuple[str, Kind] | None:
    name, receiver = function.attr, module.code(function.value, 200)
    outside = " ".join([module.dotted(function.value) or "", *_origins(module, function.value)])
    if name in _VERBS and _is_http(module, name, receiver, outside, call):
        return f"发出 HTTP {name.upper()} 请求", "sends"
    if name in ("request", "stream", "build_request", "send_request"):
        return _of_request(module, call) if _HTTP_LIKE.search(f"{receiver} {outside}") else None
    if name in _SENDING or name.startswith(("send_", "publish_", "post_")):
        return None if receiver in ("self", "cls") else ("把消息或数据发到外面", "sends")
    if name == "send" and _SENDERS.search(f"{receiver} {outside}"):
        return "把消息或数据发到外面", "sends"
    if name in ("execute", "executemany") and call.args:
        sql = _text(module, call.args[0])
        if sql and _SQL_WRITES.match(sql):
            return f"改数据库（{sql.split()[0].upper()}）", "changes"
        return None
    if name == "commit" and not call.args:
        return "提交数据库的改动", "changes"
    if name == "open" and _writes(module, call, 0):
        return "写文件", "changes"
    if name in _WRITING or (name in _EXPORTS and (call.args or _keyword(call, "path"))):
        return "写、建或删文件", "changes"
    if name in ("rename", "replace") and len(call.args) == 1 and _PATH_LIKE.search(receiver):
        return "改文件的名字", "changes"
    return None


def _is_http(module: Module, name: str, receiver: str, outside: str, call: ast.Call) -> bool:
    """`queue.put(x)` and `cache.delete(x)` are none; what is called a client or gets a URL is."""
    if name == "post" or _HTTP_LIKE.search(f"{receiver} {outside}"):
        return receiver not in ("self", "cls")
    if _HTTP_WORDS & {each.arg for each in call.keywords}:
        return True
    address = (_text(module, call.args[0]) or "") if call.args else ""
    return address.startswith(("http://", "https://"))


def _of_request(module: Module, call: ast.Call) -> tuple[str, Kind] | None:
    method = call.args[0] if call.args else _keyword(call, "method")
    if method is None:
        return None
    text = _text(module, method)
    if text is None:
        return "发出的 HTTP 请求用什么方法看不出来", "sends"
    if text.lower() in _READING or text.startswith("http"):
        return None
    return f"发出 HTTP {text.upper()[:10]} 请求", "sends"


def _writes(module: Module, call: ast.Call, place: int) -> bool:
    mode = call.args[place] if len(call.args) > place else _keyword(call, "mode")
    if mode is None:
        return False
    text = _text(module, mode)
    if text is None:
        return "O_WRONLY" in module.code(mode, 200) or "O_CREAT" in module.code(mode, 200)
    return len(text) <= 4 and bool(set(text) & set("wax+"))


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def _text(module: Module, node: ast.AST | None, depth: int = 0) -> str | None:
    """The text that an expression is, or begins with; None when that cannot be seen."""
    if node is None or depth > 4:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return _text(module, node.values[0], depth + 1) if node.values else ""
    if isinstance(node, ast.BinOp):
        return _text(module, node.left, depth + 1)
    if isinstance(node, ast.Call) and node.args:  # sqlalchemy's text("…"), textwrap.dedent("…")
        name = node.func.attr if isinstance(node.func, ast.Attribute) else module.dotted(node.func)
        known = str(name).rpartition(".")[2] in ("text", "dedent", "cleandoc")
        return _text(module, node.args[0], depth + 1) if known else None
    if isinstance(node, ast.Name):
        for value in module.made.get(node.id, ()):
            if (text := _text(module, value, depth + 1)) is not None:
                return text
    return None


def _origins(module: Module, node: ast.AST) -> Iterator[str]:
    """The code of what a variable was made from: `s = requests.Session()`, `with … as s`."""
    for value in module.made.get(node.id, ()) if isinstance(node, ast.Name) else ():
        yield module.code(value, 200).partition("(")[0]  # what made it, not what it was given
