"""`chathands tools check`: what would make a tool be used wrongly, before anybody uses it.

Loading refuses what cannot work at all (toolbox/describing.py); those faults are findings too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chathands.emulation.contract import FIND_TOOLS
from chathands.errors import ToolFailed
from chathands.schema import plain_name
from chathands.toolbox import check_snapshot as snapshots
from chathands.toolbox import check_text as said
from chathands.toolbox.check_blocking import blocking_calls
from chathands.toolbox.check_effects import Evidence, effects_of
from chathands.toolbox.check_snapshot import Entry
from chathands.toolbox.check_sources import Function, Module, Sources, place_of
from chathands.toolbox.loader import load_tools
from chathands.toolbox.tool import Tool

if TYPE_CHECKING:
    from chathands.settings import Settings

EVIDENCE_SHOWN = 3
"""Lines of one tool: enough to see what it is about."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One fault. `file` is relative to the tools directory; a warning alone is no failure."""

    file: str
    line: int
    code: str
    sentence: str
    """Chinese: what is wrong and what to do."""
    tool: str = ""
    warning: bool = False

    def __str__(self) -> str:
        mark = "提醒：" if self.warning else ""
        return f"{self.file}:{self.line}: {mark}{self.sentence} [{self.code}]"


@dataclass(frozen=True, slots=True)
class Checked:
    findings: tuple[Finding, ...]
    tools: tuple[str, ...]
    """Names of those that were looked at."""
    snapshot: Mapping[str, Entry]
    """What may be written: changed tools whose version did not change stay as they were."""

    def failed(self, *, strict: bool = False) -> bool:
        return any(strict or not each.warning for each in self.findings)


def check_tools(directory: Path, settings: Settings) -> Checked:
    """Look at every tool of a directory. Raises ConfigError for a snapshot that cannot be read."""
    directory = directory.resolve()
    before = snapshots.read_snapshot(directory / snapshots.FILE)
    report = load_tools(directory, settings, every=True)
    sources = Sources(directory)
    findings = [
        Finding(
            error.file,
            error.line or 1,
            "clash" if "工具名" in error.detail else "load",
            f"没有加载：{_sentence(error.detail)}",
        )
        for error in report.errors
    ]
    generation = report.generation
    names = set(generation.tools)
    looks = [
        _Look(tool, sources, directory, names, (before or {}).get(name))
        for name, tool in generation.tools.items()
    ]
    for look in looks:
        findings += look.findings()
    findings += _alike(looks)
    unread = {error.file.partition("/")[0] for error in report.errors}
    entries, drift = _drift(looks, before, complete=not unread)
    findings += drift
    order = sorted(set(findings), key=lambda each: (each.file, each.line, each.code, each.sentence))
    return Checked(tuple(order), tuple(sorted(names)), entries)


def _sentence(text: str) -> str:
    return text if text.endswith(("。", "！", "？")) else f"{text}。"


