"""Compact parameter lines against full JSON Schema in the contract: tokens and right calls.

    python benchmarks/contract.py ask http://127.0.0.1:8080/v1 answers.jsonl [--slot 0]
    python benchmarks/contract.py report answers.jsonl

`ask` sends every case of data/contract_cases.jsonl once per variant to a plain-chat model
(temperature 0) and appends one line per reply, so that it can be stopped and started again.
`report` reads the replies with our own parser. Only the tool list differs between the variants.
A reply is right when it has exactly the expected calls (in any order), with the expected values
and nothing beside them but schema defaults; where no call is wanted, when it has none.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.figures import read_lines, wilson  # noqa: E402
from chathands.conversation import ToolExample, ToolSpec  # noqa: E402
from chathands.emulation import parse_reply  # noqa: E402
from chathands.emulation.contract import in_order, render_contract, render_tool  # noqa: E402
from chathands.emulation.outcome import Language  # noqa: E402
from chathands.emulation.signature import NAME_CAP, one_line  # noqa: E402

DATA = Path(__file__).parent / "data"
VARIANTS = ("compact", "schema")
Row = dict[str, Any]


# --- cases


def in_language(value: Any, language: str) -> Any:
    """A toolbox value with every {"zh": …, "en": …} replaced by the one of `language`."""
    if isinstance(value, dict):
        if set(value) == {"zh", "en"}:
            return value[language]
        return {key: in_language(inner, language) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_language(inner, language) for inner in value]
    return value


def toolbox(name: str, language: Language) -> tuple[ToolSpec, ...]:
    boxes = json.loads((DATA / "contract_toolboxes.json").read_text(encoding="utf-8"))
    specs = []
    for row in in_language(boxes[name], language):
        examples = tuple(ToolExample(*pair) for pair in row.pop("examples", ()))
        specs.append(ToolSpec(**row, examples=examples))
    return in_order(specs)


def cases() -> list[Row]:
    return read_lines(DATA / "contract_cases.jsonl")


# --- variants


def contract(specs: Sequence[ToolSpec], language: Language, variant: str) -> str:
    text = render_contract(specs, language=language)
    if variant == "schema":
        for spec in specs:
            lines = [
                f"### {one_line(spec.name, NAME_CAP)}",
                one_line(spec.description),
                f"parameters: {json.dumps(spec.parameters, ensure_ascii=False)}",
            ]
            text = text.replace(render_tool(spec, language), "\n".join(lines))
    return text


# --- asking


def ask(url: str, system: str, request: str, most: int, slot: int | None) -> Row:
    body: Row = {
        "model": "local",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": request},
        ],
        "temperature": 0,
        "max_tokens": most,
        "cache_prompt": True,
    }
    if slot is not None:
        body["id_slot"] = slot
    sent = urllib.request.Request(
        f"{url.rstrip('/')}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(sent, timeout=900) as answer:
        got = json.load(answer)
    choice = got["choices"][0]
    return {
        "reply": choice["message"]["content"] or "",
        "finish_reason": choice["finish_reason"],
        "prompt_tokens": got["usage"]["prompt_tokens"],
        "completion_tokens": got["usage"]["completion_tokens"],
    }


def ask_all(url: str, out: Path, slot: int | None) -> None:
    done = {(row["id"], row["variant"]) for row in read_lines(out)} if out.exists() else set()
    # By toolbox and variant, so that the contract stays in the server's prompt cache.
    groups = sorted({(case["toolbox"], case["language"]) for case in cases()})
    asked = [
        (variant, case, contract(toolbox(name, language), language, variant))
        for name, language in groups
        for variant in VARIANTS
        for case in cases()
        if (case["toolbox"], case["language"]) == (name, language)
        and (case["id"], variant) not in done
    ]
    with out.open("a", encoding="utf-8") as file:
        for variant, case, system in asked:
            row = {"id": case["id"], "variant": variant}
            # Whether a reply acts shows at once; the rest of a joke costs only time.
            most = 256 if case["expected"] else 72
            row |= ask(url, system, case["request"], most, slot)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()


# --- judging


def same(wanted: Any, given: Any) -> bool:
    """Whether an argument is what was asked for. {"$has": [...]}: text with all of these;
    {"$any": [...]}: one of these; a key "?k" may be left out."""
    if isinstance(wanted, dict):
        if "$has" in wanted:
            text = str(given).casefold()
            return isinstance(given, str) and all(p.casefold() in text for p in wanted["$has"])
        if "$any" in wanted:
            return any(same(option, given) for option in wanted["$any"])
        return isinstance(given, Mapping) and same_arguments(wanted, given, {})
    if isinstance(wanted, list):
        return (
            isinstance(given, list)
            and len(given) == len(wanted)
            and all(same(w, g) for w, g in zip(wanted, given, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, int | float) and isinstance(given, int | float):
        return math.isclose(wanted, given)
    return str(wanted).strip().casefold() == str(given).strip().casefold()


def same_arguments(wanted: Row, given: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    keys = {key.removeprefix("?"): value for key, value in wanted.items()}
    needed = {key for key in wanted if not key.startswith("?")}
    properties = schema.get("properties", {})
    for key, value in given.items():
        if key in keys:
            if not same(keys[key], value):
                return False
            continue
        # Nested defaults are zero, false or "normal" here: naming one says nothing new.
        fallback = properties.get(key, {}).get("default")
        if value != fallback and (schema or value not in (0, 1, False, None, "")):
            return False
    missing = needed - set(given)
    # Leaving out what equals the default says the same.
    return all(
        key in properties
        and "default" in properties[key]
        and same(keys[key], properties[key]["default"])
        for key in missing
    )


def is_right(case: Row, reply: str, finish_reason: str, specs: Sequence[ToolSpec]) -> bool:
    parsed = parse_reply(reply, specs, finish_reason)
    if not case["expected"]:
        return not parsed.calls and bool(parsed.text.strip())
    schemas = {spec.name: spec.parameters for spec in specs}
    left = list(parsed.calls)
    for wanted in case["expected"]:
        found = next(
            (
                call
                for call in left
                if call.name == wanted["tool"]
                and same_arguments(wanted["parameters"], call.arguments, schemas[call.name])
            ),
            None,
        )
        if found is None:
            return False
        left.remove(found)
    return not left


# --- intervals


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p of the paired difference: a binomial test on the discordant pairs."""
    n, k = only_first + only_second, min(only_first, only_second)
    tail = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    return min(1.0, 2 * tail)


