"""openai-agents over chat completions, streamed."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI


@function_tool
def get_weather(city: str) -> str:
    """查一个城市的天气。"""
    return f"{city}：晴，20 度"


@function_tool
async def save_note(text: str) -> str:
    """把一段文字存进备忘。"""
    return f"已保存 {len(text)} 个字"


async def main() -> None:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url="http://127.0.0.1:8081/v1", api_key="any")
    model = OpenAIChatCompletionsModel(model="qwen2.5:7b", openai_client=client)
    agent = Agent(name="助手", model=model, tools=[get_weather, save_note])
    result = Runner.run_streamed(agent, "查北京的天气，存进备忘。")
    async for _ in result.stream_events():
        pass
    print(result.final_output)


asyncio.run(main())
