"""smolagents, its replies streamed."""

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def get_weather(city: str) -> str:
    """查一个城市的天气。

    Args:
        city: 城市名。
    """
    return f"{city}：晴，20 度"


@tool
def save_note(text: str) -> str:
    """把一段文字存进备忘。

    Args:
        text: 要存的文字。
    """
    return f"已保存 {len(text)} 个字"


model = OpenAIModel(model_id="qwen2.5:7b", api_base="http://127.0.0.1:8081/v1", api_key="any")
agent = ToolCallingAgent(
    tools=[get_weather, save_note], model=model, stream_outputs=True, verbosity_level=0
)
print(f"\n{agent.run('查北京的天气，存进备忘。')}")  # on a line of its own
