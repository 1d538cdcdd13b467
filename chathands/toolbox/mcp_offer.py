"""What an external MCP server offers, made into tools of ours. Everything it says is data.

A name follows our rule, a schema is one we can check, a description is short and cannot pass for
part of a prompt. What does not fit is left out with a reason. No I/O here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from chathands.conversation import SideEffect, ToolSpec
from chathands.errors import ToolFailed
from chathands.schema import compile_schema
from chathands.toolbox.context import ToolContext
from chathands.toolbox.mcp_config import McpServer, ToolOverride, prefix_of
from chathands.toolbox.render import cut, one_line
from chathands.toolbox.signature import Signature
from chathands.toolbox.tool import Tool

if TYPE_CHECKING:
    from mcp.types import Tool as Offered
    from mcp.types import ToolAnnotations

    from chathands.settings import Settings

MOST_TOOLS = 100
"""Of one server. The largest in the field have about 90, and each costs room in every contract."""
LONGEST_DESCRIPTION = 1000
"""Characters; what a model needs stands in the first lines."""
LONGEST_HINT = 300
"""Characters of a parameter's description."""
LONGEST_SCHEMA = 30_000
"""Characters as JSON. The largest of well-known servers have about 12,000."""
DEEPEST_SCHEMA = 12
"""Levels; deeper ones are generated, and no model fills them."""
LONGEST_TOOL_NAME = 64
"""Characters, prefix included: what the OpenAI and Anthropic protocols take."""

CONTEXT = "\0context"
"""The keyword the context comes under: no parameter can be called so."""

Run = Callable[[ToolContext, str, Mapping[str, Any]], Awaitable[str]]
"""Calls a tool by the server's own name for it."""

_ORDER: tuple[SideEffect, ...] = ("none", "local", "outward")
_UNFIT = re.compile(r"[^A-Za-z0-9_]+")
_PARAMETER = re.compile(r"[^\s\x00-\x1f<>`\"'{}\[\]|\\]{1,64}")
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-"
    r"\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Controls and what has no width or turns the direction of reading: text that nobody sees."""
_FENCE = re.compile(r"`{3,}|~{3,}")
_TAG = re.compile(r"<(?=[/!?A-Za-z|｜])")
_CALL_FENCE = re.compile(r"(?:`{3,}|~{3,})(?=[ \t]*(?:json[ \t]+)?(?:action|tool))", re.IGNORECASE)
_CALL_TAG = re.compile(
    r"<(?=/?(?:[|｜]|tool|function|invoke|parameter|think|action|system|user|assistant|antml:|DSML))",
    re.IGNORECASE,
)
"""What a model could take for a call, for thinking or for a turn of the conversation. Other markup
is what pages and programs are made of."""
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}(?=\s)|[-=_*\u2010-\u2015\u2500]{3,})", re.MULTILINE)
_ROLE = re.compile(
    r"^([ \t]*)(system|user|assistant|human|developer|系统|用户|助手)([ \t]*[:：])",
    re.IGNORECASE | re.MULTILINE,
)
_KEPT_WORDS = frozenset({
    "$ref", "$defs", "definitions", "type", "properties", "required", "items", "prefixItems",
    "enum", "const", "default", "anyOf", "oneOf", "allOf", "not", "if", "then", "else",
    "description", "format", "pattern", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems",
    "uniqueItems", "minProperties", "maxProperties", "additionalProperties", "patternProperties",
    "propertyNames", "nullable", "contains",
})  # fmt: skip
_TEXTS = ("format", "pattern", "$ref")


