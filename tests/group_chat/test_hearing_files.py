"""Files and pictures: found in every implementation's shape, fetched, kept, named to the model."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nonebot.adapters.onebot.v11 import ActionFailed

import plugins.group_chat as plugin
from chathands.errors import ToolDenied, ToolError, ToolFailed
from chathands.settings import GroupSettings, Settings
from chathands.toolbox import Caller, FileRoots
from plugins.group_chat import capture
from plugins.group_chat.hearing import (
    PAUSE_SECONDS,
    TIMED_OUT,
    TOO_MANY_FILES,
    TOO_MANY_LOGS,
    Freshness,
    Hearing,
    Turns,
)
from plugins.group_chat.messages import Attachment, Forwarded, Incoming, Place, Quoted
from plugins.group_chat.onebot_v11_events import attachments_of, parsed
from plugins.group_chat.onebot_v11_files import NOT_FOUND, PATH_ONLY, FileFetcher
from tests.group_chat.events import (
    BOT,
    GROUP,
    at,
    group_payload,
    image,
    private_payload,
    reply,
    text,
)
from tests.group_chat.hearing_kit import chat as chat
from tests.group_chat.hearing_kit import hear as hear

HERE = Place("qq", str(BOT), str(GROUP), "1")
SHEET = b"PK\x03\x04 a workbook"


class Shelf:
    """A line that has files by name."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes | ToolError] = {"9月.xlsx": SHEET}
        self.logs: dict[str, str] = {}
        self.fetched: list[str] = []

    async def fetch(self, place: Place, file: Attachment, *, limit: int, seconds: float) -> bytes:
        self.fetched.append(file.name)
        content = self.contents[file.name]
        if isinstance(content, ToolError):
            raise content
        if not content:
            await asyncio.Event().wait()
        return content

    async def open_forwarded(
        self, place: Place, forwarded: Forwarded, *, seconds: float
    ) -> Forwarded:
        return replace(forwarded, text=self.logs[forwarded.handle["id"]])


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def hearing(tmp_path: Path, shelf: Shelf, clock: Clock) -> Hearing:
    group = GroupSettings(file_mb=1, fetch_seconds=0.2, recent_minutes=10)
    settings = Settings(_env_file=None, data_dir=tmp_path, group=group)  # type: ignore[call-arg]
    return Hearing(settings, shelf, wall=clock)  # type: ignore[arg-type]


def file(name: str, size: int | None = None, **handle: Any) -> Attachment:
    return Attachment("file", name, size, handle or {"file_id": name})


def said(words: str, **what: Any) -> Incoming:
    return Incoming(HERE, "m1", words, **what)


async def test_this_file_is_the_one_its_asker_sent_minutes_before(hearing, clock, tmp_path):
    hearing.overhear(HERE, [file("9月.xlsx")])
    clock.now += 540
    incoming = await hearing.complete(hearing.with_earlier(said("把这个文件按地区汇总")))
    assert capture.question_text(incoming) == (
        "把这个文件按地区汇总\n（我之前发的文件：received/9月.xlsx，1 KB）"
    )
    with FileRoots(tmp_path, Caller("1", str(GROUP))).open("received/9月.xlsx") as opened:
        assert opened.read(100) == SHEET


async def test_it_is_nobody_elses_nowhere_else_and_not_for_ever(hearing, clock):
    hearing.overhear(HERE, [file("9月.xlsx")])
    for place in (
        replace(HERE, user_id="2"),
        replace(HERE, group_id="701"),
        replace(HERE, group_id=None),
        replace(HERE, bot_id="10001"),
    ):
        asked = replace(said("这个文件"), place=place)
        assert hearing.with_earlier(asked).files == ()
    clock.now += 601
    assert hearing.with_earlier(said("这个文件")).files == ()


