"""Tools and the only thing that runs them. Names load when first used: `@tool` must stay cheap."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not lazy like the rest, and cheap: importing the submodule of that name later must not put the
# module where the decorator is expected.
from chathands.toolbox.tool import Tool as Tool
from chathands.toolbox.tool import tool as tool

if TYPE_CHECKING:
    from chathands.toolbox.approval import Approval as Approval
    from chathands.toolbox.approval import may_decide as may_decide
    from chathands.toolbox.audit import Audit as Audit
    from chathands.toolbox.audit import open_audit as open_audit
    from chathands.toolbox.calls import Batch as Batch
    from chathands.toolbox.calls import CallFinished as CallFinished
    from chathands.toolbox.calls import CallStarted as CallStarted
    from chathands.toolbox.calls import Decision as Decision
    from chathands.toolbox.calls import PendingCall as PendingCall
    from chathands.toolbox.choices import Choices as Choices
    from chathands.toolbox.context import Caller as Caller
    from chathands.toolbox.context import RunScope as RunScope
    from chathands.toolbox.context import ToolContext as ToolContext
    from chathands.toolbox.executor import Executor as Executor
    from chathands.toolbox.files import FileRoots as FileRoots
    from chathands.toolbox.files import OpenFile as OpenFile
    from chathands.toolbox.loader import LoadReport as LoadReport
    from chathands.toolbox.loader import load_tools as load_tools
    from chathands.toolbox.policy import Policy as Policy
    from chathands.toolbox.policy_file import PolicyFile as PolicyFile
    from chathands.toolbox.policy_file import load_policy as load_policy
    from chathands.toolbox.redact import Redactor as Redactor
    from chathands.toolbox.registry import Generation as Generation
    from chathands.toolbox.registry import Registry as Registry
    from chathands.toolbox.returns import File as File
    from chathands.toolbox.returns import Image as Image
    from chathands.toolbox.tables import Table as Table

_HOMES = {
    "Approval": "approval",
    "Audit": "audit",
    "Batch": "calls",
    "CallFinished": "calls",
    "CallStarted": "calls",
    "Caller": "context",
    "Choices": "choices",
    "Decision": "calls",
    "Executor": "executor",
    "File": "returns",
    "FileRoots": "files",
    "Generation": "registry",
    "Image": "returns",
    "LoadReport": "loader",
    "OpenFile": "files",
    "PendingCall": "calls",
    "Policy": "policy",
    "PolicyFile": "policy_file",
    "Redactor": "redact",
    "Registry": "registry",
    "RunScope": "context",
    "Table": "tables",
    "ToolContext": "context",
    "load_policy": "policy_file",
    "load_tools": "loader",
    "may_decide": "approval",
    "open_audit": "audit",
}

__all__ = sorted([*_HOMES, "Tool", "tool"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chathands.toolbox' has no attribute {name!r}")
    value = getattr(import_module(f"chathands.toolbox.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
