"""`chathands tools list | check | new | call | report`, as an author and an admin use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chathands.agent import Question, build_agent
from chathands.emulation.writing import WRITERS
from chathands.toolbox import Caller
from chathands.upstreams.scripted import Scripted
from tests.cli.tools_cli import project, run, run_beside, settings_of
from tests.toolbox.mcp_kit import SCRIPT, listed

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return project(tmp_path)


# --- list


def test_tools_alone_lists_them(here):
    alone, listed = run(here, "tools"), run(here, "tools", "list")
    assert alone.exit_code == 0
    assert alone.stdout == listed.stdout
    lines = alone.stdout.split("\n")
    assert "order  对外  人人可用  要批准  (stock.py)" in lines
    assert "stock_of  只读  人人可用  不用批准  版本 2  (stock.py)" in lines
    assert "stock_file  只读  人人可用  不用批准  已弃用：改用 stock_of  (stock.py)" in lines


def test_the_list_for_programs_says_what_the_rules_say(here):
    project(
        here, "", tools_toml='[tools.stock_of]\nwho = ["10001"]\n[tools.order]\nenabled = false'
    )
    listed = run(here, "tools", "list", "--json")
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert rows["stock_of"]["who"] == ["10001"]
    assert rows["stock_of"]["source"].startswith("stock.py:")
    assert (rows["stock_of"]["version"], rows["stock_of"]["approval"]) == (2, False)
    assert (rows["order"]["enabled"], rows["order"]["approval"]) == (False, True)
    assert rows["stock_file"]["deprecated"] == "改用 stock_of"


def test_a_file_that_does_not_load_is_said_and_fails(here):
    project(here, "def f(:\n")
    listed = run(here, "tools")
    assert listed.exit_code == 1
    assert "stock.py:1" in listed.stderr


def test_the_tools_of_mcp_servers_are_listed_with_their_server(here):
    offer = here / "offer.json"
    offer.write_text(json.dumps({"tools": listed("look")}), "utf-8")
    arguments = json.dumps(["-S", "-E", str(SCRIPT), str(offer)])
    table = f"[mcp.elsewhere]\ncommand = {json.dumps(sys.executable)}\nargs = {arguments}\n"
    table += "[mcp.wrong]\ncommand = [1]\n"
    project(here, "", tools_toml=table)
    shown = run(here, "tools", "list", "--json")
    (row,) = [row for row in json.loads(shown.stdout) if row["owner"].startswith("mcp:")]
    assert (row["source"], row["side_effect"]) == ("mcp:elsewhere", "outward")
    assert row["name"].endswith("look")
    assert "wrong" in shown.stderr
    called = run(here, "tools", "call", row["name"], "x=1")
    assert (called.exit_code, "--yes" in called.stderr) == (3, True)
    assert "elsewhere" not in run(here, "tools", "list", "--no-mcp").stdout


# --- check


def test_check_names_file_and_line_and_fails(here):
    bad = (
        (here / "tools" / "stock.py")
        .read_text("utf-8")
        .replace("还剩多少存货", "还剩多少，见 old_name")
    )
    project(here, bad)
    checked = run(here, "tools", "check")
    assert checked.exit_code == 1
    (line,) = [line for line in checked.stdout.split("\n") if "old_name" in line]
    number = bad[: bad.index("old_name")].count("\n") + 1
    assert line.startswith(f"{(here / 'tools').as_posix()}/stock.py:{number}: ")


def test_check_finds_the_unmarked_effect_of_a_fixture_that_is_marked(here):
    source = (here / "tools" / "stock.py").read_text("utf-8").replace('"outward"', '"none"')
    source = source.replace('target="to", shows=("text",)', "")
    project(here, source)
    checked = run(here, "tools", "check")
    assert "write_text(text" in checked.stdout
    assert "[effect]" in checked.stdout


def test_update_writes_the_snapshot_and_then_all_is_in_order(here):
    before = run(here, "tools", "check", "--strict")
    assert before.exit_code == 1
    assert "还不在快照里" in before.stdout
    assert run(here, "tools", "check").exit_code == 0
    updated = run(here, "tools", "check", "--update", "--strict")
    assert updated.exit_code == 0, updated.output
    snapshot = json.loads((here / "tools" / "snapshot.json").read_text("utf-8"))
    assert snapshot["tools"]["stock_of"]["version"] == 2
    changed = (here / "tools" / "stock.py").read_text("utf-8").replace("le=30", "le=7")
    project(here, changed)
    again = run(here, "tools", "check", "--update")
    assert again.exit_code == 1
    assert "参数 days 的最大：30 → 7" in again.stdout


# --- new


def test_new_files_work_pass_check_and_are_never_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "")
    for arguments in (["count_words"], ["send_note", "--outward"]):
        made = run(tmp_path, "tools", "new", *arguments)
        assert made.exit_code == 0, made.output
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*.py")}
    assert len(kept) == 4
    tested = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider",
            "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=session",
            tmp_path / "tests",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    assert "10 passed" in tested.stdout
    checked = run(tmp_path, "tools", "check", "--update", "--strict")
    assert checked.exit_code == 0, checked.output
    listed = run(tmp_path, "tools").stdout
    assert "count_words  只读" in listed
    assert "send_note  对外" in listed
    for name in ("count_words", "send_note"):
        again = run(tmp_path, "tools", "new", name)
        assert again.exit_code == 2
        assert "已经" in again.stderr
    assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.parametrize(
    "there", ["tools/find_it.py", "tests/tools/test_find_it.py", "tools/find_it"]
)
def test_one_file_that_is_there_keeps_both_from_being_written(tmp_path, monkeypatch, there):
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "")
    (tmp_path / there).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / there).write_text("# mine\n", "utf-8")
    made = run(tmp_path, "tools", "new", "find_it")
    assert made.exit_code == 2
    assert "没有改动它" in made.stderr
    assert [path.read_text("utf-8") for path in tmp_path.rglob("*find_it*")] == ["# mine\n"]


@pytest.mark.parametrize(
    "name",
    ["", "Find", "1st", "_hidden", "a-b", "../up", "a/b", "查天气", "class", "print", "find_tools",
     "test_it", "a" * 65, "a__b", "trailing_", "stockOf", "stock_of", "stockof", "a b", "a\n"],
)  # fmt: skip
def test_a_bad_name_is_refused_with_a_sentence(here, name):
    before = sorted(here.rglob("*.py"))
    made = run(here, "tools", "new", "--", name)
    assert made.exit_code == 2
    assert made.stderr.strip().endswith("。")
    assert sorted(here.rglob("*.py")) == before


# --- call


def test_a_call_types_its_arguments_by_the_schema(here):
    called = run(
        here, "tools", "call", "stock_of", "sku=00123", "days=3", "exact=是", "sizes=1,2",
        "period.start=2025-09-01", "period.days=4",
    )  # fmt: skip
    assert called.exit_code == 0, called.output
    assert called.stdout == "'00123' 上海 3 True [1, 2] ('2025-09-01', 4)\n"
    assert called.stderr.startswith("[ok] ")
    repeated = run(here, "tools", "call", "stock_of", "sku=true", "sizes=1", "sizes=2")
    assert repeated.stdout == "'true' 上海 1 False [1, 2] None\n"
    as_json = run(
        here, "tools", "call", "stock_of", "area=北京", "--json", '{"sku": "a=b", "area": "上海"}'
    )
    assert as_json.stdout.startswith("'a=b' 北京")
    piped = run(here, "tools", "call", "stock_of", "--json", "-", input='{"sku": "管道"}')
    assert piped.stdout.startswith("'管道'")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["stock_of", "skv=1"], 2, "是不是 sku"),
        (["stock_of", "sku"], 2, "参数=值"),
        (["stock_of", "--json", "[1]"], 2, "要是一个对象"),
        (["stock_of", "--json", "{"], 2, "不是 JSON"),
        (["stock_of", "sku=1", "sku=2"], 2, "写了 2 次"),
        (["stock_of"], 2, "sku"),
        (["stock_of", "sku=x", "days=三天"], 2, "days"),
        (["stock_of", "sku=x", "days=99"], 2, "不能大于 30"),
        (["stok_of", "sku=x"], 2, "stock_of"),
        (["stock_of", "sku=没有"], 1, "没有这件货品"),
        (["order", "to=甲", "text=十箱"], 3, "--yes"),
        (["order", "to=甲", "text=十箱", "--as", "member", "--yes"], 3, "群管理员"),
    ],
    ids=[str(number) for number in range(12)],
)
def test_what_is_not_done_is_said_with_its_own_exit_code(here, arguments, code, said):
    called = run(here, "tools", "call", *arguments)
    assert called.exit_code == code, called.output
    assert said in called.stderr
    assert called.stdout == ""
    assert not (here / "state" / "orders.txt").exists()


def test_an_approved_call_shows_what_is_approved_and_runs(here):
    called = run(here, "tools", "call", "order", "to=甲", "text=十箱", "--yes")
    assert called.exit_code == 0, called.output
    assert called.stdout == "已向甲订货\n"
    for part in ("目标：甲", "订什么、订多少：十箱", "原因："):
        assert part in called.stderr
    assert (here / "state" / "orders.txt").read_text("utf-8") == "十箱"


def test_a_person_at_the_terminal_is_asked(here, monkeypatch):
    monkeypatch.setattr("chathands.cli.tools_call._is_terminal", lambda: True)
    no = run(here, "tools", "call", "order", "to=甲", "text=十箱", input="n\n")
    assert (no.exit_code, (here / "state" / "orders.txt").exists()) == (3, False)
    gone = run(here, "tools", "call", "order", "to=甲", "text=十箱", input="")
    assert gone.exit_code == 3
    yes = run(here, "tools", "call", "order", "to=甲", "text=十箱", input="确认\n")
    assert yes.exit_code == 0, yes.output
    (here / "state" / "orders.txt").unlink()

    def interrupted(_prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    broken = run(here, "tools", "call", "order", "to=乙", "text=十箱")
    assert (broken.exit_code, (here / "state" / "orders.txt").exists()) == (130, False)


def test_the_policy_holds_for_whoever_it_is_called_as(here):
    project(here, "", tools_toml='[tools.stock_of]\nwho = "admin"')
    as_member = run(here, "tools", "call", "stock_of", "sku=a", "--as", "member")
    assert as_member.exit_code == 3
    assert "没有权限" in as_member.stderr
    assert run(here, "tools", "call", "stock_of", "sku=a", "--as", "admin").exit_code == 0


def test_files_are_written_beside_and_never_over_another(here):
    out = here / "out"
    out.mkdir()
    for _ in range(2):
        called = run(here, "tools", "call", "stock_file", "sku=胶带", "--out", str(out))
        assert called.exit_code == 0, called.output
    assert {p.name: p.read_text("utf-8") for p in out.iterdir()} == {
        "存货.txt": "胶带",
        "存货-2.txt": "胶带",
    }


def test_the_real_program_checks_the_shipped_tools_and_runs_one(tmp_path):
    project(tmp_path)
    script = "import sys; from chathands.cli import main; sys.argv[0] = 'chathands'; main()"

    def program(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("CHATHANDS__")}
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=cwd, env=env | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        )  # fmt: skip

    called = program("tools", "call", "stock_of", "sku=胶带", cwd=tmp_path)
    assert (called.returncode, called.stdout) == (0, "'胶带' 上海 1 False [] None\n"), called.stderr
    refused = program("tools", "call", "order", "to=甲", "text=a", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (3, "")


# --- report


def block(name: str, **arguments: object) -> str:
    return WRITERS["emulated"].calls([(name, arguments)], "")


async def test_the_report_shows_what_models_really_sent(tmp_path):
    project(tmp_path)
    secret = "sk-" + "a1B2c3D4" * 4
    settings = settings_of(tmp_path)
    replies = [
        block("stock_of", sku="胶带", days="三天"),
        block("stok_of", sku="胶带"),
        block("stock_of", sku="胶带", days="3"),
        "胶带在上海仓还有 3 件。",
        block("stock_of", sku="没有", area="上海仓"),
        block("stock_of", sku="没有", days=f"{secret} 天"),
        block("stock_of", sku="没有", since="上个月"),
        block("stock_of", sku="没有"),
        "没有这件货品，请换个名字。",
    ]
    async with build_agent(settings, upstream=Scripted(replies)) as agent:
        for text in ("上海仓的胶带还有多少存货", "货品“没有”在仓库里还剩多少"):
            await agent.ask(Question(text=text, caller=Caller("1", "2"), conversation_id="c"))
    reported = await run_beside(tmp_path, "tools", "report", "--days", "1")
    assert reported.exit_code == 0, reported.output
    page = reported.stdout
    assert "2 次提问的记录" in page
    assert "“三天”" in page
    assert "area  写错 1 次" in page
    assert "“上海仓”" in page
    assert "名字写成了：stok_of ×1" in page
    assert "没有这件货品" in page
    assert secret not in page
    use = page.split("stock_of  模型写了 ")[1]
    assert use.startswith("6 次调用")
    assert "参数不合格 4 次（67%），改好后才能用 1 次（17%）" in use
    assert "×1  “上个月”  参数 since 不是合法的日期" in use
    assert "执行 2 次，失败 1 次（50%）" in use
    other = await run_beside(tmp_path, "tools", "report", "order")
    assert "还没有模型用过" in other.stdout
    assert (await run_beside(tmp_path / "none", "tools", "report")).exit_code == 0
