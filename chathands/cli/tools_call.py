"""`chathands tools call`: one call through the executor, from the shell."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from chathands.cli.loop import LoopThread
from chathands.conversation import Status, ToolCall, ToolSpec
from chathands.errors import ToolLoadError
from chathands.settings import Settings

if TYPE_CHECKING:
    from chathands.agent.toolbox import Toolbox
    from chathands.toolbox import Batch, PendingCall, RunScope
    from chathands.toolbox.context import CallerRole

FAILED, WRONG, NOT_RUN, UNKNOWN, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes besides 0; 2 is also what the shell's own mistakes end in."""

MCP_SECONDS = 15.0
"""For an external server whose tool is asked for: some are fetched before they start."""

_YES = ("y", "yes", "是", "确认")
_TRUE = {"true": True, "yes": True, "on": True, "是": True, "对": True}
_FALSE = {"false": False, "no": False, "off": False, "否": False, "不": False}


def read_arguments(pairs: Sequence[str], text: str | None) -> dict[str, Any]:
    """What was typed: the object of `--json`, and over it each `name=value` as a list of texts.

    Raises typer.BadParameter.
    """
    given: dict[str, Any] = {}
    if text is not None:
        source = sys.stdin.read() if text == "-" else text
        try:
            value = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise typer.BadParameter(f"--json 不是 JSON：{error}") from None
        if not isinstance(value, dict):
            raise typer.BadParameter('--json 要是一个对象，例如 {"city": "青岛"}')
        given |= value
    typed: dict[str, _Typed] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{pair[:60]!r} 要写成 参数=值")
        typed.setdefault(name.strip(), _Typed()).append(value)
    return given | typed


class _Typed(list[str]):
    """Values as they were typed, whose type the schema says."""


def run(
    settings: Settings,
    name: str,
    given: Mapping[str, Any],
    *,
    role: CallerRole,
    yes: bool,
    out: Path,
) -> int:
    """Run it and print; the exit code."""
    from chathands.agent.toolbox import build_toolbox

    def not_loaded(error: ToolLoadError) -> None:
        typer.echo(error.sentence, err=True)

    settings = settings.model_copy(update={"watch_tools": False})
    # In a thread, so that Ctrl-C ends the question to a person as well as the call.
    with LoopThread() as loop:
        building = build_toolbox(settings, owner="terminal", on_load_error=not_loaded)
        toolbox = loop.run(building.__aenter__())
        try:
            return _called(loop, toolbox, name, given, role, yes=yes, out=out)
        except KeyboardInterrupt:
            typer.echo("已中断。已经开始的操作可能做了一部分，请核对。", err=True)
            return INTERRUPTED
        finally:
            loop.run(building.__aexit__(None, None, None))


def _called(
    loop: LoopThread,
    toolbox: Toolbox,
    name: str,
    given: Mapping[str, Any],
    role: CallerRole,
    *,
    yes: bool,
    out: Path,
) -> int:
    from chathands.agent.events import new_run_id
    from chathands.agent.tickets import by_terminal
    from chathands.toolbox import Caller, RunScope

    if name not in toolbox.registry.current.specs and toolbox.policy.rules.mcp:
        loop.run(toolbox.foreign.settled(MCP_SECONDS))
    generation = toolbox.registry.current
    spec, tool = generation.specs.get(name), generation.tools.get(name)
    call = ToolCall("c_1", name, dict(given) if spec is None else _fitted(spec, given))
    seconds = toolbox.policy.timeout(spec, tool.timeout) if spec and tool else 1.0
    caller = Caller("terminal", None, role, "我", platform="terminal")

    def attempt(granted: frozenset[str], by: str) -> tuple[RunScope, Batch]:
        end = time.monotonic() + seconds + 1
        scope = RunScope(new_run_id(), caller, generation, lambda: end - time.monotonic())
        running = toolbox.executor.run_batch([call], scope, granted=granted, granted_by=by)
        return scope, loop.run(running)

    scope, batch = attempt(frozenset(), "")
    if (pending := batch.pending) is not None:
        if not _approved(pending, yes=yes):
            return NOT_RUN
        scope, batch = attempt(frozenset({pending.call_hash}), by_terminal())
    return _told(scope, batch, out)