def bootstrap(differences: Sequence[int], rounds: int = 10_000) -> tuple[float, float]:
    """The 95 % percentile interval of the mean paired difference; the same at every run."""
    draw = random.Random(0)
    n = len(differences)
    means = sorted(sum(draw.choices(differences, k=n)) / n for _ in range(rounds))
    return means[int(rounds * 0.025)], means[int(rounds * 0.975)]


# --- the report


def report(path: Path) -> Iterable[str]:
    answers = {(row["id"], row["variant"]): row for row in read_lines(path)}
    boxes: dict[tuple[str, str], tuple[ToolSpec, ...]] = {}
    judged: dict[str, list[tuple[bool, bool, Row]]] = {"zh": [], "en": []}
    for case in cases():
        rows = [answers.get((case["id"], variant)) for variant in VARIANTS]
        if any(row is None for row in rows):
            continue
        where = (case["toolbox"], case["language"])
        if where not in boxes:
            boxes[where] = toolbox(*where)
        specs = boxes[where]
        right = [is_right(case, row["reply"], row["finish_reason"], specs) for row in rows if row]
        judged[case["language"]].append((right[0], right[1], case))
    for language in ("zh", "en", "both"):
        rows = judged["zh"] + judged["en"] if language == "both" else judged[language]
        for kind, part in (
            ("all", rows),
            ("calls wanted", [row for row in rows if row[2]["expected"]]),
            ("none wanted", [row for row in rows if not row[2]["expected"]]),
        ):
            if part:
                yield from compared(f"{language}, {kind}", part)
        sums = {
            variant: [answers[case["id"], variant]["prompt_tokens"] for _, _, case in rows]
            for variant in VARIANTS
        }
        if rows:
            means = {variant: sum(sums[variant]) / len(rows) for variant in VARIANTS}
            yield (
                f"  prompt tokens (the server's count, mean): compact {means['compact']:.0f}, "
                f"schema {means['schema']:.0f} "
                f"({100 * (means['compact'] / means['schema'] - 1):+.1f} %)"
            )


def compared(title: str, rows: Sequence[tuple[bool, bool, Row]]) -> Iterable[str]:
    n = len(rows)
    yield f"{title} ({n} paired cases)"
    for at, variant in enumerate(VARIANTS):
        hits = sum(bool(row[at]) for row in rows)
        low, high = wilson(hits, n)
        yield f"  {variant:8} {100 * hits / n:5.1f} % right  [{100 * low:.1f}, {100 * high:.1f}]"
    first = sum(a and not b for a, b, _ in rows)
    second = sum(b and not a for a, b, _ in rows)
    low, high = bootstrap([int(a) - int(b) for a, b, _ in rows])
    yield (
        f"  compact - schema {100 * (first - second) / n:+.1f} points [{100 * low:+.1f}, "
        f"{100 * high:+.1f}], only compact right {first}, only schema right {second}, "
        f"exact McNemar p = {mcnemar(first, second):.2f}"
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("ask")
    asking.add_argument("url")
    asking.add_argument("out", type=Path)
    asking.add_argument("--slot", type=int)
    reporting = commands.add_parser("report")
    reporting.add_argument("answers", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "ask":
        ask_all(given.url, given.out, given.slot)
    else:
        sys.stdout.write("\n".join(report(given.answers)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
