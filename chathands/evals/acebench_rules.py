"""ACEBench's matching rules: one value per argument, given text must hold the expected text.

What counts is what its checker does for the normal categories (`model_eval/checker.py`, MIT),
written anew:

- A required parameter may not be missing, no parameter may be given that the schema or the answer
  does not have. Parameters that the answer has and the schema does not require may be left out.
- Text is compared without case, blanks and `, . / - _ * ^`, with ' and " alike. It is right when
  the expected text is found in it; an element of a list, however, must be the expected one.
- Objects must have just the expected keys, lists the expected order; "true" will do for `true`.
- Where the answer's type is not the declared one the answer's counts.

Where this departs from the checker, and why:

- Numbers and truth values are compared. The checker looks at their type only, so that any number
  would be right; in objects it looks for the digits in the digits (5 in 25).
- A call without arguments is right where none are expected; `[]` and `{}` are right where
  expected. The checker finds such answers wrong whatever is given.
- In lists inside objects text is compared as elsewhere. The checker compares how Python prints
  the lists after dropping the blanks of one side: "live music" could not be right.
- The Chinese comma, full stop and 、 are dropped like the marks they stand for.
- A call may serve one expected call only. The checker lets one serve several.
- The multi-turn categories are judged decision by decision (its "process accuracy").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chathands.conversation import ToolSpec

_DROPPED = re.compile(r"[\s,./\-_*^，。、]")
_TEXTS = {"string", "str", "any", "enum"}
_TRUTHS = {"true": True, "false": False}


def fits_acebench(arguments: Mapping[str, Any], answer: Mapping[str, Any], spec: ToolSpec) -> bool:
    """Whether the arguments are the expected ones."""
    if not arguments or not answer:
        return not arguments and not answer
    properties = spec.parameters.get("properties") or {}
    if any(key not in arguments for key in spec.parameters.get("required") or ()):
        return False
    if any(key not in properties or key not in answer for key in arguments):
        return False
    return all(_fits(value, answer[key], properties[key]) for key, value in arguments.items())


def _fits(value: Any, wanted: Any, schema: Any) -> bool:
    declared = str(schema.get("type")).lower() if isinstance(schema, Mapping) else ""
    if declared in _TEXTS and isinstance(value, str) and not isinstance(wanted, str):
        # Text was asked for and the answer is none: the same thing as text will do; of a list,
        # any of it.
        choices = wanted if isinstance(wanted, list) else [wanted]
        return any(_plain(_text(each)) in _plain(value) for each in choices)
    if isinstance(wanted, str) and _is_number(value) and declared not in _TEXTS:
        return _plain(wanted) == _plain(_text(value))
    if isinstance(wanted, dict):
        return _same_object(value, wanted)
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_same_element, value, wanted))
        )
    return _same(value, wanted)


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return isinstance(value, str) and _plain(wanted) in _plain(value)
    return _equal(value, wanted)


def _same_element(value: Any, wanted: Any) -> bool:
    return _same_object(value, wanted) if isinstance(wanted, dict) else _equal(value, wanted)


def _same_object(value: Any, wanted: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict) or value.keys() != wanted.keys():
        return False
    return all(_same_inside(value[key], each) for key, each in wanted.items())


def _same_inside(value: Any, wanted: Any) -> bool:
    """A value of an object. There the checker compares text, so 5 and "5" are the same."""
    if isinstance(wanted, dict):
        return _same_object(value, wanted)
    if isinstance(wanted, str) and _is_number(value):
        return _plain(wanted) == _plain(_text(value))
    if _is_number(wanted) and isinstance(value, str):
        return _plain(value) == _plain(_text(wanted))
    return _same(value, wanted)


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, bool) and isinstance(value, str):
        value = _TRUTHS.get(value, value)
    if isinstance(value, str) and isinstance(wanted, str):
        return _plain(value) == _plain(wanted)
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_equal, value, wanted))
    if isinstance(value, dict) and isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(_equal(value[k], wanted[k]) for k in wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(text: str) -> str:
    return _DROPPED.sub("", text).lower().replace("'", '"')
