"""tools.toml while it serves: what is saved holds at once, what is broken changes nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from chathands.errors import ConfigError
from chathands.settings import Settings
from chathands.toolbox import Policy, PolicyFile, load_policy, load_tools, policy_file
from chathands.toolbox.rules import ALLOWED
from tests.toolbox.kit import MEMBER, NOTE, READ, bench, call, settings_in

OFF = "[tools.look]\nenabled = false\n"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(policy_file, "SETTLE_SECONDS", 0.001)


class Live:
    def __init__(self, directory: Path, toml: str | None) -> None:
        self.path = directory / "tools.toml"
        if toml is not None:
            self.write(toml)
        settings = settings_in(directory)
        self.told: list[str] = []
        self.file = PolicyFile(
            settings, load_policy(settings), on_error=lambda e: self.told.append(e.sentence)
        )

    def write(self, toml: str) -> None:
        self.path.write_text(toml, "utf-8")

    @property
    def policy(self) -> Policy:
        return self.file.policy

    def enabled(self) -> bool:
        return self.policy.rule("look").enabled


async def test_what_is_saved_holds_for_whoever_has_the_policy(tmp_path: Path):
    live = Live(tmp_path, None)
    held = live.policy
    live.write(OFF)
    assert await live.file.reload() is None
    assert not held.rule("look").enabled
    live.write("# 又都可以\n")
    assert await live.file.reload() is None
    assert held.rule("look").enabled
    assert live.told == []


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ("[tools.look]\nenabled = true\nwho = 'nobody'\n", "第 3 行，[tools.look] 里的 who"),
        ("[tools.look\n", "第 1 行，不是合法的 TOML"),
        ('approval = "never"\n', "第 1 行，approval = never 比现行的 outward 宽松"),
        ("", "是空的"),
        (" \n\n", "是空的"),
        ("x = " + "[" * 5000, "不是合法的 TOML|嵌套太深"),
        ("a = 1\n" * 200_000, "超过 1000000 字节"),
    ],
)
async def test_a_broken_file_keeps_the_old_rules_and_says_where(
    tmp_path: Path, broken: str, named: str
):
    live = Live(tmp_path, OFF)
    live.write(broken)
    error = await live.file.reload()
    assert isinstance(error, ConfigError)
    assert not live.enabled()
    assert len(live.told) == 1
    assert any(each in live.told[0] for each in named.split("|"))
    assert "旧的规则继续有效" in live.told[0]
    assert str(tmp_path) not in live.told[0]


async def test_the_same_mistake_is_told_once_and_another_one_again(tmp_path: Path):
    live = Live(tmp_path, OFF)
    for text, count in (("x = 1", 1), ("x = 1", 1), ("y = 1", 2), (OFF, 2), ("y = 1", 3)):
        live.write(text)
        await live.file.reload()
        assert len(live.told) == count


async def test_a_file_that_has_gone_lifts_nothing(tmp_path: Path):
    live = Live(tmp_path, OFF)
    live.path.unlink()
    assert await live.file.reload() is not None
    assert not live.enabled()
    assert "不见了" in live.told[0]


async def test_a_file_that_cannot_be_read_lifts_nothing(tmp_path: Path):
    live = Live(tmp_path, OFF)
    live.path.write_bytes("# 策略".encode("gbk"))
    await live.file.reload()
    live.path.unlink()
    live.path.mkdir()
    await live.file.reload()
    assert not live.enabled()
    assert len(live.told) == 2


async def test_no_file_at_all_is_no_mistake(tmp_path: Path):
    live = Live(tmp_path, None)
    assert await live.file.reload() is None
    assert live.told == []


async def test_a_file_in_the_middle_of_being_written_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its first half is correct TOML, and lacks the rule that closes the tool."""
    live = Live(tmp_path, OFF)
    live.write("[defaults]\n")
    real = policy_file.read_text
    reads: list[str | None] = []

    def read(path: Path) -> str | None:
        reads.append(real(path))
        if len(reads) == 1:
            live.write("[defaults]\n" + OFF)
        return reads[-1]

    monkeypatch.setattr(policy_file, "read_text", read)
    seen: list[bool] = []
    reloading = asyncio.ensure_future(live.file.reload())
    while not reloading.done():
        seen.append(live.enabled())
        await asyncio.sleep(0)
    assert await reloading is None
    assert not any(seen)
    assert not live.enabled()


async def test_a_file_that_never_comes_to_rest_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    live = Live(tmp_path, OFF)
    texts = iter(range(1000))
    monkeypatch.setattr(policy_file, "read_text", lambda _: f"# {next(texts)}")
    assert await live.file.reload() is not None
    assert not live.enabled()


async def test_a_typo_in_a_tools_name_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    live = Live(tmp_path, OFF)
    await live.file.reload(["looks"])
    assert "[tools.look] 没有对应的工具，是不是 looks？" in caplog.text


async def test_a_call_in_a_run_that_goes_on_is_judged_by_the_new_rules(tmp_path: Path):
    with bench(tmp_path, READ, NOTE, toml="# 没有规则\n") as box:
        file = PolicyFile(box.settings, box.executor.policy)
        scope = box.scope(MEMBER)
        assert (await box.run(call("look", what="甲"), scope=scope)).results[0].status == "ok"
        file.path.write_text(OFF, "utf-8")
        await file.reload()
        assert (await box.run(call("look", what="乙"), scope=scope)).results[0].status == "denied"
        names = [spec.name for spec in box.generation.visible_to(MEMBER, box.executor.policy)]
        assert names == ["note"]


async def test_what_an_admin_switched_off_by_command_stays_off(tmp_path: Path):
    live = Live(tmp_path, None)
    live.policy.switched_off = lambda _caller, name: name == "look"
    live.write("[tools.look]\nenabled = true\n")
    await live.file.reload()
    with bench(tmp_path, READ) as box:
        assert live.policy.refusal(MEMBER, box.generation.specs["look"]) is not None


ROOT = Path(__file__).parents[2]


def documented() -> str:
    page = (ROOT / "docs" / "tools.md").read_text("utf-8")
    (block,) = [
        each for each in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "rate" in each
    ]
    return block


@pytest.mark.parametrize("source", ["example", "docs"])
def test_what_is_shown_to_admins_is_read_and_holds_every_key(source: str):
    shown = (ROOT / "tools.toml.example").read_text("utf-8")
    text = shown if source == "example" else documented()
    rules = policy_file.rules_of(text, "outward")
    rule = rules.rule("send_dingtalk_message")
    assert (rule.groups, rule.private, rule.quota) == (("123456789",), True, 20)
    assert (rule.rate.user, rule.rate.group, rule.rate.tool) == ("5/minute", "30/hour", "100/day")
    for key in ALLOWED:
        assert re.search(rf"^#? ?{key} = |^rate = .*{key}|{key}：", text, re.MULTILINE), key


def test_the_example_names_tools_that_exist():
    rules = policy_file.rules_of((ROOT / "tools.toml.example").read_text("utf-8"), "outward")
    report = load_tools(ROOT / "tools", Settings(), every=True)
    assert Policy(rules).complaints(report.generation.specs) == ()
