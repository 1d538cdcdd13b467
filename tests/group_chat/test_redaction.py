"""The last look: what must never reach a group does not, and ordinary text goes through."""

from __future__ import annotations

import importlib.metadata
import time
from pathlib import Path

import pytest

from chathands.settings import Settings
from plugins.group_chat.messages import Fate, Outgoing, Place, Sent
from plugins.group_chat.parcels import NOTHING_LEFT
from plugins.group_chat.redaction import LEFT_OUT, Redaction
from plugins.group_chat.reply import Sender

HERE = Place("qq", "10000", "700", "1")
KEY = "zk39XAjd82jdk19dk2QQ"


@pytest.fixture(scope="module")
def redaction(tmp_path_factory: pytest.TempPathFactory) -> Redaction:
    state = tmp_path_factory.mktemp("bot") / "state"
    settings = Settings(
        _env_file=None,  # type: ignore[call-arg]
        state_dir=state,
        model={"base_url": "http://127.0.0.1/v1", "api_key": KEY},
    )
    return Redaction.of(settings)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("我的密钥是 " + KEY, "我的密钥是 ***"),
        ("`" + KEY + "`", "`***`"),
        ("```\nkey = " + KEY + "\n```", "```\nkey = ***\n```"),
        ("sk-abc123DEF456ghi789 和 ghp_" + "a1B2c3D4" * 5, "*** 和 ***"),
        ("token=a8f3e9c1b2d4f6a7c9 完", "token=*** 完"),
        ('{"api_key": "a8f3e9c1b2d4f6a7c9"}', '{"api_key": "***"}'),
        ("Authorization: Bearer a8f3e9c1b2d4f6a7c9", "Authorization: Bearer ***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "***"),
        ("文件在 /home/bot/data/九月.xlsx，已读", "文件在 …/九月.xlsx，已读"),
        ("在 /root/app/state/ 和 /tmp/x1 里", "在 … 和 … 里"),
        (r"打开 C:\Users\me\Desktop\a.xlsx 看", "打开 …/a.xlsx 看"),
        ("file:///var/lib/bot/a.csv", "…/a.csv"),
        ("好的。\n```json action\n{\"tool\": \"x\", \"parameters\": {}}\n```\n完", "好的。\n\n完"),
        ("```json action\n{\"tool\": \"x\", 坏的", ""),
        ('```json\n{"tool": "x", "parameters": {"a": 1}}\n```', ""),
        ('{"tool": "x", "parameters": {}}', ""),
        ('<tool_call>{"name": "x"}</tool_call>好', "好"),
        ("<think>想一想</think>好</think>", "好"),
        ("<function=x>{}</function><invoke name=\"x\"><p>1</p></invoke>好", "好"),
        ("结果 #1 read_excel_data [status=ok, cost_ms=12]\n好", "\n好"),
        ("出错了：\nTraceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n"
         "    x()\nValueError: bad\n请重试", f"出错了：\n{LEFT_OUT}\n请重试"),
        ("失败：httpx.ConnectError: All connection attempts failed", f"失败：{LEFT_OUT}"),
        ("失败：FileNotFoundError: [Errno 2] No such file: '/x/y'", f"失败：{LEFT_OUT}"),
        ("失败：ConnectError('All connection attempts failed')", f"失败：{LEFT_OUT}"),
    ],
)  # fmt: skip
def test_what_a_group_must_not_see_is_taken_out(redaction: Redaction, text: str, shown: str):
    assert redaction.markdown(text) == shown


def test_this_programs_own_directories_are_hidden_everywhere(redaction: Redaction):
    inside = Path.cwd() / "data" / "groups" / "700" / "a.xlsx"
    text = f"在 {inside}：\n```\nopen('{inside}')\n```"
    assert redaction.markdown(text) == "在 …/a.xlsx：\n```\nopen('…/a.xlsx')\n```"


@pytest.mark.parametrize(
    "text",
    [
        "配置在 /etc/nginx/nginx.conf，日志在 /var/log/nginx/error.log，用 /usr/bin/python3",
        "接口 GET /api/v1/users/{id} 返回 404，见 https://example.com/home/root/tmp/x",
        "用 sorted(a, key=lambda x: x[1]) 排序，token=abc，password=123456",
        "把 sk-xxxxxxxxxxxxxxxxxxxx 换成你的，OPENAI_API_KEY=your-api-key-goes-here",
        "密码是明天下午三点在会议室里告诉大家的那个 8 位数，签名：张三",
        "```python\nwith open('/home/bob/x.txt') as f:\n    raise ValueError('bad')\n```",
        '```json\n{"name": "get_weather", "arguments": {"city": "杭州"}}\n```',
        '```json\n{"tool": "锤子", "price": 30}\n```',
        "模型写 `<tool_call>` 标签，或者 `<think>`，都不会显示",
        "除以零会抛出 ZeroDivisionError，超时是 TimeoutError",
        "1/2 与 3/4，A/B 测试，他/她，2024/09/01，w/o",
        "C:\\ 盘满了；比例 3:/2",
    ],
)
def test_ordinary_text_goes_through(redaction: Redaction, text: str):
    assert redaction.markdown(text) == text


def test_of_ordinary_technical_prose_almost_nothing_is_touched(redaction: Redaction):
    """Descriptions of the installed packages: Markdown by many hands, full of code and paths."""
    paragraphs = [
        paragraph
        for one in importlib.metadata.distributions()
        for paragraph in str(one.metadata.get_payload() or "").split("\n\n")[:40]
        if "```" not in paragraph
    ]
    assert len(paragraphs) > 300
    touched = [text for text in paragraphs if redaction.markdown(text) != text]
    assert len(touched) <= len(paragraphs) * 0.01, touched


def test_the_last_look_is_linear(redaction: Redaction):
    pieces = (
        "```\n",
        "<think>",
        "/home/",
        "Traceback (most recent call last):\n  a",
        "a.",
        "`",
        "{",
    )
    for piece in (*pieces, "token=", "sk-", "[Errno ", "C:\\", "A1b2"):
        start = time.perf_counter()
        redaction.markdown(piece * (50_000 // len(piece)))
        assert time.perf_counter() - start < 1, piece


class Keeping:
    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    async def send(self, message: Outgoing, *, seconds: float) -> Sent:
        self.sent.append(message)
        return Sent(Fate.SENT)

    async def connected(self, bot_id: str, *, seconds: float) -> bool:
        return True


async def test_nothing_is_sent_without_the_last_look(redaction: Redaction):
    line = Keeping()
    sender = Sender(line, Settings(_env_file=None).group, redaction)  # type: ignore[arg-type, call-arg]
    leak = f"{KEY} 在 /home/bot/a.xlsx"
    await sender.say(HERE, f"{leak}\n\n| {leak} |\n|---|\n| {leak} |", files=[(f"{KEY}.txt", b"x")])
    await sender.say(HERE, f"{leak}\n" * 200)
    await sender.say(HERE, leak, verbatim=True)
    await sender.say(HERE, "```json action\n{}\n```")
    for message in line.sent:
        assert KEY not in repr(message)
        if message.kind != "file":
            assert ("/home/" in message.text) == (message.text == "*** 在 /home/bot/a.xlsx")
    assert line.sent[-1].text == NOTHING_LEFT