async def test_it_comes_along_once(hearing):
    hearing.overhear(HERE, [file("9月.xlsx")])
    assert hearing.with_earlier(said("汇总")).files  # looking does not use it up
    await hearing.complete(hearing.with_earlier(said("汇总")))
    assert hearing.with_earlier(said("汇总")).files == ()


async def test_an_upload_that_is_reported_twice_is_one(hearing, shelf):
    hearing.overhear(HERE, [file("9月.xlsx", 20, file_id="/a")])
    hearing.overhear(HERE, [file("9月.xlsx", 20, file_id="/b", busid=102)])
    incoming = await hearing.complete(hearing.with_earlier(said("汇总")))
    assert [one.path for one in incoming.files] == ["received/9月.xlsx"]
    assert incoming.files[0].handle["busid"] == 102


async def test_a_picture_or_a_log_needs_a_word_that_points_at_it(hearing, shelf):
    shelf.contents[""] = b"\x89PNG"
    shelf.logs["f1"] = "甲：好"
    hearing.overhear(HERE, [Attachment("image", "", None, {"url": "u"}), Forwarded({"id": "f1"})])
    assert hearing.with_earlier(said("杭州天气")) == said("杭州天气")
    incoming = await hearing.complete(hearing.with_earlier(said("总结一下上面的聊天记录")))
    assert capture.quoted_text(incoming) == "转发的聊天记录：\n甲：好"
    assert "received/图片-" in (capture.question_text(incoming) or "")


async def test_a_mention_without_words_means_what_was_just_sent(hearing):
    assert capture.question_text(hearing.with_earlier(said(""))) is None
    hearing.overhear(HERE, [file("9月.xlsx")])
    question = capture.question_text(hearing.with_earlier(said("")))
    assert question is not None
    assert question.startswith(capture.THESE)


async def test_a_quoted_file_is_marked_as_quoted(hearing):
    quoted = Quoted("77", "[文件：9月.xlsx]", "阿达", files=(file("9月.xlsx"),))
    incoming = await hearing.complete(said("", quoted=quoted))
    assert capture.question_text(incoming) == capture.THIS
    assert capture.quoted_text(incoming) == (
        "阿达：[文件：9月.xlsx]\n（其中的文件：received/9月.xlsx，1 KB）"
    )


async def test_an_unreadable_quote_without_words_is_said():
    assert capture.question_text(said("", quoted=Quoted("77"))) is None
    lost = said("", quoted=Quoted("77"))
    assert capture.why_nothing(lost, "我在") == capture.QUOTE_UNREADABLE
    assert capture.why_nothing(said(""), "我在") == "我在"


async def test_what_cannot_be_fetched_is_said_with_the_reason(hearing, shelf):
    shelf.contents |= {
        "断.xlsx": ToolFailed("对方服务器连不上。", detail="10.0.0.8 refused"),
        "慢.xlsx": b"",
    }
    files = (file("断.xlsx"), file("慢.xlsx"), file("大.xlsx", 2 * 2**20), file("9月.xlsx"))
    incoming = await hearing.complete(said("看看", files=files))
    assert (capture.question_text(incoming) or "").splitlines() == [
        "看看",
        "（我发的文件 断.xlsx 没有取到：对方服务器连不上）",
        f"（我发的文件 慢.xlsx 没有取到：{TIMED_OUT}）",
        "（我发的文件 大.xlsx 没有取到：超过 1 MB 的上限）",
        "（我发的文件：received/9月.xlsx，1 KB）",
    ]
    assert "大.xlsx" not in shelf.fetched


async def test_only_a_few_files_are_fetched_at_once(hearing, shelf):
    shelf.contents |= {f"{n}.csv": b"x" for n in range(9)}
    incoming = await hearing.complete(said("看", files=tuple(file(f"{n}.csv") for n in range(9))))
    assert [one.problem for one in incoming.files] == [""] * 5 + [TOO_MANY_FILES] * 4


