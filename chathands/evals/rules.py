"""Whether a call is the expected one: by our matchers, or by a public benchmark's own rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chathands.conversation import ToolSpec
from chathands.evals.acebench_rules import fits_acebench
from chathands.evals.bfcl_rules import fits_bfcl, fits_bfcl_code
from chathands.evals.case import ExpectedCall, Rule, fits


def call_fits(
    name: str, arguments: Mapping[str, Any], expected: ExpectedCall, spec: ToolSpec, rule: Rule
) -> bool:
    """Whether a call to `name` with `arguments` is the expected one."""
    if name != expected.tool:
        return False
    if rule == "bfcl":
        return fits_bfcl(arguments, expected.arguments, spec)
    if rule == "bfcl_code":
        return fits_bfcl_code(arguments, expected.arguments, spec)
    if rule == "acebench":
        return fits_acebench(arguments, expected.arguments, spec)
    if expected.only and not set(arguments) <= set(expected.arguments):
        return False
    return all(fits(arguments.get(key), wanted) for key, wanted in expected.arguments.items())
