"""What a tool says of itself: whether it says enough, and whether the names in it are real."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from chathands.emulation.shortlist import terms_of
from chathands.schema import plain_name
from chathands.toolbox.check_sources import Module
from chathands.toolbox.describing import nodes
from chathands.toolbox.render import nearest_names
from chathands.toolbox.tool import Tool

ENOUGH_WORDS = 4
"""Different words of a tool's description, below which it is thin. A question counts as speaking of
a tool with three words in common (emulation/related.py), and nobody asks with every word of a
description. Of Chinese, which has no gaps, two neighbouring characters are taken for half a word,
as every other pair is but the seam of two words: eight or nine characters are enough."""

_FILLER = re.compile(
    r"参数|字符串|文本|文字|数字|整数|小数|布尔值?|列表|数组|对象|字段|内容|输入|取值|值|必填|必须|可选|选填|"
    r"的|\b(?:string|text|str|number|int|integer|float|bool|boolean|list|array|object|param|"
    r"parameter|argument|value|field|input|required|optional|the|an?|of|for)\b",
    re.I,
)
"""Words that say of a parameter what its type says."""

_UNFINISHED = re.compile(r"^(?:TODO|FIXME|TBD)\b|\b(?:TODO|FIXME)[:：]", re.M)

_SNAKE = re.compile(
    r"(?<![\w./\\:@$%#=-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/\\:@-]|\.\w|=\S|\()", re.A
)
"""`file_path` on its own; no part of a path, an address, a call or an option."""
_TICKED = re.compile(r"`([A-Za-z_]\w*)`", re.A)
_BESIDE = re.compile(
    r"参数[ “「'\"]*([a-z]\w*)|(?<![\w.])([a-z]\w+)[”」'\"]* *(?:这个|那个)?参数", re.A
)
_FILLED_IN = re.compile(
    r"(?:^|[，。；：（(,;:])[ \t]*([a-z]\w+) ?"
    r"(?=[写填传](?![入出回给成写法的完好了在到进])|[不没](?:要)?[写填传]|留空|必填|选填)",
    re.A | re.M,
)
"""`days 写大一些`, `unit 不填`: a word that is told how to be filled in."""
_ARGUMENTS = re.compile(r"^[ \t]*(?:Args|Arguments|Parameters|Params|参数)[:：]?[ \t]*$", re.M)
_ARGUMENT = re.compile(r"^[ \t]+\*{0,2}([A-Za-z_]\w*)[ \t]*(?:\([^)\n]*\))?[ \t]*[:：]", re.A)
_PARAM = re.compile(r"^[ \t]*:param (?:[\w.\[\]| ]+ )?([A-Za-z_]\w*):", re.M | re.A)
"""Docstrings in the styles of Google and Sphinx."""
_CAMEL = re.compile(r"(?<![\w./\\:@$-])[a-z]+(?:[A-Z][a-z0-9]+)+(?![\w/\\:@(-]|\.\w)", re.A)
_QUOTED = re.compile(r"[“「『《\"'‘](?:[^”」』》\"'’\n]{1,80})[”」』》\"'’]")
_GIVES_A_VALUE = re.compile(r"(?:[写填为是成=:：、/]|如|或|和|例如|比如|返回|输出|值) *$")

_ELSEWHERE = (
    r"(?:表|列|库|视图|索引|系统|网站|平台|频道|服务器?|项目|模块|标签|环境|分支|"
    r"机器人|账号|文件夹?|目录)"
)
_NAMED_BEFORE = re.compile(rf"(?:{_ELSEWHERE}(?:名|里|有|是|叫|如|：|:)*|返回|结果里?有?|含有?) ?$")
_NAMED_BEHIND = re.compile(rf" ?(?:这[个张条]|的)?{_ELSEWHERE}")
_SQL = re.compile(r"\b(?:SELECT|FROM|WHERE|JOIN|INSERT|UPDATE)\b")
"""Tables, columns and systems have names in the same form; what stands beside tells them apart."""

_KNOWN = frozenset((
    "true", "false", "null", "none", "and", "or", "not", "in", "is", "asc", "desc", "json",
    "jsonl", "csv", "tsv", "xml", "html", "md", "markdown", "yaml", "toml", "sql", "http",
    "https", "url", "uri", "utf", "pdf", "png", "jpg", "xlsx", "xls", "docx", "zip", "regex",
    "glob", "cron", "iso", "date", "datetime", "time", "string", "int", "integer", "float",
    "number", "bool", "boolean", "list", "array", "object", "dict", "str", "any", "get",
    "post", "put", "patch", "delete", "head", "api", "id", "ids", "ok", "error", "python",
    "bash", "shell", "key", "value", "word", "excel", "wps", "ppt", "outlook", "java",
    "docker", "mysql", "redis", "git", "linux", "windows", "latex",
))  # fmt: skip
"""Words in backticks, or told how to be written, that are no names of parameters."""


def words_in(text: str) -> float:
    """How many different words a description has that a question could share."""
    terms = set(terms_of(text))
    latin = sum(kind == "word" and not term.isdigit() for kind, term in terms)
    return latin + sum(kind == "pair" for kind, _ in terms) / 2


def thin(tool: Tool) -> str | None:
    """Why the description says too little, a clause in Chinese; None when it says enough."""
    said = tool.description
    if found := _UNFINISHED.search(said):
        return f"说明里还有“{found[0]}”，没有写完"
    count = words_in(said)
    if count < ENOUGH_WORDS:
        return (
            f"说明太单薄（约 {count:g} 个词，至少要 {ENOUGH_WORDS} 个）：问题和说明有三个词对得上，"
            "才认得出该用它。写清做什么、对什么做、给出什么"
        )
    return None


def thin_parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, why) for each parameter whose description adds nothing to its name and type."""
    done: set[str] = set()
    for path, name, child in _properties(schema):
        said = str(child.get("description", "")).strip()
        if "const" in child or path in done:
            continue
        done.add(path)
        if found := _UNFINISHED.search(said):
            yield path, f"的说明里还有“{found[0]}”，没有写完"
            continue
        rest = re.sub(r"[\W_]+", "", _FILLER.sub("", said))
        if not rest or plain_name(rest) == plain_name(_FILLER.sub("", name.replace("_", " "))):
            yield path, f"的说明“{said[:30]}”只重复了名字和类型，要写清是什么、怎么填"
        elif plain_name(said) == plain_name(name):
            yield path, f"的说明“{said[:30]}”只重复了名字，要写清是什么、怎么填"


