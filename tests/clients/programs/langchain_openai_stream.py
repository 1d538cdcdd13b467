"""langchain-openai, streamed and put together again by its own chunks."""

import asyncio

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def get_weather(city: str) -> str:
    """查一个城市的天气。"""
    return f"{city}：晴，20 度"


@tool
def save_note(text: str) -> str:
    """把一段文字存进备忘。"""
    return f"已保存 {len(text)} 个字"


TOOLS = {each.name: each for each in (get_weather, save_note)}


async def main() -> None:
    model = ChatOpenAI(
        model="qwen2.5:7b", base_url="http://127.0.0.1:8081/v1", api_key="any", stream_usage=True
    ).bind_tools(list(TOOLS.values()))
    messages: list[BaseMessage] = [HumanMessage("查北京的天气，存进备忘。")]
    while True:
        whole = None
        async for chunk in model.astream(messages):
            whole = chunk if whole is None else whole + chunk
        assert whole is not None
        assert whole.usage_metadata["output_tokens"] > 0
        messages.append(whole)
        if not whole.tool_calls:
            break
        messages += [await TOOLS[call["name"]].ainvoke(call) for call in whole.tool_calls]
    print(whole.text)


asyncio.run(main())
