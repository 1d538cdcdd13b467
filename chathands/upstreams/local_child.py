"""The process that holds the local model. Started as a script; imports nothing of this package.

In: one JSON line on standard input (model, name, context, threads, api_key); the input's end means
that the parent is gone, however it died, and ends this process. Out: one JSON line, `{"address":
...}` once the server answers, or `{"error": ..., "cause": "import" | "start"}`. llama.cpp's own
output goes to standard error.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import threading
from typing import Any

BATCH_TOKENS = 256
"""A cancelled request is noticed between two batches. Measured with 1,100 tokens of prompt on two
cores: 3 s until the next request is answered, against 19 s with 2048; the speed is the same."""
PROMPT_CACHE_MB = 512
"""For prompts of conversations that are not in the slot; llama.cpp's default is 8 GB."""


def main() -> None:
    # The native code writes to descriptor 1 as it likes, so the parent's line gets its own.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    config = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(5)  # the bot must answer people while the model uses every core
    try:
        server = serve(config)
        answer = {"address": server.listening_address}
    except ImportError as error:
        answer = {"error": str(error), "cause": "import"}
    except (RuntimeError, OSError, AttributeError, TypeError, ValueError) as error:
        answer = {"error": f"{type(error).__name__}: {error}", "cause": "start"}
    out.write(json.dumps(answer) + "\n")
    out.flush()
    if "error" not in answer:
        threading.Event().wait()  # the server's threads are native; `server` must stay alive


def serve(config: dict[str, Any]) -> Any:
    """llama.cpp's server on a free loopback port, ready to answer when this returns.

    Parameters: those of `llama-server` (llama.cpp, tools/server/README.md) under xllamacpp's names.
    """
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = config["model"]
    params.n_ctx = config["context"]
    params.cpuparams.n_threads = config["threads"]
    params.cpuparams_batch.n_threads = config["threads"]
    params.n_parallel = 1  # one slot has the whole context; the agent's gate lets one run in
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cache_prompt = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [config["api_key"]]  # other users of this machine reach loopback too
    unmapped = getattr(type(getattr(params, "load_mode", None)), "LLAMA_LOAD_MODE_NONE", None)
    if unmapped is not None:
        # Mapped pages are given back when a machine gets short or idle, and the first question
        # after a pause then reads the file again.
        params.load_mode = unmapped
    for name, value in {
        "model_alias": {config["name"]},
        "cache_ram_mib": PROMPT_CACHE_MB,
        "ui": False,
        "endpoint_slots": False,
    }.items():
        if hasattr(params, name):  # good to have, and not in every release
            setattr(params, name, value)
    return xllamacpp.Server(params)


def _leave_with_the_parent() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
