"""What tools send to another group or person goes out once, and its fate is told as it is."""

from __future__ import annotations

import pytest

from chathands.errors import ToolFailed, ToolOutcomeUnknown
from chathands.settings import GroupSettings
from chathands.toolbox.delivery import Delivery
from plugins.group_chat.messages import Fate
from plugins.group_chat.presence import Presence
from plugins.group_chat.pushing import Pushing
from plugins.group_chat.reply import Sender
from tests.group_chat.kit import PlayedLine

ONE = [("qq", "10000")]


def pushing(line: PlayedLine, accounts: list[tuple[str, str]] = ONE) -> Pushing:
    return Pushing(Sender(line, GroupSettings(tables="lines")), Presence(), lambda: accounts)


async def test_a_group_gets_text_and_file_without_a_quote():
    line = PlayedLine()
    file = ("报表.xlsx", b"PK")
    await pushing(line)(Delivery("九月 [CQ:at,qq=all]", group_id="700", files=(file,)), seconds=5)
    text, attached = line.sent
    assert (text.place.group_id, text.place.bot_id, text.quote) == ("700", "10000", None)
    assert text.text == "九月 [CQ:at,qq=all]"  # shown as text
    assert attached.file == file


async def test_a_person_gets_it_in_private():
    line = PlayedLine()
    await pushing(line)(Delivery("你好", user_id="10001"), seconds=5)
    assert line.sent[0].place.private
    assert line.sent[0].place.user_id == "10001"


@pytest.mark.parametrize(
    ("fate", "error", "words"),
    [
        (Fate.REFUSED, ToolFailed, "没有收下"),
        (Fate.DOWN, ToolFailed, "没有连上"),
        (Fate.UNKNOWN, ToolOutcomeUnknown, "不会自动重发"),
    ],
)
async def test_each_fate_has_its_sentence_and_nothing_is_repeated(fate, error, words):
    line = PlayedLine()
    line.fates = [fate]
    with pytest.raises(error) as raised:
        await pushing(line)(Delivery("你好", group_id="700"), seconds=5)
    assert words in raised.value.sentence
    assert len(line.sent) == 1


async def test_a_file_refused_behind_its_text_is_said_and_nothing_is_put_in_its_place():
    line = PlayedLine()
    line.fates = [Fate.SENT, Fate.REFUSED]
    delivery = Delivery("你好", group_id="700", files=(("a.txt", b"x"),))
    with pytest.raises(ToolOutcomeUnknown, match="一部分"):
        await pushing(line)(delivery, seconds=5)
    assert len(line.sent) == 2


async def test_a_refusal_behind_what_may_have_been_shown_is_no_plain_failure():
    line = PlayedLine()
    line.fates = [Fate.UNKNOWN, Fate.REFUSED]
    parts = Pushing(
        Sender(line, GroupSettings(tables="lines", long_reply="parts", reply_length=200)),
        Presence(),
        lambda: ONE,
    )
    with pytest.raises(ToolOutcomeUnknown, match="不能确定"):
        await parts(Delivery("很长的内容。\n" * 60, group_id="700"), seconds=5)


async def test_the_account_of_the_question_brings_it_and_several_others_are_not_guessed():
    line = PlayedLine()
    two = [("qq", "10000"), ("qq", "20000")]
    await pushing(line, two)(Delivery("你好", group_id="700", bot_id="20000"), seconds=5)
    assert line.sent[0].place.bot_id == "20000"
    with pytest.raises(ToolFailed, match="几个 QQ 号"):
        await pushing(line, two)(Delivery("你好", group_id="700"), seconds=5)
    with pytest.raises(ToolFailed, match="没有连上"):
        await pushing(line, [])(Delivery("你好", group_id="700"), seconds=5)
    assert len(line.sent) == 1
