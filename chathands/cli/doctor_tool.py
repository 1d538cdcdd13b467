"""`chathands doctor tool NAME`: the three looks of agent/not_called.py, and the verdict."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from chathands.errors import ChatHandsError, StoreError, ToolLoadError
from chathands.settings import Settings

if TYPE_CHECKING:
    from chathands.agent.not_called import Looked
    from chathands.store import Store
    from chathands.toolbox.context import CallerRole
    from chathands.upstreams.base import Upstream

MCP_SECONDS = 10.0
RECENT_RUNS = 200
"""Of the newest, in which the tool's last calls are looked for."""

PLATFORM = "qq"
"""As the group chat writes it into its places."""

SOME_GROUP = "-"
"""A group no rule names: what holds where nothing is said about the place."""

_TITLES = {
    "choice": "选择（给不给它用）",
    "description": "说明（认不认得出）",
    "model": "模型（会不会用）",
}


async def look(
    settings: Settings,
    name: str,
    *,
    ask: str | None,
    role: CallerRole,
    group: str | None,
    user: str,
    with_model: bool,
    upstream: Upstream | None = None,
) -> bool:
    """Print what is seen; whether the model gets to call the tool. `upstream` stands in for that
    of the settings and is closed too."""
    from chathands.agent import not_called
    from chathands.agent.deadline import run_seconds
    from chathands.agent.toolbox import build_toolbox
    from chathands.toolbox import Caller
    from chathands.upstreams.build import build_upstream
    from chathands.upstreams.ways import ways_of

    errors: list[ToolLoadError] = []
    settings = settings.model_copy(update={"watch_tools": False})
    async with build_toolbox(settings, owner="terminal", on_load_error=errors.append) as toolbox:
        if name not in toolbox.registry.current.specs and toolbox.policy.rules.mcp:
            await toolbox.foreign.settled(MCP_SECONDS)
        if group is None:
            groups = toolbox.policy.rule(name).groups
            group = groups[0] if groups else SOME_GROUP
        bot = _bot_in(toolbox.store, group)
        caller = Caller(user, group, role, platform=PLATFORM, bot_id=bot)
        where = "一个群" if group == SOME_GROUP else f"群 {group}"
        typer.echo(f"{name}：{_ROLES[role]}在{where}里提问")
        choice = not_called.look_at_choice(
            name, toolbox, caller, errors, settings.tools_dir.resolve(),
            await _recent(toolbox.store, name),
        )  # fmt: skip
        _print(choice)
        spec = toolbox.registry.current.specs.get(name)
        tools = toolbox.registry.current.visible_to(caller, toolbox.policy)
        if spec is None or spec.name not in {each.name for each in tools}:
            return _concluded(not_called.verdict(choice, None, None))
        spec = next(each for each in tools if each.name == name)
        questions = [ask] if ask else [example.request for example in spec.examples]
        description = not_called.look_at_description(
            spec, tools, questions, context=settings.model.context,
            language=settings.model.language, thin_because=not_called.thin_reason(toolbox, name),
        )  # fmt: skip
        if not questions:
            description.say("没有示例可问，请用 --ask 写一句用户会问的话。", fault=True)
        _print(description)
        model: Looked | None = None
        if with_model and questions:
            try:
                upstream = upstream or await build_upstream(settings)
            except ChatHandsError as error:
                typer.echo(f"三、{_TITLES['model']}\n  没有模型可问：{error.sentence}")
            else:
                slow = "，本地模型要一两分钟" if upstream.local else ""
                typer.echo(f"正在问模型{slow}…", err=True)
                try:
                    model = await not_called.look_at_model(
                        spec, tools, questions[0], upstream, ways_of(settings),
                        language=settings.model.language,
                        seconds=run_seconds(settings, local=upstream.local),
                    )  # fmt: skip
                finally:
                    await upstream.aclose()
                model.remarks.insert(0, f"问：{questions[0]}")
                _print(model)
        return _concluded(not_called.verdict(choice, description, model))


_ROLES = {"member": "成员", "admin": "管理员", "owner": "群主", "superuser": "超级用户"}
_NUMBERS = {"choice": "一", "description": "二", "model": "三"}


def _print(looked: Looked) -> None:
    from chathands.toolbox.render import cleaned

    typer.echo(f"{_NUMBERS[looked.layer]}、{_TITLES[looked.layer]}")
    for remark in looked.remarks:
        typer.echo(f"  {cleaned(remark)}")


def _concluded(verdict: tuple[bool, str]) -> bool:
    from chathands.toolbox.render import cleaned

    typer.echo(cleaned(verdict[1]))
    return verdict[0]


def _bot_in(store: Store, group: str) -> str:
    """The bot whose admins have set something in the group; "" when none has."""
    for place in store.places.known():
        platform, _, rest = place.partition(":")
        bot, _, where = rest.rpartition(":")
        if platform == PLATFORM and where == f"g{group}":
            return bot
    return ""


async def _recent(store: Store, name: str) -> list[str]:
    """How the tool's last calls ended, newest first."""
    found: list[str] = []
    for line in await store.traces.list(RECENT_RUNS):
        with suppress(StoreError):
            trace = await store.traces.get(line.ref) or {}
            steps = [
                step
                for step in trace.get("steps", ())
                if step.get("kind") == "call" and step["call"]["name"] == name and "began" in step
            ]
            found += [str(step["result"]["status"]) for step in reversed(steps)]
        if len(found) >= 10:  # twice what a breaker looks at
            break
    return found