def _approved(pending: PendingCall, *, yes: bool) -> bool:
    lines = [f"要批准的操作：{pending.call.name}"]
    lines += [f"目标：{pending.target}"] if pending.target else []
    typer.echo("\n".join([*lines, pending.shown, f"原因：{pending.reason}"]), err=True)
    if yes:
        return True
    if not _is_terminal():
        typer.echo("没有执行：这里不是终端，没人能确认。确定要做就加 --yes。", err=True)
        return False
    try:
        answer = input("执行吗？输入 确认 执行，别的都算取消：")
    except EOFError:
        answer = ""
    if answer.strip().lower() in _YES:
        return True
    typer.echo("已取消，没有执行。", err=True)
    return False


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _told(scope: RunScope, batch: Batch, out: Path) -> int:
    """Print the result and write the files; the exit code."""
    from chathands.toolbox.attachments import files_of
    from chathands.toolbox.render import cleaned

    if not batch.results:  # approved, and not the same call a moment later
        typer.echo("没有执行：要批准的内容刚刚变了，请再运行一次。", err=True)
        return NOT_RUN
    (result,) = batch.results
    ok = result.status is Status.OK
    typer.echo(cleaned(result.content), err=not ok)
    for sentence in (said for entry in scope.done for said in entry.get("told", ())):
        typer.echo(cleaned(sentence), err=True)
    for name, data in files_of(scope.done):
        path = _kept(out, name, data)
        typer.echo(f"文件：{path}（{len(data):,} 字节）", err=True)
    cost = f" {result.cost_ms} ms" if result.cost_ms is not None else ""
    typer.echo(f"[{result.status}]{cost}", err=True)
    why = batch.why.get(result.call_id)
    if why is not None and why.code in ("unknown_tool", "invalid_arguments"):
        return WRONG
    codes = {Status.OK: 0, Status.FAILED: FAILED, Status.DENIED: NOT_RUN, Status.UNKNOWN: UNKNOWN}
    return codes[result.status]


def _kept(directory: Path, name: str, data: bytes) -> Path:
    """The file under its own name, or with a number behind it: nothing is overwritten."""
    from chathands.toolbox.received import safe_name

    safe = safe_name(name)
    stem, dot, suffix = safe.rpartition(".")
    stem, suffix = (stem, f".{suffix}") if dot and stem else (safe, "")
    number = 1
    while True:
        path = directory / (safe if number == 1 else f"{stem}-{number}{suffix}")
        try:
            with path.open("xb") as file:
                file.write(data)
            return path
        except FileExistsError:
            number += 1


def _fitted(spec: ToolSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with what was typed in the types the schema says. Names that the tool does not
    have end here: in the executor a stray argument of a model is left out, a typing mistake of a
    person should be said. Raises typer.BadParameter."""
    from chathands.schema import compile_schema
    from chathands.toolbox.render import nearest_names

    schema = compile_schema(spec.parameters)
    found: dict[str, Any] = {}
    for name, value in given.items():
        head = name.partition(".")[0] if isinstance(value, _Typed) else name
        known = name if name in schema.properties else head
        is_open = not schema.properties or spec.parameters.get("additionalProperties")
        if known not in schema.properties and not is_open:
            names = list(schema.properties)
            near = nearest_names(known, names, 1)
            hint = f"，是不是 {near[0]}？" if near else f"；有：{'、'.join(names) or '无'}"
            raise typer.BadParameter(f"{spec.name} 没有参数 {known}{hint}")
        if not isinstance(value, _Typed):
            found[name] = value
        elif name in schema.properties or "." not in name:
            takes = {kind for kind in _KINDS if schema.takes(name, kind)}
            found[name] = _value(name, value, takes or set(_KINDS))
        else:
            _put(found, name.split("."), _value(name, value, set(_KINDS) - {"array"}))
    return found


_KINDS: tuple[str, ...] = ("string", "integer", "number", "boolean", "array", "object", "null")


def _value(name: str, typed: _Typed, takes: set[str]) -> Any:
    if len(typed) > 1:
        if "array" not in takes:
            raise typer.BadParameter(f"参数 {name} 写了 {len(typed)} 次，它只要一个值")
        return list(typed)
    (text,) = typed
    if "string" in takes:
        # One text stays what it is: `00123`, `true`. Of both a text and a list, a list is typed
        # as JSON.
        return _json(text) if "array" in takes and text.startswith("[") else text
    value = _json(text)
    if "boolean" in takes and isinstance(value, str):
        value = {**_TRUE, **_FALSE}.get(text.strip().lower(), value)
    if "array" in takes and not isinstance(value, list | dict):
        return [part.strip() for part in re.split("[,，]", text) if part.strip()]
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _put(found: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        inner = found.setdefault(name, {})
        if not isinstance(inner, dict):
            raise typer.BadParameter(f"参数 {name} 写了两次，一次是值，一次是 {name}.…")
        found = inner
    found[names[-1]] = value
