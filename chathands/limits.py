"""Numbers of the engine that nobody tunes, each with its reason. Standard library only.

What a person may set is in settings.py. These live apart because emulation/ reads them and must
not pull in a settings library (it is sans-IO, and `import chathands` must stay cheap).
"""

REPLY_CAP = 512 * 1024
"""Characters of one reply that are read; an argument of 177 kB has been seen in the wild."""

HOLD_CHARACTERS = 64
"""Characters held back at the start of a streamed reply: a refusal shows in one sentence."""

BATCH_PROSE = 80
"""Characters of prose between two blocks that keep the batch open; more is a new thought."""

THOUGHT_BEFORE_BLOCK = 200
"""Characters of text kept before a block in history: enough to keep the plan, too few to rot."""

MAX_CORRECTIONS = 2
"""Corrections per turn: measured, a third one changes nothing but the bill."""

JSON_DEPTH = 64
"""Nesting that is still read; real arguments stay under ten, hostile ones go to ten thousand."""

MAX_CALLS = 32
"""Calls read from one reply; more is a runaway list."""

CONTRACT_SHARE = 0.35
"""Of an upstream's context, for the contract: a hundred tools must leave room for the talk."""

HISTORY_SHARE = 0.25
"""Of an upstream's context, for earlier rounds: with the contract's 35 % and the reply, a third is
left for what this question reads."""