async def test_no_more_than_six_chat_logs_are_opened_and_the_rest_are_told(hearing, shelf):
    shelf.logs = {str(n): "甲：好" for n in range(50)}
    logs = tuple(Forwarded({"id": str(n)}) for n in range(50))
    incoming = await hearing.complete(said("看", forwarded=logs))
    assert [log.text == TOO_MANY_LOGS for log in incoming.forwarded] == [False] * 6 + [True] * 44


# --- as implementations report them


@pytest.mark.parametrize(
    ("data", "name", "size"),
    [
        ({"file": "a.xlsx", "file_id": "/1", "file_size": "2048"}, "a.xlsx", 2048),
        ({"file": "a.xlsx", "file_id": "/1", "file_size": 2048, "path": "C:\\t"}, "a.xlsx", 2048),
        ({"file_name": "a.xlsx", "file_hash": "h", "file_id": "/1", "url": "u"}, "a.xlsx", None),
        ({"name": "a.xlsx", "id": "/1", "size": 2048, "busid": 102}, "a.xlsx", 2048),
        ({"name": "../../a.xlsx", "id": "/1"}, "a.xlsx", None),
        ({"file": 5, "file_size": "big"}, "5", None),
        ({}, "", None),
    ],
)
def test_files_of_every_shape(data, name, size):
    found = attachments_of(parsed([{"type": "file", "data": data}]), group_id=GROUP)
    assert [(one.name, one.size) for one in found] == [(name, size)]


def test_stickers_are_no_pictures():
    message = [
        image(),
        {"type": "image", "data": {"file": "a.gif", "sub_type": 1}},
        {"type": "image", "data": {"file": "a.gif", "subType": "1"}},
        {"type": "image", "data": {"file": "marketface", "emoji_id": "x"}},
        {"type": "mface", "data": {"emoji_id": "x"}},
    ]
    assert len(attachments_of(parsed(message), group_id=None)) == 1


UPLOAD = {
    "time": 1,
    "self_id": BOT,
    "post_type": "notice",
    "notice_type": "group_upload",
    "group_id": GROUP,
    "user_id": 1,
    "file": {"id": "/9月.xlsx", "name": "9月.xlsx", "size": 20, "busid": 102},
}
LONE = [{"type": "file", "data": {"file": "9月.xlsx", "file_id": "/x", "file_size": "20"}}]


@pytest.mark.parametrize(
    "events",
    [
        [UPLOAD],
        [group_payload(LONE)],
        [UPLOAD, group_payload(LONE)],
        [group_payload(LONE), UPLOAD],
        [UPLOAD | {"file": {"id": "/9月.xlsx", "name": "9月.xlsx", "size": 20, "url": "http://x"}}],
        [UPLOAD | {"file": {"id": "/9月.xlsx", "name": "9月.xlsx", "size": "20", "busid": "0"}}],
    ],
    ids=["notice", "message", "notice, message", "message, notice", "no busid", "odd types"],
)
async def test_an_upload_of_every_shape_is_this_file(hear, events):
    for event in events:
        assert await hear(dict(event)) is None
    incoming = await hear(group_payload("汇总一下这个文件"))
    assert [one.name for one in incoming.files] == ["9月.xlsx"]
    other = await hear(group_payload("汇总一下这个文件", user_id=2))
    assert other.files == ()


async def test_the_bots_own_uploads_are_nobodys_file(hear):
    await hear(UPLOAD | {"user_id": BOT})
    await hear(UPLOAD | {"file": None, "user_id": None})
    assert (await hear(group_payload("汇总一下这个文件"))).files == ()


async def test_a_private_upload_is_heard_by_its_notice_or_its_message(hear):
    notice = UPLOAD | {"notice_type": "offline_file", "group_id": ...}
    await hear({key: value for key, value in notice.items() if value is not ...})
    private = private_payload("汇总")
    assert [one.name for one in (await hear(private)).files] == ["9月.xlsx"]
    lone = private_payload(LONE)
    incoming = await hear(lone)
    assert (incoming.text, len(incoming.files)) == ("[文件：9月.xlsx]", 1)