def texts_of(tool: Tool, schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(which text, text) of everything that is said about the tool in words."""
    yield "说明", tool.description
    done: set[str] = set()
    for path, _, child in _properties(schema):
        if path not in done and isinstance(child.get("description"), str):
            done.add(path)
            yield f"参数 {path} 的说明", child["description"]


def unknown_names(
    text: str, parameters: set[str], known: set[str], gone: set[str]
) -> Iterator[tuple[str, str]]:
    """(name, why) for each word that is written like a parameter and is none.

    `known`: other names that may stand there (tools, allowed values, fields of the result). `gone`:
    parameters there were; of them any mention counts.
    """
    said: dict[str, str] = {}
    bare = _QUOTED.sub(lambda found: " " * len(found[0]), text)
    plain = {plain_name(name): name for name in parameters}

    def look(word: str, *, sure: bool) -> None:
        if word in parameters or word in known or word in said:
            return
        if word in gone:
            said[word] = f"{word} 已经不是它的参数"
        elif (meant := plain.get(plain_name(word))) is not None:
            said[word] = f"没有 {word}，参数叫 {meant}"
        elif sure and word.lower() not in _KNOWN:
            near = nearest_names(word, sorted(parameters), 1)
            hint = f"，是不是 {near[0]}" if near else ""
            said[word] = f"没有叫 {word} 的参数或工具{hint}"

    for found in _TICKED.finditer(text):
        word, before = found[1], text[: found.start()]
        snake = "_" in word.strip("_")
        value = bool(_GIVES_A_VALUE.search(before)) and not snake
        look(word, sure=word[:1].islower() and not value)
    for word in _snake_words(bare):
        look(word, sure=True)
    for found in _BESIDE.finditer(bare):
        word = found[1] or found[2]
        look(word, sure=len(word) > 1)
    for found in _FILLED_IN.finditer(bare):
        look(found[1], sure=True)
    for word in _documented(text):
        look(word, sure=True)
    for found in _CAMEL.finditer(bare):
        look(found[0], sure=False)
    for word in sorted(gone):
        if re.search(rf"(?<![\w./-]){re.escape(word)}(?![\w/-])", bare, re.A):
            look(word, sure=False)
    yield from said.items()


def _snake_words(text: str) -> Iterator[str]:
    """Words like `file_path` that are not said to be the name of something else."""
    if _SQL.search(text):
        return
    passed = -1
    for found in _SNAKE.finditer(text):
        before, behind = text[: found.start()], text[found.end() :]
        listed = passed >= 0 and re.fullmatch(r"[、,，/和或 ]+", text[passed : found.start()])
        if listed or _NAMED_BEFORE.search(before) or _NAMED_BEHIND.match(behind):
            passed = found.end()
            continue
        yield found[0]


def _documented(text: str) -> Iterator[str]:
    """The parameters that a docstring lists."""
    yield from (found[1] for found in _PARAM.finditer(text))
    for header in _ARGUMENTS.finditer(text):
        depth: int | None = None
        for line in text[header.end() :].split("\n")[1:]:
            if not line.strip():
                continue
            indent = len(line) - len(line.lstrip())
            depth = indent if depth is None else depth
            if indent == 0 or indent < depth:
                break
            if indent == depth and (found := _ARGUMENT.match(line)):
                yield found[1]


def names_in(schema: Mapping[str, Any]) -> set[str]:
    """Names of the parameters, nested ones too."""
    return {name for _, name, _ in _properties(schema)}


def values_in(schema: Mapping[str, Any]) -> set[str]:
    """Texts that may be sent: allowed values, defaults, examples."""
    found: set[str] = set()
    for _, node in nodes(dict(schema), schema.get("$defs", {})):
        for key in ("enum", "const", "default", "examples"):
            value = node.get(key)
            each = value if isinstance(value, list | tuple) else [value]
            found |= {one for one in each if isinstance(one, str)}
    return found


NOT_PARAMETERS = re.compile(r"#\s*not-parameters\s*:(.*)")
"""`# not-parameters: it_portal, crm_sync`: names of other things that descriptions speak of."""


def names_of_code(module: Module) -> set[str]:
    """Texts and fields in the code that a description may speak of: keys of a result, columns,
    fields of a returned model, constants; and what a comment says is no parameter."""
    found: set[str] = set()
    for comment in module.comments.values():
        if excused := NOT_PARAMETERS.match(comment):
            found |= set(re.findall(r"\w+", excused[1]))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if len(node.value) <= 64:
                found |= {node.value, *re.findall(r"[A-Za-z_]\w*(?=\s*=)", node.value)}
        elif isinstance(node, ast.ClassDef):
            found |= {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
    return found


def strange_arguments(arguments: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """Names in an example's arguments that the schema does not know; where it takes any, none."""
    paths = dict(_open_nodes(schema))
    known = {path for path, _, _ in _properties(schema)}

    def walk(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, Mapping):
            if path in paths:
                return
            for name, inner in value.items():
                below = f"{path}.{name}".lstrip(".")
                if below in known:
                    yield from walk(inner, below)
                else:
                    yield below
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from walk(inner, f"{path}[]")

    yield from dict.fromkeys(walk(arguments, ""))


def _open_nodes(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Objects that take names of the caller's own."""
    for path, node in nodes(dict(schema), schema.get("$defs", {})):
        if path and (
            node.get("additionalProperties")
            or (node.get("type") == "object" and "properties" not in node)
        ):
            yield path, node


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, node in nodes(dict(schema), schema.get("$defs", {})):
        for name, child in node.get("properties", {}).items():
            if isinstance(child, Mapping):
                yield f"{path}.{name}".lstrip("."), name, child