class _Look:
    """One tool, its source and its schema, looked at from every side."""

    def __init__(
        self,
        tool: Tool,
        sources: Sources,
        directory: Path,
        names: set[str],
        before: Entry | None,
    ) -> None:
        self.tool = tool
        self.before = before
        self.now = snapshots.entry_of(tool)
        self._sources = sources
        self._directory = directory
        self._names = names
        self._schema = tool.signature.schema(None)
        self._path, self._line = place_of(tool)
        found = sources.of(tool)
        self._module, self._node = found if found is not None else (None, None)

    def findings(self) -> Iterator[Finding]:
        yield from self._descriptions()
        yield from self._naming()
        yield from self._examples()
        if self._module is not None and self._node is not None:
            yield from self._effects(self._module, self._node)
            yield from self._blocking(self._module, self._node)

    def finding(
        self, code: str, sentence: str, *, line: int | None = None, warning: bool = False
    ) -> Finding:
        return Finding(
            _relative(self._path, self._directory),
            line or self._line_of_def(),
            code,
            _sentence(f"工具 {self.tool.name} {sentence}"),
            self.tool.name,
            warning,
        )

    def _descriptions(self) -> Iterator[Finding]:
        if why := said.thin(self.tool):
            yield self.finding("thin", f"的{why}")
        for path, why in said.thin_parameters(self._schema):
            yield self.finding("thin", f"的参数 {path} {why}", line=self._line_of_parameter(path))

    def _naming(self) -> Iterator[Finding]:
        if self.tool.name == FIND_TOOLS:
            sentence = "的名字是留给“找工具”用的：工具多时模型就找不到别的工具了，请改名"
            yield self.finding("clash", sentence)
        gone = snapshots.gone(self.before, self.now) if self.before is not None else set()
        known = set(self._names) | said.values_in(self._schema)
        for module in self._sources.package(self._path):
            known |= said.names_of_code(module)
        parameters = said.names_in(self._schema)
        for where, text in said.texts_of(self.tool, self._schema):
            for name, why in said.unknown_names(text, parameters, known - gone, gone):
                sentence = f"的{where}提到了 {name}：{why}"
                if name not in gone:
                    sentence += f"；是别的东西的名字就写注释 # not-parameters: {name}"
                yield self.finding("name", sentence, line=self._line_with(name))

    def _examples(self) -> Iterator[Finding]:
        for example in self.tool.examples:
            line = self._line_with(example.request)
            about = f"的示例「{example.request}」"
            strange = list(said.strange_arguments(example.arguments, self._schema))
            if strange:
                named = "、".join(strange)
                yield self.finding("example", f"{about}里有不存在的参数：{named}", line=line)
                continue
            try:
                self.tool.signature.validate(example.arguments)
            except ToolFailed as error:
                yield self.finding("example", f"{about}的参数不对：{error.sentence}", line=line)

    def _effects(self, module: Module, node: Function) -> Iterator[Finding]:
        effect = self.tool.side_effect
        if effect == "outward":
            return
        seen = []
        for each in effects_of(self._sources, module, node):
            if each.excuse:
                continue
            if each.excuse == "":
                where = f"{_relative(each.module.path, self._directory)}:{each.line}"
                sentence = f"在 {where} 写了 no-side-effect 却没有写原因，不算数"
                yield self.finding("effect", sentence)
            if effect == "none" or each.kind == "sends":
                seen.append(each)
        if not seen:
            return
        shown = "；".join(self._evidence(each) for each in seen[:EVIDENCE_SHOWN])
        more = f"；还有 {len(seen) - EVIDENCE_SHOWN} 处" if len(seen) > EVIDENCE_SHOWN else ""
        outward = any(each.kind == "sends" for each in seen)
        right = '"outward"' if outward else '"local"（只动提问者自己的）或 "outward"'
        yield self.finding(
            "effect",
            f'标的是 side_effect="{effect}"，但是 {shown}{more}。请改成 {right}；'
            "确实没有影响的，在那一行写注释 # no-side-effect: 原因",
        )

    def _evidence(self, each: Evidence) -> str:
        where = f"{_relative(each.module.path, self._directory)}:{each.line}"
        way = f"，经 {' → '.join(each.way)}" if each.way else ""
        return f"{where} 的 {each.code} 会{each.what}{way}"

    def _blocking(self, module: Module, node: Function) -> Iterator[Finding]:
        for where, line, code, advice in blocking_calls(self._sources, module, node):
            place = f"{_relative(where.path, self._directory)}:{line}"
            sentence = f"是 async 的，{place} 的 {code} 会让所有人的提问都停下来等，请{advice}"
            own = where.path == self._path.resolve()
            yield self.finding("blocking", sentence, line=line if own else None, warning=True)

    def _line_of_def(self) -> int:
        return self._node.lineno if self._node is not None else self._line

    def _line_of_parameter(self, path: str) -> int:
        names = re.split(r"[.\[\]*]+", path)
        if self._node is not None and len(names) == 1:
            arguments = self._node.args
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if each.arg == names[0]:
                    return each.lineno
        if self._module is not None:
            last = [name for name in names if name][-1]
            for number, text in enumerate(self._module.text.split("\n"), 1):
                if re.match(rf"\s+{re.escape(last)}\s*:", text):
                    return number
        return self._line_of_def()

    def _line_with(self, text: str) -> int:
        """The first line of the function that has it, else of the file."""
        if self._module is None or self._node is None:
            return self._line_of_def()
        lines = self._module.text.split("\n")
        first = min([self._node.lineno, *(d.lineno for d in self._node.decorator_list)])
        own = range(first, (self._node.end_lineno or first) + 1)
        for number in (*own, *range(1, len(lines) + 1)):
            if text in lines[number - 1]:
                return number
        return self._line_of_def()


def _alike(looks: list[_Look]) -> Iterator[Finding]:
    """Names that a model cannot tell apart: `get_weather` and `getWeather`."""
    known: dict[str, _Look] = {}
    for look in looks:
        other = known.setdefault(plain_name(look.tool.name), look)
        if other is not look:
            sentence = f"和 {other.tool.name} 的名字只差大小写或下划线，模型会弄混，请改一个"
            yield look.finding("clash", sentence)


def _drift(
    looks: list[_Look], before: Mapping[str, Entry] | None, *, complete: bool
) -> tuple[dict[str, Entry], list[Finding]]:
    """(the snapshot as it may be written, what differs from the one there is)."""
    entries: dict[str, Entry] = {}
    found: list[Finding] = []
    update = "请运行 chathands tools check --update，并把 snapshot.json 一起提交"
    for look in looks:
        name, now = look.tool.name, look.now
        old = (before or {}).get(name)
        entries[name] = now
        if old is None:
            found.append(look.finding("snapshot", f"还不在快照里，{update}", warning=True))
            continue
        changes = snapshots.differences(old, now)
        if changes and old.version == now.version:
            entries[name] = old
            listed = "；".join(each.strip() for each in changes)
            sentence = f"变了，版本还是 {now.version}：{listed}。请改 version（例如 {_next(now)}）"
            found.append(look.finding("version", sentence))
        elif snapshots.went_back(old.version, now.version):
            entries[name] = old
            sentence = f"的版本从 {old.version} 退到了 {now.version}，版本只能往前"
            found.append(look.finding("version", sentence))
        elif old != now:
            sentence = f"的版本从 {old.version} 到了 {now.version}，快照还是旧的，{update}"
            found.append(look.finding("snapshot", sentence))
    for name in sorted(set(before or {}) - set(entries)):
        if not complete:  # its file may be the one that did not load
            entries[name] = (before or {})[name]
            continue
        sentence = f"工具 {name} 没有了，快照里还有：别的程序可能在用它。确实不要了，{update}。"
        found.append(Finding(snapshots.FILE, 1, "snapshot", sentence, name, warning=True))
    return entries, found


def _next(entry: Entry) -> str:
    return str(entry.version + 1) if isinstance(entry.version, int) else f'"{entry.version}.1"'


def _relative(path: Path, directory: Path) -> str:
    path = path.resolve()
    return path.relative_to(directory).as_posix() if path.is_relative_to(directory) else path.name
