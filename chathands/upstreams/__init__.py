"""Model endpoints. Import the module that is needed: each brings its own dependencies.

base          what an upstream is
openai_chat   the chat-completions protocol over HTTP (openai_wire, sse, http_faults)
local         the model on this machine (weights, local_fetch, local_sources, local_process)
scripted      a script instead of a model
build         the upstream that the settings ask for
"""
