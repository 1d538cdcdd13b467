"""The loop around the laws: for a number of cases, or for as long as somebody wants to wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from random import Random

from tests.fuzz import laws, schemas, turns
from tests.fuzz.laws import Broken

SEED = os.environ.get("CHATHANDS_FUZZ_SEED", "1")
SECONDS = float(os.environ.get("CHATHANDS_FUZZ_SECONDS", "0"))
"""Above 0: every target runs this long, instead of its fixed number of cases."""

TARGETS: dict[str, tuple[Callable[[Random], None], int]] = {
    "any text": (laws.made_up, 1800),
    "faultless calls": (laws.told, 700),
    "damaged blocks": (laws.damaged, 2000),
    "shown calls": (laws.shown, 600),
    "cut replies": (laws.corpus_cut, 800),
    "schemas": (schemas.checked, 3000),
    "runs": (turns.any_run, 180),
}
"""Each target with the number of cases the suite runs: all together a few seconds."""


def findings(name: str, *, seed: str = SEED, seconds: float = SECONDS) -> Iterator[Broken | None]:
    """One entry a case: what it breaks, or None. A seed and a number are a case for good."""
    check, count = TARGETS[name]
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end if seconds else number < count:
        try:
            check(Random(f"{seed}:{name}:{number}"))
        except Broken as broken:
            broken.add_note(f"case {seed}:{name}:{number}")
            yield broken
        else:
            yield None
        number += 1
