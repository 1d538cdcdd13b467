"""pydantic-ai over the Responses API."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url="http://127.0.0.1:8081/v1", api_key="any")
agent = Agent(OpenAIResponsesModel("qwen2.5:7b", provider=provider))


@agent.tool_plain
def get_weather(city: str) -> str:
    """查一个城市的天气。"""
    return f"{city}：晴，20 度"


@agent.tool_plain
def save_note(text: str) -> str:
    """把一段文字存进备忘。"""
    return f"已保存 {len(text)} 个字"


print(agent.run_sync("查北京的天气，存进备忘。").output)
