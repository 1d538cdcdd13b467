"""The least a gateway in Python can do, beside which benchmarks/gateway.py puts ours.

`UPSTREAM=http://127.0.0.1:1/v1 uvicorn gateway_passthrough:app`: nothing is looked at but `stream`.
"""

import os

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from httpx_aiohttp import HttpxAiohttpClient
from starlette.background import BackgroundTask

app = FastAPI()
client = HttpxAiohttpClient(timeout=None, limits=httpx.Limits(max_connections=0))
url = f"{os.environ['UPSTREAM']}/chat/completions"


@app.post("/v1/chat/completions")
async def chat(request: Request) -> Response:
    body = await request.json()
    answer = await client.send(client.build_request("POST", url, json=body), stream=True)
    if body.get("stream"):
        end = BackgroundTask(answer.aclose)
        return StreamingResponse(answer.aiter_raw(), 200, None, "text/event-stream", end)
    content = await answer.aread()
    return Response(content, answer.status_code, media_type="application/json")
