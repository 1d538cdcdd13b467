"""The contract: the system text that teaches a plain-chat model its tools and how to act.

Byte-identical for the same tools; nothing in a tool's own words can open a fence or a section.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from chathands.conversation import SameSpecs, ToolExample, ToolSpec, as_specs
from chathands.emulation.kinds import kind_of_tools
from chathands.emulation.outcome import Language, Mode
from chathands.emulation.prompts import load, wording
from chathands.emulation.signature import NAME_CAP, one_line, own_line, parameter_lines
from chathands.emulation.writing import BLOCKS, Writer
from chathands.emulation.writing import render_block as render_block
from chathands.schema import compile_schema

FIND_TOOLS = "find_tools"
"""The pseudo tool of a contract that does not list everything; see offer.py."""


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Tools that a contract does not list: how many, and the names of those it at least names."""

    count: int
    named: tuple[str, ...] = ()
    examples: bool = True
    """Whether there is room for worked examples."""


_AUDIENCES = ("everyone", "admin", "superuser")


def in_order(tools: Sequence[ToolSpec | Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Specs by audience (everyone, admin, superuser), then name: rights only change the tail."""
    return tuple(
        sorted(as_specs(tools), key=lambda spec: (_AUDIENCES.index(spec.audience), spec.name))
    )


def render_contract(
    tools: Sequence[ToolSpec | Mapping[str, Any]],
    *,
    language: Language,
    persona: str | None = None,
    unlisted: Unlisted | None = None,
    writer: Writer = BLOCKS,
) -> str:
    """The contract for `tools`: rules, form, examples, tools, and last the persona.

    `unlisted` are tools that can be found; the list then ends in the tool that finds them. Without
    tools, only the persona (or ""). `writer` has the form of the mode.
    """
    specs = in_order(tools)
    if not (specs or unlisted):
        return persona or ""
    return _rendered(SameSpecs(specs), language, persona, unlisted, writer)


@lru_cache(maxsize=16)
def _rendered(
    same: SameSpecs,
    language: Language,
    persona: str | None,
    unlisted: Unlisted | None,
    writer: Writer,
) -> str:
    """Kept because every request of a run has it, and everybody's of the same rights."""
    specs = same.specs
    listed = (*specs, find_tools(language, unlisted, writer.mode)) if unlisted else specs
    words = wording(language, writer.mode)["contract"]
    examples = _examples(specs, language, writer) if not unlisted or unlisted.examples else []
    rules = "\n".join(f"{n}. {rule}" for n, rule in enumerate(words["rules"], 1))
    sections = [
        words["opening"],
        f"{words['rules_title']}\n{rules}",
        f"{words['form_title']}\n{words['form']}",
        "\n\n".join([words["examples_title"], *examples] if examples else ()),
        f"{words['tools_title']}\n" + "\n\n".join(render_tool(spec, language) for spec in listed),
        words["closing"],
    ]
    if persona:
        sections.append(f"{words['persona_title']}\n{persona}")
    return "\n\n".join(section for section in sections if section)


def render_tool(spec: ToolSpec, language: Language) -> str:
    """One tool as the contract lists it."""
    lines = [f"### {one_line(spec.name, NAME_CAP)}"]
    if spec.description.strip():
        lines.append(own_line(spec.description))
    return "\n".join([*lines, *parameter_lines(spec.parameters, wording(language)["schema"])])


def find_tools(language: Language, unlisted: Unlisted, mode: Mode = "emulated") -> ToolSpec:
    """The pseudo tool, with what it can find."""
    words = wording(language, mode)["lookup"]
    names = words["comma"].join(one_line(name, NAME_CAP) for name in unlisted.named)
    named = words["named"].format(names=names) if names else ""
    query = {"type": "string", "description": words["query"]}
    return ToolSpec(
        FIND_TOOLS,
        words["description"].format(hidden=unlisted.count, named=named),
        {"type": "object", "properties": {"query": query}, "required": ["query"]},
        "none",
    )


def _examples(specs: Sequence[ToolSpec], language: Language, writer: Writer) -> list[str]:
    """The chain, which is the same for all tools and so stays in the upstream's cache; then worked
    examples with declared tools where there are any, else one of the tools' kind for show.

    The tools for show have names like any other: a small model copies a telling prefix to the
    declared ones.
    """
    words = wording(language, writer.mode)["contract"]
    declared = {spec.name for spec in specs}
    chain = f"{words['chain_intro']}\n{_chain_example(language, writer, declared)}"
    if own := _worked_examples(specs, words, writer):
        return [chain, *own]
    kind = kind_of_tools(specs)
    if kind is None:
        return [chain]
    shown = load("examples")[kind][language]
    block = writer.calls([(_for_show(shown["tool"], declared), shown["parameters"])])
    example = words["example"].format(request=shown["request"], block=block)
    return [chain, f"{words['show_intro']}\n{example}"]


def _worked_examples(
    specs: Sequence[ToolSpec], words: Mapping[str, Any], writer: Writer
) -> list[str]:
    """Examples from declared tools: one request with one call, and two requests with two calls.

    From tools for everyone, so that the head stays shared. Reading tools first: a worked example
    of sending invites sending.
    """
    shared = [spec for spec in specs if spec.audience == "everyone"] or list(specs)
    shared.sort(key=lambda spec: spec.side_effect != "none")
    found = [
        (spec.name, example) for spec in shared if (example := _fitting_example(spec)) is not None
    ]
    examples = []
    if found:
        name, example = found[0]
        examples.append((example.request, [(name, example.arguments)]))
    if len(found) > 2:
        (one, first), (two, second) = found[1:3]
        request = words["pair"].format(first=first.request, second=second.request)
        examples.append((request, [(one, first.arguments), (two, second.arguments)]))
    return [
        words["example"].format(request=one_line(request), block=writer.calls(calls))
        for request, calls in examples
    ]


def _fitting_example(spec: ToolSpec) -> ToolExample | None:
    """The tool's first example whose arguments its schema takes as they stand.

    Choices are filled in from the settings (which robots there are), so an example can be about
    something that is not there; a model copies what it is shown.
    """
    schema = compile_schema(spec.parameters)
    for example in spec.examples:
        checked = schema.check(example.arguments)
        if example.request.strip() and not checked.problems and not checked.repairs:
            return example
    return None


def _for_show(name: str, declared: Collection[str]) -> str:
    """The name of a tool that is said not to exist, so it must not."""
    while name in declared:
        name += "_0"
    return name


def _chain_example(language: Language, writer: Writer, declared: Collection[str]) -> str:
    """Two independent calls at once, then one that depends on them, then the answer."""
    words, history = wording(language)["contract"], wording(language)["history"]

    def calls(*entries: Mapping[str, Any]) -> str:
        return writer.calls(
            [(_for_show(entry["tool"], declared), entry["parameters"]) for entry in entries]
        )

    def result(number: int, entry: Mapping[str, Any], content: str) -> str:
        name = _for_show(entry["tool"], declared)
        head = history["result"].format(number=number, name=name, envelope="status=ok")
        marks = history["open"].format(fence="…"), history["close"].format(fence="…")
        return f"{head}\n{marks[0]}\n{content}\n{marks[1]}"

    first = words["chain_first"]
    results = [
        result(n, entry, content)
        for n, (entry, content) in enumerate(
            zip(first, words["chain_first_results"], strict=True), 1
        )
    ]
    last = result(len(first) + 1, words["chain_second"], words["chain_second_result"])
    return "\n".join(
        [
            f"{words['user']}{words['chain_request']}",
            words["you"],
            calls(*first),
            f"{words['user']}{results[0]}",
            *results[1:],
            words["you"],
            calls(words["chain_second"]),
            f"{words['user']}{last}",
            words["you"],
            writer.answer(words["chain_answer"]),
        ]
    )