async def test_a_quoted_message_brings_its_files_and_logs(hear, monkeypatch):
    log = {"type": "forward", "data": {"id": "f1"}}
    answer = {
        "time": 1,
        "message_type": "group",
        "message_id": 77,
        "real_id": 1,
        "sender": {"user_id": 5, "nickname": "ada"},
        "message": [*LONE, image(), log],
    }
    call = ("get_msg", {"message_id": 77, "_timeout": 2.0}, answer)
    incoming = await hear(group_payload([reply(77), at(BOT)]), call)
    assert [one.kind for one in incoming.quoted.files] == ["file", "image"]
    assert [dict(one.handle) for one in incoming.quoted.forwarded] == [{"id": "f1"}]
    assert incoming.files == ()


# --- where the bytes are


async def fetched(
    handle: dict[str, Any],
    answers: dict[str, Any] | None = None,
    *,
    directories: tuple[Path, ...] = (),
    size: int | None = 10,
    kind: Any = "file",
    place: Place = HERE,
) -> bytes:
    asked: list[str] = []

    async def ask(api: str, **data: Any) -> dict[str, Any]:
        asked.append(api)
        return (answers or {}).get(api, {})

    one = Attachment(kind, "a.xlsx", size, handle)
    return await FileFetcher((), directories).fetch(ask, place, one, limit=100, seconds=1)


INLINE = "base64://" + base64.b64encode(SHEET).decode()


@pytest.mark.parametrize(
    ("handle", "answers"),
    [
        ({"file": INLINE}, {}),
        ({"file_id": "/1"}, {"get_file": {"base64": INLINE.removeprefix("base64://")}}),
        ({"file_id": "/1"}, {"get_file": {"base64": INLINE}}),
        ({"file_id": "/1", "group_id": "7"}, {"get_group_file_url": {"url": INLINE}}),
        ({"file_id": "/1", "url": "http://127.0.0.1/x"}, {"get_file": {"file": INLINE}}),
    ],
)
async def test_bytes_are_found_wherever_they_are_named(handle, answers):
    assert await fetched(handle, answers) == SHEET


async def test_a_private_file_and_a_picture_have_their_own_calls():
    alone = replace(HERE, group_id=None)
    answers = {"get_private_file_url": {"url": INLINE}, "get_image": {"file": INLINE}}
    assert await fetched({"file_id": "/1"}, answers, place=alone) == SHEET
    assert await fetched({"file": "A.png"}, answers, kind="image") == SHEET


@pytest.mark.parametrize(
    "handle",
    [
        {"url": "http://127.0.0.1:9/A.png"},
        {"url": "http://localhost/x"},
        {"url": "file:///etc/passwd"},
        {"path": "/etc/passwd"},
        {"file": "/etc/passwd"},
        {"url": "http://[::1]/"},
        {"file": "base64://***"},
        {"file": "base64://" + "A" * 1000},
        {"url": 5, "file": {"a": 1}},
        {},
    ],
    ids=str,
)
async def test_what_may_not_be_fetched_is_refused_in_one_sentence(handle):
    with pytest.raises(ToolError) as failed:
        await fetched(handle)
    assert not {"127.0.0.1", "passwd", "localhost"} & set(failed.value.sentence.split())
    assert "/" not in failed.value.sentence or failed.value.sentence == PATH_ONLY


async def test_a_large_file_is_not_asked_for_inside_an_answer():
    with pytest.raises(ToolFailed, match=NOT_FOUND):
        await fetched({"file_id": "/1"}, {"get_file": {"base64": "QUJD"}}, size=9 * 2**20)


