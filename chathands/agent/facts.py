"""What there is to say about an agent at start: model, mode, tools, and what did not load."""

from __future__ import annotations

from dataclasses import dataclass

from chathands.errors import ChatHandsError, ToolLoadError


@dataclass(frozen=True, slots=True)
class AgentFacts:
    model: str
    """Empty: none can be used, `no_model` says why."""
    local: bool
    mode: str
    """In which tools are offered now."""
    mode_line: str
    """The same for people: what is configured, what that means, and why."""
    seconds: float
    """What a run is given."""
    tools: tuple[str, ...]
    load_errors: tuple[ToolLoadError, ...]
    no_model: ChatHandsError | None = None

    @property
    def sentence(self) -> str:
        """For a start banner; more than one line only when something is wrong."""
        where = "（本地）" if self.local else ""
        model = f"模型 {self.model}{where}，" if self.model else "没有可用的模型，"
        names = f"：{'、'.join(self.tools)}" if self.tools else ""
        lines = [f"{model}{len(self.tools)} 个工具{names}。"]
        if self.no_model is not None:
            lines.append(self.no_model.sentence)
        lines += [error.sentence for error in self.load_errors]
        return "\n".join(lines)
