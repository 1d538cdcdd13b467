"""A stand-in for the runtime of the local model, for the child process of the tests.

It has the names that the child uses. What it does is told by the model file's text (at load) and
by the last user message (per request), so that tests steer a process they do not share memory with.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

sys.stdout.write("native libraries write to standard output as they like\n")
sys.stdout.flush()
if os.environ.get("FAKE_RUNTIME_IS_BROKEN"):
    raise ImportError("libgomp.so.1: cannot open shared object file")


class CommonParams:
    def __init__(self):
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=-1)
        self.cpuparams_batch = SimpleNamespace(n_threads=-1)
        self.cache_ram_mib = 8192
        self.ui = True


class Server:
    def __init__(self, params):
        path = Path(params.model.path)
        os.write(2, b"loading the model\n")
        text = path.read_text()
        if "dies while loading" in text:
            os._exit(9)
        if "cannot be loaded" in text:
            raise RuntimeError("Failed to init server, please check the input params.")
        if "never loads" in text:
            threading.Event().wait()
        handler = type("Handler", (_Handler,), {"params": params, "model": path})
        server = ThreadingHTTPServer((params.hostnames[0], params.port), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    params: CommonParams
    model: Path

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != f"Bearer {self.params.api_keys[0]}":
            self.send_error(401)
            return
        os.write(2, f"max_tokens={body['max_tokens']}\n".encode())
        asked = body["messages"][-1]["content"]
        flag = self.model.with_suffix(".crashed")
        if asked == "crash" or (asked == "crash once" and not flag.exists()):
            flag.touch()
            os._exit(9)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        facts = {
            "context": self.params.n_ctx,
            "threads": self.params.cpuparams.n_threads,
            "slots": self.params.n_parallel,
            "hosts": self.params.hostnames,
            "cache_mb": self.params.cache_ram_mib,
            "ui": self.params.ui,
            "max_tokens": body["max_tokens"],
            "temperature": body["temperature"],
            "stdin_is_pipe": not sys.stdin.isatty(),
        }
        self._event({"delta": {"content": json.dumps(facts) if asked == "facts" else "你好"}})
        if asked == "crash in the middle":
            os._exit(9)
        self._event({"delta": {}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, choice):
        self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format, *arguments):
        os.write(2, f"{format % arguments}\n".encode())
