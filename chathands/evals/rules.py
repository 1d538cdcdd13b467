"""Whether a call is the expected one: by our matchers, or by a public benchmark's own rules.

BFCL's rules: the checker of Berkeley Function Calling Leaderboard v4 (bfcl_eval/eval_checker,
Apache-2.0), as far as one decision goes. ACEBench's: `model_eval/checker.py` (MIT). Both are
written anew here from what they do; where a benchmark is stricter about a type than about a value
(`5` for a float), so is this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chathands.conversation import ToolSpec
from chathands.evals.case import ExpectedCall, Rule, fits


def call_fits(
    name: str, arguments: Mapping[str, Any], expected: ExpectedCall, spec: ToolSpec, rule: Rule
) -> bool:
    """Whether a call to `name` with `arguments` is the expected one."""
    if name != expected.tool:
        return False
    if rule == "bfcl":
        return _fits_bfcl(arguments, expected.arguments, spec)
    if rule == "acebench":
        return _fits_acebench(arguments, expected.arguments, spec)
    if expected.only and not set(arguments) <= set(expected.arguments):
        return False
    return all(fits(arguments.get(key), wanted) for key, wanted in expected.arguments.items())


def _properties(spec: ToolSpec) -> Mapping[str, Any]:
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _required(spec: ToolSpec) -> list[str]:
    required = spec.parameters.get("required")
    return required if isinstance(required, list) else []


# --- BFCL: each argument has a list of allowed values; "" in it means that it may be left out

_BFCL_BLANKS = re.compile(r"[ ,./\-_*^]")

_INTEGERS = {"integer", "int", "long", "short", "byte", "bigint"}
_FLOATS = {"float", "double", "number"}
_BOOLEANS = {"boolean", "bool"}
_LISTS = {"array", "list", "tuple", "arraylist"}
_DICTS = {"dict", "object", "hashmap"}


def _fits_bfcl(arguments: Mapping[str, Any], answer: Mapping[str, Any], spec: ToolSpec) -> bool:
    properties = _properties(spec)
    if any(key not in arguments for key in _required(spec) if key in answer):
        return False
    for key, value in arguments.items():
        if key not in properties or key not in answer:
            return False
        allowed = answer[key] if isinstance(answer[key], list) else [answer[key]]
        kind = str((properties[key] or {}).get("type", "any")).lower()
        if not _is_of(value, kind) and not any(_same_kind(value, a) for a in allowed):
            return False
        if not any(_equals_bfcl(value, a) for a in allowed):
            return False
    return all(
        key in arguments or "" in (allowed if isinstance(allowed, list) else [allowed])
        for key, allowed in answer.items()
    )


def _is_of(value: Any, kind: str) -> bool:
    if kind in _INTEGERS:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind in _FLOATS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind in _BOOLEANS:
        return isinstance(value, bool)
    if kind in _LISTS:
        return isinstance(value, list)
    if kind in _DICTS:
        return isinstance(value, dict)
    return isinstance(value, str) if kind in ("string", "str", "char") else True


def _same_kind(value: Any, allowed: Any) -> bool:
    """An answer of another type than declared is a variable's name; its type then counts."""
    return allowed != "" and type(value) is type(allowed)


def _equals_bfcl(value: Any, allowed: Any) -> bool:
    if isinstance(value, str) and isinstance(allowed, str):
        return _plain(value) == _plain(allowed)
    if isinstance(value, list) and isinstance(allowed, list):
        return len(value) == len(allowed) and all(map(_equals_bfcl, value, allowed))
    if isinstance(value, dict) and isinstance(allowed, dict):
        for key, inner in value.items():
            if key not in allowed or not _in_allowed(inner, allowed[key]):
                return False
        return all(
            key in value or (isinstance(choices, list) and "" in choices)
            for key, choices in allowed.items()
        )
    return value == allowed and isinstance(value, bool) == isinstance(allowed, bool)


def _in_allowed(value: Any, choices: Any) -> bool:
    if isinstance(choices, list):
        return any(_equals_bfcl(value, choice) for choice in choices)
    return _equals_bfcl(value, choices)


def _plain(text: str) -> str:
    return _BFCL_BLANKS.sub("", text).lower().replace("'", '"')


# --- ACEBench: one value per argument; expected text must be found in the given text

_ACE_BLANKS = re.compile(r"[ ,./\-_*^()，。、：:；;！!？?（）]")


def _fits_acebench(arguments: Mapping[str, Any], answer: Mapping[str, Any], spec: ToolSpec) -> bool:
    properties = _properties(spec)
    if any(key not in arguments for key in _required(spec)):
        return False
    if any(key not in properties or key not in answer for key in arguments):
        return False
    return all(_equals_ace(arguments[key], answer[key]) for key in arguments)


def _equals_ace(value: Any, wanted: Any) -> bool:
    if value in ("true", "false"):
        value = value == "true"
    if isinstance(wanted, dict):
        return (
            isinstance(value, dict)
            and value.keys() == wanted.keys()
            and all(_equals_ace(value[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_equals_ace, value, wanted))
        )
    if isinstance(wanted, str):
        return isinstance(value, str) and _plain_ace(wanted) in _plain_ace(value)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _plain_ace(text: str) -> str:
    return _ACE_BLANKS.sub("", text).lower().replace("'", '"')
