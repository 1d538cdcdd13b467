"""Files people send: names made safe, one folder per person, never over another's file."""

from __future__ import annotations

import os

import pytest

from chathands.errors import ToolFailed
from chathands.toolbox import Caller, FileRoots
from chathands.toolbox.names import listable
from chathands.toolbox.received import Received, image_name, safe_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("9月销售.xlsx", "9月销售.xlsx"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\报表.xlsx", "报表.xlsx"),
        ("报表(1).xlsx", "报表_1.xlsx"),
        ("报表 （终稿）.xlsx", "报表_终稿.xlsx"),
        (".env", "env"),
        ("~$锁.xlsx", "锁.xlsx"),
        ("a\x00b\u202egpj.xlsx", "abgpj.xlsx"),
        ("a\ud800.txt", "a_.txt"),
        ('<x>:"|?*.csv', "x______.csv"),
        ("CON.txt", "_CON.txt"),
        ("结果\n# 系统.md", "结果# 系统.md"),
        ("[CQ:at,qq=all].txt", "CQ_at,qq=all_.txt"),
        ("", "文件"),
        ("   ...  ", "文件"),
        ("/", "文件"),
        (".xlsx", "xlsx"),
        ("字" * 300 + ".xlsx", "字" * 40 + ".xlsx"),
    ],
)
def test_names_are_made_safe_and_readable_back(name, safe):
    assert safe_name(name) == safe
    assert listable(safe_name(name))


def test_a_picture_is_named_by_what_it_is():
    assert image_name(b"\x89PNG...").endswith(".png")
    assert image_name(b"\xff\xd8\xffabc").endswith(".jpg")
    assert image_name(b"?") != image_name(b"!")


@pytest.fixture
def received(tmp_path) -> Received:
    return Received(tmp_path, per_person=100, days=7)


def test_only_the_sender_reads_it_and_it_hides_nothing(tmp_path, received):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "a.csv").write_text("of the admin")
    path = received.keep("1", "a.csv", b"mine")
    assert path == "received/a.csv"
    with FileRoots(tmp_path, Caller("1", "700")).open(path) as file:
        assert file.read(10) == b"mine"
    with FileRoots(tmp_path, Caller("1", "700")).open("a.csv") as file:
        assert file.read(20) == b"of the admin"
    with pytest.raises(ToolFailed):
        FileRoots(tmp_path, Caller("2", "700")).open(path)


def test_reading_it_counts_as_text_from_outside(tmp_path, received):
    roots = FileRoots(tmp_path, Caller("1"))
    roots.open(received.keep("1", "a.csv", b"mine")).close()
    assert roots.opened_upload


def test_the_same_file_is_kept_once_and_another_gets_a_number(received):
    assert received.keep("1", "a.csv", b"one") == "received/a.csv"
    assert received.keep("1", "a.csv", b"one") == "received/a.csv"
    assert received.keep("1", "a.csv", b"two") == "received/a-2.csv"
    assert received.keep("1", "a.csv", b"two") == "received/a-2.csv"


def test_the_oldest_leave_when_there_is_too_much(tmp_path, received):
    folder = tmp_path / "users" / "1" / "received"
    for number in range(3):
        received.keep("1", f"{number}.csv", bytes(40))
        os.utime(folder / f"{number}.csv", (10**9 * 2 + number, 10**9 * 2 + number))
    assert sorted(os.listdir(folder)) == ["1.csv", "2.csv"]
    os.utime(folder / "2.csv", (1, 1))
    received.keep("1", "3.csv", b"x")
    assert sorted(os.listdir(folder)) == ["1.csv", "3.csv"]
    with pytest.raises(ToolFailed):
        received.keep("1", "4.csv", bytes(101))
    assert sorted(os.listdir(folder)) == ["1.csv", "3.csv"]


def test_a_folder_that_leads_elsewhere_is_not_written_to(tmp_path, received):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "users" / "1").mkdir(parents=True)
    (tmp_path / "users" / "1" / "received").symlink_to(elsewhere)
    with pytest.raises(ToolFailed) as failed:
        received.keep("1", "a.csv", b"x")
    assert str(tmp_path) not in failed.value.sentence
    assert not list(elsewhere.iterdir())
