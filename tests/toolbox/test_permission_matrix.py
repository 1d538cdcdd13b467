"""Who may use what from where, against a table that was written by hand from the rules.

`run`: it runs. `ask`: a person is asked first. `nobody`: a person would have to be asked, and there
is none where the caller is. `no`: it is not shown, and refused all the same.
"""

from __future__ import annotations

import csv
from pathlib import Path

from chathands.toolbox import Caller
from tests.toolbox.kit import Bench, bench, call

DATA = Path(__file__).parents[1] / "data"

KINDS = {"note": "local", "push": "outward"}
KEPT = ("kept", "opened")
"""Tools that their author has kept for admins."""

TOOL = """
@tool(side_effect="{effect}", audience="{audience}"{target})
async def {name}(ctx: ToolContext, text: Annotated[str, Field(description="内容")]) -> str:
    \"\"\"一个工具。\"\"\"
    did(ctx, "{name}")
    return "好了"
"""


def sources(names: list[str]) -> list[str]:
    found = []
    for name in names:
        effect = KINDS.get(name.split("_")[0], "none")
        audience = "admin" if name in KEPT else "everyone"
        target = ', target="text"' if effect == "outward" else ""
        found.append(TOOL.format(name=name, effect=effect, audience=audience, target=target))
    return found


def caller(role: str, where: str) -> Caller:
    """`listed` is a member whom the lists name: by number in a chat, by token over HTTP."""
    listed = role == "listed"
    rank = "member" if listed else role
    if where in ("http", "mcp"):
        return Caller("carol" if listed else "dave", None, rank, platform=where)  # pyright: ignore[reportArgumentType]
    user = "1001" if listed else "1000"
    group = {"group_a": "2001", "group_b": "2002"}.get(where)
    platform = "terminal" if where == "cli" else "onebot11"
    return Caller(user, group, rank, platform=platform)  # pyright: ignore[reportArgumentType]


async def outcome(box: Bench, name: str, asker: Caller) -> str:
    seen = box.generation.visible_to(asker, box.executor.policy)
    shown = name in [spec.name for spec in seen]
    before = len(box.effects)
    batch = await box.run(call(name, text="x"), scope=box.scope(asker))
    ran = len(box.effects) > before
    if batch.pending is not None:
        return "ask" if shown and not ran else "asked though hidden or run"
    result, why = batch.results[0], batch.why.get(batch.results[0].call_id)
    if result.status == "ok":
        return "run" if shown and ran else "run though hidden"
    if ran or result.status != "denied" or why is None:
        return f"{result.status} {why} {result.content}"
    if why.code == "undecided":
        return "nobody" if shown else "nobody though hidden"
    return "no" if why.code == "forbidden" and not shown else f"refused, {why} {shown}"


async def test_every_role_in_every_place_through_every_face(tmp_path: Path):
    with (DATA / "permission_matrix.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["tool"] for row in rows))
    assert len(rows) == len(names) * 5
    toml = (DATA / "permission_matrix.toml").read_text("utf-8")
    wrong = []
    with bench(tmp_path, *sources(names), toml=toml) as box:
        assert box.executor.policy.complaints(names) == ()
        for row in rows:
            for where in list(row)[2:]:
                got = await outcome(box, row["tool"], caller(row["role"], where))
                if got != row[where]:
                    wrong.append((row["tool"], row["role"], where, row[where], got))
    assert wrong == []


async def test_every_refusal_says_who_can_change_it(tmp_path: Path):
    with (DATA / "permission_matrix.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["tool"] for row in rows))
    toml = (DATA / "permission_matrix.toml").read_text("utf-8")
    with bench(tmp_path, *sources(names), toml=toml) as box:
        for row in rows:
            for where in list(row)[2:]:
                if row[where] == "no":
                    spec = box.generation.specs[row["tool"]]
                    said = box.executor.policy.refusal(caller(row["role"], where), spec) or ""
                    assert "管理员" in said
                    assert "tools.toml" in said
                    assert said.count("。") == 1
                    assert said.endswith("。")
                    assert "2001" not in said  # which groups, and who, is not for everybody
                    assert "1001" not in said
