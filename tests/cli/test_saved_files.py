"""Files of tools, as the commands in a terminal write them down."""

from __future__ import annotations

import pytest

from chathands.cli.chat import saved
from chathands.cli.tools_call import _kept


@pytest.mark.parametrize(
    "name", ["../../etc/报表.csv", "表" * 100 + ".csv", "con.csv", "a\nb:c.csv"]
)
def test_any_name_can_be_written_and_stays_where_it_belongs(tmp_path, monkeypatch, name):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = _kept(tmp_path, name, b"1"), _kept(tmp_path, name, b"2")
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    assert first.parent == second.parent == tmp_path
    assert first.suffix == ".csv"
    assert saved(name, b"3").read_bytes() == b"3"