class Unfit(ValueError):
    """A tool that is left out; says why, in Chinese."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What of a server's list is served. `left_out` and `warnings` are (its name, why)."""

    found: tuple[tuple[Tool, ToolSpec], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteSignature(Signature):
    """Validates by the server's JSON Schema, there being no function to ask."""

    parameters: Mapping[str, Any] = field(default_factory=dict)

    def schema(self, settings: Settings | None) -> dict[str, Any]:
        return dict(self.parameters)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        checked = compile_schema(self.parameters).check(arguments)
        if checked.problems:
            raise ToolFailed(f"{checked.problems[0].sentence('zh')}。")
        return dict(arguments)


def offer_of(name: str, server: McpServer, listed: Sequence[Offered], run: Run) -> Offer:
    """The tools of the server `name`, as it lists them."""
    found: dict[str, tuple[Tool, ToolSpec]] = {}
    left_out: list[tuple[str, str]] = []
    warnings: list[tuple[str, str]] = []
    known: set[str] = set()
    for offered in listed:
        shown = cut(plain(offered.name).strip(), 60)
        override = _override(server, name, offered.name)
        known |= {offered.name, tool_name(prefix_of(name, server), offered.name)}
        if not override.enabled:
            left_out.append((shown, "tools.toml 里停用了"))
            continue
        if len(found) >= MOST_TOOLS:
            left_out.append((shown, f"一个服务最多用 {MOST_TOOLS} 个工具"))
            continue
        try:
            tool, spec = _made(name, server, override, offered, run)
        except Unfit as error:
            left_out.append((shown, str(error)))
            continue
        if tool.name in found:
            left_out.append((shown, f"改成我们的写法后和前一个工具同名（{tool.name}）"))
            continue
        if override.side_effect not in (None, spec.side_effect):
            why = "服务自己标明它会改动或删除东西，所以没有放宽；确认无妨就加 trust_hints = false"
            warnings.append((shown, why))
        found[tool.name] = (tool, spec)
    for written in server.tools:
        if written not in known:
            warnings.append((written, "tools.toml 里写了它，服务没有这个工具"))
    return Offer(tuple(found.values()), tuple(left_out), tuple(warnings))


def tool_name(prefix: str, name: str) -> str:
    """`name` with the prefix, by our rule. What had to be bent gets a piece of its hash where two
    names would otherwise come out the same."""
    plain_name = _UNFIT.sub("_", name).strip("_")
    whole = prefix + plain_name
    bent = not plain_name or len(whole) > LONGEST_TOOL_NAME or not whole[:1].isalpha()
    if len(plain_name) < len(re.sub(r"[\s./:-]", "", name)):
        bent = True  # more than separators is gone, e.g. Chinese characters
    if not bent:
        return whole
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    lead = whole if whole[:1].isalpha() else f"t_{whole}"
    return f"{lead[: LONGEST_TOOL_NAME - 9].rstrip('_')}_{digest}"


def plain(text: str) -> str:
    """Text from outside in which nothing is hidden, opens or closes a block, or plays a role of the
    conversation."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    text = _INVISIBLE.sub("", text)
    text = _FENCE.sub("''", text)
    text = _TAG.sub("‹", text)
    text = _HEADING.sub("·", text)
    return _ROLE.sub(r"\1\2 \3", text.replace("[INST]", "(INST)"))


def inert(text: str) -> str:
    """A result from outside: what is hidden is gone, and nothing in it is a call. Its own markup
    stays; the fence around results is the prompt's business."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    text = _INVISIBLE.sub("", text)
    text = _CALL_FENCE.sub("''", text)
    return _CALL_TAG.sub("‹", text.replace("[INST]", "(INST)"))


def side_effect_of(override: ToolOverride, annotations: ToolAnnotations | None) -> SideEffect:
    """Outward unless the admin says less; what the server says about itself can only add."""
    said: SideEffect = override.side_effect or "outward"
    if annotations is None or not override.trust_hints:
        return said
    floor: SideEffect = "none"
    if annotations.read_only_hint is False:
        floor = "local"
    if annotations.destructive_hint is True and annotations.read_only_hint is not True:
        floor = "outward"
    return said if _ORDER.index(said) >= _ORDER.index(floor) else floor


def _override(server: McpServer, name: str, offered: str) -> ToolOverride:
    ours = tool_name(prefix_of(name, server), offered)
    return server.tools.get(offered) or server.tools.get(ours) or ToolOverride()


def _made(
    name: str, server: McpServer, override: ToolOverride, offered: Offered, run: Run
) -> tuple[Tool, ToolSpec]:
    parameters = _parameters(offered.input_schema)
    described = plain(offered.description or offered.title or "")
    description = cut(described.strip(), LONGEST_DESCRIPTION) or "（服务没有写说明。）"
    theirs = offered.name
    foreign = True if override.foreign is None else override.foreign

    async def call(**values: Any) -> str:
        context = values.pop(CONTEXT)
        return await run(context, theirs, values)

    call.__module__ = f"mcp:{name}"
    labels = {
        key: str(each.get("description", "")) if isinstance(each, Mapping) else ""
        for key, each in parameters["properties"].items()
    }
    tool = Tool(
        name=tool_name(prefix_of(name, server), theirs),
        description=description,
        side_effect=side_effect_of(override, offered.annotations),
        timeout=override.timeout or server.timeout,
        examples=(),
        audience="everyone",
        foreign=foreign,
        deterministic=True,
        target=None,
        shows=(),
        function=call,
        signature=RemoteSignature(BaseModel, CONTEXT, labels, parameters),
    )
    try:
        spec = tool.spec(None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unfit(f"参数的 schema 不能用（{type(error).__name__}）") from None
    return tool, spec


def _parameters(given: Any) -> dict[str, Any]:
    """The schema as we use it. Raises Unfit."""
    if not isinstance(given, Mapping):
        raise Unfit("没有参数的 schema")
    try:
        size = len(json.dumps(given, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        raise Unfit("参数的 schema 不是 JSON") from None
    if size > LONGEST_SCHEMA:
        raise Unfit(f"参数的 schema 太大（{size} 个字符，最多 {LONGEST_SCHEMA}）")
    if given.get("type", "object") != "object":
        raise Unfit("参数的 schema 不是 object")
    schema = _schema(given, 0)
    schema["type"] = "object"
    properties = schema.setdefault("properties", {})
    for name in schema.get("required", ()):
        if name not in properties:
            raise Unfit("必填的参数没有说明")
    try:
        compile_schema(schema).check({})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unfit(f"参数的 schema 不能用（{type(error).__name__}）") from None
    return schema


def _schema(given: Any, depth: int) -> dict[str, Any]:
    """A schema with the words we know, its texts cleaned. Raises Unfit."""
    if depth > DEEPEST_SCHEMA:
        raise Unfit("参数的 schema 嵌套太深")
    if not isinstance(given, Mapping):
        raise Unfit("参数的 schema 写法不对")
    made: dict[str, Any] = {}
    for word, value in given.items():
        if word in _KEPT_WORDS:
            made[word] = _word(word, value, depth)
    return made


def _word(word: str, value: Any, depth: int) -> Any:
    match word:
        case "description":
            return one_line(plain(str(value)), LONGEST_HINT)
        case "properties" | "$defs" | "definitions" | "patternProperties":
            if not isinstance(value, Mapping):
                raise Unfit("参数的 schema 写法不对")
            return {_key(name, word): _node(each, depth) for name, each in value.items()}
        case "anyOf" | "oneOf" | "allOf" | "prefixItems":
            if not isinstance(value, list):
                raise Unfit("参数的 schema 写法不对")
            return [_node(each, depth) for each in value]
        case "items" if isinstance(value, list):
            return [_node(each, depth) for each in value]
        case "items" | "not" | "if" | "then" | "else" | "contains" | "propertyNames":
            return _node(value, depth)
        case "additionalProperties":
            return _node(value, depth)
        case "required":
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise Unfit("参数的 schema 写法不对")
            return value
        case "enum" | "const" | "default":
            return _value(value)
        case "$ref" if not str(value).startswith("#"):
            raise Unfit("参数的 schema 指向别处")
        case _ if word in _TEXTS and (not isinstance(value, str) or _speaks(value)):
            raise Unfit("参数的 schema 写法不对")
    return value


def _node(value: Any, depth: int) -> Any:
    return value if isinstance(value, bool) else _schema(value, depth + 1)


def _key(name: Any, word: str) -> str:
    if word == "patternProperties":
        if isinstance(name, str) and not _speaks(name):
            return name
    elif isinstance(name, str) and _PARAMETER.fullmatch(name):
        return name
    raise Unfit("有参数的名字不能用")


def _value(value: Any) -> Any:
    """An allowed or default value, which goes back as it is: one that would read as part of a
    prompt cannot be cleaned, only refused."""
    if isinstance(value, str) and (_speaks(value) or len(value) > LONGEST_HINT):
        raise Unfit("参数允许的值里有不能用的文字")
    if isinstance(value, Mapping):
        for each in (*value, *value.values()):
            _value(each)
    elif isinstance(value, list):
        for each in value:
            _value(each)
    return value


def _speaks(text: str) -> bool:
    return plain(text) != text or "\n" in text
