"""Gives hands to language models that can only chat.

The public names, loaded when first used, so that `import chathands` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chathands.agent import Agent as Agent
    from chathands.conversation import (
        Message as Message,
    )
    from chathands.conversation import (
        Status as Status,
    )
    from chathands.conversation import (
        ToolCall as ToolCall,
    )
    from chathands.conversation import (
        ToolChoice as ToolChoice,
    )
    from chathands.conversation import (
        ToolResult as ToolResult,
    )
    from chathands.conversation import (
        ToolSpec as ToolSpec,
    )
    from chathands.emulation import (
        Answer as Answer,
    )
    from chathands.emulation import (
        CallReady as CallReady,
    )
    from chathands.emulation import (
        Calls as Calls,
    )
    from chathands.emulation import (
        GiveUp as GiveUp,
    )
    from chathands.emulation import (
        ParsedReply as ParsedReply,
    )
    from chathands.emulation import (
        Reason as Reason,
    )
    from chathands.emulation import (
        Retry as Retry,
    )
    from chathands.emulation import (
        Text as Text,
    )
    from chathands.emulation import (
        TextDelta as TextDelta,
    )
    from chathands.emulation import (
        Turn as Turn,
    )
    from chathands.emulation import (
        parse_reply as parse_reply,
    )
    from chathands.emulation import (
        review_reply as review_reply,
    )
    from chathands.errors import ChatHandsError as ChatHandsError
    from chathands.protocols.openai_messages import from_openai as from_openai
    from chathands.settings import Settings as Settings
    from chathands.settings import load_settings as load_settings
    from chathands.toolbox import Choices as Choices
    from chathands.toolbox import File as File
    from chathands.toolbox import Image as Image
    from chathands.toolbox import Table as Table
    from chathands.toolbox import ToolContext as ToolContext
    from chathands.toolbox import tool as tool

_HOMES = {
    "Agent": "chathands.agent",
    "Answer": "chathands.emulation",
    "CallReady": "chathands.emulation",
    "Calls": "chathands.emulation",
    "ChatHandsError": "chathands.errors",
    "Choices": "chathands.toolbox",
    "File": "chathands.toolbox",
    "GiveUp": "chathands.emulation",
    "Image": "chathands.toolbox",
    "Message": "chathands.conversation",
    "ParsedReply": "chathands.emulation",
    "Reason": "chathands.emulation",
    "Retry": "chathands.emulation",
    "Settings": "chathands.settings",
    "Status": "chathands.conversation",
    "Table": "chathands.toolbox",
    "Text": "chathands.emulation",
    "TextDelta": "chathands.emulation",
    "ToolCall": "chathands.conversation",
    "ToolChoice": "chathands.conversation",
    "ToolContext": "chathands.toolbox",
    "ToolResult": "chathands.conversation",
    "ToolSpec": "chathands.conversation",
    "Turn": "chathands.emulation",
    "from_openai": "chathands.protocols.openai_messages",
    "load_settings": "chathands.settings",
    "parse_reply": "chathands.emulation",
    "review_reply": "chathands.emulation",
    "tool": "chathands.toolbox",
}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chathands' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