async def test_a_path_is_read_only_below_the_directories_of_the_settings(tmp_path):
    inside, outside = tmp_path / "napcat", tmp_path / "secret"
    inside.mkdir()
    outside.mkdir()
    (inside / "销售 表.xlsx").write_bytes(SHEET)
    (outside / "a.xlsx").write_bytes(SHEET)
    (inside / "link.xlsx").symlink_to(outside / "a.xlsx")
    (inside / "big.xlsx").write_bytes(bytes(101))
    directories = (inside,)
    uri = (inside / "销售 表.xlsx").as_uri()
    for where in (str(inside / "销售 表.xlsx"), uri):
        answers = {"get_file": {"file": where, "url": where}}
        assert await fetched({"file_id": "/1"}, answers, directories=directories) == SHEET
    for where in ("link.xlsx", "../secret/a.xlsx", "none.xlsx", "."):
        with pytest.raises(ToolError):
            await fetched({"path": str(inside / where)}, directories=directories)
    with pytest.raises(ToolDenied):
        await fetched({"path": str(outside / "a.xlsx")}, directories=directories)
    with pytest.raises(ToolFailed, match="上限"):
        await fetched({"path": str(inside / "big.xlsx")}, directories=directories)


async def test_without_a_connection_it_says_so():
    with pytest.raises(ToolFailed):
        await plugin.line.fetch(HERE, file("a"), limit=1, seconds=1)
    log = await plugin.line.open_forwarded(HERE, Forwarded({"id": "f"}), seconds=1)
    assert log.text is not None


async def test_the_typed_name_counts_only_by_setting(hear, monkeypatch):
    def payload() -> dict[str, Any]:
        return group_payload([text("@小机 在吗")])

    assert await hear(payload()) is None
    monkeypatch.setattr(plugin.line, "_typed_mention", True)
    own = {"group_id": GROUP, "user_id": BOT, "_timeout": 1.0}
    incoming = await hear(payload(), ("get_group_member_info", own, {"card": "小机"}))
    assert (incoming.text, incoming.mentioned) == ("在吗", True)
    assert await hear(group_payload([text("@小机器 在吗")])) is None
    assert (await hear(group_payload([text("在吗 @小手")]))).text == "在吗"
    plugin.line._names.clear()
    lost = ActionFailed(status="failed", retcode=1200)
    assert await hear(payload(), ("get_group_member_info", own, lost)) is None


# --- turns and clocks


def test_a_row_of_turns_ends_and_a_pause_begins_a_new_one():
    clock = Clock()
    turns = Turns(3, clock=clock)
    assert [turns.over(HERE) for _ in range(5)] == [0, 0, 0, 1, 2]
    assert turns.over(replace(HERE, user_id="2")) == 0
    clock.now += PAUSE_SECONDS - 1
    assert turns.over(HERE) == 3
    clock.now += PAUSE_SECONDS
    assert turns.over(HERE) == 0


def test_the_row_that_is_too_long_is_said_once(tmp_path, shelf):
    group = GroupSettings(turn_cap=2)
    settings = Settings(_env_file=None, data_dir=tmp_path, group=group)  # type: ignore[call-arg]
    hearing = Hearing(settings, shelf)  # type: ignore[arg-type]
    said = [hearing.too_many_turns(HERE) for _ in range(4)]
    assert said[:2] == [None, None]
    assert said[2]
    assert said[3] == ""


def test_old_messages_are_dropped_and_a_wrong_clock_does_not_make_deaf():
    fresh = Freshness(60)
    now = 1_000_000.0
    assert not fresh.is_old("b", now - 59, now)
    assert fresh.is_old("b", now - 61, now)
    assert not fresh.is_old("b", None, now)
    assert not fresh.is_old("b", now + 500, now)
    backlog = Freshness(60)
    assert [backlog.is_old("b", now - 600 + n * 30, now + n * 0.1) for n in range(5)] == [True] * 5
    skewed = Freshness(60)
    live = [skewed.is_old("b", now - 300 + n * 20, now + n * 20 + 0.5) for n in range(5)]
    assert live == [True, False, False, False, False]
    assert skewed.is_old("b", now - 500, now + 101)
