"""Who may use a tool, who is asked, and what tools.toml can and cannot change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chathands.conversation import ToolSpec
from chathands.errors import ConfigError
from chathands.toolbox import Caller, Policy, load_policy
from tests.toolbox.kit import ADMIN, BOSS, MEMBER, NOTE, READ, SEND, bench, call, settings_in

OWNER = Caller("1004", "2001", "owner", "", "onebot11", "9")


def spec(side_effect: Any, name: str = "t", audience: Any = "everyone") -> ToolSpec:
    return ToolSpec(name, side_effect=side_effect, audience=audience)


def load(directory: Path, toml: str | None, **overrides: Any) -> Policy:
    settings = settings_in(directory, **overrides)
    if toml is not None:
        (directory / "tools.toml").write_text(toml, "utf-8")
    return load_policy(settings)


def asks(policy: Policy, side_effect: Any, *, foreign: bool = False, name: str = "t") -> bool:
    return policy.approval_reason(spec(side_effect, name), read_foreign=foreign) is not None


def test_by_default_only_what_reaches_others_needs_a_yes(tmp_path: Path):
    policy = load(tmp_path, None)
    assert [asks(policy, s) for s in ("none", "local", "outward", "unknown")] == [
        False, False, True, True,
    ]  # fmt: skip


def test_always_asks_for_everything_that_changes_something(tmp_path: Path):
    policy = load(tmp_path, None, approval="always")
    assert [asks(policy, s) for s in ("none", "local", "outward")] == [False, True, True]


def test_never_asks_nobody_except_after_foreign_text(tmp_path: Path):
    policy = load(tmp_path, None, approval="never")
    assert not any(asks(policy, s) for s in ("none", "local", "outward", "unknown"))
    assert asks(policy, "outward", foreign=True)
    assert asks(policy, "unknown", foreign=True)
    assert not asks(policy, "none", foreign=True)


def test_one_tool_can_be_tightened(tmp_path: Path):
    policy = load(tmp_path, '[tools.t]\napproval = "always"')
    assert asks(policy, "local")
    assert asks(policy, "none")
    assert not asks(policy, "local", name="other")


def test_all_tools_can_be_tightened(tmp_path: Path):
    policy = load(tmp_path, 'approval = "always"')
    assert asks(policy, "local")


@pytest.mark.parametrize(
    ("toml", "env"),
    [
        ('approval = "never"', "outward"),
        ('approval = "outward"', "always"),
        ('[tools.t]\napproval = "never"', "outward"),
        ('approval = "always"\n[tools.t]\napproval = "outward"', "never"),
        ('[defaults]\napproval = "never"', "outward"),
        ('[defaults]\napproval = "always"\n[tools.t]\napproval = "outward"', "never"),
    ],
)
def test_nothing_in_the_file_loosens(tmp_path: Path, toml: str, env: Any):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, toml, approval=env)
    assert "收紧" in error.value.sentence


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("[tools.t]\nenabeld = false", "[tools.t] 里的 enabeld 不认识"),
        ("[tools.t]\nenabled = 'no'", "[tools.t] 里的 enabled 不对，应为 true 或 false"),
        (
            "[tools.t]\nwho = 'members'",
            "who 不对，应为 everyone、admin 或 superuser",
        ),
        ("[tools.t]\ntimeout = -1", "timeout 不对，应为 大于 0 的秒数"),
        ("[tools.t]\napprove = 'me'", "approve 不对"),
        ("[tools]\nt = 1", "[tools] 里的 t 不对，应为 一张表"),
        ("tool = 1", "tool 不认识，可以写的是 approval、defaults、tools、mcp"),
        ("[tools.t", "第 1 行，不是合法的 TOML"),
        ("approval = 3", "第 1 行，approval 不对"),
        ("# 一\n[tools.t]\nwho = 'admin'\nwho = 'admin'", "第 4 行，不是合法的 TOML"),
        (
            "[tools.t]\nenabled = true\nquota = -1",
            "第 3 行，[tools.t] 里的 quota 不对",
        ),
        (
            "[defaults]\n[tools.t]\nrate = {user = '5/week'}",
            "第 3 行，[tools.t.rate]",
        ),
        ("[tools.t.rate]\nuser = 'x'", "第 2 行，[tools.t.rate] 里的 user 不对，应写成"),
        ("[tools.t]\nrate.user = '0/minute'", "第 2 行，[tools.t.rate] 里的 user 不对"),
        ("[tools.t]\nrate.group = '5/year'", "最长一天"),
        ("[tools.t]\nrate.group = '99999/day'", "次数 1 到 10000"),
        ("[tools.t]\nrate.person = '5/day'", "可以写的是 user、group、tool"),
        ("[tools.t]\nrate = '5/minute'", "rate 不对，应为 一张表"),
        ("[tools.t]\ngroups = []", "groups 不对，应为 群号的列表，至少一个"),
        ("[tools.t]\ngroups = [true]", "groups 不对"),
        ("[tools.t]\ngroups = 5", "groups 不对"),
        ("[tools.t]\nfaces = ['web']", 'faces 不对，应为 ["bot", "http", "mcp", "cli"]'),
        ("[tools.t]\nwho = [1.5]", "who 不对"),
        ("[tools.t]\nwho = []", "who 不对"),
        ("[tools.t]\nconcurrency = 0", "concurrency 不对"),
        ("[tools.t]\nresult_size = 3", "result_size 不对"),
        ("[tools.t]\ntimeout = 1e9", "timeout 不对"),
        (
            "[defaults]\nwhom = 'admin'",
            "第 2 行，[defaults] 里的 whom 不认识",
        ),
        ("approval = 'always'\n[defaults]\napproval = 'always'", "第 3 行，approval 写了两处"),
        ("[tools]\n'名字' = 1", "第 2 行，[tools] 里的 名字 不对"),
        ("mcp = 1", "mcp 不对，应为 一张表"),
    ],
)
def test_mistakes_in_the_file_are_one_sentence_naming_the_key(
    tmp_path: Path, toml: str, named: str
):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, toml)
    assert named in error.value.sentence
    assert error.value.sentence.startswith("tools.toml 有误：")
    assert str(tmp_path) not in error.value.sentence


def test_a_file_that_is_not_utf8_is_a_config_error(tmp_path: Path):
    settings = settings_in(tmp_path)
    (tmp_path / "tools.toml").write_bytes("# 策略\n".encode("gbk"))
    with pytest.raises(ConfigError, match="UnicodeDecodeError"):
        load_policy(settings)


def test_a_byte_order_mark_from_notepad_is_fine(tmp_path: Path):
    settings = settings_in(tmp_path)
    (tmp_path / "tools.toml").write_bytes('\ufeffapproval = "always"'.encode())
    assert load_policy(settings).approval == "always"


def test_rules_about_tools_that_do_not_exist_are_complained_about(tmp_path: Path):
    policy = load(tmp_path, "[tools.sned]\nenabled = false\n[tools.send]\ntimeout = 3")
    assert policy.complaints(["send", "look"]) == (
        "tools.toml 里的 [tools.sned] 没有对应的工具，是不是 send？",
    )


@pytest.mark.parametrize(
    ("audience", "allowed"),
    [
        ("everyone", [MEMBER, ADMIN, OWNER, BOSS]),
        ("admin", [ADMIN, OWNER, BOSS]),
        ("superuser", [BOSS]),
    ],
)
def test_audiences(audience: Any, allowed: list[Caller]):
    policy = Policy()
    for caller in (MEMBER, ADMIN, OWNER, BOSS):
        refused = policy.refusal(caller, spec("none", audience=audience))
        assert (refused is None) == (caller in allowed)


async def test_a_tool_reserved_in_the_file_is_neither_shown_nor_run(tmp_path: Path):
    with bench(tmp_path, READ, NOTE, toml='[tools.look]\nwho = "admin"') as box:
        policy = box.executor.policy
        assert [s.name for s in box.generation.visible_to(MEMBER, policy)] == ["note"]
        seen = box.generation.visible_to(ADMIN, policy)
        assert [(s.name, s.audience) for s in seen] == [("note", "everyone"), ("look", "admin")]
        result = (await box.run(call("look", what="x"), scope=box.scope(MEMBER))).results[0]
        assert result.status == "denied"
        result = (await box.run(call("look", what="x"), scope=box.scope(ADMIN))).results[0]
        assert result.status == "ok"


async def test_a_disabled_tool_is_gone_for_everyone(tmp_path: Path):
    with bench(tmp_path, READ, NOTE, toml="[tools.look]\nenabled = false") as box:
        assert [s.name for s in box.generation.visible_to(BOSS, box.executor.policy)] == ["note"]
        result = (await box.run(call("look", what="x"), scope=box.scope(BOSS))).results[0]
        assert "停用" in result.content


async def test_even_an_admin_is_asked_before_something_outward(tmp_path: Path):
    with bench(tmp_path, SEND) as box:
        for caller in (MEMBER, ADMIN, OWNER, BOSS):
            batch = await box.run(call("send", robot="甲", content="一"), scope=box.scope(caller))
            assert batch.pending is not None


async def test_local_side_effects_of_a_member_run_without_a_yes(tmp_path: Path):
    with bench(tmp_path, NOTE) as box:
        assert (await box.run(call("note", text="x"))).results[0].status == "ok"


def test_where_a_tool_makes_sense_is_its_authors_word_until_the_admin_has_another(tmp_path: Path):
    where = {
        "bot": MEMBER,
        "cli": Caller("me", role="superuser"),
        "http": Caller("p", platform="http"),
    }
    later = ToolSpec("t", side_effect="local", faces=("bot",))
    policy = load(tmp_path, None)
    assert [face for face, one in where.items() if policy.refusal(one, later) is None] == ["bot"]
    assert "只能从" in (policy.refusal(where["cli"], later) or "")
    told = load(tmp_path, '[tools.t]\nfaces = ["cli", "bot"]')
    assert [face for face, one in where.items() if told.refusal(one, later) is None] == [
        "bot",
        "cli",
    ]
