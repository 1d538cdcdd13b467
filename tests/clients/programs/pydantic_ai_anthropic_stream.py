"""pydantic-ai over Anthropic's protocol, streamed."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

provider = AnthropicProvider(base_url="http://127.0.0.1:8081", api_key="any")
agent = Agent(AnthropicModel("qwen2.5:7b", provider=provider))


@agent.tool_plain
def get_weather(city: str) -> str:
    """查一个城市的天气。"""
    return f"{city}：晴，20 度"


@agent.tool_plain
async def save_note(text: str) -> str:
    """把一段文字存进备忘。"""
    return f"已保存 {len(text)} 个字"


async def main() -> None:
    async with agent.iter("查北京的天气，存进备忘。") as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
    assert run.result is not None
    print(run.result.output)


asyncio.run(main())
