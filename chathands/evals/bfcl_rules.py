"""BFCL's matching rules: every argument has a list of allowed values; "" in it: may be left out.

What counts is what the checker of the Berkeley Function Calling Leaderboard v4 does
(`bfcl_eval/eval_checker/ast_eval/ast_checker.py`, release 2026.3.23, Apache-2.0), written anew:

- A required parameter may not be missing, no parameter may be given that the schema or the answer
  does not have, and one that the answer has may be missing only where "" is allowed.
- The JSON type must be the declared one, or else that of the first allowed value (the checker
  calls that a variable; it is then compared as it stands). An integer will do for a float, but not
  inside a list: there the element's type must be that of `items` or of the answer's first element.
- Text is compared without case, blanks and `, . / - _ * ^`, with ' and " alike; in a list only
  where it is an element, in an object only where it is a value of its own.
- Lists must have the same order. Calls need not (that is the judge's part).

Where this departs from the checker, and why:

- Objects inside objects are read like the outer one (allowed values per key). The checker compares
  them as they stand, so that no call at all could be right.
- An object's key whose answer is a bare value wants that value; the checker reads such text letter
  by letter. 1 is never `true`, which Python's equality would allow.
- Java and JavaScript (`fits_bfcl_code`): the checker has models write every argument as source
  text and reads that. Tools are offered here with their real types, text being allowed beside
  them, so a JSON value is right when it is the answer; source text is read (`code_values.py`) and
  right as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chathands.conversation import ToolSpec
from chathands.evals.code_values import read_code

_KINDS = {
    **dict.fromkeys(("string", "str", "char", "any"), "text"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "number"), "float"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple", "arraylist", "queue", "stack"), "list"),
    **dict.fromkeys(("dict", "object", "hashmap", "hashtable"), "object"),
}
_DROPPED = re.compile(r"[ ,./\-_*^]")


def fits_bfcl(arguments: Mapping[str, Any], answer: Mapping[str, Any], spec: ToolSpec) -> bool:
    """Whether the arguments are among the allowed ones."""
    return _fits(arguments, answer, spec, code=False)


def fits_bfcl_code(arguments: Mapping[str, Any], answer: Mapping[str, Any], spec: ToolSpec) -> bool:
    """The same for the Java and JavaScript categories."""
    return _fits(arguments, answer, spec, code=True)


def _fits(
    arguments: Mapping[str, Any], answer: Mapping[str, Any], spec: ToolSpec, *, code: bool
) -> bool:
    properties = spec.parameters.get("properties") or {}
    if any(key not in arguments for key in spec.parameters.get("required") or ()):
        return False
    if any(key not in properties or key not in answer for key in arguments):
        return False
    for key, value in arguments.items():
        allowed = _allowed(answer[key])
        if code:
            if not any(_same_code(value, each) for each in allowed):
                return False
        elif not _is_allowed(value, allowed, properties[key] or {}):
            return False
    return all(key in arguments or "" in _allowed(choices) for key, choices in answer.items())


def _allowed(choices: Any) -> list[Any]:
    return choices if isinstance(choices, list) else [choices]


def _kind(value: Any) -> str:
    """The kind of a JSON value, in the words of `_KINDS`."""
    if isinstance(value, bool):
        return "boolean"
    for kind, type_ in (("text", str), ("integer", int), ("float", float), ("list", list)):
        if isinstance(value, type_):
            return kind
    return "null" if value is None else "object"


def _answered_kind(allowed: Sequence[Any]) -> str | None:
    return next((_kind(each) for each in allowed if each != ""), None)


def _declared_kind(schema: Any) -> str | None:
    return _KINDS.get(str(schema.get("type")).lower()) if isinstance(schema, Mapping) else None


def _is_allowed(value: Any, allowed: list[Any], schema: Mapping[str, Any]) -> bool:
    declared = _declared_kind(schema)
    if declared == "float" and _kind(value) == "integer":
        value = float(value)
    answered = _answered_kind(allowed)
    if _kind(value) == declared:
        elements = _declared_kind(schema.get("items")) if declared == "list" else None
        if elements and not any(_elements_fit(value, each, elements) for each in allowed):
            return False
        as_it_stands = answered is not None and answered != declared
    elif _kind(value) == answered:
        as_it_stands = True
    else:
        return False
    if as_it_stands:
        return any(_equal(value, each) for each in allowed)
    if declared == "list":
        # The checker measures and compares the "" of an optional list like a list: as an empty one.
        return any(_same_list(value, [] if each == "" else each) for each in allowed)
    if declared == "object":
        return any(isinstance(each, dict) and _same_object(value, each) for each in allowed)
    return any(_same(value, each) for each in allowed)


def _elements_fit(value: list[Any], answer: Any, declared: str) -> bool:
    if not isinstance(answer, list):
        return True
    return all(_kind(each) in (declared, _answered_kind(answer)) for each in value)


def _same_list(value: list[Any], answer: Any) -> bool:
    return isinstance(answer, list) and len(value) == len(answer) and all(map(_same, value, answer))


def _same_object(value: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    for key, inner in value.items():
        if key not in answer or not any(_same(inner, each) for each in _allowed(answer[key])):
            return False
    return all(key in value or "" in _allowed(choices) for key, choices in answer.items())


def _same(value: Any, answer: Any) -> bool:
    if isinstance(value, str) and isinstance(answer, str):
        return _plain(value) == _plain(answer)
    if isinstance(value, dict) and isinstance(answer, dict):
        return _equal(value, answer) or _same_object(value, answer)
    if isinstance(value, list) and isinstance(answer, list) and _has_objects(answer):
        return _same_list(value, answer)
    return _equal(value, answer)


def _has_objects(answer: list[Any]) -> bool:
    return any(isinstance(each, dict) for each in answer)


def _equal(value: Any, answer: Any) -> bool:
    """Python's equality, but for 1 and `true`."""
    if isinstance(value, list) and isinstance(answer, list):
        return len(value) == len(answer) and all(map(_equal, value, answer))
    if isinstance(value, dict) and isinstance(answer, dict):
        return value.keys() == answer.keys() and all(_equal(value[k], answer[k]) for k in answer)
    return value == answer and isinstance(value, bool) == isinstance(answer, bool)


def _same_code(value: Any, answer: Any) -> bool:
    if isinstance(answer, str):
        if isinstance(value, dict | list):
            return False
        text = value if isinstance(value, str) else str(read_code(value))
        text = {"True": "true", "False": "false", "None": "null"}.get(text, text)
        return _plain(answer) in (_plain(text), _plain(str(read_code(text))))
    if isinstance(value, str):
        value = read_code(value)
    if isinstance(value, list) and isinstance(answer, list):
        return len(value) == len(answer) and all(map(_same_code, value, answer))
    if isinstance(value, dict) and isinstance(answer, dict):
        for key, inner in value.items():
            choices = [answer.get(key), *_allowed(answer.get(key))]
            if key not in answer or not any(_same_code(inner, each) for each in choices):
                return False
        return all(key in value or "" in _allowed(choices) for key, choices in answer.items())
    return _equal(value, answer)


def _plain(text: str) -> str:
    return _DROPPED.sub("", text).lower().replace("'", '"')
